//! Limits over all nodes. Rates use leased tokens (STREAM-16.1). Limits on simultaneous use
//! lease permits ([`permits`], STREAM-16.2). The hot path does no I/O: over any window of length w,
//! with N nodes, `admitted(w) ≤ burst + rate · (w + lease_life) + N`.

mod bucket;
pub(super) mod decisions;
pub(super) mod permits;
pub(super) mod take;

use std::{hash::BuildHasher, sync::Mutex, time::Duration};

use tokio::{sync::Notify, time::Instant};

use self::{
    bucket::Bucket,
    decisions::{Decisions, Limit},
};
use super::settings::LEASE_LIFE;
use crate::{Map, lock};

const SHARDS: usize = 64;

/// Key of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitKey {
    /// Shard of the bucket: the tenant, or the address block. The store keeps the buckets of one
    /// shard together.
    pub shard: String,
    /// Name of the bucket within the shard.
    pub bucket: String,
}

/// Refill rate and capacity of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The limit, for metrics.
    pub limit: Limit,
    /// Time per token, in microseconds.
    pub interval_us: u64,
    /// Capacity in tokens.
    pub burst: u64,
}

impl Rate {
    /// Time for the given number of tokens.
    fn wait(self, tokens: u64) -> RetryAfter {
        RetryAfter(Duration::from_micros(
            self.interval_us.saturating_mul(tokens).min(1 << 50),
        ))
    }
}

/// The request is refused. A retry is useful after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("too many requests")]
pub struct RetryAfter(pub Duration);

/// The buckets that this node uses.
#[derive(Debug)]
pub(super) struct Buckets {
    shards: Box<[Mutex<Map<LimitKey, Bucket>>]>,
    hasher: foldhash::fast::RandomState,
    due: Mutex<Vec<LimitKey>>,
    wake: Notify,
    decisions: Decisions,
}

impl Buckets {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: foldhash::fast::RandomState::default(),
            due: Mutex::default(),
            wake: Notify::new(),
            decisions: Decisions::default(),
        }
    }

    fn shard(&self, key: &LimitKey) -> &Mutex<Map<LimitKey, Bucket>> {
        let hash = self.hasher.hash_one(key);
        &self.shards[usize::from(hash.to_le_bytes()[0]) % SHARDS]
    }

    fn with<T>(&self, key: &LimitKey, act: impl FnOnce(&mut Bucket) -> T) -> Option<T> {
        lock(self.shard(key)).get_mut(key).map(act)
    }

    fn list(&self, key: LimitKey) {
        lock(&self.due).push(key);
        self.wake.notify_one();
    }

    /// Removes idle buckets. A bucket with a debt pays first.
    fn purge(&self) {
        let now = Instant::now();
        let mut owing = Vec::new();
        for shard in &self.shards {
            lock(shard).retain(|key, bucket| {
                let is_idle = bucket.is_idle(now, LEASE_LIFE);
                if is_idle && bucket.owes() {
                    bucket.is_listed = true;
                    owing.push(key.clone());
                }
                !is_idle || bucket.owes()
            });
        }
        for key in owing {
            self.list(key);
        }
    }
}
