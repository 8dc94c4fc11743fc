//! Bounds of what a store keeps, and for how long (STREAM-10, STREAM-19).

use std::time::Duration;

/// Bounds of logs (STREAM-10). The same for both implementations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of events of a log. Beyond it, notifications are dropped down to three
    /// quarters.
    pub events: usize,
    /// Maximum number of bytes of a log, with the same rule.
    pub bytes: usize,
    /// Life of a closed log.
    pub closed_for: Duration,
    /// The same while the store's memory is nearly full (STREAM-17.2).
    pub closed_for_if_full: Duration,
    /// Time that an open log is kept after its deadline.
    pub open_grace: Duration,
    /// Events and bytes of one reply of `attach` and `read`. They equal the size of the queue to
    /// the client (STREAM-8), because events that do not fit are read again.
    pub page: (usize, usize),
    /// Size of the largest event that a message carries, in bytes.
    pub inline: usize,
    /// Maximum number of running requests of a session.
    pub running: usize,
    /// Idle life of a session.
    pub idle: Duration,
    /// Time for which a cancellation of an unknown request is kept, in case it overtook its
    /// request. The time is short, because the cancellation may also have come too late, and some
    /// clients reuse ids.
    pub tombstone: Duration,
    /// Maximum number of such cancellations per session (TEST-B13).
    pub tombstones: usize,
    /// Time after the deadline from which any node may take a stream over from a living owner
    /// (STREAM-11 *Liveness*).
    pub overdue: Duration,
    /// Time for which a dead node stays in the list of members.
    pub dead_for: Duration,
}

impl Bounds {
    /// Minimum gain for which a record's life is prolonged. Most uses of a session thus write
    /// nothing.
    pub(crate) fn touch(&self) -> Duration {
        (self.idle / 64).min(Duration::from_secs(60))
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events: 256,
            bytes: 1024 * 1024,
            closed_for: Duration::from_secs(300),
            closed_for_if_full: Duration::from_secs(60),
            open_grace: Duration::from_secs(600),
            page: (16, 64 * 1024),
            inline: 4 * 1024,
            running: 256,
            idle: Duration::from_secs(24 * 3600),
            tombstone: Duration::from_secs(5),
            tombstones: 64,
            overdue: Duration::from_secs(30),
            dead_for: Duration::from_secs(600),
        }
    }
}
