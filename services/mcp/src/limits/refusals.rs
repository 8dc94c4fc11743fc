//! Counts of refusals by limit, for the console.
//!
//! Only a refusal counts anything; the counts are written at intervals.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portolan_model::{id::TenantId, limits::LimitName};
use portolan_storage::{StorageError, platform::limits};

use crate::http::state::McpState;

/// The interval of writes.
const EVERY: Duration = Duration::from_secs(5);
/// Most tenants that are counted between two writes; refusals of others are not counted.
const TENANTS: usize = 10_000;

type Counts = [u64; LimitName::ALL.len()];

/// The refusals since the last write.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<TenantId, Counts>>);

impl Refusals {
    pub(crate) fn add(&self, tenant: TenantId, name: LimitName) {
        let mut counts = Counts::default();
        counts[name as usize] = 1;
        self.put(tenant, &counts);
    }

    fn put(&self, tenant: TenantId, counts: &Counts) {
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

    fn drain(&self) -> HashMap<TenantId, Counts> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes the refusals at intervals, until the process stops.
pub(crate) async fn keep(state: McpState) {
    let mut is_over = false;
    while !is_over {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = state.stopping.cancelled() => is_over = true,
        }
        let mut waiting = state.admission.refusals.drain().into_iter();
        while let Some((tenant, counts)) = waiting.next() {
            if let Err(error) = write(&state, tenant, &counts).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot write what limits refused"
                );
                // The database is away: retry at the next interval.
                state.admission.refusals.put(tenant, &counts);
                for (tenant, counts) in waiting.by_ref() {
                    state.admission.refusals.put(tenant, &counts);
                }
            }
        }
    }
}

async fn write(state: &McpState, tenant: TenantId, counts: &Counts) -> Result<(), StorageError> {
    let refused: Vec<_> = LimitName::ALL
        .into_iter()
        .map(|name| (name, counts[name as usize]))
        .filter(|(_, count)| *count > 0)
        .collect();
    let mut tx = state.store.node(tenant).await?;
    limits::add_refusals(&mut tx, &refused, state.clock.now()).await?;
    tx.commit().await
}
