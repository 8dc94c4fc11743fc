//! Calls over a real connection to an API that is down, slow, huge, rude, or wants an OAuth token.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use portolan_http_tools::{
    CallTarget, Caller, CompiledTool, Content, Credential, CredentialSlot, Outcome, RequestPlan,
    Sent, TokenSource, ToolAnswer, execute::execute,
};
use portolan_model::Clock;
use portolan_net::egress::{AllowedDestination, Egress, EgressPolicy, Redirects};
use serde_json::{Value, json};
use time::OffsetDateTime;
use url::Url;

#[derive(Clone, Default)]
struct Counts {
    tokens: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    /// Tokens up to this number are refused by the API.
    revoked_up_to: Arc<AtomicUsize>,
    /// The latest request of [`kept`].
    arrived: Arc<Mutex<Option<Arrived>>>,
}

async fn token(State(counts): State<Counts>) -> Response {
    let number = counts.tokens.fetch_add(1, Ordering::SeqCst) + 1;
    Json(json!({"access_token": format!("token-{number}"), "token_type": "bearer", "expires_in": 600})).into_response()
}

async fn guarded(State(counts): State<Counts>, headers: HeaderMap) -> Response {
    counts.calls.fetch_add(1, Ordering::SeqCst);
    let number: usize = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer token-"))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0);
    if number <= counts.revoked_up_to.load(Ordering::SeqCst) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Json(json!({"token": number})).into_response()
}

/// Refuses every request, and returns its `Authorization` header in the answer.
async fn strict(State(counts): State<Counts>, headers: HeaderMap) -> Response {
    counts.calls.fetch_add(1, Ordering::SeqCst);
    let said = format!("no to {:?}", headers.get(header::AUTHORIZATION));
    let challenges = [
        (header::WWW_AUTHENTICATE, "Basic realm=\"x\""),
        (
            header::WWW_AUTHENTICATE,
            "Bearer error=\"invalid_token\", scope=\"read\"",
        ),
    ];
    let mut answer = (StatusCode::UNAUTHORIZED, said).into_response();
    for (name, value) in challenges {
        answer.headers_mut().append(name, value.parse().unwrap());
    }
    answer
}

/// Answers with the headers and the address of its request.
async fn echo(uri: Uri, headers: HeaderMap) -> Response {
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())))
        .collect();
    Json(json!({"uri": uri.to_string(), "headers": headers})).into_response()
}

/// Method, address, headers and body of a request, as the stand-in received them.
type Arrived = (Method, Uri, HeaderMap, String);

/// Keeps what arrives, and sets a cookie.
async fn kept(
    State(counts): State<Counts>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let key = headers.get("x-key").cloned();
    *counts.arrived.lock().unwrap() = Some((method, uri, headers, body));
    let cookie = (header::SET_COOKIE, "session=5f0c6b1d; HttpOnly");
    let mut answer = ([cookie], Json(json!({"kept": true}))).into_response();
    if let Some(key) = key {
        answer.headers_mut().insert("x-your-key", key);
    }
    answer
}

struct Scene {
    egress: Egress,
    target: CallTarget,
    counts: Counts,
    clock: Clock,
    tokens: TokenSource,
    slot: CredentialSlot,
}

impl Scene {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Counts::default();
        let api = Router::new()
            .route("/token", post(token))
            .route("/guarded", get(guarded).post(guarded))
            .route(
                "/slow",
                get(|| async { std::future::pending::<()>().await }),
            )
            .route("/strict", get(strict).post(strict))
            .route("/echo", get(echo))
            .route("/kept", get(kept).post(kept))
            .route("/huge", get(|| async { "x".repeat(100_000) }))
            .route(
                "/away",
                get(|| async { Redirect::temporary("https://elsewhere.example/secret?code=1") }),
            )
            .route(
                "/busy",
                get(|| async { (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "7")]) }),
            )
            .with_state(counts.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, api).await });
        let allow = vec![AllowedDestination::address(address.ip(), address.port())];
        let clock = Clock::test(OffsetDateTime::now_utc());
        let credential = json!({"kind": "oauth_client_credentials", "token_url": format!("http://{address}/token"), "client_id": "a b", "client_secret": "s"});
        Self {
            egress: Egress::new(EgressPolicy {
                allow,
                ..EgressPolicy::default()
            })
            .unwrap(),
            target: CallTarget {
                base_url: Url::parse(&format!("http://{address}")).unwrap(),
                timeout: Duration::from_millis(300),
                max_response_bytes: 10_000,
                redirects: Redirects::SameOrigin,
            },
            counts,
            tokens: TokenSource::new(clock.clone()),
            clock,
            slot: CredentialSlot::new(
                "one".to_owned(),
                serde_json::from_value(credential).unwrap(),
            ),
        }
    }

    async fn call(&self, method: &str, path: &str, with_credential: bool) -> ToolAnswer {
        let credential = with_credential.then_some(&self.slot);
        self.call_as(method, path, credential, None).await
    }

    async fn call_as(
        &self,
        method: &str,
        path: &str,
        credential: Option<&CredentialSlot>,
        account: Option<&str>,
    ) -> ToolAnswer {
        let plan = json!({"method": method, "path": path, "parameters": []});
        self.send(plan, &json!({}), credential, account).await
    }

    async fn send(
        &self,
        plan: Value,
        arguments: &Value,
        credential: Option<&CredentialSlot>,
        account: Option<&str>,
    ) -> ToolAnswer {
        let plan: RequestPlan = serde_json::from_value(plan).unwrap();
        let tool = CompiledTool::new(json!({"type": "object"}), None, plan);
        let caller = Caller {
            egress: &self.egress,
            target: &self.target,
            credential,
            account,
            tokens: &self.tokens,
            trace: None,
            shows_exchange: true,
        };
        execute(&caller, &tool, arguments).await
    }
}

fn text(answer: &ToolAnswer) -> &str {
    let Content::Text(text) = &answer.content[0] else {
        panic!("not a text")
    };
    text
}

#[tokio::test]
async fn an_api_that_gives_no_answer_is_an_error_that_says_what_to_do_tl_19() {
    let mut scene = Scene::open().await;
    let slow = scene.call("GET", "/slow", false).await;
    assert_eq!(slow.outcome, Outcome::UpstreamError);
    assert!(
        text(&slow).contains("within 300 ms") && text(&slow).contains("check before repeating"),
        "{}",
        text(&slow)
    );
    let huge = scene.call("GET", "/huge", false).await;
    assert!(
        text(&huge).contains("larger than 10000 bytes") && text(&huge).contains("Ask for less"),
        "{}",
        text(&huge)
    );
    let away = scene.call("GET", "/away", false).await;
    assert!(
        away.is_error && !text(&away).contains("code=1"),
        "{}",
        text(&away)
    );
    scene.target.redirects = Redirects::None;
    let away = scene.call("GET", "/away", false).await;
    assert!(
        text(&away).contains("redirects to https://elsewhere.example/secret,"),
        "{}",
        text(&away)
    );
    let busy = scene.call("GET", "/busy", false).await;
    assert!(text(&busy).contains("Wait 7 seconds"), "{}", text(&busy));

    scene.target.base_url = Url::parse("http://169.254.169.254/latest").unwrap();
    let blocked = scene.call("GET", "/meta-data", false).await;
    assert!(
        text(&blocked).contains("Nothing was sent"),
        "{}",
        text(&blocked)
    );
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let allow = vec![AllowedDestination::address(free.ip(), free.port())];
    scene.egress = Egress::new(EgressPolicy {
        allow,
        ..EgressPolicy::default()
    })
    .unwrap();
    scene.target.base_url = Url::parse(&format!("http://{free}")).unwrap();
    let down = scene.call("GET", "/x", false).await;
    assert!(text(&down).contains("seems to be down"), "{}", text(&down));
}

#[tokio::test]
async fn many_calls_at_once_fetch_one_token_and_an_expired_one_is_replaced() {
    let mut scene = Scene::open().await;
    scene.target.timeout = Duration::from_secs(10);
    let answers = futures_join(20, || scene.call("GET", "/guarded", true)).await;
    assert!(answers.iter().all(|answer| answer.outcome == Outcome::Ok));
    assert_eq!(scene.counts.tokens.load(Ordering::SeqCst), 1);
    scene.clock.advance(time::Duration::seconds(569));
    scene.call("GET", "/guarded", true).await;
    assert_eq!(scene.counts.tokens.load(Ordering::SeqCst), 1);
    scene.clock.advance(time::Duration::seconds(2));
    scene.call("GET", "/guarded", true).await;
    assert_eq!(
        scene.counts.tokens.load(Ordering::SeqCst),
        2,
        "replaced half a minute before its end"
    );
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_only_safe_methods_are_sent_again() {
    let mut scene = Scene::open().await;
    scene.target.timeout = Duration::from_secs(10);
    assert_eq!(
        scene.call("GET", "/guarded", true).await.outcome,
        Outcome::Ok
    );
    scene.counts.revoked_up_to.store(1, Ordering::SeqCst);
    let calls = || scene.counts.calls.load(Ordering::SeqCst);
    let before = calls();
    let unsafe_call = scene.call("POST", "/guarded", true).await;
    assert_eq!(
        (unsafe_call.status, calls() - before),
        (Some(401), 1),
        "an unsafe method is sent once"
    );
    assert_eq!(
        scene.call("POST", "/guarded", true).await.outcome,
        Outcome::Ok,
        "the next call has a new token"
    );
    scene.counts.revoked_up_to.store(2, Ordering::SeqCst);
    let before = calls();
    assert_eq!(
        scene.call("GET", "/guarded", true).await.outcome,
        Outcome::Ok
    );
    assert_eq!(calls() - before, 2);
    scene
        .counts
        .revoked_up_to
        .store(usize::MAX, Ordering::SeqCst);
    let before = calls();
    assert_eq!(scene.call("GET", "/guarded", true).await.status, Some(401));
    assert_eq!(calls() - before, 2, "no loop");
}

#[tokio::test]
async fn the_token_of_an_account_is_sent_once_and_who_keeps_it_hears_of_the_refusal_x_86() {
    let mut scene = Scene::open().await;
    scene.target.timeout = Duration::from_secs(10);
    let of_account =
        |method, path| scene.call_as(method, path, Some(&scene.slot), Some("token-91"));
    let answer = of_account("POST", "/guarded").await;
    assert_eq!(answer.outcome, Outcome::Ok, "{}", text(&answer));
    assert!(
        text(&answer).contains('9'),
        "it, and not the credential: {}",
        text(&answer)
    );
    assert_eq!(scene.counts.tokens.load(Ordering::SeqCst), 0);
    assert_eq!(answer.challenge, None);
    for method in ["GET", "POST"] {
        let before = scene.counts.calls.load(Ordering::SeqCst);
        let refused = of_account(method, "/strict").await;
        assert_eq!(refused.status, Some(401));
        assert_eq!(
            refused.challenge.as_deref(),
            Some("Basic realm=\"x\", Bearer error=\"invalid_token\", scope=\"read\"")
        );
        assert_eq!(
            scene.counts.calls.load(Ordering::SeqCst) - before,
            1,
            "to ask again is not its matter"
        );
        assert!(
            !text(&refused).contains("token-91") && text(&refused).contains("no to"),
            "{}",
            text(&refused)
        );
        let sent = refused.sent.map(|sent| format!("{sent:?}"));
        assert!(!sent.unwrap().contains("token-91"));
    }
    // MCP-AU-8: to another origin nothing goes, and so no token.
    let away = of_account("GET", "/away").await;
    assert_eq!(away.outcome, Outcome::UpstreamError, "{}", text(&away));
}

#[tokio::test]
async fn a_token_endpoint_that_refuses_is_asked_once_for_a_burst() {
    let mut scene = Scene::open().await;
    let mut credential = scene.slot.credential().clone();
    if let Credential::OauthClientCredentials { token_url, .. } = &mut credential {
        *token_url = token_url.replace("/token", "/nowhere");
    }
    scene.slot = CredentialSlot::new("one".to_owned(), credential);
    scene.target.timeout = Duration::from_secs(10);
    let answers = futures_join(5, || scene.call("GET", "/guarded", true)).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.outcome == Outcome::UpstreamError
                && text(answer).contains("Nothing was sent to the API"))
    );
    assert_eq!(scene.counts.calls.load(Ordering::SeqCst), 0);
}

/// Runs `count` futures at once on this task.
async fn futures_join<F: Future>(count: usize, make: impl Fn() -> F) -> Vec<F::Output> {
    let mut futures: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
    let mut done: Vec<Option<F::Output>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut pending = false;
        for (slot, future) in done.iter_mut().zip(&mut futures) {
            if slot.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(output) => *slot = Some(output),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// REVIEW-S-5: in a success as in a refusal, in content and in structured content, whatever opened
/// the API.
#[tokio::test]
async fn s5_what_an_api_echoes_of_its_request_is_masked_whatever_opened_it() {
    let scene = Scene::open().await;
    let secret = "s3cret/+Value=";
    for credential in [
        json!({"kind": "bearer", "token": secret}),
        json!({"kind": "basic", "username": "anna", "password": secret}),
        json!({"kind": "headers", "headers": [{"name": "x-token", "value": format!("Token {secret}")}]}),
        json!({"kind": "api_key", "in": "header", "name": "x-key", "value": secret}),
        json!({"kind": "api_key", "in": "query", "name": "key", "value": secret}),
        json!({"kind": "api_key", "in": "cookie", "name": "key", "value": secret}),
    ] {
        let opened = serde_json::from_value(credential.clone()).unwrap();
        let slot = CredentialSlot::new(credential.to_string(), opened);
        let answer = scene.call_as("GET", "/echo", Some(&slot), None).await;
        assert_eq!(answer.outcome, Outcome::Ok, "{}", text(&answer));
        let shown = format!("{} {:?}", text(&answer), answer.structured());
        assert!(
            shown.contains("••••") && answer.structured().is_some(),
            "{shown}"
        );
        assert!(!shown.contains("s3cret"), "{credential}: {shown}");
        // `anna:s3cret/+Value=`
        assert!(!shown.contains("YW5uYTpzM2NyZXQ"), "{shown}");
    }
    let answer = scene.call_as("GET", "/echo", Some(&scene.slot), None).await;
    assert!(
        text(&answer).contains("token-1"),
        "too short to be a secret"
    );
    let answer = scene
        .call_as("GET", "/echo", None, Some("account-token-1"))
        .await;
    assert!(
        !text(&answer).contains("account-token"),
        "{}",
        text(&answer)
    );
}

/// Request that a stand-in received, in the form of [`Sent`]: the values of `masked` headers are
/// masked.
fn as_shown(scene: &Scene, masked: &[&str]) -> (Method, String, Vec<(String, String)>, String) {
    let (method, uri, headers, body) = scene.counts.arrived.lock().unwrap().take().unwrap();
    let url = scene.target.base_url.join(&uri.to_string()).unwrap();
    let mut lines: Vec<(String, String)> = headers
        .iter()
        .filter(|(name, _)| *name != header::CONTENT_LENGTH)
        .map(|(name, value)| {
            let value = value.to_str().unwrap();
            let shown = match (masked.contains(&name.as_str()), value.split_once(' ')) {
                (false, _) => value.to_owned(),
                (true, Some((scheme, _))) => format!("{scheme} ••••"),
                (true, None) => "••••".to_owned(),
            };
            (name.to_string(), shown)
        })
        .collect();
    lines.sort();
    (method, url.to_string(), lines, body)
}

fn of(sent: Sent) -> (Method, String, Vec<(String, String)>, String) {
    let mut lines = sent.headers;
    lines.sort();
    let body = sent.body.map(|body| {
        let text = body.text.unwrap();
        assert_eq!(body.bytes, text.len());
        text
    });
    (sent.method, sent.url, lines, body.unwrap_or_default())
}

/// REVIEW-UX-BUG-20: a person who tries a tool reads the request that the API received, its
/// credential masked.
#[tokio::test]
async fn what_is_shown_is_what_the_api_received() {
    let scene = Scene::open().await;
    let post = json!({"method": "POST", "path": "/kept", "parameters": [
        {"argument": "berth", "name": "berth", "in": "query", "encoding": {"by": "style", "style": "form", "explode": true}},
        {"argument": "who", "name": "X-Pilot", "in": "header", "encoding": {"by": "style", "style": "simple", "explode": false}},
    ], "body": {"media_type": "application/json", "encoding": "json", "required": true,
        "shape": {"from": "properties", "properties": [{"argument": "note", "name": "note"}]}}});
    let arguments = json!({"berth": "N 3", "who": "Ida", "note": "dock ä 😀"});
    for (credential, masked) in [
        (json!({"kind": "bearer", "token": "t1"}), "authorization"),
        (
            json!({"kind": "basic", "username": "anna", "password": "p"}),
            "authorization",
        ),
        (
            json!({"kind": "headers", "headers": [{"name": "x-token", "value": "short"}]}),
            "x-token",
        ),
        (
            json!({"kind": "api_key", "in": "header", "name": "x-key", "value": "harbour-key"}),
            "x-key",
        ),
        (
            json!({"kind": "api_key", "in": "cookie", "name": "key", "value": "abc"}),
            "cookie",
        ),
    ] {
        let opened = serde_json::from_value(credential.clone()).unwrap();
        let slot = CredentialSlot::new(credential.to_string(), opened);
        let answer = scene
            .send(post.clone(), &arguments, Some(&slot), None)
            .await;
        assert_eq!(answer.outcome, Outcome::Ok, "{}", text(&answer));
        let sent = of(answer.sent.unwrap());
        assert_eq!(sent, as_shown(&scene, &[masked]), "{credential}");
        assert_eq!(sent.3, r#"{"note":"dock ä 😀"}"#);
        assert!(sent.1.ends_with("/kept?berth=N%203"), "{}", sent.1);
        let shown: Vec<&str> = sent.2.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "accept",
            "content-type",
            "host",
            "user-agent",
            "x-pilot",
            masked,
        ] {
            assert!(shown.contains(&name), "{name}: {shown:?}");
        }

        let received = answer.received.unwrap();
        assert_eq!(received.status, StatusCode::OK);
        let body = received.body.unwrap();
        assert_eq!(body.text.as_deref(), Some(r#"{"kept":true}"#));
        let value = |name: &str| {
            let found = received.headers.iter().find(|(one, _)| one == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(value("content-type"), Some("application/json"));
        assert_eq!(value("set-cookie"), Some("••••"));
        let echoed = (masked == "x-key").then_some("••••");
        assert_eq!(value("x-your-key"), echoed, "the API repeats the key");
    }

    // A key of the query, and the token of an account, which wins over a credential.
    let key = json!({"kind": "api_key", "in": "query", "name": "key", "value": "abc"});
    let slot = CredentialSlot::new("query".to_owned(), serde_json::from_value(key).unwrap());
    let get = json!({"method": "GET", "path": "/kept?all=1", "parameters": []});
    let answer = scene.send(get.clone(), &json!({}), Some(&slot), None).await;
    let (_, url, headers, body) = of(answer.sent.unwrap());
    let (_, received, lines, _) = as_shown(&scene, &[]);
    assert_eq!(received.replace("key=abc", "key=••••"), url);
    assert_eq!((headers, body.as_str()), (lines, ""));
    let answer = scene
        .send(get, &json!({}), Some(&slot), Some("account-token-1"))
        .await;
    assert_eq!(
        of(answer.sent.unwrap()),
        as_shown(&scene, &["authorization"])
    );
}
