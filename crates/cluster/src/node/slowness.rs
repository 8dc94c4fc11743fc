//! Detects a slow or nearly full store, so that the node sends it less
//! (STREAM-17.1 *Slow Redis*, STREAM-17.2).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::time::Duration;

use super::settings::SLOW_FOR;
use crate::store::NEARLY_FULL;

/// Interval of the checks.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Latency of `begin`. Each call adds to two counters; the check runs once a second.
#[derive(Debug, Default)]
pub(super) struct Slowness {
    all: AtomicU32,
    slow: AtomicU32,
    is_slow: AtomicBool,
    is_nearly_full: AtomicBool,
}

impl Slowness {
    pub(super) fn note(&self, took: Duration, limit: Duration) {
        self.all.fetch_add(1, Ordering::Relaxed);
        if took > limit {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// Sets the used share of the store's memory, from 0 to 1.
    pub(super) fn filled(&self, used: f64) {
        let is_full = used >= NEARLY_FULL;
        if self.is_nearly_full.swap(is_full, Ordering::Relaxed) != is_full {
            if is_full {
                tracing::warn!(
                    used,
                    "the memory of the store is nearly full: this node logs less"
                );
            } else {
                tracing::info!(used, "the store has memory again");
            }
        }
    }

    /// Whether the store's memory is nearly full (STREAM-17.2).
    pub(super) fn is_full(&self) -> bool {
        self.is_nearly_full.load(Ordering::Relaxed)
    }

    /// Whether logs take no notifications for clients that are connected to this node and receive
    /// them directly (STREAM-17.1, STREAM-17.2).
    pub(super) fn sheds(&self) -> bool {
        self.is_slow() || self.is_full()
    }

    /// Evaluates the last second. `streak` counts the consecutive seconds that contradict the
    /// current view.
    pub(super) fn judge(&self, streak: &mut u32) {
        let (all, slow) = (
            self.all.swap(0, Ordering::Relaxed),
            self.slow.swap(0, Ordering::Relaxed),
        );
        // A p95 above the limit means more than one call in twenty. Without calls the store counts
        // as fast.
        let was_slow = slow.saturating_mul(20) > all;
        if was_slow == self.is_slow() {
            *streak = 0;
            return;
        }
        *streak += 1;
        if TICK * *streak >= SLOW_FOR {
            *streak = 0;
            self.is_slow.store(was_slow, Ordering::Relaxed);
            metrics::gauge!("redis_slow").set(f64::from(u8::from(was_slow)));
            if was_slow {
                tracing::warn!("the store is slow: this node asks it for less");
            } else {
                tracing::info!("the store is as fast as usual");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    fn second(slowness: &Slowness, streak: &mut u32, fast: u32, slow: u32) -> bool {
        for _ in 0..fast {
            slowness.note(LIMIT, LIMIT);
        }
        for _ in 0..slow {
            slowness.note(LIMIT + Duration::from_millis(1), LIMIT);
        }
        slowness.judge(streak);
        slowness.is_slow()
    }

    /// STREAM-17.1: p95 of `begin` > 50 ms for 5 s.
    #[test]
    fn more_than_one_slow_begin_in_twenty_for_five_seconds_is_slow_and_five_good_ones_are_not() {
        let (slowness, mut streak) = (Slowness::default(), 0);
        for _ in 0..9 {
            assert!(!second(&slowness, &mut streak, 95, 5), "p95 is 50 ms");
        }
        for _ in 0..4 {
            assert!(!second(&slowness, &mut streak, 94, 6));
        }
        assert!(
            !second(&slowness, &mut streak, 95, 5),
            "the five begin anew"
        );
        for _ in 0..4 {
            assert!(!second(&slowness, &mut streak, 94, 6));
        }
        assert!(second(&slowness, &mut streak, 94, 6));
        for _ in 0..4 {
            assert!(second(&slowness, &mut streak, 0, 0));
        }
        assert!(!second(&slowness, &mut streak, 0, 0));
    }
}
