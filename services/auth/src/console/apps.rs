//! AI apps that may use a workspace in somebody's name (`auth.md` R5, R6).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{GrantId, GrantKind, UserId},
    member::Action,
};
use portolan_storage::{
    Reason, audit,
    connected_apps::{self, Which},
};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{Listing, error::ConsoleError, input::PathId, workspace::Workspace};
use crate::{revoke, state::AuthState, visitor::Visitor};

/// An app that may act for a person here.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectedApp {
    /// What the person allowed, once.
    #[schema(value_type = String)]
    id: GrantId,
    /// As the app calls itself. Nothing proves it.
    name: String,
    /// The app on the wire: the address of its document, or an id that we gave it.
    client_id: String,
    /// For whom it acts.
    #[schema(value_type = String)]
    user_id: UserId,
    user_name: String,
    user_email: String,
    /// The address of the server, or of all of them.
    resource: String,
    /// What it may do.
    scopes: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Its last request at a server, to the minute.
    #[serde(with = "time::serde::rfc3339::option")]
    last_used_at: Option<OffsetDateTime>,
    /// When a renewal of its token was last repeated from another network than before.
    #[serde(with = "time::serde::rfc3339::option")]
    repeated_elsewhere_at: Option<OffsetDateTime>,
    /// When it ends by itself.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// How often it renewed its token.
    refreshes: i32,
}

/// The apps of a workspace, last used first: all of them for admins and owners, one's own for everybody else.
#[utoipa::path(get, path = "/workspaces/{ws}/apps", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The apps.", body = Listing<ConnectedApp>)))]
pub(crate) async fn list_connected_apps(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ConnectedApp>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.system(Reason::OAuth).await?;
    let apps = connected_apps::list(&mut tx, visible(&workspace), state.now()).await?;
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
    visitor: Visitor,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Read)?;
    let now = state.now();
    let which = Which {
        grant: Some(id),
        ..visible(&workspace)
    };
    let mut tx = state.store.system(Reason::OAuth).await?;
    let app = connected_apps::list(&mut tx, which, now).await?.pop();
    let ended = connected_apps::end(&mut tx, which, "revoked_in_console", now).await?;
    let Some(app) = app.filter(|_| !ended.grants.is_empty()) else {
        return Err(ConsoleError::not_found("this app"));
    };
    let detail = serde_json::json!({ "client_id": app.client_id, "user": app.user });
    let event = workspace.event("grant.revoked", "grant", id, detail);
    audit::record(&mut tx, &event, &visitor.origin(), now).await?;
    tx.commit().await?;
    revoke::tell(&state, &ended);
    Ok(StatusCode::NO_CONTENT)
}

/// What the person may see and end.
fn visible(workspace: &Workspace) -> Which {
    Which {
        tenant: Some(workspace.id),
        user: (!workspace.role.may(Action::Administer)).then_some(workspace.session.user),
        ..Which::default()
    }
}
