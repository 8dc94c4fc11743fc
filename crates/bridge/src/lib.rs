//! A stdio MCP server in front of a remote one, for clients that speak stdio only.
//!
//! ```text
//! client ── stdin, stdout ──► Talk ─┬─ RemoteSession  both have sessions (2024-11-05 … 2025-11-25)
//!                                   ├─ Relay          both are of 2026-07-28
//!                                   ├─ Older          the server alone is of 2026-07-28
//!                                   └─ Newer          the client alone is of 2026-07-28
//!                                        │
//!                                      Wire ── HTTPS ──► the remote server
//!                                        └─ Account     tokens, refresh, sign-in in the browser
//! ```
//!
//! - Where both sides speak the same revision, messages pass unchanged: only line breaks between
//!   tokens become spaces.
//! - Nothing but messages of the protocol is written to the output. Notes go to standard error.
//! - A request is sent again only if the server said that it was not processed.
//! - Every request of the client has an answer: the server's, or an error of [`BridgeFault`].
//! - No note names a token, a code or a key.
//!
//! [`command_token`] signs a person in for commands, by the same callback and the same store.

pub mod account;
pub mod command_token;
mod fault;
mod folders;
pub mod install;
mod lines;
mod message;
mod newer;
mod note;
mod older;
mod pages;
mod relay;
mod run;
mod session;
mod stream;
mod talk;
mod wire;

pub use fault::BridgeFault;
pub use folders::Folders;
pub use note::Notes;
pub use run::{BridgeEnd, Setup, SetupError, run, sign_out};
