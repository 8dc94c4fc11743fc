//! Limits on suspended calls: per node, and per principal (MCP-MR-9).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use portolan_model::Digest;

#[derive(Debug, Default)]
struct TakenPermits {
    all: usize,
    by_principal: HashMap<Digest, usize>,
}

/// The permits of a node.
#[derive(Debug)]
pub(crate) struct SuspendedCalls {
    per_node: usize,
    taken: Mutex<TakenPermits>,
}

/// A permit for one suspended call, held until it is dropped.
#[derive(Debug)]
pub(crate) struct SuspendedPermit {
    suspended_calls: Arc<SuspendedCalls>,
    principal: Digest,
}

/// Why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSuspendedPermit {
    /// The principal has reached its limit.
    Own,
    /// The node has reached its limit.
    Node,
}

impl SuspendedCalls {
    pub(crate) fn new(per_node: usize) -> Self {
        Self {
            per_node,
            taken: Mutex::default(),
        }
    }

    /// Takes a permit for a call of `principal`, whose limit is `at_most`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        principal: Digest,
        at_most: usize,
    ) -> Result<SuspendedPermit, NoSuspendedPermit> {
        let mut taken = self.taken();
        let own = taken.by_principal.get(&principal).copied().unwrap_or(0);
        if own >= at_most {
            return Err(NoSuspendedPermit::Own);
        }
        if taken.all >= self.per_node {
            return Err(NoSuspendedPermit::Node);
        }
        taken.all += 1;
        taken.by_principal.insert(principal, own + 1);
        metrics::gauge!("mcp_parked_calls").increment(1.0);
        Ok(SuspendedPermit {
            suspended_calls: Arc::clone(self),
            principal,
        })
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, TakenPermits> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of suspended calls.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.taken().all
    }
}

impl Drop for SuspendedPermit {
    fn drop(&mut self) {
        metrics::gauge!("mcp_parked_calls").decrement(1.0);
        let mut taken = self.suspended_calls.taken();
        taken.all -= 1;
        let own = taken.by_principal.get(&self.principal).copied();
        match own {
            Some(own) if own > 1 => {
                taken.by_principal.insert(self.principal, own - 1);
            }
            _ => {
                taken.by_principal.remove(&self.principal);
            }
        }
    }
}
