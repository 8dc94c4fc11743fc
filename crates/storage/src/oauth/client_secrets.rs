//! Secrets of OAuth clients: known by digest, two at a time at most, so that one can be replaced
//! without a pause (AUTH-C16).

use portolan_model::{
    Digest, Timestamp,
    id::{ClientId, ClientSecretId},
};
use time::Duration;

use crate::{StorageError, SystemTx};

/// Live secrets of one client: the present one and the one that takes its place.
pub const MOST: i64 = 2;
/// Between two notes that one secret, or one account, was used: a busy program is not a write a
/// request.
pub(crate) const NOTED_EVERY: Duration = Duration::seconds(10);

/// The facts about a secret that may be shown.
#[derive(Debug, Clone)]
pub struct ClientSecret {
    /// Which.
    pub id: ClientSecretId,
    /// Whose.
    pub client: ClientId,
    /// The beginning of the secret; empty for those from before it was kept.
    pub hint: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last proved its client, to a few seconds.
    pub last_used_at: Option<Timestamp>,
}

/// A secret that could prove a client.
#[derive(Debug, Clone)]
pub struct LiveSecret {
    /// Which.
    pub id: ClientSecretId,
    /// Digest by which the secret is verified.
    pub digest: Digest,
}

/// The live secrets of some clients, oldest first.
pub async fn list(
    tx: &mut SystemTx,
    clients: &[ClientId],
) -> Result<Vec<ClientSecret>, StorageError> {
    let ids: Vec<_> = clients.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        "select id, client_ref, hint, created_at, last_used_at from oauth_client_secrets
         where client_ref = any($1) and revoked_at is null order by id",
        &ids,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ClientSecret {
            id: row.id.into(),
            client: row.client_ref.into(),
            hint: row.hint,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
        })
        .collect())
}

/// The secrets that are good at `now`.
pub async fn live(
    tx: &mut SystemTx,
    client: ClientId,
    now: Timestamp,
) -> Result<Vec<LiveSecret>, StorageError> {
    let rows = sqlx::query!(
        "select id, digest from oauth_client_secrets
         where client_ref = $1 and revoked_at is null and (expires_at is null or expires_at > $2)",
        client.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LiveSecret {
                id: row.id.into(),
                digest: Digest::from_slice(&row.digest).ok_or(StorageError::Inconsistent {
                    table: "oauth_client_secrets",
                    column: "digest",
                })?,
            })
        })
        .collect()
}

/// Adds a secret; `None` if the client has as many as it may have, also when two are added at once.
pub async fn add(
    tx: &mut SystemTx,
    client: ClientId,
    digest: &Digest,
    hint: &str,
    now: Timestamp,
) -> Result<Option<ClientSecretId>, StorageError> {
    // Lock the client first: without the lock, two concurrent inserts could both pass the count.
    sqlx::query_scalar!(
        "select id from oauth_clients where id = $1 for no key update",
        client.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    let id = ClientSecretId::generate();
    let done = sqlx::query!(
        "insert into oauth_client_secrets (id, client_ref, digest, hint, created_at)
         select $1, $2, $3, $4, $5
         where (select count(*) from oauth_client_secrets where client_ref = $2 and revoked_at is null) < $6",
        id.uuid(),
        client.uuid(),
        digest.as_bytes().as_slice(),
        hint,
        now,
        MOST,
    )
    .execute(tx.connection())
    .await?;
    Ok((done.rows_affected() == 1).then_some(id))
}

/// Revokes a secret, once. False if it was revoked before or is another client's.
pub async fn revoke(
    tx: &mut SystemTx,
    client: ClientId,
    id: ClientSecretId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update oauth_client_secrets set revoked_at = $3 where id = $2 and client_ref = $1 and revoked_at is null",
        client.uuid(),
        id.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that a secret proved its client, if the last note is some seconds old.
pub async fn note_used(
    tx: &mut SystemTx,
    id: ClientSecretId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update oauth_client_secrets set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $3)",
        id.uuid(),
        now,
        now - NOTED_EVERY,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
