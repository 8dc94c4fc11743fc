//! Values sealed under the master secret, which are sealed again when that changes. (Secrets of
//! tenants are sealed under their data keys, which are wrapped here.) Each write is guarded by the
//! value that was read.

use portolan_model::id::{TenantId, UserId};
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// Where a sealed value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedColumn {
    /// The data key of a tenant, and its id.
    DataKey(TenantId, Uuid),
    /// The private half of a signing key.
    SigningKey(String),
    /// The shared secret of an authenticator app.
    SecondFactor(UserId),
}

/// A sealed value.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Where it stands.
    pub place: SealedColumn,
    /// As it is kept.
    pub bytes: Vec<u8>,
}

/// Data keys behind `after`, in the order of their tenants.
pub async fn data_keys(
    tx: &mut SystemTx,
    after: Option<(TenantId, Uuid)>,
    limit: i64,
) -> Result<Vec<Sealed>, StorageError> {
    let (tenant, id) = after.unzip();
    let rows = sqlx::query!(
        "select tenant_id, id, wrapped from tenant_deks where $1::uuid is null or (tenant_id, id) > ($1, $2::uuid)
         order by tenant_id, id limit $3",
        tenant.map(TenantId::uuid),
        id,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Sealed {
            place: SealedColumn::DataKey(row.tenant_id.into(), row.id),
            bytes: row.wrapped,
        })
        .collect())
}

/// Signing keys that can still be needed.
pub async fn signing_keys(tx: &mut SystemTx) -> Result<Vec<Sealed>, StorageError> {
    let rows = sqlx::query!(
        "select kid, private_sealed from signing_keys where gone_at > now() and denied_at is null order by kid"
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Sealed {
            place: SealedColumn::SigningKey(row.kid),
            bytes: row.private_sealed,
        })
        .collect())
}

/// Secrets of authenticator apps of people behind `after`.
pub async fn second_factors(
    tx: &mut SystemTx,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<Sealed>, StorageError> {
    let rows = sqlx::query!(
        "select user_id, secret_sealed from totp_credentials where $1::uuid is null or user_id > $1 order by user_id limit $2",
        after.map(UserId::uuid),
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Sealed {
            place: SealedColumn::SecondFactor(row.user_id.into()),
            bytes: row.secret_sealed,
        })
        .collect())
}

/// Puts `new` in the place of what was read. False if it was changed meanwhile.
pub async fn put(tx: &mut SystemTx, old: &Sealed, new: &[u8]) -> Result<bool, StorageError> {
    let connection = tx.connection();
    let done = match &old.place {
        SealedColumn::DataKey(tenant, id) => {
            sqlx::query!(
                "update tenant_deks set wrapped = $4 where tenant_id = $1 and id = $2 and wrapped = $3",
                tenant.uuid(),
                id,
                old.bytes,
                new
            )
            .execute(connection)
            .await?
        }
        SealedColumn::SigningKey(kid) => {
            sqlx::query!(
                "update signing_keys set private_sealed = $3 where kid = $1 and private_sealed = $2",
                kid,
                old.bytes,
                new
            )
            .execute(connection)
            .await?
        }
        SealedColumn::SecondFactor(user) => {
            sqlx::query!(
                "update totp_credentials set secret_sealed = $3 where user_id = $1 and secret_sealed = $2",
                user.uuid(),
                old.bytes,
                new
            )
            .execute(connection)
            .await?
        }
    };
    Ok(done.rows_affected() == 1)
}
