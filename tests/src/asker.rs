//! An MCP server that asks its client before it answers, and records the answers that it receives:
//! the ground truth about answers (TEST-C7). It speaks 2025-11-25 without sessions, so that it has
//! no session to lose.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    held::{Held, Visit},
    history::What,
    mcp::LEGACY,
};

/// Where it is, beside the API.
pub const PATH: &str = "/asker";
/// Its tool.
pub const TOOL: &str = "ask_first";
/// The field of its form.
pub const FIELD: &str = "answer";

/// Questions that were asked, by their ids.
#[derive(Debug, Clone)]
struct Asker {
    held: Held,
    asked: Arc<Mutex<BTreeMap<String, Asked>>>,
    next: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Asked {
    call: String,
    /// Until the first answer.
    waits: Option<oneshot::Sender<Value>>,
}

/// A call on its way.
enum Step {
    Ask {
        id: String,
        call: String,
    },
    Answer {
        call: String,
        told: oneshot::Receiver<Value>,
    },
    Done,
}

/// Its one endpoint.
pub(crate) fn router(held: &Held) -> Router {
    let asker = Asker {
        held: held.clone(),
        asked: Arc::default(),
        next: Arc::new(AtomicU64::new(1)),
    };
    // GET and DELETE are 405: it has no sessions.
    Router::new().route(PATH, post(message)).with_state(asker)
}

impl Asker {
    fn asked(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer: written down, whether it was waited for or not.
    fn hear(&self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default();
        let (call, waits) = match self.asked().get_mut(id) {
            Some(asked) => (asked.call.clone(), asked.waits.take()),
            None => (format!("of nobody: {id}"), None),
        };
        // A question without an answer is refused in the client's name.
        if let Some(answer) = message["result"]["content"][FIELD].as_str() {
            self.held.note(What::Heard {
                call,
                answer: answer.to_owned(),
            });
        }
        if let Some(waits) = waits {
            let _ = waits.send(message.clone());
        }
    }

    /// Asks, waits, and answers.
    fn call(&self, id: Value, arguments: &Value) -> Response {
        let call = arguments["call"].as_str().unwrap_or_default().to_owned();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let first = Step::Ask {
            id: format!("asked-{number}"),
            call: call.clone(),
        };
        let (visit, _) = self.held.arrive(&call);
        let state = (self.clone(), id, Some(visit), first);
        let events = stream::unfold(state, async |(asker, id, visit, step)| {
            let (said, visit, next) = asker.step(&id, visit, step).await?;
            let event = Event::default().data(said.to_string());
            Some((Ok::<_, Infallible>(event), (asker, id, visit, next)))
        });
        Sse::new(events).into_response()
    }

    async fn step(
        &self,
        id: &Value,
        visit: Option<Visit>,
        step: Step,
    ) -> Option<(Value, Option<Visit>, Step)> {
        match step {
            Step::Ask { id: question, call } => {
                let (waits, told) = oneshot::channel();
                let asked = Asked {
                    call: call.clone(),
                    waits: Some(waits),
                };
                self.asked().insert(question.clone(), asked);
                let schema = json!({"type": "object", "properties": {FIELD: {"type": "string"}}, "required": [FIELD]});
                let said = json!({"jsonrpc": "2.0", "id": question, "method": "elicitation/create",
                    "params": {"mode": "form", "message": call, "requestedSchema": schema}});
                Some((said, visit, Step::Answer { call, told }))
            }
            Step::Answer { call, told } => {
                let told = told.await.ok()?;
                let answer = &told["result"]["content"][FIELD];
                let is_told = answer.is_string();
                let text = json!({"call": call, "padding": "", "told": answer}).to_string();
                let result =
                    json!({"content": [{"type": "text", "text": text}], "isError": !is_told});
                if let Some(visit) = visit {
                    visit.answer();
                }
                let said = json!({"jsonrpc": "2.0", "id": id, "result": result});
                Some((said, None, Step::Done))
            }
            Step::Done => None,
        }
    }
}

async fn message(State(asker): State<Asker>, Json(message): Json<Value>) -> Response {
    let id = message["id"].clone();
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
    match message["method"].as_str() {
        Some("initialize") => answer(json!({"protocolVersion": LEGACY,
            "capabilities": {"tools": {}}, "serverInfo": {"name": "asker", "version": "1"}})),
        Some("tools/list") => {
            let call = json!({"type": "string", "description": "Name of the call"});
            let schema =
                json!({"type": "object", "properties": {"call": call}, "required": ["call"]});
            answer(
                json!({"tools": [{"name": TOOL, "description": "Asks and repeats what it is told", "inputSchema": schema}]}),
            )
        }
        Some("tools/call") => asker.call(id, &message["params"]["arguments"]),
        Some("ping") => answer(json!({})),
        Some(_) if id.is_null() => StatusCode::ACCEPTED.into_response(),
        // A server without `server/discover` is of the session era (MCP-X-3).
        Some(_) => StatusCode::BAD_REQUEST.into_response(),
        None => {
            asker.hear(&message);
            StatusCode::ACCEPTED.into_response()
        }
    }
}
