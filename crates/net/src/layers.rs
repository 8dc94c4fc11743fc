//! What holds for every request before a handler sees it, and for every answer on its way out.
//!
//! - [`Front`]: request id, host, client address, panics, the one line. Once, outermost, on the whole router.
//! - [`FetchSite`]: refuses unsafe requests that another site caused (AUTH-S5).
//! - [`Cors`]: who may read answers from a browser (AUTH-E10, MCP-T-11).
//! - [`SecurityHeaders`]: the headers of pages and of machine answers (AUTH-S6, AUTH-S7, AUTH-S9,
//!   AUTH-N7, AUTH-N8).
//! - [`Entrance`]: what comes in is text without control characters, and comes in time (TEST-B1,
//!   REVIEW-S-2, REVIEW-S-6).
//! - [`Compress`]: what is worth it goes out compressed, and what an attacker could measure does not.
//! - [`body`]: bounded reading of bodies (TEST-B1, TEST-B2).
//!
//! All but `Front` are [`Rule`]s: `router.layer(FetchSite::new(origins).layer())`.

pub mod body;
mod coding;
mod cors;
mod entrance;
mod fetch_site;
mod front;
mod refusal;
mod rule;
mod security;
mod text;

pub use self::coding::{Compress, accepted};
pub use self::cors::{Cors, Origins};
pub use self::entrance::{BODY_RATE, Entrance, Fault};
pub use self::fetch_site::FetchSite;
pub use self::front::{AllowedHosts, Arrival, Front, Observe, Pause, RequestLine};
pub use self::rule::{Hook, Rule, Ruled};
pub use self::security::{CONSOLE_CSP, Page, SecurityHeaders};
