//! Takes permits, and leases them from the store (STREAM-16.2).

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::oneshot,
    time::{Instant, MissedTickBehavior},
};

use super::{
    ClusterPermit, ClusterPermits,
    counts::{Counts, ListedFlag},
};
use crate::{
    lock,
    node::{
        inner::Inner,
        limits::{
            LimitKey, RetryAfter,
            decisions::{DecisionSource, Limit},
            take::Limits,
        },
        settings::{CALL_WITHIN, PERMIT_WAIT},
    },
    store::HoldSlots,
};

/// Time for which a refusal of the store is valid. The node does not repeat the request before.
const FULL: Duration = Duration::from_millis(50);
/// Maximum number of calls that wait for one limit. Further calls are refused at once.
const WAITING: usize = 1_000;
/// Retry time for the client. The time at which a permit becomes free is unknown.
const COME_BACK: RetryAfter = RetryAfter(Duration::from_secs(1));
/// Maximum number of `hold` operations in flight.
const AT_ONCE: usize = 256;

impl Limits {
    /// Returns the permits of a key. `most` is the new limit over all nodes.
    pub fn permits(&self, key: LimitKey, limit: Limit, most: u64) -> Arc<ClusterPermits> {
        let concurrency = &self.0.concurrency;
        let mut known = lock(&concurrency.known);
        if let Some(permits) = known.get(&key).and_then(Weak::upgrade) {
            permits.most.store(most, Ordering::Relaxed);
            return permits;
        }
        let permits = Arc::new(ClusterPermits {
            key: key.clone(),
            limit,
            most: AtomicU64::new(most),
            counts: Counts::new(),
            is_tight: AtomicBool::new(false),
            listed: ListedFlag::new(),
            queue: Mutex::default(),
            due: Arc::clone(&concurrency.due),
        });
        known.insert(key, Arc::downgrade(&permits));
        permits
    }

    /// Number of used permits of a key over all nodes, as of the last few seconds. `None` if the
    /// store does not reply.
    pub async fn in_use(&self, key: &LimitKey) -> Option<u64> {
        let inner = &*self.0;
        let known = lock(&inner.concurrency.known)
            .get(key)
            .and_then(Weak::upgrade);
        if let Some(permits) = known.filter(|permits| permits.counts.get() != (0, 0)) {
            return Some(permits.used());
        }
        // This node holds and uses nothing, and the operation leaves it so.
        let wanted = HoldSlots {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            limit: 0,
            used: 0,
            want: 0,
        };
        let hold = inner
            .guarded_store
            .store
            .hold_slots(inner.id, inner.settings.ttl, &wanted);
        let held = inner.guarded_store.call("hold", CALL_WITHIN, hold);
        Some(held.await.ok()?.used_elsewhere)
    }

    /// Takes a permit if the decision needs no store operation. `None`: call [`Limits::enter`].
    pub fn try_enter(
        &self,
        permits: &Arc<ClusterPermits>,
    ) -> Option<Result<ClusterPermit, RetryAfter>> {
        let inner = &*self.0;
        let decisions = &inner.buckets.decisions;
        if inner.guarded_store.is_open() {
            let permit = permits.enter(Some(permits.share(inner.nodes())));
            decisions.count(permits.limit, DecisionSource::Local, permit.is_some());
            return Some(permit.ok_or(COME_BACK));
        }
        let permit = permits.enter(None)?;
        decisions.admitted(permits.limit, DecisionSource::Token);
        Some(Ok(permit))
    }

    /// Takes a permit, and waits for the store if none is free.
    pub async fn enter(&self, permits: &Arc<ClusterPermits>) -> Result<ClusterPermit, RetryAfter> {
        if let Some(verdict) = self.try_enter(permits) {
            return verdict;
        }
        let inner = &*self.0;
        let decisions = &inner.buckets.decisions;
        let (reply, verdict) = oneshot::channel();
        {
            let mut queue = lock(&permits.queue);
            if queue.waiters.len() >= WAITING {
                decisions.refused(permits.limit, DecisionSource::Token);
                return Err(COME_BACK);
            }
            queue.waiters.push_back(reply);
        }
        permits.list();
        let (source, verdict) = match tokio::time::timeout(PERMIT_WAIT, verdict).await {
            Ok(Ok(verdict)) => (DecisionSource::Refill, verdict),
            _ if permits.is_refused(PERMIT_WAIT) => {
                (DecisionSource::Refill, permits.enter(None).ok_or(COME_BACK))
            }
            // The store did not reply.
            _ => {
                let permit = permits.enter(Some(permits.share(inner.nodes())));
                (DecisionSource::Local, permit.ok_or(COME_BACK))
            }
        };
        decisions.count(permits.limit, source, verdict.is_ok());
        verdict
    }
}

/// Leases permits, renews the leases, and returns idle permits, until the node stops.
pub(crate) async fn keep(inner: Arc<Inner>) {
    let concurrency = &inner.concurrency;
    let mut again = tokio::time::interval(inner.settings.ttl / 3);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting: VecDeque<Arc<ClusterPermits>> = VecDeque::new();
    let mut flight = FuturesUnordered::new();
    loop {
        while flight.len() < AT_ONCE
            && let Some(permits) = waiting.pop_front()
        {
            flight.push(ask(&inner, permits));
        }
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            _ = again.tick() => concurrency.renew(),
            Some(()) = flight.next() => {}
            () = concurrency.due.wake.notified() => {
                waiting.extend(std::mem::take(&mut *lock(&concurrency.due.list)));
            }
        }
    }
}

async fn ask(inner: &Inner, permits: Arc<ClusterPermits>) {
    let full_until = lock(&permits.queue).full_until;
    if let Some(until) = full_until {
        tokio::time::sleep_until(until).await;
    }
    let nodes = inner.nodes();
    let (wanted, waiters) = {
        let now = Instant::now();
        let mut queue = lock(&permits.queue);
        queue.waiters.retain(|waiter| !waiter.is_closed());
        let waiters = queue.waiters.len();
        let (held, used) = permits.counts.get();
        let need = used + waiters as u64;
        let want = permits.target(need, held, nodes, now, &mut queue);
        // Permits that are returned must not be granted again before the store has the new number.
        let used = permits.counts.hold(|held, used| held.min(want).max(used));
        let wanted = HoldSlots {
            shard: permits.key.shard.clone(),
            bucket: permits.key.bucket.clone(),
            limit: permits.most(),
            used,
            want: want.max(used),
        };
        (wanted, waiters)
    };
    let hold = inner
        .guarded_store
        .store
        .hold_slots(inner.id, inner.settings.ttl, &wanted);
    let held = inner.guarded_store.call("hold", CALL_WITHIN, hold).await;
    let (mut refused, mut admitted) = (Vec::new(), Vec::new());
    let (is_answered, mut is_short) = (held.is_ok(), false);
    let must_list = {
        let mut queue = lock(&permits.queue);
        let bound = match held {
            Ok(held) => {
                let is_full = held.held < wanted.want;
                permits.counts.granted(held.held, is_full);
                queue.used_elsewhere = held.used_elsewhere;
                None
            }
            Err(_) => Some(permits.share(nodes)),
        };
        for _ in 0..waiters {
            let Some(waiter) = queue.waiters.pop_front() else {
                break;
            };
            match permits.counts.enter(bound) {
                Some(_) => admitted.push((waiter, ClusterPermit(Arc::clone(&permits)))),
                None if is_answered => {
                    queue.waiters.push_front(waiter);
                    is_short = true;
                    break;
                }
                None => refused.push(waiter),
            }
        }
        queue.full_until = is_short.then(|| Instant::now() + FULL);
        permits.listed.clear();
        !queue.waiters.is_empty()
    };
    // Outside the lock: a permit that its waiter does not take returns through its drop.
    for (waiter, permit) in admitted {
        let _ = waiter.send(Ok(permit));
    }
    for waiter in refused {
        let _ = waiter.send(Err(COME_BACK));
    }
    let (held, used) = permits.counts.get();
    let is_idle = permits.is_tight.load(Ordering::Relaxed) && held > used;
    if must_list || is_idle {
        permits.list();
    }
}
