//! Our client identity at an authorization server (MCP-AU-6, MCP-AU-7; MCP-AC-1).

use http::StatusCode;
use portolan_net::egress::Egress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    OauthError,
    error::shown_code,
    fetch::{checked, post_json},
    metadata::AuthorizationServer,
};

/// How a client names itself at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    /// Its id, in the form.
    None,
    /// HTTP Basic.
    ClientSecretBasic,
    /// Id and secret in the form.
    ClientSecretPost,
    /// A signed assertion (RFC 7523).
    PrivateKeyJwt,
}

impl AuthMethod {
    /// As metadata writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Reads a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::None,
            Self::ClientSecretBasic,
            Self::ClientSecretPost,
            Self::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|method| method.name() == name)
    }

    /// Chooses the best method that a server accepts for a client with a secret. A server that
    /// declares none accepts Basic (RFC 8414 §2).
    pub fn with_secret(server: &AuthorizationServer) -> Self {
        match &server.token_endpoint_auth_methods_supported {
            None => Self::ClientSecretBasic,
            Some(names) => [Self::ClientSecretBasic, Self::ClientSecretPost]
                .into_iter()
                .find(|method| names.iter().any(|name| name == method.name()))
                .unwrap_or(Self::ClientSecretBasic),
        }
    }
}

/// Registration of our client at one authorization server. It is valid at no other server
/// (MCP-AU-7).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// Its id.
    pub client_id: String,
    /// Its secret, or for [`AuthMethod::PrivateKeyJwt`] its key in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// How it names itself.
    pub method: AuthMethod,
}

impl std::fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl ClientIdentity {
    /// A client that is its own metadata document, or public.
    pub fn public(client_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            secret: None,
            method: AuthMethod::None,
        }
    }
}

/// Client metadata for registration, and for our metadata document.
#[derive(Debug, Clone)]
pub struct Registration<'a> {
    /// Name on the consent page.
    pub client_name: &'a str,
    /// Our site.
    pub client_uri: &'a str,
    /// Address of the redirect.
    pub redirect_uri: &'a str,
    /// Scopes that will be requested, separated by spaces.
    pub scope: Option<&'a str>,
}

impl Registration<'_> {
    /// As a document. `method` is how the client names itself.
    pub fn document(&self, method: AuthMethod) -> Value {
        let mut document = json!({
            "client_name": self.client_name,
            "client_uri": self.client_uri,
            "redirect_uris": [self.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
            // MCP-AC-5: plain loopback is a development set-up, which OpenID's rules know as a
            // native client.
            "application_type": if self.redirect_uri.starts_with("https:") { "web" } else { "native" },
        });
        if let Some(scope) = self.scope {
            document["scope"] = json!(scope);
        }
        document
    }
}

/// Registers us with a server that supports dynamic client registration (RFC 7591).
///
/// # Errors
/// [`OauthError`]; [`OauthError::NoRegistration`] if the server does not support it.
pub async fn register(
    egress: &Egress,
    server: &AuthorizationServer,
    registration: &Registration<'_>,
) -> Result<ClientIdentity, OauthError> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        #[serde(default)]
        client_secret: Option<String>,
        #[serde(default)]
        token_endpoint_auth_method: Option<String>,
    }
    #[derive(Deserialize)]
    struct RegistrationFault {
        error: String,
    }
    let endpoint = server
        .registration_endpoint
        .as_deref()
        .ok_or(OauthError::NoRegistration)?;
    let url = checked(egress, endpoint)?;
    let takes = |method: AuthMethod| {
        let names = server.token_endpoint_auth_methods_supported.as_ref();
        names.is_none_or(|names| names.iter().any(|name| name == method.name()))
    };
    let wanted = [
        AuthMethod::ClientSecretBasic,
        AuthMethod::ClientSecretPost,
        AuthMethod::None,
    ]
    .into_iter()
    .find(|method| takes(*method))
    .unwrap_or(AuthMethod::None);
    let body = registration.document(wanted).to_string().into_bytes();
    let answer = post_json(egress, url, body).await?;
    if !matches!(answer.status, StatusCode::CREATED | StatusCode::OK) {
        return Err(
            match serde_json::from_slice::<RegistrationFault>(&answer.body) {
                Ok(fault) => OauthError::Refused {
                    code: shown_code(&fault.error),
                },
                Err(_) => OauthError::Status {
                    what: "the registration",
                    status: answer.status,
                },
            },
        );
    }
    let registered: Registered = serde_json::from_slice(&answer.body)
        .map_err(|_| OauthError::Unusable("registration answer"))?;
    if registered.client_id.is_empty() || registered.client_id.len() > 2048 {
        return Err(OauthError::Unusable("registration answer"));
    }
    let secret = registered.client_secret.filter(|secret| !secret.is_empty());
    let named = registered
        .token_endpoint_auth_method
        .as_deref()
        .and_then(AuthMethod::from_name)
        .unwrap_or(wanted);
    let method = match (&secret, named) {
        (None, _) => AuthMethod::None,
        // A secret that the server gave and means to see.
        (Some(_), AuthMethod::None | AuthMethod::PrivateKeyJwt) if takes(AuthMethod::None) => {
            AuthMethod::None
        }
        (Some(_), AuthMethod::None | AuthMethod::PrivateKeyJwt) => AuthMethod::with_secret(server),
        (Some(_), named) => named,
    };
    Ok(ClientIdentity {
        client_id: registered.client_id,
        secret: secret.filter(|_| method != AuthMethod::None),
        method,
    })
}
