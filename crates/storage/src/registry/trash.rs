//! Deleted sources, servers, prompts and resources: kept for a time, listed, and brought back.
//!
//! A deletion marks a row. `restore` of each subject takes the mark away while [`KEPT`] lasts;
//! [`crate::expiry`] removes the row afterwards. The trash of one workspace is bounded, so that
//! deleting and making anew cannot fill the database: beyond [`MOST`] of a kind the oldest go at
//! once.

use portolan_model::Timestamp;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Kind {
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
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Its id within its kind.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

/// Lists the restorable items, newest deletion first; 500 at most.
pub async fn list(tx: &mut TenantTx, now: Timestamp) -> Result<Vec<Entry>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Entry,
        r#"select kind as "kind!: Kind", id as "id!", name as "name!", deleted_at as "deleted_at!"
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

/// Removes the oldest deleted rows of a workspace beyond [`MOST`] of each kind. Call it in the
/// transaction of a deletion. Servers stay as tombstones in any case and are not counted.
pub(crate) async fn bound(tx: &mut TenantTx) -> Result<(), StorageError> {
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
