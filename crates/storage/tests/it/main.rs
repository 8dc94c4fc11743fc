//! SQL on a real Postgres. Several nodes try at the same instant each operation that must happen
//! once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::too_many_lines, reason = "a scenario reads in order")]

mod attachments;
mod audit_chain;
mod call_contents;
mod catalog;
mod client_proofs;
mod connect_loops;
mod connecting;
mod credential_states;
mod database;
mod endings;
mod expiry;
mod limits;
mod node_logins;
mod numbered_events;
mod oauth;
mod outbox;
mod passkeys;
mod prompts_and_resources;
#[path = "../../../../tests/src/races.rs"]
pub mod races;
mod row_level_security;
mod scene;
mod sealed;
mod upstream_oauth;
mod upstreams;
mod usage;
mod webhook_claims;
mod written;
