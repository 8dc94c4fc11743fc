//! A session of MCP with one process of the command.
//!
//! Messages pass unchanged: a node chooses ids that are unique among all its requests. Here it is
//! only decided which stream a message of the command belongs to.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    command::{self, Process},
    events::{Class, Events},
};

/// How long a finished stream can be resumed.
const KEEP_FINISHED: Duration = Duration::from_secs(120);
/// JSON-RPC error of a request whose process ended (STREAM Appendix B: call interrupted).
const INTERRUPTED: i32 = -32010;

/// The parts of a message that decide its way.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// The parameters that decide the way of a notification.
#[derive(Debug, Default, Deserialize)]
struct Marks<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    fn marks(&self) -> Marks<'_> {
        self.params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default()
    }
}

/// A request that runs.
#[derive(Debug)]
struct Open {
    id: String,
    /// JSON text of its progress token.
    token: Option<String>,
    events: Arc<Events>,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    open: Vec<Open>,
    streams: HashMap<String, Arc<Events>>,
    used: Option<Instant>,
    /// The process has ended, or is about to.
    is_over: bool,
    /// It ended without having been asked to.
    failure: Option<String>,
}

/// Why a request was not written to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// Another request with this id runs.
    Repeated,
    /// The process has ended.
    Over,
}

/// Whether the stream of a request begins with a priming event (MCP-T-24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priming {
    /// It does.
    Sent,
    /// The revision has none, or the stream is not resumed.
    Absent,
}

/// One session.
pub(crate) struct Session {
    /// Its id, with the id of this program before it.
    pub(crate) id: String,
    pub(crate) pid: u32,
    pub(crate) started: Instant,
    input: Mutex<Option<mpsc::Sender<Bytes>>>,
    state: Mutex<State>,
    /// Messages that the command sends outside requests.
    pub(crate) beside: Arc<Events>,
    count: AtomicU64,
    ended: watch::Sender<bool>,
    stop: watch::Sender<bool>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Takes a process over. `ended` is called with the last words of the process, and whether it
    /// ended by itself.
    pub(crate) fn begin(
        id: String,
        process: Process,
        ended: impl FnOnce(&Arc<Self>, Option<String>) + Send + 'static,
    ) -> Arc<Self> {
        let Process {
            pid,
            started,
            input,
            mut output,
            mut child,
        } = process;
        let this = Arc::new(Self {
            id,
            pid,
            started,
            input: Mutex::new(Some(input)),
            state: Mutex::default(),
            beside: Events::new("g".to_owned()),
            count: AtomicU64::new(0),
            ended: watch::Sender::new(false),
            stop: watch::Sender::new(false),
        });
        this.touch();
        let session = Arc::clone(&this);
        #[expect(clippy::disallowed_methods, reason = "it ends with the session")]
        tokio::spawn(async move {
            let mut stop = session.stop.subscribe();
            let was_asked = loop {
                tokio::select! {
                    line = output.next() => match line {
                        Some(line) => session.hear(&line),
                        None => break false,
                    },
                    _ = stop.wait_for(|stop| *stop) => break true,
                }
            };
            session.close_input();
            let words = command::end(&mut child, pid).await;
            let failure = (!was_asked).then_some(words);
            session.finish(failure.as_deref());
            ended(&session, failure);
            session.ended.send_replace(true);
        });
        this
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_input(&self) {
        self.state().is_over = true;
        if let Ok(mut input) = self.input.lock() {
            *input = None;
        }
    }

    pub(crate) fn touch(&self) {
        self.state().used = Some(Instant::now());
    }

    /// Time of the last message of the node, while nothing runs; `None` while something does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.used.filter(|_| state.open.is_empty())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Why the process ended by itself.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Ends the process, and waits for it.
    pub(crate) async fn end(&self) {
        self.stop.send_replace(true);
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Begins to end the process.
    pub(crate) fn dismiss(&self) {
        self.stop.send_replace(true);
    }

    /// Writes a line to the command.
    async fn write(&self, line: Bytes) -> Result<(), NotSent> {
        let input = self.input.lock().ok().and_then(|input| input.clone());
        let input = input.ok_or(NotSent::Over)?;
        input.send(line).await.map_err(|_| NotSent::Over)
    }

    /// Writes a notification or an answer.
    pub(crate) async fn send(&self, line: Bytes) -> Result<(), NotSent> {
        self.touch();
        self.write(line).await
    }

    /// Writes a request. Its answer, and what belongs to it, come on the stream.
    pub(crate) async fn request(
        &self,
        message: &Envelope<'_>,
        id: &str,
        line: Bytes,
        priming: Priming,
    ) -> Result<Arc<Events>, NotSent> {
        self.touch();
        let marks = message.marks();
        let token = marks.meta.and_then(|meta| meta.progress_token);
        let name = format!("p{}", self.count.fetch_add(1, Ordering::Relaxed));
        let events = Events::new(name.clone());
        if priming == Priming::Sent {
            events.prime();
        }
        {
            let mut state = self.state();
            if state.is_over {
                return Err(NotSent::Over);
            }
            if state.open.iter().any(|open| open.id == id) {
                return Err(NotSent::Repeated);
            }
            state.streams.retain(|_, events| {
                events
                    .over_since()
                    .is_none_or(|since| since.elapsed() < KEEP_FINISHED)
            });
            state.streams.insert(name, Arc::clone(&events));
            state.open.push(Open {
                id: id.to_owned(),
                token: token.map(|token| token.get().to_owned()),
                events: Arc::clone(&events),
            });
        }
        if let Err(error) = self.write(line).await {
            let mut state = self.state();
            state
                .open
                .retain(|open| !Arc::ptr_eq(&open.events, &events));
            return Err(error);
        }
        Ok(events)
    }

    /// The node has closed the stream of a request: the request is cancelled.
    pub(crate) fn forget(&self, id: &str) {
        let mut state = self.state();
        let before = state.open.len();
        state.open.retain(|open| open.id != id);
        if state.open.len() == before {
            return;
        }
        drop(state);
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        let input = self.input.lock().ok().and_then(|input| input.clone());
        if let Some(input) = input {
            // A command that reads nothing any more is not notified.
            let _ = input.try_send(line.into());
        }
    }

    /// Finds the stream of an event id, and the number of the event.
    pub(crate) fn stream(&self, event: &str) -> Option<(Arc<Events>, u64)> {
        let (name, seq) = event.split_once('.')?;
        let seq = seq.parse().ok()?;
        if name == "g" {
            return Some((Arc::clone(&self.beside), seq));
        }
        let events = self.state().streams.get(name).map(Arc::clone)?;
        Some((events, seq))
    }

    /// Reads a line of the command.
    fn hear(&self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        // A batch of 2025-03-26.
        if line.first() == Some(&b'[')
            && let Ok(all) = serde_json::from_slice::<Vec<&RawValue>>(line)
        {
            for one in all {
                self.sort(one.get().as_bytes());
            }
            return;
        }
        self.sort(line);
    }

    fn sort(&self, text: &[u8]) {
        let Some(message) = Envelope::read(text) else {
            let shown: String = String::from_utf8_lossy(text).chars().take(200).collect();
            tracing::warn!(
                pid = self.pid,
                "not a message of MCP on the standard output: {shown}"
            );
            return;
        };
        let mut state = self.state();
        match (&message.method, message.id) {
            (None, Some(id)) => {
                let at = state.open.iter().position(|open| open.id == id.get());
                let Some(open) = at.map(|at| state.open.remove(at)) else {
                    tracing::debug!(pid = self.pid, "an answer to no request");
                    return;
                };
                state.used = Some(Instant::now());
                open.events.push(Class::Kept, text);
                open.events.finish();
            }
            (Some(_), Some(_)) => {
                let events = state.open.last().map_or(&self.beside, |open| &open.events);
                events.push(Class::Kept, text);
            }
            (Some(method), None) => {
                let marks = message.marks();
                let subscription = marks.meta.as_ref().and_then(|meta| meta.subscription);
                let of_token = marks.progress_token.and_then(|token| {
                    let mut open = state.open.iter();
                    open.find(|open| open.token.as_deref() == Some(token.get()))
                });
                let of_listen = subscription.and_then(|id| {
                    let mut open = state.open.iter();
                    open.find(|open| open.id == id.get())
                });
                let is_of_a_call = matches!(
                    method.as_str(),
                    "notifications/message" | "notifications/cancelled"
                );
                let newest = state.open.last().filter(|_| is_of_a_call);
                let open = of_token.or(of_listen).or(newest);
                if open.is_none() && method == "notifications/progress" {
                    // Its request is over.
                    return;
                }
                let events = open.map_or(&self.beside, |open| &open.events);
                events.push(Class::Notice, text);
            }
            (None, None) => {
                // A refusal without an id, such as of a message that could not be parsed.
                tracing::warn!(pid = self.pid, "a message without method and id");
            }
        }
    }

    /// The process is gone: each open request gets an error that says so.
    fn finish(&self, failure: Option<&str>) {
        let open = {
            let mut state = self.state();
            state.is_over = true;
            state.failure = failure.map(str::to_owned);
            std::mem::take(&mut state.open)
        };
        for open in open {
            open.events
                .push(Class::Kept, &interrupted(&open.id, failure));
            open.events.finish();
        }
        self.beside.finish();
    }
}

/// JSON-RPC error for a request that ran when its process ended.
fn interrupted(id: &str, failure: Option<&str>) -> Vec<u8> {
    let how = match failure {
        Some(words) => format!("The command of the attached server ended ({words})"),
        None => "The command of the attached server was stopped".to_owned(),
    };
    let error = serde_json::json!({
        "code": INTERRUPTED,
        "message": format!(
            "{how} while this request ran. The request may or may not have taken effect."
        ),
        "data": { "reason": "command_ended", "executed": "unknown" },
    });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}
