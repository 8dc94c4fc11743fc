//! The OAuth endpoints: discovery, clients, authorization, consent, tokens, revocation,
//! introspection and published keys.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod authorize;
pub(crate) mod clients;
pub mod connection_diagnostics;
pub(crate) mod consent;
pub(crate) mod discovery;
pub mod error;
pub(crate) mod introspect;
pub mod jwks;
pub mod maintenance;
pub(crate) mod parameters;
pub(crate) mod revoke;
pub(crate) mod router;
pub(crate) mod token;
