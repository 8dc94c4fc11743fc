//! The store that nodes share: one trait, two implementations, one contract suite.
//!
//! | Group | Operations |
//! |---|---|
//! | sessions | `begin`, `update`, `remember`, `remove` |
//! | logs of request streams | `append`, `attach`, `read`, `take_over`, `owned_by` |
//! | running requests | `register`, `unregister`, `cancel` |
//! | questions to the client | `answer`, `take_answer` |
//! | records | `put_record`, `records` |
//! | messages between nodes | `publish`, `subscribe` |
//! | members | `heartbeat` |
//! | limits | `take_tokens`, `hold_slots` |
//! | the store itself | `health` |
//!
//! The log is the truth (STREAM-0.1). A message between nodes only notifies: its receiver
//! reads the log from its own cursor. A store carries bytes and never reads them. Deadlines are
//! passed in and returned as durations, because only the store's own clock decides between nodes
//! (STREAM-17.5).

mod bounds;
mod message;
mod record;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use portolan_model::{Gcra, gcra::Request};
use tokio::sync::{mpsc, watch};

pub(crate) use self::bounds::CLOSED_FOR_IF_FULL;
pub use self::{
    bounds::{Bounds, INLINE, SESSION_IDLE_SECS},
    message::NodeMessage,
    record::{PutRecord, Record, RecordBounds, RecordPut},
};

/// Number of partitions over which sessions are spread. All keys of a session are in its partition
/// (STREAM-3).
pub const PARTITIONS: u16 = 256;

/// Highest number of an event. A higher number from outside is lowered to this one, so that sums
/// stay within the integers that a script represents exactly.
pub const MOST_SEQ: u64 = 1 << 48;

/// Part of the keys that is stored together on one shard: the first byte of the session's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(pub u8);

/// Random part of a session's id, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub [u8; 16]);

impl SessionKey {
    /// Partition that holds the session's keys.
    pub const fn partition(self) -> Partition {
        Partition(self.0[0])
    }
}

/// Prints the first two bytes only. A full key opens its session, so no log may contain it
/// (AUTH-X1).
impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Owner of a session: a digest over tenant, person and client, 16 bytes (STREAM-3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Principal(pub [u8; 16]);

/// Id of a node: `n` and 13 base-32 characters, random at each start of the process (STREAM-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub [u8; 14]);

/// Name of a stream within its session, 64 random bits (STREAM-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub [u8; 8]);

/// Key of a stream of events, which is the answer to one POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// Session of the stream.
    pub session: SessionKey,
    /// Name of the stream within the session.
    pub nonce: Nonce,
}

/// Fencing token of a stream's writer: the number of its owners so far, and a random nonce.
/// Two nodes that take over after a roll-back of the store count to the same number.
/// Their nonces differ (STREAM-11 *Two histories*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// 1 for the node that opened the stream.
    pub term: u32,
    /// 0 for the first epoch.
    pub nonce: u16,
}

impl Epoch {
    /// The epoch of the node that opened the stream.
    pub const FIRST: Self = Self { term: 1, nonce: 0 };
}

/// Position in a stream: the last event that was seen, and the epoch in which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// 0 before the first event.
    pub seq: u64,
    /// `None` if the client showed no event yet.
    pub epoch: Option<Epoch>,
}

impl Cursor {
    /// Returns the cursor with `seq` limited to [`MOST_SEQ`].
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

/// Error of a store operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store did not reply in time, has no connection, or is loading, failing over or
    /// read-only. The operation may have been applied (STREAM-17.1 *down*).
    #[error("the store did not answer: {0}")]
    Down(String),
    /// The store refused before the first write: out of memory, no replicas, or disk full
    /// (STREAM-17.1 *write refused*).
    #[error("the store refuses writes: {0}")]
    Refused(String),
    /// The reply is invalid. Causes are a defect, or another program that writes to the store.
    #[error("the store answered what it never should: {0}")]
    Corrupt(String),
}

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Reply of `begin`: the session of an authentic id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// The session lives. The body is given if the caller's version differs.
    Alive {
        /// Version of the record.
        version: Version,
        /// The record's body, unless `known` is its version.
        body: Option<Bytes>,
    },
    /// There was neither a record nor a tombstone. The record was made again from the session's id
    /// (design page, point 4).
    Rebuilt {
        /// Version of the new record.
        version: Version,
    },
    /// The session was ended, or belongs to another principal.
    Unknown,
}

/// Data for the record of a session that has none.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// Body of a record that has to be made.
    pub body: Bytes,
    /// Time that is left of the session's absolute life. No record or tombstone outlives it.
    pub life: Duration,
}

/// Reply of `update`: compare and swap of a session's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// The body was replaced; this is the new version.
    Done(Version),
    /// Another writer changed the record first.
    Conflict {
        /// Version of the record.
        version: Version,
        /// Body of the record.
        body: Bytes,
    },
    /// There is no such record.
    Unknown,
}

/// Parameters of `remove`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remove {
    /// Removes the record if the session was not used for this time. Its id makes it again.
    Unused(Duration),
    /// Ends the session: removes all its data and leaves a tombstone for this time, the rest of its
    /// absolute life.
    Ended(Duration),
}

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

/// Reply of `register`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The request is registered; a cancellation finds it.
    Done,
    /// The request was cancelled before it was registered (STREAM-14).
    Cancelled,
    /// The session has too many running requests. Other nodes cannot cancel this one.
    Full,
    /// The session was ended, so no client waits for the reply (STREAM-17.1: a call that began in a
    /// grace).
    Ended,
}

/// Reply of `cancel` and of `answer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routed {
    /// The node that runs the request was notified.
    Notified,
    /// No request waits. A cancellation leaves a tombstone. An answer is dropped, because its
    /// question was answered otherwise.
    Nobody,
    /// There is no such question: its stream has ended, it was never asked, or it is not written
    /// yet. The answer is not stored.
    Unasked,
    /// The session has ended, or belongs to another principal.
    Unknown,
}

/// State of the store, as one process knows it.
#[derive(Debug, Clone)]
pub struct Health {
    /// Counter that rises whenever the store may have lost writes: a restart or a failover
    /// (STREAM-17.3). Owners then audit their streams.
    pub incarnation: watch::Receiver<u64>,
    /// Used share of the store's memory, from 0 to 1, some seconds old. `None` if the store has no
    /// memory limit of its own.
    pub used_memory: Option<f64>,
    /// Number of operations that wait for a reply, for all nodes of this process.
    pub in_flight: usize,
    /// Whether a connection to the store was lost and is not restored. The store may be down
    /// although no operation has failed yet.
    pub is_in_doubt: bool,
}

/// Members of the cluster, as the store sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// All known nodes, including those that died in the last ten minutes.
    pub nodes: Vec<Member>,
}

/// Node in the list of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Id of the node.
    pub node: NodeId,
    /// Milliseconds until its entry expires; negative after that.
    pub valid_ms: i64,
}

/// Request for tokens of one bucket of a rate limit (STREAM-16.1). All buckets of one tenant are on
/// one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeTokens {
    /// Shard part of the key: the tenant, or the address block.
    pub shard: String,
    /// Name of the bucket within the shard.
    pub bucket: String,
    /// Time that one token stands for, in microseconds.
    pub interval_us: u64,
    /// Capacity of the bucket in tokens.
    pub burst: u64,
    /// Tokens wanted.
    pub want: u64,
    /// Tokens that were spent without a grant. They are always taken.
    pub debt: u64,
    /// Tokens that were granted earlier and not used. They are returned first, up to the capacity
    /// of the bucket.
    pub back: u64,
}

impl TakeTokens {
    /// Rate of the bucket, within exact arithmetic.
    pub(crate) const fn rate(&self) -> Gcra {
        Gcra::new(self.interval_us, self.burst)
    }

    /// The tokens, for [`Gcra::take`].
    pub(crate) const fn request(&self) -> Request {
        Request {
            want: self.want,
            debt: self.debt,
            back: self.back,
        }
    }
}

/// Reply for one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenTokens {
    /// Tokens granted.
    pub granted: u64,
    /// Time until one token, if none was granted.
    pub wait: Duration,
}

/// Request for a limit on simultaneous use (STREAM-16.2): the node's use and its wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldSlots {
    /// Shard part of the key: the tenant.
    pub shard: String,
    /// Name of the limit within the shard.
    pub bucket: String,
    /// Number that all nodes together may hold.
    pub limit: u64,
    /// Number that the node uses now. It is always granted, because the use exists already.
    pub used: u64,
    /// Number that the node wants to hold in total.
    pub want: u64,
}

impl HoldSlots {
    /// Returns the request with numbers whose sums a script represents exactly.
    pub(crate) fn bounded(&self) -> Self {
        /// Above any number of simultaneous uses.
        const MOST: u64 = 1 << 40;
        Self {
            limit: self.limit.min(MOST),
            used: self.used.min(MOST),
            want: self.want.min(MOST),
            ..self.clone()
        }
    }
}

/// Reply of `hold_slots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSlots {
    /// Number that this node holds from now on.
    pub held: u64,
    /// Number that the other nodes hold together.
    pub held_elsewhere: u64,
    /// Number that the other nodes reported as used.
    pub used_elsewhere: u64,
}

/// The store that all nodes share.
///
/// Every operation is atomic. The caller may repeat it after [`StoreError::Down`]; the store then
/// recognises what was applied.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Checks that the session lives and belongs to the principal, and prolongs its idle life.
    /// Makes the record again if there is none.
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

    /// Adds a session to its principal's list as the newest, and removes the sessions in `gone`.
    /// Returns the oldest sessions of that principal beyond `most`, at most [`FORGET_AT_ONCE`] of
    /// them (STREAM-10).
    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>>;

    /// Removes the record of a session (STREAM-10). Idempotent. Returns false if the session stays:
    /// it is in use, was ended before, or belongs to another principal.
    async fn remove(
        &self,
        session: SessionKey,
        principal: Principal,
        remove: Remove,
    ) -> Result<bool>;

    /// Appends to a stream (STREAM-7). An ended session gets no new stream: the reply is
    /// [`Appended::Closed`], cancelled, at 0.
    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended>;

    /// Gives a stream to a client's connection on `node` (STREAM-8, STREAM-9).
    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached>;

    /// Reads many streams of one partition. Returns one reply per stream, in order.
    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>>;

    /// Changes the owner of a stream (STREAM-12.2).
    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver>;

    /// Returns the open streams that a node owns in a partition. `None` returns the streams that
    /// were given up and have no owner. Some may have expired; `take_over` removes them from the
    /// list.
    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>>;

    /// Registers a running request, so that a cancellation finds it (STREAM-6.3). May be repeated
    /// at any time to learn of a cancellation whose message was lost, or of the end of the session.
    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered>;

    /// Removes a request that has ended.
    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()>;

    /// Notifies the node that runs the request, or leaves a short-lived tombstone (STREAM-14).
    /// Every later `register` of the request returns [`Registered::Cancelled`].
    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed>;

    /// Stores a client's answer to a question and notifies the node that runs the request
    /// (STREAM-14). Only the first answer counts. The same bytes again send the notification again.
    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed>;

    /// Returns the answer to a question; `None` if there is none yet. The answer stays until its
    /// stream has ended, so a lost reply loses no answer.
    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>>;

    /// Creates or changes a record. Also removes expired records of the same list.
    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut>;

    /// Returns the records of a list in no order, without their `rest`. With a name, returns at
    /// most that record, with its `rest`.
    async fn records(&self, list: SessionKey, name: Option<Nonce>) -> Result<Vec<Record>>;

    /// Sends a message on behalf of a session to a node. The message is not stored and may be lost.
    /// A sender that needs an effect polls for it and sends the message again.
    async fn publish(&self, session: SessionKey, node: NodeId, body: Bytes) -> Result<()>;

    /// Renews the node's membership for `ttl`, and returns all members (STREAM-12.1). A `ttl` of
    /// zero removes the node from the members.
    async fn heartbeat(&self, node: NodeId, ttl: Duration) -> Result<Members>;

    /// Takes tokens from buckets (STREAM-16.1). Returns one reply per bucket, in order.
    async fn take_tokens(&self, wanted: &[TakeTokens]) -> Result<Vec<TakenTokens>>;

    /// Reports a node's use of a limit on simultaneous use, and sets the number that it holds for
    /// `life` (STREAM-16.2). The share of a node that does not renew it in time becomes free. May
    /// be repeated.
    async fn hold_slots(
        &self,
        node: NodeId,
        life: Duration,
        wanted: &HoldSlots,
    ) -> Result<HeldSlots>;

    /// Subscribes to the messages for a node, from now on. Call it once per node. The channel is
    /// bounded; [`NodeMessage::Resync`] replaces the messages that do not fit.
    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>>;

    /// State of the store as this process knows it. No round trip.
    fn health(&self) -> Health;
}

/// Used share of the store's memory from which closed logs are kept for a shorter time and logs
/// take no notifications (STREAM-17.2).
pub const NEARLY_FULL: f64 = 0.85;

/// Maximum number of sessions that [`Store::remember`] returns.
pub const FORGET_AT_ONCE: usize = 16;
