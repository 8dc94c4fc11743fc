//! The MCP endpoint: guards, sessions and methods. Its walk is `docs/walks.md`, walk A.
//!
//! | Module, from the top | Subject |
//! |---|---|
//! | [`endpoint()`], [`router`] | what is served at which path |
//! | `lifecycle`, `changes`, `session_replies` | start and drain; changes of the registry and revocations; replies about sessions |
//! | `http` | the guards in the order of MCP-E-1, tokens, metadata |
//! | `transport` | `stateless`, `streamable_http` (sessions), `http_sse` of 2024-11-05 |
//! | `features` | the methods, one file a method, and the dispatch to them |
//! | `streams`, `upstream_subscriptions` | open event streams, and subscriptions for them |
//! | `backends` | calls of HTTP APIs and upstream servers |
//! | `tasks` | calls that continue after their first answer |
//! | `call` | the channel to the client, suspended calls, progress |
//! | `session` | session ids that rebuild their session, records, event ids |
//! | `catalog` | what a URL publishes, compiled |
//! | `nodes` | this node, messages between nodes, events of the process |
//! | `error` | the only place with HTTP statuses |
//! | `live_sessions` | sessions as this node saw them, for people |
//! | `limits`, `call_log`, `call_counts`, `capture`, `instruments`, `caller` and others | below all others |
//!
//! A module imports only modules below it (`README.md`).

mod backends;
mod call;
mod call_counts;
mod call_log;
mod caller;
mod capture;
mod catalog;
mod changes;
mod config;
mod error;
mod features;
mod hex;
mod http;
mod instruments;
mod lifecycle;
mod limits;
mod live_sessions;
mod nodes;
mod payloads;
mod session;
mod session_replies;
mod shutdown;
mod streams;
mod target;
mod tasks;
mod transport;
mod upstream_subscriptions;
#[cfg(test)]
mod wire;

use axum::{Router, body::Body, extract::Request, response::Response, routing::any};
pub use config::McpConfig;
pub use http::state::{McpParts, McpState};
pub use limits::TenantLedger;
pub use live_sessions::directory::SessionDirectory;
pub use payloads::{PayloadForm, payloads};
use portolan_net::layers::{Cors, Origins};
use std::convert::Infallible;
pub use target::is_endpoint;
use tower::{Layer, Service};

/// The endpoints of all servers, as one service for the paths of [`is_endpoint`].
///
/// Serve it in a [`Shortcut`](portolan_net::shortcut::Shortcut), not behind a router. Only the
/// front layer of `net` may stand above it, because this service reads bodies in the order that the
/// protocol requires.
pub fn endpoint(
    state: McpState,
) -> impl Service<Request<Body>, Response = Response, Error = Infallible, Future: Send + Unpin + 'static>
+ Clone
+ Send
+ Sync
+ 'static {
    let cors = Cors::mcp(Origins::Listed(state.origins.listed())).layer();
    cors.layer(http::Endpoint(state))
}

/// The routes beside the endpoints: protected resource metadata.
pub fn router(state: McpState) -> Router {
    Router::new()
        .route(
            "/.well-known/oauth-protected-resource",
            any(http::metadata::document),
        )
        .route(
            "/.well-known/oauth-protected-resource/",
            any(http::metadata::document),
        )
        .route(
            "/.well-known/oauth-protected-resource/{*path}",
            any(http::metadata::document),
        )
        .layer(Cors::mcp(Origins::Any).layer())
        .with_state(state)
}
