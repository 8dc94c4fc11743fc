//! The backends of published items: an HTTP API, or an upstream MCP server.

pub(crate) mod account;
pub(crate) mod http;
pub(crate) mod services;
pub(crate) mod upstream;
