//! The arguments and the answer of a call, for administrators, each time with an entry in the audit
//! log (CAPTURE-8).

use axum::{Json, extract::State};
use portolan_keys::vault::{content_place, data_key_owner};
use portolan_metering::{CallContent, Captured};
use portolan_model::{
    id::{CallId, CallKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::platform::{
    audit,
    call_contents::{self, SealedContent},
    calls,
};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{input::PathId, workspace::Workspace};

/// The kept arguments and answer of a call.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevealedContent {
    /// Absent for a call without arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    arguments: Option<CapturedText>,
    /// The answer in JSON-RPC; absent if the client got none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    answer: Option<CapturedText>,
    /// From then on it is not shown any more.
    #[serde(with = "time::serde::rfc3339")]
    ends_at: OffsetDateTime,
}

/// A kept text: JSON, unless it was cut.
#[derive(Debug, Serialize, ToSchema)]
pub struct CapturedText {
    /// Up to 64 KiB. `••••` stands for secrets and personal data.
    text: String,
    /// Bytes on the wire.
    bytes: u64,
    /// The text is a part.
    is_cut: bool,
    /// Places that were masked before the text was kept.
    masked: u32,
}

impl From<Captured> for CapturedText {
    fn from(kept: Captured) -> Self {
        Self {
            text: kept.text,
            bytes: kept.bytes,
            is_cut: kept.is_cut,
            masked: kept.masked,
        }
    }
}

/// The answer for a call without content, and for every member who may not see it.
fn nothing_kept() -> ConsoleError {
    ConsoleError::not_found("the content of this call")
}

/// Shows the arguments and the answer of a call, and writes an entry in the audit log. 404 if
/// nothing is kept of the call, and for members who may not see it.
#[utoipa::path(post, path = "/workspaces/{ws}/calls/{id}/reveal", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Call")),
    responses((status = 200, description = "The content.", body = RevealedContent)))]
pub(crate) async fn reveal_call(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<CallKind>,
    context: RequestContext,
) -> Result<Json<RevealedContent>, ConsoleError> {
    if !workspace.role.may(Action::Administer) {
        return Err(nothing_kept());
    }
    let now = state.now();
    workspace.require_recent_at(now, &format!("/w/{}/calls/{id}", workspace.slug))?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let kept = call_contents::find(&mut tx, id, now).await?;
    let kept = kept.ok_or_else(nothing_kept)?;
    let content = opened(&state, &workspace, id, &kept)?;
    let entry = calls::find(&mut tx, id).await?;
    let (server, tool) = entry.map(|entry| (entry.server_slug, entry.item)).unzip();
    let detail = json!({ "server": server.flatten(), "tool": tool });
    let event = workspace.event("call.revealed", "call", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    // The content leaves only after the entry stands.
    tx.commit().await?;
    Ok(Json(RevealedContent {
        arguments: content.arguments.map(Into::into),
        answer: content.answer.map(Into::into),
        ends_at: kept.ends_at,
    }))
}

fn opened(
    state: &AuthState,
    workspace: &Workspace,
    call: CallId,
    kept: &SealedContent,
) -> Result<CallContent, ConsoleError> {
    let (tenant, now) = (workspace.id.uuid().into_bytes(), state.now());
    let owner = data_key_owner(tenant, kept.key_id.into_bytes());
    let place = content_place(tenant, call.uuid().into_bytes());
    let plain = state
        .keys
        .open_data_key(&owner, &kept.wrapped_key, now)
        .and_then(|key| key.open_content(&place, &kept.sealed, now))
        .map_err(|fault| ConsoleError::internal("content of a call", fault))?;
    serde_json::from_slice(plain.expose())
        .map_err(|_| ConsoleError::internal("content of a call", "it cannot be read"))
}
