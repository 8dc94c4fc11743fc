//! Sign-in with accounts of other services (AUTH-1.11, AUTH-F1 to AUTH-F8).
//!
//! ```text
//! a link ─► login_attempt::begin (state, PKCE, nonce: a row of this browser) ─► the provider
//!     ─► login_attempt::take (once) ─► openid | github: the proved identity
//!     ─► account_resolution: sign in, offer to connect, or a new account
//! ```
//!
//! - An identity is known by provider, issuer and subject, never by an address (AUTH-F3). A known
//!   address alone opens nothing: its owner signs in to that account first, and connects then
//!   (AUTH-F4, CASE-159).
//! - Each provider has a callback of its own, so that none can answer for another (AUTH-F1,
//!   CASE-158).
//! - Tokens of providers are used in the request that received them, and then dropped (AUTH-F8).
//!
//! A sign-in at a provider begins with a link and not with a form. Browsers apply `form-action` to
//! all redirects behind a form (AUTH-N7), and these pages keep theirs strict. The link carries the
//! browser's form token, so that no other site can start the redirect.

pub(crate) mod account_resolution;
pub(crate) mod links;
pub mod login_attempt;
pub(crate) mod offer;
pub(crate) mod sso_discovery;
pub mod tenant;

use axum::{Router, http::StatusCode, routing::get};
use portolan_site::state::AuthState;

/// Routes that redirect to providers, and their callbacks.
pub(crate) fn router() -> Router<AuthState> {
    // A scanner's HEAD request must not use a link up.
    let not_allowed = || async { StatusCode::METHOD_NOT_ALLOWED };
    Router::new()
        .route(
            "/login/with/{provider}",
            get(login_attempt::start).head(not_allowed),
        )
        .route(
            "/login/callback/{provider}",
            get(login_attempt::take).head(not_allowed),
        )
        .route("/login/company", get(sso_discovery::show))
        .route(
            "/login/company/{workspace}",
            get(sso_discovery::show_workspace),
        )
        .route(
            "/login/connect/{offer}",
            get(offer::show).post(offer::connect),
        )
        .route(
            "/login/address/{offer}",
            get(offer::show_address).post(offer::take_address),
        )
}
