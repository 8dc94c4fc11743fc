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
mod limits;
mod log;
mod message;
mod record;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

pub(crate) use self::bounds::CLOSED_FOR_IF_FULL;
pub use self::{
    bounds::{Bounds, INLINE, SESSION_IDLE_SECS},
    limits::{HeldSlots, HoldSlots, TakeTokens, TakenTokens},
    log::{
        Append, Appended, Attached, Class, Create, Event, NewEvent, Read, ReadWanted, StreamState,
        TakeOver, TakenOver, View,
    },
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
