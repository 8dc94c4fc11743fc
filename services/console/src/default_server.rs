//! The default server of a workspace: the target of the workspace's own URL, and of `/mcp` for its
//! tokens (AUTH-5.1).
//!
//! The first published server becomes the default (see [`super::servers`]). Afterwards
//! administrators choose it.

use axum::extract::State;
use http::StatusCode;
use portolan_model::{id::ServerId, member::Action};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage,
};
use portolan_storage::registry::servers::{self, Server};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{change, input::JsonBody, workspace::Workspace};

/// The action's name in the audit log.
pub(crate) const CHANGED: &str = "tenant.default_server_changed";

/// The choice of the default server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultServer {
    /// Null means none: the workspace's own URL then answers as for an unknown server.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, value_type = Option<String>)]
    server_id: Option<ServerId>,
}

/// Sets the default server: the target of the workspace's own URL while that server is published.
#[utoipa::path(put, path = "/workspaces/{ws}/default-server", tag = "servers", params(("ws" = String, Path, description = "Slug")),
    request_body = DefaultServer, responses((status = 204, description = "Chosen.")))]
pub(crate) async fn choose_default_server(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(choice): JsonBody<DefaultServer>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    // Tokens and keys that name no server open the default one.
    workspace.require_recent_or_token(state.now(), ConsolePage::Servers)?;
    let unknown = || ConsoleError::not_found("this server");
    let mut tx = state.store.tenant(workspace.id).await?;
    let all = servers::list(&mut tx).await?;
    let before = all.iter().find(|server| server.is_default);
    let after = match choice.server_id {
        Some(id) => {
            let chosen = all.iter().find(|server| server.id == id);
            Some(chosen.ok_or_else(unknown)?)
        }
        None => None,
    };
    if after.is_some_and(|server| server.is_default) {
        return Ok(StatusCode::NO_CONTENT);
    }
    // It may have been deleted since.
    if !servers::set_default(&mut tx, choice.server_id).await? {
        return Err(unknown());
    }
    let slug = |server: Option<&Server>| server.map(|server| server.slug.clone());
    let entry = json!({ "from": slug(before), "to": slug(after) });
    let event = workspace.event(CHANGED, "tenant", workspace.id, entry);
    change::commit(tx, &context, state.now(), &event).await?;
    Ok(StatusCode::NO_CONTENT)
}
