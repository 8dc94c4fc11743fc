//! Error responses of the OAuth endpoints (RFC 6749 §5.2; AUTH-E11, AUTH-T9, AUTH-T10). This is the
//! only place with their status codes. Faults of pages are in [`portolan_site::pages`].

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use portolan_keys::KeysError;
use portolan_net::layers::EntranceFault;
use portolan_site::error_chain::chain;
use portolan_storage::StorageError;
use serde::Serialize;

/// Error codes of RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2, RFC 8707 §2 and OpenID Connect
/// Core §3.1.2.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// Malformed request.
    InvalidRequest,
    /// The client is unknown or did not authenticate. Clients then drop their registration.
    InvalidClient,
    /// Code or refresh token is invalid. Clients then drop their tokens.
    InvalidGrant,
    /// The client did not register for this grant type.
    UnauthorizedClient,
    /// Grant type is not supported.
    UnsupportedGrantType,
    /// `response_type` other than `code`.
    UnsupportedResponseType,
    /// Scope was not granted.
    InvalidScope,
    /// Resource is unknown or was not granted.
    InvalidTarget,
    /// The person refused.
    AccessDenied,
    /// `prompt=none`, and there is no session.
    LoginRequired,
    /// `prompt=none`, and the person has to decide.
    ConsentRequired,
    /// `request` is not supported.
    RequestNotSupported,
    /// `request_uri` is not supported.
    RequestUriNotSupported,
    /// Registration: a redirect URI is not acceptable.
    InvalidRedirectUri,
    /// Registration: another member is not acceptable.
    InvalidClientMetadata,
    /// The client should retry later.
    TemporarilyUnavailable,
    /// This service failed.
    ServerError,
}

impl ErrorCode {
    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::LoginRequired => "login_required",
            Self::ConsentRequired => "consent_required",
            Self::RequestNotSupported => "request_not_supported",
            Self::RequestUriNotSupported => "request_uri_not_supported",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
        }
    }
}

/// A refusal of a JSON endpoint.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// The request cannot be granted: 400, or 401 for `invalid_client`.
    #[error("{}: {description}", code.as_str())]
    Refused {
        /// The error code.
        code: ErrorCode,
        /// Text for the developer of the client: ASCII, without quote and backslash.
        description: &'static str,
    },
    /// 401 with a `Basic` challenge, because the request used Basic (AUTH-T10).
    #[error("invalid_client: {description}")]
    BasicRefused {
        /// Text for the developer of the client.
        description: &'static str,
    },
    /// The body is larger than the endpoint reads: 413.
    #[error("body is too large")]
    TooLarge,
    /// The body came too slowly: 408.
    #[error("body is too slow")]
    TooSlow,
    /// Too many requests: 429 with `Retry-After`. Never 401, which makes clients drop valid tokens.
    #[error("too many requests")]
    TooMany {
        /// Seconds to wait.
        retry_after: i64,
    },
    /// Another server that is needed cannot be reached now: 503. Never 401, which makes clients
    /// drop their registration (AUTH-T10).
    #[error("the keys of the client cannot be fetched")]
    Away {
        /// Seconds to wait.
        retry_after: i64,
    },
    /// Storage failed: 503. Never `invalid_grant` (AUTH-T7).
    #[error("storage failed")]
    Storage(#[source] StorageError),
    /// Signing or sealing failed: 503.
    #[error("key material failed")]
    Keys(#[from] KeysError),
}

impl OAuthError {
    /// A refusal.
    pub const fn refused(code: ErrorCode, description: &'static str) -> Self {
        Self::Refused { code, description }
    }

    /// `invalid_request`.
    pub const fn invalid_request(description: &'static str) -> Self {
        Self::refused(ErrorCode::InvalidRequest, description)
    }

    /// `invalid_client`.
    pub const fn invalid_client(description: &'static str) -> Self {
        Self::refused(ErrorCode::InvalidClient, description)
    }

    /// `invalid_grant`.
    pub const fn invalid_grant(description: &'static str) -> Self {
        Self::refused(ErrorCode::InvalidGrant, description)
    }

    /// The code on the wire, as a label of metrics.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Refused { code, .. } => code.as_str(),
            Self::BasicRefused { .. } => "invalid_client",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::TooMany { .. } => "too_many",
            Self::Away { .. } => "away",
            Self::Storage(_) | Self::Keys(_) => "unavailable",
        }
    }
}

impl From<StorageError> for OAuthError {
    fn from(error: StorageError) -> Self {
        if error.is_unwritable_text() {
            EntranceFault::Characters.into()
        } else {
            Self::Storage(error)
        }
    }
}

impl From<EntranceFault> for OAuthError {
    fn from(fault: EntranceFault) -> Self {
        match fault {
            EntranceFault::Slow => Self::TooSlow,
            EntranceFault::Characters => {
                Self::invalid_request("the request holds control characters")
            }
        }
    }
}

#[derive(Serialize)]
struct OAuthErrorBody {
    error: &'static str,
    error_description: &'static str,
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let (status, code, description, retry_after) = match &self {
            Self::Refused {
                code: ErrorCode::InvalidClient,
                description,
            }
            | Self::BasicRefused { description } => (
                StatusCode::UNAUTHORIZED,
                ErrorCode::InvalidClient,
                *description,
                None,
            ),
            Self::Refused { code, description } => {
                (StatusCode::BAD_REQUEST, *code, *description, None)
            }
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                ErrorCode::InvalidRequest,
                "the body is too large",
                None,
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                ErrorCode::InvalidRequest,
                "the body did not arrive in time",
                None,
            ),
            Self::TooMany { retry_after } => (
                StatusCode::TOO_MANY_REQUESTS,
                ErrorCode::TemporarilyUnavailable,
                "too many requests, wait",
                Some(*retry_after),
            ),
            Self::Away { retry_after } => (
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::TemporarilyUnavailable,
                "the keys of this client cannot be fetched now, try again in a moment",
                Some(*retry_after),
            ),
            Self::Storage(_) | Self::Keys(_) => {
                tracing::error!(error = %chain(&self), "an OAuth endpoint failed");
                let description = "the fault is ours, try again in a moment";
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    ErrorCode::TemporarilyUnavailable,
                    description,
                    Some(2),
                )
            }
        };
        let mut response = (
            status,
            Json(OAuthErrorBody {
                error: code.as_str(),
                error_description: description,
            }),
        )
            .into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(self, Self::BasicRefused { .. }) {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"oauth\""),
            );
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}
