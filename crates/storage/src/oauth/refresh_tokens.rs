//! Refresh token families: a chain of digests with one head (AUTH-K6 to AUTH-K18).
//!
//! A normal refresh replaces the head: [`look`] reads all that decides, and [`rotate_at_once`]
//! changes the family if it is unchanged since. Every other use begins with [`lock`], which locks
//! the family's row. A refresh that came too late does so too. Of fifty processes with one token,
//! the first rotates. The others follow one after the other, find the token superseded, and receive
//! the same head. The rules are in [`portolan_model::token_family`]; this module only reads and
//! writes.

use portolan_model::{
    Digest, Timestamp,
    id::{FamilyId, GrantId},
    token_family::{ABSOLUTE_LIFE, IDLE_LIFE, Presented},
};
use sqlx::PgConnection;

use crate::{
    Reason, StorageError, Store, SystemTx,
    oauth::{
        clients::Client,
        grant_state::{self, GrantState, Of, Present},
    },
    query_batcher::{BatchConnection, BatchQuery, slot_of},
};

/// A presented token and its family.
#[derive(Debug, Clone)]
pub struct PresentedToken {
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

/// Finds a token with its client, and reads all that decides about its use. It takes no lock: the
/// family may change afterwards, and [`rotate_at_once`] detects that. `None` if the token or the
/// client does not exist.
pub async fn look(
    store: &Store,
    client_id: &str,
    digest: &Digest,
) -> Result<Option<(Client, PresentedToken)>, StorageError> {
    let look = Lookup {
        client_id: client_id.to_owned(),
        digest: *digest,
    };
    let Some(mut present) = store.batched(look).await?? else {
        return Ok(None);
    };
    let client = present.client.take();
    Ok(client.zip(found(present)))
}

/// The query of [`look`].
pub(crate) struct Lookup {
    client_id: String,
    digest: Digest,
}

impl BatchQuery for Lookup {
    type Answer = Result<Option<Present>, StorageError>;

    async fn run(
        connection: &mut BatchConnection,
        all: &[Self],
    ) -> Result<Vec<Self::Answer>, StorageError> {
        tracing::debug!(reason = ?Reason::OAuth, asked = all.len(), "system function: grant_states");
        let all = all
            .iter()
            .map(|look| Of::TokenAndClient(&look.digest, &look.client_id));
        grant_state::read_all(connection.get().await?, all).await
    }
}

/// Finds a token and locks its family until the transaction ends; reads all that decides about its
/// use.
pub async fn lock(
    tx: &mut SystemTx,
    digest: &Digest,
) -> Result<Option<PresentedToken>, StorageError> {
    let locked = sqlx::query_scalar!(
        "select id from refresh_families where id = (select family_id from refresh_tokens where digest = $1) for update",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    if locked.is_none() {
        return Ok(None);
    }
    // A second statement: it must see what a transaction that held the lock before us has
    // committed.
    let present = grant_state::read(tx.connection(), Of::Token(digest)).await?;
    Ok(present.and_then(found))
}

fn found(present: Present) -> Option<PresentedToken> {
    let token = present.token?;
    Some(PresentedToken {
        family: token.family,
        state: present.state,
        presented: token.presented,
        successor_sealed: token.successor_sealed,
    })
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

/// One head in place of another.
#[derive(Debug)]
pub struct Rotation {
    family: FamilyId,
    /// Of `head`.
    generation: i32,
    head: Digest,
    successor: Digest,
    successor_sealed: Vec<u8>,
    network: Digest,
    now: Timestamp,
}

impl Rotation {
    /// `successor_sealed` can be opened with the old token only (AUTH-K9). `network` is a digest of
    /// the old token and the address block that presents it (REVIEW-S-10).
    pub fn new(
        found: &PresentedToken,
        head: &Digest,
        successor: &Digest,
        successor_sealed: Vec<u8>,
        network: Digest,
        now: Timestamp,
    ) -> Self {
        Self {
            family: found.family,
            generation: found.presented.head_generation,
            head: *head,
            successor: *successor,
            successor_sealed,
            network,
            now,
        }
    }
}

impl BatchQuery for Rotation {
    type Answer = bool;

    async fn run(
        connection: &mut BatchConnection,
        all: &[Self],
    ) -> Result<Vec<bool>, StorageError> {
        tracing::debug!(reason = ?Reason::OAuth, asked = all.len(), "system function: rotate_refresh_tokens");
        rotate_all(connection.get().await?, all).await
    }
}

/// Makes the successor the head, under the lock.
///
/// False if the head that was seen is not the head any more or the family was revoked, which cannot
/// happen under the lock; nothing is changed then.
pub async fn rotate(tx: &mut SystemTx, rotation: &Rotation) -> Result<bool, StorageError> {
    let rotated = rotate_all(tx.connection(), std::slice::from_ref(rotation)).await?;
    Ok(rotated == [true])
}

/// The same as a transaction of its own, committed when this returns. False if another refresh or
/// the family's end came first, or another transaction has locked the family. Nothing is changed
/// then.
pub async fn rotate_at_once(store: &Store, rotation: Rotation) -> Result<bool, StorageError> {
    store.batched(rotation).await
}

async fn rotate_all(
    connection: &mut PgConnection,
    all: &[Rotation],
) -> Result<Vec<bool>, StorageError> {
    fn each<'a, T>(all: &'a [Rotation], of: impl FnMut(&'a Rotation) -> T) -> Vec<T> {
        all.iter().map(of).collect()
    }
    let slots = sqlx::query_scalar!(
        r#"select rotate_refresh_tokens($1, $2, $3, $4, $5, $6, $7, $8) as "place!""#,
        &each(all, |one| one.family.uuid()),
        &each(all, |one| one.generation),
        &each(all, |one| one.head.as_bytes().as_slice()) as &[&[u8]],
        &each(all, |one| one.successor.as_bytes().as_slice()) as &[&[u8]],
        &each(all, |one| one.successor_sealed.as_slice()) as &[&[u8]],
        &each(all, |one| one.now),
        &each(all, |one| one.now + IDLE_LIFE),
        &each(all, |one| one.network.as_bytes().as_slice()) as &[&[u8]],
    )
    .fetch_all(connection)
    .await?;
    let mut rotated = vec![false; all.len()];
    for slot in slots {
        if let Some(rotated) = slot_of(&mut rotated, slot) {
            *rotated = true;
        }
    }
    Ok(rotated)
}

/// Lets the head stay the head, for a client whose key proves it anyway (AUTH-K8): the family is
/// used, and lives on.
pub async fn keep(
    tx: &mut SystemTx,
    found: &PresentedToken,
    head: &Digest,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "with presented as (
           update refresh_tokens set presented_at = coalesce(presented_at, $3) where digest = $1 and family_id = $2
         )
         update refresh_families set idle_expires_at = $4, last_used_at = $3 where id = $2",
        head.as_bytes().as_slice(),
        found.family.uuid(),
        now,
        now + IDLE_LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The digest of the address block that superseded a token (REVIEW-S-10). `None` if it is the head,
/// or a release before that was noted did it.
pub async fn network_of(
    tx: &mut SystemTx,
    presented: &Digest,
) -> Result<Option<Digest>, StorageError> {
    let bytes = sqlx::query_scalar!(
        "select presented_network from refresh_tokens where digest = $1",
        presented.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?
    .flatten();
    Ok(bytes.and_then(|bytes| Digest::from_slice(&bytes)))
}

/// The network that presents a superseded token again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// The network that superseded it, or an unknown one.
    SameNetwork,
    /// Another network.
    AnotherNetwork,
}

/// Counts a replay that is answered with the head. Returns when another network last replayed a
/// token of this family before.
pub async fn note_replay(
    tx: &mut SystemTx,
    found: &PresentedToken,
    presented: &Digest,
    from: ReplayFrom,
    now: Timestamp,
) -> Result<Option<Timestamp>, StorageError> {
    sqlx::query!(
        "update refresh_tokens set replays = replays + 1 where digest = $1",
        presented.as_bytes().as_slice()
    )
    .execute(tx.connection())
    .await?;
    // Under the lock of the family: nothing changes between the two looks at its row.
    Ok(sqlx::query_scalar!(
        "update refresh_families f set replays = f.replays + 1, last_used_at = $2,
           elsewhere_at = case when $3 then $2 else f.elsewhere_at end
         from (select id, elsewhere_at from refresh_families where id = $1) before where f.id = before.id
         returning before.elsewhere_at",
        found.family.uuid(),
        now,
        from == ReplayFrom::AnotherNetwork,
    )
    .fetch_optional(tx.connection())
    .await?
    .flatten())
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

/// Forgets up to `limit` sealed successors of tokens superseded before `before` (AUTH-K18). Returns
/// how many.
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

/// Tokens of the family that are not superseded: one while it lives. For tests and the operator's
/// checks.
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
