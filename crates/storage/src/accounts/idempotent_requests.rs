//! Requests of the management API that are carried out once (API-13), and their answers.

use portolan_model::{Digest, Timestamp, id::AccessTokenId};
use time::Duration;

use crate::{StorageError, SystemTx};

/// How long an answer is kept.
pub const KEPT: Duration = Duration::hours(24);

/// After this time, a request without an answer counts as lost with its process.
pub const LOST: Duration = Duration::minutes(5);

/// The meaning of a key for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The caller carries the request out.
    Taken,
    /// Another request with the key is being carried out.
    Running,
    /// The key belongs to another request.
    Other,
    /// The request was carried out; its sealed answer.
    Done(Vec<u8>),
}

/// Claims a key of a token for a request, once: of two concurrent claims, one is [`Claim::Taken`].
pub async fn claim(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    request: &Digest,
    now: Timestamp,
) -> Result<Claim, StorageError> {
    let taken = sqlx::query!(
        "insert into idempotent_requests as r (token_id, key_digest, request_digest, started_at) values ($1, $2, $3, $4)
         on conflict (token_id, key_digest) do update
           set request_digest = excluded.request_digest, started_at = excluded.started_at, answer = null
           where r.started_at < $5 or (r.answer is null and r.started_at < $6)",
        token.uuid(),
        key.as_bytes().as_slice(),
        request.as_bytes().as_slice(),
        now,
        now - KEPT,
        now - LOST,
    )
    .execute(tx.connection())
    .await?;
    if taken.rows_affected() == 1 {
        return Ok(Claim::Taken);
    }
    let row = sqlx::query!(
        r#"select request_digest = $3 as "is_same!", answer from idempotent_requests where token_id = $1 and key_digest = $2"#,
        token.uuid(),
        key.as_bytes().as_slice(),
        request.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(match row {
        Some(row) if !row.is_same => Claim::Other,
        Some(row) => row.answer.map_or(Claim::Running, Claim::Done),
        // Released between the two statements.
        None => Claim::Running,
    })
}

/// Keeps the sealed answer of a request.
pub async fn keep(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    answer: &[u8],
) -> Result<(), StorageError> {
    sqlx::query!(
        "update idempotent_requests set answer = $3 where token_id = $1 and key_digest = $2 and answer is null",
        token.uuid(),
        key.as_bytes().as_slice(),
        answer,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Frees the key of a request that was refused.
pub async fn release(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from idempotent_requests where token_id = $1 and key_digest = $2 and answer is null",
        token.uuid(),
        key.as_bytes().as_slice(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
