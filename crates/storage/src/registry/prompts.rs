//! Prompts: written in the console, or found at an upstream MCP server.

use portolan_model::{
    Timestamp,
    id::{PromptId, ServerId, SourceId},
    prompt::{Argument, Message},
    registry::ToolState,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{StorageError, TenantTx, registry::written};

/// A prompt with everything about it.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Id.
    pub id: PromptId,
    /// The upstream it was found at; none if it was written here.
    pub source_id: Option<SourceId>,
    /// The upstream's name in the workspace.
    pub source_name: Option<String>,
    /// The name that is shown and, unless a server says otherwise, published.
    pub name: String,
    /// For people.
    pub title: String,
    /// Its purpose.
    pub description: String,
    /// Declared arguments.
    pub arguments: Vec<Argument>,
    /// Messages; empty for those of an upstream.
    pub messages: Vec<Message>,
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

/// A prompt as a person writes it.
#[derive(Debug, Clone)]
pub struct Definition<'a> {
    /// Unique among the prompts that were written here: a taken one violates [`NAME_TAKEN`].
    pub name: &'a str,
    /// For people.
    pub title: &'a str,
    /// Its purpose.
    pub description: &'a str,
    /// Declared arguments.
    pub arguments: &'a [Argument],
    /// Messages.
    pub messages: &'a [Message],
    /// Can it be published?
    pub enabled: bool,
}

/// The constraint that two prompts of one name violate.
pub const NAME_TAKEN: &str = "prompts_own_name";

/// Adds a prompt that was written here.
pub async fn insert(
    tx: &mut TenantTx,
    id: PromptId,
    new: &Definition<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into prompts (tenant_id, id, name, title, description, arguments, messages, enabled, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        tenant,
        id.uuid(),
        new.name,
        new.title,
        new.description,
        json!(new.arguments),
        json!(new.messages),
        new.enabled,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Gives a prompt that was written here another definition.
pub async fn replace(
    tx: &mut TenantTx,
    id: PromptId,
    new: &Definition<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update prompts set name = $3, title = $4, description = $5, arguments = $6, messages = $7, enabled = $8,
                            version = version + 1, updated_at = $9
         where tenant_id = $1 and id = $2 and source_id is null and deleted_at is null",
        tenant,
        id.uuid(),
        new.name,
        new.title,
        new.description,
        json!(new.arguments),
        json!(new.messages),
        new.enabled,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Whether the messages of prompts are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    Read,
    Skipped,
}

async fn select(
    tx: &mut TenantTx,
    id: Option<PromptId>,
    messages: Messages,
) -> Result<Vec<Prompt>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select p.id, p.source_id, s.name as "source_name?", p.name, p.title, p.description, p.arguments, p.enabled, p.state, p.updated_at,
                  p.managed_by,
                  case when $3 then p.messages else '[]'::jsonb end as "messages!",
                  array(select v.slug from server_prompts u join servers v on v.tenant_id = u.tenant_id and v.id = u.server_id
                         where u.tenant_id = p.tenant_id and u.prompt_id = p.id and v.deleted_at is null order by v.slug) as "used_by!"
           from prompts p left join sources s on s.tenant_id = p.tenant_id and s.id = p.source_id
           where p.tenant_id = $1 and p.deleted_at is null and s.deleted_at is null and ($2::uuid is null or p.id = $2)
           order by p.name, p.id"#,
        tenant,
        id.map(PromptId::uuid),
        messages == Messages::Read,
    )
    .fetch_all(tx.connection())
    .await?;
    let wrong = |column| {
        move |_| StorageError::Inconsistent {
            table: "prompts",
            column,
        }
    };
    rows.into_iter()
        .map(|row| {
            Ok(Prompt {
                id: PromptId::from_uuid(row.id),
                source_id: row.source_id.map(SourceId::from_uuid),
                source_name: row.source_name,
                name: row.name,
                title: row.title,
                description: row.description,
                arguments: serde_json::from_value(row.arguments).map_err(wrong("arguments"))?,
                messages: serde_json::from_value(row.messages).map_err(wrong("messages"))?,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| StorageError::Inconsistent {
                    table: "prompts",
                    column: "state",
                })?,
                used_by: row.used_by,
                managed_by: row.managed_by,
                updated_at: row.updated_at,
            })
        })
        .collect()
}

/// All prompts, by name, without their messages.
pub async fn list(tx: &mut TenantTx) -> Result<Vec<Prompt>, StorageError> {
    select(tx, None, Messages::Skipped).await
}

/// All prompts, by name, with their messages.
pub async fn list_whole(tx: &mut TenantTx) -> Result<Vec<Prompt>, StorageError> {
    select(tx, None, Messages::Read).await
}

/// One prompt, with its messages.
pub async fn find(tx: &mut TenantTx, id: PromptId) -> Result<Option<Prompt>, StorageError> {
    Ok(select(tx, Some(id), Messages::Read).await?.pop())
}

/// A prompt as a server publishes it.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The prompt.
    pub id: PromptId,
    /// The name that clients know.
    pub published_name: String,
    /// Its own name.
    pub name: String,
    /// For people.
    pub title: String,
    /// The upstream's name in the workspace, if it is of one.
    pub source_name: Option<String>,
    /// Can it be published?
    pub enabled: bool,
    /// Does the upstream still have it?
    pub state: ToolState,
}

/// The prompts of a server, by published name in byte order.
pub async fn of_server(tx: &mut TenantTx, server: ServerId) -> Result<Vec<Offered>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select p.id, u.published_name, p.name, p.title, s.name as "source_name?", p.enabled, p.state
           from server_prompts u join prompts p on p.tenant_id = u.tenant_id and p.id = u.prompt_id
             left join sources s on s.tenant_id = p.tenant_id and s.id = p.source_id
           where u.tenant_id = $1 and u.server_id = $2 and p.deleted_at is null and s.deleted_at is null
           order by u.published_name collate "C""#,
        tenant,
        server.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Offered {
                id: PromptId::from_uuid(row.id),
                published_name: row.published_name,
                name: row.name,
                title: row.title,
                source_name: row.source_name,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| StorageError::Inconsistent {
                    table: "prompts",
                    column: "state",
                })?,
            })
        })
        .collect()
}

/// A prompt of a published server, as a node needs it.
#[derive(Debug, Clone)]
pub struct Published {
    /// Id.
    pub id: PromptId,
    /// The upstream that answers; none if it was written here.
    pub source: Option<SourceId>,
    /// The upstream's own name for it.
    pub upstream_name: Option<String>,
    /// The definition of the upstream, the text as it came.
    pub upstream: Option<String>,
    /// The name that clients know.
    pub name: String,
    /// Display name; may be empty.
    pub title: String,
    /// Its purpose; may be empty.
    pub description: String,
    /// Declared arguments.
    pub arguments: Vec<Argument>,
    /// Raised by every change.
    pub version: i64,
    /// The messages, if they are small; see [`messages`].
    pub messages: Option<Value>,
}

/// Bytes of messages or contents that a node keeps with its catalogue; what is larger is read when
/// it is asked for.
pub const KEPT_BYTES: i32 = 16 * 1024;

/// Reads the prompts of a published server, by published name in byte order. A transaction of
/// [`crate::Store::node`] can call it too.
pub(crate) async fn published(
    tx: &mut TenantTx,
    server: Uuid,
) -> Result<Vec<Published>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select p.id, p.source_id, p.upstream_name, p.upstream, p.written::text as written, u.published_name, p.title, p.description, p.arguments, p.version,
                  case when octet_length(p.messages::text) <= $3 then p.messages end as messages
             from server_prompts u
             join prompts p on p.tenant_id = u.tenant_id and p.id = u.prompt_id
             left join sources s on s.tenant_id = p.tenant_id and s.id = p.source_id
            where u.tenant_id = $1 and u.server_id = $2 and p.enabled and p.state = 'active' and p.deleted_at is null
              and s.deleted_at is null
            order by u.published_name collate "C""#,
        tenant,
        server,
        KEPT_BYTES,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Published {
                id: PromptId::from_uuid(row.id),
                source: row.source_id.map(SourceId::from_uuid),
                upstream_name: row.upstream_name,
                upstream: written::definition(row.written, row.upstream),
                name: row.published_name,
                title: row.title,
                description: row.description,
                arguments: serde_json::from_value(row.arguments).map_err(|_| {
                    StorageError::Inconsistent {
                        table: "prompts",
                        column: "arguments",
                    }
                })?,
                version: row.version,
                messages: row.messages,
            })
        })
        .collect()
}

/// The messages of a prompt with its version, for a node that has not kept them.
pub async fn messages(
    tx: &mut TenantTx,
    id: PromptId,
) -> Result<Option<(i64, Value)>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        "select version, messages from prompts where tenant_id = $1 and id = $2",
        tenant,
        id.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.version, row.messages)))
}
