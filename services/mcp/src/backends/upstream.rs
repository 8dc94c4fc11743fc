//! Calls through upstream MCP servers. Each message is written anew; none is tunnelled
//! (`docs/translation-rules.md`).
//!
//! A client never receives a server's session ids, request ids, progress tokens or cursors. A
//! server never receives a client's token.

pub(crate) mod account;
pub(crate) mod answered;
pub(crate) mod exchange;
pub(crate) mod forward;
pub(crate) mod get_streams;
pub(crate) mod hints;
pub(crate) mod meter;
pub(crate) mod orphaned_sessions;
pub(crate) mod questions;
pub(crate) mod refresh_requests;
pub(crate) mod sessions;
pub(crate) mod task;
pub(crate) mod tickets;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use portolan_connections::{Account, NoToken};
use portolan_http_tools::{OutputCheck, Proof};
use portolan_model::{
    id::{SourceId, TenantId, UserId},
    registry::SourceSettings,
};
use portolan_net::secrets::Secrets;
use portolan_protocol::{jsonrpc::Raw, revision::Era, tool::TaskSupport};
use portolan_upstream::{Client, Endpoint, Limits};
use url::Url;

use crate::backends::upstream::account::bearer;
pub(crate) use crate::{
    backends::upstream::{
        account::SignedIn,
        forward::{Forward, complete, forward, renamed},
        get_streams::UpstreamGetStreams,
        hints::{Hints, TaskListeners},
        refresh_requests::{RefreshRequests, request_refresh},
        sessions::{
            NoConversation, OfSession, Spoken, Upstreams, Who, end_sessions, roots_changed,
        },
    },
    features::upstream_read::Pass,
};
use crate::{catalog::server::Access, http::state::McpState};

/// The longest time of a call, whatever its progress and questions (MCP-L-12, MCP-X-24).
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(3600);

/// An upstream server, as a source of a published server.
#[derive(Debug)]
pub(crate) struct UpstreamSource {
    pub(crate) tenant: TenantId,
    pub(crate) id: SourceId,
    url: Url,
    access: Access,
    /// The silence after which a call is ended.
    silence: Duration,
    answer_bytes: usize,
    /// The client for calls of a server without sign-in, shared by all of them.
    open: OnceLock<Client>,
    /// The key of the server in caches of a node: another address or credential is another server.
    pub(crate) place: String,
}

/// A tool of an upstream server.
#[derive(Debug)]
pub(crate) struct UpstreamTool {
    pub(crate) source: Arc<UpstreamSource>,
    /// The server's own name of it, a JSON string.
    pub(crate) name: Raw,
    /// The era in which alone a server of both has it.
    pub(crate) era: Option<Era>,
    /// The server takes its calls as tasks.
    pub(crate) tasks: Option<TaskSupport>,
    /// What its structured results must be (MCP-X-6G).
    pub(crate) output: Option<OutputCheck>,
}

/// A prompt, resource or template of an upstream server.
#[derive(Debug)]
pub(crate) struct UpstreamPlace {
    pub(crate) source: Arc<UpstreamSource>,
    /// The server's own name or URI of it, a JSON string.
    pub(crate) own: Raw,
}

/// Why no call can be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoClient {
    /// A credential is set, but cannot be opened.
    #[error("the credential cannot be opened")]
    Broken,
    /// The sign-in failed.
    #[error("no sign-in: {0}")]
    SignIn(#[from] portolan_http_tools::SignInError),
    /// There is no account, or no token for it.
    #[error("{0}")]
    Account(#[from] NoToken),
    /// The server needs an account of a person, and the caller is not a person.
    #[error("only a person has an account there")]
    NoPerson,
}

impl UpstreamSource {
    pub(crate) fn new(
        tenant: TenantId,
        id: SourceId,
        url: Url,
        access: Access,
        settings: &SourceSettings,
    ) -> Self {
        let credential = match &access {
            Access::With(known) => known.slot.key.as_str(),
            Access::Account(_) => "account",
            Access::Open | Access::Broken => "",
        };
        Self {
            place: format!("{tenant}/{id}/{credential}/{url}"),
            tenant,
            id,
            url,
            access,
            silence: Duration::from_millis(settings.timeout_ms.into()),
            answer_bytes: settings.max_response_bytes as usize,
            open: OnceLock::new(),
        }
    }

    /// A client for the server, signed in for a person.
    ///
    /// `person` is `None` for callers that are not persons, and for work of the platform itself.
    pub(crate) async fn sign_in(
        &self,
        state: &McpState,
        person: Option<UserId>,
    ) -> Result<SignedIn, NoClient> {
        let account = self.account(person)?;
        if let (None, Access::Open) = (account, &self.access) {
            let client = self.open.get_or_init(|| {
                let endpoint = Endpoint {
                    url: self.url.clone(),
                    headers: http::HeaderMap::new(),
                    secrets: Secrets::default(),
                    limits: self.limits(self.silence, LONGEST_CALL),
                };
                Client::new(state.egress.clone(), endpoint)
            });
            return Ok(SignedIn {
                client: client.clone(),
                token: None,
            });
        }
        // Boxed: opening a server is a large future.
        Box::pin(self.sign_in_for(state, account, self.silence, LONGEST_CALL)).await
    }

    /// Notes what a request showed of the credential.
    pub(crate) fn note<T>(&self, state: &McpState, replied: &Result<T, NoConversation>) {
        let proof = match replied {
            Ok(_) => Some(Proof::Works),
            Err(NoConversation::Upstream(error)) => error.refusal().map(Proof::Refused),
            Err(NoConversation::Client(NoClient::SignIn(error))) => error.proof(),
            Err(_) => None,
        };
        self.access.note(state, proof);
    }

    fn limits(&self, silence: Duration, total: Duration) -> Limits {
        Limits {
            answer_bytes: self.answer_bytes,
            silence,
            total,
            ..Limits::default()
        }
    }

    /// The same with a known account and bounds: the longest silence, and the longest exchange.
    pub(crate) async fn sign_in_for(
        &self,
        state: &McpState,
        account: Option<Account>,
        silence: Duration,
        total: Duration,
    ) -> Result<SignedIn, NoClient> {
        let mut url = self.url.clone();
        let mut token = None;
        let headers = match (account, &self.access) {
            (Some(account), _) => {
                let opened = Box::pin(state.accounts.token(account, self.url.as_str())).await?;
                let headers = bearer(&opened)?;
                token = Some(opened);
                headers
            }
            (None, Access::Open) => http::HeaderMap::new(),
            (None, Access::With(known)) => {
                Box::pin(known.slot.sign_in(&state.egress, &state.tokens, &mut url)).await?
            }
            (None, Access::Account(_)) => return Err(NoToken::NotConnected.into()),
            (None, Access::Broken) => return Err(NoClient::Broken),
        };
        let secrets = match (account, &self.access) {
            (None, Access::With(known)) => known.slot.secrets(&headers),
            _ => Secrets::default(),
        };
        let endpoint = Endpoint {
            url,
            headers,
            secrets,
            limits: self.limits(silence, total),
        };
        Ok(SignedIn {
            client: Client::new(state.egress.clone(), endpoint),
            token,
        })
    }
}
