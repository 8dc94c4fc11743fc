//! Takes tokens of rates, and refills the buckets of a node from the store (STREAM-16.1).

use std::{collections::hash_map::Entry, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::oneshot, time::Instant};

use super::{
    LimitKey, Rate, RetryAfter,
    bucket::{Ask, Bucket, TakeOutcome, Waiter},
    decisions::DecisionSource,
};
use crate::{
    lock,
    node::{
        inner::Inner,
        settings::{CALL_WITHIN, LEASE_LIFE, LEASE_TICK, LEASE_WAIT},
    },
    store::TakeTokens,
};

/// Maximum number of buckets of one `lease`.
const BATCH: usize = 128;
/// Maximum number of `lease` operations in flight.
const AT_ONCE: usize = 16;
/// Interval at which idle buckets are removed.
const PURGE: Duration = Duration::from_secs(10);

/// The limits of a node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Limits(pub(super) Arc<Inner>);

impl Limits {
    pub(crate) const fn new(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    /// Takes `weight` tokens if the decision needs no store operation. `None`: call
    /// [`Limits::take`].
    pub fn try_take(
        &self,
        key: &LimitKey,
        rate: Rate,
        weight: u64,
    ) -> Option<Result<(), RetryAfter>> {
        let inner = &*self.0;
        let (now, nodes) = (Instant::now(), inner.nodes());
        let life = LEASE_LIFE;
        let is_down = inner.guarded_store.is_open();
        let buckets = &inner.buckets;
        let mut shard = lock(buckets.shard(key));
        let (bucket, is_cold) = match shard.get_mut(key) {
            Some(bucket) => (bucket, false),
            None => match shard.entry(key.clone()) {
                Entry::Occupied(bucket) => (bucket.into_mut(), false),
                Entry::Vacant(vacant) => (vacant.insert(Bucket::new(now, rate)), true),
            },
        };
        bucket.rate = rate;
        if is_down {
            let verdict = bucket.take_local(now, nodes, weight);
            drop(shard);
            buckets
                .decisions
                .count(rate.limit, DecisionSource::Local, verdict.is_ok());
            return Some(verdict);
        }
        let taken = bucket.take(now, life, weight, nodes, is_cold);
        let must_list = !bucket.is_listed && bucket.is_due(now, inner.sharers());
        bucket.is_listed |= must_list;
        drop(shard);
        if must_list {
            buckets.list(key.clone());
        }
        match taken {
            TakeOutcome::Yes => {
                let source = if is_cold {
                    DecisionSource::Cold
                } else {
                    DecisionSource::Token
                };
                buckets.decisions.admitted(rate.limit, source);
                Some(Ok(()))
            }
            TakeOutcome::No(after) => {
                buckets.decisions.refused(rate.limit, DecisionSource::Token);
                Some(Err(after))
            }
            TakeOutcome::Ask => None,
        }
    }

    /// Takes `weight` tokens, and waits for the next refill if the node has none. After
    /// `lease_wait`, one request per bucket is admitted on credit. A request that finds such a debt
    /// waits for the store, up to its deadline (STREAM-16.1).
    pub async fn take(&self, key: &LimitKey, rate: Rate, weight: u64) -> Result<(), RetryAfter> {
        if let Some(verdict) = self.try_take(key, rate, weight) {
            return verdict;
        }
        let inner = &*self.0;
        let asked = Instant::now();
        let (reply, verdict) = oneshot::channel();
        let must_list = inner.buckets.with(key, |bucket| {
            bucket.waiters.push_back(Waiter { weight, reply });
            !std::mem::replace(&mut bucket.is_listed, true)
        });
        if must_list == Some(true) {
            inner.buckets.list(key.clone());
        }
        let (source, verdict) = self.wait(key, weight, verdict).await;
        let decisions = &inner.buckets.decisions;
        decisions.count(rate.limit, source, verdict.is_ok());
        metrics::histogram!("limit_wait_seconds").record(asked.elapsed().as_secs_f64());
        verdict
    }

    async fn wait(
        &self,
        key: &LimitKey,
        weight: u64,
        verdict: oneshot::Receiver<Result<(), RetryAfter>>,
    ) -> (DecisionSource, Result<(), RetryAfter>) {
        let inner = &*self.0;
        let mut verdict = pin!(verdict);
        let mut told = tokio::time::timeout(LEASE_WAIT, verdict.as_mut()).await;
        if told.is_err() && !inner.guarded_store.is_open() {
            let now = Instant::now();
            let on_credit = inner.buckets.with(key, |bucket| {
                bucket.take_on_credit(now, inner.nodes(), weight)
            });
            if on_credit == Some(true) {
                return (DecisionSource::Cold, Ok(()));
            }
            told = tokio::time::timeout(CALL_WITHIN, verdict).await;
        }
        if let Ok(Ok(verdict)) = told {
            return (DecisionSource::Refill, verdict);
        }
        let now = Instant::now();
        let verdict = inner
            .buckets
            .with(key, |bucket| bucket.take_local(now, inner.nodes(), weight))
            .unwrap_or(Ok(()));
        (DecisionSource::Local, verdict)
    }
}

/// Refills buckets until the node stops. One operation refills many buckets.
pub(crate) async fn refill(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    let mut purge = tokio::time::interval(PURGE);
    let mut last: Option<Instant> = None;
    let mut has_work = false;
    loop {
        let at = last.map_or_else(Instant::now, |last| last + LEASE_TICK);
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            _ = purge.tick() => inner.buckets.purge(),
            () = tokio::time::sleep_until(at), if has_work && flight.len() < AT_ONCE => {
                has_work = false;
                last = Some(Instant::now());
                let mut due = std::mem::take(&mut *lock(&inner.buckets.due));
                while !due.is_empty() {
                    let rest = due.split_off(due.len().min(BATCH));
                    flight.push(lease(Arc::clone(&inner), due));
                    due = rest;
                }
            }
            Some(()) = flight.next() => {}
            () = inner.buckets.wake.notified(), if !has_work => has_work = true,
        }
    }
}

async fn lease(inner: Arc<Inner>, keys: Vec<LimitKey>) {
    let (buckets, nodes, sent) = (&inner.buckets, inner.nodes(), Instant::now());
    let life = LEASE_LIFE;
    let mut asks: Vec<(LimitKey, Ask)> = Vec::with_capacity(keys.len());
    let mut wanted = Vec::with_capacity(keys.len());
    for key in keys {
        let ask = buckets.with(&key, |bucket| {
            let ask = bucket.ask(sent, inner.sharers());
            // All waiters gave up, and the bucket has no debt.
            bucket.is_listed = ask.want > 0 || ask.debt > 0;
            (ask, bucket.rate, bucket.is_listed)
        });
        if let Some((ask, rate, true)) = ask {
            wanted.push(TakeTokens {
                shard: key.shard.clone(),
                bucket: key.bucket.clone(),
                interval_us: rate.interval_us,
                burst: rate.burst,
                want: ask.want,
                debt: ask.debt,
                back: 0,
            });
            asks.push((key, ask));
        }
    }
    if wanted.is_empty() {
        return;
    }
    let leases = inner.guarded_store.store.take_tokens(&wanted);
    let leases = inner.guarded_store.call("lease", CALL_WITHIN, leases).await;
    let now = Instant::now();
    // A full store refused, or no store replied. Either way there are no tokens.
    let leases = leases.ok().filter(|leases| leases.len() == asks.len());
    for (index, (key, ask)) in asks.into_iter().enumerate() {
        let lease = leases.as_ref().and_then(|leases| leases.get(index));
        let must_list = buckets.with(&key, |bucket| {
            match lease {
                Some(lease) => {
                    bucket.granted((sent, now), life, nodes, ask, lease.granted, lease.wait);
                }
                None => bucket.unanswered(now, nodes, ask),
            }
            // Waiters that came meanwhile are served by the next refill. A debt alone waits for the
            // next request.
            bucket.is_listed = !bucket.waiters.is_empty();
            bucket.is_listed
        });
        if must_list == Some(true) {
            buckets.list(key);
        }
    }
}
