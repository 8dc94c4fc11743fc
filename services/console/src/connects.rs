//! Connection diagnostics in the console (AUTH-X2): attempts of AI clients to connect to a
//! workspace, and the step at which each stopped.

use axum::{Json, extract::State};
use portolan_keys::digest;
use portolan_model::{id::UserId, member::Action};
use portolan_oauth::connection_diagnostics::rules;
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    Reason,
    platform::connect_events::{self, RecordedStep, Step, StepOutcome, Which},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use crate::{
    connection_diagnostics::{
        attempts::{AttemptState as Standing, ClientAttempt},
        known::KnownFault,
        paging::{self, AttemptPosition, PartialAttempts},
    },
    input::QueryParameters,
    listing::Listing,
    workspace::Workspace,
};

/// Steps read for one page: at first, and at most if these include no whole attempt.
const STEPS: i64 = 1_000;

const MOST_STEPS: i64 = 16_000;

/// Attempts of one page.
const ATTEMPTS: usize = 50;

/// A step of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectStep {
    /// The server's address answered 401 with the address of its metadata.
    Challenge,
    /// The resource's metadata was read.
    ResourceMetadata,
    /// The authorization server's metadata was read.
    ServerMetadata,
    /// The client registered itself.
    Register,
    /// The client's metadata document was fetched.
    ClientDocument,
    /// The authorization request.
    Authorize,
    /// The person was sent to sign in.
    SignIn,
    /// The consent page.
    Consent,
    /// A code was exchanged for tokens.
    Token,
    /// A refresh that was refused.
    Refresh,
    /// A request with the token.
    Request,
}

impl From<Step> for ConnectStep {
    fn from(step: Step) -> Self {
        match step {
            Step::Challenge => Self::Challenge,
            Step::ResourceMetadata => Self::ResourceMetadata,
            Step::ServerMetadata => Self::ServerMetadata,
            Step::Register => Self::Register,
            Step::ClientDocument => Self::ClientDocument,
            Step::Authorize => Self::Authorize,
            Step::SignIn => Self::SignIn,
            Step::Consent => Self::Consent,
            Step::Token => Self::Token,
            Step::Refresh => Self::Refresh,
            Step::Request => Self::Request,
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectOutcome {
    /// The step succeeded.
    Ok,
    /// A person has to act.
    Waiting,
    /// A rule refused it, or a person.
    Refused,
    /// This service failed.
    Failed,
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectState {
    /// The client connected, and was not refused since.
    Connected,
    /// A person has to act, or the client may continue.
    Waiting,
    /// A rule refused it, or a person.
    Refused,
    /// This service failed.
    Failed,
    /// The client did not continue.
    Stopped,
}

/// The record of one step.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectEvent {
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    step: ConnectStep,
    outcome: ConnectOutcome,
    /// Id of the request, as error pages show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<String>,
    /// The id of the rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rule: Option<String>,
    /// The text of that rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rule_says: Option<String>,
    /// The error text that the client or its user received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fault: Option<String>,
    /// Network of the requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    network: Option<String>,
    /// Its `User-Agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent: Option<String>,
    /// Its parameters: redirect URI, scope, resource, PKCE method. Never a secret.
    #[schema(value_type = Object)]
    sent: Value,
    /// Number of identical repetitions, if there were any: a refresh that is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    repeats: Option<i32>,
    /// Time of the last repetition.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_at: Option<OffsetDateTime>,
}

/// A known fault of a client.
#[derive(Debug, Serialize, ToSchema)]
pub struct KnownClientFault {
    /// The client with the fault.
    client: String,
    /// The effect, and the remedy.
    text: String,
    /// Address of a description.
    source: String,
}

impl From<&KnownFault> for KnownClientFault {
    fn from(fault: &KnownFault) -> Self {
        Self {
            client: fault.client.to_owned(),
            text: fault.text.to_owned(),
            source: fault.source.to_owned(),
        }
    }
}

/// One attempt of a client to connect.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectAttempt {
    /// Id that stays the same while the attempt continues.
    id: String,
    state: ConnectState,
    /// The last step that it reached.
    reached: ConnectStep,
    #[serde(with = "time::serde::rfc3339")]
    began_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    ended_at: OffsetDateTime,
    /// The client's own name, which is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_name: Option<String>,
    /// Its `client_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_id: Option<String>,
    /// The one server that it requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    server: Option<String>,
    /// The person who decided, if they are a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_name: Option<String>,
    /// Known faults of clients that match.
    known: Vec<KnownClientFault>,
    /// Its steps, in order.
    steps: Vec<ConnectEvent>,
}

impl From<ClientAttempt> for ConnectAttempt {
    fn from(attempt: ClientAttempt) -> Self {
        Self {
            id: attempt.number().to_string(),
            state: match attempt.state {
                Standing::Connected => ConnectState::Connected,
                Standing::Waiting => ConnectState::Waiting,
                Standing::Refused => ConnectState::Refused,
                Standing::Failed => ConnectState::Failed,
                Standing::Stopped => ConnectState::Stopped,
            },
            reached: attempt.reached.into(),
            began_at: attempt.began(),
            ended_at: attempt.ended(),
            client_name: attempt
                .last(|event| event.client_name.as_deref())
                .map(str::to_owned),
            client_id: attempt
                .last(|event| event.client_id.as_deref())
                .map(str::to_owned),
            server: attempt
                .last(|event| event.server.as_deref())
                .map(str::to_owned),
            user_id: attempt.last(|event| event.user.as_ref()).copied(),
            user_name: attempt
                .last(|event| event.user_name.as_deref())
                .map(str::to_owned),
            known: attempt.known.iter().map(|fault| (*fault).into()).collect(),
            steps: attempt.steps.into_iter().map(shown).collect(),
        }
    }
}

fn shown(event: RecordedStep) -> ConnectEvent {
    ConnectEvent {
        at: event.at,
        step: event.step.into(),
        outcome: match event.outcome {
            StepOutcome::Ok => ConnectOutcome::Ok,
            StepOutcome::Waiting => ConnectOutcome::Waiting,
            StepOutcome::Refused => ConnectOutcome::Refused,
            StepOutcome::Failed => ConnectOutcome::Failed,
        },
        request_id: event.request_id,
        rule_says: event
            .rule
            .as_deref()
            .and_then(rules::words)
            .map(str::to_owned),
        rule: event.rule,
        fault: event.fault,
        network: event.ip_block,
        agent: event.agent,
        sent: event.detail,
        repeats: (event.repeats > 0).then_some(event.repeats),
        last_at: event.last_at,
    }
}

/// The wanted attempts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConnectQuery {
    /// The request id of an error page: selects the attempt with that request.
    #[serde(default)]
    request_id: Option<String>,
    /// Selects attempts of this client, by its `client_id`.
    #[serde(default)]
    client_id: Option<String>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    cursor: Option<String>,
}

/// Attempts of AI clients to connect, the newest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/connects", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ConnectQuery),
    responses((status = 200, description = "The attempts.", body = Listing<ConnectAttempt>)))]
pub(crate) async fn list_connects(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<ConnectQuery>,
) -> Result<Json<Listing<ConnectAttempt>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let before = query.cursor.as_deref().map(read_cursor).transpose()?;
    let given = |text: &Option<String>| {
        text.as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let request_id = given(&query.request_id);
    let client = given(&query.client_id).map(|id| digest(id.as_bytes()));
    let which = Which {
        tenant: Some(workspace.id),
        request_id: request_id.as_deref(),
        client: client.as_ref(),
        before: before.map(|place| place.began),
    };
    let (mut tx, now) = (state.store.system(Reason::Recorder).await?, state.now());
    let mut steps = STEPS;
    let page = loop {
        let read = connect_events::list(&mut tx, which, steps).await?;
        let partial = if steps >= MOST_STEPS {
            PartialAttempts::Accepted
        } else {
            PartialAttempts::Left
        };
        if let Some(page) = paging::page(read, before, ATTEMPTS, partial, now) {
            break page;
        }
        steps *= 4;
    };
    let next_cursor = page
        .next
        .map(|place| format!("{}.{}", place.began.unix_timestamp_nanos(), place.number));
    Ok(Json(Listing {
        items: page
            .attempts
            .into_iter()
            .map(ConnectAttempt::from)
            .collect(),
        next_cursor,
    }))
}

/// Reads a position in the list. It reveals nothing that the list does not show.
fn read_cursor(text: &str) -> Result<AttemptPosition, ConsoleError> {
    text.split_once('.')
        .and_then(|(nanos, number)| {
            Some(AttemptPosition {
                began: OffsetDateTime::from_unix_timestamp_nanos(nanos.parse().ok()?).ok()?,
                number: number.parse().ok()?,
            })
        })
        .ok_or_else(|| {
            ConsoleError::invalid(
                "invalid_cursor",
                "This cursor is not of this list. Start from the first page.",
            )
            .field("cursor")
        })
}
