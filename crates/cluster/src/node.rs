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
//! | `payload` | what a seal is bound to, and what stands for a lost response |
//! | `stream_metrics` | measured values for operators |
//! | `instruments` | metrics that every call updates |
//!
//! `inner` holds the state of all of them. A module with state does not use `inner`; its tasks and
//! operations do, in a module below it (`answers::deliver`, `running::call`, `limits::take`).
//!
//! Tasks, timers and subscriptions exist once per node. The exception is the writer task of each
//! running stream.

mod answers;
mod breaker;
mod by_session;
mod deferred_writes;
mod envelope;
mod guarded_store;
mod inner;
mod instruments;
#[cfg(test)]
#[path = "../tests/interleavings/nodes.rs"]
mod interleavings;
mod limits;
mod membership;
mod messages;
mod partitions;
mod payload;
mod position;
mod questions;
mod reader;
mod records;
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
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use portolan_model::id::TenantId;
use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    answers::{Answers, ClientAnswer},
    by_session::BySession,
    deferred_writes::DeferredWrites,
    guarded_store::GuardedStore,
    inner::{Inner, Settled},
    limits::{Buckets, permits::Concurrency},
    membership::Watcher,
    partitions::Partitions,
    position::Position,
    questions::Questions,
    reader::Connection,
    running::RunningCalls,
    sessions::KnownSessions,
    settings::{BEGIN_WITHIN, CALL_WITHIN, HELD, OUTBOUND},
    stream_metrics::StreamMetrics,
    supervisor::{Attachment, held::Supervisor},
    takeover::claims::Takeovers,
};
pub use self::{
    limits::{
        LimitKey, Rate, RetryAfter,
        decisions::Limit,
        permits::{ClusterPermit, ClusterPermits},
        take::Limits,
    },
    membership::Membership,
    messages::SessionMessages,
    payload::{Lost, PayloadPart, PayloadPlace, Payloads},
    reader::{Delivery, deliveries::StreamReader},
    running::call::Running,
    sessions::{SessionError, SessionState, Unavailable},
    settings::{NodeSettings, TaskWrapper},
    writer::{NewStream, Over, StreamWriter},
};
use crate::{
    enquiry,
    rng::NodeRng,
    store::{
        self, Cursor, Fresh, NodeId, Partition, Principal, Routed, SessionKey, Store, StoreError,
        StreamKey, Update, Version,
    },
};

/// Number of attempts to attach to a stream that its owner may be about to make, and the pause
/// between them.
const YOUNG: usize = 3;
const SOON: Duration = Duration::from_millis(100);
/// Time for which `drain` waits until the final responses are in the log.
const DRAIN: Duration = Duration::from_secs(5);

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
        let incarnation = *store.health().incarnation.borrow();
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
            session_subscribers: Arc::default(),
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
            .heartbeat(id, inner.settings.ttl)
            .await?;
        inner.watcher.heard(&members);
        inner.spawn(supervisor::listen(Arc::clone(&inner), messages));
        inner.spawn(supervisor::upkeep::upkeep(Arc::clone(&inner)));
        inner.spawn(membership::beat::beat(Arc::clone(&inner)));
        inner.spawn(partitions::read::read(Arc::clone(&inner)));
        inner.spawn(supervisor::attach_waiting(Arc::clone(&inner)));
        inner.spawn(takeover::take_over(Arc::clone(&inner)));
        inner.spawn(takeover::janitor(Arc::clone(&inner)));
        inner.spawn(running::call::register(Arc::clone(&inner)));
        inner.spawn(answers::deliver::try_again(Arc::clone(&inner)));
        inner.spawn(deferred_writes::run::run(Arc::clone(&inner)));
        inner.spawn(limits::take::refill(Arc::clone(&inner)));
        inner.spawn(limits::permits::enter::keep(Arc::clone(&inner)));
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
            let beat = inner
                .guarded_store
                .store
                .heartbeat(inner.id, inner.settings.ttl);
            let members = inner.guarded_store.call("beat", CALL_WITHIN, beat);
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
        Limits::new(Arc::clone(&self.inner))
    }

    /// Checks the session of a request whose id is authentic. One round trip. While the store is
    /// down, the node answers from memory for a limited time (STREAM-17.1).
    pub async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        fresh: &Fresh,
    ) -> Result<SessionState, SessionError> {
        sessions::operations::begin(&self.inner, session, principal, fresh).await
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
        if guarded_store.failing_since().is_none() && !guarded_store.store.health().is_in_doubt {
            return true;
        }
        // A small read.
        let asked = guarded_store.store.owned_by(Partition(0), None);
        let within = BEGIN_WITHIN;
        // A refusal is a reply, too.
        let said = guarded_store.call("owned_by", within, asked).await;
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
        sessions::operations::update(&self.inner, session, principal, expect, body).await
    }

    /// Ends a session on every node. `life` is the rest of its absolute life.
    pub async fn end(
        &self,
        session: SessionKey,
        principal: Principal,
        life: Duration,
    ) -> Result<(), Unavailable> {
        sessions::operations::end(&self.inner, session, principal, life).await?;
        self.inner.session_ended(session);
        Ok(())
    }

    /// Registers a request for cancellation: on this node at once, and on the other nodes if it
    /// runs longer than [`NodeSettings::register_after`]. `None` if a request with this key already
    /// runs here.
    pub fn run(
        &self,
        session: SessionKey,
        rpc: impl Into<String>,
        deadline: Duration,
    ) -> Option<Running> {
        running::call::run(&self.inner, session, rpc.into(), deadline)
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
        let routed = sessions::operations::patiently(inner, "cancel", || {
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
        let answer = ClientAnswer {
            tenant,
            session,
            principal,
            question: question.to_owned(),
            payload: sealed,
        };
        answers::deliver::give(inner, answer).await
    }

    /// Subscribes to the messages for a session whose connection is on this node, from now on.
    pub fn subscribe(&self, session: SessionKey) -> SessionMessages {
        messages::subscribe(&self.inner.session_subscribers, session, messages::QUEUE)
    }

    /// Like [`Node::subscribe`], with a queue of `capacity` messages, for a receiver of the
    /// messages of many sessions.
    pub fn subscribe_with_capacity(&self, session: SessionKey, capacity: usize) -> SessionMessages {
        messages::subscribe(&self.inner.session_subscribers, session, capacity)
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
        sessions::operations::patiently(&self.inner, "ring", || {
            self.inner
                .guarded_store
                .store
                .publish(session, node, message.clone())
        })
        .await
    }

    /// Replies to a question of [`Enquiry`](crate::enquiry::Enquiry) under the asker's key. One
    /// round trip.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn reply(&self, reply_to: SessionKey, body: Bytes) -> Result<(), Unavailable> {
        let (nonce, record) = enquiry::reply(self.inner.id, body);
        let item = StreamKey {
            session: reply_to,
            nonce,
        };
        sessions::operations::patiently(&self.inner, "reply", || {
            let store = &self.inner.guarded_store.store;
            store.put_record(item, &record)
        })
        .await
        .map(drop)
    }

    /// Opens the stream of a request that runs on this node. The reader is the request's own
    /// connection.
    pub fn open(&self, new: NewStream) -> (StreamWriter, StreamReader) {
        let inner = &self.inner;
        let connection = Arc::new(Connection::new(
            OUTBOUND,
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
        if inner.supervisor.count() >= HELD {
            return Err(Unavailable);
        }
        let began = portolan_traces::now();
        let connection = Arc::new(Connection::new(
            OUTBOUND,
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
        let leave = inner
            .guarded_store
            .store
            .heartbeat(inner.id, Duration::ZERO);
        let _ = inner
            .guarded_store
            .call_always("leave", CALL_WITHIN, leave)
            .await;
    }
}
