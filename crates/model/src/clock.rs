//! Time is handed in, so that every expiry can be tested.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::SystemTime,
};

use time::{Duration, OffsetDateTime};

/// A point in time, UTC.
pub type Timestamp = OffsetDateTime;

/// Tells the time: the system's, or one that a test moves by hand. Cheap to clone; clones tell the same time.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    /// Microseconds since the epoch.
    Test(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `at` until [`Clock::advance`] moves it.
    pub fn test(at: Timestamp) -> Self {
        Self(Source::Test(Arc::new(AtomicI64::new(micros(at)))))
    }

    /// The present time, with the resolution of Postgres (microseconds), so that a value survives a round trip.
    pub fn now(&self) -> Timestamp {
        OffsetDateTime::UNIX_EPOCH + Duration::microseconds(self.unix_micros())
    }

    /// The same as microseconds since the epoch, without a calendar.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that others take"
    )]
    pub fn unix_micros(&self) -> i64 {
        match &self.0 {
            Source::System => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok()
                .and_then(|since| i64::try_from(since.as_micros()).ok())
                .unwrap_or_default(),
            Source::Test(at) => at.load(Ordering::SeqCst),
        }
    }

    /// Moves a test clock. The system's clock does not move for anybody: there this does nothing.
    pub fn advance(&self, by: Duration) {
        if let Source::Test(at) = &self.0 {
            at.fetch_add(
                i64::try_from(by.whole_microseconds()).unwrap_or(i64::MAX),
                Ordering::SeqCst,
            );
        }
    }
}

fn micros(at: Timestamp) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_clock_moves_only_by_hand() {
        let clock = Clock::test(OffsetDateTime::UNIX_EPOCH);
        let twin = clock.clone();
        clock.advance(Duration::seconds(90));
        assert_eq!(
            twin.now(),
            OffsetDateTime::UNIX_EPOCH + Duration::seconds(90)
        );
        assert_eq!(twin.unix_micros(), 90_000_000);
    }
}
