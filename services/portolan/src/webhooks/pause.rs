//! Pauses between attempts: each twice as long as the one before.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(500);

/// The longest one.
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses of one row of failures.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    failures: u32,
}

impl Pauses {
    /// The next one: 0.5 s, 1 s, 2 s … 30 s, each up to a fifth shorter, so that programs that lost
    /// the same service do not come back at once.
    pub(super) fn next_pause(&mut self) -> Duration {
        let whole = FIRST
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST);
        self.failures += 1;
        let less = RandomState::new().hash_one(0_u8) % 200;
        whole * (1000 - u32::try_from(less).unwrap_or(0)) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let mut pauses = Pauses::default();
        for whole in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let pause = pauses.next_pause().as_millis();
            assert!(pause * 5 >= whole * 4 && pause <= whole, "{whole}: {pause}");
        }
    }
}
