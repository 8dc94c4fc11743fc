//! The subject of a request: a person in a browser, or a token (API-2).

use axum::{RequestPartsExt, extract::FromRequestParts};
use http::request::Parts;
use portolan_model::{api_scope::ApiScope, audit::Actor, id::UserId};
use portolan_site::{
    console_error::ConsoleError,
    presented_token::PresentedToken,
    session::{AnySession, BrowserSession},
    state::AuthState,
};

/// The subject of a request.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A person with a session.
    Browser(BrowserSession),
    /// A token of the management API.
    Token(PresentedToken),
}

impl Caller {
    /// The person; `None` for a workspace token.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::Browser(session) => Some(session.user),
            Self::Token(token) => token.user(),
        }
    }

    /// The actor of audit entries.
    pub fn actor(&self) -> Actor {
        match self {
            Self::Browser(session) => Actor::User(session.user),
            Self::Token(token) => token.actor(),
        }
    }

    /// The session. 403 for tokens (API-6).
    pub fn browser(&self) -> Result<&BrowserSession, ConsoleError> {
        match self {
            Self::Browser(session) => Ok(session),
            Self::Token(_) => Err(ConsoleError::browser_only()),
        }
    }

    /// Returns true for a session, and for a token with this scope.
    pub fn has(&self, wanted: ApiScope) -> bool {
        match self {
            Self::Browser(_) => true,
            Self::Token(token) => token.has(wanted),
        }
    }
}

impl FromRequestParts<AuthState> for Caller {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AuthState,
    ) -> Result<Self, ConsoleError> {
        if let Some(token) = parts.extensions.get::<PresentedToken>() {
            return Ok(Self::Token(token.clone()));
        }
        let AnySession(session) = parts.extract_with_state(state).await?;
        Ok(Self::Browser(session))
    }
}
