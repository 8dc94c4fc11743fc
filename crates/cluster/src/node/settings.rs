//! What can be set, and its defaults (`streams.md` §19.1).

use std::time::Duration;

use crate::fault::Standstill;

/// Durations and bounds of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// Between two beats.
    pub beat: Duration,
    /// Life of a beat.
    pub ttl: Duration,
    /// How long an entry must be over before its node counts as missing.
    pub suspect_after: Duration,
    /// After losing touch with the store a node suspects nobody for so long.
    pub suspect_quarantine: Duration,
    /// Between two looks at every attached stream whose owner is another node.
    pub anti_entropy: Duration,
    /// Between two looks at the streams of dead nodes.
    pub janitor: Duration,
    /// How long the reader of a partition waits for more streams to read with one call.
    pub gather: Duration,
    /// Most streams of one `read`.
    pub read_batch: usize,
    /// A request that runs longer is made known to the other nodes.
    pub register_after: Duration,
    /// The same while the store is slow.
    pub register_after_if_slow: Duration,
    /// How long the store must be slow, or fast again, to be taken for it.
    pub slow_for: Duration,
    /// How long the calls of known sessions go on while the store is down; zero to forbid.
    pub session_grace: Duration,
    /// Only sessions validated within this time have a grace.
    pub validated_within: Duration,
    /// How long other requests wait for a store that is down.
    pub redis_wait: Duration,
    /// The same for the answer to a question, which clients do not repeat; and how long one is kept whose question is not known.
    pub answer_wait: Duration,
    /// How many may wait.
    pub waiters: usize,
    /// Deadline of `begin`.
    pub begin_within: Duration,
    /// Deadline of `append`; then the writer is in outage mode.
    pub append_within: Duration,
    /// Deadline of everything else.
    pub call_within: Duration,
    /// Life of a leased token.
    pub lease_life: Duration,
    /// Between two refills.
    pub lease_tick: Duration,
    /// How long a request waits for a token; then it goes in on credit if nobody else does, or waits for the store's answer.
    pub lease_wait: Duration,
    /// How long a request waits for a place among those that are there at once; then the local share decides.
    pub place_wait: Duration,
    /// How long a connection is held for a store that is down, or a stream that may come back.
    pub hold: Duration,
    /// How long a connection stays open, and silent, after a newer one took its stream over. Not at once: two connections of one
    /// client that both come back take the stream from each other no more often than this.
    pub superseded: Duration,
    /// A client that takes nothing for so long is ended.
    pub slow_client: Duration,
    /// How long a writer keeps a finished stream's events for the audit.
    pub ring_keep: Duration,
    /// Beyond its deadline a stream may be ended by anybody.
    pub late: Duration,
    /// Between two looks for answers whose message was lost.
    pub poll_answers: Duration,
    /// Sessions kept in memory.
    pub sessions_cached: usize,
    /// Records of one principal's sessions that the store keeps; beyond that, those go that nobody uses. A tenth while the store's memory
    /// is nearly full.
    pub sessions_of_one: usize,
    /// How long a session must have been left alone for its record to go.
    pub unused_for: Duration,
    /// Events and bytes of a ring.
    pub unacked: (usize, usize),
    /// Events and bytes of one `append`.
    pub batch: (usize, usize),
    /// Frames and bytes that wait for one client.
    pub outbound: (usize, usize),
    /// Between two takeovers.
    pub takeover_pace: Duration,
    /// Connections that may be held at once.
    pub held: usize,
    /// What the node draws its random values from: `None` for the operating system. A number is for simulations: the same one leads to the
    /// same run. No secret is drawn here.
    pub seed: Option<u64>,
    /// Stops the node's tasks and lets them go on, as a signal does with a process. For simulations, which have several nodes in one.
    pub standstill: Option<Standstill>,
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
            place_wait: Duration::from_millis(250),
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
            standstill: None,
        }
    }
}
