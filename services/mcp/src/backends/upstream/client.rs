//! Clients for upstream servers, signed in with the credential or the account of their source.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use portolan_connections::{Account, NoToken, Token};
use portolan_http_tools::Proof;
use portolan_model::id::UserId;
use portolan_net::{egress::Egress, secrets::Secrets, tunnel};
use portolan_upstream::{Client, Endpoint, Limits};
use uuid::Uuid;

use crate::{
    backends::{
        services::Backends,
        upstream::conversation::{LONGEST_CALL, NoClient, NoConversation},
    },
    catalog::{backend::Access, upstream::UpstreamSource},
};

/// A client for a server, and the token that opens the server, if one does.
pub(crate) struct SignedIn {
    pub(crate) client: Client,
    pub(crate) token: Option<Token>,
}

impl SignedIn {
    /// The account that opened it. A conversation belongs to one account.
    pub(crate) fn account(&self) -> Option<Uuid> {
        self.token.as_ref().map(Token::connection)
    }
}

/// `Authorization` with a token of the server's own authorization server.
pub(crate) fn bearer(token: &Token) -> Result<HeaderMap, NoClient> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.access));
    let mut value = value.map_err(|_| NoClient::Broken)?;
    value.set_sensitive(true);
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

impl UpstreamSource {
    /// The client for the address that the tenant stored, which may be that of an attached server.
    fn egress(&self, state: &Backends) -> Egress {
        state.egress.within(self.tenant.uuid().as_u128())
    }

    /// The name of an attached server.
    pub(crate) fn attached(&self) -> Option<&str> {
        tunnel::name_of(&self.url)
    }

    /// A client for the server, signed in for a person.
    ///
    /// `person` is `None` for callers that are not persons, and for work of the platform itself.
    pub(crate) async fn sign_in(
        &self,
        state: &Backends,
        person: Option<UserId>,
    ) -> Result<SignedIn, NoClient> {
        let account = self.account(person)?;
        if let (None, Access::Open) = (account, &self.access) {
            let client = self.open.get_or_init(|| {
                let endpoint = Endpoint {
                    url: self.url.clone(),
                    headers: HeaderMap::new(),
                    secrets: Secrets::default(),
                    limits: self.limits(self.silence, LONGEST_CALL),
                };
                Client::new(self.egress(state), endpoint)
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
    pub(crate) fn note<T>(&self, state: &Backends, replied: &Result<T, NoConversation>) {
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
        state: &Backends,
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
            (None, Access::Open) => HeaderMap::new(),
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
            client: Client::new(self.egress(state), endpoint),
            token,
        })
    }
}
