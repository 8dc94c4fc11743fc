//! The authorization service as one router: OAuth, accounts, the console's API, and the sign-in at
//! upstream servers. The binary serves it; the tests of all four parts stand here.

use axum::Router;
use portolan_site::state::AuthState;

/// Every route of the service.
pub fn router(state: &AuthState) -> Router {
    Router::new()
        .merge(portolan_accounts::router(state))
        .merge(portolan_upstream_sync::connect::router(state))
        .merge(portolan_oauth::router(state))
        .merge(portolan_site::pages::router(state))
        .merge(portolan_console::router(state))
        .merge(portolan_webhooks::catalogue::router(state))
        .merge(portolan_console::configuration::schema_router(state))
        .merge(portolan_console::command_tokens::router(state))
        .with_state(state.clone())
}
