//! What a process that runs no calls asks of the limits of those that do: the console (`streams.md` §16).

use std::{sync::Arc, time::Duration};

use crate::{
    node::{LimitKey, Rate, RetryAfter},
    store::{HoldWanted, LeaseWanted, NodeId, Store},
};

/// Whoever looks waits no longer.
const WITHIN: Duration = Duration::from_secs(1);
/// It holds nothing, so that it does not matter if several have one name.
const ONLOOKER: NodeId = NodeId(*b"nonlooker00000");

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
        let wanted = [LeaseWanted {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            interval_us: rate.interval_us,
            burst: rate.burst,
            want: 1,
            debt: 0,
        }];
        let leases = tokio::time::timeout(WITHIN, self.0.lease(&wanted)).await;
        match leases {
            Ok(Ok(leases)) => match leases.first() {
                Some(lease) if lease.granted == 0 => Err(RetryAfter(lease.wait)),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
