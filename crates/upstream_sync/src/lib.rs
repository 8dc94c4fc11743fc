//! Upstream MCP servers: discovery of their offer, sign-in at their authorization servers, and the
//! background refresh.

pub mod connect;
pub mod credentials;
pub mod look;
pub mod sync;
