//! Attached servers (ADR 39): upstream servers that `portolan attach` offers from a machine that
//! nothing outside can reach.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::SourceKind,
    resource::Resource,
};
use portolan_net::tunnel;
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::registry::{
    attachments::{self, NAME_TAKEN, NewKey, Tunnel},
    sources::{self, NewSource},
    upstreams as stored,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    change::{self, Editor},
    input::{JsonBody, PathId},
    source_rows::{found, has_room, source_name},
    source_view::{SourceView, view},
    upstreams::checked_prefix,
    workspace::Workspace,
};

/// An attached server to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// Its name in the workspace: lower-case letters, digits and hyphens. It stands in messages to
    /// callers.
    name: String,
    /// What people call it; the name if empty.
    #[serde(default)]
    title: String,
    /// Stands before the names of its tools and prompts; mostly empty.
    #[serde(default)]
    prefix: String,
    /// Changes at the server wait until a person agrees. They do if this is absent.
    #[serde(default = "held")]
    #[schema(default = true)]
    hold_changes: bool,
}

const fn held() -> bool {
    true
}

/// A key that was made. It is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttachmentKey {
    /// The key, for the environment variable `PORTOLAN_ATTACH_KEY`.
    key: String,
    /// Address for the first argument of `portolan attach`.
    address: String,
}

/// An attached server that was added.
#[derive(Debug, Serialize, ToSchema)]
pub struct AddedAttachment {
    source: SourceView,
    key: AttachmentKey,
}

/// A program that offers the server.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttachmentProgram {
    /// Its version.
    version: String,
    /// Connections to nodes.
    connections: usize,
    /// The server behind it takes requests.
    is_ready: bool,
    /// Its last failure.
    error: Option<String>,
    /// When its oldest connection was opened.
    #[serde(with = "time::serde::rfc3339")]
    since: OffsetDateTime,
}

/// The state of an attached server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attachment)]
pub struct AttachmentView {
    /// Its name.
    name: String,
    /// Address for the first argument of `portolan attach`.
    address: String,
    /// The beginning of its key.
    key_hint: String,
    /// When the key was made.
    #[serde(with = "time::serde::rfc3339")]
    key_created_at: OffsetDateTime,
    /// The programs that offer it at the moment; empty while it is away.
    programs: Vec<AttachmentProgram>,
}

fn checked_name(text: &str) -> Result<(&str, String), ConsoleError> {
    let name = text.trim();
    match tunnel::url_of(name) {
        Some(url) => Ok((name, url.into())),
        None => Err(ConsoleError::invalid(
            "name_invalid",
            "A name has 1 to 40 lower-case letters, digits and inner hyphens, such as \
             office-files.",
        )
        .field("name")),
    }
}

fn address(state: &AuthState, workspace: &Workspace) -> String {
    let tenant = workspace.slug.to_string();
    state.oauth.resources.url(&Resource::Workspace { tenant })
}

fn programs(tunnels: Vec<Tunnel>) -> Vec<AttachmentProgram> {
    let mut programs: Vec<(String, AttachmentProgram)> = Vec::new();
    for tunnel in tunnels {
        let known = programs
            .iter_mut()
            .find(|(instance, _)| *instance == tunnel.instance);
        if let Some((_, known)) = known {
            known.connections += 1;
            continue;
        }
        let program = AttachmentProgram {
            version: tunnel.version,
            connections: 1,
            is_ready: tunnel.is_ready,
            error: tunnel.error,
            since: tunnel.since,
        };
        programs.push((tunnel.instance, program));
    }
    programs.into_iter().map(|(_, program)| program).collect()
}

/// Adds an attached server. Its tools are read when a program offers it.
#[utoipa::path(post, path = "/workspaces/{ws}/attachments", tag = "upstreams", params(("ws" = String, Path, description = "Slug")),
    request_body = NewAttachment, responses((status = 201, description = "Added. The key is shown this once.", body = AddedAttachment)))]
pub(crate) async fn add_attachment(
    editor: Editor,
    JsonBody(request): JsonBody<NewAttachment>,
) -> Result<(StatusCode, Json<AddedAttachment>), ConsoleError> {
    let (name, url) = checked_name(&request.name)?;
    let prefix = checked_prefix(&request.prefix)?;
    let title = request.title.trim();
    let title = source_name(if title.is_empty() { name } else { title })?;
    let secret = SecretToken::generate(TokenForm::Attach)?;
    let new = NewSource {
        id: SourceId::generate(),
        kind: SourceKind::Mcp,
        name: title,
        base_url: &url,
        document: None,
        security: &json!([]),
    };
    let mut tx = editor.begin().await?;
    has_room(&mut tx).await?;
    sources::insert(&mut tx, &new, editor.now).await?;
    stored::insert(&mut tx, new.id, prefix, request.hold_changes, editor.now).await?;
    let key = NewKey {
        digest: &secret.digest(),
        hint: secret.hint(),
        created_by: editor.workspace.caller.user(),
    };
    let inserted = attachments::insert(&mut tx, new.id, name, &key, editor.now).await;
    inserted.map_err(|error| {
        if error.is_conflict_on(NAME_TAKEN) {
            ConsoleError::conflict(
                "name_taken",
                "An attached server has this name already; it may be one in the \
                 trash. Choose another name.",
            )
            .field("name")
        } else {
            error.into()
        }
    })?;
    let detail = json!({ "name": new.name, "kind": new.kind, "attached": name });
    let source = view(found(&mut tx, new.id).await?);
    editor
        .commit(tx, "source.created", "source", new.id, detail)
        .await?;
    let added = AddedAttachment {
        source,
        key: AttachmentKey {
            key: secret.expose().to_owned(),
            address: address(&editor.state, &editor.workspace),
        },
    };
    Ok((StatusCode::CREATED, Json(added)))
}

fn not_attached() -> ConsoleError {
    ConsoleError::not_found("this attached server")
}

/// The state of an attached server.
#[utoipa::path(get, path = "/workspaces/{ws}/sources/{id}/attachment", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "Its state.", body = AttachmentView)))]
pub(crate) async fn show_attachment(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<AttachmentView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    let attachment = attachments::find(&mut tx, id)
        .await?
        .ok_or_else(not_attached)?;
    let tunnels = attachments::tunnels(&mut tx, id, state.now()).await?;
    Ok(Json(AttachmentView {
        name: attachment.name,
        address: address(&state, &workspace),
        key_hint: attachment.key_hint,
        key_created_at: attachment.key_created_at,
        programs: programs(tunnels),
    }))
}

/// Replaces the key of an attached server. Programs with the old key are disconnected within
/// seconds.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/attachment/key", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 201, description = "Made. It is shown this once.", body = AttachmentKey)))]
pub(crate) async fn replace_attachment_key(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
) -> Result<(StatusCode, Json<AttachmentKey>), ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    workspace.require_recent_at_source(now, id)?;
    let secret = SecretToken::generate(TokenForm::Attach)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    let key = NewKey {
        digest: &secret.digest(),
        hint: secret.hint(),
        created_by: workspace.caller.user(),
    };
    if !attachments::replace_key(&mut tx, id, &key, now).await? {
        return Err(not_attached());
    }
    let detail = json!({ "hint": secret.hint() });
    let event = workspace.event("source.key_replaced", "source", id, detail);
    change::commit(tx, &context, now, &event).await?;
    let key = AttachmentKey {
        key: secret.expose().to_owned(),
        address: address(&state, &workspace),
    };
    Ok((StatusCode::CREATED, Json(key)))
}
