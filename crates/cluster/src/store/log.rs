//! Logs of streams: events, their writers and readers (STREAM-7, STREAM-8, STREAM-11).

use std::time::Duration;

use bytes::Bytes;

use super::{Cursor, Epoch, NodeId, StreamKey};

/// Kind of an event, which decides whether the log may drop it (STREAM-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A notification; may be dropped when the log is full.
    Notification,
    /// A question to the client; never dropped.
    Question,
    /// A response of a batch that is not the last one; never dropped.
    Answer,
    /// The final response; never dropped.
    Final,
}

/// Event to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Kind of the event.
    pub class: Class,
    /// JSON-RPC id of a question, under which its answer is stored.
    pub question: Option<String>,
    /// Bytes that the client receives.
    pub payload: Bytes,
}

/// Event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the event. Numbers are dense from 1, except where notifications were dropped.
    pub seq: u64,
    /// Kind of the event.
    pub class: Class,
    /// Bytes that the client receives.
    pub payload: Bytes,
}

/// State of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamState {
    /// Events may still be appended.
    Open,
    /// The log contains the final response.
    Closed,
    /// The stream was cancelled and has no response.
    Cancelled,
}

/// Parameters of a new stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Time to the call's deadline. Any node may end the stream 30 s after it (STREAM-11
    /// *Liveness*).
    pub deadline_in: Duration,
    /// Number before the first event. It is above 0 only for a lost stream that its owner makes
    /// again from its `UnackedBuffer` (STREAM-7).
    pub start: u64,
    /// Facts about the request for a new owner, written by `mcp`: its JSON-RPC id, and whether a
    /// repetition is harmless.
    pub about: Bytes,
}

/// Parameters of `append`: one atomic write by the owner of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Id of the writer.
    pub owner: NodeId,
    /// The writer's epoch. It also fences a node that took the stream over twice.
    pub epoch: Epoch,
    /// Number of the last event in the log, as far as the writer knows.
    pub expect: u64,
    /// Creates the stream if it does not exist.
    pub create: Option<Create>,
    /// Events in order; may be empty.
    pub events: Vec<NewEvent>,
    /// Ends the stream. The same step removes the request (`rpc`) from the running ones.
    pub close: Option<StreamState>,
    /// Key of the request among the running ones.
    pub rpc: String,
}

/// Reply of `append`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The events were written.
    Done {
        /// Number of the last event.
        tail: u64,
        /// The node that holds the client's connection.
        attached: Option<NodeId>,
        /// Number of the client's current connection.
        generation: u64,
        /// The events that may not be dropped exceed the bounds alone (STREAM-7). The writer has to
        /// end the stream.
        overflow: bool,
    },
    /// Another node or another epoch owns the stream. The caller stops and sends nothing.
    Fenced,
    /// The number of the last event in the log differs from `expect`.
    Tail {
        /// Number of the last event in the log.
        tail: u64,
        /// State of the stream.
        state: StreamState,
    },
    /// The stream has ended.
    Closed {
        /// State in which the stream ended.
        state: StreamState,
        /// Number of its last event.
        tail: u64,
    },
    /// The stream does not exist, and `create` was not given.
    Gone,
}

/// State of a log, the epochs of its writers, and a page of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Owner of the stream; `None` if its owner gave it up.
    pub owner: Option<NodeId>,
    /// State of the stream.
    pub state: StreamState,
    /// Number of the last event.
    pub tail: u64,
    /// The log is incomplete up to this number, inclusive.
    pub dropped: u64,
    /// Number of the client's connection that holds the stream.
    pub generation: u64,
    /// The current epoch.
    pub epoch: Epoch,
    /// The epochs above 1 in order. Each has the number after which it began, and its nonce. Some
    /// epochs may be missing.
    pub epochs: Vec<(u64, Epoch)>,
    /// Time to the deadline; zero after it.
    pub deadline_in: Duration,
    /// Retained events after the caller's cursor, in order, up to the size of one page.
    pub events: Vec<Event>,
    /// The log has more events than this page.
    pub more: bool,
}

/// Reply of `attach`, which gives a stream to a client's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// The session has ended, or belongs to another principal.
    Unknown,
    /// The session lives, but the stream does not exist.
    Gone,
    /// The stream is attached.
    Stream {
        /// The stream at this moment.
        view: View,
        /// Position after which `events` were read: the caller's cursor, or the branching point to
        /// which it was moved.
        position: u64,
        /// The cursor is on a branch that the store lost. The client must receive a gap notice
        /// (STREAM-8.3).
        split: bool,
        /// [`Create::about`], as the creator wrote it.
        about: Bytes,
    },
}

/// Request for one stream of a `read`.
#[derive(Debug, Clone)]
pub struct ReadWanted {
    /// The stream.
    pub stream: StreamKey,
    /// Generation of the caller's connection. An older generation receives no events.
    pub generation: u64,
    /// Number of the last event that the caller has.
    pub position: u64,
    /// Owner and epoch, as the caller saw them last. The reply is short if they are unchanged.
    pub seen: (Option<NodeId>, Epoch),
}

/// Reply for one stream of a `read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The stream does not exist.
    Gone,
    /// The stream is open, and nothing changed.
    Unchanged,
    /// The stream, and the node to which it is attached.
    View(View, Option<NodeId>),
}

/// Parameters of `take_over`: compare and swap of a stream's owner.
#[derive(Debug, Clone)]
pub struct TakeOver {
    /// The stream.
    pub stream: StreamKey,
    /// Current owner, which is thought to be dead. A node names itself to give the stream up.
    pub from: Option<NodeId>,
    /// The new owner; `None` gives the stream up.
    pub to: Option<NodeId>,
    /// Highest cursor that a client showed.
    pub shown: Cursor,
    /// Random nonce of the new epoch.
    pub nonce: u16,
}

/// Reply of `take_over`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenOver {
    /// The caller's change was applied: the stream has the new owner.
    Done {
        /// Number of the last event, or of the last event that a client showed if that is higher.
        tail: u64,
        /// The new epoch.
        epoch: Epoch,
        /// [`Create::about`], as the creator wrote it.
        about: Bytes,
        /// Time to the deadline; zero after it.
        deadline_in: Duration,
        /// The log contains a final response although the stream was open. The new owner only has
        /// to close it.
        late: bool,
    },
    /// Another node changed the owner first.
    Lost,
    /// The stream has ended or does not exist.
    Over,
}
