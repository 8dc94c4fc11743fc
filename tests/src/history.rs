//! The observations of clients, and the work of the API behind the tools, in the order in which the
//! harness learned them.

mod line;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use serde_json::Value;

pub use self::line::{Body, Fault, FaultKind, Line, Outcome, What};
use crate::{
    held::{Held, Work, padding},
    sse::Event,
};

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
