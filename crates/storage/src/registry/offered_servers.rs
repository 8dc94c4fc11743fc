//! The server and tools that a grant would give access to, as the consent page shows them
//! (REVIEW-S-8).

use std::str::FromStr as _;

use portolan_model::{id::TenantId, registry::ServerStatus};

use crate::{StorageError, SystemTx};

/// The most tools that are listed.
const MOST: i64 = 2000;

/// A server of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedServer {
    /// What people call it.
    pub name: String,
    /// Whether it answers.
    pub status: ServerStatus,
}

/// A tool of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// The name clients call it by.
    pub name: String,
    /// MCP `readOnlyHint`: it changes nothing. False if nothing is said.
    pub reads_only: bool,
    /// MCP `destructiveHint`: it may delete or overwrite. True if nothing is said, as MCP has it.
    pub destructive: bool,
}

/// The tenant's server of this slug; `None` if there is none, or it was deleted.
pub async fn find(
    tx: &mut SystemTx,
    tenant: TenantId,
    slug: &str,
) -> Result<Option<OfferedServer>, StorageError> {
    let row = sqlx::query!(
        "select name, status from servers where tenant_id = $1 and slug = $2 and deleted_at is null",
        tenant.uuid(),
        slug,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(OfferedServer {
            name: row.name,
            status: ServerStatus::from_str(&row.status).map_err(|_| {
                StorageError::Inconsistent {
                    table: "servers",
                    column: "status",
                }
            })?,
        })
    })
    .transpose()
}

/// Lists the enabled tools of one server, or of every published server of the tenant. Tools that
/// can change data come first, then by name; at most two thousand.
pub async fn tools(
    tx: &mut SystemTx,
    tenant: TenantId,
    slug: Option<&str>,
) -> Result<Vec<OfferedTool>, StorageError> {
    Ok(sqlx::query_as!(
        OfferedTool,
        r#"select o.name as "name!", o.reads_only as "reads_only!", o.destructive as "destructive!"
           from (
             select distinct u.published_name as name,
               coalesce(t.annotations->'readOnlyHint' = 'true', false) as reads_only,
               coalesce(t.annotations->'destructiveHint' <> 'false', true) as destructive, t.id
             from servers v
               join server_tools u on u.tenant_id = v.tenant_id and u.server_id = v.id
               join tools t on t.tenant_id = u.tenant_id and t.id = u.tool_id and t.enabled and t.state = 'active'
               join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id and s.deleted_at is null
             where v.tenant_id = $1 and v.deleted_at is null and (v.slug = $2 or ($2::text is null and v.status = 'published'))
           ) o
           order by o.reads_only, o.name collate "C" limit $3"#,
        tenant.uuid(),
        slug,
        MOST,
    )
    .fetch_all(tx.connection())
    .await?)
}
