//! Who fetches a client's metadata document now: one in the whole cluster (AUTH-C2, CASE-85).

use std::time::Duration;

use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// Claims the fetch of `url` for `within`, by the database's clock. False while another caller
/// holds the claim. One of several simultaneous callers wins. A claim expires, so a holder that
/// dies is replaced.
pub async fn claim(
    tx: &mut SystemTx,
    url: &str,
    holder: Uuid,
    within: Duration,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into client_fetches (url, holder, deadline) values ($1, $2, now() + $3 * interval '1 second')
         on conflict (url) do update set holder = excluded.holder, deadline = excluded.deadline where client_fetches.deadline < now()",
        url,
        holder,
        within.as_secs_f64(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Returns whether no live claim on `url` exists. Writes nothing.
pub async fn is_free(tx: &mut SystemTx, url: &str) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select not exists (select 1 from client_fetches where url = $1 and deadline >= now()) as "free!""#,
        url
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Gives the fetch back, whatever came of it.
pub async fn release(tx: &mut SystemTx, url: &str, holder: Uuid) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from client_fetches where url = $1 and holder = $2",
        url,
        holder
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
