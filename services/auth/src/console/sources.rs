//! Sources: where a workspace's tools come from.

use std::collections::{BTreeMap, HashSet};

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_http_tools::ToolDraft;
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::{FollowRedirects, SourceKind, SourceSettings},
    text,
};
use portolan_storage::{
    Reason, TenantTx,
    registry::{
        credential_states, credentials,
        sources::{self, NewDocument, NewSource, Source},
        tools::{self, Imported, Wording},
        upstream_oauth,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use url::Url;
use utoipa::ToSchema;

use super::{
    Listing, change,
    change::Deleted,
    credentials::CredentialSummary,
    error::ConsoleError,
    imports::{self, DocumentInput, Loaded, SecurityHintView},
    input::{JsonBody, PathId},
    sign_in::Sharing,
    workspace::Workspace,
    workspaces::display_name,
};
use crate::{connect, request_context::RequestContext, state::AuthState};

/// Tools written by one statement: their schemas can be large.
const CHUNK: usize = 100;
/// Sources of one workspace.
const MOST_SOURCES: usize = 200;

/// A source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Source)]
pub struct SourceView {
    #[schema(value_type = String, example = "src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: SourceId,
    name: String,
    #[schema(value_type = SourceKindName)]
    kind: SourceKind,
    /// Prefix of every call.
    base_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spec_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spec_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    document_url: Option<String>,
    /// SHA-256, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    document_digest: Option<String>,
    settings: SettingsView,
    tool_count: i64,
    enabled_tool_count: i64,
    /// Kind, hint and state of its credential; null if none is set.
    credential: Option<CredentialSummary>,
    /// Whose connected accounts open it instead; absent if it is not signed in to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sign_in: Option<Sharing>,
    security: Vec<SecurityHintView>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// Kinds of sources.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SourceKind)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::SourceKind"
)]
pub(crate) enum SourceKindName {
    Openapi,
    Http,
    Mcp,
}

/// Bounds of calls.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SourceSettings)]
#[serde(deny_unknown_fields)]
pub struct SettingsView {
    /// Milliseconds for the whole exchange, 100–120 000.
    timeout_ms: u32,
    /// Bytes of answer that are read, 1 KiB–8 MiB.
    max_response_bytes: u32,
    #[schema(value_type = FollowRedirectsName)]
    follow_redirects: FollowRedirects,
    /// Calls of its tools may go on as MCP tasks, where the client takes them. Left out: they may not.
    #[serde(default)]
    tasks: bool,
}

/// Which redirects of the API are followed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FollowRedirects)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::FollowRedirects"
)]
pub(crate) enum FollowRedirectsName {
    None,
    SameOrigin,
}

pub(super) fn view(source: Source) -> SourceView {
    SourceView {
        id: source.id,
        name: source.name,
        kind: source.kind,
        base_url: source.base_url,
        spec_title: source.spec_title,
        spec_version: source.spec_version,
        document_url: source.document_url,
        document_digest: source.document_digest.as_ref().map(imports::hex),
        settings: SettingsView {
            timeout_ms: source.settings.timeout_ms,
            max_response_bytes: source.settings.max_response_bytes,
            follow_redirects: source.settings.follow_redirects,
            tasks: source.settings.tasks,
        },
        tool_count: source.tool_count,
        enabled_tool_count: source.enabled_tool_count,
        credential: source.credential.map(CredentialSummary::from),
        sign_in: source.sharing.as_deref().map(Sharing::from_word),
        security: imports::hint_views(&source.security),
        created_at: source.created_at,
        updated_at: source.updated_at,
    }
}

/// The source, or 404.
pub(super) async fn found(tx: &mut TenantTx, id: SourceId) -> Result<Source, ConsoleError> {
    sources::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this source"))
}

pub(super) fn source_name(text: &str) -> Result<&str, ConsoleError> {
    display_name(text).ok_or_else(|| {
        ConsoleError::invalid(
            "name_invalid",
            "Give the source a name of 1 to 80 characters.",
        )
        .field("name")
    })
}

/// A base URL that calls may go to. What its name resolves to is checked again at every call.
pub(super) fn base_url(state: &AuthState, text: &str) -> Result<Url, ConsoleError> {
    let invalid =
        |message: String| ConsoleError::invalid("base_url_invalid", message).field("base_url");
    let mut url = Url::parse(text.trim()).map_err(|_| {
        invalid(
            "Give the complete base URL of the API, such as https://api.example.com/v1.".to_owned(),
        )
    })?;
    if url.fragment().is_some() {
        return Err(invalid("A base URL has no part after `#`.".to_owned()));
    }
    if text.contains(['{', '}']) {
        return Err(invalid(
            "The base URL still has a placeholder in braces. Fill it in.".to_owned(),
        ));
    }
    state
        .egress
        .check(&url)
        .map_err(|error| invalid(format!("Calls cannot go there: {error}.")))?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The URL without the slash that the URL standard adds to an empty path.
pub(super) fn stored_url(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// All sources of a workspace, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/sources", tag = "sources", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The sources.", body = Listing<SourceView>)))]
pub(crate) async fn list_sources(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<SourceView>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let sources = sources::list(&mut tx).await?;
    Ok(Json(Listing::whole(
        sources.into_iter().map(view).collect(),
    )))
}

/// A source to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = NewSource)]
pub enum NewSourceRequest {
    /// From an OpenAPI document.
    Openapi {
        /// What people call it.
        name: String,
        /// The document.
        input: DocumentInput,
        /// Instead of the document's first server.
        #[serde(default)]
        base_url: Option<String>,
        /// Keys of the operations whose tools are enabled; all if absent. The others are kept disabled.
        #[serde(default)]
        operations: Option<Vec<String>>,
    },
    /// An API whose tools are made by hand.
    Http {
        /// What people call it.
        name: String,
        /// Prefix of every call.
        base_url: String,
    },
}

/// Adds a source, and for an OpenAPI document its tools.
#[utoipa::path(post, path = "/workspaces/{ws}/sources", tag = "sources", params(("ws" = String, Path, description = "Slug")),
    request_body = NewSourceRequest, responses((status = 201, description = "Added.", body = SourceView)))]
pub(crate) async fn create_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(request): JsonBody<NewSourceRequest>,
) -> Result<(StatusCode, Json<SourceView>), ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let id = SourceId::generate();
    match request {
        NewSourceRequest::Http {
            name,
            base_url: text,
        } => {
            let name = source_name(&name)?;
            let url = base_url(&state, &text)?;
            let new = NewSource {
                id,
                kind: SourceKind::Http,
                name,
                base_url: &stored_url(&url),
                document: None,
                security: &json!([]),
            };
            insert(&state, &workspace, &context, &new, &[]).await?;
        }
        NewSourceRequest::Openapi {
            name,
            input,
            base_url: chosen,
            operations,
        } => {
            let loaded = imports::load(&state, workspace.id, input, BTreeMap::new()).await?;
            let name = if name.trim().is_empty() {
                loaded.import.title.clone()
            } else {
                name
            };
            let name = source_name(&name)?;
            let text = chosen
                .filter(|text| !text.trim().is_empty())
                .or_else(|| loaded.import.base_url.clone());
            let text = text.ok_or_else(|| {
                ConsoleError::invalid(
                    "base_url_required",
                    "The document names no server. Give the base URL of the API.",
                )
                .field("base_url")
            })?;
            let url = base_url(&state, &text)?;
            let tools = chosen_tools(&loaded, operations)?;
            let new = NewSource {
                id,
                kind: SourceKind::Openapi,
                name,
                base_url: &stored_url(&url),
                document: Some(new_document(&loaded)),
                security: &imports::stored_hints(&loaded.import.security)?,
            };
            insert(&state, &workspace, &context, &new, &tools).await?;
        }
    }
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok((StatusCode::CREATED, Json(view(found(&mut tx, id).await?))))
}

pub(super) fn new_document(loaded: &Loaded) -> NewDocument<'_> {
    NewDocument {
        text: &loaded.text,
        digest: loaded.digest,
        url: loaded.url.as_ref().map(Url::as_str),
        title: &loaded.import.title,
        spec_version: &loaded.import.spec_version,
    }
}

fn chosen_tools(
    loaded: &Loaded,
    operations: Option<Vec<String>>,
) -> Result<Vec<(Imported, bool)>, ConsoleError> {
    let chosen: Option<HashSet<String>> = operations.map(|keys| keys.into_iter().collect());
    if let Some(chosen) = &chosen {
        let known: HashSet<&str> = loaded
            .import
            .tools()
            .map(|tool| tool.key.as_str())
            .collect();
        if let Some(unknown) = chosen.iter().find(|key| !known.contains(key.as_str())) {
            return Err(ConsoleError::invalid(
                "operation_unknown",
                format!("`{unknown}` is not a tool of this document. Preview it again."),
            )
            .field("operations"));
        }
    }
    loaded
        .import
        .tools()
        .map(|tool| {
            let enabled = chosen
                .as_ref()
                .is_none_or(|chosen| chosen.contains(&tool.key));
            Ok((imported(tool, None)?, enabled))
        })
        .collect()
}

/// A draft as it is stored.
pub(super) fn imported(
    tool: &ToolDraft,
    definition: Option<serde_json::Value>,
) -> Result<Imported, ConsoleError> {
    let json = |error| ConsoleError::internal("tool draft", error);
    // REVIEW-S-6: of a document of strangers, models and people read what they see.
    let words = |text: &str| text::shown(text).into_owned();
    let clean = |value: &serde_json::Value| {
        let mut value = value.clone();
        text::clean(&mut value);
        value
    };
    Ok(Imported {
        operation_key: tool.key.clone(),
        wording: Wording {
            name: tool.name.clone(),
            title: words(&tool.title),
            description: words(&tool.description),
        },
        input_schema: clean(&tool.input_schema),
        output_schema: tool.output_schema.as_ref().map(clean),
        annotations: serde_json::to_value(tool.annotations).map_err(json)?,
        plan: serde_json::to_value(&tool.plan)
            .map(|plan| clean(&plan))
            .map_err(json)?,
        definition,
        written: None,
        warnings: tool.warnings.clone(),
    })
}

pub(super) async fn insert_tools(
    tx: &mut TenantTx,
    source: SourceId,
    tools: &[(Imported, bool)],
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    for chunk in tools.chunks(CHUNK) {
        tools::insert_many(tx, source, chunk, now).await?;
    }
    Ok(())
}

/// Refuses one source too many.
pub(super) async fn has_room(tx: &mut TenantTx) -> Result<(), ConsoleError> {
    if sources::list(tx).await?.len() < MOST_SOURCES {
        return Ok(());
    }
    Err(ConsoleError::conflict(
        "too_many_sources",
        format!("A workspace has up to {MOST_SOURCES} sources. Delete one first."),
    ))
}

async fn insert(
    state: &AuthState,
    workspace: &Workspace,
    context: &RequestContext,
    new: &NewSource<'_>,
    tools: &[(Imported, bool)],
) -> Result<(), ConsoleError> {
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    has_room(&mut tx).await?;
    sources::insert(&mut tx, new, now).await?;
    insert_tools(&mut tx, new.id, tools, now).await?;
    let detail = json!({ "name": new.name, "kind": new.kind, "tools": tools.len() });
    change::commit(
        tx,
        workspace,
        context,
        now,
        ("source.created", "source", new.id.to_string(), detail),
    )
    .await
}

/// One source.
#[utoipa::path(get, path = "/workspaces/{ws}/sources/{id}", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "The source.", body = SourceView)))]
pub(crate) async fn show_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<SourceView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(view(found(&mut tx, id).await?)))
}

/// Members to change; an absent member stays.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SourceChange {
    #[schema(nullable = false)]
    name: Option<String>,
    /// A change to another host also removes the credential: it was given for the old one.
    #[schema(nullable = false)]
    base_url: Option<String>,
    #[schema(nullable = false)]
    settings: Option<SettingsView>,
}

/// Changes a source's name, base URL or bounds. Another base URL takes a recent sign-in.
#[utoipa::path(patch, path = "/workspaces/{ws}/sources/{id}", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = SourceChange, responses((status = 200, description = "Changed.", body = SourceView)))]
pub(crate) async fn change_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<SourceChange>,
) -> Result<Json<SourceView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let name = request.name.as_deref().map(source_name).transpose()?;
    let settings = request.settings.as_ref().map(|settings| SourceSettings {
        timeout_ms: settings.timeout_ms,
        max_response_bytes: settings.max_response_bytes,
        follow_redirects: settings.follow_redirects,
        tasks: settings.tasks,
    });
    if let Some(settings) = &settings {
        settings.check().map_err(|(field, message)| {
            ConsoleError::invalid("settings_invalid", format!("For {field}, {message}."))
                .field(format!("settings.{field}"))
        })?;
    }
    let now = state.now();
    let mut leaving = Vec::new();
    if request.base_url.is_some() {
        let mut tx = state.store.system(Reason::Upstreams).await?;
        leaving = upstream_oauth::leaving(&mut tx, workspace.id, Some(id), None).await?;
    }
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = found(&mut tx, id).await?;
    let is_mcp = before.kind == SourceKind::Mcp;
    let url = match request.base_url.as_deref() {
        Some(text) if is_mcp => Some(super::upstreams::endpoint_url(&state, text)?),
        Some(text) => Some(base_url(&state, text)?),
        None => None,
    };
    let stored = url.as_ref().map(|url| {
        if is_mcp {
            url.to_string()
        } else {
            stored_url(url)
        }
    });
    let elsewhere = stored.as_ref().is_some_and(|url| *url != before.base_url);
    // All calls of the source will go to the new address, with the data that they carry.
    if elsewhere {
        workspace.require_recent_at_source(now, id)?;
    }
    sources::update(&mut tx, id, name, stored.as_deref(), settings.as_ref(), now).await?;
    if elsewhere {
        credential_states::forget(&mut tx, id).await?;
    }
    let moved = url.as_ref().is_some_and(|url| {
        Url::parse(&before.base_url).is_ok_and(|old| old.origin() != url.origin())
    });
    // A person who may change the address must not be able to send the secret to a host of their
    // choice.
    let mut credential_removed = moved && credentials::delete(&mut tx, id).await?;
    if elsewhere && let Some(before) = upstream_oauth::sign_in(&mut tx, id).await? {
        // Accounts of the old address, those of persons too: a token goes only where it was issued for. The new one is connected anew.
        upstream_oauth::delete_sign_in(&mut tx, id).await?;
        let (sharing, method, server) = (&before.sharing, &before.method, before.server.as_ref());
        upstream_oauth::set_sign_in(&mut tx, id, sharing, method, None, server, now).await?;
        credential_removed = true;
    } else {
        leaving.clear();
    }
    let detail = json!({ "name": name, "base_url": stored, "settings": settings, "credential_removed": credential_removed });
    let source = found(&mut tx, id).await?;
    change::commit(
        tx,
        &workspace,
        &context,
        now,
        ("source.changed", "source", id.to_string(), detail),
    )
    .await?;
    connect::give_back_later(&state, workspace.id, leaving);
    Ok(Json(view(source)))
}

/// Deletes a source; its tools answer no more. It can be restored for 30 days.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let source = found(&mut tx, id).await?;
    sources::delete(&mut tx, id, now).await?;
    let detail = json!({ "name": source.name });
    change::commit(
        tx,
        &workspace,
        &context,
        now,
        ("source.deleted", "source", id.to_string(), detail),
    )
    .await?;
    Ok(Json(Deleted::at(now)))
}

/// Takes a deletion back.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/restore", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Restored.", body = SourceView)))]
pub(crate) async fn restore_source(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<SourceView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    if !sources::restore(&mut tx, id, now).await? {
        return Err(ConsoleError::not_restorable("source"));
    }
    let source = found(&mut tx, id).await?;
    let detail = json!({ "name": source.name });
    change::commit(
        tx,
        &workspace,
        &context,
        now,
        ("source.restored", "source", id.to_string(), detail),
    )
    .await?;
    Ok(Json(view(source)))
}
