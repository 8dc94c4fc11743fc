//! Sources: where a workspace's tools come from.

use std::collections::{BTreeMap, HashSet};

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::{SourceKind, SourceSettings},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    Reason, TenantTx,
    registry::{
        credential_states, credentials,
        sources::{self, NewSource, Source},
        tools::Imported,
        trash,
        upstream_oauth::{self, Leaving},
    },
    webhooks::alerts,
};
use portolan_upstream_sync::connect::flow;
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;
use url::Url;
use utoipa::ToSchema;

use crate::{
    change::{self, Deleted, Editor},
    imports::{self, DocumentInput, Loaded},
    input::{JsonBody, PathId},
    listing::Listing,
    source_rows::{
        base_url, found, has_room, imported, insert_tools, new_document, source_name, stored_url,
    },
    source_view::{SettingsView, SourceView, view},
    workspace::Workspace,
};

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

async fn insert(
    state: &AuthState,
    workspace: &Workspace,
    context: &RequestContext,
    new: &NewSource<'_>,
    tools: &[(Imported, bool)],
) -> Result<(), ConsoleError> {
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    add(&mut tx, new, tools, now).await?;
    let detail = json!({ "name": new.name, "kind": new.kind, "tools": tools.len() });
    let event = workspace.event("source.created", "source", new.id, detail);
    change::commit(tx, context, now, &event).await
}

/// Adds a source with its tools.
pub(crate) async fn add(
    tx: &mut TenantTx,
    new: &NewSource<'_>,
    tools: &[(Imported, bool)],
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    has_room(tx).await?;
    sources::insert(tx, new, now).await?;
    insert_tools(tx, new.id, tools, now).await
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
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<SourceChange>,
) -> Result<Json<SourceView>, ConsoleError> {
    let alteration = Alteration {
        name: request.name.as_deref().map(source_name).transpose()?,
        base_url: request.base_url.as_deref(),
        settings: request.settings.as_ref().map(|settings| SourceSettings {
            timeout_ms: settings.timeout_ms,
            max_response_bytes: settings.max_response_bytes,
            follow_redirects: settings.follow_redirects,
            tasks: settings.tasks,
        }),
    };
    let mut leaving = Vec::new();
    if request.base_url.is_some() {
        leaving = accounts_of(&editor, id).await?;
    }
    let mut tx = editor.begin().await?;
    let before = found(&mut tx, id).await?;
    let altered = alter(&editor, &mut tx, &before, &alteration).await?;
    let detail = json!({ "name": alteration.name, "base_url": altered.base_url,
        "settings": alteration.settings, "credential_removed": altered.credential_removed });
    let source = found(&mut tx, id).await?;
    editor
        .commit(tx, "source.changed", "source", id, detail)
        .await?;
    if altered.accounts_removed {
        flow::give_back_later(&editor.state, editor.workspace.id, leaving);
    }
    Ok(Json(view(source)))
}

/// The accounts that end when the address of a source changes. To be read before the transaction of
/// the change.
pub(crate) async fn accounts_of(
    editor: &Editor,
    id: SourceId,
) -> Result<Vec<Leaving>, ConsoleError> {
    let mut tx = editor.state.store.system(Reason::Upstreams).await?;
    Ok(upstream_oauth::leaving(&mut tx, editor.workspace.id, Some(id), None).await?)
}

/// Members of a source to change; `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alteration<'a> {
    /// Checked.
    pub(crate) name: Option<&'a str>,
    /// As a person entered it.
    pub(crate) base_url: Option<&'a str>,
    pub(crate) settings: Option<SourceSettings>,
}

/// The effects of a change of a source.
#[derive(Debug)]
pub(crate) struct Altered {
    /// The new address, if there is one.
    pub(crate) base_url: Option<String>,
    pub(crate) credential_removed: bool,
    pub(crate) accounts_removed: bool,
}

/// Changes a source. Another address takes a recent sign-in, and ends what the old one was opened
/// with.
pub(crate) async fn alter(
    editor: &Editor,
    tx: &mut TenantTx,
    before: &Source,
    alteration: &Alteration<'_>,
) -> Result<Altered, ConsoleError> {
    let Editor { state, now, .. } = editor;
    let (id, now) = (before.id, *now);
    let Alteration { name, settings, .. } = alteration;
    if let Some(settings) = settings {
        settings.check().map_err(|(field, message)| {
            ConsoleError::invalid("settings_invalid", format!("For {field}, {message}."))
                .field(format!("settings.{field}"))
        })?;
    }
    let is_mcp = before.kind == SourceKind::Mcp;
    let url = match alteration.base_url {
        // The address of an attached server is none that a person may enter; it may stay.
        Some(text) if text == before.base_url => None,
        Some(text) if is_mcp => Some(crate::upstreams::endpoint_url(state, text)?),
        Some(text) => Some(base_url(state, text)?),
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
        editor.workspace.require_recent_at_source(now, id)?;
    }
    sources::update(tx, id, *name, stored.as_deref(), settings.as_ref(), now).await?;
    if elsewhere {
        credential_states::forget(tx, id).await?;
        crate::credentials::end_alert(tx, id, now).await?;
    }
    let moved = url.as_ref().is_some_and(|url| {
        Url::parse(&before.base_url).is_ok_and(|old| old.origin() != url.origin())
    });
    // A person who may change the address must not be able to send the secret to a host of their
    // choice.
    let mut credential_removed = moved && credentials::delete(tx, id).await?;
    let mut accounts_removed = false;
    if elsewhere && let Some(before) = upstream_oauth::sign_in(tx, id).await? {
        // Accounts of the old address, those of persons too: a token goes only where it was issued for. The new one is connected anew.
        upstream_oauth::delete_sign_in(tx, id).await?;
        let (sharing, method, server) = (&before.sharing, &before.method, before.server.as_ref());
        upstream_oauth::set_sign_in(tx, id, sharing, method, None, server, now).await?;
        (credential_removed, accounts_removed) = (true, true);
    }
    Ok(Altered {
        base_url: stored,
        credential_removed,
        accounts_removed,
    })
}

/// Deletes a source; its tools answer no more. It can be restored for 30 days.
#[utoipa::path(delete, path = "/workspaces/{ws}/sources/{id}", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_source(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    let mut tx = editor.begin().await?;
    let source = found(&mut tx, id).await?;
    remove(&mut tx, id, editor.now).await?;
    let detail = json!({ "name": source.name });
    editor
        .commit(tx, "source.deleted", "source", id, detail)
        .await?;
    Ok(Json(Deleted::at(editor.now)))
}

/// Moves a source to the trash, and ends its alerts.
pub(crate) async fn remove(
    tx: &mut TenantTx,
    id: SourceId,
    now: OffsetDateTime,
) -> Result<(), ConsoleError> {
    trash::delete(tx, id, now).await?;
    alerts::end_of(tx, &id.to_string(), now).await?;
    Ok(())
}

/// Takes a deletion back.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/restore", tag = "sources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Restored.", body = SourceView)))]
pub(crate) async fn restore_source(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<SourceView>, ConsoleError> {
    let mut tx = editor.begin().await?;
    if !trash::restore(&mut tx, id, editor.now).await? {
        return Err(ConsoleError::not_restorable("source"));
    }
    let source = found(&mut tx, id).await?;
    let detail = json!({ "name": source.name });
    editor
        .commit(tx, "source.restored", "source", id, detail)
        .await?;
    Ok(Json(view(source)))
}
