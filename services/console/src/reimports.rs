//! Importing a source's document again: a preview of the changes, then the changes.

use std::collections::{BTreeMap, HashMap, HashSet};

use axum::{Json, extract::State};
use portolan_http_tools::{KnownTool, diff::diff};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::{SourceKind, ToolState},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    TenantTx,
    registry::{
        sources::{self, Source},
        tools::{self, Filter, Tool},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    change::Editor,
    imports::{self, DocumentInput, Loaded, OperationPreview, PreviewRequest, ProblemView},
    input::{JsonBody, PathId},
    source_rows::{found, imported, insert_tools, new_document},
    source_view::{SourceView, view},
    workspace::Workspace,
};

/// The changes of importing a document again.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReimportPreview {
    /// SHA-256 of the document, hexadecimal. Send it to apply this very document.
    digest: String,
    added: Vec<OperationPreview>,
    removed: Vec<RemovedTool>,
    changed: Vec<ChangedTool>,
    /// Number of tools that do not change.
    unchanged: usize,
    problems: Vec<ProblemView>,
}

/// A tool whose operation is removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedTool {
    key: String,
    tool_name: String,
    /// Slugs of the servers that lose it.
    used_by_servers: Vec<String>,
    /// The reason, if the operation is still there but cannot be a tool any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
}

/// A tool that changes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedTool {
    key: String,
    tool_name: String,
    /// The changes as sentences.
    changes: Vec<String>,
}

/// A document to apply.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ReimportRequest {
    input: DocumentInput,
    /// `digest` of the preview.
    digest: String,
}

/// All tools of a source, in any state.
pub(crate) async fn tools_of(
    tx: &mut TenantTx,
    source: SourceId,
) -> Result<Vec<Tool>, ConsoleError> {
    Ok(tools::list(
        tx,
        &Filter {
            source: Some(source),
            ..Filter::default()
        },
        i64::from(i32::MAX),
    )
    .await?)
}

fn known(tool: &Tool) -> Result<KnownTool, ConsoleError> {
    Ok(KnownTool {
        key: tool.operation_key.clone(),
        name: tool.original.name.clone(),
        title: tool.original.title.clone(),
        description: tool.original.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
        plan: serde_json::from_value(tool.plan.clone())
            .map_err(|error| ConsoleError::internal("stored plan", error))?,
    })
}

struct Prepared {
    loaded: Loaded,
    tools: Vec<Tool>,
}

/// Loads the new document with the present names of tools, so that importing again changes no name
/// without need.
async fn prepare(
    state: &AuthState,
    workspace: &Workspace,
    id: SourceId,
    input: DocumentInput,
) -> Result<Prepared, ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    let source = found(&mut tx, id).await?;
    if source.kind != SourceKind::Openapi {
        return Err(ConsoleError::conflict(
            "not_openapi",
            "This source has no document: its tools are made by hand.",
        ));
    }
    let tools = tools_of(&mut tx, id).await?;
    drop(tx);
    let names: BTreeMap<String, String> = tools
        .iter()
        .map(|tool| (tool.operation_key.clone(), tool.original.name.clone()))
        .collect();
    let loaded = imports::load(state, workspace.id, input, names).await?;
    Ok(Prepared { loaded, tools })
}

/// Shows the changes of importing a document again. Stores nothing.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/reimport/preview", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = PreviewRequest, responses((status = 200, description = "What would change.", body = ReimportPreview)))]
pub(crate) async fn preview_reimport(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<PreviewRequest>,
) -> Result<Json<ReimportPreview>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let Prepared { loaded, tools } = prepare(&state, &workspace, id, request.input).await?;
    let active: Vec<KnownTool> = tools
        .iter()
        .filter(|tool| tool.state == ToolState::Active)
        .map(known)
        .collect::<Result<_, _>>()?;
    let used_by: HashMap<&str, &Vec<String>> = tools
        .iter()
        .map(|tool| (tool.operation_key.as_str(), &tool.used_by))
        .collect();
    // The comparison covers schemas of thousands of tools, so it runs outside the async threads.
    let compare = move |_, _: &_| (diff(&active, &loaded.import), loaded);
    let (difference, loaded) = state.readers().read(workspace.id, compare).await?;
    let added: HashSet<&String> = difference.added.iter().collect();
    Ok(Json(ReimportPreview {
        digest: imports::hex(&loaded.digest),
        added: loaded
            .import
            .operations
            .iter()
            .filter(|operation| added.contains(&operation.key))
            .map(imports::operation_view)
            .collect(),
        removed: difference
            .removed
            .into_iter()
            .map(|tool| RemovedTool {
                used_by_servers: used_by
                    .get(tool.key.as_str())
                    .map(|slugs| (*slugs).clone())
                    .unwrap_or_default(),
                key: tool.key,
                tool_name: tool.tool_name,
                reason: tool.reason,
            })
            .collect(),
        changed: difference
            .changed
            .into_iter()
            .map(|tool| ChangedTool {
                key: tool.key,
                tool_name: tool.tool_name,
                changes: tool.changes,
            })
            .collect(),
        unchanged: difference.unchanged,
        problems: loaded
            .import
            .problems
            .into_iter()
            .map(ProblemView::from)
            .collect(),
    }))
}

/// Applies the document that was previewed. New tools are enabled; the workspace's own texts and
/// switches stay.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/reimport", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = ReimportRequest, responses((status = 200, description = "Applied.", body = SourceView)))]
pub(crate) async fn apply_reimport(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<ReimportRequest>,
) -> Result<Json<SourceView>, ConsoleError> {
    let Prepared { loaded, .. } =
        prepare(&editor.state, &editor.workspace, id, request.input).await?;
    let changed = || {
        ConsoleError::conflict(
            "document_changed",
            "The document is not the one that was shown. Look at the preview again.",
        )
    };
    if imports::hex(&loaded.digest) != request.digest.to_ascii_lowercase() {
        return Err(changed());
    }
    let mut tx = editor.begin().await?;
    let source = found(&mut tx, id).await?;
    let replaced = replace_document(&mut tx, &source, &loaded, editor.now).await?;
    let detail = replaced.ok_or_else(changed)?;
    let source = found(&mut tx, id).await?;
    editor
        .commit(tx, "source.reimported", "source", id, detail)
        .await?;
    Ok(Json(view(source)))
}

/// Puts a document in the place of the source's present one, and makes its tools those of the
/// document. The answer counts them; `None` if another import came between.
pub(crate) async fn replace_document(
    tx: &mut TenantTx,
    source: &Source,
    loaded: &Loaded,
    now: OffsetDateTime,
) -> Result<Option<Value>, ConsoleError> {
    let id = source.id;
    let hints = imports::stored_hints(&loaded.import.security)?;
    let (present, document) = (source.document_digest.as_ref(), new_document(loaded));
    // The condition on the digest serves as lock: the second of two concurrent imports has to
    // preview again.
    if !sources::replace_document(tx, id, present, &document, &hints, now).await? {
        return Ok(None);
    }
    let tools = tools_of(tx, id).await?;
    let stored: HashMap<&str, &Tool> = tools
        .iter()
        .map(|tool| (tool.operation_key.as_str(), tool))
        .collect();
    let (mut added, mut replaced) = (Vec::new(), 0_usize);
    let mut kept: HashSet<&str> = HashSet::new();
    for draft in loaded.import.tools() {
        kept.insert(&draft.key);
        let tool = imported(draft, None)?;
        match stored.get(draft.key.as_str()) {
            None => added.push((tool, true)),
            Some(present) => {
                if differs(present, &tool) {
                    tools::replace(tx, id, &tool, now).await?;
                    replaced += 1;
                }
            }
        }
    }
    let gone: Vec<String> = tools
        .iter()
        .filter(|tool| {
            tool.state == ToolState::Active && !kept.contains(tool.operation_key.as_str())
        })
        .map(|tool| tool.operation_key.clone())
        .collect();
    insert_tools(tx, id, &added, now).await?;
    tools::mark_removed(tx, id, &gone, now).await?;
    Ok(Some(
        json!({ "added": added.len(), "changed": replaced, "removed": gone.len() }),
    ))
}

fn differs(present: &Tool, new: &tools::Imported) -> bool {
    present.state != ToolState::Active
        || present.original != new.wording
        || present.input_schema != new.input_schema
        || present.output_schema != new.output_schema
        || present.annotations != new.annotations
        || present.plan != new.plan
        || present.warnings != new.warnings
}
