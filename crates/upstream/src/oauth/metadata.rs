//! What servers publish of themselves: RFC 9728 for resources, RFC 8414 and OpenID discovery for authorization servers.

use serde::{Deserialize, Serialize};

/// RFC 9728, as far as it is used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProtectedResource {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414, as far as it is used. Kept with what is connected, so that a token is renewed where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// Compared byte for byte (AU-9).
    pub issuer: String,
    /// Where browsers go. A server for client credentials alone may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens come from.
    pub token_endpoint: String,
    /// Where clients register themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back (RFC 7009).
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
    /// Where its public keys are, if it signs what it says of people (OpenID Connect).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Where it tells more of people (OpenID Connect).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userinfo_endpoint: Option<String>,
    /// What it signs ID tokens with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token_signing_alg_values_supported: Option<Vec<String>>,
}
