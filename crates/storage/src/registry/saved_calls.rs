//! Calls of a server that the playground keeps (PLAY-6).

use portolan_model::{
    Timestamp,
    id::{SavedCallId, ServerId, UserId},
};
use serde_json::Value;

use crate::{StorageError, TenantTx};

/// A saved call.
#[derive(Debug, Clone)]
pub struct SavedCall {
    /// Id.
    pub id: SavedCallId,
    /// What people call it: unique for its server.
    pub name: String,
    /// `tools/call`, `prompts/get` or `resources/read`.
    pub method: String,
    /// Parameters, without `_meta`.
    pub params: Value,
    /// Assertions on the answer.
    pub expect: Value,
    /// When it was saved last.
    pub changed_at: Timestamp,
}

/// A saved call to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewSavedCall<'a> {
    /// Name.
    pub name: &'a str,
    /// Method.
    pub method: &'a str,
    /// Parameters.
    pub params: &'a Value,
    /// Assertions.
    pub expect: &'a Value,
    /// Who saves it.
    pub by: Option<UserId>,
}

/// Those of a server, by name.
pub async fn list(tx: &mut TenantTx, server: ServerId) -> Result<Vec<SavedCall>, StorageError> {
    let rows = sqlx::query!(
        "select id, name, method, params, expect, changed_at from saved_calls where server_id = $1 order by lower(name), id",
        server.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| SavedCall {
            id: row.id.into(),
            name: row.name,
            method: row.method,
            params: row.params,
            expect: row.expect,
            changed_at: row.changed_at,
        })
        .collect())
}

/// Number of calls that a server keeps. The caller holds the server's row, so that it stays true.
pub async fn count(tx: &mut TenantTx, server: ServerId) -> Result<i64, StorageError> {
    sqlx::query!(
        "select id from servers where id = $1 for no key update",
        server.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from saved_calls where server_id = $1"#,
        server.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Writes one. A name that is taken violates `saved_calls_name`.
pub async fn insert(
    tx: &mut TenantTx,
    id: SavedCallId,
    server: ServerId,
    new: &NewSavedCall<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into saved_calls (tenant_id, id, server_id, name, method, params, expect, changed_by, created_at, changed_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        tenant,
        id.uuid(),
        server.uuid(),
        new.name,
        new.method,
        new.params,
        new.expect,
        new.by.map(UserId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Replaces one. False if the server has no such call.
pub async fn replace(
    tx: &mut TenantTx,
    id: SavedCallId,
    server: ServerId,
    new: &NewSavedCall<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update saved_calls set name = $3, method = $4, params = $5, expect = $6, changed_by = $7, changed_at = $8
         where id = $1 and server_id = $2",
        id.uuid(),
        server.uuid(),
        new.name,
        new.method,
        new.params,
        new.expect,
        new.by.map(UserId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes one, and returns its name.
pub async fn delete(
    tx: &mut TenantTx,
    id: SavedCallId,
    server: ServerId,
) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "delete from saved_calls where id = $1 and server_id = $2 returning name",
        id.uuid(),
        server.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?)
}
