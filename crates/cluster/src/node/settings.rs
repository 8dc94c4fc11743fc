//! Times and bounds of a node (STREAM-19.1).
//!
//! The guarantees of streams are proven for these values, so no operator sets them: they are
//! constants. [`NodeSettings`] has what an operator sets, and what tests shorten or stretch.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use crate::config::ClusterConfig;

/// Interval of beats. Four fit into the life of one, so three lost beats do no harm.
const BEAT: Duration = Duration::from_millis(1500);
/// Life of a beat.
const TTL: Duration = Duration::from_secs(6);
/// Time by which an entry must have expired before its node counts as missing. A beat may be on its
/// way for as long as an operation may take.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// Time for which a node that lost the store suspects no other node. It is two lives of a beat: the
/// others lost the store too, and send beats again in that time.
pub(super) const SUSPECT_QUARANTINE: Duration = Duration::from_secs(12);
/// Interval of the reads of every attached stream whose owner is another node. It bounds the effect
/// of a lost message.
const ANTI_ENTROPY: Duration = Duration::from_secs(5);
/// Interval of the reads of dead nodes' streams.
const JANITOR: Duration = Duration::from_secs(5);
/// Time for which a partition's reader collects streams for one read. A timer is no finer than a
/// millisecond.
const GATHER: Duration = Duration::from_millis(2);
/// Maximum number of streams of one `read`. It bounds the time for which a script holds its Redis.
pub(super) const READ_BATCH: usize = 128;
/// Running time after which a request is registered for other nodes. Most calls are shorter.
const REGISTER_AFTER: Duration = Duration::from_millis(25);
/// The same while the store is slow, so that a slow store gets fewer operations.
pub(super) const REGISTER_AFTER_IF_SLOW: Duration = Duration::from_millis(250);
/// Time for which the store must be slow, or fast again, before the node changes its view. A
/// Redis that starts a snapshot is slow for less.
pub(super) const SLOW_FOR: Duration = Duration::from_secs(5);
/// Maximum age of a session's last check for the grace of an outage to apply.
pub(super) const VALIDATED_WITHIN: Duration = Duration::from_secs(60);
/// Time for which other requests wait while the store is down. Clients repeat them, so it is short.
pub(super) const REDIS_WAIT: Duration = Duration::from_secs(2);
/// The same for the answer to a question, because clients do not repeat it. Also the time for
/// which an answer to an unknown question is kept.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Maximum number of requests that wait for the store. Each holds its body in memory.
pub(super) const WAITERS: usize = 1000;
/// Deadline of `begin`: a known session goes on without the store after it.
pub(super) const BEGIN_WITHIN: Duration = Duration::from_millis(250);
/// Deadline of `append`, after which the writer is in outage mode.
pub(super) const APPEND_WITHIN: Duration = Duration::from_secs(1);
/// Deadline of all other operations. A healthy Redis needs about a millisecond.
pub(super) const CALL_WITHIN: Duration = Duration::from_secs(1);
/// Life of a leased token: the error of a limit is at most the rate of one second.
pub(super) const LEASE_LIFE: Duration = Duration::from_secs(1);
/// Interval of refills. One operation serves all requests of that time.
pub(super) const LEASE_TICK: Duration = Duration::from_millis(10);
/// Time for which a request waits for a token. Then it is admitted on credit if no other request
/// is, or waits for the store's reply.
pub(super) const LEASE_WAIT: Duration = Duration::from_millis(25);
/// Time for which a request waits for a permit of a limit on simultaneous use. Then the node's
/// local share decides.
pub(super) const PERMIT_WAIT: Duration = Duration::from_millis(250);
/// Time for which a connection is held while the store is down, or for a stream that may come
/// back. Clients and balancers give a silent connection up after about a minute.
pub(super) const HOLD: Duration = Duration::from_secs(60);
/// Time for which a superseded connection stays open without sending. If it closed at once, two
/// connections of one client that both reconnect would replace each other more often.
pub(super) const SUPERSEDED: Duration = Duration::from_secs(4);
/// Time after which a client that reads nothing is disconnected. It can resume.
pub(super) const SLOW_CLIENT: Duration = Duration::from_secs(60);
/// Time for which a writer keeps the events of a finished stream for the audit: longer than a
/// failover that loses writes, and its notice.
pub(super) const UNACKED_KEEP: Duration = Duration::from_secs(30);
/// Time after its deadline from which any node may end a stream.
pub(super) const LATE: Duration = Duration::from_secs(30);
/// Interval of the reads of answers whose message was lost.
const POLL_ANSWERS: Duration = Duration::from_secs(2);
/// Maximum number of sessions in the cache. One that is not in it costs no round trip more.
const SESSIONS_CACHED: usize = 100_000;
/// Minimum idle time of a session before its record is removed: longer than a person's pause
/// between two calls, so that its next call finds the record.
const UNUSED_FOR: Duration = Duration::from_secs(600);
/// Events and bytes of an `UnackedBuffer`: as many as the log of a stream holds.
const UNACKED: (usize, usize) = (256, 1024 * 1024);
/// Events and bytes of one `append`. They bound the time for which a script holds its Redis.
pub(super) const BATCH: (usize, usize) = (32, 64 * 1024);
/// Frames and bytes of the queue to one client. They equal the page of a read: events that do not
/// fit are read again.
pub(super) const OUTBOUND: (usize, usize) = (16, 64 * 1024);
/// Minimum interval of takeovers. The streams of a dead node are thousands, and its Redis serves
/// calls meanwhile.
const TAKEOVER_PACE: Duration = Duration::from_millis(2);
/// Maximum number of held connections: half of those that a listener accepts.
pub(super) const HELD: usize = 20_000;

/// Settings of operators, and values that tests change.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Time for which calls of known sessions continue while the store is down. Zero forbids them.
    pub session_grace: Duration,
    /// Maximum number of session records of one principal in the store. Beyond it, idle records are
    /// removed. A tenth applies while the store's memory is nearly full.
    pub sessions_of_one: usize,
    /// Interval of beats.
    pub beat: Duration,
    /// Life of a beat.
    pub ttl: Duration,
    /// Time by which an entry must have expired before its node counts as missing.
    pub suspect_after: Duration,
    /// Interval of the reads of every attached stream whose owner is another node.
    pub anti_entropy: Duration,
    /// Interval of the reads of dead nodes' streams.
    pub janitor: Duration,
    /// Time for which a partition's reader collects streams for one read.
    pub gather: Duration,
    /// Running time after which a request is registered for other nodes.
    pub register_after: Duration,
    /// Interval of the reads of answers whose message was lost.
    pub poll_answers: Duration,
    /// Maximum number of sessions in the cache.
    pub sessions_cached: usize,
    /// Minimum idle time of a session before its record is removed.
    pub unused_for: Duration,
    /// Events and bytes of an `UnackedBuffer`.
    pub unacked: (usize, usize),
    /// Minimum interval of takeovers.
    pub takeover_pace: Duration,
    /// Seed of the node's random values; `None` uses the operating system. A seed is for
    /// simulations: the same seed leads to the same run. These values are not secret.
    pub seed: Option<u64>,
    /// Wraps each task of the node. A simulation suspends the tasks of one node with it, as a
    /// signal suspends a process.
    pub task_wrapper: Option<TaskWrapper>,
}

impl NodeSettings {
    /// The settings of a node in service.
    pub fn new(config: &ClusterConfig) -> Self {
        Self {
            session_grace: Duration::from_secs(config.session_grace_secs),
            sessions_of_one: config.sessions_per_caller,
            beat: BEAT,
            ttl: TTL,
            suspect_after: SUSPECT_AFTER,
            anti_entropy: ANTI_ENTROPY,
            janitor: JANITOR,
            gather: GATHER,
            register_after: REGISTER_AFTER,
            poll_answers: POLL_ANSWERS,
            sessions_cached: SESSIONS_CACHED,
            unused_for: UNUSED_FOR,
            unacked: UNACKED,
            takeover_pace: TAKEOVER_PACE,
            seed: None,
            task_wrapper: None,
        }
    }
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self::new(&ClusterConfig::default())
    }
}

/// Function over the future of a task.
#[derive(Clone)]
pub struct TaskWrapper(pub Arc<dyn Fn(TaskFuture) -> TaskFuture + Send + Sync>);

/// Future of a task.
type TaskFuture = BoxFuture<'static, ()>;

impl fmt::Debug for TaskWrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWrapper").finish_non_exhaustive()
    }
}
