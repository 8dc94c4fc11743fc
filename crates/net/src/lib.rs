//! Sockets in both directions: listeners with their layers, and the one guarded client for all
//! outgoing requests.
//!
//! This crate knows HTTP and addresses. It knows no tenant, no tool, no OAuth and no MCP, and
//! depends on no crate of ours but that of settings.
//!
//! Incoming: [`listen`] accepts connections, [`shortcut`] dispatches requests, [`layers`] holds the
//! rules for every request, [`client_ip`] finds the client, [`sse_body`] streams answers, and
//! [`health`] serves the second listener. Outgoing: [`egress`], with its rules in [`address`], and
//! [`secrets`], which are removed from answers.

pub mod address;
pub mod client_ip;
pub mod egress;
pub mod health;
pub mod layers;
pub mod listen;
pub mod outward;
pub mod proxies;
pub mod resolve;
pub mod secrets;
pub mod shortcut;
pub mod sse_body;
pub mod tunnel;
pub mod txt;
mod unrendered;
