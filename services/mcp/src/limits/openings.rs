//! The turns of clients that open streams (STREAM-17.6).

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::limits::PACED_FOR;

/// Whether a client opens a new stream, or comes back for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// The client has no such stream: it may be refused.
    New,
    /// The client lost its stream: it waits, and is not refused (REVIEW-F1).
    Resumed,
}

/// Spreads clients that open streams: a rate a second, and a limit on waiting clients.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    apart: Duration,
    most_waiting: usize,
    waiting: AtomicUsize,
    next: Mutex<Option<Instant>>,
}

impl RateLimiter {
    pub(crate) fn new(a_second: u32, most_waiting: usize) -> Self {
        Self {
            apart: Duration::from_secs(1) / a_second.max(1),
            most_waiting,
            waiting: AtomicUsize::new(0),
            next: Mutex::default(),
        }
    }

    /// Waits for the next turn. `false`: too many clients wait, and this one is new.
    pub(crate) async fn turn(&self, start: StreamStart) -> bool {
        let now = Instant::now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            // No client waits for more than 5 s, so no turn is later than that.
            let at = next.unwrap_or(now).clamp(now, now + PACED_FOR);
            let is_full = self.waiting.load(Ordering::Acquire) >= self.most_waiting;
            if at > now && is_full && start == StreamStart::New {
                return false;
            }
            *next = Some(at + self.apart);
            at
        };
        if at > now {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            let _waits = Waits(&self.waiting);
            tokio::time::sleep_until(at).await;
        }
        true
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream::FuturesUnordered};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_16_3_who_comes_for_a_stream_is_spread_over_five_seconds_and_then_refused() {
        let openings = RateLimiter::new(100, 700);
        let start = Instant::now();
        let mut turns: FuturesUnordered<_> = (0..900)
            .map(|_| async { (openings.turn(StreamStart::New).await, start.elapsed()) })
            .collect();
        let mut admitted = Vec::new();
        let mut refused = 0;
        while let Some((is_admitted, at)) = turns.next().await {
            if is_admitted {
                admitted.push(at);
            } else {
                refused += 1;
            }
        }
        assert_eq!((admitted.len(), refused), (701, 199), "one had not to wait");
        for second in 0..5 {
            let from = Duration::from_secs(second);
            let until = from + Duration::from_secs(1);
            let count = admitted
                .iter()
                .filter(|at| **at >= from && **at < until)
                .count();
            assert!((99..=101).contains(&count), "second {second}: {count}");
        }
        assert!(
            admitted
                .iter()
                .all(|at| *at <= Duration::from_millis(5_010))
        );
        assert_eq!(openings.waiting.load(Ordering::Relaxed), 0);
    }

    /// REVIEW-F1: a client that comes back for a stream waits, however many wait already.
    #[tokio::test(start_paused = true)]
    async fn f1_who_comes_back_for_a_stream_waits_and_is_never_refused() {
        let openings = RateLimiter::new(100, 0);
        let start = Instant::now();
        assert!(
            openings.turn(StreamStart::New).await,
            "the first one waits for nothing"
        );
        assert!(
            !openings.turn(StreamStart::New).await,
            "there is no place to wait"
        );
        let mut turns: FuturesUnordered<_> = (0..900)
            .map(|_| openings.turn(StreamStart::Resumed))
            .collect();
        while let Some(has_turn) = turns.next().await {
            assert!(has_turn);
        }
        assert!(start.elapsed() <= Duration::from_millis(5_010));
    }
}
