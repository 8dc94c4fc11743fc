//! The last use of each grant: its last request at an MCP endpoint, to the minute. Nodes write it
//! in batches.

use portolan_model::{Timestamp, id::GrantId};

use crate::{StorageError, TenantTx};

/// Records the last use of many grants in one statement. Ids of deleted grants, API keys and
/// service accounts are ignored.
pub async fn note(tx: &mut TenantTx, uses: &[(GrantId, Timestamp)]) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let (grants, times): (Vec<_>, Vec<_>) = uses.iter().map(|(id, at)| (id.uuid(), *at)).unzip();
    // Write in the order of ids, so that two nodes with the same rows do not deadlock. Each row
    // occurs once: a statement changes no row twice.
    sqlx::query!(
        "insert into grant_uses (tenant_id, grant_id, used_at)
         select g.tenant_id, g.id, max(u.at) from unnest($2::uuid[], $3::timestamptz[]) as u(id, at)
           join grants g on g.tenant_id = $1 and g.id = u.id
         group by g.tenant_id, g.id order by g.id
         on conflict (tenant_id, grant_id) do update set used_at = greatest(grant_uses.used_at, excluded.used_at)",
        tenant,
        &grants,
        &times,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
