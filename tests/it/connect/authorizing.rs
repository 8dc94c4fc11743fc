//! Ids of a client and scopes, at an authorization server that gives what is asked (MCP-AC-1,
//! MCP-AU-11). The test is the browser.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use tokio::sync::watch;
use url::{Url, form_urlencoded};

use portolan_tests::connected::{Bridge, Home, PATIENCE, modern, text};

const LEGACY: &str = "2025-11-25";

/// An MCP server whose one tool needs the scope `write`, and its authorization server.
#[derive(Debug, Clone)]
struct Service {
    base: String,
    /// Scopes by token, and the calls that were executed.
    seen: Arc<Mutex<Seen>>,
    /// Refreshes so far, and whether their answers wait.
    refreshes: watch::Sender<usize>,
    is_held: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The token of a code carries the scopes of its request.
    scopes: BTreeMap<String, String>,
    clients: Vec<String>,
    registered: usize,
    calls: usize,
    /// The refresh token that is good: each is good once.
    refresh: String,
}

impl Service {
    async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address: SocketAddr = listener.local_addr()?;
        let service = Self {
            base: format!("http://{address}"),
            seen: Arc::default(),
            refreshes: watch::Sender::default(),
            is_held: watch::Sender::default(),
        };
        let router = Router::new().fallback(answer).with_state(service.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(service)
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn seen<T>(&self, read: impl FnOnce(&mut Seen) -> T) -> T {
        read(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Agrees to a sign-in as the browser does; returns the parameters of its address.
    async fn agree(&self, address: &str) -> Result<BTreeMap<String, String>> {
        let address = Url::parse(address)?;
        ensure!(address.path() == "/authorize", "{address}");
        let asked: BTreeMap<_, _> = address.query_pairs().into_owned().collect();
        let value = |name: &str| asked.get(name).with_context(|| name.to_owned());
        let code = format!("code-{}", self.seen(|seen| seen.scopes.len()));
        let scope = value("scope")?.clone();
        self.seen(|seen| seen.scopes.insert(code.clone(), scope));
        let mut back = Url::parse(value("redirect_uri")?)?;
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", value("state")?);
        let page = reqwest::get(back).await?;
        ensure!(page.status().is_success(), "{}", page.status());
        Ok(asked)
    }
}

async fn answer(
    State(service): State<Service>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let base = &service.base;
    match uri.path() {
        "/.well-known/oauth-protected-resource/mcp" => Json(json!({
            "resource": service.url(), "authorization_servers": [base],
        }))
        .into_response(),
        "/.well-known/oauth-authorization-server" => Json(json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": true,
        }))
        .into_response(),
        "/register" => {
            service.seen(|seen| seen.registered += 1);
            let mut client: Value = serde_json::from_slice(&body).unwrap_or_default();
            client["client_id"] = json!("registered");
            (StatusCode::CREATED, Json(client)).into_response()
        }
        "/token" => {
            let form: BTreeMap<_, _> = form_urlencoded::parse(&body).into_owned().collect();
            let code = form.get("code").cloned().unwrap_or_default();
            let client = form.get("client_id").cloned().unwrap_or_default();
            service.seen(|seen| seen.clients.push(client));
            if let Some(used) = form.get("refresh_token") {
                return service.refresh(used).await;
            }
            let refresh = service.next_refresh();
            Json(
                json!({"access_token": code, "token_type": "Bearer", "expires_in": 3600,
                "refresh_token": refresh}),
            )
            .into_response()
        }
        "/mcp" if method == Method::POST => service.message(&headers, &body),
        "/mcp" => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Service {
    fn next_refresh(&self) -> String {
        self.seen(|seen| {
            seen.refresh = format!("refresh-{}", seen.clients.len());
            seen.refresh.clone()
        })
    }

    /// Gives new tokens for the refresh token that is good, and takes it.
    async fn refresh(&self, used: &str) -> Response {
        if self.seen(|seen| seen.refresh != used) {
            let error = json!({"error": "invalid_grant"});
            return (StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
        let (access, refresh) = (format!("fresh-{used}"), self.next_refresh());
        self.seen(|seen| seen.scopes.insert(access.clone(), "read write".to_owned()));
        self.refreshes.send_modify(|count| *count += 1);
        let mut held = self.is_held.subscribe();
        let _ = held.wait_for(|is_held| !is_held).await;
        Json(
            json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": refresh}),
        )
        .into_response()
    }

    fn message(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let refuse = |status: StatusCode, error: &str, scope: &str| {
            let challenge = format!("Bearer error=\"{error}\", scope=\"{scope}\"");
            (status, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
        };
        let token = headers.get(header::AUTHORIZATION);
        let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let scopes = token.and_then(|token| self.seen(|seen| seen.scopes.get(token).cloned()));
        let Some(scopes) = scopes else {
            return refuse(StatusCode::UNAUTHORIZED, "invalid_token", "read");
        };
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": LEGACY, "capabilities": {"tools": {}},
                "serverInfo": {"name": "scoped", "version": "1"},
            }),
            Some("server/discover") => json!({"supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0,
                "cacheScope": "private"}),
            Some("tools/list") => json!({"tools": [], "resultType": "complete"}),
            Some("tools/call") => {
                if !scopes.split(' ').any(|scope| scope == "write") {
                    return refuse(StatusCode::FORBIDDEN, "insufficient_scope", "write");
                }
                self.seen(|seen| seen.calls += 1);
                json!({"content": [{"type": "text", "text": "written"}], "resultType": "complete"})
            }
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
    }
}

async fn initialized(bridge: &mut Bridge, service: &Service) -> Result<BTreeMap<String, String>> {
    let params = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let opening = bridge.begin("initialize", params).await?;
    let asked = service.agree(&bridge.sign_in_address().await?).await?;
    let opened = bridge.answer(opening).await?;
    ensure!(opened["result"]["protocolVersion"] == LEGACY, "{opened}");
    bridge
        .notify("notifications/initialized", json!({}))
        .await?;
    Ok(asked)
}

#[tokio::test]
async fn ac_1_a_given_id_or_a_metadata_document_is_the_client_and_nothing_is_registered()
-> Result<()> {
    const DOCUMENT: &str = "https://client.example/metadata.json";
    for (arguments, client, registered) in [
        (["--client-id", "given"], "given", 0),
        (["--client-metadata-url", DOCUMENT], DOCUMENT, 0),
        (["--scope", "read"], "registered", 1),
    ] {
        let service = Service::start().await?;
        let home = Home::new()?;
        let url = service.url();
        let mut bridge = home.start(&[url.as_str(), arguments[0], arguments[1]])?;
        let asked = initialized(&mut bridge, &service).await?;
        assert_eq!(asked.get("client_id").map(String::as_str), Some(client));
        assert_eq!(asked.get("scope").map(String::as_str), Some("read"));
        assert_eq!(service.seen(|seen| seen.clients.clone()), [client]);
        assert_eq!(service.seen(|seen| seen.registered), registered, "{client}");
    }
    Ok(())
}

#[tokio::test]
async fn au_11_a_call_that_needs_another_scope_asks_for_both_and_is_executed_once() -> Result<()> {
    let service = Service::start().await?;
    let home = Home::new()?;
    let mut bridge = home.start(&[service.url().as_str()])?;
    initialized(&mut bridge, &service).await?;
    let call = json!({"name": "write", "arguments": {}});
    let calling = bridge.begin("tools/call", call).await?;
    let second = bridge
        .noted(|notes| {
            let mut lines = notes.lines().filter(|line| line.contains("Sign in to "));
            Some(lines.nth(1)?.split_once("browser: ")?.1.to_owned())
        })
        .await?;
    let asked = service.agree(&second).await?;
    assert_eq!(asked.get("scope").map(String::as_str), Some("read write"));
    let answered = bridge.answer(calling).await?;
    assert_eq!(
        answered["result"]["content"][0]["text"],
        "written",
        "{answered}\n{}",
        bridge.notes()
    );
    assert_eq!(service.seen(|seen| seen.calls), 1);
    // The registration of the first sign-in serves the second.
    assert_eq!(service.seen(|seen| seen.registered), 1);
    Ok(())
}

/// MCP-AU-13: the authorization server has taken the old refresh token by the time that the request
/// is cancelled. The new one is stored, so that the next request needs no person.
#[tokio::test]
async fn au_13_a_refresh_outlives_the_request_that_began_it() -> Result<()> {
    let service = Service::start().await?;
    let home = Home::new()?;
    let mut bridge = home.start(&[service.url().as_str()])?;
    let params = modern(json!({}));
    let opening = bridge.begin("server/discover", params).await?;
    service.agree(&bridge.sign_in_address().await?).await?;
    bridge.answer(opening).await?;
    service.seen(|seen| seen.scopes.clear());
    service.is_held.send_replace(true);
    let call = json!({"name": "write", "arguments": {}});
    let first = bridge.begin("tools/call", modern(call.clone())).await?;
    let mut refreshes = service.refreshes.subscribe();
    let begun = refreshes.wait_for(|count| *count == 1);
    tokio::time::timeout(PATIENCE, begun).await??;
    bridge
        .notify("notifications/cancelled", json!({"requestId": first}))
        .await?;
    // A line that is answered in its turn: the cancellation was taken.
    bridge.write("{").await?;
    ensure!(bridge.receive().await?["error"]["code"] == -32700);
    service.is_held.send_replace(false);
    let answered = bridge.modern("tools/call", call).await?;
    ensure!(text(&answered) == "written", "{answered}");
    assert_eq!(*service.refreshes.borrow(), 1, "{}", bridge.notes());
    assert_eq!(service.seen(|seen| seen.calls), 1, "the first was not sent");
    Ok(())
}
