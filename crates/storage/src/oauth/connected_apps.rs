//! The live grants, as people and admins see them, and the end of many at once (AUTH-R5 to
//! AUTH-R7).

use portolan_model::{
    Timestamp,
    id::{ApiKeyId, ClientId, GrantId, TenantId, UserId},
};

use crate::{StorageError, SystemTx, oauth::grants::REVOCATION_MEMORY};

/// Grants that [`end_some`] ends at once.
const SOME: i64 = 500;

/// A connected app.
#[derive(Debug, Clone)]
pub struct ConnectedApp {
    /// The grant that it stands for.
    pub grant: GrantId,
    /// Where.
    pub tenant: TenantId,
    /// What people call that workspace.
    pub tenant_name: String,
    /// Whose.
    pub user: UserId,
    /// As they call themselves.
    pub user_name: String,
    /// Their address.
    pub user_email: String,
    /// The client on the wire.
    pub client_id: String,
    /// As the client calls itself, cleaned.
    pub client_name: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// Which servers.
    pub resource: String,
    /// When it was allowed.
    pub created_at: Timestamp,
    /// Its last request at an MCP endpoint, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When its refresh token was last presented again from another network (REVIEW-S-10).
    pub elsewhere_at: Option<Timestamp>,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// Network block of the browser that allowed it.
    pub ip_block: Option<String>,
    /// That browser in words.
    pub ua_label: Option<String>,
    /// How often its token was renewed.
    pub refreshes: i32,
}

/// A filter of grants. A field that is `None` does not narrow it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// Of this person.
    pub user: Option<UserId>,
    /// Of this client.
    pub client: Option<ClientId>,
    /// This one.
    pub grant: Option<GrantId>,
}

/// The live grants, last used first, at most a thousand. At least one part of `which` must be
/// given.
pub async fn list(
    tx: &mut SystemTx,
    which: Which,
    now: Timestamp,
) -> Result<Vec<ConnectedApp>, StorageError> {
    let rows = sqlx::query!(
        r#"select g.id, g.tenant_id, t.name as tenant_name, g.user_id as "user_id!", u.display_name, e.address, c.client_id, c.name, g.scopes,
             g.resource, g.created_at, n.used_at as "last_used_at?", f.elsewhere_at as "elsewhere_at?", g.expires_at, g.ip_block, g.ua_label,
             coalesce(f.generation, 0) as "refreshes!"
           from grants g join tenants t on t.id = g.tenant_id join users u on u.id = g.user_id
           join user_emails e on e.user_id = u.id and e.is_primary
           join oauth_clients c on c.id = g.client_ref left join refresh_families f on f.grant_id = g.id
             left join grant_uses n on n.tenant_id = g.tenant_id and n.grant_id = g.id
           where g.revoked_at is null and g.expires_at > $5
             and coalesce($1::uuid, $2::uuid, $3::uuid, $4::uuid) is not null
             and ($1::uuid is null or g.tenant_id = $1) and ($2::uuid is null or g.user_id = $2)
             and ($3::uuid is null or g.client_ref = $3) and ($4::uuid is null or g.id = $4)
           order by coalesce(n.used_at, g.created_at) desc, g.id desc limit 1000"#,
        which.tenant.map(TenantId::uuid),
        which.user.map(UserId::uuid),
        which.client.map(ClientId::uuid),
        which.grant.map(GrantId::uuid),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ConnectedApp {
            grant: row.id.into(),
            tenant: row.tenant_id.into(),
            tenant_name: row.tenant_name,
            user: row.user_id.into(),
            user_name: row.display_name,
            user_email: row.address,
            client_id: row.client_id,
            client_name: row.name,
            scopes: row.scopes,
            resource: row.resource,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            elsewhere_at: row.elsewhere_at,
            expires_at: row.expires_at,
            ip_block: row.ip_block,
            ua_label: row.ua_label,
            refreshes: row.refreshes,
        })
        .collect())
}

/// A connection that ended because a refresh token was used again when it should be long forgotten
/// (AUTH-K11).
#[derive(Debug, Clone)]
pub struct EndedByReuse {
    /// As the client calls itself, cleaned.
    pub client_name: String,
    /// What people call the workspace.
    pub tenant_name: String,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// Those of a person since `since`, newest first, at most twenty.
pub async fn ended_by_reuse(
    tx: &mut SystemTx,
    user: UserId,
    since: Timestamp,
) -> Result<Vec<EndedByReuse>, StorageError> {
    Ok(sqlx::query_as!(
        EndedByReuse,
        r#"select c.name as client_name, t.name as tenant_name, g.revoked_at as "ended_at!"
           from grants g join tenants t on t.id = g.tenant_id join oauth_clients c on c.id = g.client_ref
           where g.user_id = $1 and g.revoke_reason = 'refresh_reuse' and g.revoked_at > $2
           order by g.revoked_at desc limit 20"#,
        user.uuid(),
        since,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// The ended grants, each with its tenant, in the order of tenants, which is the order of writes to
/// the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// The grants that were live.
    pub grants: Vec<(GrantId, TenantId)>,
    /// The API keys that went with them.
    pub keys: Vec<(ApiKeyId, TenantId)>,
}

impl Ended {
    /// How many apps: an API key is one that cannot do OAuth.
    pub fn apps(&self) -> usize {
        self.grants.len() + self.keys.len()
    }
}

/// Ends grants with their refresh families and access tokens, each once. The nodes are notified
/// when the caller commits. If all apps of a person are selected, the person's API keys are ended
/// too. At least one field of `which` must be given.
pub async fn end(
    tx: &mut SystemTx,
    which: Which,
    reason: &str,
    now: Timestamp,
) -> Result<Ended, StorageError> {
    end_at_most(tx, which, None, reason, now).await
}

/// The same for so many grants that one transaction is short: to be called until nothing is ended
/// any more.
pub async fn end_some(
    tx: &mut SystemTx,
    which: Which,
    reason: &str,
    now: Timestamp,
) -> Result<Ended, StorageError> {
    end_at_most(tx, which, Some(SOME), reason, now).await
}

async fn end_at_most(
    tx: &mut SystemTx,
    which: Which,
    most: Option<i64>,
    reason: &str,
    now: Timestamp,
) -> Result<Ended, StorageError> {
    let rows = sqlx::query!(
        r#"with meant as (
             select id from grants
             where revoked_at is null and coalesce($1::uuid, $2::uuid, $3::uuid, $4::uuid) is not null
               and ($1::uuid is null or tenant_id = $1) and ($2::uuid is null or user_id = $2)
               and ($3::uuid is null or client_ref = $3) and ($4::uuid is null or id = $4)
             order by tenant_id, id limit $8::bigint for update
           ), ended as (
             update grants g set revoked_at = $5, revoke_reason = $6 from meant where g.id = meant.id and g.revoked_at is null
             returning g.id, g.tenant_id
           ), families as (
             update refresh_families f set revoked_at = $5, revoke_reason = $6 from ended where f.grant_id = ended.id and f.revoked_at is null
           ), told as (
             insert into revocations (kind, ref, tenant_id, expires_at, created_at)
             select 'grant', 'gr_' || replace(id::text, '-', ''), tenant_id, $7, clock_timestamp() from ended
           ), keys as (
             update api_keys set revoked_at = $5
             where revoked_at is null and user_id = $2 and $3::uuid is null and $4::uuid is null and ($1::uuid is null or tenant_id = $1)
             returning id, tenant_id
           ), told_of_keys as (
             insert into revocations (kind, ref, tenant_id, expires_at, created_at)
             select 'client', 'key_' || replace(id::text, '-', ''), tenant_id, $7, clock_timestamp() from keys
           )
           select id as "id!", tenant_id as "tenant_id!", false as "is_key!" from ended
           union all select id, tenant_id, true from keys
           order by 2, 1"#,
        which.tenant.map(TenantId::uuid),
        which.user.map(UserId::uuid),
        which.client.map(ClientId::uuid),
        which.grant.map(GrantId::uuid),
        now,
        reason,
        now + REVOCATION_MEMORY,
        most,
    )
    .fetch_all(tx.connection())
    .await?;
    let mut ended = Ended::default();
    for row in rows {
        let tenant = row.tenant_id.into();
        if row.is_key {
            ended.keys.push((row.id.into(), tenant));
        } else {
            ended.grants.push((row.id.into(), tenant));
        }
    }
    Ok(ended)
}
