//! Buckets of the nodes, for a process that runs no calls: the console, and sign-in attempts.

use std::{sync::Arc, time::Duration};

use crate::{
    node::{LimitKey, Rate, RetryAfter},
    store::{HoldSlots, NodeId, Store, TakeTokens, TakenTokens},
};

/// Deadline of an operation.
const WITHIN: Duration = Duration::from_secs(1);
/// Name for `hold_slots`. It holds nothing, so several processes may share it.
const ONLOOKER: NodeId = NodeId(*b"nonlooker00000");

/// Refill rate and capacity of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Time per token, in microseconds.
    pub interval_us: u64,
    /// Capacity in tokens.
    pub burst: u64,
}

/// Limits of the nodes' store, for a process that is not a node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<dyn Store>);

impl Ledger {
    /// Creates a ledger for a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Number of permits that all nodes use, some seconds old. `None` if the store does not reply.
    pub async fn in_use(&self, key: &LimitKey) -> Option<u64> {
        let nothing = HoldSlots {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            limit: 0,
            used: 0,
            want: 0,
        };
        let asked = self.0.hold_slots(ONLOOKER, WITHIN, &nothing);
        let held = tokio::time::timeout(WITHIN, asked).await.ok()?.ok()?;
        Some(held.used_elsewhere)
    }

    /// Takes one token from a bucket that the nodes share. Admits the request if the store does not
    /// reply.
    pub async fn take(&self, key: &LimitKey, rate: Rate) -> Result<(), RetryAfter> {
        let size = Size {
            interval_us: rate.interval_us,
            burst: rate.burst,
        };
        self.count(key, size).await.unwrap_or(Ok(()))
    }

    /// Takes exactly one token, without prefetching or credit. `None` if the store does not reply.
    pub async fn count(&self, key: &LimitKey, size: Size) -> Option<Result<(), RetryAfter>> {
        let lease = self.ask(key, size, (1, 0)).await?;
        Some(if lease.granted == 0 {
            Err(RetryAfter(lease.wait))
        } else {
            Ok(())
        })
    }

    /// Returns one unused token that [`Ledger::count`] took. The token stays taken if the store
    /// does not reply.
    pub async fn give_back(&self, key: &LimitKey, size: Size) {
        self.ask(key, size, (0, 1)).await;
    }

    async fn ask(
        &self,
        key: &LimitKey,
        size: Size,
        (want, back): (u64, u64),
    ) -> Option<TakenTokens> {
        let wanted = [TakeTokens {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            interval_us: size.interval_us,
            burst: size.burst,
            want,
            debt: 0,
            back,
        }];
        let leases = tokio::time::timeout(WITHIN, self.0.take_tokens(&wanted)).await;
        leases.ok()?.ok()?.first().copied()
    }
}
