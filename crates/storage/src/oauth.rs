//! Clients, grants, codes, refresh tokens, keys of services, revocations and signing keys.

pub mod api_keys;
pub mod authorization_requests;
pub mod client_admission;
pub mod client_documents;
pub mod client_fetches;
pub mod client_proofs;
pub mod client_secrets;
pub mod clients;
pub mod connected_apps;
pub mod factor_rules;
pub mod grant_state;
pub mod grant_uses;
pub mod grants;
pub mod refresh_tokens;
pub mod registered_clients;
pub mod revocations;
pub mod service_accounts;
pub mod signing_keys;
