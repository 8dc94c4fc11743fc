//! Why an upstream server gave no answer (MCP-X-80…MCP-X-89).

use std::time::Duration;

use http::StatusCode;
use portolan_net::egress::EgressError;
use portolan_protocol::error::RpcError;

/// Why an upstream server gave no answer that can be used. The texts may be shown to the tenant:
/// they name no secret, no address behind a name and no byte of a body.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection, no TLS, or not an address that is called (MCP-X-84).
    #[error("{0}")]
    Egress(#[from] EgressError),
    /// Status of a server that is unavailable (MCP-X-84), or that has no meaning in MCP.
    #[error("the server answered with HTTP status {}", .0.as_u16())]
    Status(StatusCode),
    /// 429, also after one wait (MCP-X-85).
    #[error("the server takes no more requests for now (HTTP status 429)")]
    Limited {
        /// Time until a retry, if the server names one.
        retry_after: Option<Duration>,
    },
    /// 401 (MCP-X-86).
    #[error("the server wants a credential (HTTP status 401)")]
    Unauthorized {
        /// `WWW-Authenticate`, for the discovery of its authorization server.
        challenge: Option<String>,
    },
    /// 403 (MCP-X-87).
    #[error("the server does not accept the credential for this (HTTP status 403)")]
    Forbidden {
        /// `WWW-Authenticate`, which may name missing scopes.
        challenge: Option<String>,
    },
    /// The session is not known any more; the request was not processed (MCP-X-7).
    #[error("the server has forgotten the session")]
    SessionGone,
    /// No answer within its time.
    #[error("the server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// A stream ended before its answer, and could not be resumed (MCP-X-7E).
    #[error("the connection broke before the answer was there")]
    Interrupted,
    /// It is no MCP, or not as the revision has it (MCP-V-8, -31005).
    #[error("the server answered in an invalid way: {0}")]
    Violation(String),
    /// An answer, event or list beyond its bound.
    #[error("the server answered with more than {0}")]
    TooMuch(String),
    /// The server supports only versions that this crate does not support (MCP-X-5).
    #[error("the server speaks no protocol version that is known here ({0})")]
    Version(String),
    /// An error of the protocol where an answer was needed: to a handshake or a list.
    #[error("the server refused: {} ({})", .0.message, .0.code)]
    Refused(RpcError),
}

impl UpstreamError {
    /// The HTTP status with which the server refused the credential, if that is why.
    pub fn refusal(&self) -> Option<u16> {
        match self {
            Self::Unauthorized { .. } => Some(StatusCode::UNAUTHORIZED.as_u16()),
            Self::Forbidden { .. } => Some(StatusCode::FORBIDDEN.as_u16()),
            _ => None,
        }
    }

    pub(crate) fn violation(what: impl Into<String>) -> Self {
        Self::Violation(what.into())
    }

    /// True for what waiting may cure.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Egress(error) => !error.is_refusal(),
            Self::Status(status) => status.is_server_error(),
            Self::Limited { .. } | Self::Timeout(_) | Self::Interrupted => true,
            _ => false,
        }
    }

    /// True for an answer to `initialize` from which it follows that the server holds no sessions
    /// of ours. It refused the request, chose a version without sessions, or answered something
    /// else (MCP-X-3, MCP-X-5). False for an error that does not show the era (MCP-X-4).
    pub fn is_no_handshake(&self) -> bool {
        match self {
            Self::Status(status) => status.is_client_error(),
            Self::Refused(_) | Self::Version(_) | Self::Violation(_) => true,
            _ => false,
        }
    }

    /// True if it is unknown whether the request was carried out.
    pub fn is_unclear(&self) -> bool {
        match self {
            Self::Egress(error) => matches!(
                error,
                EgressError::Timeout { .. }
                    | EgressError::Protocol { .. }
                    | EgressError::TooLarge { .. }
            ),
            Self::Timeout(_) | Self::Interrupted | Self::Violation(_) | Self::TooMuch(_) => true,
            Self::Status(status) => status.is_server_error(),
            _ => false,
        }
    }

    /// A bounded word for metrics, logs and pages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Egress(error) => error.kind(),
            Self::Status(_) => "status",
            Self::Limited { .. } => "limited",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Forbidden { .. } => "forbidden",
            Self::SessionGone => "session_gone",
            Self::Timeout(_) => "timeout",
            Self::Interrupted => "interrupted",
            Self::Violation(_) => "violation",
            Self::TooMuch(_) => "too_much",
            Self::Version(_) => "version",
            Self::Refused(_) => "refused",
        }
    }
}
