//! Settings of a node and their defaults (STREAM-19.1).

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

/// Durations and bounds of a node.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Interval of beats.
    pub beat: Duration,
    /// Life of a beat.
    pub ttl: Duration,
    /// Time by which an entry must have expired before its node counts as missing.
    pub suspect_after: Duration,
    /// Time for which a node that lost the store suspects no other node.
    pub suspect_quarantine: Duration,
    /// Interval of the reads of every attached stream whose owner is another node.
    pub anti_entropy: Duration,
    /// Interval of the reads of dead nodes' streams.
    pub janitor: Duration,
    /// Time for which a partition's reader collects streams for one read.
    pub gather: Duration,
    /// Maximum number of streams of one `read`.
    pub read_batch: usize,
    /// Running time after which a request is registered for other nodes.
    pub register_after: Duration,
    /// The same while the store is slow.
    pub register_after_if_slow: Duration,
    /// Time for which the store must be slow, or fast again, before the node changes its view.
    pub slow_for: Duration,
    /// Time for which calls of known sessions continue while the store is down. Zero forbids them.
    pub session_grace: Duration,
    /// Maximum age of a session's last check for `session_grace` to apply.
    pub validated_within: Duration,
    /// Time for which other requests wait while the store is down.
    pub redis_wait: Duration,
    /// The same for the answer to a question, because clients do not repeat it. Also the time for
    /// which an answer to an unknown question is kept.
    pub answer_wait: Duration,
    /// Maximum number of requests that wait for the store.
    pub waiters: usize,
    /// Deadline of `begin`.
    pub begin_within: Duration,
    /// Deadline of `append`, after which the writer is in outage mode.
    pub append_within: Duration,
    /// Deadline of all other operations.
    pub call_within: Duration,
    /// Life of a leased token.
    pub lease_life: Duration,
    /// Interval of refills.
    pub lease_tick: Duration,
    /// Time for which a request waits for a token. Then it is admitted on credit if no other
    /// request is, or waits for the store's reply.
    pub lease_wait: Duration,
    /// Time for which a request waits for a permit of a limit on simultaneous use. Then the node's
    /// local share decides.
    pub permit_wait: Duration,
    /// Time for which a connection is held while the store is down, or for a stream that may come
    /// back.
    pub hold: Duration,
    /// Time for which a superseded connection stays open without sending. If it closed at once, two
    /// connections of one client that both reconnect would replace each other more often.
    pub superseded: Duration,
    /// Time after which a client that reads nothing is disconnected.
    pub slow_client: Duration,
    /// Time for which a writer keeps the events of a finished stream for the audit.
    pub ring_keep: Duration,
    /// Time after its deadline from which any node may end a stream.
    pub late: Duration,
    /// Interval of the reads of answers whose message was lost.
    pub poll_answers: Duration,
    /// Maximum number of sessions in the cache.
    pub sessions_cached: usize,
    /// Maximum number of session records of one principal in the store. Beyond it, idle records are
    /// removed. A tenth applies while the store's memory is nearly full.
    pub sessions_of_one: usize,
    /// Minimum idle time of a session before its record is removed.
    pub unused_for: Duration,
    /// Events and bytes of an `UnackedBuffer`.
    pub unacked: (usize, usize),
    /// Events and bytes of one `append`.
    pub batch: (usize, usize),
    /// Frames and bytes of the queue to one client.
    pub outbound: (usize, usize),
    /// Minimum interval of takeovers.
    pub takeover_pace: Duration,
    /// Maximum number of held connections.
    pub held: usize,
    /// Seed of the node's random values; `None` uses the operating system. A seed is for
    /// simulations: the same seed leads to the same run. These values are not secret.
    pub seed: Option<u64>,
    /// Wraps each task of the node. A simulation suspends the tasks of one node with it, as a
    /// signal suspends a process.
    pub task_wrapper: Option<TaskWrapper>,
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

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            beat: Duration::from_millis(1500),
            ttl: Duration::from_secs(6),
            suspect_after: Duration::from_secs(1),
            suspect_quarantine: Duration::from_secs(12),
            anti_entropy: Duration::from_secs(5),
            janitor: Duration::from_secs(5),
            gather: Duration::from_millis(2),
            read_batch: 128,
            register_after: Duration::from_millis(25),
            register_after_if_slow: Duration::from_millis(250),
            slow_for: Duration::from_secs(5),
            session_grace: Duration::from_secs(30),
            validated_within: Duration::from_secs(60),
            redis_wait: Duration::from_secs(2),
            answer_wait: Duration::from_secs(20),
            waiters: 1000,
            begin_within: Duration::from_millis(250),
            append_within: Duration::from_secs(1),
            call_within: Duration::from_secs(1),
            lease_life: Duration::from_secs(1),
            lease_tick: Duration::from_millis(10),
            lease_wait: Duration::from_millis(25),
            permit_wait: Duration::from_millis(250),
            hold: Duration::from_secs(60),
            superseded: Duration::from_secs(4),
            slow_client: Duration::from_secs(60),
            ring_keep: Duration::from_secs(30),
            late: Duration::from_secs(30),
            poll_answers: Duration::from_secs(2),
            sessions_cached: 100_000,
            sessions_of_one: 200,
            unused_for: Duration::from_secs(600),
            unacked: (256, 1024 * 1024),
            batch: (32, 64 * 1024),
            outbound: (16, 64 * 1024),
            takeover_pace: Duration::from_millis(2),
            held: 20_000,
            seed: None,
            task_wrapper: None,
        }
    }
}
