//! Identifies a browser, signed in or not: the cookie `__Host-bid` (AUTH-A11).
//!
//! The cookie carries no authority (AUTH-S3). Sign-up, sign-in and authorization requests are bound
//! to it, so that a link to another person's unfinished request opens nothing (CASE-30).

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    response::{IntoResponseParts, ResponseParts},
};
use axum_extra::extract::CookieJar;
use http::{HeaderValue, header, request::Parts};
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::Digest;

use crate::{pages::fault::PageError, state::AuthState};

/// Name of the cookie without prefix.
const COOKIE: &str = "bid";

/// One year. The cookie only distinguishes browsers.
const MAX_AGE_SECONDS: i64 = 365 * 86_400;

/// The browser of the request. The extractor makes a new one if there is none. Return it with the
/// response, `(browser, page)`, so that the browser receives the cookie.
#[derive(Debug, Clone)]
pub struct Browser {
    digest: Digest,
    set_cookie: Option<HeaderValue>,
}

impl Browser {
    /// The stored form of its id.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns true if the request came without the cookie.
    pub fn is_new(&self) -> bool {
        self.set_cookie.is_some()
    }
}

impl FromRequestParts<AuthState> for Browser {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &AuthState) -> Result<Self, PageError> {
        let jar = CookieJar::from_headers(&parts.headers);
        let known = jar
            .get(&state.site.cookie_name(COOKIE))
            .and_then(|cookie| SecretToken::parse(TokenForm::Browser, cookie.value()));
        if let Some(token) = known {
            return Ok(Self {
                digest: token.digest(),
                set_cookie: None,
            });
        }
        let token = SecretToken::generate(TokenForm::Browser)?;
        let cookie = state
            .site
            .set_cookie(COOKIE, token.expose(), Some(MAX_AGE_SECONDS));
        let mut value = HeaderValue::try_from(cookie).map_err(|_| PageError::Internal("cookie"))?;
        value.set_sensitive(true);
        Ok(Self {
            digest: token.digest(),
            set_cookie: Some(value),
        })
    }
}

impl IntoResponseParts for Browser {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Some(cookie) = self.set_cookie {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(response)
    }
}
