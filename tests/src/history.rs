//! What clients saw and what the API behind the tools did, in the order in which the harness learned it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    held::{Held, Work, padding},
    sse::Event,
};

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since the start, by the harness's own clock.
    pub at: u64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// A client is about to send a call.
    Began {
        /// Its name.
        call: String,
        /// The session it belongs to; none in the stateless era.
        session: Option<String>,
        /// May the service run it a second time, because the tool only reads?
        safe: bool,
        /// Milliseconds within which it must have an outcome.
        deadline: u64,
    },
    /// An event came on the call's stream, over whichever connection.
    Got {
        /// The call whose stream it is.
        call: String,
        /// The event's id.
        id: Option<String>,
        /// What it carried.
        body: Body,
    },
    /// The client asked to go on after the last id, and this is the HTTP status; 0 if there was no answer.
    Resumed {
        /// The call.
        call: String,
        /// The status.
        status: u16,
    },
    /// The call has its outcome.
    Ended {
        /// The call.
        call: String,
        /// What it is.
        outcome: Outcome,
    },
    /// The API behind the tool was asked so often. Written at the end.
    Executed {
        /// The call.
        call: String,
        /// How often.
        times: usize,
        /// Of these, how often the API broke the connection before a byte of the answer, and at once.
        broken: usize,
    },
    /// DELETE of a session was answered with success.
    Deleted {
        /// The session.
        session: String,
    },
    /// Something was done to the service.
    Fault(Fault),
}

/// What was done to the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// For people: `kill mcp-2`.
    pub name: String,
    /// What the checker needs to know of it.
    pub kind: FaultKind,
}

/// What a fault means for the promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// A node is killed, held or drained, or its clock is wrong.
    Node,
    /// The store is away from now on.
    StoreAway,
    /// The store is back, with what it knew.
    StoreBack,
    /// The store forgot everything.
    StoreEmptied,
    /// What the store is told from now on it will forget.
    StoreForgets,
    /// It has forgotten that: another one took over.
    StoreRolledBack,
    /// The store takes nothing that costs memory.
    StoreFull,
    /// Anything else.
    Other,
    /// Whatever was done before is undone.
    Over,
}

/// What an event carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Nothing: the priming event.
    Priming,
    /// A progress notice.
    Progress {
        /// The call that it names.
        of: String,
        /// How far, in thousandths.
        n: u64,
    },
    /// Some events are lost, and the service says so.
    Gap,
    /// The response.
    Response(Outcome),
    /// Something else.
    Other(String),
}

/// How a call ended for its client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// A result of the tool.
    Result {
        /// The call that it names.
        of: String,
        /// Is it complete?
        whole: bool,
        /// Does it say that the call was run again?
        again: bool,
    },
    /// A result that says that the tool failed.
    ToolError(String),
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// What it says about whether the call took effect.
        executed: Option<String>,
    },
    /// An HTTP status that is no success.
    Http(u16),
    /// The connection broke before there was anything to resume.
    Refused(String),
    /// Nothing came in time.
    Hung,
    /// An SDK gave up by its own design: two tries to resume have failed.
    GaveUp(String),
}

impl Outcome {
    /// Out of a JSON-RPC response to a call of `work`.
    pub fn of(message: &Value, work: &Work) -> Self {
        if let Some(error) = message.get("error") {
            return Self::Error {
                code: error["code"].as_i64().unwrap_or(0),
                executed: error["data"]["executed"].as_str().map(str::to_owned),
            };
        }
        let result = &message["result"];
        if result["isError"] == true {
            return Self::ToolError(result["content"][0]["text"].to_string());
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let answer: Value = match result.get("structuredContent") {
            Some(answer) => answer.clone(),
            None => serde_json::from_str(text).unwrap_or(Value::Null),
        };
        Self::Result {
            of: answer["call"].as_str().unwrap_or_default().to_owned(),
            whole: answer["padding"] == padding(work).as_str(),
            again: is_again(result),
        }
    }
}

impl Body {
    /// Out of an event on the stream of a call of `work`.
    pub fn of(event: &Event, work: &Work) -> Self {
        if event.data.is_empty() {
            return Self::Priming;
        }
        Self::of_message(&event.message(), work)
    }

    /// Out of a message on the stream of a call of `work`.
    pub fn of_message(message: &Value, work: &Work) -> Self {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/progress") => Self::Progress {
                of: params["progressToken"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                n: thousandths(&params["progress"]),
            },
            Some("notifications/message") if params["data"]["kind"] == "gap" => Self::Gap,
            Some(_) => Self::Other(message.to_string()),
            None => Self::Response(Outcome::of(message, work)),
        }
    }
}

fn is_again(result: &Value) -> bool {
    result["_meta"]
        .as_object()
        .is_some_and(|meta| meta.keys().any(|key| key.contains("reexecuted")))
}

fn thousandths(number: &Value) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "progress is a small number"
    )]
    let whole = (number.as_f64().unwrap_or(0.0) * 1000.0) as u64;
    whole
}

/// A history that many tasks write.
#[derive(Debug, Clone)]
pub struct History {
    start: Instant,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            lines: Arc::default(),
        }
    }
}

impl History {
    /// Adds a line, now.
    pub fn add(&self, what: What) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: lines are in the order of their times.
        let at = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        lines.push(Line { at, what });
    }

    /// Adds a fault, now.
    pub fn fault(&self, name: impl Into<String>, kind: FaultKind) {
        self.add(What::Fault(Fault {
            name: name.into(),
            kind,
        }));
    }

    /// Adds what the API behind the tools was asked for.
    pub fn executed(&self, held: &Held) {
        for (call, fate) in held.fates() {
            self.add(What::Executed {
                call,
                times: fate.arrived,
                broken: fate.broken,
            });
        }
    }

    /// Everything so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
