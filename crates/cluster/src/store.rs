//! What nodes share: one trait, two implementations, one contract suite.
//!
//! | Group | Operations |
//! |---|---|
//! | sessions | `begin`, `update`, `end` |
//! | logs of request streams | `append`, `attach`, `read`, `detach`, `take_over`, `owned_by` |
//! | running requests | `register`, `unregister`, `cancel` |
//! | questions to the client | `answer`, `take_answer` |
//! | things that are kept | `put_record`, `kept`, `shelf` |
//! | nodes and limits | `beat`, `lease`, `hold` |
//! | between nodes | `messages`, `incarnation` |
//!
//! The log is the truth and a message between nodes only a message (`streams.md` §0.1): whoever hears one reads the log from its own
//! cursor. A store carries bytes and never reads them. Deadlines go in as durations and come back as such, because only
//! the store's own clock decides between nodes (§17.5).

mod bounds;
mod message;
mod record;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

pub use self::{
    bounds::Bounds,
    message::NodeMessage,
    record::{PutRecord, Record, RecordBounds, RecordPut, RecordSummary},
};

/// Sessions are spread over so many partitions; all keys of a session are in its partition (§3).
pub const PARTITIONS: u16 = 256;

/// Highest number of an event. What claims a higher one is taken for this: sums stay within the integers that a script's numbers hold.
pub const MOST_SEQ: u64 = 1 << 48;

/// Part of the key space that lives together on one shard: the first byte of the session's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(pub u8);

/// The random part of a session's id, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub [u8; 16]);

impl SessionKey {
    /// Where the session lives.
    pub const fn partition(self) -> Partition {
        Partition(self.0[0])
    }
}

/// Session keys open sessions: no log shows them whole (X1).
impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Whose session it is: a digest over tenant, person and client, 16 bytes (§3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Principal(pub [u8; 16]);

/// One process of the platform: `n` and 13 base-32 characters, random at each start (§4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub [u8; 14]);

/// Names a stream within its session, 64 random bits (§4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 8]);

/// A stream of events: the answer to one POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// Its session.
    pub session: SessionKey,
    /// Which of the session's streams.
    pub nonce: Nonce,
}

/// How often the stream changed its owner, and a random mark of the last change: two owners that take over after a roll-back of the store
/// count to the same number but draw different marks (§11 *Two histories*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// 1 for the node that opened the stream.
    pub number: u32,
    /// 0 for the first epoch.
    pub mark: u16,
}

impl Epoch {
    /// The epoch of the node that opened the stream.
    pub const FIRST: Self = Self { number: 1, mark: 0 };
}

/// A place in a stream: the event seen last, and the epoch in which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// 0 before the first event.
    pub seq: u64,
    /// `None` if the client showed no event yet.
    pub epoch: Option<Epoch>,
}

impl Cursor {
    /// The same within [`MOST_SEQ`].
    pub(crate) fn bounded(self) -> Self {
        Self {
            seq: self.seq.min(MOST_SEQ),
            ..self
        }
    }
}

/// Version of a session's record; raised by every `update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

/// What an operation found instead of what it expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No answer in time, no connection, or a server that is loading, failing over or read-only. The operation may have been
    /// applied (§17.1 *down*).
    #[error("the store did not answer: {0}")]
    Down(String),
    /// Refused before the first write: out of memory, no replicas, disk full (§17.1 *write refused*).
    #[error("the store refuses writes: {0}")]
    Refused(String),
    /// An answer that makes no sense. A defect, or a stranger in the store.
    #[error("the store answered what it never should: {0}")]
    Corrupt(String),
}

/// Result of an operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// `begin`: the session of an authentic id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// It lives. The body is given if the caller's version is another one.
    Alive {
        /// Version of the record.
        version: Version,
        /// The record's body, unless `known` is its version.
        body: Option<Bytes>,
    },
    /// There was no record and no tombstone: it was made again from what the id says (design page, point 4).
    Rebuilt {
        /// Version of the new record.
        version: Version,
    },
    /// It was ended, or belongs to somebody else.
    Unknown,
}

/// What is needed to make a session's record.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// Body of a record that has to be made.
    pub body: Bytes,
    /// Time left of the session's absolute life; no record or tombstone outlives it.
    pub life: Duration,
}

/// `update`: compare and swap of a session's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Done; the new version.
    Done(Version),
    /// Somebody else was first.
    Conflict {
        /// Version of the record.
        version: Version,
        /// Its body.
        body: Bytes,
    },
    /// There is no such record.
    Unknown,
}

/// Kind of an event, as far as trimming is concerned (§3).
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

/// An event to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Its kind.
    pub class: Class,
    /// For a question: its JSON-RPC id, under which the answer will be looked for.
    pub question: Option<String>,
    /// What the client gets.
    pub payload: Bytes,
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Dense from 1, except where notifications were dropped.
    pub seq: u64,
    /// Its kind.
    pub class: Class,
    /// What the client gets.
    pub payload: Bytes,
}

/// Whether a stream may still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It may.
    Open,
    /// Its final response is in.
    Closed,
    /// It ended without a response: cancelled.
    Cancelled,
}

/// What a stream is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// After this time the owner is overdue, and anybody may end the stream 30 s later (§11 *Liveness*).
    pub deadline_in: Duration,
    /// Number before the first event; above 0 only where a lost stream is made again from the owner's ring (§7).
    pub start: u64,
    /// What an new owner must know of the request, written by `mcp`: the JSON-RPC id, whether it is safe to repeat.
    pub about: Bytes,
}

/// `append`: what the owner of a stream writes, in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The writer.
    pub owner: NodeId,
    /// The writer's epoch: a node that takes over a stream twice is not fenced by its name alone.
    pub epoch: Epoch,
    /// Number of the last event that the writer knows to be in the log.
    pub expect: u64,
    /// Makes the stream if there is none.
    pub create: Option<Create>,
    /// Events in order; may be empty.
    pub events: Vec<NewEvent>,
    /// Ends the stream. The request's entry among the running ones (`rpc`) goes in the same step.
    pub close: Option<State>,
    /// Key of the request among the running ones.
    pub rpc: String,
}

/// What became of an `append`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// Written.
    Done {
        /// Number of the last event.
        tail: u64,
        /// The node that holds the client's connection.
        attached: Option<NodeId>,
        /// Which of the client's connections, counted.
        generation: u64,
        /// Events that may not be dropped exceed the bounds by themselves (§7): the stream has to be ended.
        overflow: bool,
    },
    /// Another node or another epoch owns the stream: stop, send nothing.
    Fenced,
    /// The log's last number is another one than expected.
    Tail {
        /// The log's.
        tail: u64,
        /// Of the stream.
        state: State,
    },
    /// The stream is over.
    Closed {
        /// How it ended.
        state: State,
        /// Number of its last event.
        tail: u64,
    },
    /// There is no such stream and none was to be made.
    Gone,
}

/// How far a log reaches and where its epochs began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Who writes; `None` if its owner gave it up.
    pub owner: Option<NodeId>,
    /// Of the stream.
    pub state: State,
    /// Number of the last event.
    pub tail: u64,
    /// Below or at this number the log is not complete.
    pub dropped: u64,
    /// Which of the client's connections holds the stream.
    pub generation: u64,
    /// The running epoch.
    pub epoch: Epoch,
    /// Of the epochs above 1, in order: the number after which each began, and its mark. Numbers may be missing.
    pub epochs: Vec<(u64, Epoch)>,
    /// Time to the deadline; zero if it is over.
    pub deadline_in: Duration,
    /// Retained events after the caller's cursor, in order, as many as fit one answer.
    pub events: Vec<Event>,
    /// There are more.
    pub more: bool,
}

/// `attach`: a client's connection takes a stream over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// The session is over, or somebody else's.
    Unknown,
    /// The session lives, the stream is gone.
    Gone,
    /// Taken over.
    Stream {
        /// As of now.
        view: View,
        /// The position from which `events` were read: the cursor, or the place to which it had to be moved.
        position: u64,
        /// The cursor lies on a branch that the store lost: the client must be told of a gap (§8 rule 3).
        split: bool,
        /// As written at its creation.
        about: Bytes,
    },
}

/// One stream of a `read`.
#[derive(Debug, Clone)]
pub struct ReadWanted {
    /// Which.
    pub stream: StreamKey,
    /// Generation of the caller's connection: an older one gets no events.
    pub generation: u64,
    /// Last event it has.
    pub position: u64,
    /// Owner and epoch as last seen: if nothing changed, the answer is short.
    pub seen: (Option<NodeId>, Epoch),
}

/// Answer for one stream of a `read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// There is no such stream.
    Gone,
    /// Open, and nothing changed.
    Unchanged,
    /// What there is.
    View(View, Option<NodeId>),
}

/// `take_over`: compare and swap of a stream's owner.
#[derive(Debug, Clone)]
pub struct TakeOver {
    /// The stream.
    pub stream: StreamKey,
    /// The owner that is thought to be dead; the caller itself to give the stream up.
    pub from: Option<NodeId>,
    /// The new owner; `None` gives it up.
    pub to: Option<NodeId>,
    /// The highest cursor that a client has shown.
    pub shown: Cursor,
    /// A random mark for the new epoch.
    pub mark: u16,
}

/// What became of an `take_over`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenOver {
    /// The stream has the new owner.
    Done {
        /// Number of the last event, or of the last one that a client has shown.
        tail: u64,
        /// The new epoch.
        epoch: Epoch,
        /// As written at its creation.
        about: Bytes,
        /// Time to the deadline; zero if it is over.
        deadline_in: Duration,
        /// A final response is in the log although the stream was open: nothing remains to be done but to close it.
        late: bool,
    },
    /// Somebody else was first.
    Lost,
    /// The stream is over or gone.
    Over,
}

/// What became of a `register`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// A cancellation finds the request now.
    Done,
    /// The cancellation came first (§14).
    Cancelled,
    /// Too many of this session; the request cannot be cancelled from other nodes.
    Full,
    /// The session was ended, so that the request has nobody to answer (§17.1: a call that began in a grace).
    Ended,
}

/// What became of a `cancel` or an `answer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routed {
    /// Handed to the node that runs the request.
    Notified,
    /// Nobody waits for it: a tombstone for a cancellation, nothing for an answer, whose question has another one.
    Nobody,
    /// There is no such question: it is over, was never asked, or is not written down yet. Nothing is kept of the answer.
    Unasked,
    /// The session is over, or somebody else's.
    Unknown,
}

/// Membership as the store saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// Every node that is known, the dead of the last ten minutes included.
    pub nodes: Vec<Member>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub node: NodeId,
    /// Milliseconds until its entry is over; negative if it is.
    pub valid_ms: i64,
}

/// A bucket of a rate limit (§16.1). Keys of one tenant go to one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWanted {
    /// Shard part of the key: the tenant, or the address block.
    pub shard: String,
    /// The bucket within it.
    pub bucket: String,
    /// Microseconds that one token stands for.
    pub interval_us: u64,
    /// Tokens that the bucket holds.
    pub burst: u64,
    /// Tokens wanted.
    pub want: u64,
    /// Tokens spent already that were never granted; always taken.
    pub debt: u64,
    /// Tokens granted before that were not needed; given back first, and never more than the bucket holds.
    pub back: u64,
}

/// Answer for one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Tokens granted.
    pub granted: u64,
    /// Time until one token, if none was granted.
    pub wait: Duration,
}

/// A limit on what is there at once (§16.2), and what a node wants of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldWanted {
    /// Shard part of the key: the tenant.
    pub shard: String,
    /// The limit within it.
    pub bucket: String,
    /// What all nodes together may hold.
    pub limit: u64,
    /// What the node uses now. It is granted whatever the limit, because it is there.
    pub used: u64,
    /// What the node wants to hold, in all and not on top.
    pub want: u64,
}

impl HoldWanted {
    /// The same with numbers whose sums a script holds exactly.
    pub(crate) fn bounded(&self) -> Self {
        /// More than anything that is there at once.
        const MOST: u64 = 1 << 40;
        Self {
            limit: self.limit.min(MOST),
            used: self.used.min(MOST),
            want: self.want.min(MOST),
            ..self.clone()
        }
    }
}

/// Who holds what of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// What the node holds from now on.
    pub held: u64,
    /// What the other nodes hold together.
    pub held_elsewhere: u64,
    /// What they said they use of it.
    pub used_elsewhere: u64,
}

/// The store that all nodes share.
///
/// Every operation is atomic, and may be repeated by the caller after [`StoreError::Down`]: it then recognises what was applied.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Checks that the session lives and is the principal's, prolongs its idle life, and makes its record again if there is none.
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin>;

    /// Replaces the body of a record.
    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update>;

    /// Notes that a record was made for a session, as the newest of its principal, strikes those that are `gone`, and says which ones of
    /// that principal are more than `most`: the oldest, [`FORGET_AT_ONCE`] at the most (§10).
    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>>;

    /// Removes the record of a session that was not used for so long; its id makes it again. Says whether there is none any more.
    async fn forget(
        &self,
        session: SessionKey,
        principal: Principal,
        unused_for: Duration,
    ) -> Result<bool>;

    /// Ends a session with all that belongs to it, and leaves a tombstone for the rest of its absolute life. Idempotent.
    async fn end(&self, session: SessionKey, principal: Principal, life: Duration) -> Result<()>;

    /// Writes to a stream (§7). In an ended session nothing is made again: [`Appended::Closed`], cancelled, at 0.
    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended>;

    /// Gives a stream to a client's connection on `node` (§8, §9).
    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached>;

    /// Reads many streams of one partition. One answer for each, in order.
    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>>;

    /// The connection of this generation is gone.
    async fn detach(&self, stream: StreamKey, node: NodeId, generation: u64) -> Result<()>;

    /// Changes the owner of a stream (§12.2).
    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver>;

    /// Open streams that a node owns in a partition; `None`: those that were given up and have no owner yet.
    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>>;

    /// Makes a running request known, so that a cancellation finds it (§6 step 3). May be asked again at any time, to learn of
    /// a cancellation whose message was lost, or of the end of its session.
    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered>;

    /// The request is over.
    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()>;

    /// Notifies the node that runs the request, or leaves a tombstone for a moment (§14). Every later `register` of the request
    /// answers [`Registered::Cancelled`].
    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed>;

    /// Stores a client's answer to a question and notifies the node that runs the request (§14). Only the first answer counts; the
    /// same bytes once more ring once more.
    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed>;

    /// The answer to a question; `None` if there is none yet. It stays until its stream is over, so that a lost reply
    /// loses no answer.
    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>>;

    /// Makes or changes a thing in a record list. What is over goes meanwhile.
    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut>;

    /// A thing; `None` if there is none, or no more.
    async fn record(&self, item: StreamKey) -> Result<Option<Record>>;

    /// The things in a record list, in no order.
    async fn records(&self, shelf: SessionKey) -> Result<Vec<RecordSummary>>;

    /// Notifies a node on behalf of a session. Nothing is kept: whoever needs to know that it was heard has to look, and ring again.
    async fn notify(&self, session: SessionKey, node: NodeId, note: Bytes) -> Result<()>;

    /// Says that the node lives for `ttl`, and who else does (§12.1).
    async fn beat(&self, node: NodeId, ttl: Duration) -> Result<Members>;

    /// Leaves the membership.
    async fn leave(&self, node: NodeId) -> Result<()>;

    /// Takes tokens from buckets (§16.1). One answer for each, in order.
    async fn lease(&self, wanted: &[LeaseWanted]) -> Result<Vec<Lease>>;

    /// Says what a node uses of a limit on what is there at once, and sets what it holds for `life` (§16.2). Shares of nodes that do not
    /// say it again in time are free again. To be repeated at will.
    async fn hold(&self, node: NodeId, life: Duration, wanted: &HoldWanted) -> Result<Held>;

    /// messages for a node, from now on. To be called once per node; the channel is bounded, what does not fit becomes
    /// [`NodeMessage::Resync`].
    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>>;

    /// Operations that wait for an answer now, of all nodes of this process.
    fn in_flight(&self) -> usize {
        0
    }

    /// Whether a connection to the store was lost and is not back: it may be away, though no operation has failed yet.
    fn is_in_doubt(&self) -> bool {
        false
    }

    /// How much of the store's memory is used, from 0 to 1. `None`: it has none of its own.
    async fn used_memory(&self) -> Result<Option<f64>> {
        Ok(None)
    }

    /// Raised whenever the store may have lost writes: a restart or a failover (§17.3). Owners then audit their streams.
    fn incarnation(&self) -> watch::Receiver<u64>;
}

/// Share of the store's memory above which logs are kept shorter and notifications out of them (§17.2).
pub const NEARLY_FULL: f64 = 0.85;

/// Sessions that [`Store::remember`] names at once.
pub const FORGET_AT_ONCE: usize = 16;
