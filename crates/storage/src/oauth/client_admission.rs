//! The AI clients that may connect to a tenant: its rule, its decisions about single clients, and
//! open requests (AUTH-M7). [`portolan_model::admission`] evaluates them.

use portolan_model::{
    Timestamp,
    admission::{ClientDecision, ClientRule},
    id::{ClientId, TenantId, UserId},
};
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// Requests that may wait in a tenant at once.
pub const MOST_REQUESTS: i64 = 200;
/// The most open requests of one person, so that one person cannot use up the limit of all.
pub const MOST_OF_ONE: i64 = 20;

/// The facts that a tenant holds about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The tenant.
    pub tenant: TenantId,
    /// Its rule.
    pub rule: ClientRule,
    /// The decision about the client.
    pub decision: Option<ClientDecision>,
    /// The person asked for it already.
    pub has_asked: bool,
    /// The person waits for so many other clients that they cannot ask for one more.
    pub waits_for_enough: bool,
}

/// What each of these tenants says about a client, for a person.
pub async fn facts(
    tx: &mut SystemTx,
    tenants: &[TenantId],
    client: ClientId,
    user: UserId,
) -> Result<Vec<Facts>, StorageError> {
    let ids: Vec<Uuid> = tenants.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        r#"select t.id, t.policy->>'clients' as rule, d.decision as "decision?",
             exists (select 1 from client_requests r where r.tenant_id = t.id and r.client_ref = $2 and r.user_id = $3) as "has_asked!",
             (select count(*) from client_requests r where r.tenant_id = t.id and r.user_id = $3) >= $4 as "waits_for_enough!"
           from tenants t left join client_decisions d on d.tenant_id = t.id and d.client_ref = $2
           where t.id = any($1)"#,
        &ids,
        client.uuid(),
        user.uuid(),
        MOST_OF_ONE,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Facts {
                tenant: row.id.into(),
                rule: read_rule(row.rule.as_deref())?,
                decision: read_decision(row.decision.as_deref())?,
                has_asked: row.has_asked,
                waits_for_enough: row.waits_for_enough,
            })
        })
        .collect()
}

/// The rule that a policy names.
pub(crate) fn read_rule(text: Option<&str>) -> Result<ClientRule, StorageError> {
    // A rule that cannot be read must not become one that admits more.
    text.map_or(Ok(ClientRule::default()), |text| {
        ClientRule::parse(text).ok_or(StorageError::Inconsistent {
            table: "tenants",
            column: "policy",
        })
    })
}

/// The decision that a row names.
pub(crate) fn read_decision(text: Option<&str>) -> Result<Option<ClientDecision>, StorageError> {
    text.map(|text| {
        ClientDecision::parse(text).ok_or(StorageError::Inconsistent {
            table: "client_decisions",
            column: "decision",
        })
    })
    .transpose()
}

/// The rule of a tenant.
pub async fn rule(tx: &mut SystemTx, tenant: TenantId) -> Result<ClientRule, StorageError> {
    let text = sqlx::query_scalar!(
        "select policy->>'clients' from tenants where id = $1",
        tenant.uuid()
    )
    .fetch_one(tx.connection())
    .await?;
    read_rule(text.as_deref())
}

/// Gives a tenant another rule.
pub async fn set_rule(
    tx: &mut SystemTx,
    tenant: TenantId,
    rule: ClientRule,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update tenants set policy = policy || jsonb_build_object('clients', $2::text) where id = $1",
        tenant.uuid(),
        rule.as_str(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Waits for transactions that change the tenant's client admission, and blocks new ones until this
/// transaction ends. A transaction that ends access of clients therefore sees every grant made in
/// this one. Call it before any other lock.
pub async fn hold_still(tx: &mut SystemTx, tenant: TenantId) -> Result<(), StorageError> {
    sqlx::query!(
        "select pg_advisory_xact_lock_shared(hashtextextended('client admission', 0) # hashtextextended($1, 0))",
        tenant.to_string(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Waits for the transactions in [`hold_still`], and blocks further ones until this transaction
/// ends. Call it before any other lock.
pub async fn take_turn(tx: &mut SystemTx, tenant: TenantId) -> Result<(), StorageError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('client admission', 0) # hashtextextended($1, 0))",
        tenant.to_string(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Decides about a client, or takes a decision back. Returns what was decided before.
pub async fn decide(
    tx: &mut SystemTx,
    tenant: TenantId,
    client: ClientId,
    decision: Option<ClientDecision>,
    by: Option<UserId>,
    now: Timestamp,
) -> Result<Option<ClientDecision>, StorageError> {
    let before = sqlx::query_scalar!(
        "select decision from client_decisions where tenant_id = $1 and client_ref = $2 for update",
        tenant.uuid(),
        client.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    match decision {
        Some(decision) => {
            sqlx::query!(
                "insert into client_decisions (tenant_id, client_ref, decision, decided_by, decided_at) values ($1, $2, $3, $4, $5)
                 on conflict (tenant_id, client_ref) do update set decision = excluded.decision, decided_by = excluded.decided_by,
                   decided_at = excluded.decided_at",
                tenant.uuid(),
                client.uuid(),
                decision.as_str(),
                by.map(UserId::uuid),
                now,
            )
            .execute(tx.connection())
            .await?
        }
        None => {
            sqlx::query!(
                "delete from client_decisions where tenant_id = $1 and client_ref = $2",
                tenant.uuid(),
                client.uuid(),
            )
            .execute(tx.connection())
            .await?
        }
    };
    read_decision(before.as_deref())
}

/// Records a person's request for a client. False if they requested it before, or if too many
/// requests are open, theirs or in all.
pub async fn ask(
    tx: &mut SystemTx,
    tenant: TenantId,
    client: ClientId,
    user: UserId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into client_requests (tenant_id, client_ref, user_id, asked_at)
         select $1, $2, $3, $4 where (select count(*) from client_requests where tenant_id = $1) < $5
           and (select count(*) from client_requests where tenant_id = $1 and user_id = $3) < $6
         on conflict do nothing",
        tenant.uuid(),
        client.uuid(),
        user.uuid(),
        now,
        MOST_REQUESTS,
        MOST_OF_ONE,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Who asked for a client.
#[derive(Debug, Clone)]
pub struct Asker {
    /// For which.
    pub client: ClientId,
    /// Who.
    pub user: UserId,
    /// As they call themselves.
    pub name: String,
    /// Their address.
    pub email: String,
    /// When.
    pub asked_at: Timestamp,
}

/// Lists the active members of a tenant who wait for a decision, oldest request first.
pub async fn askers(tx: &mut SystemTx, tenant: TenantId) -> Result<Vec<Asker>, StorageError> {
    let rows = sqlx::query!(
        "select r.client_ref, r.user_id, u.display_name, e.address, r.asked_at
         from client_requests r join memberships m on m.tenant_id = r.tenant_id and m.user_id = r.user_id and m.status = 'active'
         join users u on u.id = r.user_id join user_emails e on e.user_id = u.id and e.is_primary
         where r.tenant_id = $1 order by r.asked_at, r.user_id",
        tenant.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Asker {
            client: row.client_ref.into(),
            user: row.user_id.into(),
            name: row.display_name,
            email: row.address,
            asked_at: row.asked_at,
        })
        .collect())
}

/// Deletes all open requests for a decision about this client. Returns how many there were.
pub async fn forget_askers(
    tx: &mut SystemTx,
    tenant: TenantId,
    client: ClientId,
) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "delete from client_requests where tenant_id = $1 and client_ref = $2",
        tenant.uuid(),
        client.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Names and addresses of a tenant's owners and admins.
pub async fn administrators(
    tx: &mut SystemTx,
    tenant: TenantId,
) -> Result<Vec<(String, String)>, StorageError> {
    let rows = sqlx::query!(
        "select u.display_name, e.address from memberships m join users u on u.id = m.user_id and u.status = 'active'
         join user_emails e on e.user_id = u.id and e.is_primary
         where m.tenant_id = $1 and m.status = 'active' and m.role in ('owner', 'admin') order by m.created_at, u.id limit 50",
        tenant.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.display_name, row.address))
        .collect())
}

/// A client that has a grant in a tenant, or had one until it was not admitted any more, or about
/// which something was decided or asked.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Which.
    pub client: ClientId,
    /// The decision.
    pub decision: Option<ClientDecision>,
    /// Live grants.
    pub apps: i64,
    /// People with one.
    pub people: i64,
    /// The last request of one of them at an MCP endpoint, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Lists the clients that a tenant has to do with, those in most use first, at most a thousand. The
/// tenant's own clients are left out.
pub async fn seen(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<Seen>, StorageError> {
    let rows = sqlx::query!(
        r#"with live as (
             select g.client_ref, count(*) as apps, count(distinct g.user_id) as people,
               max(n.used_at) as last_used_at
             from grants g left join grant_uses n on n.tenant_id = g.tenant_id and n.grant_id = g.id
             where g.tenant_id = $1 and g.revoked_at is null and g.expires_at > $2 group by g.client_ref
           ), known as (
             select client_ref from live union select client_ref from client_decisions where tenant_id = $1
             union select client_ref from client_requests where tenant_id = $1
             -- Cut off by a rule: whoever made it can allow them all the same.
             union select client_ref from grants where tenant_id = $1 and revoke_reason = 'client_not_admitted'
           )
           select k.client_ref as "client_ref!", d.decision as "decision?", coalesce(l.apps, 0) as "apps!", coalesce(l.people, 0) as "people!",
             l.last_used_at as "last_used_at?"
           from known k join oauth_clients c on c.id = k.client_ref and c.kind in ('dynamic', 'cimd')
             left join live l on l.client_ref = k.client_ref
             left join client_decisions d on d.tenant_id = $1 and d.client_ref = k.client_ref
           order by coalesce(l.people, 0) desc, lower(c.name), c.id limit 1000"#,
        tenant.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Seen {
                client: row.client_ref.into(),
                decision: read_decision(row.decision.as_deref())?,
                apps: row.apps,
                people: row.people,
                last_used_at: row.last_used_at,
            })
        })
        .collect()
}

/// The clients with live grants in a tenant, however many, with what was decided about each.
pub async fn live(
    tx: &mut SystemTx,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<(ClientId, Option<ClientDecision>)>, StorageError> {
    let rows = sqlx::query!(
        r#"select g.client_ref, d.decision as "decision?" from (
             select distinct client_ref from grants where tenant_id = $1 and revoked_at is null and expires_at > $2) g
           left join client_decisions d on d.tenant_id = $1 and d.client_ref = g.client_ref"#,
        tenant.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok((
                row.client_ref.into(),
                read_decision(row.decision.as_deref())?,
            ))
        })
        .collect()
}

/// Whether a tenant has to do with a client that it did not register itself.
pub async fn is_seen(
    tx: &mut SystemTx,
    tenant: TenantId,
    client: ClientId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from oauth_clients where id = $2 and kind in ('dynamic', 'cimd')) and (
             exists (select 1 from grants where tenant_id = $1 and client_ref = $2
               and (revoked_at is null and expires_at > $3 or revoke_reason = 'client_not_admitted'))
             or exists (select 1 from client_decisions where tenant_id = $1 and client_ref = $2)
             or exists (select 1 from client_requests where tenant_id = $1 and client_ref = $2)) as "seen!""#,
        tenant.uuid(),
        client.uuid(),
        now,
    )
    .fetch_one(tx.connection())
    .await?)
}
