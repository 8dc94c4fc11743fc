//! The lines of a history: what clients saw, and what the API behind the tools did. Of nobody's protocol, so that a simulation writes them too
//! (`crates/cluster/tests/it`, which takes this file, the checker and [`crate::sse::Position`] as they are).

use serde::{Deserialize, Serialize};

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
        /// For so long it had been asked for, milliseconds: it may have ended at any moment of these.
        took: u64,
    },
    /// The client wants no answer any more, and the service has taken that (202); where there is no session, the client has closed the
    /// connection of the call.
    Cancelled {
        /// The call.
        call: String,
    },
    /// The client is asked something before it gets its answer.
    Asked {
        /// The call that it made.
        call: String,
        /// The call that the question names.
        about: String,
    },
    /// The client is about to send its answer, once more if it has not heard that the first was taken.
    Answers {
        /// The call that it was asked by.
        call: String,
        /// What it says. No other answer of the run is the same.
        answer: String,
    },
    /// The service has taken the answer.
    Taken {
        /// The call that it was asked by.
        call: String,
        /// What the client said.
        answer: String,
    },
    /// Whoever asked has the answer.
    Heard {
        /// The call that it asked for.
        call: String,
        /// What it was told.
        answer: String,
    },
    /// The API behind the tool is asked.
    Reached {
        /// The call.
        call: String,
    },
    /// The API behind the tool answers.
    Served {
        /// The call.
        call: String,
    },
    /// Who asked the API behind the tool has hung up before it answered.
    GivenUp {
        /// The call.
        call: String,
    },
    /// Somebody is about to change a list, once more if nobody has said that it is changed.
    Changing {
        /// The list.
        list: String,
        /// What it will be; each is one more than the one before.
        revision: u64,
    },
    /// The change is committed.
    Changed {
        /// The list.
        list: String,
        /// What it is.
        revision: u64,
    },
    /// Somebody has a stream on which it is told of changes.
    Listens {
        /// Who: one session, or one that listens without one.
        listener: String,
        /// The list.
        list: String,
        /// Is it told of what changed while it had no stream?
        remembered: bool,
    },
    /// It is told that the list is another one.
    Told {
        /// Who.
        listener: String,
        /// The event's id.
        id: Option<String>,
    },
    /// Its stream is over.
    Left {
        /// Who.
        listener: String,
    },
    /// Somebody has read the list.
    Listed {
        /// The list.
        list: String,
        /// What it was.
        revision: u64,
    },
    /// Only so many calls are let in from here on.
    Limited {
        /// First word of their names.
        calls: String,
        /// How many a minute, and how many at once after a quiet minute.
        per_minute: u64,
        /// Nodes that let them in.
        nodes: u64,
        /// How many the clients make at a time.
        at_a_time: u64,
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
    /// A node does not hear what others tell it through the store.
    Doorbells,
    /// The database is away.
    Database,
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
    /// The client wanted no answer any more, and got none.
    Cancelled,
    /// Nothing came in time.
    Hung,
    /// An SDK gave up by its own design: two tries to resume have failed.
    GaveUp(String),
}
