//! Calls through upstream MCP servers. Each message is written anew; none is tunnelled
//! (`docs/translation-rules.md`).
//!
//! A client never receives a server's session ids, request ids, progress tokens or cursors. A
//! server never receives a client's token.

pub(crate) mod account;
pub(crate) mod answered;
pub(crate) mod client;
pub(crate) mod conversation;
pub(crate) mod exchange;
pub(crate) mod forward;
pub(crate) mod get_stream_reader;
pub(crate) mod get_streams;
pub(crate) mod hints;
pub(crate) mod meter;
pub(crate) mod orphaned_sessions;
pub(crate) mod pool;
pub(crate) mod questions;
pub(crate) mod refresh;
pub(crate) mod refresh_requests;
pub(crate) mod request;
pub(crate) mod sessions;
pub(crate) mod task;
pub(crate) mod tickets;
