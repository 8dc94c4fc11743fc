//! Metadata documents: RFC 9728 for resources, RFC 8414 and OpenID discovery for authorization
//! servers.

use serde::{Deserialize, Serialize};
use url::Url;

/// RFC 9728, as far as it is used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProtectedResource {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414, as far as it is used. Kept with what is connected, so that a token is renewed where it
/// came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// Compared byte for byte (MCP-AU-9).
    pub issuer: String,
    /// Authorization endpoint for browsers. A server for client credentials alone may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Token endpoint.
    pub token_endpoint: String,
    /// Endpoint for client registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Revocation endpoint (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// S256 must be among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// All that it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// How clients name themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// A client's id may be the address of its metadata.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// Its answers carry `iss` (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// Address of its public keys, if it signs ID tokens (OpenID Connect).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Userinfo endpoint (OpenID Connect).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userinfo_endpoint: Option<String>,
    /// Algorithms with which it signs ID tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token_signing_alg_values_supported: Option<Vec<String>>,
    /// True if a person entered the addresses without an issuer name: `issuer` is then only the
    /// origin of its pages. Never read from a document of the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_nameless: bool,
}

impl AuthorizationServer {
    /// Creates metadata with only the issuer and the token endpoint.
    pub fn bare(issuer: impl Into<String>, token_endpoint: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            authorization_endpoint: None,
            token_endpoint: token_endpoint.into(),
            registration_endpoint: None,
            revocation_endpoint: None,
            code_challenge_methods_supported: None,
            scopes_supported: None,
            token_endpoint_auth_methods_supported: None,
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
            jwks_uri: None,
            userinfo_endpoint: None,
            id_token_signing_alg_values_supported: None,
            is_nameless: false,
        }
    }

    /// One that a person entered by its addresses, which [`checked`](super::checked) let through:
    /// where browsers go, where tokens come from, and where they are given back, if that is known.
    pub fn entered(authorization: &Url, token: &Url, revocation: Option<&Url>) -> Self {
        Self {
            authorization_endpoint: Some(authorization.to_string()),
            revocation_endpoint: revocation.map(Url::to_string),
            is_nameless: true,
            ..Self::bare(authorization.origin().ascii_serialization(), token.as_str())
        }
    }

    /// True for the same server. Tokens and registrations of one server are not valid at another
    /// (MCP-AU-7).
    pub fn is_same(&self, other: &Self) -> bool {
        if self.is_nameless || other.is_nameless {
            return self.is_nameless == other.is_nameless
                && self.authorization_endpoint == other.authorization_endpoint
                && self.token_endpoint == other.token_endpoint;
        }
        self.issuer == other.issuer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_7_entered_addresses_are_the_server_and_a_name_is_where_one_is_known() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (page, token) = (
            url("https://as.example/a?x=1"),
            url("https://api.example/t"),
        );
        let entered = AuthorizationServer::entered(&page, &token, None);
        assert_eq!(entered.issuer, "https://as.example");
        assert_eq!(
            entered.authorization_endpoint.as_deref(),
            Some("https://as.example/a?x=1")
        );
        let text = serde_json::to_string(&entered).unwrap();
        assert_eq!(
            serde_json::from_str::<AuthorizationServer>(&text).unwrap(),
            entered
        );
        assert!(entered.is_same(&entered.clone()));
        let moved = AuthorizationServer::entered(&page, &url("https://evil.example/t"), None);
        assert!(!entered.is_same(&moved));
        let named = AuthorizationServer {
            authorization_endpoint: entered.authorization_endpoint.clone(),
            ..AuthorizationServer::bare("https://as.example", "https://api.example/t")
        };
        assert!(!entered.is_same(&named) && !named.is_same(&entered));
        let grown = AuthorizationServer {
            token_endpoint: "https://as.example/token2".to_owned(),
            ..named.clone()
        };
        assert!(named.is_same(&grown));
        assert!(!serde_json::to_string(&named).unwrap().contains("nameless"));
    }
}
