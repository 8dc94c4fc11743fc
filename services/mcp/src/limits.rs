//! Rate limits by GCRA, in this process (`streams.md` §16.1 without the leases; T-14, TL-23).
//!
//! A bucket is one number, the theoretical arrival time of the next request; a request conforms if that is not further ahead
//! than the burst allows.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Mutex, PoisonError},
};

use portolan_model::Timestamp;

const SHARDS: usize = 16;
/// Buckets of a shard after which idle ones are thrown out.
const PRUNE_AT: usize = 4_096;

/// How much is admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Microseconds that one request takes from the bucket; 0 = no limit.
    interval: i64,
    /// Microseconds that the bucket holds.
    depth: i64,
}

impl Rate {
    /// `count` per `period_secs` in the long run, `burst` at once.
    pub(crate) fn new(count: u32, period_secs: u32, burst: u32) -> Self {
        let interval = if count == 0 {
            0
        } else {
            i64::from(period_secs) * 1_000_000 / i64::from(count)
        };
        Self {
            interval,
            depth: interval * i64::from(burst.max(1)),
        }
    }
}

/// Buckets by key.
#[derive(Debug)]
pub(crate) struct Buckets {
    shards: [Mutex<HashMap<u64, i64>>; SHARDS],
    hasher: RandomState,
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::new(),
        }
    }
}

fn micros(at: Timestamp) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX)
}

impl Buckets {
    /// Takes `weight` requests from the bucket of `key`, all or none. The error is the number of seconds to wait, at least 1.
    pub(crate) fn take(
        &self,
        key: impl Hash,
        rate: Rate,
        weight: u32,
        now: Timestamp,
    ) -> Result<(), u64> {
        if rate.interval == 0 {
            return Ok(());
        }
        let (key, now) = (self.hasher.hash_one(key), micros(now));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "any part of the hash will do"
        )]
        let shard = &self.shards[key as usize % SHARDS];
        let mut buckets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= PRUNE_AT {
            buckets.retain(|_, due| *due > now);
        }
        let due = buckets.get(&key).copied().unwrap_or(now).max(now);
        // A batch larger than the bucket passes when the bucket is full: else it never could.
        let next = due + (rate.interval * i64::from(weight)).min(rate.depth);
        let over = next - now - rate.depth;
        if over > 0 {
            return Err(u64::try_from(over).unwrap_or(0).div_ceil(1_000_000).max(1));
        }
        buckets.insert(key, next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn t_14_a_burst_passes_and_then_the_rate_holds() {
        let (buckets, rate) = (Buckets::default(), Rate::new(10, 1, 5));
        for _ in 0..5 {
            assert_eq!(buckets.take("a", rate, 1, NOW), Ok(()));
        }
        assert_eq!(buckets.take("a", rate, 1, NOW), Err(1));
        assert_eq!(
            buckets.take("b", rate, 1, NOW),
            Ok(()),
            "another key has its own bucket"
        );
        assert_eq!(
            buckets.take("a", rate, 1, NOW + Duration::milliseconds(100)),
            Ok(())
        );
        assert_eq!(
            buckets.take("a", rate, 1, NOW + Duration::milliseconds(100)),
            Err(1)
        );
    }

    #[test]
    fn t_14_the_wait_is_told_in_whole_seconds() {
        let (buckets, rate) = (Buckets::default(), Rate::new(1, 30, 1));
        assert_eq!(buckets.take((), rate, 1, NOW), Ok(()));
        assert_eq!(buckets.take((), rate, 1, NOW + Duration::SECOND), Err(29));
    }

    #[test]
    fn a_batch_is_taken_whole_or_not_at_all() {
        let (buckets, rate) = (Buckets::default(), Rate::new(1, 1, 10));
        assert_eq!(buckets.take((), rate, 8, NOW), Ok(()));
        assert!(buckets.take((), rate, 3, NOW).is_err());
        assert_eq!(buckets.take((), rate, 2, NOW), Ok(()));
        assert_eq!(
            buckets.take("big", rate, 100, NOW),
            Ok(()),
            "a batch larger than the bucket takes all of it"
        );
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let buckets = Buckets::default();
        for _ in 0..1_000 {
            assert_eq!(buckets.take((), Rate::new(0, 1, 0), 1, NOW), Ok(()));
        }
    }

    #[test]
    fn idle_buckets_are_thrown_out_before_memory_grows() {
        let (buckets, rate) = (Buckets::default(), Rate::new(1, 1, 1));
        for round in 0..4 {
            let now = NOW + Duration::minutes(round);
            for key in 0..40_000_i64 {
                let _ = buckets.take((round, key), rate, 1, now);
            }
        }
        let kept: usize = buckets
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert!(kept <= SHARDS * PRUNE_AT + 40_000, "{kept}");
    }
}
