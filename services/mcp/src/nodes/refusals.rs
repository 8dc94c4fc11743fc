//! Writes the refusals by limits for the console, at intervals.

use std::time::Duration;

use portolan_model::{id::TenantId, limits::LimitName};
use portolan_storage::{StorageError, platform::limits};

use crate::{limits::refusals::Counts, nodes::context::NodeContext};

/// The interval of writes.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// Writes the refusals at intervals, until the process stops.
pub(crate) async fn keep(state: NodeContext) {
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

pub(crate) async fn write(
    state: &NodeContext,
    tenant: TenantId,
    counts: &Counts,
) -> Result<(), StorageError> {
    let refused: Vec<_> = LimitName::ALL
        .into_iter()
        .map(|name| (name, counts[name as usize]))
        .filter(|(_, count)| *count > 0)
        .collect();
    let mut tx = state.store.node(tenant).await?;
    limits::add_refusals(&mut tx, &refused, state.clock.now()).await?;
    tx.commit().await
}
