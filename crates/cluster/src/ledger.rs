//! Buckets of the nodes, for a process that runs no calls: the console, and the tries of sign-in.

use std::{sync::Arc, time::Duration};

use crate::{
    node::{LimitKey, Rate, RetryAfter},
    store::{HoldWanted, Lease, LeaseWanted, NodeId, Store},
};

/// Whoever looks waits no longer.
const WITHIN: Duration = Duration::from_secs(1);
/// It holds nothing, so that it does not matter if several have one name.
const ONLOOKER: NodeId = NodeId(*b"nonlooker00000");

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Microseconds that one token takes.
    pub interval_us: u64,
    /// Tokens that the bucket holds.
    pub burst: u64,
}

/// The store of the nodes, seen from outside. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<dyn Store>);

impl Ledger {
    /// Over a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// What all nodes together use of what is there at once, some seconds old. `None` if the store does not answer.
    pub async fn in_use(&self, key: &LimitKey) -> Option<u64> {
        let nothing = HoldWanted {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            limit: 0,
            used: 0,
            want: 0,
        };
        let asked = self.0.hold(ONLOOKER, WITHIN, &nothing);
        let held = tokio::time::timeout(WITHIN, asked).await.ok()?.ok()?;
        Some(held.used_elsewhere)
    }

    /// Takes one token out of the bucket that the nodes share. A store that does not answer refuses nobody.
    pub async fn take(&self, key: &LimitKey, rate: Rate) -> Result<(), RetryAfter> {
        let size = Size {
            interval_us: rate.interval_us,
            burst: rate.burst,
        };
        self.count(key, size).await.unwrap_or(Ok(()))
    }

    /// Takes exactly one token: none is leased ahead, and none is granted on credit. `None` if the
    /// store does not answer.
    pub async fn count(&self, key: &LimitKey, size: Size) -> Option<Result<(), RetryAfter>> {
        let lease = self.ask(key, size, (1, 0)).await?;
        Some(if lease.granted == 0 {
            Err(RetryAfter(lease.wait))
        } else {
            Ok(())
        })
    }

    /// Returns one token that [`Ledger::count`] took and that was not needed. It stays taken if the
    /// store does not answer.
    pub async fn give_back(&self, key: &LimitKey, size: Size) {
        self.ask(key, size, (0, 1)).await;
    }

    async fn ask(&self, key: &LimitKey, size: Size, (want, back): (u64, u64)) -> Option<Lease> {
        let wanted = [LeaseWanted {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            interval_us: size.interval_us,
            burst: size.burst,
            want,
            debt: 0,
            back,
        }];
        let leases = tokio::time::timeout(WITHIN, self.0.lease(&wanted)).await;
        leases.ok()?.ok()?.first().copied()
    }
}
