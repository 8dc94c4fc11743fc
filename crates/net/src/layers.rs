//! Rules for every request before a handler gets it, and for every answer before it is sent.
//!
//! - [`Front`]: request id, host, client address, panics, the log line. Once, outermost, on the
//!   whole router.
//! - [`FetchSite`]: refuses unsafe requests that another site caused (AUTH-S5).
//! - [`Cors`]: origins that may read answers in a browser (AUTH-E10, MCP-T-11).
//! - [`SecurityHeaders`]: the headers of pages and of machine answers (AUTH-S6, AUTH-S7, AUTH-S9,
//!   AUTH-N7, AUTH-N8).
//! - [`Entrance`]: input is text without control characters, and arrives in time (TEST-B1,
//!   REVIEW-S-2, REVIEW-S-6).
//! - [`Compress`]: compresses large answers, but none from whose size an attacker could infer a
//!   secret.
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
pub use self::entrance::{BODY_RATE, Entrance, EntranceFault};
pub use self::fetch_site::{FetchSite, HeaderCredential};
pub use self::front::{AllowedHosts, Arrival, Front, Observe, Pause, RequestLine};
pub use self::rule::{Hook, Rule, Ruled};
pub use self::security::{CONSOLE_CSP, PageKind, SecurityHeaders};
