//! Time is handed in, so that every expiry can be tested.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::SystemTime,
};

use time::{Duration, OffsetDateTime};

/// A point in time, UTC.
pub type Timestamp = OffsetDateTime;

/// Reads the time: the system's, or one that a test moves by hand. Cheap to clone; all clones share
/// the same time.
#[derive(Debug, Clone)]
pub struct Clock(ClockSource);

#[derive(Clone)]
enum ClockSource {
    System,
    /// Microseconds since the epoch.
    Test(Arc<AtomicI64>),
    /// A function that returns them.
    Other(Arc<dyn Fn() -> i64 + Send + Sync>),
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Test(_) => "Test",
            Self::Other(_) => "Other",
        })
    }
}

impl Clock {
    /// The machine's clock.
    pub const fn system() -> Self {
        Self(ClockSource::System)
    }

    /// A clock that stands at `at` until [`Clock::advance`] moves it.
    pub fn test(at: Timestamp) -> Self {
        Self(ClockSource::Test(Arc::new(AtomicI64::new(micros(at)))))
    }

    /// A clock that shows what another one shows, in microseconds since the epoch: a simulation has
    /// a time of its own.
    pub fn following(micros: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(ClockSource::Other(Arc::new(micros)))
    }

    /// The present time, with the resolution of Postgres (microseconds), so that a value survives a
    /// round trip.
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
            ClockSource::System => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok()
                .and_then(|since| i64::try_from(since.as_micros()).ok())
                .unwrap_or_default(),
            ClockSource::Test(at) => at.load(Ordering::SeqCst),
            ClockSource::Other(micros) => micros(),
        }
    }

    /// Moves a test clock. Does nothing on other clocks.
    pub fn advance(&self, by: Duration) {
        if let ClockSource::Test(at) = &self.0 {
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

    #[test]
    fn a_clock_that_follows_another_shows_its_time() {
        let other = Arc::new(AtomicI64::new(5_000_000));
        let shown = Arc::clone(&other);
        let clock = Clock::following(move || shown.load(Ordering::SeqCst));
        clock.advance(Duration::seconds(90));
        assert_eq!(
            clock.now(),
            OffsetDateTime::UNIX_EPOCH + Duration::seconds(5)
        );
        other.store(7_000_000, Ordering::SeqCst);
        assert_eq!(clock.unix_micros(), 7_000_000);
    }
}
