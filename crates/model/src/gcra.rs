//! Rate limits with the generic cell rate algorithm: one number per bucket, in integers
//! (STREAM-16.1).
//!
//! The number is the bucket's theoretical arrival time in microseconds, on any clock that the
//! caller chooses. A bucket without a number is full. The script `take_tokens.lua` of `cluster` has
//! the same arithmetic.

use std::time::Duration;

/// Limit that keeps sums within the integers that Lua numbers represent exactly (2⁵³).
const MOST_US: u64 = 1_000_000_000_000_000;

/// A rate: the time that one token stands for, and the capacity of a bucket in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gcra {
    interval_us: u64,
    burst: u64,
}

/// Tokens that a bucket is asked for, or gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request {
    /// Tokens wanted. Fewer may be granted.
    pub want: u64,
    /// Tokens that were spent without a grant. They are always taken.
    pub debt: u64,
    /// Tokens that were granted earlier and not used. They are returned first, up to the capacity
    /// of the bucket.
    pub back: u64,
}

/// Reply of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Tokens granted.
    pub granted: u64,
    /// Microseconds until one token, if none was granted; otherwise 0.
    pub wait_us: u64,
    /// The bucket's new number; `None` if it is unchanged.
    pub arrival: Option<u64>,
}

impl Gcra {
    /// A token every `interval_us` microseconds and `burst` at once, both within exact arithmetic.
    pub const fn new(interval_us: u64, burst: u64) -> Self {
        let interval_us = if interval_us == 0 {
            1
        } else if interval_us > MOST_US {
            MOST_US
        } else {
            interval_us
        };
        let rate = Self { interval_us, burst };
        Self {
            interval_us,
            burst: rate.bounded(burst),
        }
    }

    /// `burst` tokens at once, and as many again in each `per` (at most 31 years).
    pub const fn per(burst: u32, per: Duration) -> Self {
        let burst = if burst == 0 { 1 } else { burst as u64 };
        let seconds = per.as_secs().saturating_mul(1_000_000);
        let per_us = seconds.saturating_add(per.subsec_micros() as u64);
        Self::new(per_us / burst, burst)
    }

    /// Microseconds that one token stands for.
    pub const fn interval_us(self) -> u64 {
        self.interval_us
    }

    /// Capacity of a bucket in tokens.
    pub const fn burst(self) -> u64 {
        self.burst
    }

    /// A number of tokens within exact arithmetic.
    const fn bounded(self, tokens: u64) -> u64 {
        let most = MOST_US / self.interval_us;
        if tokens > most { most } else { tokens }
    }

    /// The request with numbers within exact arithmetic.
    pub const fn within(self, request: Request) -> Request {
        Request {
            want: self.bounded(request.want),
            debt: self.bounded(request.debt),
            back: self.bounded(request.back),
        }
    }

    /// Takes the available tokens of a bucket at `now`.
    pub fn take(self, arrival: Option<u64>, now: u64, request: Request) -> Taken {
        let Self { interval_us, burst } = self;
        let Request { want, debt, back } = self.within(request);
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
        Taken {
            granted,
            wait_us,
            arrival: (granted > 0 || debt > 0 || back > 0).then_some(due),
        }
    }

    /// Takes one token and returns the bucket's new number.
    ///
    /// # Errors
    /// The time until there is a token again; the bucket is unchanged.
    pub fn take_one(self, arrival: Option<u64>, now: u64) -> Result<u64, Duration> {
        let one = Request {
            want: 1,
            ..Request::default()
        };
        let taken = self.take(arrival, now, one);
        taken
            .arrival
            .ok_or_else(|| Duration::from_micros(taken.wait_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Gcra = Gcra::new(100_000, 5);
    const NOW: u64 = 1_000_000_000;

    const fn wanted(want: u64, debt: u64) -> Request {
        Request {
            want,
            debt,
            back: 0,
        }
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let first = RATE.take(None, NOW, wanted(9, 0));
        assert_eq!((first.granted, first.wait_us), (5, 0));
        let due = first.arrival;
        let refused = RATE.take(due, NOW, wanted(1, 0));
        assert_eq!(refused.arrival, None, "a refusal changes nothing");
        assert_eq!((refused.granted, refused.wait_us), (0, 100_000));
        assert_eq!(RATE.take(due, NOW + 250_000, wanted(9, 0)).granted, 2);
        let later = RATE.take(due, NOW + 10_000_000, wanted(9, 0));
        assert_eq!(later.granted, 5, "never more than the burst");
    }

    #[test]
    fn debt_is_always_taken() {
        let taken = RATE.take(None, NOW, wanted(2, 7));
        assert_eq!((taken.granted, taken.wait_us), (0, 300_000));
        let later = RATE.take(taken.arrival, NOW + 300_000, wanted(2, 0));
        assert_eq!(later.granted, 1);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_is_never_more_than_the_burst() {
        let back = |back| Request {
            back,
            ..Request::default()
        };
        let due = RATE.take(None, NOW, wanted(5, 0)).arrival;
        let due = RATE.take(due, NOW, back(2)).arrival;
        let taken = RATE.take(due, NOW, wanted(9, 0));
        assert_eq!(taken.granted, 2);
        let due = RATE.take(taken.arrival, NOW, back(1_000)).arrival;
        assert_eq!(RATE.take(due, NOW, wanted(9, 0)).granted, 5);
        let due = RATE.take(None, NOW, back(3)).arrival;
        let full = RATE.take(due, NOW, wanted(9, 0));
        assert_eq!(full.granted, 5, "of a bucket that was full");
    }

    #[test]
    fn one_token_at_a_time_is_the_same_rate() {
        let rate = Gcra::per(3, Duration::from_secs(30));
        let mut bucket = None;
        for _ in 0..3 {
            bucket = Some(rate.take_one(bucket, NOW).unwrap());
        }
        assert_eq!(rate.take_one(bucket, NOW), Err(Duration::from_secs(10)));
        assert!(rate.take_one(bucket, NOW + 9_999_999).is_err());
        bucket = Some(rate.take_one(bucket, NOW + 10_000_000).unwrap());
        assert!(rate.take_one(bucket, NOW + 10_000_000).is_err());
    }

    #[test]
    fn absurd_numbers_stay_within_exact_arithmetic() {
        let rate = Gcra::new(u64::MAX, u64::MAX);
        let absurd = Request {
            want: u64::MAX,
            debt: u64::MAX,
            back: 0,
        };
        let now = 1_800_000_000_000_000;
        let mut due = None;
        for _ in 0..5 {
            let taken = rate.take(due, now, absurd);
            assert_eq!(taken.granted, 0);
            due = taken.arrival;
            assert!(due.is_some_and(|due| due < 1 << 53));
        }
        assert_eq!(Gcra::new(0, 1).interval_us(), 1);
        assert_eq!(Gcra::per(0, Duration::MAX).burst(), 1);
    }
}
