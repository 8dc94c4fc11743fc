//! Workspaces: create, read, change.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::TenantId,
    member::{Action, Role},
    slug::Slug,
};
use portolan_site::{
    console_error::ConsoleError,
    request_context::RequestContext,
    session::BrowserSession,
    state::AuthState,
    target::ConsolePage,
    workspaces::{CreateError, create, display_name},
};
use portolan_storage::{
    platform::{
        audit,
        tenants::{self, Reach, ReachChange},
    },
    registry::registry_news,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{input::JsonBody, workspace::Workspace};

/// A workspace as one of its members sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Workspace)]
pub struct WorkspaceView {
    /// Its id.
    #[schema(value_type = String, example = "ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: TenantId,
    /// Its name in URLs.
    #[schema(value_type = String, example = "acme")]
    slug: Slug,
    /// Display name.
    name: String,
    /// The role of the person who reads it.
    #[schema(value_type = RoleName)]
    role: Role,
    /// Time of its creation.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// True if its servers also support HTTP+SSE, the transport of 2024-11-05.
    http_sse: bool,
    /// True if tokens and keys that name no server open all servers; otherwise they open the
    /// default one.
    workspace_tokens: bool,
}

/// A member's role, strongest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Role)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::Role"
)]
pub(crate) enum RoleName {
    Owner,
    Admin,
    Developer,
    Member,
    Viewer,
}

/// A new workspace.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewWorkspace {
    /// Display name: 1 to 80 characters.
    name: String,
    /// Its name in URLs, which never changes: 3 to 40 of a–z, 0–9 and hyphens.
    #[schema(example = "acme")]
    slug: String,
}

/// Creates a workspace that the signed-in person owns.
#[utoipa::path(post, path = "/workspaces", tag = "workspaces", request_body = NewWorkspace,
    responses((status = 201, description = "Created.", body = WorkspaceView)))]
pub(crate) async fn create_workspace(
    State(state): State<AuthState>,
    session: BrowserSession,
    context: RequestContext,
    JsonBody(new): JsonBody<NewWorkspace>,
) -> Result<(StatusCode, Json<WorkspaceView>), ConsoleError> {
    let tenant = create(&state, &context, session.user, &new.name, &new.slug).await?;
    let reach = Reach::default();
    let view = WorkspaceView {
        id: tenant.id,
        slug: tenant.slug,
        name: tenant.name,
        role: Role::Owner,
        created_at: tenant.created_at,
        http_sse: reach.http_sse,
        workspace_tokens: reach.workspace_tokens,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// One workspace.
#[utoipa::path(get, path = "/workspaces/{ws}", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The workspace.", body = WorkspaceView)))]
pub(crate) async fn show_workspace(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<WorkspaceView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let reach = tenants::reach(&mut tx).await?;
    Ok(Json(view(workspace, reach)))
}

/// A change of a workspace.
#[derive(Debug, Deserialize, ToSchema)]
pub struct WorkspaceChange {
    /// Display name: 1 to 80 characters.
    #[schema(nullable = false)]
    name: Option<String>,
    /// Whether its servers also support HTTP+SSE, the transport of 2024-11-05.
    #[schema(nullable = false)]
    http_sse: Option<bool>,
    /// Whether tokens and keys that name no server open all servers; otherwise they open the
    /// default one.
    #[schema(nullable = false)]
    workspace_tokens: Option<bool>,
}

/// Changes a workspace: its name, and the access to its servers. Its slug stays.
#[utoipa::path(patch, path = "/workspaces/{ws}", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = WorkspaceChange, responses((status = 200, description = "Changed.", body = WorkspaceView)))]
pub(crate) async fn change_workspace(
    State(state): State<AuthState>,
    mut workspace: Workspace,
    context: RequestContext,
    JsonBody(change): JsonBody<WorkspaceChange>,
) -> Result<Json<WorkspaceView>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let name = change.name.as_deref();
    let name = name
        .map(|name| display_name(name).ok_or(CreateError::Name))
        .transpose()?;
    let (origin, now) = (context.origin(), state.now());
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = tenants::reach(&mut tx).await?;
    if let Some(name) = name {
        tenants::rename(&mut tx, name).await?;
        let detail = serde_json::json!({ "from": workspace.name, "to": name });
        let event = workspace.event("tenant.renamed", "tenant", workspace.id, detail);
        audit::record(&mut tx, &event, &origin, now).await?;
    }
    let wanted = ReachChange {
        http_sse: change.http_sse.filter(|now| *now != before.http_sse),
        workspace_tokens: change
            .workspace_tokens
            .filter(|now| *now != before.workspace_tokens),
    };
    // These changes give more access: another transport, or tokens and keys that open every server.
    let opens = [wanted.http_sse, wanted.workspace_tokens];
    if opens.contains(&Some(true)) {
        workspace.require_recent(now, ConsolePage::Settings)?;
    }
    let switched = [
        ("tenant.http_sse_changed", wanted.http_sse),
        ("tenant.workspace_tokens_changed", wanted.workspace_tokens),
    ];
    for (action, to) in switched {
        let Some(to) = to else { continue };
        let detail = serde_json::json!({ "from": !to, "to": to });
        let event = workspace.event(action, "tenant", workspace.id, detail);
        audit::record(&mut tx, &event, &origin, now).await?;
    }
    if switched.iter().any(|(_, to)| to.is_some()) {
        tenants::change_reach(&mut tx, wanted).await?;
        registry_news::changed(&mut tx).await?;
    }
    let reach = tenants::reach(&mut tx).await?;
    tx.commit().await?;
    if let Some(name) = name {
        name.clone_into(&mut workspace.name);
    }
    Ok(Json(view(workspace, reach)))
}

fn view(workspace: Workspace, reach: Reach) -> WorkspaceView {
    WorkspaceView {
        id: workspace.id,
        slug: workspace.slug,
        name: workspace.name,
        role: workspace.role,
        created_at: workspace.created_at,
        http_sse: reach.http_sse,
        workspace_tokens: reach.workspace_tokens,
    }
}
