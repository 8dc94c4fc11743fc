//! A node of the cluster: what `mcp` calls for sessions, running calls, streams and limits (`streams.md`).
//!
//! | Module | Subject |
//! |---|---|
//! | `sessions` | `begin`, `update`, `end`, with a cache and a grace |
//! | `records` | things that are kept, sealed |
//! | `running`, `questions`, `answers` | cancellations and answers that arrive on other nodes |
//! | `writer`, `unacked` | the owner of a stream |
//! | `reader`, `position`, `partitions`, `supervisor` | the connection of a client |
//! | `membership`, `takeover` | who lives; streams of the dead |
//! | `limits` | rates with leased tokens, and leased places for what is there at once |
//! | `guarded_store`, `breaker`, `slowness`, `deferred_writes` | the way to the store |
//! | `stream_metrics` | what operators watch |
//! | `instruments` | what is counted on every call |
//!
//! Tasks, timers and subscriptions are per node, with one exception: the writer of a running stream.

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
mod notes;
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
    limits::{Buckets, places::Concurrency},
    membership::Watcher,
    notes::Notes,
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
    limits::{Limit, LimitKey, Limits, Place, Places, Rate, RetryAfter},
    membership::Membership,
    notes::Listening,
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

/// How long after a roll-back or an outage of the store a stream that is not there may still be made by its owner: it needs one beat to
/// notice, one call to find out, and one to write.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Tries for a stream that may be about to be made, and the time between them.
const YOUNG: usize = 3;
const SOON: Duration = Duration::from_millis(100);
/// How long `drain` waits for the last words to reach the log.
const DRAIN: Duration = Duration::from_secs(5);

/// Why a request has no real answer. Each becomes a JSON-RPC error (`streams.md` Appendix B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// The node that ran it was lost: -32010 `node_lost`.
    Node,
    /// The node that ran it had to stop: -32010 `draining`.
    Draining,
    /// The work ended without an answer: a defect, or a panic. -32603.
    Stopped,
    /// The log lost what cannot be made again: -32011 `stream_lost`.
    Stream,
    /// Events that may not be dropped fill the log: -32015.
    Overflow,
    /// Its time is over: -32016.
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

    /// Whether the call took effect at the API behind: `no`, `yes` or `unknown` (`streams.md` Appendix B). A stream is opened only
    /// for a call that was sent, and who loses it never learns what came of it.
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

/// Where a payload belongs. Whoever can write to the store can move it, and it must not open anywhere else (§3.1, §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadPlace<'a> {
    /// Whose.
    pub tenant: TenantId,
    /// Of which session.
    pub session: SessionKey,
    /// What it is there.
    pub part: PayloadPart<'a>,
}

/// What a payload is to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadPart<'a> {
    /// An event of a stream. Its number is bound too, because takeovers and repairs keep it.
    Event {
        /// Which stream.
        nonce: Nonce,
        /// Its number.
        seq: u64,
        /// Its kind.
        class: Class,
    },
    /// The client's answer to a question.
    Answer {
        /// The question's id.
        question: &'a str,
    },
    /// A thing in a record list, which stands where the session stands.
    RecordPut {
        /// Which thing.
        nonce: Nonce,
        /// What is listed of it, or the rest.
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

/// What the node has to know of payloads, which it carries and never reads.
pub trait Payloads: Send + Sync + fmt::Debug + 'static {
    /// Seals a payload for its place.
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes;
    /// The inverse; `None` if it was sealed for another place, or by nobody.
    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes>;
    /// The final response of a request that has none, from [`NewStream::about`].
    fn lost(&self, about: &Bytes, why: Lost) -> Bytes;
}

/// What a `resume` found.
#[derive(Debug)]
pub enum Resumed {
    /// The session is over, or somebody else's: 404.
    Unknown,
    /// The session lives, the stream is gone, or what follows cannot be read: -32011 for the request in the event id.
    Gone,
    /// The stream is over, and the client has all of it.
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
    /// The node left the membership.
    left: CancellationToken,
    sessions: KnownSessions,
    running: RunningCalls,
    questions: Questions,
    answers: Answers,
    notes: Notes,
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

/// When the store lost its memory last, as far as this node knows.
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
    /// An event of a log as its client gets it; `None` for what this house did not write there.
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

    /// How many nodes share a limit.
    fn nodes(&self) -> u64 {
        self.watcher.members.borrow().count()
    }

    /// The same for what is fetched ahead. Nothing is from a slow store: as if nobody's share of a bucket were worth it (§17.1).
    fn sharers(&self) -> u64 {
        if self.guarded_store.slowness.is_slow() {
            u64::MAX / 4
        } else {
            self.nodes()
        }
    }

    /// Whether a stream that the store does not know may still be made, or made again, by its owner. Saying no costs its client an
    /// honest error (-32011) when it comes back; saying yes costs it time.
    fn may_come_back(&self, connection: &Connection) -> bool {
        if self.has_writer(connection.stream) {
            return true;
        }
        let standing = connection.standing();
        if standing.phase == Phase::Ended {
            // It is over, and has nothing that this client could be told.
            return false;
        }
        match standing.owner.flatten() {
            // It had a writer here, which is done.
            Some(owner) if owner == self.id => false,
            // Who beats has noticed what the store lost, and writes again. That this costs nobody a stream needs no
            // quarantine: nothing is taken over.
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

    /// When the store lost its memory last. Whoever has an answer of the new store in hand must not be told of the old one,
    /// hence the look at the store itself.
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

/// A node. Cheap to clone; one per process, but tests start several over one store.
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
            notes: Notes::default(),
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
        inner.spawn(limits::places::keep(Arc::clone(&inner)));
        inner.spawn(stream_metrics::measure(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// This node's id.
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// The nodes, as of the last beat.
    pub fn members(&self) -> watch::Receiver<Arc<Membership>> {
        self.inner.watcher.members.subscribe()
    }

    /// The nodes that live, asked of the store: one that began since the last beat is among them. As of the last beat where the store does
    /// not say. One round trip.
    pub async fn live_now(&self) -> Vec<NodeId> {
        let inner = &self.inner;
        // Who left does not beat again.
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

    /// The limits.
    pub fn limits(&self) -> Limits {
        Limits(Arc::clone(&self.inner))
    }

    /// The session of a request whose id is authentic. One round trip; while the store is down, from memory for a while (§17.1).
    pub async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        fresh: &Fresh,
    ) -> Result<SessionState, SessionError> {
        sessions::begin(&self.inner, session, principal, fresh).await
    }

    /// Says that [`Node::begin`] made the record of a session of a client that may make as many as it likes: its principal's oldest idle ones
    /// may go (§10). Nobody waits for that.
    pub fn session_made(&self, session: SessionKey, principal: Principal) {
        let write = deferred_writes::DeferredWrite::Remember { session, principal };
        self.inner.deferred_writes.add(write);
    }

    /// Whether the store answers. Costs one round trip if an operation failed since the last answer,
    /// and none otherwise. A new session needs the store (F-4).
    pub async fn is_store_there(&self) -> bool {
        let guarded_store = &self.inner.guarded_store;
        if guarded_store.failing_since().is_none() && !guarded_store.store.is_in_doubt() {
            return true;
        }
        let asked = guarded_store.store.used_memory();
        let within = self.inner.settings.begin_within;
        // A refusal is an answer.
        let said = guarded_store.call("used_memory", within, asked).await;
        !matches!(said, Err(StoreError::Down(_)))
    }

    /// Whether the store's memory is nearly full (§17.2).
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

    /// Ends a session on every node. `life` is what is left of its absolute life.
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

    /// Makes a request known to cancellations, on this node at once and on the others if it takes longer than a moment. `None`: a
    /// request with this key runs here already.
    pub fn run(&self, session: SessionKey, rpc: &str, deadline: Duration) -> Option<Running> {
        RunningCalls::run(&self.inner, session, rpc, deadline)
    }

    /// Cancels a request, wherever it runs. The session's id must be known to be authentic and the principal's.
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

    /// Hands a client's answer to the request that waits for it, wherever it runs. While the store is away or full that takes up to 20 s
    /// (§17.1). [`Routed::Unasked`]: the store knows of no such question; if it is notified of it within 20 s, the answer will be there.
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

    /// Hears the notes for a session whose connection this node holds, from now on.
    pub fn listen(&self, session: SessionKey) -> Listening {
        notes::listen(&self.inner, session, notes::QUEUE)
    }

    /// The same where so many notes may wait: for who hears the notes of many.
    pub fn listen_with_room(&self, session: SessionKey, room: usize) -> Listening {
        notes::listen(&self.inner, session, room)
    }

    /// Notifies the node that holds a session's connection. Nothing tells whether it heard: the note has to lead to something that can be
    /// seen, or be repeated.
    pub async fn notify(
        &self,
        session: SessionKey,
        node: NodeId,
        note: Bytes,
    ) -> Result<(), Unavailable> {
        if node == self.inner.id {
            self.inner.notes.heard(session, note);
            return Ok(());
        }
        sessions::patiently(&self.inner, "ring", || {
            self.inner
                .guarded_store
                .store
                .notify(session, node, note.clone())
        })
        .await
    }

    /// Opens the stream of a request that runs here. The reader is the request's own connection.
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

    /// A client comes back for a stream, with the last event it saw (§9). While the store is down its connection is held.
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
        // Known before it is attached, so that what comes in between is not missed.
        inner
            .connections
            .insert(stream.session, Arc::clone(&connection));
        let reader = StreamReader::new(Arc::clone(&connection), inner);
        let mut attachment = supervisor::attach(inner, &connection).await;
        for _ in 0..YOUNG {
            // The owner has the whole stream and writes again what the store lost. A client
            // without a cursor may arrive before the node has made the stream.
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

    /// The end of a node's service (§16.4): running streams get an honest error, connections end cleanly, and the node leaves the
    /// membership. Call it when the time for calls to run on is over; then cancel `stop`.
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
