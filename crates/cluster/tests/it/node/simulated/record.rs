//! Record of a run: the lines that the checker of the chaos test reads, and additional facts.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Mutex,
};

use tokio::time::Instant;

use crate::history::{Fault, FaultKind, Line, What};

/// Fact beside the lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    /// A call will be sent. Without faults it takes `takes` milliseconds.
    Planned { call: String, takes: u64 },
    /// A node runs the call.
    WorkBegan { call: String },
    /// The node has stopped to run it.
    WorkEnded { call: String, why: Halt },
    /// A client is about to cancel its call.
    Cancelling { call: String },
    /// A cancellation was accepted.
    CancelAccepted { call: String },
    /// A DELETE is about to be sent.
    Deleting { session: String },
    /// A node accepted an answer.
    Answered { question: String, answer: String },
    /// A call received the answer to its question.
    Heard { question: String, answer: String },
    /// A list changed.
    Changed { revision: u64 },
    /// A subscriber's stream is open.
    Subscribed { who: usize },
    /// The subscriber was notified of a revision.
    Told { who: usize, revision: u64 },
    /// Its stream ended or broke.
    Unsubscribed { who: usize },
    /// A fault began. The number identifies it.
    Harm { number: usize },
    /// The fault ended.
    Healed { number: usize },
    /// Number of store operations of a node in its life.
    Operations { count: u64 },
}

/// Reason why a node stopped to run a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Halt {
    /// The call has a result.
    Done,
    /// A question was not answered.
    Unanswered,
    /// The call was cancelled, or its session ended.
    Cancelled,
    /// Another node owns its stream.
    Fenced,
}

/// All lines and facts, in order.
#[derive(Debug)]
pub(super) struct Record {
    start: Instant,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<Line>,
    facts: Vec<(u64, Fact)>,
    /// Number of current faults, and of those that take the store away.
    under_way: (usize, usize),
    harms: usize,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            written: Mutex::default(),
        }
    }

    /// Milliseconds since the start.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).expect("short")
    }

    pub(super) fn line(&self, what: What) {
        let line = Line {
            at: self.now(),
            what,
        };
        self.written.lock().expect("whole").lines.push(line);
    }

    pub(super) fn fact(&self, fact: Fact) {
        let at = self.now();
        self.written.lock().expect("whole").facts.push((at, fact));
    }

    /// Records the begin of a fault. Returns its number, for [`Record::healed`].
    pub(super) fn harm(&self, name: String, kind: FaultKind) -> usize {
        let number = {
            let mut written = self.written.lock().expect("whole");
            written.under_way.0 += 1;
            written.under_way.1 += usize::from(kind == FaultKind::StoreAway);
            written.harms += 1;
            written.harms
        };
        self.fact(Fact::Harm { number });
        self.line(What::Fault(Fault { name, kind }));
        number
    }

    /// Records the end of a fault. Faults excuse calls until the last one ends, because the lines
    /// have no names.
    pub(super) fn healed(&self, number: usize, kind: FaultKind) {
        let (is_quiet, is_back) = {
            let mut written = self.written.lock().expect("whole");
            written.under_way.0 -= 1;
            written.under_way.1 -= usize::from(kind == FaultKind::StoreAway);
            (
                written.under_way.0 == 0,
                kind == FaultKind::StoreAway && written.under_way.1 == 0,
            )
        };
        self.fact(Fact::Healed { number });
        let over = |kind| {
            self.line(What::Fault(Fault {
                name: "over".to_owned(),
                kind,
            }));
        };
        if is_back {
            over(FaultKind::StoreBack);
        }
        if is_quiet {
            over(FaultKind::Over);
        }
    }

    /// Writes a line of a current fault.
    pub(super) fn goes_on(&self, name: &str, kind: FaultKind) {
        self.line(What::Fault(Fault {
            name: name.to_owned(),
            kind,
        }));
    }

    /// Lines and facts until now.
    pub(super) fn take(&self) -> (Vec<Line>, Vec<(u64, Fact)>) {
        let written = std::mem::take(&mut *self.written.lock().expect("whole"));
        (written.lines, written.facts)
    }
}

/// Digest of a record: two runs that differ have different digests.
pub(super) fn digest(lines: &[Line], facts: &[(u64, Fact)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for line in lines {
        format!("{line:?}").hash(&mut hasher);
    }
    facts.hash(&mut hasher);
    hasher.finish()
}
