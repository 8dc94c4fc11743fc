//! Sign-in with accounts of other services (AUTH-1.11, AUTH-F1 to AUTH-F8).
//!
//! ```text
//! a link of ours ─► login_attempt::begin (state, PKCE, nonce: a row of this browser) ─► the provider
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

mod account_resolution;
mod github;
mod login_attempt;
mod offer;
mod openid;
mod providers;
mod sso_discovery;
mod tenant;

use axum::{Router, http::StatusCode, routing::get};

pub use self::{
    github::Github,
    openid::OpenId,
    providers::{
        LoginProvider, ProviderClient, ProviderKind, SignInWith, SubjectOf, is_provider_name,
    },
};
pub(crate) use self::{
    login_attempt::{Bound, begin, redirect_uri},
    providers::look_at,
    tenant::provider as tenant_provider,
};
use super::{Target, form_token};
use crate::{browser::Browser, state::AuthState};

/// Routes that redirect to providers, and their callbacks.
pub(super) fn router() -> Router<AuthState> {
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

/// A link to a provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderLink {
    /// Its name.
    pub(crate) name: String,
    /// Its path.
    pub(crate) path: String,
}

/// The "Continue with …" links, one for each provider of the platform.
pub(super) fn links(state: &AuthState, browser: &Browser, target: &Target) -> Vec<ProviderLink> {
    let token = form_token(&state.keys, browser);
    let path = |slug: &str| link(&format!("/login/with/{slug}"), target, &token);
    state
        .config
        .sign_in_with
        .list()
        .iter()
        .map(|provider| ProviderLink {
            name: provider.name.clone(),
            path: path(&provider.slug),
        })
        .collect()
}

/// A link with a form token, whose letters need no escape.
pub(crate) fn link(path: &str, target: &Target, token: &str) -> String {
    let with_target = target.on(path);
    let joint = if with_target.contains('?') { '&' } else { '?' };
    format!("{with_target}{joint}t={token}")
}
