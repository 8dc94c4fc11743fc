//! The OpenID provider of a tenant, and what it proved (AUTH-F7).

use portolan_model::{
    Timestamp,
    id::{GrantId, IdentityProviderId, SessionId, TenantId, UserId},
    member::Role,
};

use crate::{
    StorageError, SystemTx, TenantTx, oauth::grants::REVOCATION_MEMORY,
    registry::credentials::WrappedKey,
};

/// A tenant's provider.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its id, which is part of its callback's address.
    pub id: IdentityProviderId,
    /// On buttons.
    pub name: String,
    /// Issuer identifier of the provider.
    pub issuer: String,
    /// Who we are there.
    pub client_id: String,
    /// Our secret there, sealed, and the key that opens it.
    pub secret: Option<(Vec<u8>, WrappedKey)>,
    /// Raised by every change; bound into the seal.
    pub version: i32,
    /// Whether members have to come this way.
    pub is_enforced: bool,
    /// Whether an operator turned it off: it is none until it is put again.
    pub is_off: bool,
}

/// The provider of a tenant, whether it is on or off.
pub async fn of(tx: &mut TenantTx) -> Result<Option<Provider>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        r#"select p.id, p.name, p.issuer, p.client_id, p.secret_sealed, p.version, p.enforced_at, p.off_at, k.id as "dek_id?", k.wrapped as "wrapped?"
           from identity_providers p left join tenant_deks k on k.tenant_id = p.tenant_id and k.id = p.dek_id
           where p.tenant_id = $1"#,
        tenant,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Provider {
        id: row.id.into(),
        name: row.name,
        issuer: row.issuer,
        client_id: row.client_id,
        secret: match (row.secret_sealed, row.dek_id, row.wrapped) {
            (Some(sealed), Some(id), Some(wrapped)) => Some((sealed, WrappedKey { id, wrapped })),
            _ => None,
        },
        version: row.version,
        is_enforced: row.enforced_at.is_some(),
        is_off: row.off_at.is_some(),
    }))
}

/// Puts a provider in the place of the one before it, if any. False if that was changed meanwhile:
/// `version` is the next one of what was read. One that was off is on again, and not the only way
/// in, whatever was read.
pub async fn put(
    tx: &mut TenantTx,
    provider: &Provider,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let (sealed, dek) = provider
        .secret
        .as_ref()
        .map(|(sealed, key)| (sealed.clone(), key.id))
        .unzip();
    let done = sqlx::query!(
        "insert into identity_providers
           (tenant_id, id, name, issuer, client_id, secret_sealed, dek_id, version, enforced_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, case when $10 then $9::timestamptz end, $9, $9)
         on conflict (tenant_id) do update set id = excluded.id, name = excluded.name, issuer = excluded.issuer, client_id = excluded.client_id,
           secret_sealed = excluded.secret_sealed, dek_id = excluded.dek_id, version = excluded.version,
           enforced_at = case when identity_providers.off_at is null then excluded.enforced_at end, off_at = null,
           updated_at = excluded.updated_at
           where identity_providers.version = excluded.version - 1",
        tenant,
        provider.id.uuid(),
        provider.name,
        provider.issuer,
        provider.client_id,
        sealed,
        dek,
        provider.version,
        now,
        provider.is_enforced,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Makes the provider of this id the only way in, or one of several again. False if it is none any
/// more, or is off.
pub async fn set_enforced(
    tx: &mut TenantTx,
    id: IdentityProviderId,
    is_enforced: bool,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update identity_providers set enforced_at = case when $3 then coalesce(enforced_at, $4) end, updated_at = $4
         where tenant_id = $1 and id = $2 and off_at is null",
        tenant,
        id.uuid(),
        is_enforced,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Turns the provider of a tenant off, until an admin puts it again: it is not the only way in any
/// more, and none at all. Its id; `None` if there is none, or it is off. What came by it is ended
/// by [`end_confined`] and [`end_others`].
pub async fn turn_off(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Option<IdentityProviderId>, StorageError> {
    Ok(sqlx::query_scalar!(
        "update identity_providers set enforced_at = null, off_at = $2, updated_at = $2 where tenant_id = $1 and off_at is null returning id",
        tenant.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?
    .map(IdentityProviderId::from_uuid))
}

/// Returns whether a sign-in remains possible when the provider fails: an owner with a passkey of
/// this host.
pub async fn has_break_glass(
    tx: &mut SystemTx,
    tenant: TenantId,
    host: &str,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from memberships m join webauthn_credentials c on c.user_id = m.user_id
             where m.tenant_id = $1 and m.status = 'active' and m.role = 'owner' and c.rp_id = $2) as "has!""#,
        tenant.uuid(),
        host,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Removes the provider. False if there was none.
pub async fn remove(tx: &mut TenantTx) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from identity_providers where tenant_id = $1",
        tenant
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The working tenant whose provider, not turned off, has this id.
pub async fn tenant_of(
    tx: &mut SystemTx,
    id: IdentityProviderId,
) -> Result<Option<TenantId>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select p.tenant_id from identity_providers p join tenants t on t.id = p.tenant_id and t.status = 'active'
         where p.id = $1 and p.off_at is null",
        id.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?
    .map(TenantId::from_uuid))
}

/// Id and name of the provider that people with an address of this domain come by.
pub async fn for_domain(
    tx: &mut SystemTx,
    domain: &str,
) -> Result<Option<(IdentityProviderId, String)>, StorageError> {
    let row = sqlx::query!(
        "select p.id, p.name from tenant_domains d join identity_providers p on p.tenant_id = d.tenant_id and p.off_at is null
           join tenants t on t.id = d.tenant_id and t.status = 'active'
         where d.domain = $1 and d.verified_at is not null",
        domain,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.id.into(), row.name)))
}

/// Id and name of the provider of a tenant, if it is on.
pub async fn for_tenant(
    tx: &mut SystemTx,
    tenant: TenantId,
) -> Result<Option<(IdentityProviderId, String)>, StorageError> {
    let row = sqlx::query!(
        "select id, name from identity_providers where tenant_id = $1 and off_at is null",
        tenant.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.id.into(), row.name)))
}

/// The provider by which members of a tenant have to come; `None` if they may come as they like.
pub async fn required(
    tx: &mut SystemTx,
    tenant: TenantId,
) -> Result<Option<IdentityProviderId>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select id from identity_providers where tenant_id = $1 and enforced_at is not null",
        tenant.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?
    .map(IdentityProviderId::from_uuid))
}

/// Notes by which provider of its tenant the person of a new grant had come in this session.
pub async fn note_grant(
    tx: &mut SystemTx,
    grant: GrantId,
    session: SessionId,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update grants g set sso_provider = s.provider_id, sso_confined = b.only_tenant is not null
         from session_steps s join browser_sessions b on b.id = s.session_id
         where g.id = $1 and s.session_id = $2 and s.tenant_id = g.tenant_id",
        grant.uuid(),
        session.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Ends what the present provider of a tenant, or its absence, does not let act any more (AUTH-R7):
/// grants of people who had come by a former one, and of those who had come by none where that is
/// the only way. With their tokens; returns which. To be called again is no harm.
pub async fn end_others(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<GrantId>, StorageError> {
    let rows = sqlx::query_scalar!(
        r#"with meant as (
             select g.id from grants g left join identity_providers p on p.tenant_id = g.tenant_id and p.off_at is null
             where g.tenant_id = $1 and g.revoked_at is null and g.user_id is not null and g.sso_provider is distinct from p.id
               and (g.sso_provider is not null or (p.enforced_at is not null
                 and not (g.amr && array['hwk', 'swk'] and exists (select 1 from memberships m
                   where m.tenant_id = g.tenant_id and m.user_id = g.user_id and m.status = 'active' and m.role = 'owner'))))
             order by g.id for update of g
           ), ended as (
             update grants g set revoked_at = $2, revoke_reason = 'sso' from meant where g.id = meant.id
             returning g.id, g.tenant_id
           ), families as (
             update refresh_families f set revoked_at = $2, revoke_reason = 'sso' from ended
             where f.grant_id = ended.id and f.revoked_at is null
           ), told as (
             insert into revocations (kind, ref, tenant_id, expires_at, created_at)
             select 'grant', 'gr_' || replace(id::text, '-', ''), tenant_id, $3, clock_timestamp() from ended
           )
           select id as "id!" from ended"#,
        tenant.uuid(),
        now,
        now + REVOCATION_MEMORY,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(GrantId::from_uuid).collect())
}

/// Notes that the provider of a tenant proved who is in a session.
pub async fn step(
    tx: &mut SystemTx,
    session: SessionId,
    tenant: TenantId,
    provider: IdentityProviderId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into session_steps (session_id, tenant_id, provider_id, at) values ($1, $2, $3, $4)
         on conflict (session_id, tenant_id) do update set provider_id = excluded.provider_id, at = excluded.at",
        session.uuid(),
        tenant.uuid(),
        provider.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Whether this provider proved who is in this session.
pub async fn has_step(
    tx: &mut SystemTx,
    session: SessionId,
    tenant: TenantId,
    provider: IdentityProviderId,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from session_steps where session_id = $1 and tenant_id = $2 and provider_id = $3) as "has!""#,
        session.uuid(),
        tenant.uuid(),
        provider.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Lets a session open one tenant and nothing else.
pub async fn confine(
    tx: &mut SystemTx,
    session: SessionId,
    tenant: TenantId,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update browser_sessions set only_tenant = $2 where id = $1",
        session.uuid(),
        tenant.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Ends the sessions that open this tenant alone and were begun on the word of a provider that is
/// none any more, and forgets what such a one offered. Returns how many sessions. To be called
/// again is no harm.
pub async fn end_confined(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<u64, StorageError> {
    sqlx::query!(
        "delete from identity_offers o where o.tenant_id = $1 and not exists (
           select 1 from identity_providers p where p.tenant_id = $1 and p.off_at is null and 'idp_' || replace(p.id::text, '-', '') = o.provider)",
        tenant.uuid(),
    )
    .execute(tx.connection())
    .await?;
    let done = sqlx::query!(
        "update browser_sessions b set ended_at = $2, end_reason = 'provider_changed'
         where b.only_tenant = $1 and b.ended_at is null and not exists (
           select 1 from session_steps s join identity_providers p on p.tenant_id = s.tenant_id and p.id = s.provider_id and p.off_at is null
           where s.session_id = b.id and s.tenant_id = $1)",
        tenant.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Copies the provider steps that a person completed from a session to its successor.
pub async fn carry_steps(
    tx: &mut SystemTx,
    from: SessionId,
    to: SessionId,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into session_steps (session_id, tenant_id, provider_id, at)
         select $2, tenant_id, provider_id, at from session_steps where session_id = $1 on conflict do nothing",
        from.uuid(),
        to.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Makes a person a member because this provider of an active tenant vouches for them. False if
/// they ever were a member: a removed person needs an invitation.
pub async fn join(
    tx: &mut SystemTx,
    tenant: TenantId,
    provider: IdentityProviderId,
    user: UserId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into memberships (tenant_id, user_id, role, status, created_at)
         select p.tenant_id, $3, $4, 'active', $5 from identity_providers p join tenants t on t.id = p.tenant_id and t.status = 'active'
         where p.tenant_id = $1 and p.id = $2 and p.off_at is null
         on conflict do nothing",
        tenant.uuid(),
        provider.uuid(),
        user.uuid(),
        Role::Member.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
