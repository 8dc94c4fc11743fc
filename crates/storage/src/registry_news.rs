//! News of the registry: a change raises the tenant's revision and tells every node in the same transaction.
//!
//! The revision in the row is the truth; a notification is only a doorbell, and a node that missed some (its connection
//! broke) is told to look at everything again.

use std::time::Duration;

use portolan_model::id::TenantId;
use sqlx::postgres::PgListener;

use crate::{StorageError, Store, TenantTx};

const CHANNEL: &str = "portolan_registry";

/// Raises the revision of the transaction's tenant and returns it. Call once in every transaction that changes a source, a tool, a
/// server or a credential. Nodes hear of it at commit.
pub async fn changed(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    let revision = sqlx::query_scalar!(
        "update tenants set registry_revision = registry_revision + 1 where id = $1 returning registry_revision",
        tenant
    )
    .fetch_one(tx.connection())
    .await?;
    sqlx::query("select pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(tenant.to_string())
        .execute(tx.connection())
        .await?;
    Ok(revision)
}

/// What a node hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// This tenant's registry has moved on.
    Changed(TenantId),
    /// The connection was away: anything may have changed.
    Everything,
}

/// A connection that listens. It reconnects by itself, with [`News::Everything`] after each gap.
#[derive(Debug)]
pub struct NewsListener {
    store: Store,
    listener: Option<PgListener>,
}

impl NewsListener {
    /// Starts listening.
    pub async fn open(store: &Store) -> Result<Self, StorageError> {
        let listener = listen(store).await?;
        Ok(Self {
            store: store.clone(),
            listener: Some(listener),
        })
    }

    /// Waits for the next piece of news. Cancel safe. Never ends: while the database is away it tries once a second.
    pub async fn next(&mut self) -> News {
        loop {
            let Some(listener) = &mut self.listener else {
                match listen(&self.store).await {
                    Ok(listener) => {
                        self.listener = Some(listener);
                        return News::Everything;
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "cannot listen for registry news"
                        );
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                }
            };
            match listener.try_recv().await {
                Ok(Some(notification)) => {
                    if let Ok(uuid) = notification.payload().parse() {
                        return News::Changed(TenantId::from_uuid(uuid));
                    }
                }
                Ok(None) | Err(_) => self.listener = None,
            }
        }
    }
}

async fn listen(store: &Store) -> Result<PgListener, StorageError> {
    let mut listener = PgListener::connect_with(store.pool()).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
