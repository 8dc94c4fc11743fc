//! Faults of server-rendered pages. Each states the remedy, and none reveals whether an address or
//! a tenant exists (AUTH-E11).

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use portolan_keys::{KeysError, password::PasswordError};
use portolan_net::layers::{Arrival, EntranceFault};
use portolan_storage::StorageError;

use crate::{pages::fault_page, throttle::TooEarly};

/// Why a page could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The form's token belongs to another browser, session or request (AUTH-S5, CASE-27).
    #[error("form token does not fit")]
    ForeignForm,
    /// The request to continue is unknown, expired, or of another browser, with one answer for all
    /// (AUTH-A11, CASE-30).
    #[error("no such request in this browser")]
    StartAgain,
    /// The form cannot be read.
    #[error("form cannot be read")]
    Form(#[from] axum::extract::rejection::FormRejection),
    /// The input is no text, or did not arrive in time.
    #[error("refused at the entrance: {0:?}")]
    Entrance(EntranceFault),
    /// There were too many attempts.
    #[error("too many tries")]
    Throttled {
        /// Seconds until the next attempt.
        retry_after: i64,
    },
    /// Too many passwords are being checked (AUTH-L2).
    #[error("password hashing")]
    Password(#[from] PasswordError),
    /// The database failed.
    #[error("storage")]
    Storage(#[from] StorageError),
    /// Key material or randomness failed.
    #[error("keys")]
    Keys(#[from] KeysError),
    /// A template failed.
    #[error("template")]
    Template(#[from] askama::Error),
    /// Another page has to come first: sign-in, or a confirmation of the person's identity.
    #[error("to be seen elsewhere")]
    Elsewhere(String),
    /// A bug, which only the log names.
    #[error("internal: {0}")]
    Internal(&'static str),
}

impl From<TooEarly> for PageError {
    fn from(early: TooEarly) -> Self {
        Self::Throttled {
            retry_after: early.seconds(),
        }
    }
}

/// The page for input that is no text.
const CHARACTERS: (StatusCode, &str, &str, Option<i64>) = (
    StatusCode::BAD_REQUEST,
    "This cannot be read",
    "The address or the form holds control characters. Go back, remove them, and send it again.",
    None,
);

/// The contents of the page.
#[derive(Debug, Clone, Copy)]
struct FaultText {
    status: StatusCode,
    title: &'static str,
    text: &'static str,
    retry_after: Option<i64>,
}

impl PageError {
    fn shown(&self) -> FaultText {
        let (status, title, text, retry_after) = match self {
            Self::ForeignForm => (
                StatusCode::FORBIDDEN,
                "This form has expired",
                "It was opened in another browser, or before you signed in. Go back, reload the page and submit it again. Cookies must be allowed.",
                None,
            ),
            Self::StartAgain => (
                StatusCode::BAD_REQUEST,
                "Start again in your app",
                "This sign-in was started in another browser, or too long ago. Go back to the app that sent you here and connect again.",
                None,
            ),
            Self::Form(_) => (
                StatusCode::BAD_REQUEST,
                "The form could not be read",
                "Go back, reload the page and submit it again.",
                None,
            ),
            Self::Entrance(fault @ EntranceFault::Slow) => (
                fault.status(),
                "That took too long",
                "What you sent did not arrive in time. Go back and send it again.",
                None,
            ),
            Self::Entrance(EntranceFault::Characters) => CHARACTERS,
            Self::Storage(error) if error.is_unwritable_text() => CHARACTERS,
            Self::Throttled { retry_after } => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many attempts",
                "Wait a little, then try again. Your account is not locked, and nothing was changed.",
                Some(*retry_after),
            ),
            Self::Password(PasswordError::Busy) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Portolan is busy",
                "Many people are signing in right now. Try again in a few seconds.",
                Some(3),
            ),
            Self::Storage(error) if error.is_unavailable() => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Temporarily unavailable",
                "A part of the service is not responding. Nothing was changed. Try again in a moment.",
                Some(5),
            ),
            Self::Password(_)
            | Self::Storage(_)
            | Self::Keys(_)
            | Self::Template(_)
            | Self::Elsewhere(_)
            | Self::Internal(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong",
                "This is a problem on our side. Try again. If it happens again, contact support with the request number below.",
                None,
            ),
        };
        FaultText {
            status,
            title,
            text,
            retry_after,
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        if let Self::Elsewhere(path) = &self {
            return crate::pages::see_other(path).unwrap_or_else(Self::into_response);
        }
        let shown = self.shown();
        if shown.status.is_server_error() {
            tracing::error!(
                error = &self as &dyn std::error::Error,
                "a page could not be shown"
            );
        }
        // `show_faults` renders the page, because it has the request's id.
        let mut response = shown.status.into_response();
        response.extensions_mut().insert(shown);
        response
    }
}

/// Middleware of page routers: turns a [`PageError`] into a page with the request's id, which the
/// log has too (AUTH-X2).
pub async fn show_faults(request: Request, next: Next) -> Response {
    let request_id = request
        .extensions()
        .get::<Arrival>()
        .map(|arrival| arrival.request_id().to_owned());
    let response = next.run(request).await;
    let Some(shown) = response.extensions().get::<FaultText>().copied() else {
        return response;
    };
    let mut page = fault_page(shown.status, shown.title, shown.text, request_id.as_deref());
    if let Some(value) = shown
        .retry_after
        .and_then(|seconds| HeaderValue::try_from(seconds.to_string()).ok())
    {
        page.headers_mut().insert(header::RETRY_AFTER, value);
    }
    page
}
