//! State of a node, which its tasks share.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use tokio::time::{Duration, Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    answers::Answers,
    by_session::BySession,
    deferred_writes::DeferredWrites,
    guarded_store::GuardedStore,
    limits::{Buckets, permits::Concurrency},
    membership::Watcher,
    messages::SessionSubscribers,
    partitions::Partitions,
    payload::{PayloadPlace, Payloads},
    questions::Questions,
    reader::{Connection, Phase},
    running::RunningCalls,
    sessions::KnownSessions,
    settings::{NodeSettings, REGISTER_AFTER_IF_SLOW, SUSPECT_QUARANTINE, TaskWrapper},
    stream_metrics::StreamMetrics,
    supervisor::held::Supervisor,
    takeover::claims::Takeovers,
    writer::state::WriterState,
};
use crate::{
    lock,
    rng::NodeRng,
    spawn,
    store::{Event, NodeId},
};

/// Time after a roll-back or an outage of the store for which a missing stream may still be made by
/// its owner. The owner needs one beat to notice, one call to check, and one call to write.
const COMES_BACK: Duration = Duration::from_secs(5);

pub(crate) struct Inner {
    pub(super) id: NodeId,
    pub(super) settings: NodeSettings,
    pub(super) rng: NodeRng,
    pub(super) guarded_store: GuardedStore,
    pub(super) payloads: Arc<dyn Payloads>,
    pub(super) tracker: TaskTracker,
    pub(super) stop: CancellationToken,
    /// Cancelled when the node has left the members.
    pub(super) left: CancellationToken,
    pub(super) sessions: KnownSessions,
    pub(super) running: RunningCalls,
    pub(super) questions: Questions,
    pub(super) answers: Answers,
    pub(super) session_subscribers: Arc<SessionSubscribers>,
    pub(super) connections: BySession<Arc<Connection>>,
    pub(super) writers: BySession<Arc<WriterState>>,
    pub(super) partitions: Partitions,
    pub(super) supervisor: Supervisor,
    pub(super) takeovers: Takeovers,
    pub(super) deferred_writes: DeferredWrites,
    pub(super) watcher: Watcher,
    pub(super) buckets: Buckets,
    pub(super) concurrency: Concurrency,
    pub(super) stream_metrics: StreamMetrics,
    pub(super) settled: Mutex<Settled>,
}

/// Time at which the store last lost data, as far as this node knows.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) incarnation: u64,
    pub(super) rolled_back: Option<Instant>,
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
    pub(super) fn opened(&self, connection: &Connection, event: &Event) -> Option<Bytes> {
        let Connection { tenant, stream, .. } = *connection;
        let place = PayloadPlace::event(tenant, stream, event.seq, event.class);
        self.payloads.open(&place, event.payload.clone())
    }

    /// Starts a task of this node.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.settings.task_wrapper {
            None => spawn(&self.tracker, task),
            Some(TaskWrapper(wrap)) => spawn(&self.tracker, wrap(Box::pin(task))),
        }
    }

    /// Number of nodes that share a limit.
    pub(super) fn nodes(&self) -> u64 {
        self.watcher.members.borrow().count()
    }

    /// Number of nodes for prefetching. While the store is slow the number is huge, so that no
    /// node's share of a bucket is worth a prefetch (STREAM-17.1).
    pub(super) fn sharers(&self) -> u64 {
        if self.guarded_store.slowness.is_slow() {
            u64::MAX / 4
        } else {
            self.nodes()
        }
    }

    /// Whether the owner may still make, or make again, a stream that the store does not know. A
    /// wrong "no" gives the returning client an error (-32011). A wrong "yes" makes it wait.
    pub(super) fn may_come_back(&self, connection: &Connection) -> bool {
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
                        .is_none_or(|since| since.elapsed() < SUSPECT_QUARANTINE)
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
    pub(super) fn rolled_back(&self) -> Option<Instant> {
        let incarnation = *self.guarded_store.store.health().incarnation.borrow();
        let mut settled = lock(&self.settled);
        if settled.incarnation != incarnation {
            settled.incarnation = incarnation;
            settled.rolled_back = Some(Instant::now());
        }
        settled.rolled_back
    }

    /// Interval of anti-entropy, doubled while the store is slow.
    pub(super) fn anti_entropy(&self) -> Duration {
        self.settings.anti_entropy
            * if self.guarded_store.slowness.is_slow() {
                2
            } else {
                1
            }
    }

    /// Running time after which a request is registered for other nodes.
    pub(super) fn register_after(&self) -> Duration {
        if self.guarded_store.slowness.is_slow() {
            REGISTER_AFTER_IF_SLOW
        } else {
            self.settings.register_after
        }
    }
}
