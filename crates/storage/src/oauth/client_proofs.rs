//! Proof by key: assertions that were used, and key sets that were fetched (AUTH-C13).

use portolan_model::{Digest, Timestamp, id::ClientId};
use serde_json::Value;
use time::Duration;

use crate::{StorageError, SystemTx};

/// Uses an assertion up. True for the first use on any node; false if it was used before.
pub async fn use_up(
    tx: &mut SystemTx,
    client: ClientId,
    jti: &Digest,
    expires_at: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into assertion_ids (client_ref, digest, expires_at) values ($1, $2, $3) on conflict do nothing",
        client.uuid(),
        jti.as_bytes().as_slice(),
        expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A key set as it stood at its address.
#[derive(Debug, Clone)]
pub struct KeySet {
    /// The document.
    pub jwks: Value,
    /// When it was read.
    pub fetched_at: Timestamp,
}

/// The key set of a client that was read from this address; what stood at another one is nothing
/// here.
pub async fn key_set(
    tx: &mut SystemTx,
    client: ClientId,
    uri: &str,
) -> Result<Option<KeySet>, StorageError> {
    let row = sqlx::query!(
        "select jwks, fetched_at from client_keys where client_ref = $1 and uri = $2",
        client.uuid(),
        uri,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| KeySet {
        jwks: row.jwks,
        fetched_at: row.fetched_at,
    }))
}

/// Claims the right to fetch a key set again because a key id is unknown. The cluster grants one
/// claim per `pause` (CASE-72). True if the caller may fetch.
pub async fn may_ask(
    tx: &mut SystemTx,
    client: ClientId,
    uri: &str,
    pause: Duration,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update client_keys set asked_at = $3 where client_ref = $1 and uri = $2 and asked_at <= $4",
        client.uuid(),
        uri,
        now,
        now - pause,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Keeps what a fetch found.
pub async fn keep_key_set(
    tx: &mut SystemTx,
    client: ClientId,
    uri: &str,
    jwks: &Value,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into client_keys (client_ref, uri, jwks, fetched_at, asked_at) values ($1, $2, $3, $4, $4)
         on conflict (client_ref) do update set uri = excluded.uri, jwks = excluded.jwks, fetched_at = excluded.fetched_at",
        client.uuid(),
        uri,
        jwks,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Forgets a key set: the client has other keys now, or none.
pub async fn forget_key_set(tx: &mut SystemTx, client: ClientId) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from client_keys where client_ref = $1",
        client.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
