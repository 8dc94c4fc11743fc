//! Sockets, both ways: listening with its layers, and the one guarded client for everything outgoing.
//!
//! This room knows HTTP and addresses. It knows no tenant, no tool, no OAuth and no MCP, and imports nothing of ours.
//!
//! Inwards: [`listen`] accepts, [`shortcut`] forks, [`layers`] says what holds for every request, [`client_ip`] who asks, [`sse_body`] how an
//! answer streams, [`health`] what the second listener tells. Outwards: [`egress`], with its rules
//! in [`address`], and [`secrets`], which no answer brings back.

pub mod address;
pub mod client_ip;
pub mod egress;
pub mod health;
pub mod layers;
pub mod listen;
pub mod resolve;
pub mod secrets;
pub mod shortcut;
pub mod sse_body;
pub mod txt;
mod unrendered;
