//! Tools that are described by hand, for an API without an OpenAPI document.

use axum::Json;
use http::StatusCode;
use portolan_http_tools::{HandMade, ToolDraft};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind, ToolId, ToolKind},
    registry::SourceKind,
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        published_items::{self, PublishedItem as _},
        tools::{self, Filter, Imported, Tool},
    },
};
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    change::Editor,
    hand_made_forms::HandMadeForm,
    input::{JsonBody, PathId},
    source_rows::{found, imported},
    tools::{ToolView, found_tool, view},
};

/// The definition, with the switch that is not part of it.
#[derive(Debug, Deserialize)]
pub(crate) struct NewHandMade {
    #[serde(flatten)]
    definition: HandMade,
    #[serde(default)]
    enabled: Option<bool>,
}

/// Checks a definition and makes the stored form.
pub(crate) fn drafted(definition: &HandMade) -> Result<Imported, ConsoleError> {
    let draft: ToolDraft = definition.draft().map_err(|error| {
        ConsoleError::invalid("definition_invalid", error.message).field(error.field)
    })?;
    let stored = serde_json::to_value(definition)
        .map_err(|error| ConsoleError::internal("definition", error))?;
    if stored.to_string().contains("\\u0000") {
        return Err(ConsoleError::invalid(
            "definition_invalid",
            "The definition has a NUL character. Remove it.",
        ));
    }
    let mut imported = imported(&draft, Some(stored))?;
    // Two tools may use one method and path; the name distinguishes them.
    imported.operation_key = format!("{}#{}", draft.key, definition.name);
    Ok(imported)
}

/// The tool of this source with this name, other than `except`.
async fn named(
    tx: &mut TenantTx,
    source: SourceId,
    name: &str,
    except: Option<ToolId>,
) -> Result<Option<Tool>, ConsoleError> {
    let filter = Filter {
        source: Some(source),
        name: Some(name),
        ..Filter::default()
    };
    let all = tools::list(tx, &filter, i64::from(i32::MAX)).await?;
    Ok(all.into_iter().find(|tool| Some(tool.id) != except))
}

fn taken(name: &str) -> ConsoleError {
    ConsoleError::conflict(
        "name_taken",
        format!("This source has a tool called `{name}` already."),
    )
    .field("name")
}

/// Creates a tool from a description. The source must be of kind `http`.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/tools", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = HandMadeForm, responses((status = 201, description = "Made.", body = ToolView)))]
pub(crate) async fn create_tool(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<NewHandMade>,
) -> Result<(StatusCode, Json<ToolView>), ConsoleError> {
    let mut tx = editor.begin().await?;
    let source = found(&mut tx, id).await?;
    if source.kind != SourceKind::Http {
        return Err(ConsoleError::conflict(
            "not_hand_made",
            "The tools of this source come from its document. Add a source for tools made by hand.",
        ));
    }
    let enabled = request.enabled.unwrap_or(true);
    let made = add(&mut tx, id, (&request.definition, enabled), editor.now).await?;
    let name = made.name();
    let detail = json!({ "name": name, "source": id });
    editor
        .commit(tx, "tool.created", "tool", made.id, detail)
        .await?;
    Ok((StatusCode::CREATED, Json(view(made))))
}

/// Adds a tool to a source of kind `http`: its definition, and whether it is enabled.
pub(crate) async fn add(
    tx: &mut TenantTx,
    source: SourceId,
    (definition, enabled): (&HandMade, bool),
    now: OffsetDateTime,
) -> Result<Tool, ConsoleError> {
    let tool = drafted(definition)?;
    let name = tool.wording.name.clone();
    if named(tx, source, &name, None).await?.is_some() {
        return Err(taken(&name));
    }
    let inserted = tools::insert_many(tx, source, &[(tool, enabled)], now).await;
    inserted.map_err(|error| match error {
        StorageError::Conflict { .. } => taken(&name),
        error => error.into(),
    })?;
    let made = named(tx, source, &name, None).await?;
    made.ok_or_else(|| ConsoleError::internal("hand-made tool", "not found after insert"))
}

/// Replaces the definition of a tool. Servers that offer it under its old name follow.
pub(crate) async fn redefine(
    tx: &mut TenantTx,
    before: &Tool,
    definition: &HandMade,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    let tool = drafted(definition)?;
    let (id, name) = (before.id, tool.wording.name.clone());
    if named(tx, before.source_id, &name, Some(id))
        .await?
        .is_some()
    {
        return Err(taken(&name));
    }
    let redefined = tools::redefine(tx, id, &tool, now).await;
    redefined.map_err(|error| match error {
        StorageError::Conflict { .. } => taken(&name),
        error => error.into(),
    })?;
    if before.overrides.name.is_some() || before.original.name == name {
        return Ok(());
    }
    let renamed = published_items::rename(tx, id, &before.original.name, &name).await;
    renamed.map(drop).map_err(|error| {
        if error.is_conflict_on(ToolKind::CLASH) {
            taken(&name)
        } else {
            error.into()
        }
    })
}

/// Replaces the definition of a tool.
#[utoipa::path(put, path = "/workspaces/{ws}/tools/{id}/definition", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Tool")),
    request_body = HandMadeForm, responses((status = 200, description = "Changed.", body = ToolView)))]
pub(crate) async fn redefine_tool(
    editor: Editor,
    PathId(id): PathId<ToolKind>,
    JsonBody(request): JsonBody<NewHandMade>,
) -> Result<Json<ToolView>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let before = hand_made(&mut tx, id).await?;
    redefine(&mut tx, &before, &request.definition, editor.now).await?;
    if let Some(enabled) = request.enabled {
        published_items::set_enabled(&mut tx, &[id], enabled, editor.now).await?;
    }
    let name = &request.definition.name;
    let after = found_tool(&mut tx, id).await?;
    editor
        .commit(tx, "tool.redefined", "tool", id, json!({ "name": name }))
        .await?;
    Ok(Json(view(after)))
}

/// Deletes a tool that was described by hand. Tools of a document are disabled instead.
#[utoipa::path(delete, path = "/workspaces/{ws}/tools/{id}", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Tool")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_tool(
    editor: Editor,
    PathId(id): PathId<ToolKind>,
) -> Result<StatusCode, ConsoleError> {
    let mut tx = editor.begin().await?;
    let tool = hand_made(&mut tx, id).await?;
    tools::delete_hand_made(&mut tx, id).await?;
    let detail = json!({ "name": tool.name(), "source": tool.source_id });
    editor
        .commit(tx, "tool.deleted", "tool", id, detail)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn hand_made(tx: &mut TenantTx, id: ToolId) -> Result<Tool, ConsoleError> {
    let tool = found_tool(tx, id).await?;
    if tool.definition.is_none() {
        return Err(ConsoleError::conflict(
            "not_hand_made",
            "This tool comes from a document. Rename, describe or disable it instead.",
        ));
    }
    Ok(tool)
}
