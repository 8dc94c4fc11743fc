//! Rate limits with the generic cell rate algorithm, one number per bucket (STREAM-16.1).
//! The script `lease.lua` has the same arithmetic.

use std::time::Duration;

use crate::store::{Lease, LeaseWanted};

/// Limit that keeps sums within the integers that Lua numbers represent exactly (2⁵³).
const MOST_US: u64 = 1_000_000_000_000_000;

/// Request for tokens of a bucket, within bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) interval_us: u64,
    pub(crate) burst: u64,
    pub(crate) want: u64,
    pub(crate) debt: u64,
    pub(crate) back: u64,
}

impl From<&LeaseWanted> for Wanted {
    fn from(wanted: &LeaseWanted) -> Self {
        let interval_us = wanted.interval_us.clamp(1, MOST_US);
        let most = MOST_US / interval_us;
        Self {
            interval_us,
            burst: wanted.burst.min(most),
            want: wanted.want.min(most),
            debt: wanted.debt.min(most),
            back: wanted.back.min(most),
        }
    }
}

/// Takes the available tokens. `arrival` is the bucket's theoretical arrival time in microseconds.
/// Returns the new one, or `None` if it is unchanged.
pub(crate) fn take(arrival: Option<u64>, now: u64, wanted: Wanted) -> (Option<u64>, Lease) {
    let Wanted {
        interval_us,
        burst,
        want,
        debt,
        back,
    } = wanted;
    let due = (arrival.unwrap_or(now).max(now) + debt * interval_us)
        .saturating_sub(back * interval_us)
        .clamp(now, now + 2 * MOST_US);
    let room = (now + burst * interval_us).saturating_sub(due) / interval_us;
    let granted = want.min(room);
    let due = due + granted * interval_us;
    let wait_us = if granted == 0 {
        (due + interval_us).saturating_sub(now + burst * interval_us)
    } else {
        0
    };
    let lease = Lease {
        granted,
        wait: Duration::from_millis(wait_us.div_ceil(1000)),
    };
    ((granted > 0 || debt > 0 || back > 0).then_some(due), lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wanted(want: u64, debt: u64) -> Wanted {
        Wanted {
            interval_us: 100_000,
            burst: 5,
            want,
            debt,
            back: 0,
        }
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let now = 1_000_000_000;
        let (due, lease) = take(None, now, wanted(9, 0));
        assert_eq!((lease.granted, lease.wait), (5, Duration::ZERO));
        let (same, lease) = take(due, now, wanted(1, 0));
        assert_eq!(same, None, "a refusal changes nothing");
        assert_eq!((lease.granted, lease.wait), (0, Duration::from_millis(100)));
        let (_, lease) = take(due, now + 250_000, wanted(9, 0));
        assert_eq!(lease.granted, 2);
        let (_, lease) = take(due, now + 10_000_000, wanted(9, 0));
        assert_eq!(lease.granted, 5, "never more than the burst");
    }

    #[test]
    fn debt_is_always_taken() {
        let now = 1_000_000_000;
        let (due, lease) = take(None, now, wanted(2, 7));
        assert_eq!(lease.granted, 0);
        assert_eq!(lease.wait, Duration::from_millis(300));
        let (_, lease) = take(due, now + 300_000, wanted(2, 0));
        assert_eq!(lease.granted, 1);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_is_never_more_than_the_burst() {
        let now = 1_000_000_000;
        let back = |back| Wanted {
            back,
            ..wanted(0, 0)
        };
        let (due, _) = take(None, now, wanted(5, 0));
        let (due, _) = take(due, now, back(2));
        let (due, lease) = take(due, now, wanted(9, 0));
        assert_eq!(lease.granted, 2);
        let (due, _) = take(due, now, back(1_000));
        let (_, lease) = take(due, now, wanted(9, 0));
        assert_eq!(lease.granted, 5);
        let (due, _) = take(None, now, back(3));
        let (_, lease) = take(due, now, wanted(9, 0));
        assert_eq!(lease.granted, 5, "of a bucket that was full");
    }

    #[test]
    fn absurd_numbers_stay_within_exact_arithmetic() {
        let absurd = LeaseWanted {
            shard: String::new(),
            bucket: String::new(),
            interval_us: u64::MAX,
            burst: u64::MAX,
            want: u64::MAX,
            debt: u64::MAX,
            back: 0,
        };
        let now = 1_800_000_000_000_000;
        let mut due = None;
        for _ in 0..5 {
            let (next, lease) = take(due, now, Wanted::from(&absurd));
            assert_eq!(lease.granted, 0);
            due = next;
            assert!(due.is_some_and(|due| due < 1 << 53));
        }
    }
}
