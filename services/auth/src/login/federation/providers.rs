//! Identity providers: those of the platform, which are settings, and the cached metadata and keys
//! of all.

use std::sync::Arc;

use portolan_keys::{ClientKeys, IdTokenError, Secret};
use portolan_model::{Timestamp, email::EmailAddress, id::TenantId};
use portolan_upstream::oauth::{
    AuthMethod, AuthorizationServer, ClientIdentity, OauthError, key_set, openid_provider,
};
use quick_cache::sync::Cache;
use time::Duration;

use super::{github::Github, openid::OpenId};
use crate::{clients::name, state::AuthState};

/// How long a provider's published data is used without a new request.
const FRESH: Duration = Duration::hours(1);
/// How long it is used while the provider does not answer.
const STALE: Duration = Duration::DAY;
/// Least time between two requests for a missing key.
const PAUSE: Duration = Duration::MINUTE;
/// Most issuers and key sets in the cache.
const REMEMBERED: usize = 1000;

/// The OAuth client of this service at a provider.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    /// The client id from the provider.
    pub id: String,
    /// The client secret, if the provider issued one.
    pub secret: Option<Secret<String>>,
}

/// The claims that identify a person at an OpenID provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubjectOf {
    /// `sub`, as in the standard.
    #[default]
    Subject,
    /// `tid` and `oid`: Entra keeps these, while its `sub` differs from client to client (AUTH-F3).
    Entra,
}

/// The protocol of a provider.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// OpenID Connect.
    OpenId(OpenId),
    /// GitHub, or a GitHub Enterprise server.
    Github(Github),
}

/// An identity provider.
#[derive(Debug, Clone)]
pub struct LoginProvider {
    /// Its name in the callback's address and in every identity. It never changes.
    pub slug: String,
    /// Its name on the button.
    pub name: String,
    /// The only tenant that it serves; `None` for a provider of the platform (AUTH-F7).
    pub tenant: Option<TenantId>,
    /// Its protocol.
    pub kind: ProviderKind,
    /// The OAuth client of this service there.
    pub client: ProviderClient,
}

/// Returns true if a text can name a provider in addresses: 1 to 32 small letters, digits and
/// hyphens.
pub fn is_provider_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A person, as a provider proved them.
#[derive(Debug)]
pub(super) struct Proved {
    pub(super) issuer: String,
    pub(super) subject: String,
    /// The account's name at the provider. Cleaned.
    pub(super) label: String,
    /// The person's name. Cleaned.
    pub(super) name: Option<String>,
    pub(super) email: Option<EmailAddress>,
    /// The provider's claim that the address belongs to the person; `None` without such a claim.
    pub(super) email_verified: Option<bool>,
    /// Time of the person's last sign-in there in Unix seconds, if the provider sent it.
    pub(super) auth_time: Option<i64>,
}

impl Proved {
    /// Returns true if the provider vouches for the address.
    pub(super) fn is_email_verified(&self) -> bool {
        self.email_verified == Some(true)
    }

    /// The time of the sign-in at the provider, if the provider sent it and it is not the present.
    pub(super) fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let at = Timestamp::from_unix_timestamp(self.auth_time?).ok()?;
        (at < now).then_some(at)
    }
}

/// Why no identity was proved. For the log: people read one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unproved {
    #[error("{0}")]
    Oauth(#[from] OauthError),
    #[error("the ID token is refused: {0}")]
    IdToken(#[from] IdTokenError),
    #[error("the provider did not send {0}")]
    Missing(&'static str),
}

/// An authorization code with the data that is needed to redeem it.
pub(super) struct Code<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) nonce: &'a str,
    pub(super) redirect_uri: &'a str,
}

/// The providers of the platform, and the cached data of all providers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SignInWith(Arc<Inner>);

struct Inner {
    providers: Vec<LoginProvider>,
    servers: Cache<String, (Timestamp, Arc<AuthorizationServer>)>,
    keys: Cache<String, (Timestamp, ClientKeys)>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignInWith")
            .field("providers", &self.providers.len())
            .finish_non_exhaustive()
    }
}

impl Default for SignInWith {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl SignInWith {
    /// Creates the set. The pages show providers in this order.
    pub fn new(providers: Vec<LoginProvider>) -> Self {
        Self(Arc::new(Inner {
            providers,
            servers: Cache::new(REMEMBERED),
            keys: Cache::new(REMEMBERED),
        }))
    }

    /// All providers of the platform.
    pub fn list(&self) -> &[LoginProvider] {
        &self.0.providers
    }

    /// The provider with this name.
    pub fn find(&self, slug: &str) -> Option<&LoginProvider> {
        self.0
            .providers
            .iter()
            .find(|provider| provider.slug == slug)
    }

    /// The metadata of an OpenID provider.
    pub(super) async fn server(
        &self,
        state: &AuthState,
        issuer: &str,
    ) -> Result<Arc<AuthorizationServer>, OauthError> {
        let now = state.now();
        let known = self.0.servers.get(issuer);
        if let Some((at, server)) = &known
            && now < *at + FRESH
        {
            return Ok(Arc::clone(server));
        }
        match (openid_provider(&state.egress, issuer).await, known) {
            (Ok(server), _) => {
                let server = Arc::new(server);
                self.0
                    .servers
                    .insert(issuer.to_owned(), (now, Arc::clone(&server)));
                Ok(server)
            }
            (Err(error), Some((at, server))) if now < at + STALE => {
                tracing::warn!(issuer, reason = %error, "the metadata of a provider is old: it does not answer");
                Ok(server)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The keys at an address. With `newer` it fetches again, because a key was missing, once a
    /// minute at most (CASE-72).
    pub(super) async fn keys(
        &self,
        state: &AuthState,
        address: &str,
        newer: bool,
    ) -> Result<ClientKeys, OauthError> {
        let now = state.now();
        let life = if newer { PAUSE } else { FRESH };
        let known = self.0.keys.get(address);
        if let Some((at, keys)) = &known
            && now < *at + life
        {
            return Ok(keys.clone());
        }
        let read = async {
            let set = key_set(&state.egress, address).await?;
            ClientKeys::read(&set).map_err(|_| OauthError::Unusable("key set"))
        };
        match (read.await, known) {
            (Ok(keys), _) => {
                self.0.keys.insert(address.to_owned(), (now, keys.clone()));
                Ok(keys)
            }
            (Err(_), Some((at, keys))) if now < at + STALE => Ok(keys),
            (Err(error), _) => Err(error),
        }
    }
}

impl LoginProvider {
    /// Its endpoints.
    pub(super) async fn server(
        &self,
        state: &AuthState,
    ) -> Result<Arc<AuthorizationServer>, OauthError> {
        match &self.kind {
            ProviderKind::OpenId(openid) => {
                state
                    .config
                    .sign_in_with
                    .server(state, &openid.issuer)
                    .await
            }
            ProviderKind::Github(github) => Ok(Arc::new(github.server())),
        }
    }

    /// The requested scopes.
    pub(super) fn scope(&self) -> &str {
        match &self.kind {
            ProviderKind::OpenId(openid) => &openid.scope,
            ProviderKind::Github(_) => "read:user user:email",
        }
    }

    /// Returns true if the provider sends ID tokens.
    pub(super) const fn is_openid(&self) -> bool {
        matches!(self.kind, ProviderKind::OpenId(_))
    }

    /// Redeems the code and returns the person that it proves.
    pub(super) async fn proved(
        &self,
        state: &AuthState,
        server: &AuthorizationServer,
        code: &Code<'_>,
    ) -> Result<Proved, Unproved> {
        match &self.kind {
            ProviderKind::OpenId(openid) => openid.proved(state, server, &self.client, code).await,
            ProviderKind::Github(github) => github.proved(state, server, &self.client, code).await,
        }
    }
}

impl ProviderClient {
    /// The client's credentials in the form that this provider's token endpoint accepts.
    pub(super) fn identity(&self, server: &AuthorizationServer) -> ClientIdentity {
        match &self.secret {
            None => ClientIdentity::public(self.id.clone()),
            Some(secret) => ClientIdentity {
                client_id: self.id.clone(),
                secret: Some(secret.expose().clone()),
                method: AuthMethod::with_secret(server),
            },
        }
    }
}

/// The first text that is not empty after cleaning.
pub(super) fn cleaned<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    texts.into_iter().flatten().find_map(name::clean)
}

/// Fetches from an OpenID provider the data that every sign-in needs: its metadata, and usable
/// keys.
pub(crate) async fn look_at(state: &AuthState, issuer: &str) -> Result<(), OauthError> {
    let server = openid_provider(&state.egress, issuer).await?;
    let address = server.jwks_uri.as_deref().unwrap_or_default();
    let keys = key_set(&state.egress, address).await?;
    ClientKeys::read(&keys)
        .map(|_| ())
        .map_err(|_| OauthError::Unusable("key set"))
}
