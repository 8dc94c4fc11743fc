//! What is written down of a run: the lines that the checker of the chaos test reads, and facts that it does not know.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Mutex,
};

use tokio::time::Instant;

use crate::history::{Fault, FaultKind, Line, What};

/// What happened beside the lines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    /// A call will be sent. Alone and undisturbed it takes so long, milliseconds.
    Planned { call: String, takes: u64 },
    /// A node runs it.
    WorkBegan { call: String },
    /// It does not any more.
    WorkEnded { call: String, why: Halt },
    /// A client says that it does not want its call any more.
    Cancelling { call: String },
    /// A cancellation was answered with success.
    CancelAccepted { call: String },
    /// A DELETE is about to be sent.
    Deleting { session: String },
    /// An answer was accepted, by whatever node.
    Answered { question: String, answer: String },
    /// A call got the answer to its question.
    Heard { question: String, answer: String },
    /// A list changed.
    Changed { revision: u64 },
    /// A subscriber's stream is open.
    Subscribed { who: usize },
    /// It was told of a revision.
    Told { who: usize, revision: u64 },
    /// Its stream is over or broken.
    Unsubscribed { who: usize },
    /// Something is being done to the service, one of two words in the name of the fault.
    Harm { number: usize },
    /// It is over.
    Healed { number: usize },
    /// Operations of the store that a node did in its life.
    Operations { count: u64 },
}

/// Why a node stopped to run a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Halt {
    /// It has a result.
    Done,
    /// A question was not answered.
    Unanswered,
    /// It was cancelled, or its session ended.
    Cancelled,
    /// Its stream is somebody else's.
    Fenced,
}

/// All of it, in the order in which it happened.
#[derive(Debug)]
pub(super) struct Record {
    start: Instant,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<Line>,
    facts: Vec<(u64, Fact)>,
    /// Faults under way, and how many of them take the store away.
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

    /// Something is done to the service. Gives its number, for [`Record::healed`].
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

    /// It is undone. What excuses a fault ends for all of them with the last one: the lines know no names.
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

    /// A line of a fault that is under way.
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

/// A number for all that was written down: two runs that differ in anything have two.
pub(super) fn digest(lines: &[Line], facts: &[(u64, Fact)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for line in lines {
        format!("{line:?}").hash(&mut hasher);
    }
    facts.hash(&mut hasher);
    hasher.finish()
}
