//! How much a store keeps, and for how long (`streams.md` §10, §19).

use std::time::Duration;

/// Bounds of logs (§10). The same for both implementations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Events of one log before notifications are dropped down to three quarters.
    pub events: usize,
    /// Bytes of one log, likewise.
    pub bytes: usize,
    /// Life of a closed log.
    pub closed_for: Duration,
    /// The same while the store's memory is nearly full (§17.2).
    pub closed_for_if_full: Duration,
    /// What an open log lives beyond its deadline.
    pub open_grace: Duration,
    /// Events and bytes of one answer of `attach` and `read`: as much as may wait for a client (§8), because what finds no room is read again.
    pub page: (usize, usize),
    /// Largest event that a message carries.
    pub inline: usize,
    /// Running requests of a session.
    pub running: usize,
    /// Idle life of a session.
    pub idle: Duration,
    /// How long a cancellation that came first is kept: it may overtake its request by so much. Not longer, because it may also have come
    /// too late, and some clients use an id again.
    pub tombstone: Duration,
    /// Cancellations of unknown requests that a session keeps (B13).
    pub tombstones: usize,
    /// After its deadline and this time on top, anybody may take a stream over from a living owner (§11 *Liveness*).
    pub overdue: Duration,
    /// How long a node that is dead stays in the list of members.
    pub dead_for: Duration,
}

impl Bounds {
    /// A record's life is prolonged only if that gains so much: most uses of a session then write nothing.
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
