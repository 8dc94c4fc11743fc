//! Who did what in a workspace.

use axum::{Json, extract::State};
use portolan_model::{
    id::{AuditId, UserId},
    member::Action,
};
use portolan_storage::audit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    Listing,
    error::ConsoleError,
    input::{QueryParameters, cursor, read_cursor},
    workspace::Workspace,
};
use crate::state::AuthState;

/// Entries of one page.
const PAGE: usize = 50;
/// Name of the list inside its cursors.
const LIST: &str = "audit";

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditEvent {
    #[schema(value_type = String)]
    id: AuditId,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    actor: AuditActor,
    /// What, as `noun.verb`: `source.created`.
    #[schema(example = "source.created")]
    action: String,
    target_kind: String,
    target_id: String,
    /// `ok` or `refused`.
    outcome: String,
    /// More, depending on the action.
    #[schema(value_type = Object)]
    detail: Value,
}

/// Who acted.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditActor {
    /// `user`, `anonymous` or `system`.
    kind: String,
    /// Who, for `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    user_id: Option<UserId>,
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The audit log of a workspace, newest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/audit", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), AuditQuery),
    responses((status = 200, description = "A page of entries.", body = Listing<AuditEvent>)))]
pub(crate) async fn list_audit_events(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<Json<Listing<AuditEvent>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let before = match query.cursor {
        Some(text) => Some(position(&read_cursor(
            &state.keys,
            LIST,
            workspace.id,
            &text,
        )?)?),
        None => None,
    };
    let mut tx = state.store.tenant(workspace.id).await?;
    let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let mut entries = audit::list(&mut tx, before, limit).await?;
    let has_more = entries.len() > PAGE;
    entries.truncate(PAGE);
    let next_cursor = entries
        .last()
        .filter(|_| has_more)
        .map(|last| cursor(&state.keys, LIST, workspace.id, last.id.uuid().as_bytes()));
    let items = entries.into_iter().map(|entry| AuditEvent {
        id: entry.id,
        at: entry.at,
        actor: AuditActor {
            kind: entry.actor_kind,
            user_id: entry.actor,
        },
        action: entry.action,
        target_kind: entry.target_kind,
        target_id: entry.target_id,
        outcome: entry.outcome,
        detail: entry.detail,
    });
    Ok(Json(Listing {
        items: items.collect(),
        next_cursor,
    }))
}

fn position(bytes: &[u8]) -> Result<AuditId, ConsoleError> {
    Uuid::from_slice(bytes)
        .map(AuditId::from_uuid)
        .map_err(|error| {
            ConsoleError::invalid("invalid_cursor", "Start from the first page.")
                .field("cursor")
                .caused_by(error)
        })
}
