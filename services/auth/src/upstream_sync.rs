//! Upstream MCP servers: discovery of their offer, sign-in at their authorization servers, and the
//! background refresh.

pub(crate) mod connect;
pub(crate) mod credentials;
pub(crate) mod look;
pub(crate) mod sync;
