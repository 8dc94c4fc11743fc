//! Rate limit of the traces that clients request: a number per second, with a burst of one second's
//! worth.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use portolan_model::Gcra;

#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
    /// `None`: there are none.
    rate: Option<Gcra>,
    /// The bucket's number, in microseconds after `began`.
    arrival: AtomicU64,
}

impl Pace {
    pub(crate) fn new(a_second: u32) -> Self {
        Self {
            began: Instant::now(),
            rate: (a_second > 0).then(|| Gcra::per(a_second, Duration::from_secs(1))),
            arrival: AtomicU64::new(0),
        }
    }

    /// Whether there may be one more now. If so, it counts.
    pub(crate) fn admits(&self) -> bool {
        self.admits_at(self.began.elapsed())
    }

    fn admits_at(&self, since: Duration) -> bool {
        let Some(rate) = self.rate else {
            return false;
        };
        let now = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        self.arrival
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |arrival| {
                rate.take_one(Some(arrival), now).ok()
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seconds_worth_comes_at_once_and_never_more_than_that_beyond_the_rate() {
        let pace = Pace::new(10);
        let mut admitted = 0;
        // A thousand a second, for three seconds.
        for millis in 0..3_000 {
            admitted += u32::from(pace.admits_at(Duration::from_millis(millis)));
        }
        assert_eq!(admitted, 10 + 29);
        // A pause allows the spans of one second, and no more.
        let later = Duration::from_secs(60);
        assert_eq!((0..50).filter(|_| pace.admits_at(later)).count(), 10);
    }

    #[test]
    fn none_a_second_is_none_at_all() {
        let pace = Pace::new(0);
        assert!((0..10).all(|second| !pace.admits_at(Duration::from_secs(second))));
    }
}
