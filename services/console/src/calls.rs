//! The log of tool calls.

use axum::{Json, extract::State};
use portolan_model::{
    id::{ServerId, ServerKind},
    member::Action,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::platform::calls;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    input::{PathId, QueryParameters},
    listing::{Listing, Pages},
    overview::{CallLog, call_logs},
    servers::found_server,
    workspace::Workspace,
};

/// Calls of one page.
const PAGE: usize = 50;

/// Name of the list in its cursors.
const LIST: &str = "calls";

/// The wanted page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CallQuery {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Calls of a workspace, newest first, without arguments and results.
#[utoipa::path(get, path = "/workspaces/{ws}/calls", tag = "calls", params(("ws" = String, Path, description = "Slug"), CallQuery),
    responses((status = 200, description = "A page of calls.", body = Listing<CallLog>)))]
pub(crate) async fn list_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<CallQuery>,
) -> Result<Json<Listing<CallLog>>, ConsoleError> {
    workspace.require(Action::Read)?;
    Ok(Json(page(&state, &workspace, None, query).await?))
}

/// Calls through one server, newest first.
#[utoipa::path(get, path = "/workspaces/{ws}/servers/{id}/calls", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server"), CallQuery),
    responses((status = 200, description = "A page of calls.", body = Listing<CallLog>)))]
pub(crate) async fn list_server_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
    QueryParameters(query): QueryParameters<CallQuery>,
) -> Result<Json<Listing<CallLog>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found_server(&mut tx, id).await?;
    drop(tx);
    Ok(Json(page(&state, &workspace, Some(id), query).await?))
}

async fn page(
    state: &AuthState,
    workspace: &Workspace,
    server: Option<ServerId>,
    query: CallQuery,
) -> Result<Listing<CallLog>, ConsoleError> {
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let before = pages.position(query.cursor.as_deref(), |bytes| {
        bytes.try_into().map(i64::from_be_bytes).ok()
    })?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let mut entries = calls::list(&mut tx, server, before, pages.limit()).await?;
    drop(tx);
    let next_cursor = pages.cut(&mut entries, |last| last.id.to_be_bytes().to_vec());
    Ok(Listing {
        items: call_logs(state, workspace, entries).await?,
        next_cursor,
    })
}
