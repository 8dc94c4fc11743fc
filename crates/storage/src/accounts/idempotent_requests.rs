//! Requests of the management API that are carried out once (API-13), and their answers.

use portolan_model::{Digest, Timestamp, id::AccessTokenId};
use time::Duration;

use crate::{StorageError, SystemTx};

/// How long an answer is kept.
pub const KEPT: Duration = Duration::hours(24);

/// After this time, a request without an answer counts as lost with its process. It is longer than
/// any request runs.
pub const LOST: Duration = Duration::minutes(15);

/// Most bytes that are kept for a token. Answers that are being made may exceed it once.
pub const MOST_BYTES: i64 = 64 * 1024 * 1024;

/// Bytes of a row beside its answer, about: many small answers count too.
const ROW_BYTES: i64 = 256;

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
    /// The key is new, and [`MOST_BYTES`] are kept for the token.
    Full,
}

/// Claims a key of a token for a request, once: of two concurrent claims, one is [`Claim::Taken`].
pub async fn claim(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    request: &Digest,
    now: Timestamp,
) -> Result<Claim, StorageError> {
    if kept_bytes(tx, token, now).await? >= MOST_BYTES {
        return Ok(repeated(tx, (token, key), request, now)
            .await?
            .unwrap_or(Claim::Full));
    }
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
    // None: released between the two statements.
    let claim = repeated(tx, (token, key), request, now).await?;
    Ok(claim.unwrap_or(Claim::Running))
}

/// The meaning of a key that is taken; `None` if it is free.
async fn repeated(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    request: &Digest,
    now: Timestamp,
) -> Result<Option<Claim>, StorageError> {
    let row = sqlx::query!(
        r#"select request_digest = $3 as "is_same!", answer from idempotent_requests
            where token_id = $1 and key_digest = $2 and not (started_at < $4 or (answer is null and started_at < $5))"#,
        token.uuid(),
        key.as_bytes().as_slice(),
        request.as_bytes().as_slice(),
        now - KEPT,
        now - LOST,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| match row.answer {
        _ if !row.is_same => Claim::Other,
        Some(answer) => Claim::Done(answer),
        None => Claim::Running,
    }))
}

/// Bytes that are kept for a token. The hour whose answers end now counts as a whole.
async fn kept_bytes(
    tx: &mut SystemTx,
    token: AccessTokenId,
    now: Timestamp,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select coalesce(sum(bytes), 0)::bigint as "bytes!" from idempotent_bytes where token_id = $1 and hour > $2"#,
        token.uuid(),
        now - KEPT - Duration::HOUR,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Keeps the sealed answer of a request that was claimed at `started`. False if the claim was lost:
/// another request has the key, and its answer counts.
pub async fn keep(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    started: Timestamp,
    answer: &[u8],
) -> Result<bool, StorageError> {
    let kept = sqlx::query!(
        "update idempotent_requests set answer = $4 where token_id = $1 and key_digest = $2 and started_at = $3 and answer is null",
        token.uuid(),
        key.as_bytes().as_slice(),
        started,
        answer,
    )
    .execute(tx.connection())
    .await?;
    if kept.rows_affected() == 0 {
        return Ok(false);
    }
    let length = i64::try_from(answer.len()).unwrap_or(i64::MAX);
    sqlx::query!(
        "insert into idempotent_bytes as b (token_id, hour, bytes) values ($1, date_trunc('hour', $2::timestamptz, 'UTC'), $3)
         on conflict (token_id, hour) do update set bytes = b.bytes + excluded.bytes",
        token.uuid(),
        started,
        length.saturating_add(ROW_BYTES),
    )
    .execute(tx.connection())
    .await?;
    Ok(true)
}

/// Frees the key of a request that was claimed at `started` and refused.
pub async fn release(
    tx: &mut SystemTx,
    (token, key): (AccessTokenId, &Digest),
    started: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from idempotent_requests where token_id = $1 and key_digest = $2 and started_at = $3 and answer is null",
        token.uuid(),
        key.as_bytes().as_slice(),
        started,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
