//! Bounds of what a store keeps, and for how long (STREAM-10, STREAM-19).
//!
//! Except for the idle life of a session no operator sets them: the guarantees of streams are
//! proven for these values. Tests of stores use smaller ones.

use std::time::Duration;

/// Idle life of a session in seconds, unless an operator sets another (STREAM-3.2).
pub const SESSION_IDLE_SECS: u64 = 24 * 3600;

/// Events and bytes of a log: a client that returns within minutes misses no notification.
const EVENTS: usize = 256;
const BYTES: usize = 1024 * 1024;
/// Life of a closed log. Clients that lost their connection return sooner or not at all.
const CLOSED_FOR: Duration = Duration::from_secs(300);
/// The same while the store's memory is nearly full (STREAM-17.2).
pub(crate) const CLOSED_FOR_IF_FULL: Duration = Duration::from_secs(60);
/// Time that an open log is kept after its deadline: longer than any takeover takes.
const OPEN_GRACE: Duration = Duration::from_secs(600);
/// Events and bytes of one page. They equal the size of the queue to the client (STREAM-8), because
/// events that do not fit are read again.
const PAGE: (usize, usize) = (16, 64 * 1024);
/// Size of the largest event that a message carries, in bytes. A larger one is read by those nodes
/// whose clients want it.
pub const INLINE: usize = 4 * 1024;
/// Maximum number of running requests of a session: more than a person's client has.
const RUNNING: usize = 256;
/// Time for which a cancellation of an unknown request is kept. The time is short, because the
/// cancellation may also have come too late, and some clients reuse ids.
const TOMBSTONE: Duration = Duration::from_secs(5);
/// Maximum number of such cancellations per session (TEST-B13).
const TOMBSTONES: usize = 64;
/// Time after the deadline from which any node may take a stream over (STREAM-11 *Liveness*): its
/// owner has had several beats to end it.
const OVERDUE: Duration = Duration::from_secs(30);
/// Time for which a dead node stays in the list of members: its streams are taken over by then.
const DEAD_FOR: Duration = Duration::from_secs(600);

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
    /// Time that an open log is kept after its deadline.
    pub open_grace: Duration,
    /// Events and bytes of one reply of `attach` and `read`.
    pub page: (usize, usize),
    /// Maximum number of running requests of a session.
    pub running: usize,
    /// Idle life of a session, which an operator sets.
    pub idle: Duration,
    /// Time for which a cancellation of an unknown request is kept, in case it overtook its
    /// request.
    pub tombstone: Duration,
    /// Maximum number of such cancellations per session (TEST-B13).
    pub tombstones: usize,
    /// Time after the deadline from which any node may take a stream over from a living owner.
    pub overdue: Duration,
    /// Time for which a dead node stays in the list of members.
    pub dead_for: Duration,
}

impl Bounds {
    /// The bounds of a store in service.
    #[must_use]
    pub const fn new(session_idle: Duration) -> Self {
        Self {
            events: EVENTS,
            bytes: BYTES,
            closed_for: CLOSED_FOR,
            open_grace: OPEN_GRACE,
            page: PAGE,
            running: RUNNING,
            idle: session_idle,
            tombstone: TOMBSTONE,
            tombstones: TOMBSTONES,
            overdue: OVERDUE,
            dead_for: DEAD_FOR,
        }
    }

    /// Minimum gain for which a record's life is prolonged. Most uses of a session thus write
    /// nothing.
    pub(crate) fn touch(&self) -> Duration {
        (self.idle / 64).min(Duration::from_secs(60))
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::new(Duration::from_secs(SESSION_IDLE_SECS))
    }
}
