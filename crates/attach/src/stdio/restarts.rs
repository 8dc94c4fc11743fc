//! The rule by which a command is started again.

use std::time::Duration;

use tokio::time::Instant;

/// Pause after the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// A process that ran for so long was stable: the pauses begin anew.
const STABLE: Duration = Duration::from_secs(60);

/// Counts failures of one command.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    failures: u32,
    not_before: Option<Instant>,
}

impl Restarts {
    /// Records that a process ended by itself. Returns the pause before the next start.
    pub(crate) fn failed(&mut self, started: Instant, now: Instant) -> Duration {
        if now.duration_since(started) >= STABLE {
            self.failures = 0;
        }
        let pause = FIRST
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + pause);
        pause
    }

    /// Time until the next start; zero if the command may be started now.
    pub(crate) fn pause(&self, now: Instant) -> Duration {
        self.not_before
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_anew_after_a_stable_time() {
        let mut restarts = Restarts::default();
        let mut now = Instant::now();
        assert_eq!(restarts.pause(now), Duration::ZERO);
        let pauses: Vec<u128> = (0..9)
            .map(|_| {
                let pause = restarts.failed(now, now);
                assert_eq!(restarts.pause(now), pause);
                now += pause;
                assert_eq!(restarts.pause(now), Duration::ZERO);
                pause.as_millis()
            })
            .collect();
        assert_eq!(
            pauses,
            [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
        );
        let started = now;
        now += Duration::from_secs(60);
        assert_eq!(restarts.failed(started, now).as_millis(), 500);
    }
}
