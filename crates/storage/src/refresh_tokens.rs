//! Refresh token families: a chain of digests with one head (`auth.md` K6–K18).
//!
//! Every use begins with [`lock`], which holds the family's row: of fifty processes with one token the first rotates, and the
//! others, one after the other, find it superseded and are answered with the same head. The rules are
//! [`portolan_model::token_family`]; here is only what must be read and written under the lock.

use portolan_model::{
    Digest, Timestamp,
    id::{FamilyId, GrantId},
    token_family::{ABSOLUTE_LIFE, IDLE_LIFE, Presented},
};

use crate::{
    StorageError, SystemTx,
    grant_state::{self, GrantState},
};

/// A presented token and its family, under the family's lock until the transaction ends.
#[derive(Debug, Clone)]
pub struct Locked {
    /// The family.
    pub family: FamilyId,
    /// Its grant, and what stands around it.
    pub state: GrantState,
    /// For the decision.
    pub presented: Presented,
    /// The successor of the presented token, sealed under it.
    pub successor_sealed: Option<Vec<u8>>,
}

/// Begins a family with its first token.
pub async fn create_family(
    tx: &mut SystemTx,
    grant: GrantId,
    head: &Digest,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<FamilyId, StorageError> {
    let family = FamilyId::generate();
    let done = sqlx::query!(
        "insert into refresh_families (id, tenant_id, grant_id, generation, head_digest, idle_expires_at, expires_at)
         select $1, tenant_id, id, 0, $3, $4, $5 from grants where id = $2",
        family.uuid(),
        grant.uuid(),
        head.as_bytes().as_slice(),
        now + IDLE_LIFE,
        expires_at.min(now + ABSOLUTE_LIFE),
    )
    .execute(tx.connection())
    .await?;
    if done.rows_affected() != 1 {
        return Err(StorageError::Inconsistent {
            table: "grants",
            column: "id",
        });
    }
    insert_token(tx, family, 0, head, now).await?;
    Ok(family)
}

/// Finds a token and locks its family; reads all that decides about its use.
pub async fn lock(tx: &mut SystemTx, digest: &Digest) -> Result<Option<Locked>, StorageError> {
    let family = sqlx::query!(
        "select id, grant_id, idle_expires_at, expires_at, revoked_at from refresh_families
         where id = (select family_id from refresh_tokens where digest = $1) for update",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(family) = family else {
        return Ok(None);
    };
    // A second statement: it must see what a transaction that held the lock before us has committed.
    let Some((state, token)) = grant_state::with_token(tx, family.grant_id.into(), digest).await?
    else {
        return Ok(None);
    };
    Ok(Some(Locked {
        family: family.id.into(),
        state,
        presented: Presented {
            generation: token.generation,
            head_generation: token.head_generation,
            superseded_at: token.superseded_at,
            head_presented: token.head_presented,
            replays: token.replays,
            idle_expires_at: family.idle_expires_at,
            expires_at: family.expires_at,
            revoked: family.revoked_at.is_some(),
        },
        successor_sealed: token.successor_sealed,
    }))
}

/// The sealed successor of a token further down the chain; `None` for the head.
pub async fn successor_of(
    tx: &mut SystemTx,
    family: FamilyId,
    digest: &Digest,
) -> Result<Option<Vec<u8>>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select successor_sealed from refresh_tokens where digest = $1 and family_id = $2",
        digest.as_bytes().as_slice(),
        family.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?
    .flatten())
}

/// Makes `successor` the head in place of `head`, and notes that the grant was used. `successor_sealed` can be opened with the old token
/// only (K9).
///
/// False if `head` is not the head any more or the family is over, which cannot happen under the lock. The transaction must not be committed
/// then.
pub async fn rotate(
    tx: &mut SystemTx,
    locked: &Locked,
    head: &Digest,
    successor: &Digest,
    successor_sealed: &[u8],
    now: Timestamp,
) -> Result<bool, StorageError> {
    // Each part takes its row from the one before: the last one changes a row if all of them held.
    let done = sqlx::query!(
        "with superseded as (
           update refresh_tokens set superseded_at = $5, presented_at = coalesce(presented_at, $5), successor_sealed = $6
           where digest = $1 and family_id = $2 and superseded_at is null returning family_id
         ), advanced as (
           update refresh_families f set generation = $3, head_digest = $4, idle_expires_at = $7 from superseded s
           where f.id = s.family_id and f.generation = $3 - 1 and f.revoked_at is null returning f.id, f.grant_id
         ), inserted as (
           insert into refresh_tokens (digest, family_id, generation, issued_at) select $4, id, $3, $5 from advanced
         )
         update grants g set last_used_at = $5 from advanced a where g.id = a.grant_id",
        head.as_bytes().as_slice(),
        locked.family.uuid(),
        locked.presented.head_generation + 1,
        successor.as_bytes().as_slice(),
        now,
        successor_sealed,
        now + IDLE_LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Lets the head stay the head, for a client whose key proves it anyway (K8): the family is used, and lives on; so is the grant.
pub async fn keep(
    tx: &mut SystemTx,
    locked: &Locked,
    head: &Digest,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "with presented as (
           update refresh_tokens set presented_at = coalesce(presented_at, $3) where digest = $1 and family_id = $2
         ), used as (
           update refresh_families set idle_expires_at = $4 where id = $2 returning grant_id
         )
         update grants g set last_used_at = $3 from used u where g.id = u.grant_id",
        head.as_bytes().as_slice(),
        locked.family.uuid(),
        now,
        now + IDLE_LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Counts a replay that is answered with the head.
pub async fn note_replay(
    tx: &mut SystemTx,
    locked: &Locked,
    presented: &Digest,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update refresh_tokens set replays = replays + 1 where digest = $1",
        presented.as_bytes().as_slice()
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update refresh_families set replays = replays + 1 where id = $1",
        locked.family.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The grant and client behind a token, without a lock: for revocation.
pub async fn grant_of(tx: &mut SystemTx, digest: &Digest) -> Result<Option<GrantId>, StorageError> {
    let row = sqlx::query_scalar!(
        "select f.grant_id from refresh_tokens t join refresh_families f on f.id = t.family_id where t.digest = $1",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(GrantId::from_uuid))
}

/// Forgets up to `limit` sealed successors of tokens superseded before `before` (K18). Returns how many.
pub async fn forget_successors(
    tx: &mut SystemTx,
    before: Timestamp,
    limit: i64,
) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "update refresh_tokens set successor_sealed = null where digest in (
           select digest from refresh_tokens where successor_sealed is not null and superseded_at < $1 limit $2 for update skip locked)",
        before,
        limit,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Tokens of the family that are not superseded: one while it lives. For tests and the operator's checks.
pub async fn live_tokens(tx: &mut SystemTx, family: FamilyId) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from refresh_tokens where family_id = $1 and superseded_at is null"#,
        family.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

async fn insert_token(
    tx: &mut SystemTx,
    family: FamilyId,
    generation: i32,
    digest: &Digest,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into refresh_tokens (digest, family_id, generation, issued_at) values ($1, $2, $3, $4)",
        digest.as_bytes().as_slice(),
        family.uuid(),
        generation,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
