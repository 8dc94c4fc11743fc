//! OAuth clients as the authorization service knows them (`auth.md` §1.4).

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
}

impl ClientKind {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Cimd => "cimd",
            Self::Static => "static",
        }
    }
}

/// How a client proves itself at the token endpoint. One method per client, enforced (T14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    /// A public client: PKCE is its only proof.
    None,
    /// A secret in the `Authorization` header.
    ClientSecretBasic,
    /// A secret in the form.
    ClientSecretPost,
}

impl AuthMethod {
    /// The word of RFC 7591, also in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
        }
    }

    /// Reads the word; `None` for one that is not served.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost]
            .into_iter()
            .find(|method| method.as_str() == text)
    }
}
