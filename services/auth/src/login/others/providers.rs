//! Who can say who somebody is: the providers of the platform, which are settings, and what is known of each.

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

/// So long what a provider publishes is used without asking again.
const FRESH: Duration = Duration::hours(1);
/// So long it is used while the provider does not answer.
const STALE: Duration = Duration::DAY;
/// Between two looks for a key that was missing.
const PAUSE: Duration = Duration::MINUTE;
/// Issuers and key sets that are remembered.
const REMEMBERED: usize = 1000;

/// Who we are at a provider.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    /// The id that the provider gave.
    pub id: String,
    /// The secret, if it gave one.
    pub secret: Option<Secret<String>>,
}

/// What an identity is known by at an OpenID provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubjectOf {
    /// `sub`, as the standard says.
    #[default]
    Subject,
    /// `tid` and `oid`, which Entra keeps where `sub` changes from client to client (F3).
    Entra,
}

/// How a provider is spoken to.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// OpenID Connect.
    OpenId(OpenId),
    /// GitHub, or a GitHub Enterprise server.
    Github(Github),
}

/// A provider.
#[derive(Debug, Clone)]
pub struct LoginProvider {
    /// Part of its callback's address and of every identity that it stands for: it stays the same.
    pub slug: String,
    /// On the button.
    pub name: String,
    /// The tenant for which alone it speaks; `None` for one of the platform (F7).
    pub tenant: Option<TenantId>,
    /// How it is spoken to.
    pub kind: ProviderKind,
    /// Who we are there.
    pub client: ProviderClient,
}

/// Whether a text can be the name of a provider in addresses: 1 to 32 small letters, digits and hyphens.
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
    /// How the person knows the account there. Cleaned.
    pub(super) label: String,
    /// Cleaned.
    pub(super) name: Option<String>,
    pub(super) email: Option<EmailAddress>,
    /// Whether the provider says that the address is theirs; `None` if it says nothing of that.
    pub(super) email_verified: Option<bool>,
    /// When they last proved who they are, if that was told.
    pub(super) auth_time: Option<i64>,
}

impl Proved {
    /// Whether the provider vouches for the address.
    pub(super) fn is_email_verified(&self) -> bool {
        self.email_verified == Some(true)
    }

    /// When the person proved who they are, if that was told and is not just now.
    pub(super) fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let at = Timestamp::from_unix_timestamp(self.auth_time?).ok()?;
        (at < now).then_some(at)
    }
}

/// Why nobody was proved. For the log: people read one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unproved {
    #[error("{0}")]
    Oauth(#[from] OauthError),
    #[error("the ID token is refused: {0}")]
    IdToken(#[from] IdTokenError),
    #[error("the provider did not send {0}")]
    Missing(&'static str),
}

/// What goes with a code.
pub(super) struct Code<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) nonce: &'a str,
    pub(super) redirect_uri: &'a str,
}

/// The providers of the platform, and what was learned of all. Cheap to clone.
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
    /// In the order in which people see them.
    pub fn new(providers: Vec<LoginProvider>) -> Self {
        Self(Arc::new(Inner {
            providers,
            servers: Cache::new(REMEMBERED),
            keys: Cache::new(REMEMBERED),
        }))
    }

    /// All of them.
    pub fn list(&self) -> &[LoginProvider] {
        &self.0.providers
    }

    /// The one of this name.
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

    /// The keys at an address; `newer` than those in which one was missing, but asked for no oftener than once a minute (case 72).
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
    /// Its addresses.
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

    /// What is asked for.
    pub(super) fn scope(&self) -> &str {
        match &self.kind {
            ProviderKind::OpenId(openid) => &openid.scope,
            ProviderKind::Github(_) => "read:user user:email",
        }
    }

    /// Whether what it says of people is an ID token.
    pub(super) const fn is_openid(&self) -> bool {
        matches!(self.kind, ProviderKind::OpenId(_))
    }

    /// Who came with this code.
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
    /// As the token endpoint of this provider wants it.
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

/// The first of these texts that is one when cleaned.
pub(super) fn cleaned<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    texts.into_iter().flatten().find_map(name::clean)
}

/// Asks an OpenID provider for what every sign-in needs: its metadata, and keys that can be used.
pub(crate) async fn look_at(state: &AuthState, issuer: &str) -> Result<(), OauthError> {
    let server = openid_provider(&state.egress, issuer).await?;
    let address = server.jwks_uri.as_deref().unwrap_or_default();
    let keys = key_set(&state.egress, address).await?;
    ClientKeys::read(&keys)
        .map(|_| ())
        .map_err(|_| OauthError::Unusable("key set"))
}
