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
pub(crate) struct NodeQuota {
    most: usize,
    used: AtomicUsize,
    quotas: Mutex<HashMap<TenantId, Weak<TenantQuota>>>,
}

/// The share of one workspace.
#[derive(Debug)]
pub(crate) struct TenantQuota {
    node: Arc<NodeQuota>,
    used: AtomicUsize,
}

/// One unit, until it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaUnit(Arc<TenantQuota>);

impl Drop for QuotaUnit {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::AcqRel);
        self.0.node.used.fetch_sub(1, Ordering::AcqRel);
    }
}

impl NodeQuota {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            used: AtomicUsize::new(0),
            quotas: Mutex::default(),
        })
    }

    /// The share of a workspace: the same one as long as it or a unit of it is held.
    pub(crate) fn of(self: &Arc<Self>, tenant: TenantId) -> Arc<TenantQuota> {
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quota) = quotas.get(&tenant).and_then(Weak::upgrade) {
            return quota;
        }
        if quotas.len() == quotas.capacity() {
            // Before the map grows, unused shares are removed.
            quotas.retain(|_, quota| quota.strong_count() > 0);
        }
        let quota = Arc::new(TenantQuota {
            node: Arc::clone(self),
            used: AtomicUsize::new(0),
        });
        quotas.insert(tenant, Arc::downgrade(&quota));
        quota
    }
}

impl TenantQuota {
    /// Takes one more. `None`: the node is full, or the workspace has reached its share.
    pub(crate) fn take(self: &Arc<Self>) -> Option<QuotaUnit> {
        let used = self.node.used.fetch_add(1, Ordering::AcqRel);
        let own = self.used.fetch_add(1, Ordering::AcqRel);
        let taken = QuotaUnit(Arc::clone(self));
        let free = self.node.most.saturating_sub(used);
        (own < free.saturating_mul(TIMES)).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(quota: &Arc<TenantQuota>) -> Vec<QuotaUnit> {
        std::iter::from_fn(|| quota.take()).collect()
    }

    #[test]
    fn s12_who_wants_everything_leaves_a_quarter_and_the_next_one_gets_its_part() {
        let node = NodeQuota::new(2_000);
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
        let node = NodeQuota::new(1);
        let [one, other] = [(); 2].map(|()| node.of(TenantId::generate()));
        let taken = one.take();
        assert!(taken.is_some() && one.take().is_none() && other.take().is_none());
        drop(taken);
        assert!(other.take().is_some());
        assert!(NodeQuota::new(0).of(TenantId::generate()).take().is_none());
    }

    #[test]
    fn a_share_is_one_however_often_it_is_asked_for_and_is_forgotten_when_nobody_holds_it() {
        let node = NodeQuota::new(8);
        let tenant = TenantId::generate();
        let taken = node.of(tenant).take();
        assert_eq!(node.of(tenant).used.load(Ordering::Relaxed), 1);
        drop(taken);
        for _ in 0..10_000 {
            node.of(TenantId::generate());
        }
        let known = node.quotas.lock().unwrap().len();
        assert!(known < 100, "{known}");
    }
}
