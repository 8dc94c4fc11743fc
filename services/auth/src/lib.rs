//! The authorization service: sign-in pages, OAuth, and the console's JSON API.
//!
//! | Module | Subject |
//! |---|---|
//! | [`login`] | sign-up, verification, sign-in, sign-out: pages that work without script |
//! | `account` | a person's own pages: password, address, browsers, apps |
//! | [`console`] | the JSON API of the console, and its OpenAPI document |
//! | `connect` | accounts at upstream MCP servers: the sign-in at their authorization server and
//! the callback |
//! | `returned` | parameters with which another authorization server redirects a browser back |
//! | [`session`] | the signed-in person: extractors over the `sid` cookie |
//! | [`browser`] | the identity of a browser, signed in or not: the `bid` cookie |
//! | [`forms`] | tokens in forms against cross-site requests |
//! | [`pages`] | server-rendered HTML |
//! | [`mail`] | messages: their texts, the outbox, SMTP |
//! | [`oauth`] | the OAuth endpoints: routes, settings, background work |
//! | [`jwks`] | published keys and their rotation |
//! | `admission` | the clients that a workspace admits |
//! | [`connection_diagnostics`] | recorded steps of connecting clients |
//! | [`error`] | error responses of the OAuth endpoints |
//! | [`state`], [`config`] | state of the handlers, settings |

mod access_policy;
mod account;
mod admission;
mod answer;
mod authorize;
pub mod browser;
mod clients;
pub mod config;
mod connect;
pub mod connection_diagnostics;
mod consent;
#[expect(
    unused_qualifications,
    reason = "the macros of utoipa write full paths"
)]
pub mod console;
mod discovery;
pub mod error;
mod factor;
pub mod forms;
mod introspect;
mod invitations;
pub mod jwks;
pub mod login;
pub mod mail;
pub mod oauth;
pub mod pages;
mod parameters;
mod passkeys;
mod rate;
mod readers;
pub mod request_context;
mod returned;
mod revoke;
mod second_factor;
pub mod session;
mod sso;
pub mod state;
mod token;
mod turns;
mod upstreams;

use axum::Router;

pub use config::{AskInUse, AuthConfig, Calls, ConsoleLimits, CountCall, DemoApi, InUse, Site};
pub use console::openapi;
pub use oauth::{OAuthConfig, OAuthParts};
pub use sso::look_again;
pub use state::{AuthParts, AuthState};
pub use upstreams::keep_in_sync;

/// Every route of the service.
pub fn router(state: &AuthState) -> Router {
    Router::new()
        .merge(login::router(state))
        .merge(account::router(state))
        .merge(invitations::router(state))
        .merge(connect::router(state))
        .merge(oauth::router(state))
        .merge(mail::router(state))
        .merge(pages::router(state))
        .merge(console::router(state))
        .with_state(state.clone())
}
