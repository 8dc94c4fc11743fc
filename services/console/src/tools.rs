//! Tools: listed, renamed, enabled and disabled. Tools that are described by hand are in
//! [`super::hand_made_tools`].

use axum::{Json, extract::State};
use portolan_http_tools::naming;
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind, ToolId, ToolKind},
    member::Action,
    registry::ToolState,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    TenantTx,
    registry::{
        published_items::{self, PublishedItem as _},
        tools::{self, Filter, Overrides, Tool},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    change::Editor,
    input::{JsonBody, PathId, QueryParameters, given},
    listing::{Listing, Pages},
    source_rows::found,
    workspace::Workspace,
};

/// Tools of one page.
const PAGE: usize = 100;

/// Name of the list in its cursors.
const LIST: &str = "tools";

/// Most tools of one request to enable or disable.
const MOST_SWITCHED: usize = 3_000;

/// A tool in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolSummary {
    #[schema(value_type = String, example = "tol_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ToolId,
    #[schema(value_type = String)]
    source_id: SourceId,
    source_name: String,
    /// Its name for AI clients, unless a server publishes it under another.
    name: String,
    title: String,
    description: String,
    method: String,
    path: String,
    enabled: bool,
    #[schema(value_type = ToolStateName)]
    state: ToolState,
    annotations: AnnotationsView,
    /// Slugs of the servers that offer it.
    used_by_servers: Vec<String>,
    /// True if the workspace set its own name, title or description.
    customised: bool,
}

/// Whether a tool's operation is still in its document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ToolState)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::ToolState"
)]
pub(crate) enum ToolStateName {
    Active,
    Removed,
}

/// Hints about a tool's effects, as AI clients receive them.
#[expect(clippy::struct_excessive_bools, reason = "the four hints of MCP")]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = ToolAnnotations)]
pub struct AnnotationsView {
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

/// A tool with all details.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub struct ToolView {
    #[serde(flatten)]
    summary: ToolSummary,
    /// JSON Schema 2020-12 of the arguments.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    output_schema: Option<Value>,
    /// Imported texts.
    original: OriginalWording,
    /// The definition of a tool that is described by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = crate::hand_made_forms::HandMadeForm, nullable = false)]
    definition: Option<Value>,
    /// Repairs and omissions of the import.
    warnings: Vec<String>,
}

/// Name, title and description as imported.
#[derive(Debug, Serialize, ToSchema)]
pub struct OriginalWording {
    name: String,
    title: String,
    description: String,
}

/// Splits `GET /pets#name` into method and path. Keys of tools described by hand carry the name, so
/// that two of them may use one address.
pub(crate) fn method_and_path(key: &str) -> (String, String) {
    let Some((method, path)) = key.split_once(' ').filter(|(method, path)| {
        path.starts_with('/') && method.bytes().all(|byte| byte.is_ascii_uppercase())
    }) else {
        // The key is an upstream server's own name for its tool.
        return ("MCP".to_owned(), key.to_owned());
    };
    (
        method.to_owned(),
        path.split('#').next().unwrap_or_default().to_owned(),
    )
}

fn summary(tool: &Tool) -> ToolSummary {
    let (method, path) = method_and_path(&tool.operation_key);
    ToolSummary {
        id: tool.id,
        source_id: tool.source_id,
        source_name: tool.source_name.clone(),
        name: tool.name().to_owned(),
        title: tool.title().to_owned(),
        description: tool.description().to_owned(),
        method,
        path,
        enabled: tool.enabled,
        state: tool.state,
        annotations: serde_json::from_value(tool.annotations.clone()).unwrap_or_default(),
        used_by_servers: tool.used_by.clone(),
        customised: tool.overrides.any(),
    }
}

pub(crate) fn view(tool: Tool) -> ToolView {
    ToolView {
        summary: summary(&tool),
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        original: OriginalWording {
            name: tool.original.name,
            title: tool.original.title,
            description: tool.original.description,
        },
        definition: tool.definition,
        warnings: tool.warnings,
    }
}

/// The tool, or 404.
pub(crate) async fn found_tool(tx: &mut TenantTx, id: ToolId) -> Result<Tool, ConsoleError> {
    tools::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this tool"))
}

/// The tools to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ToolQuery {
    /// Words in name, title, description, method or path.
    query: Option<String>,
    /// Only enabled ones, or only disabled ones.
    enabled: Option<bool>,
    /// Only of this source.
    #[param(value_type = Option<String>)]
    source: Option<SourceId>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The tools of a source to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SourceToolQuery {
    /// Words in name, title, description, method or path.
    query: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

async fn page(
    state: &AuthState,
    workspace: &Workspace,
    tx: &mut TenantTx,
    query: ToolQuery,
) -> Result<Listing<ToolSummary>, ConsoleError> {
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let after = pages.position(query.cursor.as_deref(), position)?;
    let words = query
        .query
        .as_deref()
        .map(str::trim)
        .filter(|words| !words.is_empty());
    let filter = Filter {
        source: query.source,
        query: words,
        enabled: query.enabled,
        after: after.as_ref().map(|(name, id)| (name.as_str(), *id)),
        ..Filter::default()
    };
    let mut found = tools::list(tx, &filter, pages.limit()).await?;
    let next_cursor = pages.cut(&mut found, |last| {
        [last.id.uuid().as_bytes().as_slice(), last.name().as_bytes()].concat()
    });
    Ok(Listing {
        items: found.iter().map(summary).collect(),
        next_cursor,
    })
}

/// The name and id of a cursor.
fn position(bytes: &[u8]) -> Option<(String, ToolId)> {
    let (id, name) = bytes.split_at_checked(16)?;
    let name = String::from_utf8(name.to_vec()).ok()?;
    Some((name, ToolId::from_uuid(Uuid::from_slice(id).ok()?)))
}

/// Tools of all sources, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/tools", tag = "tools", params(("ws" = String, Path, description = "Slug"), ToolQuery),
    responses((status = 200, description = "A page of tools.", body = Listing<ToolSummary>)))]
pub(crate) async fn list_tools(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<ToolQuery>,
) -> Result<Json<Listing<ToolSummary>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(page(&state, &workspace, &mut tx, query).await?))
}

/// Tools of one source, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/sources/{id}/tools", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source"), SourceToolQuery),
    responses((status = 200, description = "A page of tools.", body = Listing<ToolSummary>)))]
pub(crate) async fn list_source_tools(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
    QueryParameters(query): QueryParameters<SourceToolQuery>,
) -> Result<Json<Listing<ToolSummary>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    let query = ToolQuery {
        query: query.query,
        enabled: None,
        source: Some(id),
        cursor: query.cursor,
    };
    Ok(Json(page(&state, &workspace, &mut tx, query).await?))
}

/// One tool.
#[utoipa::path(get, path = "/workspaces/{ws}/tools/{id}", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Tool")),
    responses((status = 200, description = "The tool.", body = ToolView)))]
pub(crate) async fn show_tool(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ToolKind>,
) -> Result<Json<ToolView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(view(found_tool(&mut tx, id).await?)))
}

/// A change of a tool: absent members stay, null restores the imported text.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ToolChange {
    /// 1 to 64 letters, digits, `_` or `-`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Option<Option<String>>,
    /// Up to 120 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// Up to 4 000 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

/// Checks a person's text: trimmed, not empty, bounded, without control characters other than line
/// ends and tabs.
pub(crate) fn wording(
    field: &'static str,
    text: &str,
    most: usize,
) -> Result<String, ConsoleError> {
    let text = text.trim();
    let is_sound = !text.is_empty()
        && text.chars().count() <= most
        && !text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    if is_sound {
        Ok(text.to_owned())
    } else {
        Err(ConsoleError::invalid(
            "text_invalid",
            format!("Give 1 to {most} characters, or leave it empty to take the imported text."),
        )
        .field(field))
    }
}

pub(crate) fn tool_name(text: &str) -> Result<String, ConsoleError> {
    let name = text.trim();
    if naming::is_valid(name) {
        Ok(name.to_owned())
    } else {
        Err(ConsoleError::invalid("name_invalid", "A tool's name has 1 to 64 letters, digits, `_` or `-`; that is what every AI client accepts.")
            .field("name"))
    }
}

/// Changes a tool's name or texts, or enables or disables it. Servers that offer it under its old
/// name follow.
#[utoipa::path(patch, path = "/workspaces/{ws}/tools/{id}", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Tool")),
    request_body = ToolChange, responses((status = 200, description = "Changed.", body = ToolView)))]
pub(crate) async fn change_tool(
    editor: Editor,
    PathId(id): PathId<ToolKind>,
    JsonBody(request): JsonBody<ToolChange>,
) -> Result<Json<ToolView>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let before = found_tool(&mut tx, id).await?;
    let mut overrides = before.overrides.clone();
    // An empty field of a form means the imported text, as null does.
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    if let Some(name) = request.name {
        overrides.name = filled(name)
            .map(|name| tool_name(&name))
            .transpose()?
            .filter(|name| *name != before.original.name);
    }
    if let Some(title) = request.title {
        overrides.title = filled(title)
            .map(|text| wording("title", &text, 120))
            .transpose()?;
    }
    if let Some(description) = request.description {
        overrides.description = filled(description)
            .map(|text| wording("description", &text, 4_000))
            .transpose()?;
    }
    let enabled = request.enabled.unwrap_or(before.enabled);
    customise(&mut tx, &before, &overrides, enabled, editor.now).await?;
    let new_name = overrides.name.as_ref().unwrap_or(&before.original.name);
    let changed = Overrides {
        name: (before.overrides.name != overrides.name).then(|| new_name.clone()),
        title: (before.overrides.title != overrides.title).then(String::new),
        description: (before.overrides.description != overrides.description).then(String::new),
    };
    let detail = json!({ "name": changed.name, "title_changed": changed.title.is_some(),
        "description_changed": changed.description.is_some(), "enabled": enabled });
    let tool = found_tool(&mut tx, id).await?;
    editor
        .commit(tx, "tool.changed", "tool", id, detail)
        .await?;
    Ok(Json(view(tool)))
}

/// Stores checked replacements and the switch of a tool. Servers that offer it under its old name
/// follow.
pub(crate) async fn customise(
    tx: &mut TenantTx,
    before: &Tool,
    overrides: &Overrides,
    enabled: bool,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    tools::customise(tx, before.id, overrides, enabled, now).await?;
    let new_name = overrides.name.as_ref().unwrap_or(&before.original.name);
    if before.name() == new_name {
        return Ok(());
    }
    let renamed = published_items::rename(tx, before.id, before.name(), new_name).await;
    renamed.map(drop).map_err(|error| {
        if error.is_conflict_on(ToolKind::CLASH) {
            ConsoleError::conflict(
                "name_clash",
                format!("A server that offers this tool has another one called `{new_name}`."),
            )
            .field("name")
            .details(json!({ "names": [new_name] }))
        } else {
            error.into()
        }
    })
}

/// The tools to enable or disable.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SwitchTools {
    /// Up to 3 000.
    #[schema(value_type = Vec<String>)]
    ids: Vec<ToolId>,
    enabled: bool,
}

/// The tools that were enabled or disabled.
#[derive(Debug, Serialize, ToSchema)]
pub struct Switched {
    /// Number of tools whose state changed.
    changed: usize,
    /// Their ids, with which a client can undo the change.
    #[schema(value_type = Vec<String>)]
    ids: Vec<ToolId>,
}

/// Enables or disables many tools.
#[utoipa::path(post, path = "/workspaces/{ws}/tools/enabled", tag = "tools", params(("ws" = String, Path, description = "Slug")),
    request_body = SwitchTools, responses((status = 200, description = "Switched.", body = Switched)))]
pub(crate) async fn switch_tools(
    editor: Editor,
    JsonBody(request): JsonBody<SwitchTools>,
) -> Result<Json<Switched>, ConsoleError> {
    if request.ids.len() > MOST_SWITCHED {
        return Err(ConsoleError::invalid(
            "too_many",
            format!("Switch up to {MOST_SWITCHED} tools at once."),
        )
        .field("ids"));
    }
    let mut tx = editor.begin().await?;
    let ids =
        published_items::set_enabled(&mut tx, &request.ids, request.enabled, editor.now).await?;
    if !ids.is_empty() {
        let detail = json!({ "enabled": request.enabled, "tools": ids.len() });
        editor
            .commit(tx, "tools.switched", "tenant", editor.workspace.id, detail)
            .await?;
    }
    Ok(Json(Switched {
        changed: ids.len(),
        ids,
    }))
}
