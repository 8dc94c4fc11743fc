//! Raw MCP servers of one revision each, for the matrix of revisions: each speaks its own revision
//! and nothing else, and offers every feature that the revision has.

mod content;
mod sessions;
mod stand_alone;
mod tasks;
mod tools;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{
    Router,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use self::{sessions::Session, tasks::Tasks};
use crate::{mcp::MODERN, upstream::on_a_thread};

pub use self::content::{CHANGED, COMPLETED, CONTENTS, INSTRUCTIONS, PROMPT, WATCHED};

/// Longest wait for an event at the server.
const SOON: Duration = Duration::from_secs(30);

/// Messages on their way to the client.
type Outbox = mpsc::UnboundedSender<Value>;

/// A running server. It ends with the process.
#[derive(Debug, Clone)]
pub struct RevisionUpstream {
    address: SocketAddr,
    world: Arc<World>,
}

#[derive(Debug)]
struct World {
    revision: &'static str,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    /// Open `subscriptions/listen` streams: id of the request, what it wants, its stream.
    listens: Mutex<Vec<(Value, Value, Outbox)>>,
    tasks: Tasks,
    /// Keys of calls whose person was sent to a page by -32042.
    visited: Mutex<BTreeSet<String>>,
    /// Changes of its list of tools so far.
    changes: AtomicU64,
    next: AtomicU64,
    /// What happened: `waiting KEY`, `cancelled KEY`.
    events: watch::Sender<Vec<String>>,
    /// Keys of calls that may end.
    released: watch::Sender<Vec<String>>,
}

impl RevisionUpstream {
    /// A server of this revision on a free port.
    pub fn start(revision: &'static str) -> Result<Self> {
        let world = Arc::new(World {
            revision,
            sessions: Mutex::default(),
            listens: Mutex::default(),
            tasks: Tasks::default(),
            visited: Mutex::default(),
            changes: AtomicU64::new(0),
            next: AtomicU64::new(1),
            events: watch::Sender::default(),
            released: watch::Sender::default(),
        });
        let router = match revision {
            "2024-11-05" => sessions::two_endpoints(),
            MODERN => stand_alone::endpoint(),
            _ => sessions::endpoint(),
        };
        let router: Router = router.with_state(Arc::clone(&world));
        Ok(Self {
            address: on_a_thread(router)?,
            world,
        })
    }

    /// Its revision.
    #[must_use]
    pub fn revision(&self) -> &'static str {
        self.world.revision
    }

    /// The address that Portolan must be allowed to call.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that a tenant enters.
    #[must_use]
    pub fn url(&self) -> String {
        let path = if self.world.revision == "2024-11-05" {
            "sse"
        } else {
            "mcp"
        };
        format!("http://{}/{path}", self.address)
    }

    /// Waits until this happened at the server.
    pub async fn until(&self, event: &str) -> Result<()> {
        let mut events = self.world.events.subscribe();
        let wait = events.wait_for(|events| events.iter().any(|one| one == event));
        timeout(SOON, wait)
            .await
            .with_context(|| {
                let all = self.world.events.borrow().join(", ");
                format!("{}: no {event:?} in: {all}", self.world.revision)
            })?
            .context("the server is gone")?;
        Ok(())
    }

    /// Has this happened?
    #[must_use]
    pub fn has_seen(&self, event: &str) -> bool {
        self.world.events.borrow().iter().any(|one| one == event)
    }

    /// Lets the call of `wait` with this key end.
    pub fn release(&self, key: &str) {
        self.world.release(key);
    }
}

impl World {
    fn release(&self, key: &str) {
        self.released
            .send_modify(|released| released.push(key.to_owned()));
    }

    /// Has it what came with `revision`?
    fn is_from(&self, revision: &str) -> bool {
        self.revision >= revision
    }

    fn id(&self, word: &str) -> String {
        format!("{word}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn happens(&self, event: String) {
        self.events.send_modify(|events| events.push(event));
    }

    /// A notification to each client that wants it.
    fn announce(&self, method: &str, params: &Value) {
        for session in locked(&self.sessions).values() {
            let wants = params["uri"]
                .as_str()
                .is_none_or(|uri| locked(&session.watched).contains(uri));
            if wants && let Some(out) = &*locked(&session.out) {
                let _ = out.send(notice(method, params.clone()));
            }
        }
        locked(&self.listens).retain(|(id, wanted, out)| {
            let wants = match params["uri"].as_str() {
                Some(uri) => wanted["resourceSubscriptions"]
                    .as_array()
                    .is_some_and(|uris| uris.iter().any(|one| one == uri)),
                None => wanted["toolsListChanged"] == true,
            };
            let mut params = params.clone();
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
            !out.is_closed() && (!wants || out.send(notice(method, params)).is_ok())
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn notice(method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if params.as_object().is_some_and(|params| !params.is_empty()) {
        message["params"] = params;
    }
    message
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn failure(reason: impl Into<String>) -> Value {
    let mut result = text(reason);
    result["isError"] = json!(true);
    result
}

/// The response to a request: a result, or an error of JSON-RPC.
fn response(id: &Value, outcome: Result<Value, Value>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

fn error(code: i64, message: &str, data: Value) -> Value {
    json!({"code": code, "message": message, "data": data})
}

/// Messages as they come, each an event with an id if `stream` has a name.
fn events(messages: mpsc::UnboundedReceiver<Value>, stream: Option<String>) -> Response {
    let numbered = futures_util::stream::unfold((messages, 1_u64), async |(mut messages, at)| {
        let message = messages.recv().await?;
        Some(((at, message), (messages, at + 1)))
    });
    let events = numbered.map(move |(at, message)| {
        let event = match &stream {
            Some(stream) => Event::default().id(format!("{stream}:{at}")),
            None => Event::default(),
        };
        Ok::<_, std::convert::Infallible>(event.data(message.to_string()))
    });
    Sse::new(events).into_response()
}
