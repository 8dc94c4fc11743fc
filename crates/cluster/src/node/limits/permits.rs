//! Limits on simultaneous use, over all nodes: leased permits that are returned
//! (STREAM-16.2).
//!
//! A node holds permits and grants them without a store operation: enter and leave are one atomic
//! step each. Permits are leased in blocks of `limit / 8N` and returned after 5 s without use. A
//! limit that is too small for blocks leases each permit alone and returns it at once, so that no
//! idle permit blocks another node. A node's lease lives as long as a beat, so the share of a dead
//! node becomes free after that time.
//!
//! If no permit is free, a call waits for a limited time: for a permit that becomes free on this
//! node, and for the next reply of the store. The limit thus does not refuse calls while load moves
//! from node to node.
//!
//! While the store is down, each node has `limit / N`, including the calls that already run.

mod counts;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, Weak,
        atomic::{self, AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, MissedTickBehavior},
};

use self::counts::{Counts, Listed};
use super::{Limit, LimitKey, Limits, RetryAfter, decisions::Source};
use crate::{lock, node::Inner, store::HoldWanted};

/// Time without use after which permits are returned.
const IDLE: Duration = Duration::from_secs(5);
/// Time for which a refusal of the store is valid. The node does not repeat the request before.
const FULL: Duration = Duration::from_millis(50);
/// Maximum number of calls that wait for one limit. Further calls are refused at once.
const WAITING: usize = 1_000;
/// Retry time for the client. The time at which a permit becomes free is unknown.
const COME_BACK: RetryAfter = RetryAfter(Duration::from_secs(1));
/// Maximum number of `hold` operations in flight.
const AT_ONCE: usize = 256;

/// Permits of one limit on this node, shared by all users of the key.
#[derive(Debug)]
pub struct ClusterPermits {
    key: LimitKey,
    limit: Limit,
    most: AtomicU64,
    counts: Counts,
    /// Permits are returned at once.
    is_tight: AtomicBool,
    /// The limit is listed for a `hold`, or a `hold` is in flight.
    listed: Listed,
    queue: Mutex<Queue>,
    due: Arc<Due>,
}

#[derive(Debug, Default)]
struct Queue {
    waiters: VecDeque<oneshot::Sender<Result<ClusterPermit, RetryAfter>>>,
    full_until: Option<Instant>,
    /// Time since which the node holds more than it needs.
    idle_since: Option<Instant>,
    used_elsewhere: u64,
}

/// A permit, which is returned when it is dropped.
#[derive(Debug)]
pub struct ClusterPermit(Arc<ClusterPermits>);

impl Drop for ClusterPermit {
    fn drop(&mut self) {
        if self.0.counts.leave() {
            self.0.pass_on();
        }
        if self.0.is_tight.load(Ordering::Relaxed) {
            self.0.list();
        }
    }
}

/// Limits that need a `hold`.
#[derive(Debug, Default)]
struct Due {
    list: Mutex<Vec<Arc<ClusterPermits>>>,
    wake: Notify,
}

/// All limits of a node.
#[derive(Debug, Default)]
pub(in crate::node) struct Concurrency {
    known: Mutex<HashMap<LimitKey, Weak<ClusterPermits>>>,
    due: Arc<Due>,
}

impl ClusterPermits {
    fn list(self: &Arc<Self>) {
        if self.listed.set() {
            lock(&self.due.list).push(Arc::clone(self));
            self.due.wake.notify_one();
        }
    }

    /// Maximum number of permits over all nodes.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Number of used permits: on this node now, and on the other nodes as of their last report.
    pub fn used(&self) -> u64 {
        self.counts.get().1 + lock(&self.queue).used_elsewhere
    }

    /// This node's share while the store does not reply.
    fn share(&self, nodes: u64) -> u64 {
        (self.most() / nodes).max(1)
    }

    fn enter(self: &Arc<Self>, bound: Option<u64>) -> Option<ClusterPermit> {
        let (held, used) = self.counts.enter(bound)?;
        // The last free permit was taken. Lease more before a call has to wait.
        if used == held && !self.counts.is_full() && held < self.most() {
            self.list();
        }
        Some(ClusterPermit(Arc::clone(self)))
    }

    /// Grants free permits to waiting calls.
    fn pass_on(self: &Arc<Self>) {
        let mut admitted = Vec::new();
        let mut queue = lock(&self.queue);
        while let Some(waiter) = queue.waiters.pop_front() {
            if waiter.is_closed() {
                continue;
            }
            if self.counts.enter(None).is_none() {
                queue.waiters.push_front(waiter);
                break;
            }
            admitted.push((waiter, ClusterPermit(Arc::clone(self))));
        }
        drop(queue);
        // Outside the lock: a permit that its waiter does not take returns through its drop.
        for (waiter, permit) in admitted {
            let _ = waiter.send(Ok(permit));
        }
    }

    /// Whether a refusal of the store is still valid.
    fn is_refused(&self, within: Duration) -> bool {
        lock(&self.queue)
            .full_until
            .is_some_and(|until| Instant::now() < until + within)
    }

    /// Number of permits that this node should hold for the given need.
    fn target(&self, need: u64, held: u64, nodes: u64, now: Instant, queue: &mut Queue) -> u64 {
        let most = self.most();
        let block = if nodes == 1 {
            (most / 8).max(1)
        } else {
            most / (8 * nodes)
        };
        self.is_tight.store(block == 0, Ordering::Relaxed);
        if block == 0 {
            return need;
        }
        let target = if need == 0 {
            0
        } else {
            ((need / block + 1) * block).min(most.max(need))
        };
        if target >= held {
            queue.idle_since = None;
            return target;
        }
        let since = *queue.idle_since.get_or_insert(now);
        if now.duration_since(since) >= IDLE {
            queue.idle_since = None;
            return target;
        }
        held.max(need)
    }
}

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
            listed: Listed::new(),
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
        let wanted = HoldWanted {
            shard: key.shard.clone(),
            bucket: key.bucket.clone(),
            limit: 0,
            used: 0,
            want: 0,
        };
        let hold = inner
            .guarded_store
            .store
            .hold(inner.id, inner.settings.ttl, &wanted);
        let held = inner
            .guarded_store
            .call("hold", inner.settings.call_within, hold);
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
            decisions.count(permits.limit, Source::Local, permit.is_some());
            return Some(permit.ok_or(COME_BACK));
        }
        let permit = permits.enter(None)?;
        decisions.count(permits.limit, Source::Token, true);
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
                decisions.count(permits.limit, Source::Token, false);
                return Err(COME_BACK);
            }
            queue.waiters.push_back(reply);
        }
        permits.list();
        let (source, verdict) =
            match tokio::time::timeout(inner.settings.permit_wait, verdict).await {
                Ok(Ok(verdict)) => (Source::Refill, verdict),
                _ if permits.is_refused(inner.settings.permit_wait) => {
                    (Source::Refill, permits.enter(None).ok_or(COME_BACK))
                }
                // The store did not reply.
                _ => {
                    let permit = permits.enter(Some(permits.share(inner.nodes())));
                    (Source::Local, permit.ok_or(COME_BACK))
                }
            };
        decisions.count(permits.limit, source, verdict.is_ok());
        verdict
    }
}

/// Leases permits, renews the leases, and returns idle permits, until the node stops.
pub(in crate::node) async fn keep(inner: Arc<Inner>) {
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

impl Concurrency {
    /// Lists the limits that hold permits, and removes the ones without users.
    fn renew(&self) {
        let mut living = Vec::new();
        lock(&self.known).retain(|_, permits| {
            let permit = permits.upgrade();
            let is_known = permit.is_some();
            living.extend(permit.filter(|permits| permits.counts.get() != (0, 0)));
            is_known
        });
        for permits in living {
            permits.list();
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
        let wanted = HoldWanted {
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
        .hold(inner.id, inner.settings.ttl, &wanted);
    let held = inner
        .guarded_store
        .call("hold", inner.settings.call_within, hold)
        .await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_and_used_are_one_number_and_never_seen_apart() {
        let counts = Counts::new();
        assert_eq!(counts.enter(None), None);
        counts.hold(|_, _| 2);
        assert_eq!(counts.enter(None), Some((2, 1)));
        assert_eq!(counts.enter(None), Some((2, 2)));
        assert_eq!(counts.enter(None), None);
        assert_eq!(counts.enter(Some(3)), Some((2, 3)), "the local share");
        let used = counts.hold(|held, used| held.min(1).max(used));
        assert_eq!((used, counts.get()), (3, (3, 3)), "what is used is held");
        assert!(!counts.leave(), "nobody waits");
        assert_eq!(counts.get(), (3, 2));
        counts.granted(2, true);
        assert!(counts.leave(), "somebody may wait");
    }
}
