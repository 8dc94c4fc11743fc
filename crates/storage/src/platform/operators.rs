//! Lists for an operator's commands: people, tenants, clients and sessions of the whole
//! installation. They contain no secret.

use portolan_model::{
    Timestamp,
    id::{ClientId, SessionId, TenantId, UserId},
};

use crate::{StorageError, SystemTx};

/// A person.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who.
    pub id: UserId,
    /// As they call themselves.
    pub display_name: String,
    /// Primary address, as typed.
    pub email: Option<String>,
    /// `active`, `locked`, `deactivated` or `erased`.
    pub status: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When the first address was proved.
    pub verified_at: Option<Timestamp>,
    /// Last sign-in.
    pub last_login_at: Option<Timestamp>,
    /// Live sessions.
    pub sessions: i64,
    /// Active memberships.
    pub workspaces: i64,
    /// Live grants.
    pub apps: i64,
    /// Whether sign-in asks for a code.
    pub has_second_factor: bool,
}

/// Which people are meant.
#[derive(Debug, Clone, Copy, Default)]
pub struct People<'a> {
    /// This one.
    pub id: Option<UserId>,
    /// With this proved address.
    pub address_norm: Option<&'a str>,
    /// With this text in a name or an address.
    pub text: Option<&'a str>,
}

/// People, the newest first, at most `limit`.
pub async fn people(
    tx: &mut SystemTx,
    which: People<'_>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Person>, StorageError> {
    let rows = sqlx::query!(
        r#"select u.id, u.display_name, u.status, u.created_at, u.verified_at, u.last_login_at,
             (select e.address from user_emails e where e.user_id = u.id and e.is_primary) as email,
             (select count(*) from browser_sessions s where s.user_id = u.id and s.ended_at is null and s.expires_at > $5) as "sessions!",
             (select count(*) from memberships m where m.user_id = u.id and m.status = 'active') as "workspaces!",
             (select count(*) from grants g where g.user_id = u.id and g.revoked_at is null and g.expires_at > $5) as "apps!",
             exists (select 1 from totp_credentials c where c.user_id = u.id and c.confirmed_at is not null) as "has_second_factor!"
           from users u
           where ($1::uuid is null or u.id = $1)
             and ($2::text is null or exists (select 1 from user_emails e where e.user_id = u.id and e.address_norm = $2 and e.verified_at is not null))
             and ($3::text is null or position(lower($3) in lower(u.display_name)) > 0
                  or exists (select 1 from user_emails e where e.user_id = u.id and position(lower($3) in e.address_norm) > 0))
           order by u.created_at desc, u.id desc limit $4"#,
        which.id.map(UserId::uuid),
        which.address_norm,
        which.text,
        limit,
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Person {
            id: row.id.into(),
            display_name: row.display_name,
            email: row.email,
            status: row.status,
            created_at: row.created_at,
            verified_at: row.verified_at,
            last_login_at: row.last_login_at,
            sessions: row.sessions,
            workspaces: row.workspaces,
            apps: row.apps,
            has_second_factor: row.has_second_factor,
        })
        .collect())
}

/// A change of the access of a person or a client by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessChange {
    /// No access from now on.
    Stop,
    /// Access as before.
    Restore,
}

/// Locks or unlocks a person and raises their epoch, which is returned; `None` if they were in that
/// state already, or never can be.
pub async fn set_locked(
    tx: &mut SystemTx,
    user: UserId,
    change: AccessChange,
) -> Result<Option<i32>, StorageError> {
    let locked = change == AccessChange::Stop;
    Ok(sqlx::query_scalar!(
        "update users set status = case when $2 then 'locked' else 'active' end, epoch = epoch + 1
         where id = $1 and status = case when $2 then 'active' else 'locked' end returning epoch",
        user.uuid(),
        locked,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// A tenant.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its name in URLs; the last one, if it was deleted.
    pub slug: Option<String>,
    /// What people call it.
    pub name: String,
    /// `active`, `suspended`, `deleting` or `deleted`.
    pub status: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Since when it is suspended.
    pub suspended_at: Option<Timestamp>,
    /// The reason that its members see.
    pub suspend_reason: Option<String>,
    /// Until when it can be restored.
    pub delete_after: Option<Timestamp>,
    /// Active members.
    pub members: i64,
    /// Published servers.
    pub servers: i64,
    /// Live grants.
    pub apps: i64,
}

/// Tenants, the newest first, at most `limit`.
pub async fn tenants(
    tx: &mut SystemTx,
    id: Option<TenantId>,
    slug: Option<&str>,
    text: Option<&str>,
    limit: i64,
) -> Result<Vec<Tenant>, StorageError> {
    let rows = sqlx::query!(
        r#"select t.id, t.name, t.status, t.created_at, t.suspended_at, t.suspend_reason, t.delete_after,
             (select s.slug from tenant_slugs s where s.tenant_id = t.id order by s.state <> 'primary', s.since desc limit 1) as slug,
             (select count(*) from memberships m where m.tenant_id = t.id and m.status = 'active') as "members!",
             (select count(*) from servers v where v.tenant_id = t.id and v.status = 'published' and v.deleted_at is null) as "servers!",
             (select count(*) from grants g where g.tenant_id = t.id and g.revoked_at is null and g.expires_at > now()) as "apps!"
           from tenants t
           where ($1::uuid is null or t.id = $1)
             and ($2::text is null or exists (select 1 from tenant_slugs s where s.tenant_id = t.id and s.slug = $2))
             and ($3::text is null or position(lower($3) in lower(t.name)) > 0
                  or exists (select 1 from tenant_slugs s where s.tenant_id = t.id and position(lower($3) in s.slug) > 0))
           order by t.created_at desc, t.id desc limit $4"#,
        id.map(TenantId::uuid),
        slug,
        text,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Tenant {
            id: row.id.into(),
            slug: row.slug,
            name: row.name,
            status: row.status,
            created_at: row.created_at,
            suspended_at: row.suspended_at,
            suspend_reason: row.suspend_reason,
            delete_after: row.delete_after,
            members: row.members,
            servers: row.servers,
            apps: row.apps,
        })
        .collect())
}

/// A client.
#[derive(Debug, Clone)]
pub struct ClientRow {
    /// Our name for the row.
    pub id: ClientId,
    /// Its id on the wire.
    pub client_id: String,
    /// `dynamic`, `cimd`, `static` …
    pub kind: String,
    /// As it calls itself, cleaned.
    pub name: String,
    /// How it proves itself.
    pub auth_method: String,
    /// `active` or `blocked`.
    pub status: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Live grants.
    pub apps: i64,
    /// People with a live grant.
    pub people: i64,
}

/// Clients, those in most use first, at most `limit`.
pub async fn clients(
    tx: &mut SystemTx,
    client_id: Option<&str>,
    text: Option<&str>,
    limit: i64,
) -> Result<Vec<ClientRow>, StorageError> {
    let rows = sqlx::query!(
        r#"select c.id, c.client_id, c.kind, c.name, c.auth_method, c.status, c.created_at, g.apps as "apps!", g.people as "people!"
           from oauth_clients c
           cross join lateral (select count(*) as apps, count(distinct user_id) as people from grants
             where client_ref = c.id and revoked_at is null and expires_at > now()) g
           where ($1::text is null or c.client_id = $1)
             and ($2::text is null or position(lower($2) in lower(c.name)) > 0 or position(lower($2) in lower(c.client_id)) > 0)
           order by g.apps desc, c.created_at desc, c.id desc limit $3"#,
        client_id,
        text,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ClientRow {
            id: row.id.into(),
            client_id: row.client_id,
            kind: row.kind,
            name: row.name,
            auth_method: row.auth_method,
            status: row.status,
            created_at: row.created_at,
            apps: row.apps,
            people: row.people,
        })
        .collect())
}

/// Blocks a client or lets it in again. False if it was so already.
pub async fn set_blocked(
    tx: &mut SystemTx,
    client: ClientId,
    change: AccessChange,
) -> Result<bool, StorageError> {
    let blocked = change == AccessChange::Stop;
    let done = sqlx::query!(
        "update oauth_clients set status = case when $2 then 'blocked' else 'active' end
         where id = $1 and status = case when $2 then 'active' else 'blocked' end",
        client.uuid(),
        blocked,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A signed-in browser.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Whose.
    pub user: UserId,
    /// Their address.
    pub email: Option<String>,
    /// Begin.
    pub created_at: Timestamp,
    /// Last request, to the minute.
    pub last_seen_at: Timestamp,
    /// How the person proved who they are.
    pub amr: Vec<String>,
    /// Network block of the browser.
    pub ip_block: Option<String>,
    /// Browser in words.
    pub ua_label: Option<String>,
}

/// Live sessions, last used first, at most `limit`.
pub async fn sessions(
    tx: &mut SystemTx,
    user: Option<UserId>,
    id: Option<SessionId>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<SessionRow>, StorageError> {
    let rows = sqlx::query!(
        r#"select s.id, s.user_id, e.address as "email?", s.created_at, s.last_seen_at, s.amr, s.ip_block, s.ua_label
           from browser_sessions s left join user_emails e on e.user_id = s.user_id and e.is_primary
           where s.ended_at is null and s.expires_at > $4 and ($1::uuid is null or s.user_id = $1) and ($2::uuid is null or s.id = $2)
           order by s.last_seen_at desc, s.id desc limit $3"#,
        user.map(UserId::uuid),
        id.map(SessionId::uuid),
        limit,
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| SessionRow {
            id: row.id.into(),
            user: row.user_id.into(),
            email: row.email,
            created_at: row.created_at,
            last_seen_at: row.last_seen_at,
            amr: row.amr,
            ip_block: row.ip_block,
            ua_label: row.ua_label,
        })
        .collect())
}
