//! Sources that use OAuth: the tenant's client at their authorization servers. This module never
//! sees a secret in clear.

mod attempts;
mod connected_accounts;

use portolan_model::{Timestamp, id::SourceId};
use serde_json::Value;

use crate::{StorageError, TenantTx, registry::credentials::WrappedKey};

pub use self::{
    attempts::{NewAttempt, ReturnedAttempt, begin_attempt, take_attempt},
    connected_accounts::{
        ConnectedAccount, Leaving, Linked, NewConnection, Refreshed, begin_refresh, connect,
        connection, disconnect, leaving, linked, linked_persons, needs_sign_in, not_refreshed,
        refreshed, wants_scope,
    },
};

/// How a source is signed in to.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// `workspace` or `person`.
    pub sharing: String,
    /// `code` or `client_credentials`.
    pub method: String,
    /// Scopes that the tenant wants, if it said so.
    pub scope: Option<String>,
    /// The authorization server that a person configured for an API. An MCP server names its own.
    pub server: Option<Value>,
    /// The client, if there is one.
    pub client: Option<SealedClient>,
    /// Raised by every change.
    pub version: i32,
}

/// A client at rest.
#[derive(Debug, Clone)]
pub struct SealedClient {
    /// Where it is known; none for one that was entered and not used yet.
    pub issuer: Option<String>,
    /// Its id.
    pub client_id: String,
    /// `document`, `registered` or `entered`.
    pub kind: String,
    /// Sealed under the data key, bound to tenant, source and version.
    pub sealed: Vec<u8>,
    /// The data key.
    pub key: WrappedKey,
}

/// How a source is signed in to; `None` if not by OAuth.
pub async fn sign_in(tx: &mut TenantTx, source: SourceId) -> Result<Option<SignIn>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        r#"select i.sharing, i.method, i.scope, i.server, i.client_issuer, i.client_id, i.client_kind, i.client_sealed, i.version,
                  k.id as "key_id?", k.wrapped as "wrapped?"
             from upstream_sign_ins i left join tenant_deks k on k.tenant_id = i.tenant_id and k.id = i.dek_id
            where i.tenant_id = $1 and i.source_id = $2"#,
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| SignIn {
        sharing: row.sharing,
        method: row.method,
        scope: row.scope,
        server: row.server,
        version: row.version,
        client: match (
            row.client_id,
            row.client_kind,
            row.client_sealed,
            row.key_id,
            row.wrapped,
        ) {
            (Some(client_id), Some(kind), Some(sealed), Some(id), Some(wrapped)) => {
                Some(SealedClient {
                    issuer: row.client_issuer,
                    client_id,
                    kind,
                    sealed,
                    key: WrappedKey { id, wrapped },
                })
            }
            _ => None,
        },
    }))
}

/// Says how a source is signed in to; a client that is kept stays.
pub async fn set_sign_in(
    tx: &mut TenantTx,
    source: SourceId,
    sharing: &str,
    method: &str,
    scope: Option<&str>,
    server: Option<&Value>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into upstream_sign_ins (tenant_id, source_id, sharing, method, scope, server, updated_at) values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (tenant_id, source_id) do update
           set sharing = excluded.sharing, method = excluded.method, scope = excluded.scope, server = excluded.server,
               updated_at = excluded.updated_at",
        tenant,
        source.uuid(),
        sharing,
        method,
        scope,
        server,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The version that the next [`put_client`] must be sealed for. Locks the row until the transaction
/// ends.
pub async fn next_client_version(
    tx: &mut TenantTx,
    source: SourceId,
) -> Result<Option<i32>, StorageError> {
    let tenant = tx.tenant().uuid();
    let version = sqlx::query_scalar!(
        "select version from upstream_sign_ins where tenant_id = $1 and source_id = $2 for update",
        tenant,
        source.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(version.map(|version| version + 1))
}

/// Keeps the client, sealed for `version`.
pub async fn put_client(
    tx: &mut TenantTx,
    source: SourceId,
    client: &SealedClient,
    version: i32,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update upstream_sign_ins set client_issuer = $3, client_id = $4, client_kind = $5, client_sealed = $6, dek_id = $7, version = $8,
                updated_at = $9
          where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        client.issuer,
        client.client_id,
        client.kind,
        client.sealed,
        client.key.id,
        version,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Forgets the client, so that the next connection registers anew or asks for one.
pub async fn forget_client(
    tx: &mut TenantTx,
    source: SourceId,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update upstream_sign_ins set client_issuer = null, client_id = null, client_kind = null, client_sealed = null, dek_id = null,
                version = version + 1, updated_at = $3
          where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The source is not signed in to by OAuth any more, or is elsewhere now: its client and every
/// account go, those of persons and those that browsers are on their way to too. True if it was.
pub async fn delete_sign_in(tx: &mut TenantTx, source: SourceId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from upstream_sign_ins where tenant_id = $1 and source_id = $2",
        tenant,
        source.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
