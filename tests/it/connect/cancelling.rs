//! Cancellations that come before the request is at the server (MCP-X-77, MCP-X-79): in front of a
//! server that answers when the test lets it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use portolan_tests::connected::{Bridge, Home, PATIENCE, text};
use serde_json::{Value, json};
use tokio::sync::watch;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A server of one revision.
#[derive(Debug, Clone)]
struct Server {
    address: SocketAddr,
    revision: &'static str,
    /// Messages, in their order.
    seen: watch::Sender<Vec<Value>>,
    /// The method whose answers wait.
    held: watch::Sender<Option<&'static str>>,
    /// Calls that were sent back once.
    sent_back: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    async fn start(revision: &'static str) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let server = Self {
            address: listener.local_addr()?,
            revision,
            seen: watch::Sender::default(),
            held: watch::Sender::default(),
            sent_back: Arc::default(),
        };
        let router = Router::new().route("/mcp", post(answer));
        let router = router.with_state(server.clone());
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(server)
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until a message with this method is there.
    async fn has(&self, method: &str) -> Result<()> {
        let mut seen = self.seen.subscribe();
        let found = seen.wait_for(|seen| seen.iter().any(|one| one["method"] == method));
        tokio::time::timeout(PATIENCE, found)
            .await
            .with_context(|| format!("no {method}: {:?}", self.seen.borrow()))??;
        Ok(())
    }

    /// The names of the tools that were called, in their order.
    fn called(&self) -> Vec<String> {
        let seen = self.seen.borrow();
        let calls = seen.iter().filter(|one| one["method"] == "tools/call");
        calls
            .map(|call| call["params"]["name"].to_string())
            .collect()
    }

    fn result(&self, message: &Value) -> Result<Value, i32> {
        let is_modern = self.revision == MODERN;
        let mut result = match message["method"].as_str() {
            Some("initialize") if !is_modern => json!({"protocolVersion": self.revision,
                "capabilities": {"tools": {}}, "serverInfo": {"name": "held", "version": "1"}}),
            Some("server/discover") if is_modern => json!({"supportedVersions": [MODERN],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}),
            Some("tools/list") => json!({"tools": [], "ttlMs": 0, "cacheScope": "private"}),
            Some("tools/call") => {
                let name = &message["params"]["name"];
                let mut sent_back = self
                    .sent_back
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if is_modern && !sent_back.contains(name) {
                    sent_back.push(name.clone());
                    return Ok(json!({"resultType": "input_required", "requestState": "later"}));
                }
                json!({"content": [{"type": "text", "text": name}]})
            }
            _ => return Err(-32601),
        };
        if is_modern {
            result["resultType"] = json!("complete");
        }
        Ok(result)
    }
}

async fn answer(State(server): State<Server>, Json(message): Json<Value>) -> Response {
    let method = message["method"].clone();
    server.seen.send_modify(|seen| seen.push(message.clone()));
    let mut held = server.held.subscribe();
    let is_free = held.wait_for(|held| held.is_none_or(|held| method != held));
    if is_free.await.is_err() || message.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let id = &message["id"];
    match server.result(&message) {
        Ok(result) => Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response(),
        Err(code) => {
            let error = json!({"code": code, "message": "Method not found"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
            (StatusCode::NOT_FOUND, Json(body)).into_response()
        }
    }
}

/// Returns when the program has taken every line before: this one is answered in its turn.
async fn is_read(bridge: &mut Bridge) -> Result<()> {
    bridge.write("{").await?;
    let refused = bridge.receive().await?;
    ensure!(refused["error"]["code"] == -32700, "{refused}");
    Ok(())
}

async fn cancel(bridge: &mut Bridge, id: i64) -> Result<()> {
    bridge
        .notify("notifications/cancelled", json!({"requestId": id}))
        .await
}

fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}})
}

/// MCP-X-79, before a session: the session is opened for the call, and the call is cancelled
/// meanwhile.
#[tokio::test]
async fn x_79_a_call_cancelled_before_its_session_is_open_is_not_sent() -> Result<()> {
    let server = Server::start(LEGACY).await?;
    server.held.send_replace(Some("initialize"));
    let home = Home::new()?;
    let mut bridge = home.start(&[&server.url()])?;
    let first = bridge
        .begin(
            "tools/call",
            portolan_tests::connected::modern(call("first")),
        )
        .await?;
    server.has("initialize").await?;
    cancel(&mut bridge, first).await?;
    is_read(&mut bridge).await?;
    server.held.send_replace(None);
    let second = bridge.modern("tools/call", call("second")).await?;
    ensure!(text(&second) == "second", "{second}");
    ensure!(server.called() == [r#""second""#], "{:?}", server.called());
    Ok(())
}

/// MCP-X-77: the call waits for `notifications/initialized` of its client.
#[tokio::test]
async fn x_77_a_call_cancelled_before_it_is_sent_is_not_sent() -> Result<()> {
    let server = Server::start(LEGACY).await?;
    let home = Home::new()?;
    let mut bridge = home.start(&[&server.url()])?;
    let hello = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let opened = bridge.request("initialize", hello).await?;
    ensure!(opened["result"].is_object(), "{opened}");
    let first = bridge.begin("tools/call", call("first")).await?;
    cancel(&mut bridge, first).await?;
    bridge
        .notify("notifications/initialized", json!({}))
        .await?;
    let second = bridge.call("second", json!({})).await?;
    ensure!(text(&second) == "second", "{second}");
    ensure!(server.called() == [r#""second""#], "{:?}", server.called());
    let seen = server.seen.borrow().clone();
    let cancelled = |one: &Value| one["method"] == "notifications/cancelled";
    ensure!(!seen.iter().any(cancelled), "of no request: {seen:?}");
    Ok(())
}

/// MCP-X-77: a client cancels its call and closes the input at once, or sends the signal at once as
/// the official SDKs up to 1.22 do.
#[tokio::test]
async fn x_77_a_call_cancelled_as_the_last_thing_is_cancelled() -> Result<()> {
    for signal in [None, Some("-TERM")] {
        let server = Server::start(LEGACY).await?;
        server.held.send_replace(Some("tools/call"));
        let home = Home::new()?;
        let mut bridge = home.start(&[&server.url()])?;
        bridge.initialize(LEGACY, json!({})).await?;
        let first = bridge.begin("tools/call", call("first")).await?;
        server.has("tools/call").await?;
        cancel(&mut bridge, first).await?;
        if let Some(signal) = signal {
            let process = bridge.process()?.to_string();
            let mut kill = tokio::process::Command::new("kill");
            ensure!(kill.args([signal, &process]).status().await?.success());
        } else {
            ensure!(bridge.close().await?.success());
        }
        server
            .has("notifications/cancelled")
            .await
            .with_context(|| format!("{signal:?}: {}", bridge.notes()))?;
    }
    Ok(())
}

/// MCP-X-21: a call that the server sends back waits before it is sent again.
#[tokio::test]
async fn x_21_a_call_cancelled_in_its_pause_is_not_sent_again() -> Result<()> {
    let server = Server::start(MODERN).await?;
    let home = Home::new()?;
    let mut bridge = home.start(&[&server.url()])?;
    bridge.initialize(LEGACY, json!({})).await?;
    let first = bridge.begin("tools/call", call("first")).await?;
    server.has("tools/call").await?;
    cancel(&mut bridge, first).await?;
    // Its own pause begins later, so that it ends after that of the first.
    let second = bridge.call("second", json!({})).await?;
    ensure!(text(&second) == "second", "{second}");
    let called = server.called();
    let expected = [r#""first""#, r#""second""#, r#""second""#];
    ensure!(called == expected, "{called:?}");
    Ok(())
}
