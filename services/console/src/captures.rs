//! The calls of a server whose arguments and answers are kept (CAPTURE-1, CAPTURE-6).

use axum::{Json, extract::State};
use portolan_metering::{CapturePolicy, capture::DAYS};
use portolan_model::{
    id::{ServerId, ServerKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    TenantTx,
    platform::{
        audit,
        call_contents::{self, CaptureRow},
    },
};
use portolan_upstream_sync::credentials::data_key;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::Duration;
use utoipa::ToSchema;

use crate::{
    change,
    input::{JsonBody, PathId},
    workspace::Workspace,
};

/// The calls whose content is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapturePolicyName {
    /// Of none.
    Metadata,
    /// Of those that do not end well.
    Errors,
    /// Of a share.
    Sample,
    /// Of each.
    All,
}

impl CapturePolicyName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Errors => "errors",
            Self::Sample => "sample",
            Self::All => "all",
        }
    }
}

/// The capture policy of a server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerCapture {
    policy: CapturePolicyName,
    /// The share of `sample` in percent; absent for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 99, nullable = false)]
    percent: Option<i16>,
    /// Days for which content is kept. Fewer days delete older content at once.
    #[schema(minimum = 1, maximum = 30)]
    days: i16,
}

impl ServerCapture {
    fn of(row: &CaptureRow) -> Self {
        let policy = CapturePolicy::of_word(&row.policy, row.percent);
        let policy = policy.unwrap_or(CapturePolicy::Metadata);
        Self {
            policy: match policy {
                CapturePolicy::Metadata => CapturePolicyName::Metadata,
                CapturePolicy::Errors => CapturePolicyName::Errors,
                CapturePolicy::Sample(_) => CapturePolicyName::Sample,
                CapturePolicy::All => CapturePolicyName::All,
            },
            percent: policy.percent().map(i16::from),
            days: row.days,
        }
    }

    fn row(&self) -> Result<CaptureRow, ConsoleError> {
        let invalid = |field: &'static str, text: &'static str| {
            Err(ConsoleError::invalid("capture_invalid", text).field(field))
        };
        if !DAYS.contains(&self.days) {
            return invalid("days", "Enter 1 to 30 days.");
        }
        match CapturePolicy::of_word(self.policy.as_str(), self.percent) {
            Some(policy) => Ok(CaptureRow {
                policy: policy.as_str().to_owned(),
                percent: self.percent,
                days: self.days,
            }),
            None if self.policy == CapturePolicyName::Sample => {
                invalid("percent", "Enter 1 to 99 percent.")
            }
            None => invalid("percent", "Only a sample has a share."),
        }
    }
}

async fn found(tx: &mut TenantTx, server: ServerId) -> Result<CaptureRow, ConsoleError> {
    let row = call_contents::policy(tx, server).await?;
    row.ok_or_else(|| ConsoleError::not_found("this server"))
}

/// The capture policy of a server. All members see it.
#[utoipa::path(get, path = "/workspaces/{ws}/servers/{id}/capture", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "The policy.", body = ServerCapture)))]
pub(crate) async fn show_capture(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
) -> Result<Json<ServerCapture>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let row = found(&mut tx, id).await?;
    Ok(Json(ServerCapture::of(&row)))
}

/// Sets the capture policy of a server, for calls from now on.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/capture", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = ServerCapture,
    responses((status = 200, description = "Set.", body = ServerCapture)))]
pub(crate) async fn set_capture(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
    context: RequestContext,
    JsonBody(wanted): JsonBody<ServerCapture>,
) -> Result<Json<ServerCapture>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let after = wanted.row()?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = found(&mut tx, id).await?;
    if before == after {
        return Ok(Json(wanted));
    }
    if wanted.policy != CapturePolicyName::Metadata {
        // Nodes seal under the newest data key, and make none.
        data_key::<ConsoleError>(&state, &mut tx, workspace.id, now).await?;
    }
    // It may have been deleted since.
    if !call_contents::set_policy(&mut tx, id, &after).await? {
        return Err(ConsoleError::not_found("this server"));
    }
    let deleted = if after.days < before.days {
        let oldest = now - Duration::days(i64::from(after.days));
        call_contents::delete_before(&mut tx, id, oldest).await?
    } else {
        0
    };
    let words = |row: &CaptureRow| json!({ "policy": row.policy, "percent": row.percent, "days": row.days });
    let detail = json!({ "from": words(&before), "to": words(&after), "deleted": deleted });
    let event = workspace.event("server.capture_changed", "server", id, detail);
    change::commit(tx, &context, now, &event).await?;
    Ok(Json(wanted))
}

/// How much was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedContent {
    /// Calls whose arguments and answers were deleted.
    calls: u64,
}

/// Deletes the arguments and answers that are kept of a server's calls. The calls stay in the log.
#[utoipa::path(delete, path = "/workspaces/{ws}/servers/{id}/capture/content", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    responses((status = 200, description = "Deleted.", body = DeletedContent)))]
pub(crate) async fn delete_captured(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServerKind>,
    context: RequestContext,
) -> Result<Json<DeletedContent>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    // Nodes stamp calls by their own clocks.
    let calls = call_contents::delete_before(&mut tx, id, now + Duration::days(1)).await?;
    let detail = json!({ "calls": calls });
    let event = workspace.event("server.captured_content_deleted", "server", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(Json(DeletedContent { calls }))
}
