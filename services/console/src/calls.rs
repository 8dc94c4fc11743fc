//! The log of tool calls: pages, one call, its content, an export, and a live view.

pub mod export;
pub mod live;
pub mod reveal;
pub mod views;

use std::collections::HashMap;

use axum::{Json, extract::State};
use portolan_metering::{CallEra, CallerKind, key::outcome_code};
use portolan_model::{
    Timestamp,
    id::{CallId, CallKind, ServerId, ServerKind, UserId},
    member::Action,
    registry::CallOutcome,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    Reason,
    accounts::members,
    platform::{
        call_contents,
        calls::{self, Entry, Wanted},
    },
};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    input::{PathId, QueryParameters},
    listing::{Listing, Pages},
    overview::{CallLog, call_logs, outcome_word},
    servers::found_server,
    workspace::Workspace,
};

/// Calls of one page.
const PAGE: usize = 50;

/// Name of the list in its cursors.
const LIST: &str = "calls";

/// Outcomes that are not `ok`.
const ERRORS: [CallOutcome; 4] = [
    CallOutcome::ToolError,
    CallOutcome::InvalidArguments,
    CallOutcome::UpstreamError,
    CallOutcome::Internal,
];

/// Which calls are wanted. Without a parameter: all.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CallFilter {
    /// Name of the tool.
    tool: Option<String>,
    /// Slug of the server.
    server: Option<String>,
    /// Part of the client's name.
    client: Option<String>,
    /// Id of a person, or a part of the name or address of a member.
    user: Option<String>,
    /// `ok`, `error` (every other one), `tool_error`, `invalid_arguments`, `upstream_error` or
    /// `internal`.
    outcome: Option<String>,
    /// `session`, `stateless`, `console` or `unknown`.
    era: Option<String>,
    /// Longer than so many milliseconds.
    longer_ms: Option<u32>,
    /// Shorter than so many milliseconds.
    shorter_ms: Option<u32>,
    /// At this time or later (RFC 3339).
    from: Option<String>,
    /// Before this time (RFC 3339).
    to: Option<String>,
}

/// The wanted page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CallQuery {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl CallFilter {
    /// What storage is asked. 422 with the parameter for a value that no call can have.
    pub(crate) async fn wanted(
        &self,
        state: &AuthState,
        workspace: &Workspace,
    ) -> Result<Wanted, ConsoleError> {
        let longest = |millis: u32| i64::from(millis) * 1000;
        Ok(Wanted {
            slug: self.server.clone(),
            item: self.tool.clone(),
            client: self.client.clone(),
            users: match &self.user {
                Some(text) => Some(people(state, workspace, text).await?),
                None => None,
            },
            outcomes: self.outcome.as_deref().map(outcomes).transpose()?,
            era: self.era.as_deref().map(era).transpose()?,
            longer_us: self.longer_ms.map(longest),
            shorter_us: self.shorter_ms.map(longest),
            from: time_of("from", self.from.as_deref())?,
            to: time_of("to", self.to.as_deref())?,
            ..Wanted::default()
        })
    }
}

fn outcomes(word: &str) -> Result<Vec<i16>, ConsoleError> {
    match word {
        "ok" => Ok(vec![outcome_code(CallOutcome::Ok)]),
        "error" => Ok(ERRORS.map(outcome_code).to_vec()),
        _ => match word.parse::<CallOutcome>() {
            Ok(outcome) => Ok(vec![outcome_code(outcome)]),
            Err(_) => Err(ConsoleError::invalid(
                "invalid_filter",
                "Use ok, error, tool_error, invalid_arguments, upstream_error or internal.",
            )
            .field("outcome")),
        },
    }
}

fn era(word: &str) -> Result<i16, ConsoleError> {
    CallEra::of_word(word).map(CallEra::code).ok_or_else(|| {
        let text = "Use session, stateless, console or unknown.";
        ConsoleError::invalid("invalid_filter", text).field("era")
    })
}

/// A time of a query.
pub(crate) fn time_of(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<Timestamp>, ConsoleError> {
    // A time near the ends of what is representable has no form in UTC.
    let read = |text| {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok();
        at.and_then(|at| at.checked_to_offset(UtcOffset::UTC))
    };
    text.map(|text| read(text).ok_or(()))
        .transpose()
        .map_err(|()| {
            let text = "Use a time such as 2026-11-26T12:00:00Z.";
            ConsoleError::invalid("invalid_filter", text).field(field)
        })
}

/// The people whom a text names: an id, or members by name or address.
async fn people(
    state: &AuthState,
    workspace: &Workspace,
    text: &str,
) -> Result<Vec<UserId>, ConsoleError> {
    if let Ok(id) = text.parse() {
        return Ok(vec![id]);
    }
    let wanted = text.to_lowercase();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let members = members::list(&mut tx, workspace.id).await?;
    let is_named = |name: &str| name.to_lowercase().contains(&wanted);
    Ok(members
        .into_iter()
        .filter(|member| is_named(&member.display_name) || is_named(&member.email))
        .map(|member| member.user)
        .collect())
}

/// Names of today's members.
pub(crate) async fn member_names(
    state: &AuthState,
    workspace: &Workspace,
) -> Result<HashMap<UserId, String>, ConsoleError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let members = members::list(&mut tx, workspace.id).await?;
    Ok(members
        .into_iter()
        .map(|member| (member.user, member.display_name))
        .collect())
}

/// Calls of a workspace, newest first, without arguments and results.
#[utoipa::path(get, path = "/workspaces/{ws}/calls", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), CallQuery, CallFilter),
    responses((status = 200, description = "A page of calls.", body = Listing<CallLog>)))]
pub(crate) async fn list_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<CallQuery>,
    QueryParameters(filter): QueryParameters<CallFilter>,
) -> Result<Json<Listing<CallLog>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let wanted = filter.wanted(&state, &workspace).await?;
    Ok(Json(page(&state, &workspace, wanted, query).await?))
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
    let wanted = Wanted {
        server: Some(id),
        ..Wanted::default()
    };
    Ok(Json(page(&state, &workspace, wanted, query).await?))
}

async fn page(
    state: &AuthState,
    workspace: &Workspace,
    wanted: Wanted,
    query: CallQuery,
) -> Result<Listing<CallLog>, ConsoleError> {
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let wanted = Wanted {
        before: pages.position(query.cursor.as_deref(), read_position)?,
        ..wanted
    };
    let mut tx = state.store.tenant(workspace.id).await?;
    let mut entries = calls::list(&mut tx, &wanted, pages.limit()).await?;
    drop(tx);
    let next_cursor = pages.cut(&mut entries, position);
    Ok(Listing {
        items: call_logs(state, workspace, entries).await?,
        next_cursor,
    })
}

/// The bytes of a cursor: time in nanoseconds, and id.
fn position(last: &Entry) -> Vec<u8> {
    let mut bytes = last.at.unix_timestamp_nanos().to_be_bytes().to_vec();
    bytes.extend_from_slice(last.id.uuid_bytes());
    bytes
}

fn read_position(bytes: &[u8]) -> Option<(Timestamp, CallId)> {
    let (at, id) = bytes.split_first_chunk::<16>()?;
    let at = Timestamp::from_unix_timestamp_nanos(i128::from_be_bytes(*at)).ok()?;
    let id = Uuid::from_bytes(id.try_into().ok()?);
    Some((at, CallId::from_uuid(id)))
}

/// All that is known of a call, without arguments and result.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallDetail {
    #[schema(value_type = String)]
    id: CallId,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    server_id: Option<ServerId>,
    /// Absent for the try page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    server_slug: Option<String>,
    tool_name: String,
    /// `person`, `service`, `api_key`, `console` or `unknown`.
    caller: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    user_id: Option<UserId>,
    /// Absent for a person who is no longer a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_version: Option<String>,
    /// OAuth client, as it names itself on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_id: Option<String>,
    /// Revision of MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revision: Option<String>,
    /// `session`, `stateless`, `console` or `unknown`.
    era: String,
    outcome: String,
    /// HTTP status of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<i32>,
    /// What went wrong, in words of this service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    timing: CallTiming,
    /// Bytes of the parameters.
    bytes_in: i64,
    /// Bytes of the answer.
    bytes_out: i64,
    /// Name of the session. It opens nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session: Option<String>,
    /// Trace id, 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<String>,
    /// The node that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    node: Option<String>,
    /// How many calls the entry stands for: more than 1 in a sample.
    weight: i32,
    /// Until when its arguments and answer are kept. Absent if nothing is kept, and for members who
    /// may not see it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    #[schema(nullable = false)]
    content_until: Option<OffsetDateTime>,
}

/// Where the time of a call went, in microseconds. Zero where it was not measured.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallTiming {
    /// Before the work: limits and queues.
    wait_us: i64,
    /// At the API or upstream server.
    backend_us: i64,
    /// The rest of the work here.
    own_us: i64,
    /// The work in all: `backend_us` and `own_us`.
    took_us: i64,
}

impl CallDetail {
    fn of(entry: Entry, names: &HashMap<UserId, String>) -> Self {
        let word = |known: Option<&'static str>| known.unwrap_or("unknown").to_owned();
        Self {
            id: entry.id,
            at: entry.at,
            server_id: entry.server,
            server_slug: entry.server_slug,
            tool_name: entry.item,
            caller: word(CallerKind::of_code(entry.caller).map(CallerKind::as_str)),
            user_id: entry.user,
            user_name: entry.user.and_then(|user| names.get(&user).cloned()),
            client_name: entry.client,
            client_version: entry.client_version,
            client_id: entry.client_id,
            revision: entry.revision,
            era: word(CallEra::of_code(entry.era).map(CallEra::as_str)),
            outcome: outcome_word(entry.outcome),
            status: entry.status,
            error: entry.error,
            timing: CallTiming {
                wait_us: entry.wait_us,
                backend_us: entry.backend_us,
                own_us: (entry.took_us - entry.backend_us).max(0),
                took_us: entry.took_us,
            },
            bytes_in: entry.bytes_in,
            bytes_out: entry.bytes_out,
            session: entry.session,
            trace_id: entry.trace.as_deref().map(hex),
            node: entry.node,
            weight: entry.weight,
            content_until: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One call. 404 for a call that the log does not have, or has no more.
#[utoipa::path(get, path = "/workspaces/{ws}/calls/{id}", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Call: `_meta[\"io.github.portolan/callId\"]` of its answer")),
    responses((status = 200, description = "The call.", body = CallDetail)))]
pub(crate) async fn show_call(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<CallKind>,
) -> Result<Json<CallDetail>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let entry = calls::find(&mut tx, id).await?;
    let entry = entry.ok_or_else(|| ConsoleError::not_found("this call"))?;
    // That something is kept is known to those alone who may see it (CAPTURE-8).
    let content_until = if workspace.role.may(Action::Administer) {
        call_contents::ends_at(&mut tx, id, state.now()).await?
    } else {
        None
    };
    drop(tx);
    let names = member_names(&state, &workspace).await?;
    Ok(Json(CallDetail {
        content_until,
        ..CallDetail::of(entry, &names)
    }))
}
