//! The flight recorder: what happened on the way of an AI client into a tenant, step by step (`auth.md` X2). Written in batches by
//! [`crate::recorder`]; put together into attempts by whoever reads.

use std::collections::HashMap;

use portolan_model::{
    Digest, Timestamp,
    id::{GrantId, RequestId, TenantId, UserId},
};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use time::Duration;
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// Steps of one computer that are this far apart may belong together.
pub const TOGETHER: Duration = Duration::minutes(10);
/// How long steps are kept.
pub const KEPT: Duration = Duration::days(7);

/// A step on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The server's address answered 401 and said where to read on.
    Challenge,
    /// The protected resource metadata was read (RFC 9728).
    ResourceMetadata,
    /// The authorization server metadata was read (RFC 8414).
    ServerMetadata,
    /// The client registered itself (RFC 7591).
    Register,
    /// Its metadata document was looked at.
    ClientDocument,
    /// The authorization request.
    Authorize,
    /// The person was sent to sign in.
    SignIn,
    /// The consent page.
    Consent,
    /// A code was exchanged for tokens.
    Token,
    /// A refresh that was refused.
    Refresh,
    /// A request with the token.
    Request,
}

impl Step {
    const ALL: [Self; 11] = [
        Self::Challenge,
        Self::ResourceMetadata,
        Self::ServerMetadata,
        Self::Register,
        Self::ClientDocument,
        Self::Authorize,
        Self::SignIn,
        Self::Consent,
        Self::Token,
        Self::Refresh,
        Self::Request,
    ];

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Challenge => "challenge",
            Self::ResourceMetadata => "resource_metadata",
            Self::ServerMetadata => "server_metadata",
            Self::Register => "register",
            Self::ClientDocument => "client_document",
            Self::Authorize => "authorize",
            Self::SignIn => "sign_in",
            Self::Consent => "consent",
            Self::Token => "token",
            Self::Refresh => "refresh",
            Self::Request => "request",
        }
    }

    /// A step that costs a stranger nothing.
    pub const fn is_discovery(self) -> bool {
        matches!(
            self,
            Self::Challenge | Self::ResourceMetadata | Self::ServerMetadata
        )
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepOutcome {
    /// As the client hoped.
    Ok,
    /// Somebody has to do something.
    Waiting,
    /// A rule said no.
    Refused,
    /// The fault is ours.
    Failed,
}

impl StepOutcome {
    const ALL: [Self; 4] = [Self::Ok, Self::Waiting, Self::Refused, Self::Failed];

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Which tenant a step concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nobody has said yet.
    Unknown,
    /// This slug was named; whose it is, the writer looks up.
    Slug(String),
    /// This one.
    Tenant(TenantId),
}

/// A step to be written.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub step: Step,
    /// How it ended.
    pub outcome: StepOutcome,
    /// Where.
    pub place: Place,
    /// Slug of the one server that was named.
    pub server: Option<String>,
    /// Id of the request, as pages of faults show it.
    pub request_id: String,
    /// The authorization request that it belongs to.
    pub authorization: Option<RequestId>,
    /// The grant that it led to.
    pub grant: Option<GrantId>,
    /// Who decided.
    pub user: Option<UserId>,
    /// The client on the wire, with the digest of that.
    pub client: Option<(String, Digest)>,
    /// As it calls itself, cleaned.
    pub client_name: Option<String>,
    /// Network block.
    pub ip_block: String,
    /// What it says that it is, cut and cleaned.
    pub agent: Option<String>,
    /// The rule that decided.
    pub rule: Option<&'static str>,
    /// What the client, or its user, was told.
    pub fault: Option<String>,
    /// What it sent, as far as it may be kept (X1).
    pub detail: Value,
}

#[derive(Serialize)]
struct Row<'a> {
    at: i128,
    tenant_id: Option<Uuid>,
    step: &'static str,
    outcome: &'static str,
    request_id: &'a str,
    authorization_id: Option<Uuid>,
    grant_id: Option<Uuid>,
    user_id: Option<Uuid>,
    client_digest: Option<String>,
    client_id: Option<&'a str>,
    client_name: Option<&'a str>,
    server_slug: Option<&'a str>,
    ip_block: &'a str,
    agent: Option<&'a str>,
    rule: Option<&'static str>,
    fault: Option<&'a str>,
    detail: &'a Value,
}

/// Writes many steps in one statement. A step that names a slug of nobody's is left out: strangers could invent any number of them.
pub async fn insert_many(tx: &mut SystemTx, events: &[NewEvent]) -> Result<(), StorageError> {
    let slugs: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.place {
            Place::Slug(slug) => Some(slug.clone()),
            _ => None,
        })
        .collect();
    let tenants: HashMap<String, Uuid> = sqlx::query!(
        "select slug, tenant_id from tenant_slugs where slug = any($1) and state <> 'tombstone'",
        &slugs
    )
    .fetch_all(tx.connection())
    .await?
    .into_iter()
    .map(|row| (row.slug, row.tenant_id))
    .collect();
    let rows: Vec<Row<'_>> = events
        .iter()
        .filter_map(|event| {
            let tenant = match &event.place {
                Place::Unknown => None,
                Place::Tenant(tenant) => Some(tenant.uuid()),
                Place::Slug(slug) => Some(*tenants.get(slug)?),
            };
            Some(row(event, tenant))
        })
        .collect();
    sqlx::query!(
        "insert into connect_events (at, tenant_id, step, outcome, request_id, authorization_id, grant_id, user_id, client_digest, client_id,
           client_name, server_slug, ip_block, agent, rule, fault, detail)
         select to_timestamp(0) + r.at * interval '1 microsecond', r.tenant_id, r.step, r.outcome, r.request_id, r.authorization_id, r.grant_id,
           r.user_id, decode(r.client_digest, 'hex'), r.client_id, r.client_name, r.server_slug, r.ip_block, r.agent, r.rule, r.fault, r.detail
         from jsonb_to_recordset($1) as r(at bigint, tenant_id uuid, step text, outcome text, request_id text, authorization_id uuid,
           grant_id uuid, user_id uuid, client_digest text, client_id text, client_name text, server_slug text, ip_block text, agent text,
           rule text, fault text, detail jsonb)
         on conflict (grant_id) where step = 'request' and outcome = 'ok' do nothing",
        Json(rows) as _,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

fn row(event: &NewEvent, tenant_id: Option<Uuid>) -> Row<'_> {
    Row {
        at: event.at.unix_timestamp_nanos() / 1000,
        tenant_id,
        step: event.step.as_str(),
        outcome: event.outcome.as_str(),
        request_id: &event.request_id,
        authorization_id: event.authorization.map(RequestId::uuid),
        grant_id: event.grant.map(GrantId::uuid),
        user_id: event.user.map(UserId::uuid),
        client_digest: event.client.as_ref().map(|(_, digest)| {
            digest
                .as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        }),
        client_id: event.client.as_ref().map(|(id, _)| id.as_str()),
        client_name: event.client_name.as_deref(),
        server_slug: event.server.as_deref(),
        ip_block: &event.ip_block,
        agent: event.agent.as_deref(),
        rule: event.rule,
        fault: event.fault.as_deref(),
        detail: &event.detail,
    }
}

/// A step that was written.
#[derive(Debug, Clone)]
pub struct Event {
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
    /// What it says that it is.
    pub agent: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// What the client, or its user, was told.
    pub fault: Option<String>,
    /// What it sent.
    pub detail: Value,
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
    /// Before this time.
    pub before: Option<Timestamp>,
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
}

impl TryFrom<Stored> for Event {
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
        })
    }
}

/// The newest steps, at most `limit`, oldest first: for operators those of every tenant, else those of one, with those of nobody's that belong
/// to it.
pub async fn list(
    tx: &mut SystemTx,
    which: Which<'_>,
    limit: i64,
) -> Result<Vec<Event>, StorageError> {
    let rows = match which.tenant {
        Some(tenant) => of_tenant(tx, tenant, which, limit).await?,
        None => of_all(tx, which, limit).await?,
    };
    rows.into_iter().map(Event::try_from).collect()
}

/// A step at which no workspace was named is shown to a tenant only if it is of one of its authorization requests; or a look at metadata,
/// which tells nothing, by a computer that came for it and for no other tenant; or of a client by name that asked for it, from a network that
/// came for it, and that had to do with no other tenant within the hour.
async fn of_tenant(
    tx: &mut SystemTx,
    tenant: TenantId,
    which: Which<'_>,
    limit: i64,
) -> Result<Vec<Stored>, StorageError> {
    Ok(sqlx::query_as!(
        Stored,
        r#"with asked as (
             select a.authorization_id, a.grant_id from connect_events a
             where a.request_id = $2 and (a.tenant_id = $1
               or (a.tenant_id is null and exists (select 1 from connect_events f where f.authorization_id = a.authorization_id and f.tenant_id = $1)))
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
             (select e.id, e.at, e.step, e.authorization_id, e.client_digest, e.ip_block, e.agent from connect_events e
              where $2::text is null and e.tenant_id = $1 and ($4::timestamptz is null or e.at < $4) and ($3::bytea is null or e.client_digest = $3)
              order by e.at desc, e.id desc limit $5)
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
             u.display_name as "user_name?", e.client_id, e.client_name, e.server_slug, e.ip_block, e.agent, e.rule, e.fault, e.detail
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
        r#"with asked as (
             select authorization_id, grant_id from connect_events where request_id = $1
           ), ways as (
             select authorization_id from asked where authorization_id is not null
             union
             select f.authorization_id from connect_events f join asked a on f.grant_id = a.grant_id where f.authorization_id is not null
           ), granted as (
             select grant_id from asked where grant_id is not null
             union
             select f.grant_id from connect_events f join ways w on f.authorization_id = w.authorization_id where f.grant_id is not null
           ), own as (
             (select e.id from connect_events e
              where $1::text is null and ($3::timestamptz is null or e.at < $3) and ($2::bytea is null or e.client_digest = $2)
              order by e.at desc, e.id desc limit $4)
             union
             select e.id from connect_events e where e.request_id = $1
             union
             select e.id from ways w join connect_events e on e.authorization_id = w.authorization_id
             union
             select e.id from granted g join connect_events e on e.grant_id = g.grant_id
           )
           select e.id, e.at, e.tenant_id, e.step, e.outcome, e.request_id, e.authorization_id, e.grant_id, e.user_id,
             u.display_name as "user_name?", e.client_id, e.client_name, e.server_slug, e.ip_block, e.agent, e.rule, e.fault, e.detail
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
