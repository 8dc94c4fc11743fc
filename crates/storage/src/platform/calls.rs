//! The log of tool calls: who called what and how it ended, without arguments or results.

use portolan_model::{
    Timestamp,
    id::{ServerId, UserId},
    registry::CallOutcome,
};
use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{StorageError, TenantTx};

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it began.
    pub at: Timestamp,
    /// Through which server; `None` for the try page.
    pub server: Option<(ServerId, String)>,
    /// The tool's name as called.
    pub tool_name: String,
    /// The AI client's name.
    pub client_name: Option<String>,
    /// The person.
    pub user: Option<UserId>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// HTTP status of the API.
    pub status: Option<u16>,
    /// Milliseconds.
    pub duration_ms: u32,
}

/// One row, as the statement takes it apart.
#[derive(Serialize)]
struct CallRow<'a> {
    at: i128,
    server_id: Option<Uuid>,
    server_slug: Option<&'a str>,
    tool_name: &'a str,
    client_name: Option<&'a str>,
    user_id: Option<Uuid>,
    outcome: &'static str,
    status: Option<u16>,
    duration_ms: i32,
}

impl<'a> CallRow<'a> {
    fn of(call: &'a Call) -> Self {
        Self {
            at: call.at.unix_timestamp_nanos() / 1000,
            server_id: call.server.as_ref().map(|(id, _)| id.uuid()),
            server_slug: call.server.as_ref().map(|(_, slug)| slug.as_str()),
            tool_name: &call.tool_name,
            client_name: call.client_name.as_deref(),
            user_id: call.user.map(UserId::uuid),
            outcome: call.outcome.as_str(),
            status: call.status,
            duration_ms: i32::try_from(call.duration_ms).unwrap_or(i32::MAX),
        }
    }
}

/// Writes many calls in one statement.
pub async fn insert_many(tx: &mut TenantTx, calls: &[Call]) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let rows: Vec<_> = calls.iter().map(CallRow::of).collect();
    sqlx::query!(
        "insert into tool_calls (tenant_id, at, server_id, server_slug, tool_name, client_name, user_id, outcome, status, duration_ms)
         select $1, to_timestamp(0) + r.at * interval '1 microsecond', r.server_id, r.server_slug, r.tool_name, r.client_name, r.user_id, r.outcome, r.status, r.duration_ms
         from jsonb_to_recordset($2) as r(at bigint, server_id uuid, server_slug text, tool_name text, client_name text, user_id uuid,
              outcome text, status int, duration_ms int)",
        tenant,
        Json(rows) as _,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A call as the console shows it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Position in the log, for paging.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Server; `None` for the try page.
    pub server_slug: Option<String>,
    /// Tool.
    pub tool_name: String,
    /// Client.
    pub client_name: Option<String>,
    /// `ok`, `tool_error`, …
    pub outcome: String,
    /// HTTP status of the API.
    pub status: Option<i32>,
    /// Milliseconds.
    pub duration_ms: i32,
    /// The person; who that is, the members know.
    pub user: Option<UserId>,
}

/// Newest first, older than `before`, of one server or of all.
pub async fn list(
    tx: &mut TenantTx,
    server: Option<ServerId>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Entry>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        "select id, at, server_slug, tool_name, client_name, user_id, outcome, status, duration_ms from tool_calls
         where tenant_id = $1 and ($2::uuid is null or server_id = $2) and ($3::bigint is null or id < $3) order by id desc limit $4",
        tenant,
        server.map(ServerId::uuid),
        before,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Entry {
            id: row.id,
            at: row.at,
            server_slug: row.server_slug,
            tool_name: row.tool_name,
            client_name: row.client_name,
            outcome: row.outcome,
            status: row.status,
            duration_ms: row.duration_ms,
            user: row.user_id.map(UserId::from_uuid),
        })
        .collect())
}

/// Calls of one hour.
#[derive(Debug, Clone)]
pub struct Hour {
    /// Its beginning.
    pub hour: Timestamp,
    /// Calls.
    pub calls: i64,
    /// Calls that failed: at the API, on the way to it, or here.
    pub errors: i64,
    /// Calls that were rejected for their arguments: nothing was sent.
    pub rejected: i64,
}

/// The last 24 hours, the present one included, empty hours too.
pub async fn by_hour(tx: &mut TenantTx, now: Timestamp) -> Result<Vec<Hour>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Hour,
        r#"select h as "hour!", count(c.id) as "calls!",
                  count(c.id) filter (where c.outcome not in ('ok', 'invalid_arguments')) as "errors!",
                  count(c.id) filter (where c.outcome = 'invalid_arguments') as "rejected!"
           from generate_series(date_trunc('hour', $2::timestamptz) - interval '23 hours', date_trunc('hour', $2::timestamptz), interval '1 hour') h
             left join tool_calls c on c.tenant_id = $1 and c.at >= h and c.at < h + interval '1 hour'
           group by h order by h"#,
        tenant,
        now
    )
    .fetch_all(tx.connection())
    .await?)
}

/// The counts on the overview page.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Sources.
    pub sources: i64,
    /// Sources with a credential, or signed in to.
    pub credentials: i64,
    /// Tools that can be published.
    pub tools_enabled: i64,
    /// Servers that answer.
    pub servers_published: i64,
    /// Has a call through a server succeeded?
    pub has_call: bool,
}

/// Counts for the overview.
pub async fn counts(tx: &mut TenantTx) -> Result<Counts, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Counts,
        r#"select (select count(*) from sources where tenant_id = $1 and deleted_at is null) as "sources!",
                  (select count(*) from source_credentials where tenant_id = $1)
                    + (select count(*) from upstream_sign_ins where tenant_id = $1) as "credentials!",
                  (select count(*) from tools t join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
                    where t.tenant_id = $1 and t.enabled and t.state = 'active' and s.deleted_at is null) as "tools_enabled!",
                  (select count(*) from servers where tenant_id = $1 and status = 'published' and deleted_at is null) as "servers_published!",
                  exists (select 1 from tool_calls
                    where tenant_id = $1 and server_id is not null and outcome = 'ok') as "has_call!""#,
        tenant
    )
    .fetch_one(tx.connection())
    .await?)
}
