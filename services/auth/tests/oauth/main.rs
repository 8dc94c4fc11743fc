//! The OAuth endpoints for clients and browsers, rule by rule (AUTH-6.3), on a real Postgres
//! and with a clock that the test advances.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::too_many_lines, reason = "a scenario reads in order")]

mod admission;
mod authorize;
mod connects;
mod consent;
#[path = "../../../../crates/storage/tests/it/database.rs"]
mod database;
mod documents;
mod factor_rule;
mod family;
mod harness;
#[path = "../../../../tests/src/https.rs"]
pub mod https;
mod internet;
mod lost_database;
mod playground;
mod proofs;
#[path = "../../../../tests/src/races.rs"]
pub mod races;
mod refresh;
mod registered;
mod registration;
mod revoke;
mod service;
mod signing_keys;
mod sso;
mod statements;
mod token;
