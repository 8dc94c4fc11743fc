//! The form of a source's sign-in: the accounts that calls use, the issuer of their tokens, and the
//! workspace's OAuth client there.

use portolan_model::registry::SourceKind;
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_upstream::oauth::{
    AuthMethod, AuthorizationServer, ClientIdentity, OauthError, checked, discover_issuer,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    credentials::ClientAuthName,
    sign_in::{Sharing, SignInMethod},
};

/// Longest client id or list of scopes.
const LONGEST: usize = 2048;

/// Longest secret: a key in PEM.
const LONGEST_SECRET: usize = 16 * 1024;

/// A client that the authorization server's operator registered for the workspace.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnteredClient {
    client_id: String,
    /// Its secret, if it has one.
    #[serde(default)]
    #[schema(nullable = false)]
    client_secret: Option<String>,
    /// Its private key in PEM, for servers that know it by its public key.
    #[serde(default)]
    #[schema(nullable = false)]
    private_key: Option<String>,
    /// How its secret is sent. If absent, the server's metadata decides, or `basic`.
    #[serde(default)]
    #[schema(nullable = false)]
    auth: Option<ClientAuthName>,
}

impl std::fmt::Debug for EnteredClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnteredClient")
    }
}

impl EnteredClient {
    pub(crate) fn checked(self) -> Result<ClientIdentity, ConsoleError> {
        let invalid = |field: &'static str, message: &'static str| {
            ConsoleError::invalid("client_invalid", message).field(field)
        };
        let tidy = |text: Option<String>| {
            text.map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let client_id = self.client_id.trim().to_owned();
        if client_id.is_empty() || client_id.len() > LONGEST || !client_id.is_ascii() {
            return Err(invalid(
                "client.client_id",
                "Give the client id as the server's operator wrote it.",
            ));
        }
        let (secret, key) = (tidy(self.client_secret), tidy(self.private_key));
        let too_long = |text: &Option<String>| {
            text.as_ref()
                .is_some_and(|text| text.len() > LONGEST_SECRET)
        };
        if too_long(&secret) || too_long(&key) {
            return Err(invalid(
                "client.client_secret",
                "This is too long to be a secret.",
            ));
        }
        match (secret, key) {
            (Some(_), Some(_)) => Err(invalid(
                "client.private_key",
                "Give a secret or a key, not both.",
            )),
            (None, Some(key)) if !portolan_keys::client_key::is_usable(&key) => Err(invalid(
                "client.private_key",
                "Give a P-256 or RSA private key in PEM, from BEGIN to END.",
            )),
            (None, Some(key)) => Ok(ClientIdentity {
                client_id,
                secret: Some(key),
                method: AuthMethod::PrivateKeyJwt,
            }),
            (Some(secret), None) => Ok(ClientIdentity {
                client_id,
                secret: Some(secret),
                method: match self.auth {
                    Some(ClientAuthName::Post) => AuthMethod::ClientSecretPost,
                    Some(ClientAuthName::Basic) | None => AuthMethod::ClientSecretBasic,
                },
            }),
            (None, None) => Ok(ClientIdentity::public(client_id)),
        }
    }
}

/// The authorization server of an API: its issuer, whose metadata has the rest (RFC 8414, OpenID
/// Connect), or its addresses.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnteredServer {
    #[serde(default)]
    #[schema(nullable = false)]
    issuer: Option<String>,
    /// The authorization endpoint.
    #[serde(default)]
    #[schema(nullable = false)]
    authorization_endpoint: Option<String>,
    /// The token endpoint.
    #[serde(default)]
    #[schema(nullable = false)]
    token_endpoint: Option<String>,
    /// The revocation endpoint, if there is one.
    #[serde(default)]
    #[schema(nullable = false)]
    revocation_endpoint: Option<String>,
}

impl EnteredServer {
    /// The server's data: fetched from its issuer, or as entered.
    pub(crate) async fn found(
        self,
        state: &AuthState,
    ) -> Result<AuthorizationServer, ConsoleError> {
        let tidy = |text: Option<String>| {
            text.map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty() && text.len() <= LONGEST)
        };
        let address = |field: &'static str, text: &str| {
            checked(&state.egress, text).map_err(|error| {
                let message = match error {
                    OauthError::UnsafeAddress => {
                        "Give the complete address, starting with https:// and without a part after `#`.".to_owned()
                    }
                    error => format!("Nothing can be sent there: {error}."),
                };
                ConsoleError::invalid("server_invalid", message).field(field)
            })
        };
        let issuer = tidy(self.issuer);
        let (page, tokens) = (tidy(self.authorization_endpoint), tidy(self.token_endpoint));
        match (issuer, page, tokens) {
            (Some(issuer), None, None) => {
                address("server.issuer", &issuer)?;
                let found = discover_issuer(&state.egress, &issuer).await;
                found.map_err(|error| {
                    let message = format!("This issuer cannot be used: {error}.");
                    ConsoleError::invalid("server_unusable", message).field("server.issuer")
                })
            }
            (None, Some(page), Some(tokens)) => {
                let page = address("server.authorization_endpoint", &page)?;
                let tokens = address("server.token_endpoint", &tokens)?;
                let back = tidy(self.revocation_endpoint)
                    .map(|text| address("server.revocation_endpoint", &text))
                    .transpose()?;
                Ok(AuthorizationServer::entered(&page, &tokens, back.as_ref()))
            }
            _ => {
                let message =
                    "Give the issuer, or both the authorization endpoint and the token endpoint.";
                Err(ConsoleError::invalid("server_invalid", message).field("server"))
            }
        }
    }
}

/// The sign-in of a source.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInForm {
    pub(crate) sharing: Sharing,
    /// An API supports `code` only: client credentials are a kind of credential there.
    #[serde(default)]
    pub(crate) method: SignInMethod,
    /// Scopes to request, separated by spaces; those that the server names if absent.
    #[serde(default)]
    #[schema(nullable = false)]
    scope: Option<String>,
    /// The authorization server of an API; if absent, the known one stays. An MCP server names its
    /// own.
    #[serde(default)]
    #[schema(nullable = false)]
    pub(crate) server: Option<EnteredServer>,
    /// A client that was registered by hand; if absent, the known one stays.
    #[serde(default)]
    #[schema(nullable = false)]
    pub(crate) client: Option<EnteredClient>,
}

impl SignInForm {
    /// The scopes, normalised.
    pub(crate) fn scopes(&self) -> Result<Option<String>, ConsoleError> {
        let scope = self
            .scope
            .as_ref()
            .map(|scope| scope.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        let scope = scope.filter(|scope| !scope.is_empty());
        let is_scope =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\') || byte == b' ';
        if scope
            .as_ref()
            .is_some_and(|scope| scope.len() > LONGEST || !scope.bytes().all(is_scope))
        {
            let message = "Scopes are words without quotes, separated by spaces.";
            return Err(ConsoleError::invalid("scope_invalid", message).field("scope"));
        }
        Ok(scope)
    }

    /// Refuses members that do not fit the kind of source.
    pub(crate) fn check(&self, kind: SourceKind) -> Result<(), ConsoleError> {
        if kind == SourceKind::Mcp && self.server.is_some() {
            let message = "An MCP server names its authorization server itself.";
            return Err(ConsoleError::invalid("server_invalid", message).field("server"));
        }
        if kind != SourceKind::Mcp && self.method != SignInMethod::Code {
            let message = "For an API that opens to the client itself, set a credential of the kind OAuth client credentials.";
            return Err(ConsoleError::invalid("method_invalid", message).field("method"));
        }
        Ok(())
    }
}
