//! A node of the cluster, which `mcp` calls for sessions, running calls, streams and limits
//! (`docs/design/sessions-and-streams.md`).
//!
//! | Module | Subject |
//! |---|---|
//! | `sessions` | `begin`, `update`, `end`, with a cache and a grace |
//! | `records` | records, sealed |
//! | `running`, `questions`, `answers` | cancellations and answers that arrive on other nodes |
//! | `writer`, `unacked_buffer` | the owner of a stream |
//! | `reader`, `position`, `partitions`, `supervisor` | the connection of a client |
//! | `membership`, `takeover` | live and suspected nodes; streams of dead nodes |
//! | `limits` | rates with leased tokens, and leased permits for simultaneous use |
//! | `guarded_store`, `breaker`, `slowness`, `deferred_writes` | access to the store |
//! | `stream_metrics` | measured values for operators |
//! | `instruments` | metrics that every call updates |
//!
//! Tasks, timers and subscriptions exist once per node. The exception is the writer task of each
//! running stream.

mod answers;
mod breaker;
mod by_session;
mod deferred_writes;
mod envelope;
mod guarded_store;
mod instruments;
#[cfg(test)]
mod interleavings;
mod limits;
mod membership;
mod messages;
mod partitions;
mod position;
mod questions;
mod reader;
mod records;
pub(crate) mod rng;
mod running;
mod sessions;
mod settings;
mod slowness;
mod stream_metrics;
mod supervisor;
mod takeover;
mod unacked_buffer;
mod writer;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use portolan_model::id::TenantId;
use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    answers::{Answer, Answers},
    by_session::BySession,
    deferred_writes::DeferredWrites,
    guarded_store::GuardedStore,
    limits::{Buckets, permits::Concurrency},
    membership::Watcher,
    messages::SessionSubscribers,
    partitions::Partitions,
    position::Position,
    questions::Questions,
    reader::{Connection, Phase},
    rng::NodeRng,
    running::RunningCalls,
    sessions::KnownSessions,
    stream_metrics::StreamMetrics,
    supervisor::{Attachment, Supervisor},
    takeover::Takeovers,
};
pub use self::{
    limits::{ClusterPermit, ClusterPermits, Limit, LimitKey, Limits, Rate, RetryAfter},
    membership::Membership,
    messages::SessionMessages,
    reader::{Delivery, StreamReader},
    running::Running,
    sessions::{SessionError, SessionState, Unavailable},
    settings::NodeSettings,
    writer::{NewStream, Over, StreamWriter},
};
use crate::{
    lock, spawn,
    store::{
        self, Class, Cursor, Event, Fresh, NodeId, Nonce, Principal, Routed, SessionKey, Store,
        StoreError, StreamKey, Update, Version,
    },
};

/// Time after a roll-back or an outage of the store for which a missing stream may still be made by
/// its owner. The owner needs one beat to notice, one call to check, and one call to write.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Number of attempts to attach to a stream that its owner may be about to make, and the pause
/// between them.
const YOUNG: usize = 3;
const SOON: Duration = Duration::from_millis(100);
/// Time for which `drain` waits until the final responses are in the log.
const DRAIN: Duration = Duration::from_secs(5);

/// Reason why a request has no proper result. Each reason becomes a JSON-RPC error
/// (STREAM-B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// The node that ran it was lost: -32010 `node_lost`.
    Node,
    /// The node that ran it had to stop: -32010 `draining`.
    Draining,
    /// The work ended without an answer: a defect, or a panic. -32603.
    Stopped,
    /// The log lost events that cannot be made again: -32011 `stream_lost`.
    Stream,
    /// Events that may not be dropped fill the log: -32015.
    Overflow,
    /// The deadline of the request has passed: -32016.
    Deadline,
    /// The token under which it ran was revoked: -32010 `revoked`.
    Revoked,
}

impl Lost {
    const fn name(self) -> &'static str {
        match self {
            Self::Node => "node_lost",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Stream => "stream_lost",
            Self::Overflow => "overflow",
            Self::Deadline => "deadline",
            Self::Revoked => "revoked",
        }
    }

    /// Whether the call took effect at the API: `no`, `yes` or `unknown` (STREAM-B).
    /// A stream is opened only for a call that was sent. When the stream is lost, the outcome of
    /// the call is unknown.
    pub const fn executed(self) -> &'static str {
        match self {
            Self::Node
            | Self::Draining
            | Self::Stopped
            | Self::Stream
            | Self::Overflow
            | Self::Deadline
            | Self::Revoked => "unknown",
        }
    }
}

/// Location to which the seal of a payload is bound. An attacker with write access to the store can
/// move a payload, so the payload must not open anywhere else (STREAM-3.1, STREAM-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadPlace<'a> {
    /// Tenant of the payload.
    pub tenant: TenantId,
    /// Session of the payload.
    pub session: SessionKey,
    /// Role of the payload in its session.
    pub part: PayloadPart<'a>,
}

/// Role of a payload in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadPart<'a> {
    /// An event of a stream. Its number is bound too, because takeovers and repairs keep it.
    Event {
        /// The stream.
        nonce: Nonce,
        /// Number of the event.
        seq: u64,
        /// Kind of the event.
        class: Class,
    },
    /// The client's answer to a question.
    Answer {
        /// The question's id.
        question: &'a str,
    },
    /// A record. Its list takes the place of the session.
    RecordPut {
        /// Name of the record.
        nonce: Nonce,
        /// True for the head, which is listed; false for the rest.
        is_head: bool,
    },
}

impl PayloadPlace<'_> {
    pub(crate) const fn event(tenant: TenantId, stream: StreamKey, seq: u64, class: Class) -> Self {
        Self {
            tenant,
            session: stream.session,
            part: PayloadPart::Event {
                nonce: stream.nonce,
                seq,
                class,
            },
        }
    }

    pub(crate) const fn record_put(tenant: TenantId, item: StreamKey, is_head: bool) -> Self {
        Self {
            tenant,
            session: item.session,
            part: PayloadPart::RecordPut {
                nonce: item.nonce,
                is_head,
            },
        }
    }
}

impl<'a> PayloadPlace<'a> {
    pub(crate) const fn answer(tenant: TenantId, session: SessionKey, question: &'a str) -> Self {
        Self {
            tenant,
            session,
            part: PayloadPart::Answer { question },
        }
    }
}

/// Operations on payloads, which the node carries and never reads.
pub trait Payloads: Send + Sync + fmt::Debug + 'static {
    /// Seals a payload for its location.
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes;
    /// Opens a sealed payload; `None` if it was sealed for another location or with another key.
    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes>;
    /// Builds the final response of a request that has none, from [`NewStream::about`].
    fn lost(&self, about: &Bytes, why: Lost) -> Bytes;
}

/// Result of [`Node::resume`].
#[derive(Debug)]
pub enum Resumed {
    /// The session has ended, or belongs to another principal: 404.
    Unknown,
    /// The session lives, but the stream is gone or its next events cannot be read: -32011 for the
    /// request in the event id.
    Gone,
    /// The stream has ended, and the client has all its events.
    Finished,
    /// The client's connection.
    Reader(StreamReader),
}

pub(crate) struct Inner {
    id: NodeId,
    settings: NodeSettings,
    rng: NodeRng,
    guarded_store: GuardedStore,
    payloads: Arc<dyn Payloads>,
    tracker: TaskTracker,
    stop: CancellationToken,
    /// Cancelled when the node has left the members.
    left: CancellationToken,
    sessions: KnownSessions,
    running: RunningCalls,
    questions: Questions,
    answers: Answers,
    session_subscribers: SessionSubscribers,
    connections: BySession<Arc<Connection>>,
    writers: BySession<Arc<writer::Shared>>,
    partitions: Partitions,
    supervisor: Supervisor,
    takeovers: Takeovers,
    deferred_writes: DeferredWrites,
    watcher: Watcher,
    buckets: Buckets,
    concurrency: Concurrency,
    stream_metrics: StreamMetrics,
    settled: Mutex<Settled>,
}

/// Time at which the store last lost data, as far as this node knows.
#[derive(Debug, Default)]
struct Settled {
    incarnation: u64,
    rolled_back: Option<Instant>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Opens an event of a log for its client; `None` if the event was not written by Portolan.
    fn opened(&self, connection: &Connection, event: &Event) -> Option<Bytes> {
        let Connection { tenant, stream, .. } = *connection;
        let place = PayloadPlace::event(tenant, stream, event.seq, event.class);
        self.payloads.open(&place, event.payload.clone())
    }

    /// Starts a task of this node.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.settings.standstill {
            None => spawn(&self.tracker, task),
            Some(standstill) => spawn(&self.tracker, standstill.around(task)),
        }
    }

    /// Number of nodes that share a limit.
    fn nodes(&self) -> u64 {
        self.watcher.members.borrow().count()
    }

    /// Number of nodes for prefetching. While the store is slow the number is huge, so that no
    /// node's share of a bucket is worth a prefetch (STREAM-17.1).
    fn sharers(&self) -> u64 {
        if self.guarded_store.slowness.is_slow() {
            u64::MAX / 4
        } else {
            self.nodes()
        }
    }

    /// Whether the owner may still make, or make again, a stream that the store does not know. A
    /// wrong "no" gives the returning client an error (-32011). A wrong "yes" makes it wait.
    fn may_come_back(&self, connection: &Connection) -> bool {
        if self.has_writer(connection.stream) {
            return true;
        }
        let standing = connection.standing();
        if standing.phase == Phase::Ended {
            // The stream has ended, and this client has no event to receive.
            return false;
        }
        match standing.owner.flatten() {
            // The stream had a writer on this node, which has finished.
            Some(owner) if owner == self.id => false,
            // An owner that sends beats has noticed the loss and writes again. No quarantine is
            // needed, because nothing is taken over here.
            Some(owner) => {
                !self.watcher.is_missing(owner)
                    && standing
                        .gone_since
                        .is_none_or(|since| since.elapsed() < self.settings.suspect_quarantine)
            }
            None => {
                self.rolled_back()
                    .is_some_and(|at| at.elapsed() < COMES_BACK)
                    || self
                        .guarded_store
                        .recovered_at()
                        .is_some_and(|at| at.elapsed() < COMES_BACK)
            }
        }
    }

    /// Time at which the store last lost data. Reads the incarnation from the store itself: a
    /// caller may hold a reply that is newer than the last notification.
    fn rolled_back(&self) -> Option<Instant> {
        let incarnation = *self.guarded_store.store.incarnation().borrow();
        let mut settled = lock(&self.settled);
        if settled.incarnation != incarnation {
            settled.incarnation = incarnation;
            settled.rolled_back = Some(Instant::now());
        }
        settled.rolled_back
    }
}

/// A node of the cluster. Cheap to clone. A process has one; tests start several over one store.
#[derive(Debug, Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

impl Node {
    /// Joins the cluster. The node's tasks run on `tracker` until `stop` is cancelled.
    pub async fn start(
        store: Arc<dyn Store>,
        settings: NodeSettings,
        payloads: Arc<dyn Payloads>,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> store::Result<Self> {
        let rng = NodeRng::new(settings.seed);
        let id = rng.node_id();
        let incarnation = *store.incarnation().borrow();
        let inner = Arc::new(Inner {
            id,
            guarded_store: GuardedStore::new(store),
            payloads,
            tracker: tracker.clone(),
            stop,
            left: CancellationToken::new(),
            sessions: KnownSessions::new(&settings),
            running: RunningCalls::new(&rng),
            questions: Questions::default(),
            answers: Answers::default(),
            session_subscribers: SessionSubscribers::default(),
            connections: BySession::new(&rng),
            writers: BySession::new(&rng),
            partitions: Partitions::default(),
            supervisor: Supervisor::default(),
            takeovers: Takeovers::default(),
            deferred_writes: DeferredWrites::default(),
            watcher: Watcher::new(id, &settings),
            buckets: Buckets::new(),
            concurrency: Concurrency::default(),
            stream_metrics: StreamMetrics::new(),
            settled: Mutex::new(Settled {
                incarnation,
                rolled_back: None,
            }),
            settings,
            rng,
        });
        let messages = inner.guarded_store.store.subscribe(id).await?;
        let members = inner
            .guarded_store
            .store
            .beat(id, inner.settings.ttl)
            .await?;
        inner.watcher.heard(&members);
        inner.spawn(supervisor::listen(Arc::clone(&inner), messages));
        inner.spawn(membership::beat(Arc::clone(&inner)));
        inner.spawn(partitions::read(Arc::clone(&inner)));
        inner.spawn(supervisor::attach_waiting(Arc::clone(&inner)));
        inner.spawn(supervisor::anti_entropy(Arc::clone(&inner)));
        inner.spawn(supervisor::check_owner(Arc::clone(&inner)));
        inner.spawn(takeover::take_over(Arc::clone(&inner)));
        inner.spawn(takeover::janitor(Arc::clone(&inner)));
        inner.spawn(running::register(Arc::clone(&inner)));
        inner.spawn(answers::try_again(Arc::clone(&inner)));
        inner.spawn(deferred_writes::run(Arc::clone(&inner)));
        inner.spawn(sessions::forget_idle(Arc::clone(&inner)));
        inner.spawn(limits::refill(Arc::clone(&inner)));
        inner.spawn(limits::permits::keep(Arc::clone(&inner)));
        inner.spawn(stream_metrics::measure(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// This node's id.
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// The members of the cluster, as of the last beat.
    pub fn members(&self) -> watch::Receiver<Arc<Membership>> {
        self.inner.watcher.members.subscribe()
    }

    /// Ids of the live nodes, read from the store, so that nodes started since the last beat are
    /// included. Returns the members of the last beat if the store fails. One round trip.
    pub async fn live_now(&self) -> Vec<NodeId> {
        let inner = &self.inner;
        // A node that has left sends no further beat.
        if !inner.left.is_cancelled() {
            let beat = inner.guarded_store.store.beat(inner.id, inner.settings.ttl);
            let members = inner
                .guarded_store
                .call("beat", inner.settings.call_within, beat);
            if let Ok(members) = members.await {
                let nodes = members.nodes.iter();
                let live = nodes.filter(|member| member.valid_ms > 0);
                return live.map(|member| member.node).collect();
            }
        }
        self.members().borrow().live.clone()
    }

    /// The limits of this node.
    pub fn limits(&self) -> Limits {
        Limits(Arc::clone(&self.inner))
    }

    /// Checks the session of a request whose id is authentic. One round trip. While the store is
    /// down, the node answers from memory for a limited time (STREAM-17.1).
    pub async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        fresh: &Fresh,
    ) -> Result<SessionState, SessionError> {
        sessions::begin(&self.inner, session, principal, fresh).await
    }

    /// Reports that [`Node::begin`] made a session record for a client with an unlimited number of
    /// sessions. The oldest idle records of its principal may be removed (STREAM-10). Returns at
    /// once; the write is deferred.
    pub fn session_made(&self, session: SessionKey, principal: Principal) {
        let write = deferred_writes::DeferredWrite::Remember { session, principal };
        self.inner.deferred_writes.add(write);
    }

    /// Whether the store replies. Takes one round trip if an operation failed since the last reply,
    /// and none otherwise. A new session needs the store (REVIEW-F4).
    pub async fn is_store_there(&self) -> bool {
        let guarded_store = &self.inner.guarded_store;
        if guarded_store.failing_since().is_none() && !guarded_store.store.is_in_doubt() {
            return true;
        }
        let asked = guarded_store.store.used_memory();
        let within = self.inner.settings.begin_within;
        // A refusal is a reply, too.
        let said = guarded_store.call("used_memory", within, asked).await;
        !matches!(said, Err(StoreError::Down(_)))
    }

    /// Whether the store's memory is nearly full (STREAM-17.2).
    pub fn is_store_full(&self) -> bool {
        self.inner.guarded_store.slowness.is_full()
    }

    /// Replaces the body of a session's record if its version is `expect`.
    pub async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update, Unavailable> {
        sessions::update(&self.inner, session, principal, expect, body).await
    }

    /// Ends a session on every node. `life` is the rest of its absolute life.
    pub async fn end(
        &self,
        session: SessionKey,
        principal: Principal,
        life: Duration,
    ) -> Result<(), Unavailable> {
        sessions::end(&self.inner, session, principal, life).await?;
        self.inner.session_ended(session);
        Ok(())
    }

    /// Registers a request for cancellation: on this node at once, and on the other nodes if it
    /// runs longer than [`NodeSettings::register_after`]. `None` if a request with this key already
    /// runs here.
    pub fn run(&self, session: SessionKey, rpc: &str, deadline: Duration) -> Option<Running> {
        RunningCalls::run(&self.inner, session, rpc, deadline)
    }

    /// Cancels a request on the node that runs it. The caller must have checked that the session id
    /// is authentic and belongs to the principal.
    pub async fn cancel(
        &self,
        session: SessionKey,
        principal: Principal,
        rpc: &str,
    ) -> Result<Routed, Unavailable> {
        let inner = &self.inner;
        if inner.running.cancel(session, rpc) {
            metrics::counter!("cancels_total", "outcome" => "local").increment(1);
            return Ok(Routed::Notified);
        }
        let routed = sessions::patiently(inner, "cancel", || {
            inner.guarded_store.store.cancel(session, principal, rpc)
        })
        .await?;
        metrics::counter!("cancels_total", "outcome" => answers::outcome(routed)).increment(1);
        Ok(routed)
    }

    /// Passes a client's answer to the request that waits for it, on any node. While the store is
    /// down or full, this takes up to 20 s (STREAM-17.1). [`Routed::Unasked`]: the store does not
    /// know the question. The answer is delivered if the question is stored within 20 s.
    pub async fn answer(
        &self,
        tenant: TenantId,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed, Unavailable> {
        let inner = &self.inner;
        let place = PayloadPlace::answer(tenant, session, question);
        let sealed = inner.payloads.seal(&place, payload);
        let answer = Answer {
            tenant,
            session,
            principal,
            question: question.to_owned(),
            payload: sealed,
        };
        answers::give(inner, answer).await
    }

    /// Subscribes to the messages for a session whose connection is on this node, from now on.
    pub fn subscribe(&self, session: SessionKey) -> SessionMessages {
        messages::subscribe(&self.inner, session, messages::QUEUE)
    }

    /// Like [`Node::subscribe`], with a queue of `capacity` messages, for a receiver of the messages
    /// of many sessions.
    pub fn subscribe_with_capacity(&self, session: SessionKey, capacity: usize) -> SessionMessages {
        messages::subscribe(&self.inner, session, capacity)
    }

    /// Sends a message to the node that holds a session's connection. Delivery is not confirmed.
    /// The sender must poll for the effect, or send the message again.
    pub async fn notify(
        &self,
        session: SessionKey,
        node: NodeId,
        message: Bytes,
    ) -> Result<(), Unavailable> {
        if node == self.inner.id {
            self.inner.session_subscribers.deliver(session, message);
            return Ok(());
        }
        sessions::patiently(&self.inner, "ring", || {
            self.inner
                .guarded_store
                .store
                .notify(session, node, message.clone())
        })
        .await
    }

    /// Opens the stream of a request that runs on this node. The reader is the request's own
    /// connection.
    pub fn open(&self, new: NewStream) -> (StreamWriter, StreamReader) {
        let inner = &self.inner;
        let connection = Arc::new(Connection::new(
            inner,
            new.tenant,
            new.stream,
            new.principal,
            Position::start(),
        ));
        connection.opens(inner.id, Instant::now() + new.deadline);
        inner
            .connections
            .insert(new.stream.session, Arc::clone(&connection));
        let writer = writer::open(inner, &new);
        inner
            .running
            .streams(new.stream.session, &new.rpc, new.stream.nonce);
        (writer, StreamReader::new(connection, inner))
    }

    /// Resumes a stream for a client after the last event that it saw (STREAM-9). While the store
    /// is down, the connection is held.
    pub async fn resume(
        &self,
        tenant: TenantId,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
    ) -> Result<Resumed, Unavailable> {
        let inner = &self.inner;
        if inner.supervisor.count() >= inner.settings.held {
            return Err(Unavailable);
        }
        let began = portolan_traces::now();
        let connection = Arc::new(Connection::new(
            inner,
            tenant,
            stream,
            principal,
            Position::shown(cursor),
        ));
        // The connection is inserted before it is attached, so that it misses no message in
        // between.
        inner
            .connections
            .insert(stream.session, Arc::clone(&connection));
        let reader = StreamReader::new(Arc::clone(&connection), inner);
        let mut attachment = supervisor::attach(inner, &connection).await;
        for _ in 0..YOUNG {
            // The owner has the whole stream and writes again what the store lost (REVIEW-Q1). A
            // client without a cursor may arrive before the node has made the stream.
            let is_missed = attachment == Attachment::Gone && inner.is_missed(stream);
            if attachment != Attachment::Gone || (cursor.seq > 0 && !is_missed) {
                break;
            }
            tokio::time::sleep(SOON).await;
            attachment = supervisor::attach(inner, &connection).await;
        }
        let outcome = match attachment {
            Attachment::Unknown => {
                metrics::counter!("mcp_resume_total", "outcome" => "notfound").increment(1);
                return Ok(Resumed::Unknown);
            }
            Attachment::Gone if !inner.may_come_back(&connection) => {
                metrics::counter!("mcp_resume_total", "outcome" => "gone").increment(1);
                return Ok(Resumed::Gone);
            }
            Attachment::Attached if connection.has_gap() => "gap",
            Attachment::Attached => match connection.over() {
                None => "ok",
                Some(reader::Over::Finished) => {
                    metrics::counter!("mcp_resume_total", "outcome" => "ok").increment(1);
                    return Ok(Resumed::Finished);
                }
                Some(reader::Over::Unreadable) => {
                    metrics::counter!("mcp_resume_total", "outcome" => "gone").increment(1);
                    return Ok(Resumed::Gone);
                }
            },
            Attachment::Gone | Attachment::Unanswered => {
                inner.supervisor.hold(Arc::clone(&connection));
                "held"
            }
        };
        metrics::counter!("mcp_resume_total", "outcome" => outcome).increment(1);
        if let (Some(began), Some(trace)) = (began, connection.trace.get()) {
            connection.resumed(inner.id, trace, began, outcome);
        }
        Ok(Resumed::Reader(reader))
    }

    /// Ends the service of this node (STREAM-16.4). Running streams get an error, connections end
    /// cleanly, and the node leaves the members. Call it when the time for running calls is over;
    /// then cancel `stop`.
    pub async fn drain(&self) {
        let inner = &self.inner;
        let writers = inner.writers.all();
        for writer in &writers {
            writer.cut(Lost::Draining);
        }
        let all = async {
            for writer in &writers {
                writer.done.cancelled().await;
            }
        };
        if tokio::time::timeout(DRAIN, all).await.is_err() {
            tracing::warn!("some streams could not be ended in the log");
        }
        for connection in inner.connections.all() {
            connection.end();
        }
        inner.left.cancel();
        let leave = inner.guarded_store.store.leave(inner.id);
        let _ = inner
            .guarded_store
            .call_always("leave", inner.settings.call_within, leave)
            .await;
    }
}
