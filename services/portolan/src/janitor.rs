//! Purges what is over, every ten minutes, on one node at a time. What fails is tried again sooner.

use std::time::Duration;

use portolan_model::{
    Clock, Timestamp,
    audit::{Actor, Event, Outcome},
    id::TenantId,
};
use portolan_storage::{
    Reason, StorageError, Store,
    accounts::endings,
    expiry::{self, Expired},
    platform::audit::{self, Origin},
};
use tokio_util::sync::CancellationToken;

use crate::clock_watch::ClockWatch;

const PERIOD: Duration = Duration::from_secs(600);
/// After a failure. Each further failure doubles it, up to [`PERIOD`].
const AGAIN: Duration = Duration::from_secs(5);
/// Rounds of one kind in one run: a backlog is worked off over several runs, not in one that never
/// ends.
const ROUNDS: usize = 50;

/// Runs until `stop`. While the clock is wrong nothing is over.
pub(crate) async fn run(store: Store, clock: Clock, watch: ClockWatch, stop: CancellationToken) {
    let mut again = AGAIN;
    loop {
        // While the clock is wrong, the next look comes as soon as after a failure.
        let is_done = watch.look().await.is_ok() && end_all(&store, &clock, &stop).await;
        let pause = if is_done { PERIOD } else { again };
        again = if is_done {
            AGAIN
        } else {
            PERIOD.min(2 * again)
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One run. `false` if something failed: it is left for the next one.
async fn end_all(store: &Store, clock: &Clock, stop: &CancellationToken) -> bool {
    let mut is_done = match end_tenants(store, clock).await {
        Ok(Destroyed { tenants, failed }) => {
            if tenants > 0 {
                tracing::info!(tenants, "deleted workspaces were destroyed");
            }
            failed == 0
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "deleted workspaces cannot be looked for"
            );
            false
        }
    };
    for what in Expired::ALL {
        if stop.is_cancelled() {
            break;
        }
        match purge(store, clock, *what).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(?what, rows, "purged"),
            Err(error) => {
                tracing::warn!(
                    ?what,
                    error = &error as &dyn std::error::Error,
                    "could not purge"
                );
                is_done = false;
            }
        }
    }
    is_done
}

/// Deleted workspaces of one run.
struct Destroyed {
    /// So many were destroyed.
    tenants: usize,
    /// So many could not be.
    failed: usize,
}

/// AUTH-M6: what was deleted a month ago goes. The keys of each tenant first, in a transaction of
/// their own: what is sealed is lost even if the rest cannot go yet. A tenant that cannot go keeps
/// no other one here.
async fn end_tenants(store: &Store, clock: &Clock) -> Result<Destroyed, StorageError> {
    let mut tenants = 0;
    let mut failed = Vec::new();
    for _ in 0..ROUNDS {
        let now = clock.now();
        let mut tx = store.system(Reason::Janitor).await?;
        let Some(tenant) = endings::overdue(&mut tx, &failed, now).await? else {
            break;
        };
        let shredded = async {
            endings::shred(&mut tx, tenant).await?;
            tx.commit().await
        };
        let gone = match shredded.await {
            Ok(()) => end_tenant(store, tenant, now).await,
            Err(error) => Err(error),
        };
        match gone {
            Ok(()) => tenants += 1,
            Err(error) => {
                tracing::warn!(
                    tenant.id = %tenant,
                    error = &error as &dyn std::error::Error,
                    "a deleted workspace could not be destroyed"
                );
                failed.push(tenant);
            }
        }
    }
    let failed = failed.len();
    Ok(Destroyed { tenants, failed })
}

async fn end_tenant(store: &Store, tenant: TenantId, now: Timestamp) -> Result<(), StorageError> {
    let mut tx = store.system(Reason::Janitor).await?;
    endings::purge(&mut tx, tenant).await?;
    let event = Event {
        tenant: Some(tenant),
        actor: Actor::System,
        action: "tenant.deleted",
        target_kind: "tenant",
        target_id: tenant.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({}),
    };
    audit::record(&mut tx, &event, &Origin::default(), now).await?;
    tx.commit().await
}

async fn purge(store: &Store, clock: &Clock, what: Expired) -> Result<u64, StorageError> {
    let mut rows = 0;
    for _ in 0..ROUNDS {
        let mut tx = store.system(Reason::Janitor).await?;
        if !expiry::try_lock(&mut tx).await? {
            break;
        }
        let removed = expiry::purge(&mut tx, what, clock.now()).await?;
        tx.commit().await?;
        rows += removed;
        if removed == 0 {
            break;
        }
    }
    Ok(rows)
}
