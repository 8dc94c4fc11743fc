//! The tools, prompts and resources that servers publish: chosen, renamed, enabled and disabled in
//! one way. [`crate::registry::trash`] deletes and restores them.

use portolan_model::{
    Timestamp,
    id::{Id, Kind, PromptKind, ResourceKind, ServerId, ToolKind},
};
use uuid::Uuid;

use crate::{StorageError, TenantTx};

/// A kind of published item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A tool: a server publishes it under a name.
    Tool,
    /// A prompt: a server publishes it under a name.
    Prompt,
    /// A resource or template: a server publishes it under a URI.
    Resource,
}

/// A kind of id that names a published item.
pub trait PublishedItem: Kind {
    /// The kind.
    const ITEM: ItemKind;
    /// The constraint that two items of one server under one name or URI violate.
    const CLASH: &'static str;
}

impl PublishedItem for ToolKind {
    const ITEM: ItemKind = ItemKind::Tool;
    const CLASH: &'static str = "server_tools_name";
}
impl PublishedItem for PromptKind {
    const ITEM: ItemKind = ItemKind::Prompt;
    const CLASH: &'static str = "server_prompts_name";
}
impl PublishedItem for ResourceKind {
    const ITEM: ItemKind = ItemKind::Resource;
    const CLASH: &'static str = "server_resources_uri";
}

/// The statement of an item's kind: `$statement!` with the kind's table, the table of the servers'
/// choices, the column of its id there, and the column of its published name there.
macro_rules! of_kind {
    ($kind:ty, $statement:ident) => {
        match <$kind>::ITEM {
            ItemKind::Tool => $statement!("tools", "server_tools", "tool_id", "published_name"),
            ItemKind::Prompt => {
                $statement!("prompts", "server_prompts", "prompt_id", "published_name")
            }
            ItemKind::Resource => {
                $statement!(
                    "resources",
                    "server_resources",
                    "resource_id",
                    "published_uri"
                )
            }
        }
    };
}

/// Replaces a server's choice of items: each with the name or URI under which it is published. Two
/// under one violate [`PublishedItem::CLASH`]; the composite foreign key refuses a foreign or
/// unknown item.
pub async fn choose<K: PublishedItem>(
    tx: &mut TenantTx,
    server: ServerId,
    items: &[(Id<K>, String)],
    now: Timestamp,
) -> Result<(), StorageError> {
    let (tenant, server) = (tx.tenant().uuid(), server.uuid());
    let ids: Vec<Uuid> = items.iter().map(|(id, _)| id.uuid()).collect();
    let names: Vec<String> = items.iter().map(|(_, name)| name.clone()).collect();
    macro_rules! clear {
        ($table:literal, $choices:literal, $id:literal, $name:literal) => {
            sqlx::query!(
                "delete from " + $choices + " where tenant_id = $1 and server_id = $2",
                tenant,
                server
            )
        };
    }
    macro_rules! insert {
        ($table:literal, $choices:literal, $id:literal, $name:literal) => {
            sqlx::query!(
                "insert into " + $choices + " (tenant_id, server_id, " + $id + ", " + $name + ")
                 select $1, $2, item, name from unnest($3::uuid[], $4::text[]) as chosen(item, name)",
                tenant,
                server,
                &ids,
                &names
            )
        };
    }
    of_kind!(K, clear).execute(tx.connection()).await?;
    of_kind!(K, insert).execute(tx.connection()).await?;
    sqlx::query!(
        "update servers set updated_at = $3 where tenant_id = $1 and id = $2",
        tenant,
        server,
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Lets the servers that publish an item under its old name or URI follow a change; names that a
/// server chose itself stay. A clash violates [`PublishedItem::CLASH`].
pub async fn rename<K: PublishedItem>(
    tx: &mut TenantTx,
    id: Id<K>,
    old: &str,
    new: &str,
) -> Result<u64, StorageError> {
    let (tenant, id) = (tx.tenant().uuid(), id.uuid());
    macro_rules! follow {
        ($table:literal, $choices:literal, $id:literal, $name:literal) => {
            sqlx::query!(
                "update "
                    + $choices
                    + " set "
                    + $name
                    + " = $4
                  where tenant_id = $1 and "
                    + $id
                    + " = $2 and "
                    + $name
                    + " = $3",
                tenant,
                id,
                old,
                new
            )
        };
    }
    let done = of_kind!(K, follow).execute(tx.connection()).await?;
    Ok(done.rows_affected())
}

/// Enables or disables items. Returns the ids that changed, so that a client can undo the change.
/// The version of a resource rises, which notifies its subscribers.
pub async fn set_enabled<K: PublishedItem>(
    tx: &mut TenantTx,
    ids: &[Id<K>],
    enabled: bool,
    now: Timestamp,
) -> Result<Vec<Id<K>>, StorageError> {
    let tenant = tx.tenant().uuid();
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    macro_rules! switch {
        ($table:literal, $also:literal, $guard:literal) => {
            sqlx::query_scalar!(
                "update "
                    + $table
                    + " set enabled = $3, updated_at = $4"
                    + $also
                    + " where tenant_id = $1 and id = any($2) and enabled <> $3"
                    + $guard
                    + " returning id",
                tenant,
                &ids,
                enabled,
                now
            )
            .fetch_all(tx.connection())
            .await?
        };
    }
    let changed = match K::ITEM {
        ItemKind::Tool => switch!("tools", "", ""),
        ItemKind::Prompt => switch!("prompts", "", " and deleted_at is null"),
        ItemKind::Resource => switch!(
            "resources",
            ", version = version + 1",
            " and deleted_at is null"
        ),
    };
    Ok(changed.into_iter().map(Id::from_uuid).collect())
}
