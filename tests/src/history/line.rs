//! The lines of a history: what clients saw, and what the API behind the tools did. They belong to
//! no protocol, so that a simulation writes them too (`crates/cluster/tests/it`, which takes this
//! file, the checker and [`crate::sse::Position`] as they are).

use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since the start, by the harness's own clock.
    pub at: u64,
    /// The event.
    pub what: What,
}

/// The event.
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
        /// Its content.
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
        /// The value.
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
    /// The client has cancelled the call, and the service has accepted that (202). Without a
    /// session, the client has closed the connection of the call.
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
    /// The client is about to send its answer, once more if the first was not confirmed.
    Answers {
        /// The call that it was asked by.
        call: String,
        /// Its text. No other answer of the run is the same.
        answer: String,
    },
    /// The service has accepted the answer.
    Taken {
        /// The call that it was asked by.
        call: String,
        /// The client's text.
        answer: String,
    },
    /// The server that asked has received the answer.
    Heard {
        /// The call that it asked about.
        call: String,
        /// The text that it received.
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
    /// The caller of the API behind the tool has closed the connection before the answer.
    GivenUp {
        /// The call.
        call: String,
    },
    /// A test is about to change a list, once more if the first change was not confirmed.
    Changing {
        /// The list.
        list: String,
        /// The new revision, one more than the one before.
        revision: u64,
    },
    /// The change is committed.
    Changed {
        /// The list.
        list: String,
        /// The value.
        revision: u64,
    },
    /// A listener has a stream on which it is notified of changes.
    Listens {
        /// The listener: one session, or one client without a session.
        listener: String,
        /// The list.
        list: String,
        /// Is it notified of changes from the time without a stream?
        remembered: bool,
    },
    /// It is notified that the list changed.
    Told {
        /// The listener.
        listener: String,
        /// The event's id.
        id: Option<String>,
    },
    /// Its stream is over.
    Left {
        /// The listener.
        listener: String,
    },
    /// A client has read the list.
    Listed {
        /// The list.
        list: String,
        /// The revision that it read.
        revision: u64,
    },
    /// From here on only so many calls are admitted.
    Limited {
        /// First word of their names.
        calls: String,
        /// How many a minute, and how many at once after a quiet minute.
        per_minute: u64,
        /// Nodes that admit them.
        nodes: u64,
        /// How many the clients make at a time.
        at_a_time: u64,
    },
    /// A fault was caused to the service.
    Fault(Fault),
}

/// A fault that was caused to the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// For people: `kill mcp-2`.
    pub name: String,
    /// Its effect on the promises.
    pub kind: FaultKind,
}

/// The effect of a fault on the promises.
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
    /// The store will forget the writes from now on.
    StoreForgets,
    /// It has forgotten them: another store took over.
    StoreRolledBack,
    /// The store accepts nothing that needs memory.
    StoreFull,
    /// A node does not receive the messages of others through the store.
    Doorbells,
    /// The database is away.
    Database,
    /// Anything else.
    Other,
    /// All faults before are undone.
    Over,
}

/// The content of an event.
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
    /// Some events are lost, and the service reports that.
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
        /// Its statement about whether the call took effect.
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
