//! Servers with sessions: the two endpoints of 2024-11-05, and Streamable HTTP up to 2025-11-25.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{
    Outbox, World, content, error, events, locked, notice, response, tasks, text,
    tools::{self, Call},
};

const ID: &str = "mcp-session-id";
const ASK_ON: &str = "ask_on";

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    can: Mutex<Value>,
    /// The stream of the session.
    pub(super) out: Mutex<Option<Outbox>>,
    waiting: Mutex<BTreeMap<String, oneshot::Sender<Value>>>,
    pub(super) watched: Mutex<BTreeSet<String>>,
    running: Mutex<BTreeMap<String, oneshot::Sender<()>>>,
    /// The last response of the client to a question of `ask_on`: it is confirmed when this is
    /// dropped, which is after the next question and its response.
    unconfirmed: Mutex<Option<oneshot::Sender<()>>>,
    /// Responses of calls whose stream the server ended early.
    kept: Mutex<BTreeMap<String, Value>>,
}

/// Questions of a call of `ask_on`.
const ASKED: u32 = 30;

impl Session {
    /// When a response to a question of `ask_on` is confirmed; `None` for other messages.
    fn confirms_late(&self, message: &Value) -> Option<oneshot::Receiver<()>> {
        let id = message["id"].as_str().filter(|id| id.starts_with(ASK_ON))?;
        if message.get("method").is_some() || !locked(&self.waiting).contains_key(id) {
            return None;
        }
        let (last, confirmed) = oneshot::channel();
        *locked(&self.unconfirmed) = Some(last);
        Some(confirmed)
    }

    /// Asks the client, and waits for its response.
    async fn ask(&self, call: &Call, id: String, (method, params): (&str, &Value)) -> Value {
        let (sender, answer) = oneshot::channel();
        locked(&self.waiting).insert(id.clone(), sender);
        let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let _ = call.out.send(question);
        answer.await.unwrap_or_default()
    }
}

/// Streamable HTTP.
pub(super) fn endpoint() -> Router<Arc<World>> {
    Router::new().route("/mcp", post(message).get(listen).delete(end))
}

/// HTTP+SSE.
pub(super) fn two_endpoints() -> Router<Arc<World>> {
    Router::new()
        .route("/sse", get(open))
        .route("/messages", post(posted))
}

async fn open(State(world): State<Arc<World>>) -> Response {
    let id = world.id("session");
    let (out, messages) = mpsc::unbounded_channel();
    let session = Session::default();
    *locked(&session.out) = Some(out);
    locked(&world.sessions).insert(id.clone(), Arc::new(session));
    let first = Event::default()
        .event("endpoint")
        .data(format!("/messages?session={id}"));
    let first = futures_util::stream::iter([first]);
    let rest = futures_util::stream::unfold(messages, async |mut messages| {
        let message: Value = messages.recv().await?;
        let event = Event::default().event("message").data(message.to_string());
        Some((event, messages))
    });
    Sse::new(first.chain(rest).map(Ok::<_, std::convert::Infallible>)).into_response()
}

async fn posted(
    State(world): State<Arc<World>>,
    Query(query): Query<BTreeMap<String, String>>,
    Json(message): Json<Value>,
) -> Response {
    let id = query.get("session").map(String::as_str).unwrap_or_default();
    let Some(session) = locked(&world.sessions).get(id).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if message["method"] == "tools/call" && message["params"]["name"] == "hang_up" {
        // The end of the one stream is the end of the session.
        *locked(&session.out) = None;
        locked(&world.sessions).remove(id);
        return StatusCode::ACCEPTED.into_response();
    }
    let out = locked(&session.out).clone();
    if let Some(out) = out {
        begin(&world, &session, message, out);
    }
    StatusCode::ACCEPTED.into_response()
}

async fn message(
    State(world): State<Arc<World>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let (out, mut messages) = mpsc::unbounded_channel();
    let known = headers.get(ID).and_then(|id| id.to_str().ok());
    let (session, opened) = if message["method"] == "initialize" {
        let id = world.id("session");
        let session = Arc::<Session>::default();
        locked(&world.sessions).insert(id.clone(), Arc::clone(&session));
        (session, Some(id))
    } else {
        let Some(id) = known else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        let Some(session) = locked(&world.sessions).get(id).cloned() else {
            return StatusCode::NOT_FOUND.into_response();
        };
        (session, None)
    };
    if message.get("id").is_none() || message.get("method").is_none() {
        let confirmed = session.confirms_late(&message);
        begin(&world, &session, message, out);
        if let Some(confirmed) = confirmed {
            let _ = confirmed.await;
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let is_call = message["method"] == "tools/call";
    if is_call && message["params"]["name"] == "hang_up" {
        let stream = world.id("stream");
        let last = response(&message["id"], Ok(text("You came back.")));
        locked(&session.kept).insert(stream.clone(), last);
        let only = Event::default()
            .id(format!("{stream}:0"))
            .retry(std::time::Duration::from_millis(20))
            .data("");
        let only = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(only)]);
        return Sse::new(only).into_response();
    }
    let is_silent = is_call && message["params"]["name"] == "wait_silently";
    begin(&world, &session, message, out);
    if is_call && !is_silent {
        return events(messages, Some(world.id("stream")));
    }
    let answer = messages.recv().await.unwrap_or_default();
    match opened {
        Some(id) => ([(ID, id)], Json(answer)).into_response(),
        None => Json(answer).into_response(),
    }
}

async fn listen(State(world): State<Arc<World>>, headers: HeaderMap) -> Response {
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let id = of(ID).unwrap_or_default();
    let Some(session) = locked(&world.sessions).get(id).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (out, messages) = mpsc::unbounded_channel();
    if let Some(last) = of("last-event-id") {
        let stream = last.split(':').next().unwrap_or_default();
        if let Some(kept) = locked(&session.kept).remove(stream) {
            let _ = out.send(kept);
            return events(messages, None);
        }
    }
    *locked(&session.out) = Some(out);
    events(messages, Some(world.id("stream")))
}

async fn end(State(world): State<Arc<World>>, headers: HeaderMap) -> Response {
    let id = headers.get(ID).and_then(|id| id.to_str().ok());
    let ended = id.and_then(|id| locked(&world.sessions).remove(id));
    if ended.is_some() {
        StatusCode::OK.into_response()
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// Takes any message. Its answer goes to `out`.
#[expect(
    clippy::disallowed_methods,
    reason = "it ends with the server's thread"
)]
fn begin(world: &Arc<World>, session: &Arc<Session>, message: Value, out: Outbox) {
    let (world, session) = (Arc::clone(world), Arc::clone(session));
    tokio::spawn(async move { take(&world, &session, message, out).await });
}

async fn take(world: &Arc<World>, session: &Arc<Session>, message: Value, out: Outbox) {
    let (id, params) = (&message["id"], &message["params"]);
    let Some(method) = message["method"].as_str() else {
        let waiting = locked(&session.waiting).remove(id.as_str().unwrap_or_default());
        if let Some(waiting) = waiting {
            let _ = waiting.send(message);
        }
        return;
    };
    if method == "notifications/cancelled" {
        *locked(&session.unconfirmed) = None;
        let running = locked(&session.running).remove(&params["requestId"].to_string());
        if let Some(running) = running {
            let _ = running.send(());
        }
    }
    if id.is_null() {
        return;
    }
    let outcome = match method {
        "initialize" => {
            *locked(&session.can) = params["capabilities"].clone();
            Ok(
                json!({"protocolVersion": world.revision, "serverInfo": content::info(),
                "capabilities": content::capabilities(world),
                "instructions": content::INSTRUCTIONS}),
            )
        }
        "logging/setLevel" => Ok(json!({})),
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = params["uri"].as_str().unwrap_or_default().to_owned();
            let mut watched = locked(&session.watched);
            if method == "resources/subscribe" {
                watched.insert(uri);
            } else {
                watched.remove(&uri);
            }
            Ok(json!({}))
        }
        "tools/call" => {
            let (stop, stopped) = oneshot::channel();
            locked(&session.running).insert(id.to_string(), stop);
            let call = Call {
                world: Arc::clone(world),
                params: params.clone(),
                out: out.clone(),
                wants_logs: true,
            };
            tokio::select! {
                outcome = called(&call, session) => outcome,
                Ok(()) = stopped => return call.cancelled(),
            }
        }
        _ => content::answer(world, method, params)
            .or_else(|| tasks::answer(world, method, params))
            .unwrap_or_else(|| Err(error(-32601, "Method not found", Value::Null))),
    };
    locked(&session.running).remove(&id.to_string());
    let _ = out.send(response(id, outcome));
}

async fn called(call: &Call, session: &Session) -> Result<Value, Value> {
    let (world, tool) = (&call.world, call.tool());
    if tool == "task" {
        return if call.params.get("task").is_some() {
            Ok(tasks::create(world))
        } else {
            Err(error(-32601, "task must be called as a task", Value::Null))
        };
    }
    if tool == "fee" {
        let key = call.params["arguments"]["key"].as_str().unwrap_or_default();
        if !locked(&world.visited).insert(key.to_owned()) {
            return Ok(text("The fee is paid."));
        }
        let page = json!({"mode": "url", "message": "Pay the fee.",
            "url": "https://example.com/fee", "elicitationId": world.id("elicitation")});
        let data = json!({ "elicitations": [page] });
        return Err(error(-32042, "A step in the browser is needed.", data));
    }
    if tool == ASK_ON {
        if let Some((method, params)) = content::question(world, "sample") {
            for _ in 0..ASKED {
                let id = world.id(ASK_ON);
                session.ask(call, id, (method, &params)).await;
            }
        }
        *locked(&session.unconfirmed) = None;
        return Ok(text("Asked enough."));
    }
    let Some((method, params)) = content::question(world, tool) else {
        return Ok(call.run().await);
    };
    if !content::can(&locked(&session.can), &content::needed(world, tool)) {
        if tool == "link" {
            let data = json!({ "elicitations": [params] });
            return Err(error(-32042, "A step in the browser is needed.", data));
        }
        return Ok(tools::cannot_ask(tool));
    }
    let id = world.id("question");
    let answer = session.ask(call, id, (method, &params)).await;
    if tool == "link" {
        let id = json!({"elicitationId": params["elicitationId"]});
        let _ = call
            .out
            .send(notice("notifications/elicitation/complete", id));
    }
    Ok(match answer.get("result") {
        Some(result) => tools::answered(result),
        None => tools::cannot_ask(tool),
    })
}
