//! The authorization service: sign-in pages, OAuth, and the console's JSON API.
//!
//! | Module | Subject |
//! |---|---|
//! | [`console`] | the JSON API of the console, its OpenAPI document, connection diagnostics |
//! | [`accounts`] | sign-up, sign-in, second factors, account pages, delivery of mail |
//! | [`oauth`] | the OAuth endpoints |
//! | `upstream_sync` | discovery and sign-in of upstream servers, and their background refresh |
//! | [`site`] | what all of them share: state, sessions, pages, errors, throttles |
//!
//! Imports point down this table. `oauth` and `accounts` do not know each other.

pub mod accounts;
#[expect(
    unused_qualifications,
    reason = "the macros of utoipa write full paths"
)]
pub mod console;
pub mod oauth;
pub mod site;
mod upstream_sync;

use axum::Router;

pub use accounts::domains::look_again;
pub use console::openapi;
pub use site::{
    config::{AskInUse, AuthConfig, Calls, ConsoleLimits, CountCall, DemoApi, InUse, Site},
    oauth_parts::{OAuthConfig, OAuthParts},
    state::{AuthParts, AuthState},
};
pub use upstream_sync::sync::keep_in_sync;

use crate::{
    accounts::{account, invitations, login, mail::mailbox},
    site::pages,
    upstream_sync::connect,
};

/// Every route of the service.
pub fn router(state: &AuthState) -> Router {
    Router::new()
        .merge(login::router(state))
        .merge(account::router(state))
        .merge(invitations::router(state))
        .merge(connect::router(state))
        .merge(oauth::router::router(state))
        .merge(mailbox::router(state))
        .merge(pages::router(state))
        .merge(console::router(state))
        .with_state(state.clone())
}
