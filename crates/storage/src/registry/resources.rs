//! Resources and templates of resources: written in the console, or found at an upstream MCP
//! server.

use portolan_model::{
    Timestamp,
    id::{ResourceId, ServerId, SourceId},
    prompt::Argument,
    registry::{ResourceBody, ResourceShape, ToolState},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    StorageError, TenantTx,
    registry::{prompts::KEPT_BYTES, written},
};

/// A resource or template with everything about it but its bytes.
#[derive(Debug, Clone)]
pub struct RegistryResource {
    /// Id.
    pub id: ResourceId,
    /// The upstream it was found at; none if it was written here.
    pub source_id: Option<SourceId>,
    /// The upstream's name in the workspace.
    pub source_name: Option<String>,
    /// One, or many by a template.
    pub shape: ResourceShape,
    /// URI or template that is shown and, unless a server says otherwise, published.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// MCP annotations.
    pub annotations: Value,
    /// Declared variables of a template.
    pub variables: Vec<Argument>,
    /// Where what it holds comes from.
    pub body: ResourceBody,
    /// Bytes of a text or file.
    pub size: Option<i32>,
    /// The source that answers reads.
    pub http_source_id: Option<SourceId>,
    /// Path below that source's base URL.
    pub http_path: Option<String>,
    /// Can it be published?
    pub enabled: bool,
    /// Does the upstream still have it?
    pub state: ToolState,
    /// Slugs of the servers that publish it.
    pub used_by: Vec<String>,
    /// Name of the file that owns it (CONF-6); `None` if none does.
    pub managed_by: Option<String>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A resource as a person defines it.
#[derive(Debug, Clone)]
pub struct Definition<'a> {
    /// One, or many by a template.
    pub shape: ResourceShape,
    /// Unique among the resources that were written here: a taken one violates [`URI_TAKEN`].
    pub uri: &'a str,
    /// Programmatic name.
    pub name: &'a str,
    /// For people.
    pub title: &'a str,
    /// Its description.
    pub description: &'a str,
    /// Media type.
    pub mime_type: Option<&'a str>,
    /// MCP annotations.
    pub annotations: &'a Value,
    /// Declared variables of a template.
    pub variables: &'a [Argument],
    /// Its content.
    pub holds: Holds<'a>,
    /// Can it be published?
    pub enabled: bool,
}

/// The content of a resource.
#[derive(Debug, Clone, Copy)]
pub enum Holds<'a> {
    /// A text.
    Text(&'a str),
    /// A file.
    File(&'a [u8]),
    /// Whatever file it held before.
    SameFile,
    /// The response of an HTTP source.
    Http {
        /// The source.
        source: SourceId,
        /// Path below its base URL.
        path: &'a str,
        /// `http_tools::RequestPlan`.
        plan: &'a Value,
    },
}

impl Holds<'_> {
    const fn body(&self) -> ResourceBody {
        match self {
            Self::Text(_) => ResourceBody::Text,
            Self::File(_) | Self::SameFile => ResourceBody::File,
            Self::Http { .. } => ResourceBody::Http,
        }
    }

    const fn content(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::File(bytes) => Some(bytes),
            Self::SameFile | Self::Http { .. } => None,
        }
    }
}

/// The constraint that two resources of one URI violate.
pub const URI_TAKEN: &str = "resources_own_uri";

/// Adds a resource that was written here. An unknown HTTP source is refused by the composite
/// foreign key.
pub async fn insert(
    tx: &mut TenantTx,
    id: ResourceId,
    new: &Definition<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let (source, path, plan) = match new.holds {
        Holds::Http { source, path, plan } => (Some(source.uuid()), Some(path), Some(plan)),
        _ => (None, None, None),
    };
    sqlx::query!(
        "insert into resources (tenant_id, id, kind, uri, name, title, description, mime_type, annotations, variables, body, content,
                                http_source_id, http_path, plan, enabled, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17)",
        tenant,
        id.uuid(),
        new.shape.as_str(),
        new.uri,
        new.name,
        new.title,
        new.description,
        new.mime_type,
        new.annotations,
        json!(new.variables),
        new.holds.body().as_str(),
        new.holds.content(),
        source,
        path,
        plan,
        new.enabled,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Replaces the definition of a resource that was written here. [`Holds::SameFile`] of one that
/// holds no file violates a check.
pub async fn replace(
    tx: &mut TenantTx,
    id: ResourceId,
    new: &Definition<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let (source, path, plan) = match new.holds {
        Holds::Http { source, path, plan } => (Some(source.uuid()), Some(path), Some(plan)),
        _ => (None, None, None),
    };
    let done = sqlx::query!(
        "update resources set kind = $3, uri = $4, name = $5, title = $6, description = $7, mime_type = $8, annotations = $9,
                              variables = $10, body = $11,
                              content = case when $18 then (case when body = 'file' then content end) else $12 end,
                              http_source_id = $13, http_path = $14, plan = $15, enabled = $16, version = version + 1, updated_at = $17
         where tenant_id = $1 and id = $2 and source_id is null and deleted_at is null",
        tenant,
        id.uuid(),
        new.shape.as_str(),
        new.uri,
        new.name,
        new.title,
        new.description,
        new.mime_type,
        new.annotations,
        json!(new.variables),
        new.holds.body().as_str(),
        new.holds.content(),
        source,
        path,
        plan,
        new.enabled,
        now,
        matches!(new.holds, Holds::SameFile),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Raises the version of a resource that an upstream reports as changed, so that subscribers on
/// every node are notified (MCP-RE-7).
pub async fn touch(
    tx: &mut TenantTx,
    source: SourceId,
    upstream_uri: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update resources set version = version + 1, updated_at = $4
         where tenant_id = $1 and source_id = $2 and upstream_uri = $3",
        tenant,
        source.uuid(),
        upstream_uri,
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn select(
    tx: &mut TenantTx,
    id: Option<ResourceId>,
) -> Result<Vec<RegistryResource>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select r.id, r.source_id, s.name as "source_name?", r.kind, r.uri, r.name, r.title, r.description, r.mime_type, r.annotations,
                  r.variables, r.body, octet_length(r.content) as size, r.http_source_id, r.http_path, r.enabled, r.state, r.updated_at,
                  r.managed_by,
                  array(select v.slug from server_resources u join servers v on v.tenant_id = u.tenant_id and v.id = u.server_id
                         where u.tenant_id = r.tenant_id and u.resource_id = r.id and v.deleted_at is null order by v.slug) as "used_by!"
           from resources r left join sources s on s.tenant_id = r.tenant_id and s.id = coalesce(r.source_id, r.http_source_id)
           where r.tenant_id = $1 and r.deleted_at is null and (r.source_id is null or s.deleted_at is null)
             and ($2::uuid is null or r.id = $2)
           order by r.name, r.id"#,
        tenant,
        id.map(ResourceId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    let wrong = |column| StorageError::Inconsistent {
        table: "resources",
        column,
    };
    rows.into_iter()
        .map(|row| {
            Ok(RegistryResource {
                id: ResourceId::from_uuid(row.id),
                source_id: row.source_id.map(SourceId::from_uuid),
                source_name: row.source_name,
                shape: row.kind.parse().map_err(|_| wrong("kind"))?,
                uri: row.uri,
                name: row.name,
                title: row.title,
                description: row.description,
                mime_type: row.mime_type,
                annotations: row.annotations,
                variables: serde_json::from_value(row.variables).map_err(|_| wrong("variables"))?,
                body: row.body.parse().map_err(|_| wrong("body"))?,
                size: row.size,
                http_source_id: row.http_source_id.map(SourceId::from_uuid),
                http_path: row.http_path,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| wrong("state"))?,
                used_by: row.used_by,
                managed_by: row.managed_by,
                updated_at: row.updated_at,
            })
        })
        .collect()
}

/// All resources and templates, by name.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<RegistryResource>, StorageError> {
    select(tx, None).await
}

/// One resource or template.
pub async fn find(
    tx: &mut TenantTx,
    id: ResourceId,
) -> Result<Option<RegistryResource>, StorageError> {
    Ok(select(tx, Some(id)).await?.pop())
}

/// The bytes of a text or file with its version, for the console and for a node that has not kept
/// them.
pub async fn content(
    tx: &mut TenantTx,
    id: ResourceId,
) -> Result<Option<(i64, Vec<u8>)>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        r#"select version, content as "content!" from resources where tenant_id = $1 and id = $2 and content is not null"#,
        tenant,
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.version, row.content)))
}

/// Bytes of all texts and files.
pub async fn bytes(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    let bytes = sqlx::query_scalar!(
        r#"select coalesce(sum(octet_length(content)), 0) as "bytes!" from resources where tenant_id = $1"#,
        tenant
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(bytes)
}

/// A resource as a server publishes it.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The resource.
    pub id: ResourceId,
    /// The URI or template that clients know.
    pub published_uri: String,
    /// One, or many by a template.
    pub shape: ResourceShape,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: String,
    /// The name of the upstream or HTTP source, if there is one.
    pub source_name: Option<String>,
    /// Can it be published?
    pub enabled: bool,
    /// Does the upstream still have it?
    pub state: ToolState,
}

/// The resources of a server, by published URI in byte order.
pub async fn of_server(tx: &mut TenantTx, server: ServerId) -> Result<Vec<Offered>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select r.id, u.published_uri, r.kind, r.name, r.title, s.name as "source_name?", r.enabled, r.state
           from server_resources u join resources r on r.tenant_id = u.tenant_id and r.id = u.resource_id
             left join sources s on s.tenant_id = r.tenant_id and s.id = coalesce(r.source_id, r.http_source_id)
           where u.tenant_id = $1 and u.server_id = $2 and r.deleted_at is null and s.deleted_at is null
           order by u.published_uri collate "C""#,
        tenant,
        server.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    let wrong = |column| StorageError::Inconsistent {
        table: "resources",
        column,
    };
    rows.into_iter()
        .map(|row| {
            Ok(Offered {
                id: ResourceId::from_uuid(row.id),
                published_uri: row.published_uri,
                shape: row.kind.parse().map_err(|_| wrong("kind"))?,
                name: row.name,
                title: row.title,
                source_name: row.source_name,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| wrong("state"))?,
            })
        })
        .collect()
}

/// A resource of a published server, as a node needs it.
#[derive(Debug, Clone)]
pub struct Published {
    /// Id.
    pub id: ResourceId,
    /// The upstream that answers, or the HTTP source; none if what it holds is here.
    pub source: Option<SourceId>,
    /// The upstream's own URI or template for it.
    pub upstream_uri: Option<String>,
    /// The definition of the upstream, the text as it came.
    pub upstream: Option<String>,
    /// One, or many by a template.
    pub shape: ResourceShape,
    /// The URI or template that clients know.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// Display name; may be empty.
    pub title: String,
    /// Its description; may be empty.
    pub description: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// MCP annotations.
    pub annotations: Value,
    /// Declared variables of a template.
    pub variables: Vec<Argument>,
    /// Where what it holds comes from.
    pub body: ResourceBody,
    /// Bytes of a text or file.
    pub size: Option<i32>,
    /// The text or file, if it is small; see [`content`].
    pub content: Option<Vec<u8>>,
    /// How variables become a request.
    pub plan: Option<Value>,
    /// Raised by every change.
    pub version: i64,
}

/// Reads the resources of a published server, by published URI in byte order. A transaction of
/// [`crate::Store::node`] can call it too.
pub(crate) async fn published(
    tx: &mut TenantTx,
    server: Uuid,
) -> Result<Vec<Published>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select r.id, coalesce(r.source_id, r.http_source_id) as source_id, r.upstream_uri, r.upstream, r.written::text as written, r.kind, u.published_uri, r.name,
                  r.title, r.description, r.mime_type, r.annotations, r.variables, r.body, octet_length(r.content) as size,
                  case when octet_length(r.content) <= $3 then r.content end as content, r.plan, r.version
             from server_resources u
             join resources r on r.tenant_id = u.tenant_id and r.id = u.resource_id
             left join sources s on s.tenant_id = r.tenant_id and s.id = coalesce(r.source_id, r.http_source_id)
            where u.tenant_id = $1 and u.server_id = $2 and r.enabled and r.state = 'active' and r.deleted_at is null
              and s.deleted_at is null
            order by u.published_uri collate "C""#,
        tenant,
        server,
        KEPT_BYTES,
    )
    .fetch_all(tx.connection())
    .await?;
    let wrong = |column| StorageError::Inconsistent {
        table: "resources",
        column,
    };
    rows.into_iter()
        .map(|row| {
            Ok(Published {
                id: ResourceId::from_uuid(row.id),
                source: row.source_id.map(SourceId::from_uuid),
                upstream_uri: row.upstream_uri,
                upstream: written::definition(row.written, row.upstream),
                shape: row.kind.parse().map_err(|_| wrong("kind"))?,
                uri: row.published_uri,
                name: row.name,
                title: row.title,
                description: row.description,
                mime_type: row.mime_type,
                annotations: row.annotations,
                variables: serde_json::from_value(row.variables).map_err(|_| wrong("variables"))?,
                body: row.body.parse().map_err(|_| wrong("body"))?,
                size: row.size,
                content: row.content,
                plan: row.plan,
                version: row.version,
            })
        })
        .collect()
}
