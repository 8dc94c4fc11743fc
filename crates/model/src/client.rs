//! OAuth clients as the authorization service knows them (AUTH-1.4).

use serde::{Deserialize, Serialize};

/// How a client came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    /// Registered itself (RFC 7591).
    Dynamic,
    /// Its `client_id` is the URL of its metadata document (CIMD).
    Cimd,
    /// Registered by a tenant's admin or by the operator.
    Static,
    /// A service account of a tenant (AUTH-T12).
    Service,
}

impl ClientKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Dynamic, Self::Cimd, Self::Static, Self::Service];

    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Cimd => "cimd",
            Self::Static => "static",
            Self::Service => "service",
        }
    }
}

/// How a client proves itself at the token endpoint. One method per client, enforced (AUTH-T14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    /// A public client: PKCE is its only proof.
    None,
    /// A secret in the `Authorization` header.
    ClientSecretBasic,
    /// A secret in the form.
    ClientSecretPost,
    /// A JWT signed with a key that only the client has (RFC 7523; AUTH-C13).
    PrivateKeyJwt,
}

impl AuthMethod {
    /// The word of RFC 7591, also in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// True for the methods whose proof is a secret that we made.
    pub const fn has_secret(self) -> bool {
        matches!(self, Self::ClientSecretBasic | Self::ClientSecretPost)
    }

    /// Reads the word; `None` for one that is not served.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::None,
            Self::ClientSecretBasic,
            Self::ClientSecretPost,
            Self::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|method| method.as_str() == text)
    }
}
