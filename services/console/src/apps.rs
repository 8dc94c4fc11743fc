//! AI apps that may use a workspace on a person's behalf (AUTH-R5, AUTH-R6).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{GrantId, GrantKind, UserId},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, revocation, state::AuthState,
};
use portolan_storage::{
    Reason,
    oauth::connected_apps::{self, Which},
    platform::audit,
};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{input::PathId, listing::Listing, workspace::Workspace};

/// An app that may act for a person in this workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectedApp {
    /// Id of the person's grant.
    #[schema(value_type = String)]
    id: GrantId,
    /// The app's own name, which is not verified.
    name: String,
    /// The app's `client_id`: the address of its document, or an id that this service assigned.
    client_id: String,
    /// The person for whom it acts.
    #[schema(value_type = String)]
    user_id: UserId,
    user_name: String,
    user_email: String,
    /// The address of the server, or of all of them.
    resource: String,
    /// The granted scopes.
    scopes: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Time of its last request to a server, to the minute.
    #[serde(with = "time::serde::rfc3339::option")]
    last_used_at: Option<OffsetDateTime>,
    /// Last time when another network than before repeated a refresh of its token.
    #[serde(with = "time::serde::rfc3339::option")]
    repeated_elsewhere_at: Option<OffsetDateTime>,
    /// Time when it expires.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// Number of token refreshes.
    refreshes: i32,
}

/// The apps of a workspace, last used first: all of them for admins and owners, otherwise the
/// person's own.
#[utoipa::path(get, path = "/workspaces/{ws}/apps", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The apps.", body = Listing<ConnectedApp>)))]
pub(crate) async fn list_connected_apps(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ConnectedApp>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    let apps = connected_apps::list(&mut tx, visible(&workspace)?, state.now()).await?;
    let items = apps.into_iter().map(|app| ConnectedApp {
        id: app.grant,
        name: app.client_name,
        client_id: app.client_id,
        user_id: app.user,
        user_name: app.user_name,
        user_email: app.user_email,
        resource: app.resource,
        scopes: app.scopes,
        created_at: app.created_at,
        last_used_at: app.last_used_at,
        repeated_elsewhere_at: app.elsewhere_at,
        expires_at: app.expires_at,
        refreshes: app.refreshes,
    });
    Ok(Json(Listing::whole(items.collect())))
}

/// Disconnects an app: its tokens are refused and its streams closed within a second.
#[utoipa::path(delete, path = "/workspaces/{ws}/apps/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Id of the connection")),
    responses((status = 204, description = "Disconnected.")))]
pub(crate) async fn disconnect_app(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<GrantKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Read)?;
    let now = state.now();
    let which = Which {
        grant: Some(id),
        ..visible(&workspace)?
    };
    let mut tx = state.store.system(Reason::OAuth).await?;
    let app = connected_apps::list(&mut tx, which, now).await?.pop();
    let ended = connected_apps::end(&mut tx, which, "revoked_in_console", now).await?;
    let Some(app) = app.filter(|_| !ended.grants.is_empty()) else {
        return Err(ConsoleError::not_found("this app"));
    };
    let detail = serde_json::json!({ "client_id": app.client_id, "user": app.user });
    let event = workspace.event("grant.revoked", "grant", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    Ok(StatusCode::NO_CONTENT)
}

/// The grants that the person may see and revoke.
fn visible(workspace: &Workspace) -> Result<Which, ConsoleError> {
    Ok(Which {
        tenant: Some(workspace.id),
        user: workspace.own_unless_admin()?,
        ..Which::default()
    })
}
