//! MCP client over guarded egress for upstream servers of any revision
//! (`docs/translation-rules.md`, *Reaching the upstream (leg U)*).
//!
//! ```text
//! Client::probe ─► Probed ─┬─ Modern   every request stands alone              (2026-07-28)
//!                          ├─ Legacy   a session: an id and a header           (2025-03-26 … 2025-11-25)
//!                          └─ Link     a session: one open event stream        (2024-11-05)
//! Connection::call ─► Exchange ─► Event, Event, … Event::Answer
//! ```
//!
//! - The crate implements the protocol only: it knows no tenant, no table and no client of ours.
//!   Results that only pass through stay raw.
//! - Each outgoing request is built from scratch (MCP-X-9): no header and no id of a client's
//!   request is copied.
//! - Incoming data is not trusted: sizes, times, pages and shapes have bounds. Data beyond them is
//!   an [`UpstreamError`].
//! - A server may echo the credential: it is removed from each body and event before they are read
//!   (REVIEW-S-5).
//! - [`oauth`] obtains tokens for a server that answers 401, as a client of its authorization
//!   server.
//! - A request is sent once, with two exceptions. A `tools/call` is sent again if the server said
//!   that it was not processed (MCP-X-6, MCP-X-7). The rest of a broken stream is requested again
//!   (MCP-X-7E).

mod connection;
mod drain;
mod endpoint;
mod error;
mod exchange;
mod gated;
mod legacy;
mod link;
mod message;
mod modern;
pub mod oauth;
mod offer;
mod offered_in;
mod outgoing;
mod peer;
mod probe;
mod references;
mod server_facts;
mod standing;
mod written;

pub use connection::Connection;
pub use drain::List;
pub use endpoint::{Client, Endpoint, Limits, Speaker};
pub use error::UpstreamError;
pub use exchange::{Exchange, ExchangeEvent, unavailable};
pub use legacy::{Legacy, Ticket};
pub use link::Link;
pub use modern::Modern;
pub use offer::{Offer, OfferedPrompt, OfferedResource, OfferedTool};
pub use offered_in::OfferedIn;
pub use outgoing::{Request, mirrored, new_id};
// Definitions are handed out as text that was parsed once.
pub use portolan_protocol::jsonrpc::Raw;
pub use probe::Probed;
pub use server_facts::ServerFacts;
pub use standing::Standing;
pub use written::canonical;
