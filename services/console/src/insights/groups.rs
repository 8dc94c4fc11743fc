//! Parts of insights from the log of calls: failures by cause, and calls by person
//! (METER-13).

use axum::{Json, extract::State};
use portolan_metering::CallerKind;
use portolan_model::{id::UserId, member::Action};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::platform::call_groups::{self, Grouped};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::InsightsQuery;
use crate::{
    calls::member_names, input::QueryParameters, overview::outcome_word,
    tool_budget::BYTES_OF_A_TOKEN, workspace::Workspace,
};

/// Failures of a tool for one reason.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorCause {
    tool_name: String,
    /// Absent for the try page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    server_slug: Option<String>,
    /// `tool_error`, `invalid_arguments`, `upstream_error` or `internal`.
    outcome: String,
    /// HTTP status of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<i32>,
    /// The reason, in words of this service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// Calls in the period. Estimated where the log has a sample.
    calls: i64,
    /// The first one in the log, also before the period.
    #[serde(with = "time::serde::rfc3339")]
    first_at: OffsetDateTime,
    /// The last one.
    #[serde(with = "time::serde::rfc3339")]
    last_at: OffsetDateTime,
}

/// Failures by cause.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorCauses {
    /// Only failures from then on were read: the log has more than 20,000. Absent if all were read.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    #[schema(nullable = false)]
    since: Option<OffsetDateTime>,
    /// Most calls first, at most 100.
    items: Vec<ErrorCause>,
}

/// Calls of one person, or of all callers of a kind that are no people.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonUse {
    /// Absent for callers that are no people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    user_id: Option<UserId>,
    /// Absent for a person who is no longer a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_name: Option<String>,
    /// Of callers that are no people: `service`, `api_key`, `console` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    caller: Option<String>,
    /// Estimated where the log has a sample.
    calls: i64,
    /// Calls that failed: at the API, on the way to it, or here.
    errors: i64,
    /// Calls that were rejected for their arguments: nothing was sent.
    rejected: i64,
    /// Tokens of answers, estimated: a quarter of the bytes.
    tokens_out: i64,
    /// The last call.
    #[serde(with = "time::serde::rfc3339")]
    last_at: OffsetDateTime,
}

/// Calls by person.
#[derive(Debug, Serialize, ToSchema)]
pub struct PeopleUse {
    /// Only calls from then on were read: the log has more than 50,000 in the period. Absent if
    /// all were read.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    #[schema(nullable = false)]
    since: Option<OffsetDateTime>,
    /// Most calls first, at most 100.
    items: Vec<PersonUse>,
}

impl InsightsQuery {
    fn grouped(&self) -> Result<Grouped, ConsoleError> {
        Ok(Grouped {
            item: self.tool.clone(),
            slug: self.server.clone(),
            client: self.client.clone(),
            outcome: self.outcome_code()?,
        })
    }
}

/// Failed calls of a period by tool, server and reason, from the log of calls (30 days).
#[utoipa::path(get, path = "/workspaces/{ws}/insights/errors", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), InsightsQuery),
    responses((status = 200, description = "Failures by cause.", body = ErrorCauses)))]
pub(crate) async fn list_error_causes(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<InsightsQuery>,
) -> Result<Json<ErrorCauses>, ConsoleError> {
    workspace.require(Action::Read)?;
    let (grouped, span) = (query.grouped()?, query.period.span(state.now())?);
    let mut tx = state.store.tenant(workspace.id).await?;
    let causes = call_groups::causes(&mut tx, &grouped, span).await?;
    drop(tx);
    let items = causes.rows.into_iter().map(|cause| ErrorCause {
        tool_name: cause.item,
        server_slug: cause.server_slug,
        outcome: outcome_word(cause.outcome),
        status: cause.status,
        error: cause.error,
        calls: cause.calls,
        first_at: cause.first_at,
        last_at: cause.last_at,
    });
    Ok(Json(ErrorCauses {
        since: causes.since,
        items: items.collect(),
    }))
}

/// Calls of a period by person, from the log of calls (30 days).
#[utoipa::path(get, path = "/workspaces/{ws}/insights/people", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), InsightsQuery),
    responses((status = 200, description = "Calls by person.", body = PeopleUse)))]
pub(crate) async fn list_people_use(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<InsightsQuery>,
) -> Result<Json<PeopleUse>, ConsoleError> {
    workspace.require(Action::Read)?;
    let (grouped, span) = (query.grouped()?, query.period.span(state.now())?);
    let mut tx = state.store.tenant(workspace.id).await?;
    let people = call_groups::people(&mut tx, &grouped, span).await?;
    drop(tx);
    let names = member_names(&state, &workspace).await?;
    let kind = |code| CallerKind::of_code(code).map_or("unknown", CallerKind::as_str);
    let items = people.rows.into_iter().map(|person| PersonUse {
        user_name: person.user.and_then(|user| names.get(&user).cloned()),
        user_id: person.user,
        caller: person.caller.map(|code| kind(code).to_owned()),
        calls: person.calls,
        errors: person.errors,
        rejected: person.rejected,
        tokens_out: person.bytes_out / BYTES_OF_A_TOKEN,
        last_at: person.last_at,
    });
    Ok(Json(PeopleUse {
        since: people.since,
        items: items.collect(),
    }))
}
