//! The size of tool definitions, as a list of tools has them.

use portolan_model::{id::ToolId, registry::ToolState};

use crate::{StorageError, TenantTx};

/// A tool, with the size that it adds to a list.
#[derive(Debug, Clone)]
pub struct ToolWeight {
    /// The tool.
    pub id: ToolId,
    /// Its own name.
    pub name: String,
    /// For people.
    pub title: String,
    /// The description that models read.
    pub description: String,
    /// METHOD and path template.
    pub operation_key: String,
    /// Can it be published?
    pub enabled: bool,
    /// Is it still in its document?
    pub state: ToolState,
    /// Bytes of its definition: texts, schemas and annotations.
    pub bytes: i64,
}

/// Weighs those of the tools that exist, in no particular order.
pub async fn weigh(tx: &mut TenantTx, ids: &[ToolId]) -> Result<Vec<ToolWeight>, StorageError> {
    let tenant = tx.tenant().uuid();
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query!(
        r#"select t.id, coalesce(t.name_override, t.name) as "name!", coalesce(t.title_override, t.title) as "title!",
                  coalesce(t.description_override, t.description) as "description!", t.operation_key, t.enabled, t.state,
                  (octet_length(coalesce(t.name_override, t.name)) + octet_length(coalesce(t.title_override, t.title))
                    + octet_length(coalesce(t.description_override, t.description)) + octet_length(t.input_schema::text)
                    + coalesce(octet_length(t.output_schema::text), 0) + octet_length(t.annotations::text))::bigint as "bytes!"
           from tools t join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
           where t.tenant_id = $1 and t.id = any($2) and s.deleted_at is null"#,
        tenant,
        &ids,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ToolWeight {
                id: ToolId::from_uuid(row.id),
                name: row.name,
                title: row.title,
                description: row.description,
                operation_key: row.operation_key,
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| StorageError::Inconsistent {
                    table: "tools",
                    column: "state",
                })?,
                bytes: row.bytes,
            })
        })
        .collect()
}
