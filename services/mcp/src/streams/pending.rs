//! Tenants whose open streams must be notified once more.

use std::{
    collections::HashSet,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::TenantId;
use tokio::sync::Notify;

/// Tenants with a stream that may have missed a notification while it was opened.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    pub(crate) tenants: Mutex<HashSet<TenantId>>,
    pub(crate) bell: Notify,
}

impl Untold {
    /// Schedules one more notification of this tenant's streams.
    pub(crate) fn add(&self, tenant: TenantId) {
        self.tenants().insert(tenant);
        self.bell.notify_one();
    }

    pub(crate) fn take(&self) -> HashSet<TenantId> {
        mem::take(&mut self.tenants())
    }

    fn tenants(&self) -> MutexGuard<'_, HashSet<TenantId>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
