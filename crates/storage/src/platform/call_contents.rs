//! Arguments and answers of calls, sealed (CAPTURE-5 to CAPTURE-7). This module never sees them in
//! clear.

use portolan_model::{
    Timestamp,
    id::{CallId, ServerId, TenantId},
};
use time::Duration;
use uuid::Uuid;

use crate::{EdgeTx, StorageError, TenantTx};

/// The content of a call, to be written.
#[derive(Debug, Clone)]
pub struct NewContent {
    /// The tenant.
    pub tenant: TenantId,
    /// The call.
    pub call: CallId,
    /// When the call came.
    pub at: Timestamp,
    /// The server.
    pub server: ServerId,
    /// From then on it is not shown.
    pub ends_at: Timestamp,
    /// The data key under which it is sealed.
    pub key: Uuid,
    /// Sealed under the data key, bound to tenant and call.
    pub sealed: Vec<u8>,
}

/// Contents as columns, for `unnest`.
#[derive(Default)]
struct ContentColumns {
    ends: Vec<Timestamp>,
    tenants: Vec<Uuid>,
    calls: Vec<Uuid>,
    ats: Vec<Timestamp>,
    servers: Vec<Uuid>,
    keys: Vec<Uuid>,
    sealed: Vec<Vec<u8>>,
}

impl ContentColumns {
    fn push(&mut self, one: &NewContent) {
        self.ends.push(one.ends_at);
        self.tenants.push(one.tenant.uuid());
        self.calls.push(one.call.uuid());
        self.ats.push(one.at);
        self.servers.push(one.server.uuid());
        self.keys.push(one.key);
        self.sealed.push(one.sealed.clone());
    }
}

/// Writes contents of all tenants in one statement.
pub async fn insert_many(tx: &mut EdgeTx, contents: &[NewContent]) -> Result<(), StorageError> {
    let mut columns = ContentColumns::default();
    for one in contents {
        columns.push(one);
    }
    sqlx::query!(
        "insert into call_log_contents (ends_at, tenant_id, call_id, at, server_id, dek_id, sealed)
         select * from unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::uuid[], $7::bytea[])",
        &columns.ends,
        &columns.tenants,
        &columns.calls,
        &columns.ats,
        &columns.servers,
        &columns.keys,
        &columns.sealed,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A content at rest.
#[derive(Debug, Clone)]
pub struct SealedContent {
    /// From then on it is not shown.
    pub ends_at: Timestamp,
    /// Id of the data key; bound into its wrapping.
    pub key_id: Uuid,
    /// The data key, wrapped by the key-encryption key.
    pub wrapped_key: Vec<u8>,
    /// Sealed under the data key.
    pub sealed: Vec<u8>,
}

/// When the content of a call ends; `None` if nothing is kept of it.
pub async fn ends_at(
    tx: &mut TenantTx,
    call: CallId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "select c.ends_at from call_log_contents c
           join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
          where c.tenant_id = $1 and c.call_id = $2 and c.ends_at > $3 limit 1",
        tenant,
        call.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// The content of a call; `None` if nothing is kept of it.
pub async fn find(
    tx: &mut TenantTx,
    call: CallId,
    now: Timestamp,
) -> Result<Option<SealedContent>, StorageError> {
    let tenant = tx.tenant().uuid();
    let row = sqlx::query!(
        "select c.ends_at, c.sealed, k.id, k.wrapped from call_log_contents c
           join tenant_deks k on k.tenant_id = c.tenant_id and k.id = c.dek_id
          where c.tenant_id = $1 and c.call_id = $2 and c.ends_at > $3 limit 1",
        tenant,
        call.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| SealedContent {
        ends_at: row.ends_at,
        key_id: row.id,
        wrapped_key: row.wrapped,
        sealed: row.sealed,
    }))
}

/// The capture policy of a server, as it stands in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureRow {
    /// The word of the policy.
    pub policy: String,
    /// The share of a sample.
    pub percent: Option<i16>,
    /// Days for which content is kept.
    pub days: i16,
}

/// The policy of a server; `None` if there is no such server.
pub async fn policy(
    tx: &mut TenantTx,
    server: ServerId,
) -> Result<Option<CaptureRow>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        CaptureRow,
        "select capture as policy, capture_percent as percent, capture_days as days from servers
          where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        server.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?)
}

/// Sets the policy of a server. False if there is no such server.
pub async fn set_policy(
    tx: &mut TenantTx,
    server: ServerId,
    row: &CaptureRow,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update servers set capture = $3, capture_percent = $4, capture_days = $5
          where tenant_id = $1 and id = $2 and deleted_at is null",
        tenant,
        server.uuid(),
        row.policy,
        row.percent,
        row.days,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes the contents of a server's calls before a time: what a person wants to be gone sooner
/// than its partition. Returns how many.
pub async fn delete_before(
    tx: &mut TenantTx,
    server: ServerId,
    before: Timestamp,
) -> Result<u64, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from call_log_contents where tenant_id = $1 and server_id = $2 and at < $3",
        tenant,
        server.uuid(),
        before,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// When a content ends that is kept for so many days.
pub fn end_of(at: Timestamp, days: i16) -> Timestamp {
    at + Duration::days(i64::from(days))
}
