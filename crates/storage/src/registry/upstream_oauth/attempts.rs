//! Pending sign-ins of browsers at a source's authorization server.

use portolan_model::{
    Digest, Timestamp,
    id::{SessionId, SourceId, TenantId, UserId},
};
use serde_json::Value;

use crate::{StorageError, SystemTx, TenantTx};

/// A browser on its way.
#[derive(Debug)]
pub struct NewAttempt<'a> {
    /// Of `state`.
    pub state: &'a Digest,
    /// To which source's server.
    pub source: SourceId,
    /// The person of the sign-in.
    pub user: UserId,
    /// In which browser session.
    pub session: SessionId,
    /// Whose the account becomes; none for the workspace's.
    pub owner: Option<UserId>,
    /// The authorization server, as it was when the way began.
    pub server: &'a Value,
    /// The address of the source then.
    pub address: &'a str,
    /// Audience that the tokens are requested for.
    pub resource: Option<&'a str>,
    /// The requested scopes.
    pub scope: Option<&'a str>,
    /// Where the answer comes.
    pub redirect_uri: &'a str,
    /// `console` or `page`.
    pub back: &'a str,
    /// Verifier and client, sealed under `state`.
    pub sealed: &'a [u8],
    /// End of it.
    pub expires_at: Timestamp,
}

/// Keeps an attempt.
pub async fn begin_attempt(
    tx: &mut TenantTx,
    new: &NewAttempt<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into upstream_attempts (state_digest, tenant_id, source_id, user_id, session_id, owner_id, server, address, resource, scope,
                                        redirect_uri, back, sealed, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        new.state.as_bytes().as_slice(),
        tenant,
        new.source.uuid(),
        new.user.uuid(),
        new.session.uuid(),
        new.owner.map(UserId::uuid),
        new.server,
        new.address,
        new.resource,
        new.scope,
        new.redirect_uri,
        new.back,
        new.sealed,
        now,
        new.expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// An attempt that has come back.
#[derive(Debug)]
pub struct ReturnedAttempt {
    /// In which workspace.
    pub tenant: TenantId,
    /// Whose the account becomes.
    pub owner: Option<UserId>,
    /// The authorization server.
    pub server: Value,
    /// The address of the source when the way began.
    pub address: String,
    /// Audience that the tokens are requested for.
    pub resource: Option<String>,
    /// The requested scopes.
    pub scope: Option<String>,
    /// Where the answer came.
    pub redirect_uri: String,
    /// `console` or `page`.
    pub back: String,
    /// Verifier and client, sealed under `state`.
    pub sealed: Vec<u8>,
}

/// Uses an attempt up: once, in time, by the browser session and person that began it, at the
/// address of its source (MCP-AU-10).
pub async fn take_attempt(
    tx: &mut SystemTx,
    state: &Digest,
    source: SourceId,
    user: UserId,
    session: SessionId,
    now: Timestamp,
) -> Result<Option<ReturnedAttempt>, StorageError> {
    let row = sqlx::query!(
        "update upstream_attempts set used_at = $5
          where state_digest = $1 and source_id = $2 and user_id = $3 and session_id = $4 and used_at is null and expires_at > $5
         returning tenant_id, owner_id, server, address, resource, scope, redirect_uri, back, sealed",
        state.as_bytes().as_slice(),
        source.uuid(),
        user.uuid(),
        session.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| ReturnedAttempt {
        tenant: TenantId::from_uuid(row.tenant_id),
        owner: row.owner_id.map(UserId::from_uuid),
        server: row.server,
        address: row.address,
        resource: row.resource,
        scope: row.scope,
        redirect_uri: row.redirect_uri,
        back: row.back,
        sealed: row.sealed,
    }))
}
