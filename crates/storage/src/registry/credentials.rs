//! Sealed credentials of sources, and the data keys they are sealed under. This module never sees a
//! secret in clear.

use portolan_model::{Timestamp, id::SourceId};
use uuid::Uuid;

use crate::{StorageError, TenantTx};

/// A wrapped data key.
#[derive(Debug, Clone)]
pub struct WrappedKey {
    /// Its id; bound into the wrapping.
    pub id: Uuid,
    /// Wrapped by the key-encryption key.
    pub wrapped: Vec<u8>,
}

/// The tenant's newest data key.
pub async fn newest_data_key(tx: &mut TenantTx) -> Result<Option<WrappedKey>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        WrappedKey,
        "select id, wrapped from tenant_deks where tenant_id = $1 order by created_at desc, id desc limit 1",
        tenant
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Keeps a new data key.
pub async fn insert_data_key(
    tx: &mut TenantTx,
    key: &WrappedKey,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into tenant_deks (tenant_id, id, wrapped, created_at) values ($1, $2, $3, $4)",
        tenant,
        key.id,
        key.wrapped,
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A credential at rest.
#[derive(Debug, Clone)]
pub struct SealedCredential {
    /// Its kind.
    pub kind: String,
    /// Sealed under the data key, bound to tenant, source and version.
    pub sealed: Vec<u8>,
    /// The data key.
    pub key: WrappedKey,
    /// Raised by every change.
    pub version: i32,
}

/// A source's credential.
pub async fn find(
    tx: &mut TenantTx,
    source: SourceId,
) -> Result<Option<SealedCredential>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        "select c.kind, c.sealed, c.version, k.id, k.wrapped from source_credentials c
           join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
         where c.tenant_id = $1 and c.source_id = $2",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| SealedCredential {
        kind: row.kind,
        sealed: row.sealed,
        key: WrappedKey {
            id: row.id,
            wrapped: row.wrapped,
        },
        version: row.version,
    }))
}

/// The version that the next [`put`] of this source must be sealed for. Locks the source until the
/// transaction ends, so that two changes at once do not seal for the same version. `None` if there
/// is no such source.
pub async fn next_version(
    tx: &mut TenantTx,
    source: SourceId,
) -> Result<Option<i32>, StorageError> {
    let tenant = tx.tenant().uuid();
    let there = sqlx::query_scalar!(
        "select id from sources where tenant_id = $1 and id = $2 and deleted_at is null for update",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    if there.is_none() {
        return Ok(None);
    }
    let current = sqlx::query_scalar!(
        "select version from source_credentials where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(Some(current.unwrap_or(0) + 1))
}

/// Sets a source's credential.
pub async fn put(
    tx: &mut TenantTx,
    source: SourceId,
    credential: &SealedCredential,
    hint: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into source_credentials (tenant_id, source_id, kind, sealed, dek_id, hint, version, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (tenant_id, source_id) do update
           set kind = excluded.kind, sealed = excluded.sealed, dek_id = excluded.dek_id, hint = excluded.hint,
               version = excluded.version, updated_at = excluded.updated_at",
        tenant,
        source.uuid(),
        credential.kind,
        credential.sealed,
        credential.key.id,
        hint,
        credential.version,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Forgets a source's credential.
pub async fn delete(tx: &mut TenantTx, source: SourceId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from source_credentials where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
