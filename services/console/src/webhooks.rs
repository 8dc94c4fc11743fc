//! Endpoints of webhooks (HOOK-3, HOOK-4): created after a challenge, changed, paused, tested.

pub mod deliveries;
pub mod live;
pub(crate) mod target;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_keys::WebhookSecret;
use portolan_model::{
    event::{self, EventType},
    id::{EventId, WebhookId, WebhookKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage,
};
use portolan_storage::{
    StorageError, TenantTx,
    platform::audit,
    webhooks::{
        alerts, deliveries as stored_deliveries,
        endpoints::{
            self, EndpointChange, MOST, NewSecrets, NewWebhookEndpoint, WebhookForm, WebhookState,
        },
    },
};
use portolan_upstream_sync::credentials::data_key;
use portolan_webhooks::{
    catalogue::schema_path,
    secrets::{EndpointPlace, EndpointSecrets, SecretsError},
    worker::previous_secret_until,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId, plain_text},
    listing::Listing,
    workspace::Workspace,
};

use self::target::{Challenge, WebhookHeader, checked_headers, checked_url, shown_url};

/// The form of the messages that an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// Standard Webhooks: signed JSON.
    Standard,
    /// Incoming webhooks as Slack has them: `{"text": …}`.
    Slack,
}

impl From<WebhookFormat> for WebhookForm {
    fn from(format: WebhookFormat) -> Self {
        match format {
            WebhookFormat::Standard => Self::Standard,
            WebhookFormat::Slack => Self::Slack,
        }
    }
}

/// Whether an endpoint takes deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStanding {
    /// It does.
    Active,
    /// A person paused it: deliveries wait.
    Paused,
    /// It failed for five days, or answered 410.
    Disabled,
}

/// An endpoint.
#[derive(Debug, Serialize, ToSchema)]
pub struct Webhook {
    #[schema(value_type = String, example = "whk_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: WebhookId,
    /// The form of its messages.
    format: WebhookFormat,
    /// Where it is; of a Slack endpoint the origin alone, because the path is a secret.
    url: String,
    /// A note for people.
    description: String,
    /// Types of the events that it subscribes to.
    events: Vec<String>,
    /// Names of its own headers. Their values are not shown.
    header_names: Vec<String>,
    /// Whether it takes deliveries.
    state: WebhookStanding,
    /// Why it is disabled: `failing` or `gone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disabled_reason: Option<String>,
    /// First failure since the last success.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    failing_since: Option<OffsetDateTime>,
    /// Until then the previous secret signs too.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    previous_secret_until: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Name of the file of configuration that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    managed_by: Option<String>,
}

impl Webhook {
    fn of(endpoint: endpoints::WebhookEndpoint, now: OffsetDateTime) -> Self {
        Self {
            id: endpoint.id,
            format: match endpoint.form {
                WebhookForm::Standard => WebhookFormat::Standard,
                WebhookForm::Slack => WebhookFormat::Slack,
            },
            url: endpoint.url,
            description: endpoint.description,
            events: endpoint.event_types,
            header_names: endpoint.header_names,
            state: match endpoint.state {
                WebhookState::Active => WebhookStanding::Active,
                WebhookState::Paused => WebhookStanding::Paused,
                WebhookState::Disabled => WebhookStanding::Disabled,
            },
            disabled_reason: endpoint.disabled_reason,
            failing_since: endpoint.failing_since,
            previous_secret_until: endpoint.previous_secret_until.filter(|until| now < *until),
            created_at: endpoint.created_at,
            managed_by: endpoint.managed_by,
        }
    }
}

fn unknown() -> ConsoleError {
    ConsoleError::not_found("this endpoint")
}

/// The answer to secrets that do not open or close.
pub(crate) fn fault(error: SecretsError) -> ConsoleError {
    ConsoleError::internal("secrets of a webhook endpoint", error)
}

/// The endpoint, or 404.
async fn found(
    tx: &mut TenantTx,
    id: WebhookId,
) -> Result<endpoints::WebhookEndpoint, ConsoleError> {
    endpoints::find(tx, id).await?.ok_or_else(unknown)
}

/// An administrator's change of webhooks: what each handler needs.
struct Hooks<'a> {
    state: &'a AuthState,
    workspace: &'a Workspace,
    context: &'a RequestContext,
    now: OffsetDateTime,
}

impl<'a> Hooks<'a> {
    fn open(
        state: &'a AuthState,
        workspace: &'a Workspace,
        context: &'a RequestContext,
    ) -> Result<Self, ConsoleError> {
        workspace.require(Action::Administer)?;
        Ok(Self {
            state,
            workspace,
            context,
            now: state.now(),
        })
    }

    async fn begin(&self) -> Result<TenantTx, StorageError> {
        self.state.store.tenant(self.workspace.id).await
    }

    fn place(&self, endpoint: WebhookId) -> EndpointPlace {
        EndpointPlace {
            tenant: self.workspace.id,
            endpoint,
        }
    }

    async fn commit(
        &self,
        mut tx: TenantTx,
        action: &'static str,
        id: WebhookId,
        detail: serde_json::Value,
    ) -> Result<(), ConsoleError> {
        let event = self.workspace.event(action, "webhook", id, detail);
        audit::record(&mut tx, &event, &self.context.origin(), self.now).await?;
        Ok(tx.commit().await?)
    }

    /// The endpoint after a change.
    async fn shown(&self, id: WebhookId) -> Result<Webhook, ConsoleError> {
        let mut tx = self.begin().await?;
        Ok(Webhook::of(found(&mut tx, id).await?, self.now))
    }
}

/// The endpoints of the workspace, the oldest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/webhooks", tag = "webhooks", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The endpoints.", body = Listing<Webhook>)))]
pub(crate) async fn list_webhooks(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<Webhook>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let now = state.now();
    let all = endpoints::list(&mut tx, None).await?;
    let items = all.into_iter().map(|one| Webhook::of(one, now)).collect();
    Ok(Json(Listing::whole(items)))
}

/// One endpoint.
#[utoipa::path(get, path = "/workspaces/{ws}/webhooks/{id}", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 200, description = "The endpoint.", body = Webhook)))]
pub(crate) async fn show_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
) -> Result<Json<Webhook>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(Webhook::of(found(&mut tx, id).await?, state.now())))
}

/// A new endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where it is: an `https` URL of a public address.
    url: String,
    /// The form of its messages; `standard` if absent.
    #[serde(default)]
    #[schema(nullable = false)]
    format: Option<WebhookFormat>,
    /// A note for people: up to 200 characters.
    #[serde(default)]
    description: String,
    /// Types of the events that it subscribes to.
    events: Vec<String>,
    /// Headers of its own: up to 10.
    #[serde(default)]
    headers: Vec<WebhookHeader>,
}

/// An endpoint with the secret that its receiver verifies by.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookWithSecret {
    endpoint: Webhook,
    /// `whsec_…`, shown this once. A Slack endpoint has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret: Option<String>,
}

/// The events in the order of the catalogue, each once.
pub(crate) fn checked_events(events: &[String]) -> Result<Vec<String>, ConsoleError> {
    if events.is_empty() {
        return Err(
            ConsoleError::invalid("events_invalid", "Choose at least one event.").field("events"),
        );
    }
    if let Some(place) = events
        .iter()
        .position(|name| EventType::parse(name).is_none())
    {
        return Err(
            ConsoleError::invalid("events_invalid", "There is no event of this type.")
                .field(format!("events[{place}]")),
        );
    }
    // In the order of the catalogue, each once.
    let chosen = EventType::ALL.iter().map(|kind| kind.as_str());
    Ok(chosen
        .filter(|name| events.iter().any(|one| one == name))
        .map(str::to_owned)
        .collect())
}

/// The refusal of an endpoint beyond the bound of the workspace (HOOK-4).
pub(crate) fn too_many() -> ConsoleError {
    ConsoleError::conflict(
        "too_many_webhooks",
        format!("A workspace can have {MOST} endpoints. Delete one that is not used."),
    )
}

/// Creates an endpoint. It must answer a signed `endpoint.verify` with 2xx before it is kept. Requires
/// a recent sign-in: events of the workspace go to its address from then on.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks", tag = "webhooks", params(("ws" = String, Path, description = "Slug")),
    request_body = NewWebhook, responses((status = 201, description = "Created. The secret is shown this once.", body = WebhookWithSecret)))]
pub(crate) async fn create_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(new): JsonBody<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookWithSecret>), ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    workspace.require_recent(hooks.now, ConsolePage::Webhooks)?;
    let form = WebhookForm::from(new.format.unwrap_or(WebhookFormat::Standard));
    let url = checked_url(&state, &new.url)?;
    let headers = checked_headers(&new.headers)?;
    let events = checked_events(&new.events)?;
    let description = plain_text("description", &new.description, 200)?.unwrap_or_default();
    let mut tx = hooks.begin().await?;
    if endpoints::count_alone(&mut tx).await? >= MOST {
        return Err(too_many());
    }
    // A slow receiver must not hold a database connection.
    drop(tx);
    let secret = match form {
        WebhookForm::Standard => Some(WebhookSecret::generate()?),
        WebhookForm::Slack => None,
    };
    let secrets = EndpointSecrets {
        url: url.to_string(),
        headers,
        secrets: secret
            .iter()
            .map(|secret| secret.text().expose().clone())
            .collect(),
    };
    let id = WebhookId::generate();
    let challenge = Challenge {
        endpoint: id,
        form,
        secrets: &secrets,
    };
    challenge.pass(&state, &workspace, hooks.now).await?;
    let mut tx = hooks.begin().await?;
    if endpoints::count_alone(&mut tx).await? >= MOST {
        return Err(too_many());
    }
    let key = data_key::<ConsoleError>(&state, &mut tx, workspace.id, hooks.now).await?;
    let sealed = hooks
        .place(id)
        .seal(&state.keys, key, 1, &secrets, hooks.now)
        .map_err(fault)?;
    let header_names = secrets.header_names();
    let kept = NewWebhookEndpoint {
        id,
        form,
        url: &shown_url(form, &url),
        description,
        event_types: &events,
        header_names: &header_names,
        secrets: &sealed,
        created_by: workspace.caller.user(),
    };
    endpoints::insert(&mut tx, &kept, hooks.now).await?;
    let detail = json!({ "url": kept.url, "events": events });
    hooks.commit(tx, "webhook.created", id, detail).await?;
    let answer = WebhookWithSecret {
        endpoint: hooks.shown(id).await?,
        secret: secret.map(|secret| secret.text().expose().clone()),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// A change of an endpoint; absent members stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    /// A note for people.
    #[serde(default)]
    #[schema(nullable = false)]
    description: Option<String>,
    /// Types of the events that it subscribes to.
    #[serde(default)]
    #[schema(nullable = false)]
    events: Option<Vec<String>>,
}

/// Changes the note or the events of an endpoint.
#[utoipa::path(patch, path = "/workspaces/{ws}/webhooks/{id}", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    request_body = WebhookChange, responses((status = 200, description = "Changed.", body = Webhook)))]
pub(crate) async fn change_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
    JsonBody(change): JsonBody<WebhookChange>,
) -> Result<Json<Webhook>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    let description = match &change.description {
        Some(text) => Some(plain_text("description", text, 200)?.unwrap_or_default()),
        None => None,
    };
    let events = change.events.as_deref().map(checked_events).transpose()?;
    let mut tx = hooks.begin().await?;
    let changed = EndpointChange {
        description,
        event_types: events.as_deref(),
    };
    if !endpoints::change(&mut tx, id, &changed, hooks.now).await? {
        return Err(unknown());
    }
    let detail = json!({ "events": events });
    hooks.commit(tx, "webhook.changed", id, detail).await?;
    Ok(Json(hooks.shown(id).await?))
}

/// Another address of an endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookTarget {
    /// Where it is: an `https` URL of a public address.
    url: String,
    /// Headers of its own, all of them: earlier ones are forgotten.
    #[serde(default)]
    headers: Vec<WebhookHeader>,
}

/// Moves an endpoint to another address, with other headers. The secret stays. The new address must
/// answer a signed `endpoint.verify` with 2xx. Requires a recent sign-in.
#[utoipa::path(put, path = "/workspaces/{ws}/webhooks/{id}/target", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    request_body = WebhookTarget, responses((status = 200, description = "Moved.", body = Webhook)))]
pub(crate) async fn move_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
    JsonBody(target): JsonBody<WebhookTarget>,
) -> Result<Json<Webhook>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    workspace.require_recent(hooks.now, ConsolePage::Webhooks)?;
    let url = checked_url(&state, &target.url)?;
    let headers = checked_headers(&target.headers)?;
    let mut tx = hooks.begin().await?;
    let endpoint = found(&mut tx, id).await?;
    drop(tx);
    let mut secrets = hooks
        .place(id)
        .open(&state.keys, &endpoint.secrets, hooks.now)
        .map_err(fault)?;
    secrets.url = url.to_string();
    secrets.headers = headers;
    let challenge = Challenge {
        endpoint: id,
        form: endpoint.form,
        secrets: &secrets,
    };
    challenge.pass(&state, &workspace, hooks.now).await?;
    let shown = shown_url(endpoint.form, &url);
    let until = endpoint.previous_secret_until;
    let tx = reseal(&hooks, &endpoint, &secrets, &shown, until).await?;
    let detail = json!({ "url": shown });
    hooks.commit(tx, "webhook.moved", id, detail).await?;
    Ok(Json(hooks.shown(id).await?))
}

/// Seals changed secrets as the next version, in a transaction that the caller commits. 409 if another
/// change came first.
async fn reseal(
    hooks: &Hooks<'_>,
    endpoint: &endpoints::WebhookEndpoint,
    secrets: &EndpointSecrets,
    url: &str,
    previous_secret_until: Option<OffsetDateTime>,
) -> Result<TenantTx, ConsoleError> {
    let mut tx = hooks.begin().await?;
    let key = data_key::<ConsoleError>(hooks.state, &mut tx, hooks.workspace.id, hooks.now).await?;
    let version = endpoint.secrets.version + 1;
    let sealed = hooks
        .place(endpoint.id)
        .seal(&hooks.state.keys, key, version, secrets, hooks.now)
        .map_err(fault)?;
    let header_names = secrets.header_names();
    let new = NewSecrets {
        url,
        header_names: &header_names,
        secrets: &sealed,
        previous_secret_until,
    };
    if !endpoints::replace_secrets(&mut tx, endpoint.id, &new, hooks.now).await? {
        return Err(ConsoleError::conflict(
            "changed_meanwhile",
            "This endpoint was changed meanwhile. Load it again.",
        ));
    }
    Ok(tx)
}

/// Gives an endpoint a new secret. For 24 hours deliveries carry the signatures of both, so that the
/// receiver changes over without a gap. Requires a recent sign-in.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/rotate", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 200, description = "Rotated. The new secret is shown this once.", body = WebhookWithSecret)))]
pub(crate) async fn rotate_webhook_secret(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
) -> Result<Json<WebhookWithSecret>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    workspace.require_recent(hooks.now, ConsolePage::Webhooks)?;
    let mut tx = hooks.begin().await?;
    let endpoint = found(&mut tx, id).await?;
    drop(tx);
    if endpoint.form == WebhookForm::Slack {
        return Err(ConsoleError::conflict(
            "no_secret",
            "Messages to Slack are not signed. To change the secret URL, move the endpoint.",
        ));
    }
    let mut secrets = hooks
        .place(id)
        .open(&state.keys, &endpoint.secrets, hooks.now)
        .map_err(fault)?;
    let secret = WebhookSecret::generate()?;
    secrets.secrets.insert(0, secret.text().expose().clone());
    secrets.secrets.truncate(2);
    let until = Some(previous_secret_until(hooks.now));
    let tx = reseal(&hooks, &endpoint, &secrets, &endpoint.url, until).await?;
    hooks
        .commit(tx, "webhook.secret_rotated", id, json!({}))
        .await?;
    Ok(Json(WebhookWithSecret {
        endpoint: hooks.shown(id).await?,
        secret: Some(secret.text().expose().clone()),
    }))
}

/// Pauses an endpoint: deliveries wait until it is resumed.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/pause", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 200, description = "Paused.", body = Webhook)))]
pub(crate) async fn pause_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
) -> Result<Json<Webhook>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    switch(&hooks, id, WebhookState::Paused, "webhook.paused").await
}

/// Resumes an endpoint that was paused or disabled. What waited goes out at once.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/resume", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 200, description = "Active.", body = Webhook)))]
pub(crate) async fn resume_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
) -> Result<Json<Webhook>, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    switch(&hooks, id, WebhookState::Active, "webhook.resumed").await
}

async fn switch(
    hooks: &Hooks<'_>,
    id: WebhookId,
    state: WebhookState,
    action: &'static str,
) -> Result<Json<Webhook>, ConsoleError> {
    let mut tx = hooks.begin().await?;
    let before = endpoints::set_state(&mut tx, id, state, hooks.now)
        .await?
        .ok_or_else(unknown)?;
    // A person who pauses or resumes a disabled endpoint has seen it: that ends its alert.
    let action = match before {
        WebhookState::Disabled => "webhook.enabled",
        _ => action,
    };
    hooks.commit(tx, action, id, json!({})).await?;
    Ok(Json(hooks.shown(id).await?))
}

/// Deletes an endpoint with the log of its deliveries.
#[utoipa::path(delete, path = "/workspaces/{ws}/webhooks/{id}", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 204, description = "Deleted.")))]
pub(crate) async fn delete_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    let mut tx = hooks.begin().await?;
    let url = found(&mut tx, id).await?.url;
    endpoints::delete(&mut tx, id).await?;
    alerts::end_of(&mut tx, &id.to_string(), hooks.now).await?;
    hooks
        .commit(tx, "webhook.deleted", id, json!({ "url": url }))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A message that was queued.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueuedDelivery {
    /// The event, whose delivery shows the answer.
    #[schema(value_type = String)]
    event: EventId,
}

/// Sends a test message to an endpoint. It goes the way of every delivery.
#[utoipa::path(post, path = "/workspaces/{ws}/webhooks/{id}/test", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Endpoint")),
    responses((status = 202, description = "Queued.", body = QueuedDelivery)))]
pub(crate) async fn test_webhook(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<WebhookKind>,
    context: RequestContext,
) -> Result<(StatusCode, Json<QueuedDelivery>), ConsoleError> {
    let hooks = Hooks::open(&state, &workspace, &context)?;
    let mut tx = hooks.begin().await?;
    if found(&mut tx, id).await?.state != WebhookState::Active {
        return Err(ConsoleError::conflict(
            "not_active",
            "This endpoint takes no deliveries. Resume it first.",
        ));
    }
    let data = json!({
        "workspace": workspace.id,
        "text": format!("A test message of the workspace {}.", workspace.name),
    });
    let event = stored_deliveries::queue_for(&mut tx, id, event::TEST, &data, hooks.now).await?;
    hooks
        .commit(tx, "webhook.tested", id, json!({ "event": event }))
        .await?;
    Ok((StatusCode::ACCEPTED, Json(QueuedDelivery { event })))
}

/// A type of events.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventTypeView {
    /// Its name.
    name: String,
    /// Its occasion, as a sentence.
    summary: String,
    /// Its JSON Schema.
    schema: String,
}

/// The types of events that an endpoint can subscribe to.
#[utoipa::path(get, path = "/workspaces/{ws}/event-types", tag = "webhooks", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The types.", body = Listing<EventTypeView>)))]
pub(crate) async fn list_event_types(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<EventTypeView>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let items = EventType::ALL.iter().map(|kind| EventTypeView {
        name: kind.as_str().to_owned(),
        summary: kind.summary().to_owned(),
        schema: state.site.url(&schema_path(*kind)),
    });
    Ok(Json(Listing::whole(items.collect())))
}
