//! Connecting accounts at upstream servers and APIs: the redirect to their authorization server,
//! and the callback (`docs/authorization-rules.md`, *Platform as OAuth client of upstreams*).
//!
//! An administrator connects the workspace's account from the console. A person connects their own
//! from a page whose link a client showed (MCP-X-86, MCP-EL-11). Both return to one address per
//! source, so that no two authorization servers share one (MCP-AU-9: what `iss` does for servers
//! that send it).

mod callback;
mod document;
pub mod flow;
mod page;

use axum::{Router, routing::get};
use portolan_site::{
    pages::{self, FormTarget},
    state::AuthState,
};

/// Routes of the pages and callbacks.
pub fn router(state: &AuthState) -> Router<AuthState> {
    let router = Router::new()
        .route(
            "/connect/accounts/{link}",
            get(page::show).post(page::submit),
        )
        .route("/connect/callback/{source}", get(callback::take));
    pages::protect(router, &state.site, FormTarget::Client)
        .merge(Router::new().route("/connect/clients/{source}", get(document::show)))
}
