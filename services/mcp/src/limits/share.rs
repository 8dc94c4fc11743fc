//! The share of one workspace in a node's capacity: less than three times the free part.
//!
//! Alone it can take three quarters of the node. Two that want everything take three sevenths each.
//! With *n* of them each takes 3 / (3n + 1), and 1 / (3n + 1) stays free for the next one. So a
//! workspace never finds a node full because of another one (test plan, TEST-S12). The width of the
//! limits and the number of nodes do not matter.
//!
//! Switches share a buffer among their queues by this rule (Choudhury and Hahne, dynamic
//! thresholds). It needs no number of workspaces, and reserves nothing for idle ones.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use portolan_model::id::TenantId;

/// A workspace may have at most this multiple of the free capacity.
const TIMES: usize = 3;

/// The capacity of this node, and its use by workspace.
#[derive(Debug)]
pub(super) struct Ceiling {
    most: usize,
    used: AtomicUsize,
    shares: Mutex<HashMap<TenantId, Weak<Share>>>,
}

/// The share of one workspace.
#[derive(Debug)]
pub(crate) struct Share {
    ceiling: Arc<Ceiling>,
    used: AtomicUsize,
}

/// One unit, until it is dropped.
#[derive(Debug)]
pub(super) struct Taken(Arc<Share>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::AcqRel);
        self.0.ceiling.used.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Ceiling {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            used: AtomicUsize::new(0),
            shares: Mutex::default(),
        })
    }

    /// The share of a workspace: the same one as long as it or a unit of it is held.
    pub(super) fn of(self: &Arc<Self>, tenant: TenantId) -> Arc<Share> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&tenant).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() == shares.capacity() {
            // Before the map grows, unused shares are removed.
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Share {
            ceiling: Arc::clone(self),
            used: AtomicUsize::new(0),
        });
        shares.insert(tenant, Arc::downgrade(&share));
        share
    }
}

impl Share {
    /// Takes one more. `None`: the node is full, or the workspace has reached its share.
    pub(super) fn take(self: &Arc<Self>) -> Option<Taken> {
        let used = self.ceiling.used.fetch_add(1, Ordering::AcqRel);
        let own = self.used.fetch_add(1, Ordering::AcqRel);
        let taken = Taken(Arc::clone(self));
        let free = self.ceiling.most.saturating_sub(used);
        (own < free.saturating_mul(TIMES)).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(share: &Arc<Share>) -> Vec<Taken> {
        std::iter::from_fn(|| share.take()).collect()
    }

    #[test]
    fn s12_who_wants_everything_leaves_a_quarter_and_the_next_one_gets_its_part() {
        let node = Ceiling::new(2_000);
        let [noisy, other, third] = [(); 3].map(|()| node.of(TenantId::generate()));
        let all = fill(&noisy);
        assert_eq!(all.len(), 1_500);
        // Others get units, each less than the one before, and never none.
        let others = fill(&other);
        assert_eq!(others.len(), 375);
        assert!(fill(&third).len() > 90);
        assert!(noisy.take().is_none() && other.take().is_none());
        // Returned units are free for all workspaces again.
        drop((all, others));
        assert_eq!(node.used.load(Ordering::Relaxed), 0);
        assert_eq!(fill(&other).len(), 1_500);
    }

    #[test]
    fn a_node_that_bears_one_bears_one() {
        let node = Ceiling::new(1);
        let [one, other] = [(); 2].map(|()| node.of(TenantId::generate()));
        let taken = one.take();
        assert!(taken.is_some() && one.take().is_none() && other.take().is_none());
        drop(taken);
        assert!(other.take().is_some());
        assert!(Ceiling::new(0).of(TenantId::generate()).take().is_none());
    }

    #[test]
    fn a_share_is_one_however_often_it_is_asked_for_and_is_forgotten_when_nobody_holds_it() {
        let node = Ceiling::new(8);
        let tenant = TenantId::generate();
        let taken = node.of(tenant).take();
        assert_eq!(node.of(tenant).used.load(Ordering::Relaxed), 1);
        drop(taken);
        for _ in 0..10_000 {
            node.of(TenantId::generate());
        }
        let known = node.shares.lock().unwrap().len();
        assert!(known < 100, "{known}");
    }
}
