//! The OAuth endpoints: discovery, clients, authorization, consent, tokens, revocation,
//! introspection and published keys.

pub mod admission;
pub(crate) mod answer;
pub(crate) mod authorize;
pub mod clients;
pub mod connection_diagnostics;
pub(crate) mod consent;
pub(crate) mod discovery;
pub mod error;
pub(crate) mod introspect;
pub mod jwks;
pub mod maintenance;
pub(crate) mod parameters;
pub(crate) mod revoke;
mod router;
pub(crate) mod token;

pub use router::router;
