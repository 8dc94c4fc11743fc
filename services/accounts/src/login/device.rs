//! The cookie `__Host-dev`, which marks a browser in which an account has signed in before
//! (AUTH-L6).
//!
//! The cookie authorizes nothing. It gives sign-in attempts from that browser their own budget, so
//! that a stranger's attempts do not keep the owner out.

use axum_extra::extract::CookieJar;
use http::{HeaderMap, HeaderValue};
use portolan_keys::{Purpose, random};
use portolan_site::{pages::fault::PageError, state::AuthState, throttle::AccountKey};

/// Name of the cookie without prefix.
const COOKIE: &str = "dev";

/// Half a year.
const MAX_AGE_SECONDS: i64 = 182 * 86_400;

/// The device's name, if the request's cookie was made for this account.
pub(crate) fn known(
    state: &AuthState,
    headers: &HeaderMap,
    account: &AccountKey,
) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    let cookie = jar.get(&state.site.cookie_name(COOKIE))?;
    let name = state
        .keys
        .read_stamp(Purpose::Throttle, account.as_bytes(), cookie.value())?;
    String::from_utf8(name).ok()
}

/// Returns true if the request has the cookie of any account. It does not identify the account.
pub(crate) fn was_here(state: &AuthState, headers: &HeaderMap) -> bool {
    let jar = CookieJar::from_headers(headers);
    jar.get(&state.site.cookie_name(COOKIE)).is_some()
}

/// The cookie after a sign-in: the one that was sent, or a new one.
pub(crate) fn mark(
    state: &AuthState,
    account: &AccountKey,
    known: Option<String>,
) -> Result<HeaderValue, PageError> {
    let name = match known {
        Some(name) => name,
        None => random::digits(20)?,
    };
    let value = state
        .keys
        .stamp(Purpose::Throttle, account.as_bytes(), name.as_bytes());
    let cookie = state.site.set_cookie(COOKIE, &value, Some(MAX_AGE_SECONDS));
    let mut value = HeaderValue::try_from(cookie).map_err(|_| PageError::Internal("cookie"))?;
    value.set_sensitive(true);
    Ok(value)
}
