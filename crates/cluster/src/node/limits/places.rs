//! Limits on what is there at once, over all nodes: leases with return (`streams.md` §16.2).
//!
//! A node holds places and hands them out without asking: entering and leaving is one atomic step each. Places are taken in blocks
//! of `limit / 8N` and given back when they were idle for 5 s; a limit too small for blocks is asked for place by place
//! and given back at once, so that none lies idle where nobody wants it. What a node holds lives as long as a beat: the share of
//! a dead node is free again after that time.
//!
//! Where there is none, a call waits for a while: for a place that becomes free here, and for what the store has the next time it
//! is asked. So a limit does not refuse what it could admit a moment later, when load moves from node to node.
//!
//! While the store is down each node has `limit / N`, what runs already included.

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

/// How long places are idle before they are given back.
const IDLE: Duration = Duration::from_secs(5);
/// How long a refusal of the store is believed: it is not asked again before.
const FULL: Duration = Duration::from_millis(50);
/// Calls that wait for a place of one limit; more are refused at once.
const WAITING: usize = 1_000;
/// What a client is told to wait: nobody knows when a place becomes free.
const COME_BACK: RetryAfter = RetryAfter(Duration::from_secs(1));
/// Questions to the store at once.
const AT_ONCE: usize = 256;

/// The places of one limit on this node. Shared by all who ask for the same key.
#[derive(Debug)]
pub struct Places {
    key: LimitKey,
    limit: Limit,
    most: AtomicU64,
    counts: Counts,
    /// Given back at once.
    is_tight: AtomicBool,
    /// On the list, or asked for.
    listed: Listed,
    queue: Mutex<Queue>,
    due: Arc<Due>,
}

#[derive(Debug, Default)]
struct Queue {
    waiters: VecDeque<oneshot::Sender<Result<Place, RetryAfter>>>,
    full_until: Option<Instant>,
    /// Since when more is held than needed.
    idle_since: Option<Instant>,
    used_elsewhere: u64,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Drop for Place {
    fn drop(&mut self) {
        if self.0.counts.leave() {
            self.0.pass_on();
        }
        if self.0.is_tight.load(Ordering::Relaxed) {
            self.0.list();
        }
    }
}

/// Places that should be asked about.
#[derive(Debug, Default)]
struct Due {
    list: Mutex<Vec<Arc<Places>>>,
    wake: Notify,
}

/// All places of a node.
#[derive(Debug, Default)]
pub(in crate::node) struct Concurrency {
    known: Mutex<HashMap<LimitKey, Weak<Places>>>,
    due: Arc<Due>,
}

impl Places {
    fn list(self: &Arc<Self>) {
        if self.listed.set() {
            lock(&self.due.list).push(Arc::clone(self));
            self.due.wake.notify_one();
        }
    }

    /// How many may be there at once, over all nodes.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// How many are used: here now, and on the other nodes as far as they told.
    pub fn used(&self) -> u64 {
        self.counts.get().1 + lock(&self.queue).used_elsewhere
    }

    /// This node's part while the store is silent.
    fn share(&self, nodes: u64) -> u64 {
        (self.most() / nodes).max(1)
    }

    fn enter(self: &Arc<Self>, bound: Option<u64>) -> Option<Place> {
        let (held, used) = self.counts.enter(bound)?;
        // The last one in hand: more, before somebody has to wait for it.
        if used == held && !self.counts.is_full() && held < self.most() {
            self.list();
        }
        Some(Place(Arc::clone(self)))
    }

    /// Gives what is free to those who wait.
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
            admitted.push((waiter, Place(Arc::clone(self))));
        }
        drop(queue);
        // Outside the lock: a place that nobody takes any more comes back through its drop.
        for (waiter, place) in admitted {
            let _ = waiter.send(Ok(place));
        }
    }

    /// Whether the store said a moment ago that there is none.
    fn is_refused(&self, within: Duration) -> bool {
        lock(&self.queue)
            .full_until
            .is_some_and(|until| Instant::now() < until + within)
    }

    /// What this node should hold if so many are needed now.
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
    /// The places of a key, of which there are `most` over all nodes from now on.
    pub fn places(&self, key: LimitKey, limit: Limit, most: u64) -> Arc<Places> {
        let concurrency = &self.0.concurrency;
        let mut known = lock(&concurrency.known);
        if let Some(places) = known.get(&key).and_then(Weak::upgrade) {
            places.most.store(most, Ordering::Relaxed);
            return places;
        }
        let places = Arc::new(Places {
            key: key.clone(),
            limit,
            most: AtomicU64::new(most),
            counts: Counts::new(),
            is_tight: AtomicBool::new(false),
            listed: Listed::new(),
            queue: Mutex::default(),
            due: Arc::clone(&concurrency.due),
        });
        known.insert(key, Arc::downgrade(&places));
        places
    }

    /// How many places of a key are used over all nodes, as of the last few seconds. `None`: the store does not say.
    pub async fn in_use(&self, key: &LimitKey) -> Option<u64> {
        let inner = &*self.0;
        let known = lock(&inner.concurrency.known)
            .get(key)
            .and_then(Weak::upgrade);
        if let Some(places) = known.filter(|places| places.counts.get() != (0, 0)) {
            return Some(places.used());
        }
        // Nothing is used or held here, and the question leaves it so.
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

    /// Takes a place if that can be said without asking the store. `None`: ask, by [`Limits::enter`].
    pub fn try_enter(&self, places: &Arc<Places>) -> Option<Result<Place, RetryAfter>> {
        let inner = &*self.0;
        let decisions = &inner.buckets.decisions;
        if inner.guarded_store.is_open() {
            let place = places.enter(Some(places.share(inner.nodes())));
            decisions.count(places.limit, Source::Local, place.is_some());
            return Some(place.ok_or(COME_BACK));
        }
        let place = places.enter(None)?;
        decisions.count(places.limit, Source::Token, true);
        Some(Ok(place))
    }

    /// Takes a place; waits for the store if there is none at hand.
    pub async fn enter(&self, places: &Arc<Places>) -> Result<Place, RetryAfter> {
        if let Some(verdict) = self.try_enter(places) {
            return verdict;
        }
        let inner = &*self.0;
        let decisions = &inner.buckets.decisions;
        let (reply, verdict) = oneshot::channel();
        {
            let mut queue = lock(&places.queue);
            if queue.waiters.len() >= WAITING {
                decisions.count(places.limit, Source::Token, false);
                return Err(COME_BACK);
            }
            queue.waiters.push_back(reply);
        }
        places.list();
        let (source, verdict) = match tokio::time::timeout(inner.settings.place_wait, verdict).await
        {
            Ok(Ok(verdict)) => (Source::Refill, verdict),
            _ if places.is_refused(inner.settings.place_wait) => {
                (Source::Refill, places.enter(None).ok_or(COME_BACK))
            }
            // The store said nothing.
            _ => {
                let place = places.enter(Some(places.share(inner.nodes())));
                (Source::Local, place.ok_or(COME_BACK))
            }
        };
        decisions.count(places.limit, source, verdict.is_ok());
        verdict
    }
}

/// Asks for places, says again what is held, and gives back what is idle, until the node stops.
pub(in crate::node) async fn keep(inner: Arc<Inner>) {
    let concurrency = &inner.concurrency;
    let mut again = tokio::time::interval(inner.settings.ttl / 3);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting: VecDeque<Arc<Places>> = VecDeque::new();
    let mut flight = FuturesUnordered::new();
    loop {
        while flight.len() < AT_ONCE
            && let Some(places) = waiting.pop_front()
        {
            flight.push(ask(&inner, places));
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
    /// Lists what is held, and forgets what nobody knows any more.
    fn renew(&self) {
        let mut living = Vec::new();
        lock(&self.known).retain(|_, places| {
            let place = places.upgrade();
            let is_known = place.is_some();
            living.extend(place.filter(|places| places.counts.get() != (0, 0)));
            is_known
        });
        for places in living {
            places.list();
        }
    }
}

async fn ask(inner: &Inner, places: Arc<Places>) {
    let full_until = lock(&places.queue).full_until;
    if let Some(until) = full_until {
        tokio::time::sleep_until(until).await;
    }
    let nodes = inner.nodes();
    let (wanted, waiters) = {
        let now = Instant::now();
        let mut queue = lock(&places.queue);
        queue.waiters.retain(|waiter| !waiter.is_closed());
        let waiters = queue.waiters.len();
        let (held, used) = places.counts.get();
        let need = used + waiters as u64;
        let want = places.target(need, held, nodes, now, &mut queue);
        // What is given back is not handed out any more before the store is notified of it.
        let used = places.counts.hold(|held, used| held.min(want).max(used));
        let wanted = HoldWanted {
            shard: places.key.shard.clone(),
            bucket: places.key.bucket.clone(),
            limit: places.most(),
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
        let mut queue = lock(&places.queue);
        let bound = match held {
            Ok(held) => {
                let is_full = held.held < wanted.want;
                places.counts.granted(held.held, is_full);
                queue.used_elsewhere = held.used_elsewhere;
                None
            }
            Err(_) => Some(places.share(nodes)),
        };
        for _ in 0..waiters {
            let Some(waiter) = queue.waiters.pop_front() else {
                break;
            };
            match places.counts.enter(bound) {
                Some(_) => admitted.push((waiter, Place(Arc::clone(&places)))),
                None if is_answered => {
                    queue.waiters.push_front(waiter);
                    is_short = true;
                    break;
                }
                None => refused.push(waiter),
            }
        }
        queue.full_until = is_short.then(|| Instant::now() + FULL);
        places.listed.clear();
        !queue.waiters.is_empty()
    };
    // Outside the lock: a place that nobody takes any more comes back through its drop.
    for (waiter, place) in admitted {
        let _ = waiter.send(Ok(place));
    }
    for waiter in refused {
        let _ = waiter.send(Err(COME_BACK));
    }
    let (held, used) = places.counts.get();
    let is_idle = places.is_tight.load(Ordering::Relaxed) && held > used;
    if must_list || is_idle {
        places.list();
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
