//! Deleted sources, servers, prompts and resources: kept for a time, listed, and brought back.
//!
//! [`delete`] marks a row. [`restore`] takes the mark away while [`KEPT`] lasts;
//! [`crate::expiry`] removes the row afterwards. The trash of one workspace is bounded, so that
//! deleting and making anew cannot fill the database: beyond [`MOST`] of a kind the oldest go at
//! once.

use portolan_model::{
    Timestamp,
    id::{Id, Kind, PromptKind, ResourceKind, ServerKind, SourceKind},
};
use time::Duration;
use uuid::Uuid;

use crate::{StorageError, TenantTx};

/// How long what was deleted can be restored.
pub const KEPT: Duration = Duration::days(30);

/// How much longer the row stays: a restore that begins at the last moment finds it.
pub(crate) const GRACE: Duration = Duration::hours(1);

/// Deleted sources, prompts or resources of one workspace that are kept, each.
pub const MOST: i64 = 100;

/// What kind of thing was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum DeletedKind {
    /// A source of tools.
    Source,
    /// A published server.
    Server,
    /// A prompt that was written in the console.
    Prompt,
    /// A resource that was written in the console.
    Resource,
}

/// A deleted thing that can be restored.
#[derive(Debug, Clone)]
pub struct DeletedItem {
    /// Its kind.
    pub kind: DeletedKind,
    /// Its id within its kind.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

/// A kind of id whose rows can be deleted and restored.
pub trait Restorable: Kind {
    /// The kind in the trash.
    const DELETED: DeletedKind;
}

impl Restorable for SourceKind {
    const DELETED: DeletedKind = DeletedKind::Source;
}
impl Restorable for ServerKind {
    const DELETED: DeletedKind = DeletedKind::Server;
}
impl Restorable for PromptKind {
    const DELETED: DeletedKind = DeletedKind::Prompt;
}
impl Restorable for ResourceKind {
    const DELETED: DeletedKind = DeletedKind::Resource;
}

/// Marks a row deleted: it is published no more, and a server's URL answers like an unknown one.
/// False if there is no such row, or if it was found at an upstream server.
pub async fn delete<K: Restorable>(
    tx: &mut TenantTx,
    id: Id<K>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let (tenant, id) = (tx.tenant().uuid(), id.uuid());
    macro_rules! mark {
        ($table:literal) => {
            sqlx::query!(
                "update " + $table + " set deleted_at = $3 where tenant_id = $1 and id = $2 and deleted_at is null",
                tenant,
                id,
                now
            )
        };
        ($table:literal, written here) => {
            sqlx::query!(
                "update " + $table + " set deleted_at = $3
                  where tenant_id = $1 and id = $2 and source_id is null and deleted_at is null",
                tenant,
                id,
                now
            )
        };
    }
    let mark = match K::DELETED {
        DeletedKind::Source => mark!("sources"),
        DeletedKind::Server => mark!("servers"),
        DeletedKind::Prompt => mark!("prompts", written here),
        DeletedKind::Resource => mark!("resources", written here),
    };
    let done = mark.execute(tx.connection()).await?;
    bound(tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Restores a row that was deleted within [`KEPT`]. A prompt's name or a resource's URI that was
/// taken meanwhile violates its unique constraint.
pub async fn restore<K: Restorable>(
    tx: &mut TenantTx,
    id: Id<K>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let (tenant, id, since) = (tx.tenant().uuid(), id.uuid(), now - KEPT);
    macro_rules! unmark {
        ($table:literal) => {
            sqlx::query!(
                "update "
                    + $table
                    + " set deleted_at = null where tenant_id = $1 and id = $2 and deleted_at > $3",
                tenant,
                id,
                since
            )
        };
    }
    let unmark = match K::DELETED {
        DeletedKind::Source => unmark!("sources"),
        DeletedKind::Server => unmark!("servers"),
        DeletedKind::Prompt => unmark!("prompts"),
        DeletedKind::Resource => unmark!("resources"),
    };
    let done = unmark.execute(tx.connection()).await?;
    Ok(done.rows_affected() == 1)
}

/// Lists the restorable items, newest deletion first; 500 at most.
pub async fn list(tx: &mut TenantTx, now: Timestamp) -> Result<Vec<DeletedItem>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        DeletedItem,
        r#"select kind as "kind!: DeletedKind", id as "id!", name as "name!", deleted_at as "deleted_at!"
             from (select 'source' as kind, id, name, deleted_at from sources where tenant_id = $1
                   union all
                   select 'server', id, name, deleted_at from servers where tenant_id = $1 and name <> ''
                   union all
                   select 'prompt', id, name, deleted_at from prompts
                    where tenant_id = $1 and source_id is null
                   union all
                   select 'resource', id, name, deleted_at from resources
                    where tenant_id = $1 and source_id is null) as gone
            where deleted_at > $2
            order by deleted_at desc, id limit 500"#,
        tenant,
        now - KEPT
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Removes the oldest deleted rows of a workspace beyond [`MOST`] of each kind. Servers stay as tombstones in any case and are not counted.
async fn bound(tx: &mut TenantTx) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "with s as (delete from sources where tenant_id = $1 and id in
                     (select id from sources where tenant_id = $1 and deleted_at is not null
                       order by deleted_at desc, id offset $2)),
              p as (delete from prompts where tenant_id = $1 and id in
                     (select id from prompts where tenant_id = $1 and deleted_at is not null
                       order by deleted_at desc, id offset $2))
         delete from resources where tenant_id = $1 and id in
           (select id from resources where tenant_id = $1 and deleted_at is not null
             order by deleted_at desc, id offset $2)",
        tenant,
        MOST
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
