//! Connected accounts: tokens of a workspace or of one person, sealed, and their renewal.

use portolan_model::{
    Timestamp,
    id::{SourceId, TenantId, UserId},
};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{StorageError, SystemTx, TenantTx, registry::credentials::WrappedKey};

/// A connected account, its tokens sealed.
#[derive(Debug, Clone)]
pub struct ConnectedAccount {
    /// Id; bound into the seal.
    pub id: Uuid,
    /// Whose; none for the workspace's.
    pub owner: Option<UserId>,
    /// Who connected it.
    pub connected_by: UserId,
    /// Who issued the tokens.
    pub issuer: String,
    /// Its metadata.
    pub server: Value,
    /// The address of the source that the tokens are for: they are sent nowhere else.
    pub address: String,
    /// Audience of the tokens.
    pub resource: Option<String>,
    /// The granted scopes.
    pub scope: Option<String>,
    /// The requested scopes beyond those.
    pub wanted_scope: Option<String>,
    /// `ok` or `needs_sign_in`.
    pub status: String,
    /// Reason why a person must sign in again.
    pub reason: Option<String>,
    /// Tokens are renewed without a person.
    pub renewable: bool,
    /// Tokens and client, sealed.
    pub sealed: Vec<u8>,
    /// The data key.
    pub key: WrappedKey,
    /// Raised by every change of the tokens.
    pub version: i32,
    /// End of the access token.
    pub expires_at: Timestamp,
    /// Since when.
    pub connected_at: Timestamp,
    /// When the tokens were last renewed.
    pub refreshed_at: Option<Timestamp>,
}

/// Makes the rest of the transaction one in a person's name: that person's accounts can be seen
/// (AUTH-3.5, the second predicate).
async fn as_person(
    connection: &mut PgConnection,
    owner: Option<UserId>,
) -> Result<(), StorageError> {
    let person = owner
        .map(|owner| owner.uuid().to_string())
        .unwrap_or_default();
    sqlx::query("select set_config('app.person', $1, true)")
        .bind(person)
        .execute(connection)
        .await?;
    Ok(())
}

/// The account of a person, or of the workspace, at a source.
pub async fn connection(
    tx: &mut TenantTx,
    source: SourceId,
    owner: Option<UserId>,
) -> Result<Option<ConnectedAccount>, StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), owner).await?;
    let row = sqlx::query!(
        "select c.id, c.owner_id, c.connected_by, c.issuer, c.server, c.address, c.resource, c.scope, c.wanted_scope, c.status, c.reason, c.renewable,
                c.sealed, c.version, c.expires_at, c.connected_at, c.refreshed_at, k.id as key_id, k.wrapped
           from upstream_connections c join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
          where c.tenant_id = $1 and c.source_id = $2 and c.owner_id is not distinct from $3",
        tenant,
        source.uuid(),
        owner.map(UserId::uuid)
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| ConnectedAccount {
        id: row.id,
        owner: row.owner_id.map(UserId::from_uuid),
        connected_by: UserId::from_uuid(row.connected_by),
        issuer: row.issuer,
        server: row.server,
        address: row.address,
        resource: row.resource,
        scope: row.scope,
        wanted_scope: row.wanted_scope,
        status: row.status,
        reason: row.reason,
        renewable: row.renewable,
        sealed: row.sealed,
        key: WrappedKey {
            id: row.key_id,
            wrapped: row.wrapped,
        },
        version: row.version,
        expires_at: row.expires_at,
        connected_at: row.connected_at,
        refreshed_at: row.refreshed_at,
    }))
}

/// Tokens of a new connection, to be kept.
#[derive(Debug)]
pub struct NewConnection<'a> {
    /// Id; bound into the seal, with version 1.
    pub id: Uuid,
    /// At which source.
    pub source: SourceId,
    /// Whose; none for the workspace's.
    pub owner: Option<UserId>,
    /// Who connected it.
    pub connected_by: UserId,
    /// Who issued the tokens.
    pub issuer: &'a str,
    /// Its metadata.
    pub server: &'a Value,
    /// The address of the source that the tokens are for.
    pub address: &'a str,
    /// Audience of the tokens.
    pub resource: Option<&'a str>,
    /// The granted scopes.
    pub scope: Option<&'a str>,
    /// Tokens are renewed without a person.
    pub renewable: bool,
    /// Tokens and client, sealed.
    pub sealed: &'a [u8],
    /// The data key.
    pub key: Uuid,
    /// End of the access token.
    pub expires_at: Timestamp,
}

/// Replaces the stored connection. False if its source has moved meanwhile: then nothing is
/// written.
pub async fn connect(
    tx: &mut TenantTx,
    new: &NewConnection<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    // Lock the row: a concurrent move of the source either comes before this, or deletes the row
    // that this writes.
    let is_there = sqlx::query_scalar!(
        "select id from sources where tenant_id = $1 and id = $2 and base_url = $3 and deleted_at is null for share",
        tenant,
        new.source.uuid(),
        new.address,
    )
    .fetch_optional(tx.connection())
    .await?
    .is_some();
    if !is_there {
        return Ok(false);
    }
    as_person(tx.connection(), new.owner).await?;
    sqlx::query!(
        "delete from upstream_connections where tenant_id = $1 and source_id = $2 and owner_id is not distinct from $3",
        tenant,
        new.source.uuid(),
        new.owner.map(UserId::uuid)
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into upstream_connections (tenant_id, id, source_id, owner_id, connected_by, issuer, server, address, resource, scope, renewable,
                                           sealed, dek_id, expires_at, connected_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        tenant,
        new.id,
        new.source.uuid(),
        new.owner.map(UserId::uuid),
        new.connected_by.uuid(),
        new.issuer,
        new.server,
        new.address,
        new.resource,
        new.scope,
        new.renewable,
        new.sealed,
        new.key,
        new.expires_at,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(true)
}

/// Claims the right to renew the tokens of this version for a time (AUTH-3.5), and returns its end.
/// `None` if another caller has the claim, or has already renewed. The clock is that of the
/// database, which all nodes share.
pub async fn begin_refresh(
    tx: &mut TenantTx,
    of: &ConnectedAccount,
    seconds: i32,
) -> Result<Option<Timestamp>, StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    let lease = sqlx::query_scalar!(
        r#"update upstream_connections set refreshing_until = now() + $4::int4 * interval '1 second'
          where tenant_id = $1 and id = $2 and version = $3 and status = 'ok' and coalesce(refreshing_until, '-infinity') < now()
         returning refreshing_until as "until!""#,
        tenant,
        of.id,
        of.version,
        seconds,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(lease)
}

/// New tokens of a connection.
#[derive(Debug)]
pub struct Refreshed<'a> {
    /// Sealed for the next version.
    pub sealed: &'a [u8],
    /// The data key.
    pub key: Uuid,
    /// The scopes granted now.
    pub scope: Option<&'a str>,
    /// End of the access token.
    pub expires_at: Timestamp,
}

/// Keeps renewed tokens. False if the connection is another one by now: then they must not be used.
pub async fn refreshed(
    tx: &mut TenantTx,
    of: &ConnectedAccount,
    new: &Refreshed<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    let done = sqlx::query!(
        "update upstream_connections set sealed = $4, dek_id = $5, scope = coalesce($6, scope), expires_at = $7, refreshed_at = $8,
                version = version + 1, refreshing_until = null, status = 'ok', reason = null
          where tenant_id = $1 and id = $2 and version = $3",
        tenant,
        of.id,
        of.version,
        new.sealed,
        new.key,
        new.scope,
        new.expires_at,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives the right to renew back: it came to nothing that would say that the grant is over.
pub async fn not_refreshed(
    tx: &mut TenantTx,
    of: &ConnectedAccount,
    lease: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    sqlx::query!(
        "update upstream_connections set refreshing_until = null
          where tenant_id = $1 and id = $2 and version = $3 and refreshing_until = $4",
        tenant,
        of.id,
        of.version,
        lease,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Records that a person must sign in again, because of `reason`. Tokens of another version are not
/// affected. A caller that learned it by renewing may record it only while its claim lasts. False
/// if nothing changed.
pub async fn needs_sign_in(
    tx: &mut TenantTx,
    of: &ConnectedAccount,
    reason: &str,
    lease: Option<Timestamp>,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    let done = sqlx::query!(
        "update upstream_connections set status = 'needs_sign_in', reason = $4, refreshing_until = null
          where tenant_id = $1 and id = $2 and version = $3 and status = 'ok' and ($5::timestamptz is null or refreshing_until = $5)",
        tenant,
        of.id,
        of.version,
        reason,
        lease,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes scopes that a server asked for; the tokens are still good for the rest (MCP-AU-11).
pub async fn wants_scope(
    tx: &mut TenantTx,
    of: &ConnectedAccount,
    scope: &str,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    sqlx::query!(
        "update upstream_connections set wanted_scope = $3 where tenant_id = $1 and id = $2 and wanted_scope is distinct from $3",
        tenant,
        of.id,
        scope,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Forgets an account. True if there was one.
pub async fn disconnect(tx: &mut TenantTx, of: &ConnectedAccount) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    as_person(tx.connection(), of.owner).await?;
    let done = sqlx::query!(
        "delete from upstream_connections where tenant_id = $1 and id = $2",
        tenant,
        of.id
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Tokens that are to be given back when their account is gone.
#[derive(Debug, Clone)]
pub struct Leaving {
    /// Id; bound into the seal.
    pub id: Uuid,
    /// At which source.
    pub source: SourceId,
    /// Metadata of who issued the tokens.
    pub server: Value,
    /// Tokens and client, sealed.
    pub sealed: Vec<u8>,
    /// The data key.
    pub key: WrappedKey,
    /// Bound into the seal too.
    pub version: i32,
}

/// The accounts at one source, or of one person, or all of a tenant: what goes when the source or
/// the membership does.
pub async fn leaving(
    tx: &mut SystemTx,
    tenant: TenantId,
    source: Option<SourceId>,
    owner: Option<UserId>,
) -> Result<Vec<Leaving>, StorageError> {
    let rows = sqlx::query!(
        "select c.id, c.source_id, c.server, c.sealed, c.version, k.id as key_id, k.wrapped
           from upstream_connections c join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
          where c.tenant_id = $1 and ($2::uuid is null or c.source_id = $2) and ($3::uuid is null or c.owner_id = $3)",
        tenant.uuid(),
        source.map(SourceId::uuid),
        owner.map(UserId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    let leaving = rows.into_iter().map(|row| Leaving {
        id: row.id,
        source: SourceId::from_uuid(row.source_id),
        server: row.server,
        sealed: row.sealed,
        key: WrappedKey {
            id: row.key_id,
            wrapped: row.wrapped,
        },
        version: row.version,
    });
    Ok(leaving.collect())
}

/// An account as its person sees it.
#[derive(Debug, Clone)]
pub struct Linked {
    /// Where.
    pub tenant: TenantId,
    /// What people call the workspace.
    pub tenant_name: String,
    /// At which source.
    pub source: SourceId,
    /// Name that the workspace gave it.
    pub source_name: String,
    /// Who issued the tokens.
    pub issuer: String,
    /// The granted scopes.
    pub scope: Option<String>,
    /// `ok` or `needs_sign_in`.
    pub status: String,
    /// Since when.
    pub connected_at: Timestamp,
    /// When the tokens were last renewed.
    pub refreshed_at: Option<Timestamp>,
}

/// The accounts that a person has linked, in every workspace.
pub async fn linked(tx: &mut SystemTx, owner: UserId) -> Result<Vec<Linked>, StorageError> {
    let rows = sqlx::query!(
        "select c.tenant_id, t.name as tenant_name, c.source_id, s.name as source_name, c.issuer, c.scope, c.status, c.connected_at,
                c.refreshed_at
           from upstream_connections c
           join tenants t on t.id = c.tenant_id
           join sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
          where c.owner_id = $1 order by t.name, s.name, c.id",
        owner.uuid()
    )
    .fetch_all(tx.connection())
    .await?;
    let linked = rows.into_iter().map(|row| Linked {
        tenant: TenantId::from_uuid(row.tenant_id),
        tenant_name: row.tenant_name,
        source: SourceId::from_uuid(row.source_id),
        source_name: row.source_name,
        issuer: row.issuer,
        scope: row.scope,
        status: row.status,
        connected_at: row.connected_at,
        refreshed_at: row.refreshed_at,
    });
    Ok(linked.collect())
}

/// How many persons have linked an account at a source.
pub async fn linked_persons(
    tx: &mut SystemTx,
    tenant: TenantId,
    source: SourceId,
) -> Result<i64, StorageError> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from upstream_connections where tenant_id = $1 and source_id = $2 and owner_id is not null"#,
        tenant.uuid(),
        source.uuid()
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(count)
}
