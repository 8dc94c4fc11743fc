//! Circuit breaker for a store that does not reply (STREAM-17.1).

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// Number of consecutive failures that opens the breaker.
const IN_A_ROW: u32 = 5;
/// Window in which a majority of failures opens the breaker.
const WINDOW: Duration = Duration::from_secs(2);
/// Minimum number of calls in the window for that rule.
const FEWEST: usize = 10;
/// Interval at which one call probes an open breaker.
const PROBE: Duration = Duration::from_millis(250);
/// Minimum duration of an outage after which the node reads everything again.
const NOTABLE: Duration = Duration::from_secs(1);

/// State machine of the breaker. The caller passes the time in.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    open_since: Option<Instant>,
    /// Time of the first failure since the last success.
    failing_since: Option<Instant>,
    next_probe: Option<Instant>,
    in_a_row: u32,
    recent: VecDeque<(Instant, bool)>,
}

impl Breaker {
    /// Whether a call may be made now.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        if self.open_since.is_none() {
            return true;
        }
        if self.next_probe.is_some_and(|at| now < at) {
            return false;
        }
        self.next_probe = Some(now + PROBE);
        true
    }

    /// Records a reply. Returns true if the outage was long enough that messages may have been
    /// missed.
    pub(super) fn success(&mut self, now: Instant) -> bool {
        let was_away = self.open_since.is_some()
            || self
                .failing_since
                .is_some_and(|since| now.duration_since(since) >= NOTABLE);
        if self.open_since.take().is_some() {
            self.recent.clear();
        }
        self.failing_since = None;
        self.in_a_row = 0;
        // Successes are counted only while failures are in the window, so a healthy store needs no
        // counting.
        if !self.recent.is_empty() {
            self.note(now, true);
        }
        was_away
    }

    /// Records a call without a reply.
    pub(super) fn failure(&mut self, now: Instant) {
        self.failing_since.get_or_insert(now);
        self.in_a_row += 1;
        self.note(now, false);
        let failed = self.recent.iter().filter(|(_, good)| !good).count();
        let most_failed = self.recent.len() >= FEWEST && failed * 2 > self.recent.len();
        if self.open_since.is_none() && (self.in_a_row >= IN_A_ROW || most_failed) {
            self.open_since = Some(now);
            self.next_probe = Some(now + PROBE);
        }
    }

    /// Whether nothing failed within the window.
    pub(super) fn is_quiet(&self) -> bool {
        self.open_since.is_none() && self.recent.iter().all(|(_, good)| *good)
    }

    fn note(&mut self, now: Instant, good: bool) {
        while self
            .recent
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) > WINDOW)
            || self.recent.len() >= 1024
        {
            self.recent.pop_front();
        }
        self.recent.push_back((now, good));
    }

    pub(super) fn is_open(&self) -> bool {
        self.open_since.is_some()
    }

    /// Time of the first failure since the last success.
    pub(super) fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_open_it_and_one_probe_every_quarter_second_closes_it() {
        let mut breaker = Breaker::default();
        let start = Instant::now();
        for _ in 0..4 {
            breaker.failure(start);
        }
        assert!(!breaker.is_open() && breaker.admit(start));
        breaker.failure(start);
        assert!(breaker.is_open() && !breaker.admit(start));
        let probe = start + PROBE;
        assert!(breaker.admit(probe));
        assert!(!breaker.admit(probe), "one at a time");
        assert!(breaker.success(probe), "it was away");
        assert!(breaker.admit(probe));
        assert!(!breaker.success(probe));
    }

    #[test]
    fn more_failures_than_successes_within_two_seconds_open_it() {
        let mut breaker = Breaker::default();
        let start = Instant::now();
        for _ in 0..4 {
            breaker.failure(start);
            breaker.success(start);
        }
        breaker.failure(start);
        assert!(!breaker.is_open(), "too few to tell");
        breaker.failure(start);
        assert!(breaker.is_open(), "6 of 10");
    }

    #[test]
    fn old_failures_do_not_count() {
        let mut breaker = Breaker::default();
        let start = Instant::now();
        for _ in 0..4 {
            breaker.failure(start);
            breaker.failure(start);
            breaker.success(start);
        }
        let mut fresh = Breaker::default();
        for second in 0..12 {
            let now = start + Duration::from_secs(3 * second);
            fresh.failure(now);
            fresh.success(now);
            assert!(!fresh.is_open());
        }
    }
}
