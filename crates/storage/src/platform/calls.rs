//! The log of tool calls: who called what and how it ended, without arguments or results.
//!
//! A row stands for `weight` calls (METER-7); counts are in [`crate::platform::usage`]. Nodes of the
//! previous release write into `tool_calls`. Its rows beyond `tool_calls_carried` are shown in their
//! place.

use std::{borrow::Cow, sync::Arc};

use portolan_metering::{CallEra, CallerKind, Measures, key::outcome_code};
use portolan_model::{
    Timestamp,
    id::{CallId, GrantId, ServerId, TenantId, UserId},
    registry::CallOutcome,
};
use time::Duration;
use uuid::Uuid;

use crate::{StorageError, TenantTx, Tx};

/// Longest error text that is kept, in characters.
pub const ERROR_CHARS: usize = 500;

/// One call.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// Its id, of the time at which it came.
    pub id: CallId,
    /// Whose server it is.
    pub tenant: TenantId,
    /// When it came.
    pub at: Timestamp,
    /// Through which server; `None` for the try page.
    pub server: Option<(ServerId, Arc<str>)>,
    /// The tool's name as called.
    pub item: Arc<str>,
    /// The AI client's name.
    pub client: Option<Arc<str>>,
    /// Its version.
    pub client_version: Option<Arc<str>>,
    /// The OAuth client, as it calls itself on the wire.
    pub client_id: Option<&'a str>,
    /// The kind of caller.
    pub caller: CallerKind,
    /// The person.
    pub user: Option<UserId>,
    /// The grant.
    pub grant: Option<GrantId>,
    /// The revision of MCP.
    pub revision: Option<&'static str>,
    /// The era of the client.
    pub era: CallEra,
    /// How it ended.
    pub outcome: CallOutcome,
    /// HTTP status of the API.
    pub status: Option<u16>,
    /// Times and sizes.
    pub measures: Measures,
    /// From the request to the begin of the work, in microseconds.
    pub wait_us: u64,
    /// The reason of the failure, in words of this service.
    pub error: Option<String>,
    /// The name of the session: the beginning of a digest.
    pub session: Option<String>,
    /// The trace.
    pub trace: Option<[u8; 16]>,
    /// The node.
    pub node: Option<Arc<str>>,
    /// How many calls the row stands for.
    pub weight: u32,
}

/// Names of arguments come from clients, and Postgres holds no U+0000.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Writes many calls in one statement, of all tenants that the scope may write for.
pub async fn insert_many<'c, 'a: 'c>(
    tx: &mut impl Tx,
    calls: impl IntoIterator<Item = &'c Call<'a>>,
) -> Result<(), StorageError> {
    fn each<'c, 'a, T>(calls: &[&'c Call<'a>], of: impl FnMut(&'c Call<'a>) -> T) -> Vec<T> {
        calls.iter().copied().map(of).collect()
    }
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let calls: Vec<&Call<'_>> = calls.into_iter().collect();
    let calls = calls.as_slice();
    // Columns for `unnest`. Texts are borrowed: a statement has thousands of them.
    sqlx::query!(
        "insert into call_log (at, tenant_id, id, server_id, server_slug, item, client, client_version, client_id, caller, user_id, grant_id,
           revision, era, outcome, status, took_us, wait_us, backend_us, bytes_in, bytes_out, error, session, trace_id, node, weight)
         select * from unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
           $10::smallint[], $11::uuid[], $12::uuid[], $13::text[], $14::smallint[], $15::smallint[], $16::int[], $17::bigint[], $18::bigint[],
           $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::bytea[], $25::text[], $26::int[])",
        &each(calls, |call| call.at),
        &each(calls, |call| call.tenant.uuid()),
        &each(calls, |call| call.id.uuid()),
        &each(calls, |call| Some(call.server.as_ref()?.0.uuid())) as &[Option<Uuid>],
        &each(calls, |call| Some(&*call.server.as_ref()?.1)) as &[Option<&str>],
        &each(calls, |call| &*call.item) as &[&str],
        &each(calls, |call| call.client.as_deref()) as &[Option<&str>],
        &each(calls, |call| call.client_version.as_deref()) as &[Option<&str>],
        &each(calls, |call| call.client_id) as &[Option<&str>],
        &each(calls, |call| call.caller.code()),
        &each(calls, |call| call.user.map(UserId::uuid)) as &[Option<Uuid>],
        &each(calls, |call| call.grant.map(GrantId::uuid)) as &[Option<Uuid>],
        &each(calls, |call| call.revision) as &[Option<&str>],
        &each(calls, |call| call.era.code()),
        &each(calls, |call| outcome_code(call.outcome)),
        &each(calls, |call| call.status.map(i32::from)) as &[Option<i32>],
        &each(calls, |call| number(call.measures.took_us)),
        &each(calls, |call| number(call.wait_us)),
        &each(calls, |call| number(call.measures.backend_us)),
        &each(calls, |call| number(call.measures.bytes_in)),
        &each(calls, |call| number(call.measures.bytes_out)),
        &each(calls, |call| call.error.as_deref().map(without_nul)) as &[Option<Cow<'_, str>>],
        &each(calls, |call| call.session.as_deref()) as &[Option<&str>],
        &each(calls, |call| call.trace.as_ref().map(<[u8; 16]>::as_slice)) as &[Option<&[u8]>],
        &each(calls, |call| call.node.as_deref()) as &[Option<&str>],
        &each(calls, |call| i32::try_from(call.weight).unwrap_or(i32::MAX)),
    )
    .execute(tx.raw())
    .await?;
    Ok(())
}

/// A call as the console shows it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its id.
    pub id: CallId,
    /// When it came.
    pub at: Timestamp,
    /// Server; `None` for the try page.
    pub server: Option<ServerId>,
    /// Slug of the server at that time.
    pub server_slug: Option<String>,
    /// Tool.
    pub item: String,
    /// Client.
    pub client: Option<String>,
    /// Version of the client.
    pub client_version: Option<String>,
    /// OAuth client.
    pub client_id: Option<String>,
    /// Kind of caller.
    pub caller: i16,
    /// The person; who that is, the members know.
    pub user: Option<UserId>,
    /// Revision of MCP.
    pub revision: Option<String>,
    /// Era.
    pub era: i16,
    /// Outcome.
    pub outcome: i16,
    /// HTTP status of the API.
    pub status: Option<i32>,
    /// Microseconds of the work.
    pub took_us: i64,
    /// Microseconds before the work.
    pub wait_us: i64,
    /// Microseconds at the API or upstream server.
    pub backend_us: i64,
    /// Bytes of the parameters.
    pub bytes_in: i64,
    /// Bytes of the answer.
    pub bytes_out: i64,
    /// The reason of a failure, in words of this service.
    pub error: Option<String>,
    /// Name of the session.
    pub session: Option<String>,
    /// Trace.
    pub trace: Option<Vec<u8>>,
    /// Node.
    pub node: Option<String>,
    /// How many calls the row stands for.
    pub weight: i32,
}

/// An entry, as the statement answers it.
struct Row {
    id: Uuid,
    at: Timestamp,
    server_id: Option<Uuid>,
    server_slug: Option<String>,
    item: String,
    client: Option<String>,
    client_version: Option<String>,
    client_id: Option<String>,
    caller: i16,
    user_id: Option<Uuid>,
    revision: Option<String>,
    era: i16,
    outcome: i16,
    status: Option<i32>,
    took_us: i64,
    wait_us: i64,
    backend_us: i64,
    bytes_in: i64,
    bytes_out: i64,
    error: Option<String>,
    session: Option<String>,
    trace: Option<Vec<u8>>,
    node: Option<String>,
    weight: i32,
}

impl From<Row> for Entry {
    fn from(row: Row) -> Self {
        Self {
            id: CallId::from_uuid(row.id),
            at: row.at,
            server: row.server_id.map(ServerId::from_uuid),
            server_slug: row.server_slug,
            item: row.item,
            client: row.client,
            client_version: row.client_version,
            client_id: row.client_id,
            caller: row.caller,
            user: row.user_id.map(UserId::from_uuid),
            revision: row.revision,
            era: row.era,
            outcome: row.outcome,
            status: row.status,
            took_us: row.took_us,
            wait_us: row.wait_us,
            backend_us: row.backend_us,
            bytes_in: row.bytes_in,
            bytes_out: row.bytes_out,
            error: row.error,
            session: row.session,
            trace: row.trace,
            node: row.node,
            weight: row.weight,
        }
    }
}

/// Which calls are wanted. `None` is every one.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Through this server.
    pub server: Option<ServerId>,
    /// Through servers with this slug at that time.
    pub slug: Option<String>,
    /// Of this tool.
    pub item: Option<String>,
    /// Of clients with this in their name, in any case.
    pub client: Option<String>,
    /// Of these people.
    pub users: Option<Vec<UserId>>,
    /// With one of these outcomes.
    pub outcomes: Option<Vec<i16>>,
    /// Failed for this reason. `*` stands for any text.
    pub error: Option<String>,
    /// Of this era.
    pub era: Option<i16>,
    /// Longer than so many microseconds.
    pub longer_us: Option<i64>,
    /// Shorter than so many microseconds.
    pub shorter_us: Option<i64>,
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub to: Option<Timestamp>,
    /// Before this call in the list.
    pub before: Option<(Timestamp, CallId)>,
}

impl Wanted {
    /// True if calls of the time may be left out.
    fn is_narrowed(&self) -> bool {
        self.server.is_some()
            || self.slug.is_some()
            || self.item.is_some()
            || self.client.is_some()
            || self.users.is_some()
            || self.outcomes.is_some()
            || self.error.is_some()
            || self.era.is_some()
            || self.longer_us.is_some()
            || self.shorter_us.is_some()
    }
}

/// Most entries that one search reads, so that its time does not grow with the log where few or no
/// calls fit (METER-14).
pub const SEARCHED: i64 = 200_000;

/// Calls that fit, newest first.
#[derive(Debug, Clone)]
pub struct Found {
    /// At most the limit.
    pub entries: Vec<Entry>,
    /// Where the search goes on, if it read its most and found fewer calls than the limit: the
    /// `before` of the next one.
    pub next: Option<(Timestamp, CallId)>,
}

/// Newest first, among the `most` newest entries of the wanted time.
pub async fn search(
    tx: &mut TenantTx,
    wanted: &Wanted,
    limit: i64,
    most: i64,
) -> Result<Found, StorageError> {
    let tenant = tx.tenant().uuid();
    let mut end = None;
    if wanted.is_narrowed() {
        end = sqlx::query_scalar!(
            "select at from call_log
              where tenant_id = $1 and at >= coalesce($2, '-infinity'::timestamptz) and at < coalesce($3, 'infinity'::timestamptz)
                and at < coalesce($4, 'infinity'::timestamptz)
              order by at desc offset $5 limit 1",
            tenant,
            wanted.from,
            wanted.to,
            wanted.before.map(|(at, _)| at),
            most,
        )
        .fetch_optional(tx.connection())
        .await?;
    }
    let within = Wanted {
        from: end.or(wanted.from),
        ..wanted.clone()
    };
    let entries = list(tx, &within, limit).await?;
    let is_full = i64::try_from(entries.len()).is_ok_and(|found| found >= limit);
    // No id is before the first one: the next search begins with earlier times.
    let next = end.map(|at| (at, CallId::from_uuid(Uuid::nil())));
    Ok(Found {
        next: next.filter(|_| !is_full),
        entries,
    })
}

/// Newest first.
pub async fn list(
    tx: &mut TenantTx,
    wanted: &Wanted,
    limit: i64,
) -> Result<Vec<Entry>, StorageError> {
    let tenant = tx.tenant().uuid();
    let (before, before_id) = wanted.before.unzip();
    let users: Option<Vec<Uuid>> = wanted
        .users
        .as_ref()
        .map(|users| users.iter().copied().map(UserId::uuid).collect());
    let like = wanted.client.as_deref().map(contains);
    let error = wanted.error.as_deref().map(with_stars);
    let rows = sqlx::query_as!(
        Row,
        r#"select id as "id!", at as "at!", server_id, server_slug, item as "item!", client, client_version, client_id,
                  caller as "caller!", user_id, revision, era as "era!", outcome as "outcome!", status, took_us as "took_us!",
                  wait_us as "wait_us!", backend_us as "backend_us!", bytes_in as "bytes_in!", bytes_out as "bytes_out!", error, session,
                  trace_id as trace, node, weight as "weight!"
           from (
             (select id, at, server_id, server_slug, item, client, client_version, client_id, caller, user_id, revision, era, outcome, status,
                     took_us, wait_us, backend_us, bytes_in, bytes_out, error, session, trace_id, node, weight
                from call_log
               where tenant_id = $1 and at >= coalesce($2, '-infinity'::timestamptz) and at < coalesce($3, 'infinity'::timestamptz)
                 and at <= coalesce($4, 'infinity'::timestamptz) and ($4::timestamptz is null or (at, id) < ($4, $5))
                 and ($6::uuid is null or server_id = $6) and ($7::text is null or item = $7) and ($15::text is null or server_slug = $15)
                 and ($8::text is null or client ilike $8) and ($9::uuid[] is null or user_id = any($9))
                 and ($10::smallint[] is null or outcome = any($10)) and ($11::smallint is null or era = $11)
                 and ($12::bigint is null or took_us > $12) and ($13::bigint is null or took_us < $13) and ($16::text is null or error ilike $16)
               order by at desc, id desc limit $14)
             union all
             (select id, at, server_id, server_slug, item, client, null, null, caller, user_id, null, era, outcome, status, took_us, 0, 0, 0, 0,
                     null, null, null, null, 1
                from (select carried_call_id(at, id) as id, at, server_id, server_slug, tool_name as item, client_name as client,
                        case when server_id is null then 3 else 4 end::smallint as caller, user_id,
                        case when server_id is null then 2 else 4 end::smallint as era,
                        case outcome when 'ok' then 0 when 'tool_error' then 1 when 'invalid_arguments' then 2 when 'upstream_error' then 3
                          else 4 end::smallint as outcome,
                        status, duration_ms::bigint * 1000 as took_us
                        from tool_calls where tenant_id = $1 and id > (select upto from tool_calls_carried) offset 0) late
               where at >= coalesce($2, '-infinity'::timestamptz) and at < coalesce($3, 'infinity'::timestamptz)
                 and ($4::timestamptz is null or (at, id) < ($4, $5))
                 and ($6::uuid is null or server_id = $6) and ($7::text is null or item = $7) and ($15::text is null or server_slug = $15)
                 and ($8::text is null or client ilike $8) and ($9::uuid[] is null or user_id = any($9))
                 and ($10::smallint[] is null or outcome = any($10)) and ($11::smallint is null or era = $11)
                 and ($12::bigint is null or took_us > $12) and ($13::bigint is null or took_us < $13) and $16::text is null
               order by at desc, id desc limit $14)) both_logs
           order by at desc, id desc limit $14"#,
        tenant,
        wanted.from,
        wanted.to,
        before,
        before_id.map(CallId::uuid),
        wanted.server.map(ServerId::uuid),
        wanted.item,
        like,
        users.as_deref(),
        wanted.outcomes.as_deref(),
        wanted.era,
        wanted.longer_us,
        wanted.shorter_us,
        limit,
        wanted.slug,
        error,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(Entry::from).collect())
}

/// The pattern of texts that contain `text`.
fn contains(text: &str) -> String {
    format!("%{}%", literal(text))
}

/// The pattern of texts that are `text`, where `*` stands for any characters.
fn with_stars(text: &str) -> String {
    literal(text).replace('*', "%")
}

/// The pattern of `text` alone.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The call with this id. Its id has its time, so that one partition is read.
pub async fn find(tx: &mut TenantTx, id: CallId) -> Result<Option<Entry>, StorageError> {
    let Some(at) = id.time() else {
        return Ok(None);
    };
    let wanted = Wanted {
        from: Some(at),
        to: Some(at + Duration::MILLISECOND),
        ..Wanted::default()
    };
    // Few calls of a tenant are of the same millisecond.
    let same = list(tx, &wanted, 10_000).await?;
    Ok(same.into_iter().find(|entry| entry.id == id))
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
                  (exists (select 1 from usage_day where tenant_id = $1 and server_id is not null and outcome = 0)
                    or exists (select 1 from usage_hour where tenant_id = $1 and server_id is not null and outcome = 0)
                    or exists (select 1 from usage_minute where tenant_id = $1 and server_id is not null and outcome = 0)
                    or exists (select 1 from usage_flush where tenant_id = $1 and server_id is not null and outcome = 0)
                    or exists (select 1 from tool_calls where tenant_id = $1 and server_id is not null and outcome = 'ok')) as "has_call!""#,
        tenant
    )
    .fetch_one(tx.connection())
    .await?)
}
