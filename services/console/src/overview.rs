//! The first page of a workspace: what there is, what happened lately, what is still to do.

use std::collections::HashMap;

use axum::{Json, extract::State};
use portolan_metering::key::outcome_of;
use portolan_model::{
    id::{CallId, SourceId, UserId},
    member::Action,
    registry::CallOutcome,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    Reason,
    accounts::members,
    platform::{
        calls::{self, Entry, Wanted},
        usage,
    },
    registry::credential_states,
};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::workspace::Workspace;

/// Calls on the first page.
const RECENT: i64 = 8;

/// The first page of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    sources: i64,
    /// Tools that can be published.
    tools_enabled: i64,
    /// Servers that answer.
    servers_published: i64,
    calls_24h: CallStatistics,
    /// Newest first.
    recent_calls: Vec<CallLog>,
    /// Credentials that APIs refused when they were last used.
    refused_credentials: Vec<RefusedCredential>,
    setup: Setup,
}

/// A credential that an API refused.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusedCredential {
    #[schema(value_type = String)]
    source_id: SourceId,
    source_name: String,
    /// HTTP status.
    status: u16,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
}

impl From<credential_states::RefusedCredential> for RefusedCredential {
    fn from(refused: credential_states::RefusedCredential) -> Self {
        Self {
            source_id: refused.source,
            source_name: refused.name,
            status: refused.status,
            at: refused.at,
        }
    }
}

/// Calls of the last 24 hours.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallStatistics {
    total: i64,
    /// Calls that failed: at the API, on the way to it, or here.
    errors: i64,
    /// Calls that were rejected for their arguments: nothing was sent.
    rejected: i64,
    /// Oldest first, the present hour last, empty hours too.
    by_hour: Vec<HourOfCalls>,
}

/// Calls of one hour.
#[derive(Debug, Serialize, ToSchema)]
pub struct HourOfCalls {
    /// Its beginning.
    #[serde(with = "time::serde::rfc3339")]
    hour: OffsetDateTime,
    calls: i64,
    /// Calls that failed.
    errors: i64,
    /// Calls that were rejected for their arguments.
    rejected: i64,
}

/// The steps that a new workspace still has to take.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent steps, as the API shows them"
)]
pub struct Setup {
    has_source: bool,
    has_credential: bool,
    /// A server is published.
    has_server: bool,
    /// An AI client has called a tool, and the call succeeded.
    has_call: bool,
}

/// A call, without arguments and result.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallLog {
    #[schema(value_type = String)]
    id: CallId,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// Absent for the try page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    server_slug: Option<String>,
    tool_name: String,
    /// Name of the AI client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_name: Option<String>,
    /// Absent for a person who is no longer a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_name: Option<String>,
    #[schema(value_type = CallOutcomeName)]
    outcome: String,
    /// HTTP status of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<i32>,
    duration_ms: i64,
    /// How many calls the entry stands for: more than 1 in a sample. Counts are exact.
    weight: i32,
}

/// How a call ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CallOutcome)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::CallOutcome"
)]
enum CallOutcomeName {
    Ok,
    ToolError,
    InvalidArguments,
    UpstreamError,
    Internal,
}

/// The word of an outcome; `internal` for one of a newer release.
pub(crate) fn outcome_word(code: i16) -> String {
    let outcome = outcome_of(code).unwrap_or(CallOutcome::Internal);
    outcome.as_str().to_owned()
}

/// Calls as the console shows them. Names are those of today's members.
pub(crate) async fn call_logs(
    state: &AuthState,
    workspace: &Workspace,
    entries: Vec<Entry>,
) -> Result<Vec<CallLog>, ConsoleError> {
    let names: HashMap<UserId, String> = if entries.iter().any(|entry| entry.user.is_some()) {
        let mut tx = state.store.system(Reason::Workspaces).await?;
        let members = members::list(&mut tx, workspace.id).await?;
        members
            .into_iter()
            .map(|member| (member.user, member.display_name))
            .collect()
    } else {
        HashMap::new()
    };
    let shown = entries.into_iter().map(|entry| CallLog {
        id: entry.id,
        at: entry.at,
        server_slug: entry.server_slug,
        tool_name: entry.item,
        client_name: entry.client,
        user_name: entry.user.and_then(|user| names.get(&user).cloned()),
        outcome: outcome_word(entry.outcome),
        status: entry.status,
        duration_ms: entry.took_us / 1000,
        weight: entry.weight,
    });
    Ok(shown.collect())
}

/// The first page of a workspace.
#[utoipa::path(get, path = "/workspaces/{ws}/overview", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The overview.", body = Overview)))]
pub(crate) async fn show_overview(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Overview>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let counts = calls::counts(&mut tx).await?;
    let hours = usage::by_hour(&mut tx, state.now()).await?;
    let recent = calls::list(&mut tx, &Wanted::default(), RECENT).await?;
    let refused = credential_states::refused(&mut tx).await?;
    drop(tx);
    Ok(Json(Overview {
        sources: counts.sources,
        tools_enabled: counts.tools_enabled,
        servers_published: counts.servers_published,
        calls_24h: CallStatistics {
            total: hours.iter().map(|hour| hour.calls).sum(),
            errors: hours.iter().map(|hour| hour.errors).sum(),
            rejected: hours.iter().map(|hour| hour.rejected).sum(),
            by_hour: hours
                .into_iter()
                .map(|hour| HourOfCalls {
                    hour: hour.hour,
                    calls: hour.calls,
                    errors: hour.errors,
                    rejected: hour.rejected,
                })
                .collect(),
        },
        recent_calls: call_logs(&state, &workspace, recent).await?,
        refused_credentials: refused.into_iter().map(RefusedCredential::from).collect(),
        setup: Setup {
            has_source: counts.sources > 0,
            has_credential: counts.credentials > 0,
            has_server: counts.servers_published > 0,
            has_call: counts.has_call,
        },
    }))
}
