//! The MCP endpoint: guards, sessions, tools. Reads like a walk through `docs/walks.md`, walk A.
//!
//! | Module | Subject |
//! |---|---|
//! | [`endpoint()`], [`router`] | what is served where |
//! | `endpoint` | the guards in the order of E-1: path, Origin, verb, token, body; then the era |
//! | `endpoint::metadata` | protected resource metadata (RFC 9728) |
//! | `legacy` | the session era: `initialize`, messages, GET, DELETE |
//! | `legacy::session` | session ids that rebuild their session, and what is kept of one |
//! | `legacy::call` | a call of a session: one JSON body, or a stream that any node can resume |
//! | `two_endpoints` | HTTP+SSE of 2024-11-05: a stream, and a second address for what the client says |
//! | `modern` | 2026-07-28: requests that stand alone |
//! | `ask` | what a running call says to its client before its answer: notices, questions, parked calls |
//! | `tasks` | calls that go on after they were answered |
//! | `stream` | open event streams of both eras, and the news on them |
//! | `bells` | what nodes tell each other of tasks and questions |
//! | `watch` | what servers of others tell by themselves, for those streams |
//! | `last_word` | what stops a call from outside, and what its client is told |
//! | `crowd` | which workspaces begin many sessions |
//! | `payloads` | what the log of streams keeps, sealed, and what stands in for a lost answer |
//! | `dispatch` | a method → its handler: `lists`, `tools`, `prompts`, `resources`, `complete` |
//! | `catalog` | what a URL serves, kept in memory; `bodies`: what is too large for it |
//! | `limits`, `call_log`, `news`, `instruments`, `trace` | what runs beside |
//! | `error` | the only place with HTTP statuses |

mod ask;
mod backends;
mod bells;
mod bodies;
mod call_log;
mod catalog;
mod complete;
mod config;
mod credential_state;
mod crowd;
mod dispatch;
mod endpoint;
mod error;
mod hex;
mod instruments;
mod last_word;
mod legacy;
mod limits;
mod lists;
mod meter;
mod modern;
mod news;
mod payloads;
mod prompts;
mod resources;
mod state;
mod stream;
mod tasks;
mod tools;
mod trace;
mod two_endpoints;
mod watch;
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
pub use endpoint::target::is_endpoint;
pub use limits::TenantLedger;
pub use payloads::payloads;
pub use state::{McpParts, McpState};

/// The endpoints of all servers: what answers the paths of [`is_endpoint`], in a [`Shortcut`](portolan_net::shortcut::Shortcut) and not
/// behind a router. Serve it below the front layer of `net` and nothing else: bodies are read here, in the order that the protocol
/// asks for.
pub fn endpoint(
    state: McpState,
) -> impl Service<Request<Body>, Response = Response, Error = Infallible, Future = Answering>
+ Clone
+ Send
+ Sync
+ 'static {
    let cors = Cors::mcp(Origins::Listed(state.origins.listed())).layer();
    cors.layer(endpoint::Endpoint(state))
}

/// The routes beside the endpoints: metadata.
pub fn router(state: McpState) -> Router {
    Router::new()
        .route(
            "/.well-known/oauth-protected-resource",
            any(endpoint::metadata::document),
        )
        .route(
            "/.well-known/oauth-protected-resource/",
            any(endpoint::metadata::document),
        )
        .route(
            "/.well-known/oauth-protected-resource/{*path}",
            any(endpoint::metadata::document),
        )
        .layer(Cors::mcp(Origins::Any).layer())
        .with_state(state)
}
