//! Attached servers: upstream servers that a program outside offers (ADR 39), the keys of these
//! programs, and their connections to nodes.

use portolan_model::{
    Digest, Timestamp,
    id::{SourceId, TenantId, UserId},
};
use time::Duration;

use crate::{EdgeTx, StorageError, SystemTx, TenantTx};

/// A connection that was not reported for so long is lost: its node died.
pub const LOST_AFTER: Duration = Duration::seconds(30);
/// The constraint that [`insert`] violates when the name is taken.
pub const NAME_TAKEN: &str = "attachments_tenant_id_name_key";
/// Longest stored error, in characters.
const LONGEST_ERROR: usize = 500;

/// An attached server as the console shows it.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its name in the workspace.
    pub name: String,
    /// The beginning of its key.
    pub key_hint: String,
    /// When the key was made.
    pub key_created_at: Timestamp,
}

/// Key of an attached server, to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewKey<'a> {
    /// Digest by which the key is found.
    pub digest: &'a Digest,
    /// Its beginning.
    pub hint: &'a str,
    /// The person who made it.
    pub created_by: Option<UserId>,
}

/// Makes a source an attached server.
pub async fn insert(
    tx: &mut TenantTx,
    source: SourceId,
    name: &str,
    key: &NewKey<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into attachments (tenant_id, source_id, name, key_digest, key_hint, key_created_at, key_created_by)
         values ($1, $2, $3, $4, $5, $6, $7)",
        tenant,
        source.uuid(),
        name,
        key.digest.as_bytes().as_slice(),
        key.hint,
        now,
        key.created_by.map(UserId::uuid),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Replaces the key. Connections that were opened with the old one end within seconds.
pub async fn replace_key(
    tx: &mut TenantTx,
    source: SourceId,
    key: &NewKey<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update attachments set key_digest = $3, key_hint = $4, key_created_at = $5, key_created_by = $6
         where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        key.digest.as_bytes().as_slice(),
        key.hint,
        now,
        key.created_by.map(UserId::uuid),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The attached server of a source.
pub async fn find(tx: &mut TenantTx, source: SourceId) -> Result<Option<Attachment>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Attachment,
        "select name, key_hint, key_created_at from attachments where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// A connection of a program to a node.
#[derive(Debug, Clone)]
pub struct Tunnel {
    /// Id of the program.
    pub instance: String,
    /// Its version.
    pub version: String,
    /// The server behind it takes requests.
    pub is_ready: bool,
    /// Its last failure.
    pub error: Option<String>,
    /// When it was opened.
    pub since: Timestamp,
    /// When the node reported it last.
    pub seen_at: Timestamp,
}

/// The connections of an attached server that its nodes still report, oldest first.
pub async fn tunnels(
    tx: &mut TenantTx,
    source: SourceId,
    now: Timestamp,
) -> Result<Vec<Tunnel>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Tunnel,
        "select instance, version, is_ready, error, since, seen_at from attachment_tunnels
         where tenant_id = $1 and source_id = $2 and seen_at > $3
         order by since, node, instance",
        tenant,
        source.uuid(),
        now - LOST_AFTER,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// Finds the tenant of a presented key; `None` if it is unknown. [`open`] checks whether it may be
/// used.
pub async fn tenant_of(tx: &mut EdgeTx, digest: &Digest) -> Result<Option<TenantId>, StorageError> {
    // Row-level security of the edge scope shows the one row of this digest.
    sqlx::query!(
        "select set_config('app.presented', encode($1, 'hex'), true)",
        digest.as_bytes().as_slice(),
    )
    .fetch_one(tx.connection())
    .await?;
    let tenant = sqlx::query_scalar!(
        "select tenant_id from attachments where key_digest = $1",
        digest.as_bytes().as_slice(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(tenant.map(TenantId::from_uuid))
}

/// A server that a key may offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedAttachment {
    /// Its source.
    pub source: SourceId,
    /// Its name.
    pub name: String,
}

/// The server that a presented key may offer. `None` if the key was replaced, or the source
/// deleted, or if the tenant is not active or has no such slug.
pub async fn open(
    tx: &mut TenantTx,
    digest: &Digest,
    slug: &str,
) -> Result<Option<OpenedAttachment>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        "select a.source_id, a.name
         from attachments a
           join sources s on s.tenant_id = a.tenant_id and s.id = a.source_id and s.deleted_at is null
           join tenants t on t.id = a.tenant_id and t.status = 'active'
           join tenant_slugs g on g.tenant_id = a.tenant_id and g.state in ('primary', 'alias')
         where a.tenant_id = $1 and a.key_digest = $2 and g.slug = $3",
        tenant,
        digest.as_bytes().as_slice(),
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| OpenedAttachment {
        source: SourceId::from_uuid(row.source_id),
        name: row.name,
    }))
}

/// The state of a connection, as its node reports it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The attached server.
    pub source: SourceId,
    /// The node.
    pub node: &'a str,
    /// The program.
    pub instance: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The server behind it takes requests.
    pub is_ready: bool,
    /// Its last failure.
    pub error: Option<&'a str>,
}

/// Stores the state of a connection, and removes those of dead nodes.
pub async fn report(
    tx: &mut TenantTx,
    report: &Report<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    // The text comes from the program. Postgres refuses NUL, and control characters help no reader.
    let error: Option<String> = report.error.map(|error| {
        let shown = error.chars().filter(|sign| !sign.is_control());
        shown.take(LONGEST_ERROR).collect()
    });
    sqlx::query!(
        "insert into attachment_tunnels (tenant_id, source_id, node, instance, version, is_ready, error, since, seen_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $8)
         on conflict (tenant_id, source_id, node, instance) do update
           set version = excluded.version, is_ready = excluded.is_ready, error = excluded.error,
               seen_at = excluded.seen_at",
        tenant,
        report.source.uuid(),
        report.node,
        report.instance,
        report.version,
        report.is_ready,
        error,
        now,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from attachment_tunnels where tenant_id = $1 and source_id = $2 and seen_at < $3",
        tenant,
        report.source.uuid(),
        now - LOST_AFTER,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Removes a connection that ended.
pub async fn ended(
    tx: &mut TenantTx,
    source: SourceId,
    node: &str,
    instance: &str,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "delete from attachment_tunnels where tenant_id = $1 and source_id = $2 and node = $3 and instance = $4",
        tenant,
        source.uuid(),
        node,
        instance,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Reports a node with the console alone, and returns all of them that are alive.
pub async fn beat(
    tx: &mut SystemTx,
    node: &str,
    now: Timestamp,
) -> Result<Vec<String>, StorageError> {
    sqlx::query!(
        "insert into attachment_nodes (node, seen_at) values ($1, $2)
         on conflict (node) do update set seen_at = excluded.seen_at",
        node,
        now,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from attachment_nodes where seen_at < $1",
        now - LOST_AFTER,
    )
    .execute(tx.connection())
    .await?;
    Ok(
        sqlx::query_scalar!("select node from attachment_nodes order by node")
            .fetch_all(tx.connection())
            .await?,
    )
}
