//! Short requests to upstream servers: reading their lists, and one call for a person on the try
//! page.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use portolan_connections::{Account, NoToken, Token};
use portolan_http_tools::{CredentialSlot, Proof, TokenSource};
use portolan_model::{
    id::{SourceId, TenantId, UserId},
    registry::SourceSettings,
};
use portolan_net::{egress::Egress, secrets::Secrets};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{TenantTx, registry::upstream_oauth};
use portolan_upstream::{Client, Endpoint, Limits, Offer, Speaker, UpstreamError};
use serde_json::{Map, Value};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::credentials;

/// Deadline for reading all lists together.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// The address of a server, and its credential.
pub struct LookTarget<'a> {
    /// The tenant that stored the address: its attached servers are reachable.
    pub tenant: TenantId,
    /// The address.
    pub url: Url,
    /// Timeouts and limits.
    pub settings: SourceSettings,
    /// The credential.
    pub opened_by: OpenedBy<'a>,
}

/// The credential of a server.
#[derive(Clone, Copy)]
pub enum OpenedBy<'a> {
    /// None is needed, or none is known.
    Nothing,
    /// A credential that the workspace entered.
    Credential(&'a CredentialSlot),
    /// A connected account.
    Account(Account),
}

impl<'a> From<Option<&'a CredentialSlot>> for OpenedBy<'a> {
    fn from(slot: Option<&'a CredentialSlot>) -> Self {
        slot.map_or(Self::Nothing, Self::Credential)
    }
}

/// Why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The credential could not be used to sign in.
    #[error("{0}")]
    SignIn(#[from] portolan_http_tools::SignInError),
    /// No account is connected, or it has to be connected again.
    #[error("{0}")]
    Account(#[from] NoToken),
    /// The server's response was unusable.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// All requests together took too long.
    #[error("it took more than {} s", LONGEST_LOOK.as_secs())]
    TooSlow,
}

impl LookError {
    /// The result as a test of the server's credential.
    pub fn proof(&self) -> Option<Proof> {
        match self {
            Self::SignIn(error) => error.proof(),
            Self::Upstream(error) => error.refusal().map(Proof::Refused),
            Self::Account(_) | Self::TooSlow => None,
        }
    }
}

/// Reads a server's description and its lists.
pub async fn look(state: &AuthState, target: LookTarget<'_>) -> Result<Offer, LookError> {
    match with_server(state, target, Question::Offer).await? {
        LookAnswer::Offer(offer) => Ok(*offer),
        LookAnswer::Result(_) => Err(LookError::TooSlow),
    }
}

/// Calls a tool of a server once, for a person on the try page.
pub async fn try_tool(
    state: &AuthState,
    target: LookTarget<'_>,
    call: Call<'_>,
) -> Result<Value, LookError> {
    match with_server(state, target, Question::Call(call)).await? {
        LookAnswer::Result(result) => Ok(result),
        LookAnswer::Offer(_) => Err(LookError::TooSlow),
    }
}

/// The request to a server.
#[derive(Clone, Copy)]
enum Question<'a> {
    Offer,
    Call(Call<'a>),
}

/// A call of a tool.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The server's own name for the tool.
    pub name: &'a str,
    /// The arguments.
    pub arguments: &'a Map<String, Value>,
    /// The schema of the arguments.
    pub input_schema: &'a Value,
    /// True if a server of both eras has the tool in sessions alone.
    pub in_a_session: bool,
}

/// The server's answer.
enum LookAnswer {
    Offer(Box<Offer>),
    Result(Value),
}

/// Sends the request to a server. A token that the server refuses is renewed once.
async fn with_server(
    state: &AuthState,
    target: LookTarget<'_>,
    question: Question<'_>,
) -> Result<LookAnswer, LookError> {
    let mut url = target.url;
    let settings = target.settings;
    let reached = state.egress.within(target.tenant.uuid().as_u128());
    let reached = &reached;
    match target.opened_by {
        OpenedBy::Nothing => converse(reached, url, &settings, Keys::default(), question).await,
        OpenedBy::Credential(slot) => {
            // A fresh token source, so that the request also tests the client credentials now.
            let tokens = TokenSource::new(state.clock.clone());
            let headers = slot.sign_in(&state.egress, &tokens, &mut url).await?;
            let secrets = slot.secrets(&headers);
            let keys = Keys { headers, secrets };
            converse(reached, url, &settings, keys, question).await
        }
        OpenedBy::Account(account) => {
            let connections = state.connections();
            let token = connections.token(account, url.as_str()).await?;
            let first = converse(reached, url.clone(), &settings, bearer(&token), question).await;
            let Err(LookError::Upstream(UpstreamError::Unauthorized { .. })) = first else {
                return first;
            };
            let token = connections.renewed(account, url.as_str(), &token).await?;
            let second = converse(reached, url, &settings, bearer(&token), question).await;
            if let Err(LookError::Upstream(UpstreamError::Unauthorized { .. })) = &second {
                connections.give_up(account, &token).await?;
            }
            second
        }
    }
}

/// Headers of each request, and the secrets that are masked in every answer (REVIEW-S-5).
#[derive(Default)]
struct Keys {
    headers: HeaderMap,
    secrets: Secrets,
}

fn bearer(token: &Token) -> Keys {
    let mut headers = HeaderMap::with_capacity(1);
    if let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", token.access)) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Keys {
        headers,
        secrets: Secrets::default(),
    }
}

async fn converse(
    egress: &Egress,
    url: Url,
    settings: &SourceSettings,
    keys: Keys,
    question: Question<'_>,
) -> Result<LookAnswer, LookError> {
    let limits = Limits {
        silence: Duration::from_millis(settings.timeout_ms.into()),
        total: LONGEST_LOOK,
        ..Limits::default()
    };
    let endpoint = Endpoint {
        url,
        headers: keys.headers,
        secrets: keys.secrets,
        limits,
    };
    let client = Client::new(egress.clone(), endpoint);
    // Only an HTTP+SSE server needs a task, which ends before this function does.
    let tracker = TaskTracker::new();
    let talked = tokio::time::timeout(LONGEST_LOOK, async {
        match question {
            Question::Offer => Ok(LookAnswer::Offer(Box::new(client.look(&tracker).await?))),
            Question::Call(call) => {
                let ourselves = Speaker::ourselves();
                let held = if call.in_a_session {
                    client.holds_sessions(&ourselves).await?
                } else {
                    None
                };
                let probed = match held {
                    Some(held) => held,
                    None => client.probe(&ourselves, &tracker).await?,
                };
                let result = probed
                    .call_tool(call.name, call.arguments, call.input_schema)
                    .await;
                probed.connection.end().await;
                result.map(LookAnswer::Result)
            }
        }
    })
    .await;
    tracker.close();
    tracker.wait().await;
    match talked {
        Ok(outcome) => Ok(outcome?),
        Err(_elapsed) => Err(LookError::TooSlow),
    }
}

/// The credential of a source's server: a connected account, otherwise the credential that the
/// workspace entered.
pub enum Opener {
    /// A connected account.
    Account(Account),
    /// A credential, if there is one.
    Credential(Option<CredentialSlot>),
}

impl Opener {
    /// Finds the credential of a source. A `caller` uses their own account where each person has
    /// one, as their calls do. Without a caller it is the workspace's account, which reads lists.
    pub async fn of(
        state: &AuthState,
        tx: &mut TenantTx,
        tenant: TenantId,
        source: SourceId,
        caller: Option<UserId>,
    ) -> Result<Self, ConsoleError> {
        if let Some(sign_in) = upstream_oauth::sign_in(tx, source).await? {
            return Ok(Self::Account(Account {
                tenant,
                source,
                owner: caller.filter(|_| sign_in.sharing != "workspace"),
            }));
        }
        let slot = credentials::open(state, tx, tenant, source).await?;
        Ok(Self::Credential(slot))
    }

    /// The same in the form of a [`LookTarget`].
    pub fn as_opened_by(&self) -> OpenedBy<'_> {
        match self {
            Self::Account(account) => OpenedBy::Account(*account),
            Self::Credential(slot) => slot.as_ref().into(),
        }
    }
}
