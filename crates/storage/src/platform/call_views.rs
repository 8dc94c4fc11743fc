//! Saved views of the log of calls (CAPTURE-10).

use portolan_model::{
    Timestamp,
    id::{CallViewId, UserId},
};
use serde_json::Value;

use crate::{StorageError, TenantTx};

/// A saved view.
#[derive(Debug, Clone)]
pub struct CallView {
    /// Id.
    pub id: CallViewId,
    /// The person who saved it.
    pub user: UserId,
    /// Its name, unique for the person.
    pub name: String,
    /// The filters, by name.
    pub filter: Value,
    /// All members see it.
    pub is_shared: bool,
}

/// The content of a view.
#[derive(Debug, Clone, Copy)]
pub struct NewCallView<'a> {
    /// The person who saves it.
    pub user: UserId,
    /// Name.
    pub name: &'a str,
    /// The filters, by name.
    pub filter: &'a Value,
    /// All members see it.
    pub is_shared: bool,
}

/// The views that a person sees: their own and the shared ones, by name.
pub async fn list(tx: &mut TenantTx, user: UserId) -> Result<Vec<CallView>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        "select id, user_id, name, filter, is_shared from call_views
          where tenant_id = $1 and (user_id = $2 or is_shared) order by lower(name), id",
        tenant,
        user.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| CallView {
            id: row.id.into(),
            user: row.user_id.into(),
            name: row.name,
            filter: row.filter,
            is_shared: row.is_shared,
        })
        .collect())
}

/// Number of views that a person keeps in the workspace.
pub async fn count(tx: &mut TenantTx, user: UserId) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from call_views where tenant_id = $1 and user_id = $2"#,
        tenant,
        user.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Writes one. A name that is taken violates `call_views_name`.
pub async fn insert(
    tx: &mut TenantTx,
    id: CallViewId,
    new: &NewCallView<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into call_views (tenant_id, id, user_id, name, filter, is_shared, created_at, changed_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
        tenant,
        id.uuid(),
        new.user.uuid(),
        new.name,
        new.filter,
        new.is_shared,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Replaces one. False if the person has no such view.
pub async fn replace(
    tx: &mut TenantTx,
    id: CallViewId,
    new: &NewCallView<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update call_views set name = $4, filter = $5, is_shared = $6, changed_at = $7
          where tenant_id = $1 and id = $2 and user_id = $3",
        tenant,
        id.uuid(),
        new.user.uuid(),
        new.name,
        new.filter,
        new.is_shared,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Whose views may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletes {
    /// Those of the person.
    Own,
    /// Shared ones of others too.
    Shared,
}

/// Deletes one, and returns its name. `None` if there is none that the person may delete.
pub async fn delete(
    tx: &mut TenantTx,
    id: CallViewId,
    user: UserId,
    deletes: Deletes,
) -> Result<Option<String>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        "delete from call_views where tenant_id = $1 and id = $2 and (user_id = $3 or ($4 and is_shared)) returning name",
        tenant,
        id.uuid(),
        user.uuid(),
        deletes == Deletes::Shared,
    )
    .fetch_optional(tx.connection())
    .await?)
}
