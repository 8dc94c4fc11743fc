//! Hosted MCP servers: what a tenant publishes under one URL.

use portolan_model::{
    Timestamp,
    id::{ServerId, ToolId},
    registry::{ServerStatus, ToolState},
};
use serde_json::Value;

use crate::{StorageError, TenantTx};

/// A server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Id.
    pub id: ServerId,
    /// Its part of the URL.
    pub slug: String,
    /// What people call it.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// For models: MCP `instructions`.
    pub instructions: Option<String>,
    /// Does it answer?
    pub status: ServerStatus,
    /// The tenant's own URL leads to it, too.
    pub is_default: bool,
    /// Tools that are enabled, active, and chosen.
    pub tool_count: i64,
    /// Name of the file that owns it (CONF-6); `None` if none does.
    pub managed_by: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was first published.
    pub published_at: Option<Timestamp>,
}

/// A server to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewServer<'a> {
    /// Id.
    pub id: ServerId,
    /// Its part of the URL: unique in the tenant, deleted servers included.
    pub slug: &'a str,
    /// Name.
    pub name: &'a str,
    /// For people.
    pub description: Option<&'a str>,
    /// For models.
    pub instructions: Option<&'a str>,
}

/// Makes a draft. A slug that is taken violates `servers_tenant_id_slug_key`.
pub async fn insert(
    tx: &mut TenantTx,
    new: &NewServer<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into servers (tenant_id, id, slug, name, description, instructions, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $7)",
        tenant,
        new.id.uuid(),
        new.slug,
        new.name,
        new.description,
        new.instructions,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The source of a tool is looked up by its key. A third table in the join lets a planner whose
/// statistics are older than an import read every tool for every source.
async fn select(tx: &mut TenantTx, id: Option<ServerId>) -> Result<Vec<Server>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select v.id, v.slug, v.name, v.description, v.instructions, v.status, v.created_at, v.updated_at, v.published_at,
                  v.managed_by,
                  (v.id = o.default_server) is true as "is_default!",
                  (select count(*) from server_tools u join tools t on t.tenant_id = u.tenant_id and t.id = u.tool_id
                    where u.tenant_id = v.tenant_id and u.server_id = v.id and t.enabled and t.state = 'active'
                      and (select s.deleted_at from sources s where s.tenant_id = t.tenant_id and s.id = t.source_id) is null)
                    as "tool_count!"
           from servers v join tenants o on o.id = v.tenant_id
           where v.tenant_id = $1 and v.deleted_at is null and ($2::uuid is null or v.id = $2) order by lower(v.name), v.id"#,
        tenant,
        id.map(ServerId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Server {
                id: ServerId::from_uuid(row.id),
                slug: row.slug,
                name: row.name,
                description: row.description,
                instructions: row.instructions,
                status: row.status.parse().map_err(|_| StorageError::Inconsistent {
                    table: "servers",
                    column: "status",
                })?,
                is_default: row.is_default,
                tool_count: row.tool_count,
                managed_by: row.managed_by,
                created_at: row.created_at,
                updated_at: row.updated_at,
                published_at: row.published_at,
            })
        })
        .collect()
}

/// All servers, by name.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<Server>, StorageError> {
    select(tx, None).await
}

/// One server.
pub async fn find(tx: &mut TenantTx, id: ServerId) -> Result<Option<Server>, StorageError> {
    Ok(select(tx, Some(id)).await?.pop())
}

/// The fields that a person can change. `description` and `instructions`: `Some(None)` empties.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes<'a> {
    /// New name.
    pub name: Option<&'a str>,
    /// New slug.
    pub slug: Option<&'a str>,
    /// New description.
    pub description: Option<Option<&'a str>>,
    /// New instructions.
    pub instructions: Option<Option<&'a str>>,
}

/// Changes what is given.
pub async fn update(
    tx: &mut TenantTx,
    id: ServerId,
    changes: &Changes<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update servers set name = coalesce($3, name), slug = coalesce($4, slug),
                            description = case when $5 then $6 else description end,
                            instructions = case when $7 then $8 else instructions end, updated_at = $9
         where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        id.uuid(),
        changes.name,
        changes.slug,
        changes.description.is_some(),
        changes.description.flatten(),
        changes.instructions.is_some(),
        changes.instructions.flatten(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Makes a server the default one if the tenant has none and never published any. Call it before
/// the server is published. False if it does not become the default. If two are published at once,
/// one becomes the default.
pub async fn make_default_if_first(tx: &mut TenantTx, id: ServerId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tenants set default_server = $2 where id = $1 and default_server is null
            and exists (select 1 from servers v where v.tenant_id = $1 and v.id = $2 and v.deleted_at is null)
            and not exists (select 1 from servers v where v.tenant_id = $1 and v.published_at is not null)",
        tenant,
        id.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Chooses the default server of the tenant, or none. False if there is no such server.
pub async fn set_default(tx: &mut TenantTx, id: Option<ServerId>) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tenants set default_server = $2 where id = $1
            and ($2::uuid is null or exists (select 1 from servers v where v.tenant_id = $1 and v.id = $2 and v.deleted_at is null))",
        tenant,
        id.map(ServerId::uuid),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Publishes or pauses.
pub async fn set_status(
    tx: &mut TenantTx,
    id: ServerId,
    status: ServerStatus,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update servers set status = $3, updated_at = $4,
                            published_at = case when $3 = 'published' then coalesce(published_at, $4) else published_at end
         where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        id.uuid(),
        status.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A tool as a server publishes it.
#[derive(Debug, Clone)]
pub struct PublishedTool {
    /// The tool.
    pub tool_id: ToolId,
    /// The name clients call.
    pub published_name: String,
    /// For people.
    pub title: String,
    /// METHOD and path template.
    pub operation_key: String,
    /// The source's name.
    pub source_name: String,
    /// Can it be published?
    pub enabled: bool,
    /// Is it still in its document?
    pub state: ToolState,
    /// JSON Schema of the arguments, for warnings.
    pub input_schema: Value,
}

/// The tools of a server, by published name in byte order (MCP-TL-3).
pub async fn tools(tx: &mut TenantTx, id: ServerId) -> Result<Vec<PublishedTool>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select u.tool_id, u.published_name, coalesce(t.title_override, t.title) as "title!", t.operation_key, s.name as source_name,
                  t.enabled, t.state, t.input_schema
           from server_tools u join tools t on t.tenant_id = u.tenant_id and t.id = u.tool_id
             join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
           where u.tenant_id = $1 and u.server_id = $2 and s.deleted_at is null order by u.published_name collate "C""#,
        tenant,
        id.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(PublishedTool {
                tool_id: ToolId::from_uuid(row.tool_id),
                published_name: row.published_name,
                title: row.title,
                operation_key: row.operation_key,
                source_name: row.source_name,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| StorageError::Inconsistent {
                    table: "tools",
                    column: "state",
                })?,
                input_schema: row.input_schema,
            })
        })
        .collect()
}
