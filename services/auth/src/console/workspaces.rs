//! Workspaces: create, read, change.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::{TenantId, UserId},
    member::{Action, Role},
    slug::Slug,
};
use portolan_storage::{
    Reason, StorageError,
    accounts::members,
    platform::{
        audit,
        tenants::{self, Reach, ReachChange, SLUG_TAKEN, Tenant},
    },
    registry::registry_news,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{error::ConsoleError, input::JsonBody, workspace::Workspace};
use crate::{
    login::ConsolePage, request_context::RequestContext, session::BrowserSession, state::AuthState,
};

/// Most workspaces that one person may own (AUTH-M9).
const MOST_OWNED: usize = 20;
/// Longest display name, in characters.
const NAME_LENGTH: usize = 80;

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

/// Why a workspace cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    /// The name is empty or too long.
    #[error("Give the workspace a name of 1 to {NAME_LENGTH} characters.")]
    Name,
    /// The slug is against the rules.
    #[error("This address cannot be used: {0}.")]
    Slug(#[from] portolan_model::slug::InvalidSlug),
    /// A workspace has or had this slug (AUTH-M3).
    #[error("This address is taken. Choose another one.")]
    Taken,
    /// The person owns too many (AUTH-M9).
    #[error("You own {MOST_OWNED} workspaces already, which is the most one person can have.")]
    TooMany,
    /// The database failed.
    #[error("storage")]
    Storage(#[from] StorageError),
}

impl From<CreateError> for ConsoleError {
    fn from(error: CreateError) -> Self {
        let message = error.to_string();
        match error {
            CreateError::Name => Self::invalid("name_invalid", message).field("name"),
            CreateError::Slug(_) => Self::invalid("slug_invalid", message).field("slug"),
            CreateError::Taken => Self::conflict("slug_taken", message).field("slug"),
            CreateError::TooMany => Self::conflict("too_many_workspaces", message),
            CreateError::Storage(error) => error.into(),
        }
    }
}

/// Reads a display name: trimmed, not empty, of bounded length, without control characters.
pub(crate) fn display_name(text: &str) -> Option<&str> {
    let name = text.trim();
    let fits = !name.is_empty()
        && name.chars().count() <= NAME_LENGTH
        && !name.chars().any(char::is_control);
    fits.then_some(name)
}

/// Creates a workspace that `owner` owns. For the console and for the page without script.
pub(crate) async fn create(
    state: &AuthState,
    context: &RequestContext,
    owner: UserId,
    name: &str,
    slug: &str,
) -> Result<Tenant, CreateError> {
    let name = display_name(name).ok_or(CreateError::Name)?;
    let slug: Slug = slug.trim().parse()?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let owned = members::workspaces_of(&mut tx, owner)
        .await?
        .iter()
        .filter(|workspace| workspace.role == Role::Owner)
        .count();
    if owned >= MOST_OWNED {
        return Err(CreateError::TooMany);
    }
    let tenant = tenants::create(&mut tx, name, &slug, owner, now)
        .await
        .map_err(|error| {
            if error.is_conflict_on(SLUG_TAKEN) {
                CreateError::Taken
            } else {
                CreateError::Storage(error)
            }
        })?;
    let event = Event {
        tenant: Some(tenant.id),
        actor: Actor::User(owner),
        action: "tenant.created",
        target_kind: "tenant",
        target_id: tenant.id.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "slug": tenant.slug, "name": tenant.name }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(tenant)
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
