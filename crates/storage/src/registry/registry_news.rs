//! Notifications of registry changes. A change raises the tenant's revision and notifies every node
//! in the same transaction.
//!
//! The revision in the row is the truth, and a notification only says that it changed. A node that
//! may have missed notifications, because its connection broke, receives a message to read
//! everything again.

use std::time::Duration;

use portolan_model::id::TenantId;
use sqlx::{Executor as _, PgConnection, postgres::PgListener};

use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout};
use uuid::Uuid;

use crate::{StorageError, Store, SystemTx, TenantTx};

const CHANNEL: &str = "portolan_registry";
/// Between two questions whether the connection is still there.
const LOOK: Duration = Duration::from_secs(5);
/// It answers within this time, or it is made again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Raises the revision of the transaction's tenant and returns it. Call once in every transaction
/// that changes a source, a tool, a server or a credential. Nodes are notified at commit.
pub async fn changed(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    let revision = sqlx::query_scalar!(
        "update tenants set registry_revision = registry_revision + 1 where id = $1 returning registry_revision",
        tenant
    )
    .fetch_one(tx.connection())
    .await?;
    ring(tx.connection(), tenant).await?;
    Ok(revision)
}

/// The revision of the registry of the active tenant with this slug.
pub async fn revision_of(tx: &mut SystemTx, slug: &str) -> Result<Option<i64>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select t.registry_revision from tenants t join tenant_slugs s on s.tenant_id = t.id
         where s.slug = $1 and s.state in ('primary', 'alias') and t.status = 'active'",
        slug,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Notifies the nodes at commit that a tenant's registry changed.
pub(crate) async fn ring(connection: &mut PgConnection, tenant: Uuid) -> Result<(), StorageError> {
    sqlx::query("select pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(tenant.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// A message that a node receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// This tenant's registry has moved on.
    Changed(TenantId),
    /// The connection was away: anything may have changed.
    Everything,
}

/// A connection that listens. It connects by itself, with [`News::Everything`] after each gap and
/// at the start.
///
/// It measures `listen_connected`, and `registry_stale_seconds`: for how long it has not been known
/// that nothing was missed.
#[derive(Debug)]
pub struct NewsListener {
    store: Store,
    listener: Option<PgListener>,
    /// The database was there, over the connection that listens.
    seen: Instant,
    looks: Interval,
}

impl NewsListener {
    /// Listens from the first [`NewsListener::next`] on.
    pub fn new(store: &Store) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        metrics::gauge!("listen_connected").set(0.0);
        Self {
            store: store.clone(),
            listener: None,
            seen: Instant::now(),
            looks,
        }
    }

    /// Waits for the next message. Cancel safe. Never ends: while the database does not answer, it
    /// retries every second.
    pub async fn next(&mut self) -> News {
        loop {
            let Some(listener) = &mut self.listener else {
                metrics::gauge!("registry_stale_seconds").set(self.seen.elapsed().as_secs_f64());
                match listen(&self.store).await {
                    Ok(listener) => {
                        self.listener = Some(listener);
                        self.heard();
                        return News::Everything;
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "cannot listen for registry news"
                        );
                        sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                }
            };
            let heard = tokio::select! {
                heard = listener.try_recv() => heard,
                _ = self.looks.tick() => {
                    self.look().await;
                    continue;
                }
            };
            match heard {
                Ok(Some(notification)) => {
                    self.heard();
                    if let Ok(uuid) = notification.payload().parse() {
                        return News::Changed(TenantId::from_uuid(uuid));
                    }
                }
                Ok(None) | Err(_) => self.lost(),
            }
        }
    }

    /// A connection can be dead without telling: only who asks knows.
    async fn look(&mut self) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        match timeout(PATIENCE, listener.execute("select 1")).await {
            Ok(Ok(_)) => self.heard(),
            Ok(Err(_)) | Err(_) => self.lost(),
        }
    }

    fn heard(&mut self) {
        self.seen = Instant::now();
        metrics::gauge!("listen_connected").set(1.0);
        metrics::gauge!("registry_stale_seconds").set(0.0);
    }

    fn lost(&mut self) {
        self.listener = None;
        metrics::gauge!("listen_connected").set(0.0);
    }
}

async fn listen(store: &Store) -> Result<PgListener, StorageError> {
    let mut listener = PgListener::connect_with(store.pool()).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
