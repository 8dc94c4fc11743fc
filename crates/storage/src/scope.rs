//! Transactions by scope: one tenant, all tenants, or the data that a node reads before it knows a
//! tenant. [`crate::Store`] begins them.

use portolan_model::id::TenantId;
use sqlx::{PgConnection, Postgres, Transaction};

use crate::StorageError;

/// A transaction inside one tenant. Rolled back unless [`TenantTx::commit`] is called.
#[derive(Debug)]
pub struct TenantTx {
    pub(crate) tx: Transaction<'static, Postgres>,
    pub(crate) tenant: TenantId,
}

impl TenantTx {
    /// Whose rows it sees.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Makes the changes last.
    pub async fn commit(self) -> Result<(), StorageError> {
        Ok(self.tx.commit().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}

/// A transaction that spans tenants. Rolled back unless [`SystemTx::commit`] is called.
#[derive(Debug)]
pub struct SystemTx {
    pub(crate) tx: Transaction<'static, Postgres>,
}

impl SystemTx {
    /// Makes the changes last.
    pub async fn commit(self) -> Result<(), StorageError> {
        Ok(self.tx.commit().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}

/// A transaction of a node that spans tenants, and sees nothing of people. Rolled back unless
/// [`EdgeTx::commit`] is called.
#[derive(Debug)]
pub struct EdgeTx {
    pub(crate) tx: Transaction<'static, Postgres>,
}

impl EdgeTx {
    /// Makes the changes last.
    pub async fn commit(self) -> Result<(), StorageError> {
        Ok(self.tx.commit().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}

/// A transaction of the owner of counts and of the call log, which makes and drops their partitions
/// and sees nothing else. Rolled back unless [`KeeperTx::commit`] is called.
#[derive(Debug)]
pub struct KeeperTx {
    pub(crate) tx: Transaction<'static, Postgres>,
}

impl KeeperTx {
    /// Makes the changes last.
    pub async fn commit(self) -> Result<(), StorageError> {
        Ok(self.tx.commit().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}

/// A transaction of any scope, for data of several scopes (the audit log, the feed).
pub trait Tx: Send {
    /// The connection inside the transaction; only this crate can use it.
    #[doc(hidden)]
    fn raw(&mut self) -> &mut PgConnection;
}
impl Tx for TenantTx {
    fn raw(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}
impl Tx for SystemTx {
    fn raw(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}
impl Tx for EdgeTx {
    fn raw(&mut self) -> &mut PgConnection {
        &mut self.tx
    }
}
