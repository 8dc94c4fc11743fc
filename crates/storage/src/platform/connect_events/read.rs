//! Selects the recorded steps that belong to a connection attempt, and checks who may see them.

use portolan_model::{
    Digest, Timestamp,
    id::{GrantId, RequestId, TenantId, UserId},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Step, StepOutcome, TOGETHER};
use crate::{StorageError, SystemTx};

/// A step that was written.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// Its number.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Whose workspace; `None` while no step said so.
    pub tenant: Option<TenantId>,
    /// Which.
    pub step: Step,
    /// How it ended.
    pub outcome: StepOutcome,
    /// Id of the request.
    pub request_id: Option<String>,
    /// The authorization request that it belongs to.
    pub authorization: Option<RequestId>,
    /// The grant that it led to.
    pub grant: Option<GrantId>,
    /// Who decided.
    pub user: Option<UserId>,
    /// Their name, if they still have an account.
    pub user_name: Option<String>,
    /// The client on the wire.
    pub client_id: Option<String>,
    /// As it calls itself.
    pub client_name: Option<String>,
    /// Slug of the one server that was named.
    pub server: Option<String>,
    /// Network block.
    pub ip_block: Option<String>,
    /// The client's self-description.
    pub agent: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The error sent to the client or shown to its user.
    pub fault: Option<String>,
    /// The sent data.
    pub detail: Value,
    /// How often it came again just so.
    pub repeats: i32,
    /// When it came again last.
    pub last_at: Option<Timestamp>,
}

/// Which steps are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    /// Of this tenant; `None` is every tenant, for operators.
    pub tenant: Option<TenantId>,
    /// Of attempts in which this request took part.
    pub request_id: Option<&'a str>,
    /// Of the client with this digest of its id.
    pub client: Option<&'a Digest>,
    /// Of attempts that began by this time.
    pub before: Option<Timestamp>,
}

/// Steps that were read.
#[derive(Debug, Clone)]
pub struct Read {
    /// Oldest first.
    pub events: Vec<RecordedStep>,
    /// Of what happened by then, only what belongs to the rest was read. `None`: nothing else is
    /// there.
    pub since: Option<Timestamp>,
}

struct Stored {
    id: i64,
    at: Timestamp,
    tenant_id: Option<Uuid>,
    step: String,
    outcome: String,
    request_id: Option<String>,
    authorization_id: Option<Uuid>,
    grant_id: Option<Uuid>,
    user_id: Option<Uuid>,
    user_name: Option<String>,
    client_id: Option<String>,
    client_name: Option<String>,
    server_slug: Option<String>,
    ip_block: Option<String>,
    agent: Option<String>,
    rule: Option<String>,
    fault: Option<String>,
    detail: Value,
    repeats: i32,
    last_at: Option<Timestamp>,
}

impl TryFrom<Stored> for RecordedStep {
    type Error = StorageError;

    fn try_from(row: Stored) -> Result<Self, StorageError> {
        let inconsistent = |column| StorageError::Inconsistent {
            table: "connect_events",
            column,
        };
        Ok(Self {
            id: row.id,
            at: row.at,
            tenant: row.tenant_id.map(TenantId::from_uuid),
            step: Step::ALL
                .into_iter()
                .find(|step| step.as_str() == row.step)
                .ok_or(inconsistent("step"))?,
            outcome: StepOutcome::ALL
                .into_iter()
                .find(|outcome| outcome.as_str() == row.outcome)
                .ok_or(inconsistent("outcome"))?,
            request_id: row.request_id,
            authorization: row.authorization_id.map(RequestId::from_uuid),
            grant: row.grant_id.map(GrantId::from_uuid),
            user: row.user_id.map(UserId::from_uuid),
            user_name: row.user_name,
            client_id: row.client_id,
            client_name: row.client_name,
            server: row.server_slug,
            ip_block: row.ip_block,
            agent: row.agent,
            rule: row.rule,
            fault: row.fault,
            detail: row.detail,
            repeats: row.repeats,
            last_at: row.last_at,
        })
    }
}

/// Reads the newest steps by [`Which::before`], at most `limit`. It adds all other steps of their
/// authorization requests and grants at any time, and the steps of the hour after it. Operators
/// receive the steps of every tenant. A tenant receives its own, and those without a tenant that
/// belong to them.
pub async fn list(tx: &mut SystemTx, which: Which<'_>, limit: i64) -> Result<Read, StorageError> {
    let rows = match which.tenant {
        Some(tenant) => of_tenant(tx, tenant, which, limit).await?,
        None => of_all(tx, which, limit).await?,
    };
    // Afterwards: what comes in between makes it later, and less is taken for whole.
    let since = if which.request_id.is_some() {
        None
    } else {
        first_beyond(tx, which, limit).await?
    };
    Ok(Read {
        events: rows
            .into_iter()
            .map(RecordedStep::try_from)
            .collect::<Result<_, _>>()?,
        since,
    })
}

/// When the newest step happened that is not among the `limit` newest ones.
async fn first_beyond(
    tx: &mut SystemTx,
    which: Which<'_>,
    limit: i64,
) -> Result<Option<Timestamp>, StorageError> {
    Ok(sqlx::query_scalar!(
        "select at from connect_events
         where ($1::uuid is null or tenant_id = $1) and ($3::timestamptz is null or at <= $3) and ($2::bytea is null or client_digest = $2)
         order by at desc, id desc offset $4 limit 1",
        which.tenant.map(TenantId::uuid),
        which.client.map(|digest| digest.as_bytes().as_slice()),
        which.before,
        limit,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// A step at which no workspace was named is shown to a tenant only if it is of one of its
/// authorization requests; or a look at metadata, which tells nothing, by a computer that came for
/// it and for no other tenant; or of a client by name that asked for it, from a network that came
/// for it, and that had to do with no other tenant within the hour.
#[expect(clippy::too_many_lines, reason = "one statement of SQL")]
async fn of_tenant(
    tx: &mut SystemTx,
    tenant: TenantId,
    which: Which<'_>,
    limit: i64,
) -> Result<Vec<Stored>, StorageError> {
    Ok(sqlx::query_as!(
        Stored,
        r#"with paged as (
             (select e.id, e.at, e.step, e.authorization_id, e.grant_id, e.client_digest, e.ip_block, e.agent from connect_events e
              where $2::text is null and e.tenant_id = $1 and ($4::timestamptz is null or e.at <= $4) and ($3::bytea is null or e.client_digest = $3)
              order by e.at desc, e.id desc limit $5)
             union
             (select e.id, e.at, e.step, e.authorization_id, e.grant_id, e.client_digest, e.ip_block, e.agent from connect_events e
              where $2::text is null and e.tenant_id = $1 and e.at > $4 and e.at <= $4 + interval '1 hour'
                and ($3::bytea is null or e.client_digest = $3)
              order by e.at, e.id limit $5)
           ), asked as (
             select a.authorization_id, a.grant_id from connect_events a
             where a.request_id = $2 and (a.tenant_id = $1
               or (a.tenant_id is null and exists (select 1 from connect_events f where f.authorization_id = a.authorization_id and f.tenant_id = $1)))
             union
             select p.authorization_id, p.grant_id from paged p
           ), ways as (
             select authorization_id from asked where authorization_id is not null
             union
             select f.authorization_id from connect_events f join asked a on f.grant_id = a.grant_id
             where f.tenant_id = $1 and f.authorization_id is not null
           ), granted as (
             select grant_id from asked where grant_id is not null
             union
             select f.grant_id from connect_events f join ways w on f.authorization_id = w.authorization_id
             where f.tenant_id = $1 and f.grant_id is not null
           ), own as (
             select p.id, p.at, p.step, p.authorization_id, p.client_digest, p.ip_block, p.agent from paged p
             union
             select e.id, e.at, e.step, e.authorization_id, e.client_digest, e.ip_block, e.agent from connect_events e
             where e.request_id = $2 and e.tenant_id = $1
             union
             select e.id, e.at, e.step, e.authorization_id, e.client_digest, e.ip_block, e.agent
             from ways w join connect_events e on e.authorization_id = w.authorization_id where e.tenant_id = $1
             union
             select e.id, e.at, e.step, e.authorization_id, e.client_digest, e.ip_block, e.agent
             from granted g join connect_events e on e.grant_id = g.grant_id where e.tenant_id = $1
           ), computers as (
             select ip_block, agent, date_bin($6::interval, at, timestamptz 'epoch') as w, min(at) as first, max(at) as last
             from own where ip_block is not null group by 1, 2, 3
           ), clients as (
             select client_digest, min(at) as first, max(at) as last from own
             where client_digest is not null and authorization_id is not null and step = 'authorize'
             group by client_digest, date_bin(interval '1 hour', at, timestamptz 'epoch')
           ), near as (
             select u.id from (select distinct authorization_id from own where authorization_id is not null) o
               join connect_events u on u.authorization_id = o.authorization_id where u.tenant_id is null
             union
             select u.id from computers c cross join lateral (
               select e.id, e.at from connect_events e
               where e.ip_block = c.ip_block and e.at between c.first - $6::interval and c.last + $6::interval and e.tenant_id is null
                 and e.step = 'server_metadata' and e.agent is not distinct from c.agent
               order by e.at desc limit 20) u
             where not exists (select 1 from connect_events f where f.ip_block = c.ip_block and f.agent is not distinct from c.agent
               and f.at between u.at - $6::interval and u.at + $6::interval and f.tenant_id <> $1)
             union
             select u.id from clients c cross join lateral (
               select e.id, e.ip_block from connect_events e
               where e.client_digest = c.client_digest and e.at between c.first - interval '1 hour' and c.last + $6::interval
                 and e.tenant_id is null and e.authorization_id is null
               order by e.at desc limit 20) u
             where exists (select 1 from own o where o.ip_block = u.ip_block)
               and not exists (select 1 from connect_events f where f.client_digest = c.client_digest and f.tenant_id <> $1
                 and f.at between c.first - interval '1 hour' and c.last + interval '1 hour')
           )
           select e.id, e.at, e.tenant_id, e.step, e.outcome, e.request_id, e.authorization_id, e.grant_id, e.user_id,
             u.display_name as "user_name?", e.client_id, e.client_name, e.server_slug, e.ip_block, e.agent, e.rule, e.fault, e.detail,
             e.repeats, e.last_at
           from (select id from own union select id from near) wanted join connect_events e on e.id = wanted.id
             left join users u on u.id = e.user_id
           order by e.at, e.id"#,
        tenant.uuid(),
        which.request_id,
        which.client.map(|digest| digest.as_bytes().as_slice()),
        which.before,
        limit,
        sqlx::postgres::types::PgInterval {
            months: 0,
            days: 0,
            microseconds: i64::try_from(TOGETHER.whole_microseconds()).unwrap_or(i64::MAX),
        },
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Of every tenant, and of none.
async fn of_all(
    tx: &mut SystemTx,
    which: Which<'_>,
    limit: i64,
) -> Result<Vec<Stored>, StorageError> {
    Ok(sqlx::query_as!(
        Stored,
        r#"with paged as (
             (select e.id, e.authorization_id, e.grant_id from connect_events e
              where $1::text is null and ($3::timestamptz is null or e.at <= $3) and ($2::bytea is null or e.client_digest = $2)
              order by e.at desc, e.id desc limit $4)
             union
             (select e.id, e.authorization_id, e.grant_id from connect_events e
              where $1::text is null and e.at > $3 and e.at <= $3 + interval '1 hour' and ($2::bytea is null or e.client_digest = $2)
              order by e.at, e.id limit $4)
           ), asked as (
             select authorization_id, grant_id from connect_events where request_id = $1
             union
             select authorization_id, grant_id from paged
           ), ways as (
             select authorization_id from asked where authorization_id is not null
             union
             select f.authorization_id from connect_events f join asked a on f.grant_id = a.grant_id where f.authorization_id is not null
           ), granted as (
             select grant_id from asked where grant_id is not null
             union
             select f.grant_id from connect_events f join ways w on f.authorization_id = w.authorization_id where f.grant_id is not null
           ), own as (
             select id from paged
             union
             select e.id from connect_events e where e.request_id = $1
             union
             select e.id from ways w join connect_events e on e.authorization_id = w.authorization_id
             union
             select e.id from granted g join connect_events e on e.grant_id = g.grant_id
           )
           select e.id, e.at, e.tenant_id, e.step, e.outcome, e.request_id, e.authorization_id, e.grant_id, e.user_id,
             u.display_name as "user_name?", e.client_id, e.client_name, e.server_slug, e.ip_block, e.agent, e.rule, e.fault, e.detail,
             e.repeats, e.last_at
           from own join connect_events e on e.id = own.id left join users u on u.id = e.user_id
           order by e.at, e.id"#,
        which.request_id,
        which.client.map(|digest| digest.as_bytes().as_slice()),
        which.before,
        limit,
    )
    .fetch_all(tx.connection())
    .await?)
}
