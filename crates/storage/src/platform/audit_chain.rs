//! Reads the hash chain over the audit log. The database writes the chain when a transaction
//! commits. [`portolan_model::audit_chain`] checks it.

use portolan_model::{
    Timestamp,
    audit_chain::Link,
    id::{AuditId, TenantId},
};
use time::macros::format_description;
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// A chain and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Whose; `None` is the platform's.
    pub tenant: Option<TenantId>,
    /// The tenant's slug, of former times if it was deleted.
    pub slug: Option<String>,
    /// The number of its last entry.
    pub length: i64,
}

/// Every chain, the platform's first; only that of `tenant` if one is given.
pub async fn list(tx: &mut SystemTx, tenant: Option<TenantId>) -> Result<Vec<Chain>, StorageError> {
    let rows = sqlx::query!(
        r#"select c.tenant_id, max(c.seq) as "length!",
             (select s.slug from tenant_slugs s where s.tenant_id = c.tenant_id order by s.state <> 'primary', s.since limit 1) as slug
           from audit_chain c where ($1::uuid is null or c.tenant_id = $1)
           group by c.tenant_id order by c.tenant_id nulls first"#,
        tenant.map(TenantId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Chain {
            tenant: row.tenant_id.map(TenantId::from_uuid),
            slug: row.slug,
            length: row.length,
        })
        .collect())
}

/// The places of a chain behind `after`, in order. `None` is the platform's chain.
pub async fn links(
    tx: &mut SystemTx,
    tenant: Option<TenantId>,
    after: i64,
    limit: i64,
) -> Result<Vec<Link>, StorageError> {
    let rows = sqlx::query!(
        r#"select c.seq, c.event_id, c.previous, c.hash, e.id as "id?", e.at as "at?", e.tenant_id, e.actor_kind as "actor_kind?", e.actor_id,
             e.action as "action?", e.target_kind as "target_kind?", e.target_id as "target_id?", e.outcome as "outcome?", e.request_id,
             e.ip_block, e.detail::text as detail
           from audit_chain c left join audit_events e on e.id = c.event_id
           where ($1::uuid is null and c.tenant_id is null or c.tenant_id = $1) and c.seq > $2 order by c.seq limit $3"#,
        tenant.map(TenantId::uuid),
        after,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            let entry = match (row.id, row.at) {
                (Some(id), Some(at)) => Some(entry_text(&[
                    Some(row.seq.to_string()),
                    Some(id.to_string()),
                    Some(instant(at)?),
                    row.tenant_id.map(|id: Uuid| id.to_string()),
                    row.actor_kind,
                    row.actor_id.map(|id| id.to_string()),
                    row.action,
                    row.target_kind,
                    row.target_id,
                    row.outcome,
                    row.request_id,
                    row.ip_block,
                    row.detail,
                ])?),
                _ => None,
            };
            Ok(Link {
                seq: row.seq,
                event: AuditId::from_uuid(row.event_id),
                previous: row.previous,
                hash: row.hash,
                entry,
            })
        })
        .collect()
}

/// Counts the entries that stand in no chain, by tenant. A count above zero means that an entry was
/// written around the chain.
pub async fn unchained(
    tx: &mut SystemTx,
    tenant: Option<TenantId>,
) -> Result<Vec<(Option<TenantId>, i64)>, StorageError> {
    let rows = sqlx::query!(
        r#"select e.tenant_id, count(*) as "count!" from audit_events e
           where ($1::uuid is null or e.tenant_id = $1) and not exists (select 1 from audit_chain c where c.event_id = e.id)
           group by e.tenant_id order by e.tenant_id nulls first"#,
        tenant.map(TenantId::uuid),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.tenant_id.map(TenantId::from_uuid), row.count))
        .collect())
}

/// Returns the hashed text: a compact JSON array, the same as the database function
/// `audit_entry_text` makes. It is made here so that a check does not depend on the database's own
/// function.
fn entry_text(fields: &[Option<String>]) -> Result<String, StorageError> {
    serde_json::to_string(fields).map_err(|_| StorageError::Inconsistent {
        table: "audit_events",
        column: "detail",
    })
}

fn instant(at: Timestamp) -> Result<String, StorageError> {
    at.to_offset(time::UtcOffset::UTC)
        .format(format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
        ))
        .map_err(|_| StorageError::Inconsistent {
            table: "audit_events",
            column: "at",
        })
}
