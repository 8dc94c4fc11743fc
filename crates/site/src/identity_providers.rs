//! Identity providers: those of the platform, which are settings, and the cached metadata and keys
//! of all.

pub mod github;
pub mod openid;
mod settings;

use std::sync::Arc;

use portolan_keys::{ClientKeys, IdTokenError, Secret};
use portolan_model::{Timestamp, email::EmailAddress, id::TenantId};
use portolan_net::egress::Egress;
use portolan_upstream::oauth::{
    AuthMethod, AuthorizationServer, ClientIdentity, OauthError, key_set, openid_provider,
};
use quick_cache::sync::Cache;
use time::Duration;

use crate::names;

pub use self::{github::Github, openid::OpenId, settings::LoginProviders};

/// How long a provider's published data is used without a new request.
const FRESH: Duration = Duration::hours(1);

/// How long it is used while the provider does not answer.
const STALE: Duration = Duration::DAY;

/// Least time between two requests for a missing key.
const PAUSE: Duration = Duration::MINUTE;

/// Most issuers and key sets in the cache.
const REMEMBERED: usize = 1000;

/// Client, cached data and time for a request to a provider.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// The client for outgoing requests.
    pub egress: &'a Egress,
    /// The cached data of all providers.
    pub known: &'a SignInWith,
    /// The present time.
    pub now: Timestamp,
}

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
pub struct Proved {
    /// The issuer.
    pub issuer: String,
    /// The account there; it never changes.
    pub subject: String,
    /// The account's name at the provider. Cleaned.
    pub label: String,
    /// The person's name. Cleaned.
    pub name: Option<String>,
    /// The address, if the provider sent a valid one.
    pub email: Option<EmailAddress>,
    /// The provider's claim that the address belongs to the person; `None` without such a claim.
    pub email_verified: Option<bool>,
    /// Time of the person's last sign-in there in Unix seconds, if the provider sent it.
    pub auth_time: Option<i64>,
}

impl Proved {
    /// Returns true if the provider vouches for the address.
    pub fn is_email_verified(&self) -> bool {
        self.email_verified == Some(true)
    }

    /// The time of the sign-in at the provider, if the provider sent it and it is not the present.
    pub fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let at = Timestamp::from_unix_timestamp(self.auth_time?).ok()?;
        (at < now).then_some(at)
    }
}

/// Why no identity was proved. For the log: people read one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Unproved {
    /// A request to the provider failed.
    #[error("{0}")]
    Oauth(#[from] OauthError),
    /// The ID token is not valid.
    #[error("the ID token is refused: {0}")]
    IdToken(#[from] IdTokenError),
    /// A required part is absent.
    #[error("the provider did not send {0}")]
    Missing(&'static str),
}

/// An authorization code with the data that is needed to redeem it.
pub struct Code<'a> {
    /// The code.
    pub code: &'a str,
    /// The PKCE verifier.
    pub verifier: &'a str,
    /// The nonce of the ID token.
    pub nonce: &'a str,
    /// The callback that was sent.
    pub redirect_uri: &'a str,
}

/// The providers of the platform, and the cached data of all providers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SignInWith(Arc<ProviderData>);

struct ProviderData {
    providers: Vec<LoginProvider>,
    servers: Cache<String, (Timestamp, Arc<AuthorizationServer>)>,
    keys: Cache<String, (Timestamp, ClientKeys)>,
}

impl std::fmt::Debug for ProviderData {
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
        Self(Arc::new(ProviderData {
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
    pub async fn server(
        &self,
        exchange: &Exchange<'_>,
        issuer: &str,
    ) -> Result<Arc<AuthorizationServer>, OauthError> {
        let now = exchange.now;
        let known = self.0.servers.get(issuer);
        if let Some((at, server)) = &known
            && now < *at + FRESH
        {
            return Ok(Arc::clone(server));
        }
        match (openid_provider(exchange.egress, issuer).await, known) {
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

    /// The keys at an address.
    pub async fn keys(
        &self,
        exchange: &Exchange<'_>,
        address: &str,
    ) -> Result<ClientKeys, OauthError> {
        self.keys_of(exchange, address, FRESH).await
    }

    /// The same, fetched again, because a key was missing: once a minute at most (CASE-72).
    pub async fn newer_keys(
        &self,
        exchange: &Exchange<'_>,
        address: &str,
    ) -> Result<ClientKeys, OauthError> {
        self.keys_of(exchange, address, PAUSE).await
    }

    /// The keys at an address, fetched again if they are older than `life`.
    async fn keys_of(
        &self,
        exchange: &Exchange<'_>,
        address: &str,
        life: Duration,
    ) -> Result<ClientKeys, OauthError> {
        let now = exchange.now;
        let known = self.0.keys.get(address);
        if let Some((at, keys)) = &known
            && now < *at + life
        {
            return Ok(keys.clone());
        }
        let read = async {
            let set = key_set(exchange.egress, address).await?;
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
    pub async fn server(
        &self,
        exchange: &Exchange<'_>,
    ) -> Result<Arc<AuthorizationServer>, OauthError> {
        match &self.kind {
            ProviderKind::OpenId(openid) => exchange.known.server(exchange, &openid.issuer).await,
            ProviderKind::Github(github) => Ok(Arc::new(github.server())),
        }
    }

    /// The requested scopes.
    pub fn scope(&self) -> &str {
        match &self.kind {
            ProviderKind::OpenId(openid) => &openid.scope,
            ProviderKind::Github(_) => "read:user user:email",
        }
    }

    /// Returns true if the provider sends ID tokens.
    pub const fn is_openid(&self) -> bool {
        matches!(self.kind, ProviderKind::OpenId(_))
    }

    /// Redeems the code and returns the person that it proves.
    pub async fn proved(
        &self,
        exchange: &Exchange<'_>,
        server: &AuthorizationServer,
        code: &Code<'_>,
    ) -> Result<Proved, Unproved> {
        match &self.kind {
            ProviderKind::OpenId(openid) => {
                openid.proved(exchange, server, &self.client, code).await
            }
            ProviderKind::Github(github) => {
                github.proved(exchange, server, &self.client, code).await
            }
        }
    }
}

impl ProviderClient {
    /// The client's credentials in the form that this provider's token endpoint accepts.
    pub fn identity(&self, server: &AuthorizationServer) -> ClientIdentity {
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
pub fn cleaned<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    texts.into_iter().flatten().find_map(names::clean)
}

/// Fetches from an OpenID provider the data that every sign-in needs: its metadata, and usable
/// keys.
pub async fn look_at(egress: &Egress, issuer: &str) -> Result<(), OauthError> {
    let server = openid_provider(egress, issuer).await?;
    let address = server.jwks_uri.as_deref().unwrap_or_default();
    let keys = key_set(egress, address).await?;
    ClientKeys::read(&keys)
        .map(|_| ())
        .map_err(|_| OauthError::Unusable("key set"))
}
