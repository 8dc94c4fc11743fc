//! Reads a published server as a node serves it under one URL: its tools, their sources, and sealed
//! credentials. Reads use [`crate::Store::node`], so that row-level security holds for any path.

use std::{collections::BTreeMap, str::FromStr};

use portolan_model::{
    id::{ServerId, SourceId, ToolId},
    registry::{SourceKind, SourceSettings},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    StorageError, TenantTx,
    platform::{call_contents::CaptureRow, tenants::Reach},
    registry::{
        credentials::{SealedCredential, WrappedKey},
        prompts, resources,
        written::Written,
    },
};

/// The tenant of the transaction as a node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What every slug of the tenant is: the present one first, then the former ones.
    pub slugs: Vec<String>,
    /// Raised by every change of what the tenant publishes.
    pub registry_revision: i64,
    /// How its servers are reached.
    pub reach: Reach,
}

/// A published server.
#[derive(Debug, Clone)]
pub struct PublishedServer {
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
    /// Enabled tools of living sources, by published name in byte order (MCP-TL-3).
    pub tools: Vec<PublishedTool>,
    /// Enabled prompts, by published name in byte order.
    pub prompts: Vec<prompts::Published>,
    /// Enabled resources and templates, by published URI in byte order.
    pub resources: Vec<resources::Published>,
    /// The sources of all of them.
    pub sources: BTreeMap<SourceId, PublishedSource>,
    /// The calls whose content is kept; `None`: no call.
    pub capture: Option<PublishedCapture>,
}

/// The capture policy of a server, with the data key for it.
#[derive(Debug, Clone)]
pub struct PublishedCapture {
    /// Policy and days.
    pub row: CaptureRow,
    /// The tenant's newest data key.
    pub key: WrappedKey,
}

/// A tool of a published server.
#[derive(Debug, Clone)]
pub struct PublishedTool {
    /// Id.
    pub id: ToolId,
    /// Where its calls go.
    pub source: SourceId,
    /// The name clients call it by.
    pub name: String,
    /// Display name.
    pub title: String,
    /// For models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of structured results.
    pub output_schema: Option<Value>,
    /// Hints, in the shape of MCP.
    pub annotations: Value,
    /// How arguments become a request.
    pub plan: Value,
    /// The definition as an MCP server wrote it, if it is of one.
    pub written: Option<String>,
}

/// A source as far as calls need it.
#[derive(Debug, Clone)]
pub struct PublishedSource {
    /// OpenAPI or by hand.
    pub kind: SourceKind,
    /// Where its API is.
    pub base_url: String,
    /// Bounds.
    pub settings: SourceSettings,
    /// The credential that calls use.
    pub credential: Option<SealedCredential>,
    /// Whose connected accounts calls use instead: `workspace` or `person`.
    pub sharing: Option<String>,
}

/// The tenant of the transaction. `None` if it is suspended or gone.
pub async fn address(tx: &mut TenantTx) -> Result<Option<Address>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        r#"select t.registry_revision, t.http_sse, t.workspace_tokens,
                  array(select s.slug from tenant_slugs s where s.tenant_id = t.id and s.state <> 'tombstone'
                         order by s.state <> 'primary', s.slug) as "slugs!"
             from tenants t where t.id = $1 and t.status = 'active'"#,
        tenant
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Address {
        slugs: row.slugs,
        registry_revision: row.registry_revision,
        reach: Reach {
            http_sse: row.http_sse,
            workspace_tokens: row.workspace_tokens,
        },
    }))
}

/// Finds the published server of that slug; without a slug, the tenant's default server. `None` for
/// drafts, paused, deleted and unknown servers alike.
pub async fn published(
    tx: &mut TenantTx,
    server_slug: Option<&str>,
) -> Result<Option<PublishedServer>, StorageError> {
    let tenant = tx.tenant().uuid();
    let server = sqlx::query!(
        r#"select v.id, v.slug, v.name, v.description, v.instructions, v.capture, v.capture_percent, v.capture_days,
                  k.id as "key_id?", k.wrapped as "wrapped?"
             from servers v join tenants t on t.id = v.tenant_id
             left join lateral (select d.id, d.wrapped from tenant_deks d where d.tenant_id = v.tenant_id and v.capture <> 'metadata'
                                 order by d.created_at desc, d.id desc limit 1) k on true
          where v.tenant_id = $1 and (v.slug = $2 or ($2::text is null and v.id = t.default_server))
            and v.status = 'published' and v.deleted_at is null"#,
        tenant,
        server_slug
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(server) = server else {
        return Ok(None);
    };
    let tools = tools(tx, server.id).await?;
    let prompts = prompts::published(tx, server.id).await?;
    let resources = resources::published(tx, server.id).await?;
    let sources = sources(tx, server.id).await?;
    let capture = server
        .key_id
        .zip(server.wrapped)
        .map(|(id, wrapped)| PublishedCapture {
            row: CaptureRow {
                policy: server.capture,
                percent: server.capture_percent,
                days: server.capture_days,
            },
            key: WrappedKey { id, wrapped },
        });
    Ok(Some(PublishedServer {
        id: ServerId::from_uuid(server.id),
        slug: server.slug,
        name: server.name,
        description: server.description,
        instructions: server.instructions,
        tools,
        prompts,
        resources,
        sources,
        capture,
    }))
}

/// Whether the server of that slug, or without one the default server, was published and is paused.
pub async fn is_paused(tx: &mut TenantTx, server_slug: Option<&str>) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from servers v join tenants t on t.id = v.tenant_id
            where v.tenant_id = $1 and (v.slug = $2 or ($2::text is null and v.id = t.default_server))
              and v.status = 'paused' and v.deleted_at is null) as "paused!""#,
        tx.tenant().uuid(),
        server_slug
    )
    .fetch_one(tx.connection())
    .await?)
}

async fn tools(tx: &mut TenantTx, server: Uuid) -> Result<Vec<PublishedTool>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select t.id, t.source_id, u.published_name, coalesce(t.title_override, t.title) as "title!",
                  coalesce(t.description_override, t.description) as "description!",
                  t.input_schema, t.output_schema, t.annotations, t.plan, t.written::text as written,
                  (t.written->'upstream')::text as definition_of_upstream
             from server_tools u
             join tools t on t.tenant_id = u.tenant_id and t.id = u.tool_id
             join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
            where u.tenant_id = $1 and u.server_id = $2 and t.enabled and t.state = 'active' and s.deleted_at is null
            order by u.published_name collate "C""#,
        tenant,
        server
    )
    .fetch_all(tx.connection())
    .await?;
    let tools = rows.into_iter().map(|row| {
        let mut written = Written::read(row.written.as_deref());
        PublishedTool {
            id: ToolId::from_uuid(row.id),
            source: SourceId::from_uuid(row.source_id),
            name: row.published_name,
            title: row.title,
            description: row.description,
            input_schema: written.object("inputSchema", row.input_schema),
            output_schema: row
                .output_schema
                .map(|schema| written.object("outputSchema", schema)),
            annotations: written.object("annotations", row.annotations),
            plan: written.ours("plan", row.plan),
            written: row.definition_of_upstream,
        }
    });
    Ok(tools.collect())
}

async fn sources(
    tx: &mut TenantTx,
    server: Uuid,
) -> Result<BTreeMap<SourceId, PublishedSource>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select s.id, s.kind, s.base_url, s.settings, i.sharing as "sharing?",
                  c.kind as "credential_kind?", c.sealed as "sealed?", c.version as "version?", k.id as "key_id?", k.wrapped as "wrapped?"
             from sources s
             left join source_credentials c on c.tenant_id = s.tenant_id and c.source_id = s.id
             left join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
             left join upstream_sign_ins i on i.tenant_id = s.tenant_id and i.source_id = s.id
            where s.tenant_id = $1 and s.deleted_at is null
              and (exists (select 1 from server_tools u join tools t on t.tenant_id = u.tenant_id and t.id = u.tool_id
                            where u.tenant_id = s.tenant_id and u.server_id = $2 and t.source_id = s.id)
                or exists (select 1 from server_prompts u join prompts p on p.tenant_id = u.tenant_id and p.id = u.prompt_id
                            where u.tenant_id = s.tenant_id and u.server_id = $2 and p.source_id = s.id)
                or exists (select 1 from server_resources u join resources r on r.tenant_id = u.tenant_id and r.id = u.resource_id
                            where u.tenant_id = s.tenant_id and u.server_id = $2 and coalesce(r.source_id, r.http_source_id) = s.id))"#,
        tenant,
        server
    )
    .fetch_all(tx.connection())
    .await?;
    let sources = rows.into_iter().map(|row| {
        let wrong = |column| StorageError::Inconsistent {
            table: "sources",
            column,
        };
        let credential = match (
            row.credential_kind,
            row.sealed,
            row.version,
            row.key_id,
            row.wrapped,
        ) {
            (Some(kind), Some(sealed), Some(version), Some(id), Some(wrapped)) => {
                Some(SealedCredential {
                    kind,
                    sealed,
                    key: WrappedKey { id, wrapped },
                    version,
                })
            }
            _ => None,
        };
        let source = PublishedSource {
            kind: SourceKind::from_str(&row.kind).map_err(|_| wrong("kind"))?,
            base_url: row.base_url,
            settings: serde_json::from_value(row.settings).map_err(|_| wrong("settings"))?,
            credential,
            sharing: row.sharing,
        };
        Ok((SourceId::from_uuid(row.id), source))
    });
    sources.collect()
}
