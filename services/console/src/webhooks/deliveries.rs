//! Deliveries of an endpoint with their attempts, and their replay (HOOK-13).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{EventId, EventKind, WebhookId, WebhookKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::webhooks::deliveries::{
    self as stored, AttemptResult, DeliveryFilter, DeliveryView,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::{
    input::{JsonBody, Part, PathId, PathPart, QueryParameters},
    listing::{Listing, Pages},
    workspace::Workspace,
};

use super::{Hooks, QueuedDelivery, found};

/// Deliveries of one page.
const PAGE: usize = 50;

/// Name of the list in its cursors.
const LIST: &str = "deliveries";

/// Events are kept so long.
pub(super) const KEPT: Duration = Duration::days(30);

/// `{event}` in a path.
#[derive(Debug)]
pub(crate) struct EventPart;

impl Part for EventPart {
    const NAME: &'static str = "event";
    type Kind = EventKind;
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is sent now, or tried again later.
    Pending,
    /// The receiver answered 2xx.
    Delivered,
    /// Every attempt failed.
    Failed,
}

impl DeliveryState {
    const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    fn read(word: &str) -> Self {
        match word {
            "delivered" => Self::Delivered,
            "failed" => Self::Failed,
            _ => Self::Pending,
        }
    }
}

/// A delivery of an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookDelivery {
    /// The event, and the `webhook-id` of every attempt.
    #[schema(value_type = String)]
    event: EventId,
    /// Type of the event.
    #[serde(rename = "type")]
    kind: String,
    /// When it happened.
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// Where the delivery stands.
    state: DeliveryState,
    /// Attempts so far.
    attempts: i32,
    /// HTTP status of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<i32>,
    /// The next attempt.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    next_at: Option<OffsetDateTime>,
}

impl From<&DeliveryView> for WebhookDelivery {
    fn from(view: &DeliveryView) -> Self {
        Self {
            event: view.event,
            kind: view.kind.clone(),
            at: view.at,
            state: DeliveryState::read(&view.state),
            attempts: view.attempts,
            status: view.status,
            next_at: view.next_at,
        }
    }
}

/// An HTTP exchange of a delivery.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookAttempt {
    /// From 1.
    number: i32,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// How long it took.
    millis: i32,
    /// HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<u16>,
    /// Why there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fault: Option<String>,
    /// The first KiB of the answer's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    response_head: Option<String>,
}

impl From<(i32, AttemptResult)> for WebhookAttempt {
    fn from((number, result): (i32, AttemptResult)) -> Self {
        Self {
            number,
            at: result.at,
            millis: result.millis,
            status: result.status,
            fault: result.fault,
            response_head: result.response_head,
        }
    }
}

/// A delivery with its data and attempts.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookDeliveryDetail {
    delivery: WebhookDelivery,
    /// The `data` of the message.
    #[schema(value_type = Object)]
    data: Value,
    /// The attempts, the first first.
    attempts: Vec<WebhookAttempt>,
}

/// The wanted page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeliveryQuery {
    /// Only deliveries in this state.
    #[serde(default)]
    state: Option<DeliveryState>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    cursor: Option<String>,
}

/// Deliveries of an endpoint, the newest event first.
#[utoipa::path(get, path = "/workspaces/{ws}/webhooks/{id}/deliveries", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint"), DeliveryQuery),
    responses((status = 200, description = "A page of deliveries.", body = Listing<WebhookDelivery>)))]
pub(crate) async fn list_deliveries(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    QueryParameters(query): QueryParameters<DeliveryQuery>,
) -> Result<Json<Listing<WebhookDelivery>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let before = pages.position(query.cursor.as_deref(), |bytes| {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        Some(EventId::from_uuid(uuid::Uuid::from_bytes(bytes)))
    })?;
    let mut tx = state.store.tenant(workspace.id).await?;
    found(&mut tx, id).await?;
    let filter = DeliveryFilter {
        state: query.state.map(DeliveryState::word),
        event: None,
        before,
    };
    let mut rows = stored::list(&mut tx, id, filter, pages.limit()).await?;
    let next_cursor = pages.cut(&mut rows, |last| last.event.uuid_bytes().to_vec());
    Ok(Json(Listing {
        items: rows.iter().map(WebhookDelivery::from).collect(),
        next_cursor,
    }))
}

async fn detail(
    hooks: &Hooks<'_>,
    endpoint: WebhookId,
    event: EventId,
) -> Result<WebhookDeliveryDetail, ConsoleError> {
    let mut tx = hooks.begin().await?;
    let filter = DeliveryFilter {
        event: Some(event),
        ..DeliveryFilter::default()
    };
    let view = stored::list(&mut tx, endpoint, filter, 1)
        .await?
        .pop()
        .ok_or_else(|| ConsoleError::not_found("this delivery"))?;
    let attempts = stored::attempts(&mut tx, endpoint, event).await?;
    Ok(WebhookDeliveryDetail {
        delivery: WebhookDelivery::from(&view),
        data: view.data,
        attempts: attempts.into_iter().map(WebhookAttempt::from).collect(),
    })
}

/// A delivery with its data and attempts.
#[utoipa::path(get, path = "/workspaces/{ws}/webhooks/{id}/deliveries/{event}", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint"), ("event" = String, Path, description = "Event")),
    responses((status = 200, description = "The delivery.", body = WebhookDeliveryDetail)))]
pub(crate) async fn show_delivery(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    event: PathPart<EventPart>,
    context: RequestContext,
) -> Result<Json<WebhookDeliveryDetail>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    Ok(Json(detail(&hooks, id, event.id).await?))
}

/// Sends an event to an endpoint again, under the same `webhook-id`.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/deliveries/{event}/replay", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint"), ("event" = String, Path, description = "Event")),
    responses((status = 202, description = "Queued.", body = QueuedDelivery)))]
pub(crate) async fn replay_delivery(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    event: PathPart<EventPart>,
    context: RequestContext,
) -> Result<(StatusCode, Json<QueuedDelivery>), ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    let event = event.id;
    // 404 for a delivery that does not exist; a replay of another endpoint's event makes none.
    detail(&hooks, id, event).await?;
    let mut tx = hooks.begin().await?;
    if !stored::replay(&mut tx, id, event, hooks.now).await? {
        return Err(ConsoleError::conflict(
            "being_sent",
            "This delivery is being sent now. Try again in a moment.",
        ));
    }
    let detail = json!({ "event": event });
    hooks.commit(tx, "webhook.replayed", id, detail).await?;
    Ok((StatusCode::ACCEPTED, Json(QueuedDelivery { event })))
}

/// From when to send again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySince {
    /// Events from this time on.
    #[serde(with = "time::serde::rfc3339")]
    since: OffsetDateTime,
}

/// The time from which deliveries are sent again.
#[derive(Debug, Serialize, ToSchema)]
pub struct Replayed {
    /// Number of deliveries.
    count: u64,
}

/// Sends again what an endpoint missed since a time: failed deliveries, and events of its types that it
/// has no delivery of. Delivered ones are not repeated.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/replay", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    request_body = ReplaySince, responses((status = 202, description = "Queued.", body = Replayed)))]
pub(crate) async fn replay_since(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
    JsonBody(body): JsonBody<ReplaySince>,
) -> Result<(StatusCode, Json<Replayed>), ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    if body.since > hooks.now || hooks.now - body.since > KEPT {
        return Err(ConsoleError::invalid(
            "since_invalid",
            "Events are kept for 30 days. Give a later time.",
        )
        .field("since"));
    }
    let mut tx = hooks.begin().await?;
    found(&mut tx, id).await?;
    let count = stored::replay_since(&mut tx, id, body.since, hooks.now).await?;
    let detail = json!({ "count": count });
    hooks.commit(tx, "webhook.replayed", id, detail).await?;
    Ok((StatusCode::ACCEPTED, Json(Replayed { count })))
}
