//! Grants and authorization codes (AUTH-1.3, AUTH-N10, AUTH-3.4).
//!
//! A grant is a person's permission for a client in a tenant, and the root of every revocation. A
//! code stands for it once: [`redeem_code`] is one guarded `update`, so one of two nodes that try
//! at the same instant wins.

use portolan_model::{
    Digest, Timestamp,
    id::{ClientId, GrantId, RequestId, SessionId, TenantId, UserId},
    scope::ScopeSet,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{StorageError, SystemTx, Tx, oauth::revocations};

/// Longest life of an access token, and a little more: how long a revocation must be remembered.
pub const REVOCATION_MEMORY: time::Duration = time::Duration::minutes(8 * 60 + 10);

/// A grant.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// The one tenant.
    pub tenant: TenantId,
    /// Who allowed it.
    pub user: UserId,
    /// The client that may act.
    pub client: ClientId,
    /// The granted scopes.
    pub scopes: ScopeSet,
    /// Canonical resource.
    pub resource: String,
    /// When the person had proved who they are.
    pub auth_time: Timestamp,
    /// When it ends in any case.
    pub expires_at: Timestamp,
    /// Whether it was revoked.
    pub is_revoked: bool,
    /// Whether the client proved itself by key when the person agreed (AUTH-C5).
    pub is_key_bound: bool,
}

/// A grant to be written.
#[derive(Debug)]
pub struct NewGrant<'a> {
    /// The grant itself.
    pub grant: &'a Grant,
    /// The client's details as the person saw them.
    pub client_snapshot: &'a Value,
    /// The session in which they decided.
    pub session: SessionId,
    /// How they had signed in.
    pub amr: &'a [String],
    /// Coarse place.
    pub ip_block: Option<&'a str>,
    /// Browser, in a word or two.
    pub ua_label: Option<&'a str>,
}

/// Writes a grant.
pub async fn create(
    tx: &mut SystemTx,
    new: &NewGrant<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let grant = new.grant;
    sqlx::query!(
        "insert into grants (id, tenant_id, user_id, client_ref, client_snapshot, scopes, resource, session_id, auth_time, amr, created_at,
           expires_at, ip_block, ua_label)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        grant.id.uuid(),
        grant.tenant.uuid(),
        grant.user.uuid(),
        grant.client.uuid(),
        new.client_snapshot,
        &grant.scopes.to_vec(),
        grant.resource,
        new.session.uuid(),
        grant.auth_time,
        new.amr,
        now,
        grant.expires_at,
        new.ip_block,
        new.ua_label,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The grant with this id.
pub async fn find(tx: &mut SystemTx, id: GrantId) -> Result<Option<Grant>, StorageError> {
    let row = sqlx::query!(
        r#"select tenant_id, user_id, client_ref, scopes, resource, auth_time, expires_at, revoked_at,
             coalesce(client_snapshot->>'auth_method' = 'private_key_jwt', false) as "is_key_bound!"
           from grants where id = $1"#,
        id.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Grant {
        id,
        tenant: row.tenant_id.into(),
        user: row.user_id.into(),
        client: row.client_ref.into(),
        scopes: ScopeSet::from_stored(&row.scopes),
        resource: row.resource,
        auth_time: row.auth_time,
        expires_at: row.expires_at,
        is_revoked: row.revoked_at.is_some(),
        is_key_bound: row.is_key_bound,
    }))
}

/// A grant that is looked for.
#[derive(Debug)]
pub struct Sought<'a> {
    /// The tenant.
    pub tenant: TenantId,
    /// Who allowed it.
    pub user: UserId,
    /// The client.
    pub client: ClientId,
    /// Canonical resource.
    pub resource: &'a str,
    /// All of these were granted.
    pub scopes: &'a [String],
}

/// Whether such a grant lives, and no grant of this client was revoked since: a person who
/// disconnects a client allows it anew.
pub async fn is_live(
    tx: &mut SystemTx,
    sought: &Sought<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists(select from grants g where g.tenant_id = $1 and g.user_id = $2 and g.client_ref = $3 and g.resource = $4
             and g.scopes @> $5 and g.revoked_at is null and g.expires_at > $6
             and not exists(select from grants r where r.tenant_id = $1 and r.user_id = $2 and r.client_ref = $3
               and r.revoked_at >= g.created_at and r.revoke_reason is distinct from 'cap')) as "live!""#,
        sought.tenant.uuid(),
        sought.user.uuid(),
        sought.client.uuid(),
        sought.resource,
        sought.scopes,
        now,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Notes that a token was issued for a code. Refreshes are noted in their family.
pub async fn touch(tx: &mut SystemTx, id: GrantId, now: Timestamp) -> Result<(), StorageError> {
    sqlx::query!(
        "update grants set last_used_at = $2 where id = $1",
        id.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Revokes a grant with its refresh family and every access token, once. The nodes are notified
/// when the caller commits (AUTH-4.3).
pub async fn revoke(
    tx: &mut SystemTx,
    id: GrantId,
    reason: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = sqlx::query_scalar!(
        "update grants set revoked_at = $2, revoke_reason = $3 where id = $1 and revoked_at is null returning tenant_id",
        id.uuid(),
        now,
        reason,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(tenant) = tenant else {
        return Ok(false);
    };
    sqlx::query!(
        "update refresh_families set revoked_at = $2, revoke_reason = $3 where grant_id = $1 and revoked_at is null",
        id.uuid(),
        now,
        reason,
    )
    .execute(tx.connection())
    .await?;
    let revocation = revocations::New {
        kind: revocations::RevocationKind::Grant,
        reference: &id.to_string(),
        tenant: Some(tenant.into()),
        epoch: None,
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await?;
    Ok(true)
}

/// Ends the least recently used grants of (user, client) in a tenant beyond `keep` (AUTH-M9).
/// Returns their ids.
pub async fn beyond_cap(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    client: ClientId,
    keep: i64,
) -> Result<Vec<GrantId>, StorageError> {
    let rows = sqlx::query_scalar!(
        "select g.id from grants g left join refresh_families f on f.grant_id = g.id
           left join grant_uses n on n.tenant_id = g.tenant_id and n.grant_id = g.id
         where g.tenant_id = $1 and g.user_id = $2 and g.client_ref = $3 and g.revoked_at is null
         order by coalesce(greatest(g.last_used_at, f.last_used_at, n.used_at), g.created_at) desc, g.id desc offset $4",
        tenant.uuid(),
        user.uuid(),
        client.uuid(),
        keep,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(GrantId::from_uuid).collect())
}

/// A code as stored.
#[derive(Debug, Clone)]
pub struct Code {
    /// The grant it stands for.
    pub grant: GrantId,
    /// The client that may redeem it.
    pub client: ClientId,
    /// The tenant of the grant.
    pub tenant: TenantId,
    /// As in the request.
    pub redirect_uri: String,
    /// PKCE S256 challenge.
    pub code_challenge: String,
    /// Canonical resource that was granted.
    pub resource: String,
    /// False when the request named none and the picker chose.
    pub resource_given: bool,
    /// Failed tries.
    pub attempts: i32,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it was redeemed.
    pub redeemed_at: Option<Timestamp>,
}

/// Failed tries after which a code is dead (AUTH-T5).
pub const MAX_CODE_ATTEMPTS: i32 = 5;

/// Writes a code, known by its digest.
pub async fn create_code(
    tx: &mut SystemTx,
    digest: &Digest,
    request: RequestId,
    code: &Code,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into authorization_codes (digest, request_id, tenant_id, grant_id, client_ref, redirect_uri, code_challenge, resource,
           resource_given, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        digest.as_bytes().as_slice(),
        request.uuid(),
        code.tenant.uuid(),
        code.grant.uuid(),
        code.client.uuid(),
        code.redirect_uri,
        code.code_challenge,
        code.resource,
        code.resource_given,
        code.expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A plain read, for the checks before redemption (AUTH-T4).
pub async fn find_code(tx: &mut SystemTx, digest: &Digest) -> Result<Option<Code>, StorageError> {
    let row = sqlx::query!(
        "select grant_id, client_ref, tenant_id, redirect_uri, code_challenge, resource, resource_given, attempts, expires_at, redeemed_at
         from authorization_codes where digest = $1",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Code {
        grant: row.grant_id.into(),
        client: row.client_ref.into(),
        tenant: row.tenant_id.into(),
        redirect_uri: row.redirect_uri,
        code_challenge: row.code_challenge,
        resource: row.resource,
        resource_given: row.resource_given,
        attempts: row.attempts,
        expires_at: row.expires_at,
        redeemed_at: row.redeemed_at,
    }))
}

/// Redeems a code once (AUTH-T3; RFC 6749 §4.1.2). True for the one caller who wins; false if it
/// was redeemed, has expired or is dead.
pub async fn redeem_code(
    tx: &mut SystemTx,
    digest: &Digest,
    attempt: Uuid,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update authorization_codes set redeemed_at = $3, redeem_attempt = $2
         where digest = $1 and redeemed_at is null and expires_at > $3 and attempts < $4",
        digest.as_bytes().as_slice(),
        attempt,
        now,
        MAX_CODE_ATTEMPTS,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Whether this very attempt redeemed the code: asked after a commit whose answer was lost
/// (AUTH-4.7).
pub async fn was_redeemed_by(
    tx: &mut SystemTx,
    digest: &Digest,
    attempt: Uuid,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from authorization_codes where digest = $1 and redeem_attempt = $2) as "found!""#,
        digest.as_bytes().as_slice(),
        attempt,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Counts a failed try; the code lives on until the fifth (AUTH-T5).
pub async fn count_code_failure(tx: &mut SystemTx, digest: &Digest) -> Result<(), StorageError> {
    sqlx::query!(
        "update authorization_codes set attempts = attempts + 1 where digest = $1 and redeemed_at is null",
        digest.as_bytes().as_slice(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// What decides whether a person may still act in a tenant, and the epochs that go into a token
/// (AUTH-K16, AUTH-4.2). Read in the transaction that issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantStatus {
    /// User, tenant and membership are all active, and the role may call tools.
    pub is_active: bool,
    /// `users.epoch`.
    pub user_epoch: i32,
    /// `tenants.epoch`.
    pub tenant_epoch: i32,
    /// `memberships.epoch`.
    pub member_epoch: i32,
}

/// The standing of a person in a tenant; `None` if they never were a member.
pub async fn standing(
    tx: &mut impl Tx,
    tenant: TenantId,
    user: UserId,
) -> Result<Option<GrantStatus>, StorageError> {
    let row = sqlx::query!(
        r#"select u.epoch as user_epoch, t.epoch as tenant_epoch, m.epoch as member_epoch,
             (u.status = 'active' and u.verified_at is not null and t.status = 'active' and m.status = 'active' and m.role <> 'viewer') as "is_active!"
           from memberships m join users u on u.id = m.user_id join tenants t on t.id = m.tenant_id
           where m.tenant_id = $1 and m.user_id = $2"#,
        tenant.uuid(),
        user.uuid(),
    )
    .fetch_optional(tx.raw())
    .await?;
    Ok(row.map(|row| GrantStatus {
        is_active: row.is_active,
        user_epoch: row.user_epoch,
        tenant_epoch: row.tenant_epoch,
        member_epoch: row.member_epoch,
    }))
}

/// Whether `slug` is, or was, a name of this tenant.
pub async fn names_tenant(
    tx: &mut SystemTx,
    slug: &str,
    tenant: TenantId,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from tenant_slugs where slug = $1 and tenant_id = $2) as "named!""#,
        slug,
        tenant.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Narrows a grant to the resource that the client named at the token endpoint after the picker had
/// chosen (AUTH-5.4).
pub async fn narrow(tx: &mut SystemTx, id: GrantId, resource: &str) -> Result<(), StorageError> {
    sqlx::query!(
        "update grants set resource = $2 where id = $1",
        id.uuid(),
        resource
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
