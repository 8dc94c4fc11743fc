//! The limits of a workspace: the effective and configurable values, use and refusals
//! (STREAM-16).

use axum::{Json, extract::State};
use portolan_model::{
    limits::{LimitName, LimitSet},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage,
};
use portolan_storage::platform::limits::{self, Bucket};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use crate::{
    change,
    input::{JsonBody, given},
    workspace::Workspace,
};

/// Minutes of one bucket of the plot.
const BUCKET: i64 = 5;

/// Buckets of the plot: six hours.
const BUCKETS: i64 = 72;

/// The limits of a workspace, and their effects.
#[derive(Debug, Serialize, ToSchema)]
pub struct Limits {
    /// One for each name, always in the same order.
    limits: Vec<LimitView>,
    usage: Usage,
}

/// One limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limit)]
pub struct LimitView {
    #[schema(value_type = LimitNameName)]
    name: &'static str,
    unit: LimitUnit,
    /// The effective value; null = no limit.
    #[schema(required)]
    value: Option<u32>,
    /// The platform's default; null = no limit.
    #[schema(required)]
    default: Option<u32>,
    /// The workspace's own value; null = the default applies.
    #[schema(required)]
    own: Option<u32>,
    /// The least value that can be set.
    minimum: u32,
    /// The greatest value that can be set.
    maximum: u32,
    /// Present use over all nodes, some seconds old. Null for limits per minute, and if it is
    /// unknown.
    #[schema(required)]
    in_use: Option<u64>,
    /// Requests that it refused in the time of `usage`.
    refused: i64,
}

/// The name of a limit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LimitName)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::limits::LimitName"
)]
enum LimitNameName {
    /// Calls of the whole workspace.
    TenantCalls,
    /// Requests of one person with one AI client.
    ClientRequests,
    /// Calls of one tool.
    ToolCalls,
    /// Concurrent calls of the workspace.
    RunningCalls,
    /// Concurrent event streams of the workspace.
    OpenStreams,
    /// New event streams of one person with one AI client.
    StreamOpens,
    /// Concurrent event streams of one session.
    SessionStreams,
    /// Concurrent `subscriptions/listen` streams of one person with one AI client.
    Listens,
    /// Concurrent calls of one person with one AI client that wait for its answer.
    ParkedCalls,
    /// Stored tasks of one person with one AI client on one server.
    Tasks,
}

/// The unit of a limit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum LimitUnit {
    /// Events per minute.
    PerMinute,
    /// Items at the same time.
    AtOnce,
}

/// Use in the last six hours.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitUsage)]
pub struct Usage {
    /// Beginning of the first bucket.
    #[serde(with = "time::serde::rfc3339")]
    from: OffsetDateTime,
    bucket_minutes: i64,
    /// Oldest first, the present one last, empty ones included.
    buckets: Vec<UsageBucket>,
}

/// Some minutes.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageBucket {
    /// Beginning of the bucket.
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// Calls that began.
    calls: i64,
    /// Most calls that began in one minute.
    busiest_minute: i64,
    /// Requests that limits refused.
    refused: i64,
}

impl From<Bucket> for UsageBucket {
    fn from(bucket: Bucket) -> Self {
        Self {
            at: bucket.at,
            calls: bucket.calls,
            busiest_minute: bucket.busiest_minute,
            refused: bucket.refused,
        }
    }
}

/// A change of limits. Absent = leave, null = back to the platform's default.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsChange {
    /// Calls of the whole workspace per minute.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    tenant_calls: Option<Option<u32>>,
    /// Requests of one person with one AI client per minute.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    client_requests: Option<Option<u32>>,
    /// Calls of one tool per minute.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    tool_calls: Option<Option<u32>>,
    /// Concurrent calls.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    running_calls: Option<Option<u32>>,
    /// Concurrent event streams.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    open_streams: Option<Option<u32>>,
    /// New event streams of one person with one AI client per minute.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    stream_opens: Option<Option<u32>>,
    /// Concurrent event streams of one session.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    session_streams: Option<Option<u32>>,
    /// Concurrent `subscriptions/listen` streams of one person with one AI client.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    listens: Option<Option<u32>>,
    /// Concurrent calls of one person with one AI client that wait for its answer.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    parked_calls: Option<Option<u32>>,
    /// Stored tasks of one person with one AI client on one server.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    tasks: Option<Option<u32>>,
}

impl LimitsChange {
    const fn of(&self, name: LimitName) -> Option<Option<u32>> {
        match name {
            LimitName::TenantCalls => self.tenant_calls,
            LimitName::ClientRequests => self.client_requests,
            LimitName::ToolCalls => self.tool_calls,
            LimitName::RunningCalls => self.running_calls,
            LimitName::OpenStreams => self.open_streams,
            LimitName::StreamOpens => self.stream_opens,
            LimitName::SessionStreams => self.session_streams,
            LimitName::Listens => self.listens,
            LimitName::ParkedCalls => self.parked_calls,
            LimitName::Tasks => self.tasks,
        }
    }
}

/// The limits of a workspace, and their use.
#[utoipa::path(get, path = "/workspaces/{ws}/limits", tag = "limits", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The limits.", body = Limits)))]
pub(crate) async fn show_limits(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Limits>, ConsoleError> {
    workspace.require(Action::Read)?;
    view(&state, &workspace).await.map(Json)
}

/// Changes limits of a workspace, within the platform's bounds. For admins and owners. Running
/// calls and streams continue.
#[utoipa::path(patch, path = "/workspaces/{ws}/limits", tag = "limits", params(("ws" = String, Path, description = "Slug")),
    request_body = LimitsChange, responses((status = 200, description = "Changed.", body = Limits)))]
pub(crate) async fn change_limits(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(wanted): JsonBody<LimitsChange>,
) -> Result<Json<Limits>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let platform = &state.config.limits.platform;
    for name in LimitName::ALL {
        let Some(Some(value)) = wanted.of(name) else {
            continue;
        };
        let maximum = platform.maximum(name);
        if !(1..=maximum).contains(&value) {
            return Err(ConsoleError::invalid(
                "limit_out_of_range",
                format!("Choose a number between 1 and {maximum}, or go back to the default."),
            )
            .field(name.as_str())
            .details(json!({ "minimum": 1, "maximum": maximum })));
        }
    }
    let now = state.now();
    workspace.require_recent_or_token(now, ConsolePage::Limits)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let own = limits::own(&mut tx).await?;
    let mut changed = Map::new();
    for name in LimitName::ALL {
        let Some(value) = wanted.of(name).filter(|value| *value != own.get(name)) else {
            continue;
        };
        limits::set(&mut tx, name, value, now).await?;
        let detail = json!({ "from": own.get(name), "to": value });
        changed.insert(name.as_str().to_owned(), detail);
    }
    if !changed.is_empty() {
        let event = workspace.event(
            "limits.changed",
            "workspace",
            workspace.id,
            Value::Object(changed),
        );
        change::commit(tx, &context, now, &event).await?;
    }
    view(&state, &workspace).await.map(Json)
}

async fn view(state: &AuthState, workspace: &Workspace) -> Result<Limits, ConsoleError> {
    let now = state.now();
    let from = beginning(now);
    let mut tx = state.store.tenant(workspace.id).await?;
    let own = limits::own(&mut tx).await?;
    let refused = limits::refused_since(&mut tx, from).await?;
    let until = from + Duration::minutes(BUCKET * BUCKETS);
    let buckets = limits::usage(&mut tx, from, until).await?;
    drop(tx);
    let in_use = state.config.limits.in_use.ask(workspace.id).await;
    let platform = &state.config.limits.platform;
    let holds: LimitSet = platform.effective(&own);
    let limits = LimitName::ALL.map(|name| LimitView {
        name: name.as_str(),
        unit: if name.is_at_once() {
            LimitUnit::AtOnce
        } else {
            LimitUnit::PerMinute
        },
        value: holds.get(name),
        default: platform.defaults.get(name),
        own: own.get(name),
        minimum: 1,
        maximum: platform.maximum(name),
        in_use: match name {
            LimitName::RunningCalls => in_use[0],
            LimitName::OpenStreams => in_use[1],
            _ => None,
        },
        refused: refused
            .iter()
            .find(|(refused, _)| *refused == name)
            .map_or(0, |(_, count)| *count),
    });
    Ok(Limits {
        limits: limits.into(),
        usage: Usage {
            from,
            bucket_minutes: BUCKET,
            buckets: buckets.into_iter().map(UsageBucket::from).collect(),
        },
    })
}

/// The beginning of the plot. Its last bucket is the present one.
fn beginning(now: OffsetDateTime) -> OffsetDateTime {
    let bucket = BUCKET * 60;
    let present = now.unix_timestamp().div_euclid(bucket) * bucket;
    OffsetDateTime::from_unix_timestamp(present - (BUCKETS - 1) * bucket).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_ends_with_the_present_bucket() {
        let now = time::macros::datetime!(2026-11-21 12:04:59 UTC);
        let from = beginning(now);
        assert_eq!(from, time::macros::datetime!(2026-11-21 6:05 UTC));
        assert_eq!(
            from + Duration::minutes(BUCKET * BUCKETS),
            time::macros::datetime!(2026-11-21 12:05 UTC)
        );
    }
}
