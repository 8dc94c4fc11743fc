//! Signing keys at rest (AUTH-J1, AUTH-J2). The state of a key follows from its four times; this
//! module only stores them.

use portolan_model::Timestamp;
use serde_json::Value;

use crate::{EdgeTx, StorageError, SystemTx};

/// A key as stored.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// RFC 7638 thumbprint.
    pub kid: String,
    /// Public half.
    pub public_jwk: Value,
    /// Private half, sealed with `kid` as associated data.
    pub private_sealed: Vec<u8>,
    /// When it enters the JWKS.
    pub publish_at: Timestamp,
    /// When it begins to sign.
    pub sign_from: Timestamp,
    /// When it stops.
    pub sign_until: Timestamp,
    /// When it leaves the JWKS.
    pub gone_at: Timestamp,
}

/// Keys that are not gone and not denied, oldest first.
pub async fn list(tx: &mut SystemTx, now: Timestamp) -> Result<Vec<StoredKey>, StorageError> {
    Ok(sqlx::query_as!(
        StoredKey,
        "select kid, public_jwk, private_sealed, publish_at, sign_from, sign_until, gone_at from signing_keys
         where gone_at > $1 and denied_at is null order by sign_from, kid",
        now,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// The public halves of the same keys, for nodes.
pub async fn list_public(tx: &mut EdgeTx, now: Timestamp) -> Result<Vec<Value>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select public_jwk from signing_keys where gone_at > $1 and denied_at is null order by sign_from, kid",
        now,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Holds the rotation lock until the transaction ends: of several nodes that start at once, one
/// makes the keys.
pub async fn lock_rotation(tx: &mut SystemTx) -> Result<(), StorageError> {
    // A number of our own among advisory locks: "keys" in ASCII.
    sqlx::query!("select pg_advisory_xact_lock(1801812339)")
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// Writes a new key.
pub async fn insert(
    tx: &mut SystemTx,
    key: &StoredKey,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into signing_keys (kid, alg, public_jwk, private_sealed, created_at, publish_at, sign_from, sign_until, gone_at)
         values ($1, 'ES256', $2, $3, $4, $5, $6, $7, $8)",
        key.kid,
        key.public_jwk,
        key.private_sealed,
        now,
        key.publish_at,
        key.sign_from,
        key.sign_until,
        key.gone_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A key as an operator sees it, whatever became of it. Without its private half.
#[derive(Debug, Clone)]
pub struct KnownKey {
    /// RFC 7638 thumbprint.
    pub kid: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it enters the JWKS.
    pub publish_at: Timestamp,
    /// When it begins to sign.
    pub sign_from: Timestamp,
    /// When it stops.
    pub sign_until: Timestamp,
    /// When it leaves the JWKS.
    pub gone_at: Timestamp,
    /// When it was removed in an emergency: its tokens are refused.
    pub denied_at: Option<Timestamp>,
}

/// Every key there ever was, the newest first, at most a hundred.
pub async fn known(tx: &mut SystemTx) -> Result<Vec<KnownKey>, StorageError> {
    Ok(sqlx::query_as!(
        KnownKey,
        "select kid, created_at, publish_at, sign_from, sign_until, gone_at, denied_at from signing_keys
         order by sign_from desc, kid limit 100",
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Writes the times of a key anew: it signs sooner, or stops sooner. Under [`lock_rotation`].
pub async fn set_times(tx: &mut SystemTx, key: &StoredKey) -> Result<(), StorageError> {
    sqlx::query!(
        "update signing_keys set sign_from = $2, sign_until = $3, gone_at = $4 where kid = $1 and denied_at is null",
        key.kid,
        key.sign_from,
        key.sign_until,
        key.gone_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Removes a key for good (AUTH-J3). False if there is none, or it was removed before.
pub async fn deny(tx: &mut SystemTx, kid: &str, now: Timestamp) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update signing_keys set denied_at = $2 where kid = $1 and denied_at is null",
        kid,
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
