//! Sign-in pages and console in a browser, rule by rule (AUTH-6.3), on a real Postgres and
//! with a clock that the test advances.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::too_many_lines, reason = "a scenario reads in order")]

mod access_token_ends;
mod access_tokens;
mod account_pages;
mod alert_rules;
mod alerts;
mod api_access;
mod api_sign_in;
mod breached;
mod calls;
mod ci_issuer;
mod command_tokens;
mod configuration;
mod configured_webhooks;
mod connect;
mod console;
mod console_routes;
mod continuations;
mod conventions;
#[path = "../../../../crates/storage/tests/it/database.rs"]
mod database;
mod default_server;
mod deletion;
mod factor_rule;
mod federation;
mod insights;
mod invitations;
mod joining;
mod keys;
mod limits;
mod live_events;
mod mail_delivery;
mod mail_server;
mod mailbox;
mod own_server;
mod pipelines;
mod provider;
#[path = "../../../../tests/src/races.rs"]
pub mod races;
mod recovery;
mod registry;
mod search;
mod second_factor;
mod selected_configuration;
mod sessions;
mod sign_in;
mod sign_up;
mod single_sign_on;
#[path = "../oauth/statements.rs"]
mod statements;
mod test_service;
mod verifications;
mod way_back;
mod webhook_receivers;
mod webhooks;
