//! Why a request of the client has no answer of the server.

use portolan_net::egress::EgressError;
use portolan_protocol::{error::RpcError, jsonrpc::Raw};
use serde_json::json;

/// An error of the way to the server. The codes are those of `docs/design/translation.md`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BridgeFault {
    /// No connection, or none that holds until the head of an answer.
    #[error("The server could not be reached: {0}.")]
    Unreachable(String),
    /// A status without a message of the protocol.
    #[error("The server answered with HTTP status {0}.")]
    Status(u16),
    /// HTTP 429.
    #[error("The server receives too many requests. Try again later.")]
    Limited,
    /// An answer against the protocol.
    #[error("The server answered in an invalid way: {0}.")]
    Invalid(&'static str),
    /// The stream broke before the answer.
    #[error(
        "The connection to the server broke before the answer. \
         The request may have been carried out."
    )]
    Lost,
    /// The session is over, and no new one could be opened.
    #[error("The session at the server is over, and no new one could be opened: {0}")]
    SessionGone(String),
    /// The server refused the key or the header.
    #[error("The server refused the credential (HTTP status {0}).")]
    Refused(u16),
    /// A person has to sign in, and did not.
    #[error("Sign-in is needed: {0}.")]
    NotSignedIn(String),
}

impl BridgeFault {
    /// The code of the JSON-RPC error.
    pub const fn code(&self) -> i32 {
        match self {
            Self::Unreachable(_) | Self::Status(_) => -31000,
            Self::Limited => -31002,
            Self::Lost | Self::SessionGone(_) => -31004,
            Self::Invalid(_) => -31005,
            Self::Refused(_) | Self::NotSignedIn(_) => -31007,
        }
    }

    /// A bounded word for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Status(_) => "status",
            Self::Limited => "limited",
            Self::Invalid(_) => "invalid",
            Self::Lost => "lost",
            Self::SessionGone(_) => "session_gone",
            Self::Refused(_) => "refused",
            Self::NotSignedIn(_) => "not_signed_in",
        }
    }

    /// True if only a person can help.
    pub const fn is_about_sign_in(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::NotSignedIn(_))
    }

    /// The error as the client receives it.
    pub fn to_rpc(&self) -> RpcError {
        let data = json!({ "source": "portolan connect", "kind": self.kind() });
        RpcError {
            code: self.code(),
            message: self.to_string(),
            data: Raw::of(&data).ok(),
        }
    }
}

impl From<EgressError> for BridgeFault {
    fn from(error: EgressError) -> Self {
        Self::Unreachable(error.to_string())
    }
}
