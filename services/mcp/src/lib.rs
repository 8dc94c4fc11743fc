//! The MCP endpoint: guards, sessions and methods. Its walk is `docs/walks.md`, walk A.
//!
//! | Module | Subject |
//! |---|---|
//! | [`endpoint()`], [`router`] | what is served at which path |
//! | `endpoint` | the guards in the order of MCP-E-1: path, Origin, verb, token, body; then the era |
//! | `http::metadata` | protected resource metadata (RFC 9728) |
//! | `legacy` | the session era: `initialize`, messages, GET, DELETE |
//! | `legacy::session` | session ids that rebuild their session, and the record of a session |
//! | `legacy::call` | a call of a session: one JSON body, or a stream that any node can resume |
//! | `http_sse` | HTTP+SSE of 2024-11-05: a stream, and a second address for client messages |
//! | `modern` | 2026-07-28: requests that stand alone |
//! | `client_channel` | messages of a running call to its client: notifications, questions, suspended calls |
//! | `tasks` | calls that continue after their first answer |
//! | `stream` | open event streams of both eras, and the notifications on them |
//! | `notify` | messages between nodes about tasks and questions |
//! | `upstream_subscriptions` | subscriptions to upstream servers, for those streams |
//! | `shutdown` | events that stop a call from outside, and the error that its client receives |
//! | `session_quota` | workspaces that begin many sessions |
//! | `payloads` | sealed events in the log of streams, and the error in place of a lost answer |
//! | `dispatch` | a method → its handler: `lists`, `tools`, `prompts`, `resources`, `complete` |
//! | `catalog` | what a URL serves, kept in memory; `bodies`: contents too large for it |
//! | `limits`, `call_log`, `news`, `instruments`, `trace` | limits, logs, changes, metrics, spans |
//! | `error` | the only place with HTTP statuses |

mod backends;
mod call;
mod call_log;
mod catalog;
mod changes;
mod config;
mod error;
mod features;
mod hex;
mod http;
mod instruments;
mod limits;
mod nodes;
mod payloads;
mod session;
mod shutdown;
mod streams;
mod target;
mod tasks;
mod transport;
mod upstream_subscriptions;
#[cfg(test)]
mod wire;

use std::convert::Infallible;

use axum::{Router, body::Body, extract::Request, response::Response, routing::any};
use portolan_net::{
    layers::{Cors, Origins},
    shortcut::Answering,
};
use tower::{Layer, Service};

pub use config::McpConfig;
pub use http::state::{McpParts, McpState};
pub use limits::TenantLedger;
pub use payloads::payloads;
pub use target::is_endpoint;

/// The endpoints of all servers, as one service for the paths of [`is_endpoint`].
///
/// Serve it in a [`Shortcut`](portolan_net::shortcut::Shortcut), not behind a router. Only the
/// front layer of `net` may stand above it, because this service reads bodies in the order that the
/// protocol requires.
pub fn endpoint(
    state: McpState,
) -> impl Service<Request<Body>, Response = Response, Error = Infallible, Future = Answering>
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
