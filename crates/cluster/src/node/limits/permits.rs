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
pub(crate) mod enter;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, Weak,
        atomic::{self, AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use self::counts::{Counts, ListedFlag};
use super::{LimitKey, RetryAfter, decisions::Limit};
use crate::lock;

/// Time without use after which permits are returned.
const IDLE: Duration = Duration::from_secs(5);

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
    listed: ListedFlag,
    queue: Mutex<PermitQueue>,
    due: Arc<Due>,
}

#[derive(Debug, Default)]
struct PermitQueue {
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
pub(crate) struct Concurrency {
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
    fn target(
        &self,
        need: u64,
        held: u64,
        nodes: u64,
        now: Instant,
        queue: &mut PermitQueue,
    ) -> u64 {
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
