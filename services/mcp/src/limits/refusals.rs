//! Counts of refusals by limit, for the console.
//!
//! Only a refusal counts anything; the counts are written at intervals.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use portolan_model::{id::TenantId, limits::LimitName};

/// Most tenants that are counted between two writes; refusals of others are not counted.
const TENANTS: usize = 10_000;

pub(crate) type Counts = [u64; LimitName::ALL.len()];

/// The refusals since the last write.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<TenantId, Counts>>);

impl Refusals {
    pub(crate) fn add(&self, tenant: TenantId, name: LimitName) {
        let mut counts = Counts::default();
        counts[name as usize] = 1;
        self.put(tenant, &counts);
    }

    pub(crate) fn put(&self, tenant: TenantId, counts: &Counts) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= TENANTS && !all.contains_key(&tenant) {
            return;
        }
        let known = all.entry(tenant).or_default();
        for (known, count) in known.iter_mut().zip(counts) {
            *known = known.saturating_add(*count);
        }
    }

    /// The refusals of a tenant since the last write.
    #[cfg(test)]
    pub(crate) fn of(&self, tenant: TenantId) -> Counts {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&tenant).copied().unwrap_or_default()
    }

    pub(crate) fn drain(&self) -> HashMap<TenantId, Counts> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
