//! Tools: operations of a source, as the tenant wants them shown.

use portolan_model::{
    Timestamp,
    id::{SourceId, ToolId},
    registry::ToolState,
};
use serde_json::Value;

use crate::{
    StorageError, TenantTx,
    registry::written::{self, Written},
};

/// A tool with everything about it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Id.
    pub id: ToolId,
    /// Its source.
    pub source_id: SourceId,
    /// The source's name.
    pub source_name: String,
    /// METHOD and path template.
    pub operation_key: String,
    /// Name, title and description as imported.
    pub original: Wording,
    /// The tenant's replacements.
    pub overrides: Overrides,
    /// Can it be published?
    pub enabled: bool,
    /// Is it still in the document?
    pub state: ToolState,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// MCP annotations.
    pub annotations: Value,
    /// `http_tools::RequestPlan`.
    pub plan: Value,
    /// The form, for a hand-made tool.
    pub definition: Option<Value>,
    /// The definition as an MCP server wrote it, if it is of one and a release that keeps it has
    /// seen it.
    pub written: Option<String>,
    /// Notes of the import.
    pub warnings: Vec<String>,
    /// Slugs of the servers that publish it.
    pub used_by: Vec<String>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Tool {
    /// The name that is shown and, unless a server says otherwise, published.
    pub fn name(&self) -> &str {
        self.overrides
            .name
            .as_deref()
            .unwrap_or(&self.original.name)
    }
    /// The title that is shown.
    pub fn title(&self) -> &str {
        self.overrides
            .title
            .as_deref()
            .unwrap_or(&self.original.title)
    }
    /// The description that models read.
    pub fn description(&self) -> &str {
        self.overrides
            .description
            .as_deref()
            .unwrap_or(&self.original.description)
    }
}

/// Name, title and description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// For calls.
    pub name: String,
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
}

/// A tenant's replacements for the wording of the import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Instead of the name.
    pub name: Option<String>,
    /// Instead of the title.
    pub title: Option<String>,
    /// Instead of the description.
    pub description: Option<String>,
}

impl Overrides {
    /// Has the tenant written anything?
    pub fn any(&self) -> bool {
        self.name.is_some() || self.title.is_some() || self.description.is_some()
    }
}

/// A tool as an import or a form made it.
#[derive(Debug, Clone)]
pub struct Imported {
    /// METHOD and path template.
    pub operation_key: String,
    /// Wording.
    pub wording: Wording,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// MCP annotations.
    pub annotations: Value,
    /// `http_tools::RequestPlan`.
    pub plan: Value,
    /// The form, for a hand-made tool.
    pub definition: Option<Value>,
    /// The definition as an MCP server wrote it, an object, if it is of one.
    pub written: Option<String>,
    /// Notes of the import.
    pub warnings: Vec<String>,
}

/// Adds tools of a source in one statement. `enabled` says for each whether it can be published.
pub async fn insert_many(
    tx: &mut TenantTx,
    source: SourceId,
    tools: &[(Imported, bool)],
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let rows: Vec<Value> = tools
        .iter()
        .map(|(tool, enabled)| {
            serde_json::json!({
                "id": ToolId::generate().uuid(), "operation_key": tool.operation_key, "name": tool.wording.name, "title": tool.wording.title,
                "description": tool.wording.description, "enabled": enabled, "input_schema": tool.input_schema,
                "output_schema": tool.output_schema, "annotations": tool.annotations, "plan": tool.plan,
                "definition": tool.definition, "warnings": tool.warnings, "written": written::of_tool(tool),
            })
        })
        .collect();
    sqlx::query!(
        "insert into tools (tenant_id, id, source_id, operation_key, name, title, description, enabled, input_schema, output_schema,
                            annotations, plan, definition, warnings, written, created_at, updated_at)
         select $1, r.id, $2, r.operation_key, r.name, r.title, r.description, r.enabled, r.input_schema,
                nullif(r.output_schema, 'null'::jsonb), r.annotations, r.plan, nullif(r.definition, 'null'::jsonb), r.warnings,
                r.written::json, $4, $4
         from jsonb_to_recordset($3) as r(id uuid, operation_key text, name text, title text, description text, enabled boolean,
              input_schema jsonb, output_schema jsonb, annotations jsonb, plan jsonb, definition jsonb, warnings jsonb, written text)",
        tenant,
        source.uuid(),
        Value::Array(rows),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Gives a tool a new import's content; the tenant's overrides and choice stay.
pub async fn replace(
    tx: &mut TenantTx,
    source: SourceId,
    tool: &Imported,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tools set name = $4, title = $5, description = $6, input_schema = $7, output_schema = $8, annotations = $9, plan = $10,
                          definition = $11, warnings = $12, state = 'active', updated_at = $13, written = $14::text::json
         where tenant_id = $1 and source_id = $2 and operation_key = $3",
        tenant,
        source.uuid(),
        tool.operation_key,
        tool.wording.name,
        tool.wording.title,
        tool.wording.description,
        tool.input_schema,
        tool.output_schema,
        tool.annotations,
        tool.plan,
        tool.definition,
        serde_json::json!(tool.warnings),
        now,
        written::of_tool(tool),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives a hand-made tool, found by its id, a new definition, another operation included.
pub async fn redefine(
    tx: &mut TenantTx,
    id: ToolId,
    tool: &Imported,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tools set operation_key = $3, name = $4, title = $5, description = $6, input_schema = $7, output_schema = $8, annotations = $9,
                          plan = $10, definition = $11, warnings = $12, updated_at = $13, written = $14::text::json
         where tenant_id = $1 and id = $2 and definition is not null",
        tenant,
        id.uuid(),
        tool.operation_key,
        tool.wording.name,
        tool.wording.title,
        tool.wording.description,
        tool.input_schema,
        tool.output_schema,
        tool.annotations,
        tool.plan,
        tool.definition,
        serde_json::json!(tool.warnings),
        now,
        written::of_tool(tool),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Marks tools whose operations are gone from the document. They are no longer published, but the
/// tenant's wording is kept.
pub async fn mark_removed(
    tx: &mut TenantTx,
    source: SourceId,
    keys: &[String],
    now: Timestamp,
) -> Result<u64, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tools set state = 'removed', updated_at = $4
         where tenant_id = $1 and source_id = $2 and operation_key = any($3) and state = 'active'",
        tenant,
        source.uuid(),
        keys,
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Which tools a list shows.
#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    /// Only this tool.
    pub id: Option<ToolId>,
    /// Only of this source.
    pub source: Option<SourceId>,
    /// Only with this shown name, in letters of either case.
    pub name: Option<&'a str>,
    /// Only with this text in name, title, description or operation.
    pub query: Option<&'a str>,
    /// Only enabled, or only disabled ones.
    pub enabled: Option<bool>,
    /// Only after this (name, id), in the order of the list.
    pub after: Option<(&'a str, ToolId)>,
}

/// The pattern of `ilike` for texts that contain this one.
fn containing(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    format!("%{escaped}%")
}

/// Tools in the order of their shown names, at most `limit`.
///
/// The servers of a tool are looked up by their key for each row. A join lets a planner whose
/// statistics are older than an import read every server for every tool.
pub async fn list(
    tx: &mut TenantTx,
    filter: &Filter<'_>,
    limit: i64,
) -> Result<Vec<Tool>, StorageError> {
    let tenant = tx.tenant().uuid();
    let pattern = filter.query.map(containing);
    let (after_name, after_id) = filter
        .after
        .map_or((None, None), |(name, id)| (Some(name), Some(id.uuid())));
    let rows = sqlx::query!(
        r#"select t.id, t.source_id, s.name as source_name, t.operation_key, t.name, t.title, t.description, t.name_override, t.title_override,
                  t.description_override, t.enabled, t.state, t.input_schema, t.output_schema, t.annotations, t.plan, t.definition, t.warnings,
                  t.updated_at, t.written::text as written, (t.written->'upstream')::text as definition_of_upstream,
                  array(select used.slug
                          from (select (select v.slug from servers v
                                         where v.tenant_id = u.tenant_id and v.id = u.server_id and v.deleted_at is null) as slug
                                  from server_tools u where u.tenant_id = t.tenant_id and u.tool_id = t.id) as used
                         where used.slug is not null order by used.slug) as "used_by!"
           from tools t join sources s on s.tenant_id = t.tenant_id and s.id = t.source_id
           where t.tenant_id = $1 and s.deleted_at is null
             and ($2::uuid is null or t.id = $2)
             and ($3::uuid is null or t.source_id = $3)
             and ($4::text is null or coalesce(t.name_override, t.name) ilike $4 or coalesce(t.title_override, t.title) ilike $4
                  or coalesce(t.description_override, t.description) ilike $4 or t.operation_key ilike $4)
             and ($5::boolean is null or t.enabled = $5)
             and ($6::text is null or (coalesce(t.name_override, t.name), t.id) > ($6, $7::uuid))
             and ($8::text is null or lower(coalesce(t.name_override, t.name)) = lower($8))
           order by coalesce(t.name_override, t.name), t.id limit $9"#,
        tenant,
        filter.id.map(ToolId::uuid),
        filter.source.map(SourceId::uuid),
        pattern,
        filter.enabled,
        after_name,
        after_id,
        filter.name,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    let inconsistent = |column| StorageError::Inconsistent {
        table: "tools",
        column,
    };
    rows.into_iter()
        .map(|row| {
            let mut written = Written::read(row.written.as_deref());
            Ok(Tool {
                id: ToolId::from_uuid(row.id),
                source_id: SourceId::from_uuid(row.source_id),
                source_name: row.source_name,
                operation_key: row.operation_key,
                original: Wording {
                    name: row.name,
                    title: row.title,
                    description: row.description,
                },
                overrides: Overrides {
                    name: row.name_override,
                    title: row.title_override,
                    description: row.description_override,
                },
                enabled: row.enabled,
                state: row.state.parse().map_err(|_| inconsistent("state"))?,
                input_schema: written.object("inputSchema", row.input_schema),
                output_schema: row
                    .output_schema
                    .map(|schema| written.object("outputSchema", schema)),
                annotations: written.object("annotations", row.annotations),
                plan: written.ours("plan", row.plan),
                definition: row
                    .definition
                    .map(|definition| written.ours("definition", definition)),
                written: row.definition_of_upstream,
                warnings: serde_json::from_value(row.warnings)
                    .map_err(|_| inconsistent("warnings"))?,
                used_by: row.used_by,
                updated_at: row.updated_at,
            })
        })
        .collect()
}

/// One tool.
pub async fn find(tx: &mut TenantTx, id: ToolId) -> Result<Option<Tool>, StorageError> {
    Ok(list(
        tx,
        &Filter {
            id: Some(id),
            ..Filter::default()
        },
        1,
    )
    .await?
    .pop())
}

/// Sets the overrides and the choice of a tool. The caller has read the row in the same
/// transaction.
pub async fn customise(
    tx: &mut TenantTx,
    id: ToolId,
    overrides: &Overrides,
    enabled: bool,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "update tools set name_override = $3, title_override = $4, description_override = $5, enabled = $6, updated_at = $7
         where tenant_id = $1 and id = $2",
        tenant,
        id.uuid(),
        overrides.name,
        overrides.title,
        overrides.description,
        enabled,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes a hand-made tool.
pub async fn delete_hand_made(tx: &mut TenantTx, id: ToolId) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "delete from tools where tenant_id = $1 and id = $2 and definition is not null",
        tenant,
        id.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
