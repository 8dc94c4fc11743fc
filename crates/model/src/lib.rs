//! The platform's own nouns and rules. Pure: no I/O, and no clock or chance of its own.
//!
//! Rules that can be tested in microseconds live here, and every other crate calls them. Examples
//! are the rights of a member, the form of a redirect URI, and the resource that a token is good
//! for.
//!
//! | Module | Subject |
//! |---|---|
//! | [`id`] | `Id<Kind>`: names of things, with a prefix in text (`ten_…`) |
//! | [`clock`] | the only way to know the time |
//! | [`digest`] | digests by which secrets are stored |
//! | [`slug`] | names in URLs |
//! | [`email`] | how addresses are compared |
//! | [`member`] | roles and what each may do |
//! | [`factor`] | how sessions were proved, and what tenants ask of that |
//! | [`scope`] | OAuth scopes |
//! | [`pipeline`] | which jobs of a CI system get a token of the management API |
//! | [`subject`] | whom a token speaks for: a person or a service account |
//! | [`resource`] | the canonical form of an MCP server's URL (RFC 8707) |
//! | [`redirect`] | which redirect URIs may be registered, and which requests match them |
//! | [`client`] | OAuth clients as stored |
//! | [`admission`] | which of them may connect to a tenant |
//! | [`token_family`] | refresh tokens: rotation, replay window, reuse |
//! | [`registry`] | sources, tools and servers of a tenant |
//! | [`prompt`] | prompts that tenants write: arguments, messages, what becomes of placeholders |
//! | [`uri_template`] | templates of resources, and which URIs fit them |
//! | [`gcra`] | the arithmetic of rate limits |
//! | [`audit`] | who did what |
//! | [`audit_chain`] | the chain of hashes over that |

pub mod admission;
pub mod api_scope;
pub mod audit;
pub mod audit_chain;
pub mod client;
pub mod clock;
pub mod digest;
pub mod email;
pub mod event;
pub mod factor;
pub mod gcra;
pub mod id;
pub mod limits;
pub mod live_session;
pub mod member;
pub mod pipeline;
pub mod prompt;
pub mod redirect;
pub mod registry;
pub mod resource;
pub mod saved_call;
pub mod scope;
pub mod slug;
pub mod subject;
pub mod text;
pub mod token_family;
pub mod uri_template;

pub use clock::{Clock, Timestamp};
pub use digest::Digest;
pub use gcra::Gcra;
pub use id::Id;
