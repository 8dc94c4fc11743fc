//! MCP as values: bytes in, typed values out, and back. No tokio, no clock, no sockets.
//!
//! # Eras and revisions
//!
//! Five revisions are served ([`revision::SERVED`]). Those from 2024-11-05 to 2025-11-25 are
//! *legacy*: a client opens a session with `initialize`. 2026-07-28 is *modern*: every request
//! stands alone and says in `_meta` and in headers what it is. What differs between them is data,
//! [`revision::Facts`]; nothing outside that table compares revisions.
//!
//! # How a POST is read
//!
//! ```
//! use portolan_protocol::{header::Headers, jsonrpc::Body, negotiate::{self, Admitted}};
//!
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
//!     "capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
//! let headers = Headers::collect([("content-type", b"application/json".as_slice())]);
//! let admitted = Body::parse(body.to_vec().into()).and_then(|body| negotiate::admit(body, &headers));
//! match admitted {
//!     Ok(Admitted::Initialize { request, .. }) => assert_eq!(request.id.to_json(), "1"),
//!     Ok(_) => unreachable!("it is the handshake"),
//!     Err(refusal) => panic!("HTTP {}: {:?}", refusal.status, refusal.body()),
//! }
//! ```
//!
//! 1. [`jsonrpc::Body::parse`]: JSON, envelope, duplicates, depth. `params` stay text.
//! 2. [`negotiate::admit`]: body × headers → era, or the exact [`error::Refusal`] with HTTP status.
//!    A server without sessions uses [`negotiate::standalone::admit`] and is done with it.
//! 3. Legacy: find the session, then [`negotiate::check_session_version`]
//!    and [`negotiate::check_session_headers`]; a batch goes through [`negotiate::open_batch`].
//!    Modern: all of that has happened.
//! 4. [`method::Method::of_client`] (legacy; `None` is `-32601`), then the parameters of the
//!    method: [`tool::CallParams::read`], [`jsonrpc::Params::read`] for the simple ones. A
//!    [`jsonrpc::Misfit`] is `-32602`.
//! 5. Modern `tools/call`: [`header::check_params`] with the annotations of the tool.
//!
//! # How an answer is written
//!
//! Every result is written for its revision straight into bytes: [`tool::list_page`],
//! [`tool::CallResult::write`], [`initialize::result`], … and [`jsonrpc::response`] puts id
//! and result together without reading either. Errors: [`error::ErrorKind::refuse`]. Streams:
//! [`sse::message`].

pub mod ask;
pub mod cancel;
pub mod capability;
pub mod completion;
pub mod content;
pub mod discover;
pub mod error;
pub mod header;
mod implementation;
pub mod initialize;
pub mod input_required;
mod json;
pub mod jsonrpc;
pub mod logging;
pub mod media;
pub mod meta;
mod meta_key;
pub mod method;
pub mod negotiate;
pub mod pace;
pub mod progress;
pub mod prompt;
mod request_id;
pub mod resource;
pub mod result;
pub mod revision;
mod shaped;
pub mod sse;
pub mod subscription;
pub mod task;
pub mod tool;
pub mod translate;
pub mod visible;

pub use error::{ErrorKind, Refusal, RpcError};
pub use jsonrpc::{Body, Message, Misfit, Params, Raw, Request, RequestId};
pub use method::Method;
pub use negotiate::Admitted;
pub use result::{CacheHint, CacheScope, Identity};
pub use revision::{Era, Facts, Revision, SERVED};
