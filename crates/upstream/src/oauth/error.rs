//! Failures of an authorization server, and its error codes.

use http::StatusCode;
use portolan_net::egress::EgressError;

/// Why an account cannot be connected. The texts may be shown to the tenant: they name no secret
/// and no byte of an answer but error codes of RFC 6749 and issuers.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    /// No connection, or not an address that is called.
    #[error("the authorization server could not be reached: {0}")]
    Egress(#[from] EgressError),
    /// A status that is no answer.
    #[error("the authorization server answered {what} with HTTP status {}", .status.as_u16())]
    Status {
        /// Name of the requested document or token.
        what: &'static str,
        /// How it answered.
        status: StatusCode,
    },
    /// An answer that does not read, or lacks what it must have.
    #[error("the authorization server's {0} cannot be used")]
    Unusable(&'static str),
    /// No metadata where it may be.
    #[error("no authorization server is named, or its metadata is not where it should be")]
    NotFound,
    /// MCP-AU-2: the document speaks for another resource.
    #[error("the server's metadata is that of another resource")]
    OtherResource,
    /// MCP-AU-4: the metadata speaks for another issuer.
    #[error("the authorization server's metadata names another issuer")]
    OtherIssuer,
    /// MCP-AU-5.
    #[error("the authorization server does not offer PKCE with S256")]
    NoPkce,
    /// MCP-AU-15: an address that no browser is sent to and nothing is fetched from.
    #[error("the authorization server names an address that is not https")]
    UnsafeAddress,
    /// MCP-AC-1: neither metadata documents nor registration; a client must be entered.
    #[error(
        "the authorization server registers no clients by itself: enter a client id that it gave you"
    )]
    NoRegistration,
    /// The answer to the authorization request is not one of this issuer (MCP-AU-9).
    #[error("the answer came from another authorization server than the one that was asked")]
    MixedUp,
    /// The person, or the server, denied access. The code is one of RFC 6749 §4.1.2.1.
    #[error("the authorization server said no ({0})")]
    Denied(String),
    /// The token endpoint refused the request.
    #[error("the token endpoint said no ({code})")]
    Refused {
        /// `error` of RFC 6749 §5.2.
        code: String,
    },
    /// No chance, no signature.
    #[error("this process cannot make keys")]
    Keys(#[from] portolan_keys::KeysError),
}

impl OauthError {
    /// True if the grant is over: only a person's new consent restores it.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code } if code == "invalid_grant")
    }

    /// The registration is not known any more: the client registers anew.
    pub fn is_unknown_client(&self) -> bool {
        matches!(self, Self::Refused { code } if code == "invalid_client" || code == "unauthorized_client")
    }

    /// A bounded word for metrics and logs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Egress(error) => error.kind(),
            Self::Status { .. } => "status",
            Self::Unusable(_) => "unusable",
            Self::NotFound => "not_found",
            Self::OtherResource => "other_resource",
            Self::OtherIssuer => "other_issuer",
            Self::NoPkce => "no_pkce",
            Self::UnsafeAddress => "unsafe_address",
            Self::NoRegistration => "no_registration",
            Self::MixedUp => "mixed_up",
            Self::Denied(_) => "denied",
            Self::Refused { .. } => "refused",
            Self::Keys(_) => "keys",
        }
    }
}

/// An error code as it may be shown and logged: RFC 6749 names the characters, anything else is not
/// repeated.
pub(crate) fn shown_code(code: &str) -> String {
    let fits = !code.is_empty()
        && code.len() <= 60
        && code
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits {
        code.to_owned()
    } else {
        "an unknown error".to_owned()
    }
}
