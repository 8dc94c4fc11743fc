//! OAuth 2.1 client of the authorization servers that protect upstream MCP servers and APIs
//! (`docs/authorization-rules.md`, *Platform as OAuth client of upstreams*, AU).
//!
//! ```text
//! 401 ─► Challenge ─► discover ─► Discovered { resource, AuthorizationServer }   an MCP server names its own
//!        an issuer ─► discover_issuer ─► AuthorizationServer ◄─ entered          for an API the tenant names it
//!        register (DCR) ─► ClientIdentity ◄─ a metadata document (CIMD), or the tenant's entry
//!        Attempt::begin ─► the browser ─► Attempt::check (state, iss) ─► redeem ─► Tokens
//! ```
//!
//! - The module implements the protocol only: no tenant, no table, no page. Its callers store the
//!   tokens.
//! - Every address that a server names is checked before it is used. Every request goes through
//!   guarded egress (MCP-AU-15, MCP-AU-16).
//! - A server's statements are trusted only about itself. Its metadata must name its own issuer,
//!   and the document of a resource must cover the requested address (MCP-AU-2, MCP-AU-4,
//!   MCP-AU-9).

mod attempt;
mod challenge;
mod client;
mod discovery;
mod error;
mod fetch;
mod metadata;
mod openid;
mod token;

pub use self::{
    attempt::{AuthorizationAttempt, Callback, offered_scopes, union},
    challenge::Challenge,
    client::{AuthMethod, ClientIdentity, Registration, register},
    discovery::{Discovered, discover, discover_issuer},
    error::OauthError,
    fetch::checked,
    metadata::AuthorizationServer,
    openid::{TokenIssuer, bearer, key_set, openid_provider, token_issuer},
    token::{Grant, Tokens, redeem, revoke},
};
