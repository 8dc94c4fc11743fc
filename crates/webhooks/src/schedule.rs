//! When a failed delivery is tried again (HOOK-8).

use portolan_keys::random;
use portolan_model::Timestamp;
use time::{Duration, format_description::well_known::Rfc2822};

/// Pauses after the first attempt, the second, and so on.
const PAUSES: [Duration; 7] = [
    Duration::seconds(5),
    Duration::minutes(5),
    Duration::minutes(30),
    Duration::hours(2),
    Duration::hours(5),
    Duration::hours(10),
    Duration::hours(10),
];

/// The longest `Retry-After` that is honoured; a longer one counts as this.
const LONGEST_RETRY_AFTER: Duration = Duration::hours(6);

/// The time of the next attempt, `None` at the end of the schedule. `tries` counts the attempts of
/// this round, from 1. The pause varies by ± 20 %, so that receivers that come back are not met by
/// all deliveries at once. A `Retry-After` makes it longer, never shorter.
pub fn next_attempt(
    tries: i32,
    retry_after: Option<Duration>,
    now: Timestamp,
) -> Option<Timestamp> {
    let part = random::bytes::<1>().map_or(128, |[byte]| byte);
    next_with(tries, retry_after, part, now)
}

fn next_with(
    tries: i32,
    retry_after: Option<Duration>,
    part: u8,
    now: Timestamp,
) -> Option<Timestamp> {
    let place = usize::try_from(tries).ok()?.checked_sub(1)?;
    let pause = PAUSES.get(place)?;
    let varied: Duration =
        *pause * 4_i32 / 5_i32 + *pause * 2_i32 / 5_i32 * i32::from(part) / 255_i32;
    let asked = retry_after.map_or(Duration::ZERO, |asked| asked.min(LONGEST_RETRY_AFTER));
    Some(now + varied.max(asked))
}

/// Reads `Retry-After`: seconds, or an HTTP date (RFC 9110 §10.2.3).
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => Duration::seconds(seconds.into()),
        Err(_) => Timestamp::parse(text, &Rfc2822).ok()? - now,
    };
    (!pause.is_negative()).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Rule: HOOK-8
    #[test]
    fn pauses_follow_the_schedule_within_a_fifth() {
        for (place, pause) in PAUSES.iter().enumerate() {
            let tries = i32::try_from(place).unwrap() + 1;
            let shortest = next_with(tries, None, 0, NOW).unwrap() - NOW;
            let longest = next_with(tries, None, 255, NOW).unwrap() - NOW;
            assert_eq!(shortest, *pause * 4_i32 / 5_i32);
            assert_eq!(longest, *pause * 6_i32 / 5_i32);
            let drawn = next_attempt(tries, None, NOW).unwrap() - NOW;
            assert!((shortest..=longest).contains(&drawn));
        }
        assert_eq!(next_attempt(8, None, NOW), None);
        assert_eq!(next_attempt(0, None, NOW), None);
    }

    /// Rule: HOOK-8
    #[test]
    fn retry_after_lengthens_a_pause_up_to_six_hours() {
        let after = |asked| next_with(1, Some(asked), 0, NOW).unwrap() - NOW;
        assert_eq!(after(Duration::seconds(1)), Duration::seconds(4));
        assert_eq!(after(Duration::minutes(9)), Duration::minutes(9));
        assert_eq!(after(Duration::days(9)), Duration::hours(6));
        assert_eq!(retry_after("120", NOW), Some(Duration::minutes(2)));
        assert_eq!(
            retry_after("Thu, 01 Jan 1970 00:01:00 GMT", NOW),
            Some(Duration::minutes(1))
        );
        assert_eq!(retry_after("Wed, 31 Dec 1969 00:01:00 GMT", NOW), None);
        assert_eq!(retry_after("soon", NOW), None);
        assert_eq!(retry_after("-5", NOW), None);
    }
}
