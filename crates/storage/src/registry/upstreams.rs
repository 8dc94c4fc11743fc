//! Sources of kind `mcp`: their servers' descriptions of themselves, the times of refreshes, and
//! changes that wait for approval.

use portolan_model::{
    Timestamp,
    event::EventType,
    id::{PromptId, ResourceId, SourceId, TenantId},
};
use serde_json::{Value, json};

use crate::{
    StorageError, Store, SystemTx, TenantTx, events, notification_listener::NotificationListener,
};

const LOOKS: &str = "portolan_upstream_looks";

/// A server that could not be read so often in a row has failed: one lost look is none (HOOK-1).
const FAILED: i32 = 2;

/// The stored facts about an upstream server.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Stands before the names of its tools and prompts; mostly empty.
    pub prefix: String,
    /// Changes wait until a person approves them.
    pub hold_changes: bool,
    /// The revision that is spoken with it; none before it answered once.
    pub revision: Option<String>,
    /// Its name for itself.
    pub server_name: Option<String>,
    /// The version that it gives itself.
    pub server_version: Option<String>,
    /// For models.
    pub instructions: Option<String>,
    /// Its capabilities.
    pub capabilities: Value,
    /// What of its lists cannot be used, as sentences.
    pub skipped: Value,
    /// Changes that wait.
    pub pending: Option<Value>,
    /// Why it could not be looked at the last time.
    pub last_error: Option<String>,
    /// When it was looked at.
    pub checked_at: Option<Timestamp>,
    /// When its lists were last taken over.
    pub synced_at: Option<Timestamp>,
}

/// A server's description of itself.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The revision that is spoken with it.
    pub revision: &'a str,
    /// Its name for itself.
    pub name: Option<&'a str>,
    /// The version that it gives itself.
    pub version: Option<&'a str>,
    /// For models.
    pub instructions: Option<&'a str>,
    /// Its capabilities.
    pub capabilities: &'a Value,
    /// What of its lists cannot be used.
    pub skipped: &'a Value,
}

/// Keeps a new upstream, not yet looked at.
pub async fn insert(
    tx: &mut TenantTx,
    source: SourceId,
    prefix: &str,
    hold_changes: bool,
    next_check_at: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into upstreams (tenant_id, source_id, prefix, hold_changes, next_check_at) values ($1, $2, $3, $4, $5)",
        tenant,
        source.uuid(),
        prefix,
        hold_changes,
        next_check_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Reads the stored facts about a source's server.
pub async fn find(tx: &mut TenantTx, source: SourceId) -> Result<Option<Upstream>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Upstream,
        "select prefix, hold_changes, revision, server_name, server_version, instructions, capabilities, skipped, pending, last_error,
                checked_at, synced_at
         from upstreams where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Changes what is given.
pub async fn configure(
    tx: &mut TenantTx,
    source: SourceId,
    prefix: Option<&str>,
    hold_changes: Option<bool>,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update upstreams set prefix = coalesce($3, prefix), hold_changes = coalesce($4, hold_changes) where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        prefix,
        hold_changes,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The server was looked at: what it says, and what waits (`pending`). `applied` if nothing does.
/// A look that was requested after `begun` keeps its time: this one may have read before the change.
pub async fn looked(
    tx: &mut TenantTx,
    source: SourceId,
    said: &Said<'_>,
    pending: Option<&Value>,
    begun: Timestamp,
    now: Timestamp,
    next_check_at: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let before = sqlx::query!(
        r#"update upstreams u set revision = $3, server_name = $4, server_version = $5, instructions = $6, capabilities = $7, skipped = $8,
                pending = $9, last_error = null, failures = 0, checked_at = $10,
                synced_at = case when $9::jsonb is null then $10 else u.synced_at end,
                next_check_at = case when u.next_check_at > $12 then least(u.next_check_at, $11) else $11 end
           from (select source_id, failures from upstreams where tenant_id = $1 and source_id = $2 for update) b
           join sources s on s.tenant_id = $1 and s.id = b.source_id
         where u.tenant_id = $1 and u.source_id = b.source_id returning b.failures, s.name"#,
        tenant,
        source.uuid(),
        said.revision,
        said.name,
        said.version,
        said.instructions,
        said.capabilities,
        said.skipped,
        pending,
        now,
        next_check_at,
        begun,
    )
    .fetch_optional(tx.connection())
    .await?;
    if let Some(before) = before.filter(|before| before.failures >= FAILED) {
        let data = json!({ "source": source, "name": before.name });
        let tenant = tx.tenant();
        events::write(tx, tenant, EventType::UpstreamRestored, data, now).await?;
    }
    Ok(())
}

/// Records that the server could not be read. Known facts stay.
pub async fn failed(
    tx: &mut TenantTx,
    source: SourceId,
    error: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let now_failed = sqlx::query!(
        "update upstreams u set last_error = $3, failures = u.failures + 1, checked_at = $4 from sources s
          where u.tenant_id = $1 and u.source_id = $2 and s.tenant_id = u.tenant_id and s.id = u.source_id
         returning u.failures, s.name",
        tenant,
        source.uuid(),
        error,
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    if let Some(failed) = now_failed.filter(|failed| failed.failures == FAILED) {
        let data = json!({ "source": source, "name": failed.name, "reason": error });
        let tenant = tx.tenant();
        events::write(tx, tenant, EventType::UpstreamFailed, data, now).await?;
    }
    Ok(())
}

/// Asks for a look at a server before its time: it said that something changed. False if one is
/// near anyway.
pub async fn ask_for_a_look(
    tx: &mut TenantTx,
    source: SourceId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update upstreams set next_check_at = $3 where tenant_id = $1 and source_id = $2 and next_check_at > $3",
        tenant,
        source.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    let is_asked = done.rows_affected() == 1;
    if is_asked {
        sqlx::query("select pg_notify($1, '')")
            .bind(LOOKS)
            .execute(tx.connection())
            .await?;
    }
    Ok(is_asked)
}

/// Notifies when a refresh was requested. A listener that misses it finds the row at its scheduled
/// time.
pub fn listener(store: &Store) -> NotificationListener {
    NotificationListener::new(store, &[LOOKS])
}

/// Claims servers that are due, at most `limit` and one per tenant. They are the caller's until
/// `until`; afterwards another caller may claim them. Skips the tenants `not_of` and the sources
/// `not`, because the caller is working on them.
pub async fn take_due(
    tx: &mut SystemTx,
    now: Timestamp,
    until: Timestamp,
    limit: i64,
    not_of: &[TenantId],
    not: &[SourceId],
) -> Result<Vec<(TenantId, SourceId)>, StorageError> {
    let not_of: Vec<_> = not_of.iter().map(|tenant| tenant.uuid()).collect();
    let not: Vec<_> = not.iter().map(|source| source.uuid()).collect();
    // The rows are locked last and asked again: of two that choose the same, one takes it.
    let rows = sqlx::query!(
        "update upstreams u set next_check_at = $2 where (u.tenant_id, u.source_id) in
           (select l.tenant_id, l.source_id from upstreams l
             where l.next_check_at <= $1 and (l.tenant_id, l.source_id) in
               (select d.tenant_id, d.source_id from
                  (select d.tenant_id, d.source_id, d.next_check_at,
                          row_number() over (partition by d.tenant_id order by d.next_check_at, d.source_id) as place
                     from upstreams d
                     join sources s on s.tenant_id = d.tenant_id and s.id = d.source_id and s.deleted_at is null
                     join tenants t on t.id = d.tenant_id and t.status = 'active'
                    where d.next_check_at <= $1 and not (d.tenant_id = any($4)) and not (d.source_id = any($5))) d
                where d.place = 1 order by d.next_check_at limit $3)
             for update of l skip locked)
         returning u.tenant_id, u.source_id",
        now,
        until,
        limit,
        &not_of,
        &not,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            (
                TenantId::from_uuid(row.tenant_id),
                SourceId::from_uuid(row.source_id),
            )
        })
        .collect())
}

/// A prompt as a server defines it.
#[derive(Debug, Clone)]
pub struct SyncedPrompt {
    /// Its own name.
    pub upstream_name: String,
    /// With the source's prefix.
    pub name: String,
    /// For people.
    pub title: String,
    /// Its purpose.
    pub description: String,
    /// Declared arguments, in the form of `model::prompt::Argument`.
    pub arguments: Value,
    /// The definition as it came.
    pub upstream: Value,
    /// The same as text.
    pub written: String,
}

/// A resource or template as a server defines it.
#[derive(Debug, Clone)]
pub struct SyncedResource {
    /// `resource` or `template`.
    pub kind: &'static str,
    /// URI or template.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// The definition as it came.
    pub upstream: Value,
    /// The same as text.
    pub written: String,
}

/// A prompt or resource of a source that is still there.
#[derive(Debug, Clone)]
pub struct KnownItem {
    /// `prompt`, `resource` or `template`.
    pub kind: String,
    /// The server's own name or URI.
    pub name: String,
    /// The definition as it came.
    pub definition: Value,
    /// The same as text; none if a release has written it that does not keep it.
    pub written: Option<String>,
}

/// The prompts and resources that a source has and that are still there.
pub async fn known(tx: &mut TenantTx, source: SourceId) -> Result<Vec<KnownItem>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        KnownItem,
        r#"select 'prompt' as "kind!", upstream_name as "name!", upstream as "definition!", written::text as written from prompts
            where tenant_id = $1 and source_id = $2 and state = 'active' and deleted_at is null
           union all
           select kind, upstream_uri, upstream, written::text from resources
            where tenant_id = $1 and source_id = $2 and state = 'active' and deleted_at is null"#,
        tenant,
        source.uuid()
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Makes a source's prompts what its server offers: what is gone is marked, what the tenant chose
/// stays.
pub async fn sync_prompts(
    tx: &mut TenantTx,
    source: SourceId,
    prompts: &[SyncedPrompt],
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let rows: Vec<Value> = prompts
        .iter()
        .map(|prompt| {
            serde_json::json!({
                "id": PromptId::generate().uuid(), "name": prompt.name, "title": prompt.title, "description": prompt.description,
                "arguments": prompt.arguments, "upstream_name": prompt.upstream_name, "upstream": prompt.upstream,
                "written": prompt.written,
            })
        })
        .collect();
    sqlx::query!(
        "insert into prompts (tenant_id, id, source_id, name, title, description, arguments, upstream_name, upstream, written,
                              created_at, updated_at)
         select $1, r.id, $2, r.name, r.title, r.description, r.arguments, r.upstream_name, r.upstream, r.written::json, $4, $4
         from jsonb_to_recordset($3) as r(id uuid, name text, title text, description text, arguments jsonb, upstream_name text, upstream jsonb,
              written text)
         on conflict (tenant_id, source_id, upstream_name) do update
            set name = excluded.name, title = excluded.title, description = excluded.description, arguments = excluded.arguments,
                upstream = excluded.upstream, written = excluded.written, state = 'active', version = prompts.version + 1,
                updated_at = excluded.updated_at
          where prompts.upstream is distinct from excluded.upstream or prompts.written::text is distinct from excluded.written::text
             or prompts.state <> 'active' or prompts.name <> excluded.name",
        tenant,
        source.uuid(),
        Value::Array(rows),
        now,
    )
    .execute(tx.connection())
    .await?;
    let names: Vec<String> = prompts
        .iter()
        .map(|prompt| prompt.upstream_name.clone())
        .collect();
    sqlx::query!(
        "update prompts set state = 'removed', updated_at = $4
         where tenant_id = $1 and source_id = $2 and state = 'active' and not (upstream_name = any($3))",
        tenant,
        source.uuid(),
        &names,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Makes a source's resources and templates what its server offers.
pub async fn sync_resources(
    tx: &mut TenantTx,
    source: SourceId,
    resources: &[SyncedResource],
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let rows: Vec<Value> = resources
        .iter()
        .map(|resource| {
            serde_json::json!({
                "id": ResourceId::generate().uuid(), "kind": resource.kind, "uri": resource.uri, "name": resource.name,
                "title": resource.title, "description": resource.description, "mime_type": resource.mime_type, "upstream": resource.upstream,
                "written": resource.written,
            })
        })
        .collect();
    sqlx::query!(
        "insert into resources (tenant_id, id, source_id, kind, uri, name, title, description, mime_type, body, upstream_uri, upstream,
                                written, created_at, updated_at)
         select $1, r.id, $2, r.kind, r.uri, r.name, r.title, r.description, r.mime_type, 'upstream', r.uri, r.upstream, r.written::json, $4, $4
         from jsonb_to_recordset($3) as r(id uuid, kind text, uri text, name text, title text, description text, mime_type text, upstream jsonb,
              written text)
         on conflict (tenant_id, source_id, kind, upstream_uri) do update
            set name = excluded.name, title = excluded.title, description = excluded.description, mime_type = excluded.mime_type,
                upstream = excluded.upstream, written = excluded.written, state = 'active', version = resources.version + 1,
                updated_at = excluded.updated_at
          where resources.upstream is distinct from excluded.upstream or resources.written::text is distinct from excluded.written::text
             or resources.state <> 'active'",
        tenant,
        source.uuid(),
        Value::Array(rows),
        now,
    )
    .execute(tx.connection())
    .await?;
    let (kinds, uris): (Vec<String>, Vec<String>) = resources
        .iter()
        .map(|resource| (resource.kind.to_owned(), resource.uri.clone()))
        .unzip();
    sqlx::query!(
        "update resources set state = 'removed', updated_at = $5
         where tenant_id = $1 and source_id = $2 and state = 'active'
           and not exists (select 1 from unnest($3::text[], $4::text[]) as kept(kind, uri)
                            where kept.kind = resources.kind and kept.uri = resources.upstream_uri)",
        tenant,
        source.uuid(),
        &kinds,
        &uris,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The longest own name among a source's tools and prompts, with what it names: `tool` or `prompt`.
pub async fn longest_name(
    tx: &mut TenantTx,
    source: SourceId,
) -> Result<Option<(String, String)>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        r#"select own.what as "what!", own.name as "name!" from
             (select 'tool' as what, operation_key as name from tools where tenant_id = $1 and source_id = $2
              union all
              select 'prompt', upstream_name from prompts where tenant_id = $1 and source_id = $2 and upstream_name is not null) own
            order by length(own.name) desc, own.name limit 1"#,
        tenant,
        source.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.what, row.name)))
}

/// Gives a source's tools and prompts the names of another prefix; the servers that offer them
/// under their old names follow. Two under one name violate the constraint of the server's names.
pub async fn change_prefix(
    tx: &mut TenantTx,
    source: SourceId,
    old_prefix: &str,
    new_prefix: &str,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update tools set name = $3 || operation_key where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        new_prefix,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update prompts set name = $3 || upstream_name where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        new_prefix,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update server_tools u set published_name = $4 || t.operation_key from tools t
          where u.tenant_id = $1 and t.tenant_id = u.tenant_id and t.id = u.tool_id and t.source_id = $2
            and u.published_name = $3 || t.operation_key",
        tenant,
        source.uuid(),
        old_prefix,
        new_prefix,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "update server_prompts u set published_name = $4 || p.upstream_name from prompts p
          where u.tenant_id = $1 and p.tenant_id = u.tenant_id and p.id = u.prompt_id and p.source_id = $2
            and u.published_name = $3 || p.upstream_name",
        tenant,
        source.uuid(),
        old_prefix,
        new_prefix,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
