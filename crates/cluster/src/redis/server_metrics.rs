//! Metrics of the server: its memory, and the difference between its clock and this machine's.

use std::sync::atomic::AtomicU64;

use portolan_model::{Clock, Timestamp};

use super::connection::{RedisConnection, text_of};
use crate::store::Result;

/// Time at which a command was sent, by this machine's clock.
#[derive(Debug)]
pub(super) struct Sent(Timestamp);

impl Sent {
    pub(super) fn now() -> Self {
        Self(Clock::system().now())
    }

    /// Records the server's time, in ms after the epoch. It is assumed to be taken half-way between
    /// command and reply.
    pub(super) fn answered(self, server: i64) {
        let skew = skew(self.0, Clock::system().now(), server);
        metrics::gauge!("clock_skew_seconds").set(skew);
    }
}

/// Seconds by which this machine's clock is ahead of the server's.
fn skew(sent: Timestamp, answered: Timestamp, server: i64) -> f64 {
    let on_the_way: time::Duration = answered - sent;
    let middle = sent + on_the_way / 2;
    // The server reports whole milliseconds, rounded down.
    let server = Timestamp::UNIX_EPOCH
        + time::Duration::milliseconds(server)
        + time::Duration::microseconds(500);
    let skew: time::Duration = middle - server;
    skew.as_seconds_f64()
}

/// Reads the used share of the server's memory.
pub(super) async fn used_memory(link: &RedisConnection) -> Result<Option<f64>> {
    let mut info = redis::cmd("INFO");
    info.arg("memory");
    let answer = link.send(&info, &AtomicU64::new(0)).await?;
    Ok(ratio(&text_of(answer)?))
}

/// Used share of the limit, or of the machine's memory if no limit is set.
fn ratio(info: &str) -> Option<f64> {
    let number = |name: &str| {
        info.lines()
            .filter_map(|line| line.trim().split_once(':'))
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let most = number("maxmemory")
        .filter(|most| *most > 0.0)
        .or_else(|| number("total_system_memory").filter(|most| *most > 0.0))?;
    Some(number("used_memory")? / most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_against_the_limit_or_the_machine() {
        let info = |limit: u32| {
            format!(
                "# Memory\r\nused_memory:750\r\ntotal_system_memory:3000\r\nmaxmemory:{limit}\r\n"
            )
        };
        assert_eq!(ratio(&info(1000)), Some(0.75));
        assert_eq!(ratio(&info(0)), Some(0.25));
        assert_eq!(ratio("used_memory:750\r\nmaxmemory:0\r\n"), None);
    }

    #[test]
    fn a_clock_is_ahead_by_what_is_left_after_half_the_way() {
        let at = |ms| Timestamp::UNIX_EPOCH + time::Duration::milliseconds(ms);
        assert!((skew(at(1000), at(1400), 200) - 0.9995).abs() < 1e-9);
        assert!((skew(at(1000), at(1000), 1300) + 0.3005).abs() < 1e-9);
    }
}
