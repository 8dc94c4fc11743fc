//! Postgres: the data that must survive.
//!
//! The SQL of one noun stands in one file, next to its row type, and is checked against the schema
//! at compile time. No other crate writes SQL. Each of these scopes is a transaction:
//!
//! - [`Store::tenant`]: all data of one tenant, for the console. Row-level security shows only
//!   the rows of that tenant; a forgotten `where` shows no row of another tenant.
//! - [`Store::node`]: the same for MCP nodes, with database rights on the registry only.
//! - [`Store::system`]: spans tenants (sign-in, OAuth, key rotation); the reason is logged.
//!
//! MCP nodes have a fourth scope, because their login need not have the rights of [`Store::system`]
//! (REVIEW-S-13):
//!
//! - [`Store::edge`]: the data that a node needs before it knows a tenant, and no data of people:
//!   revocations, verification keys, the owner of an API key, connection diagnostics.
//!
//! A fifth scope, `Store::keeper`, owns counts and the log of calls: it folds them, and makes and
//! drops their partitions (ADR 44).
//!
//! A frequent operation of one step can save the messages that begin and end a transaction. It
//! shares one message with concurrent operations of its kind (`query_batcher`, ADR 31). These are
//! database functions that run with the rights of the system scope.
//!
//! One-time values (codes, refresh tokens, verifications) are consumed by the `where` of a single
//! `update`.

mod error;
mod migrate;
mod notification_listener;
mod query_batcher;
mod scope;
mod store;

pub mod accounts;
pub mod events;
pub mod expiry;
pub mod oauth;
pub mod platform;
pub mod registry;
pub mod webhooks;

pub use error::StorageError;
pub use migrate::{MigrateError, SchemaState, bootstrap, ensure_login, migrate, schema_state};
pub use notification_listener::NotificationListener;
pub use scope::{EdgeTx, KeeperTx, SystemTx, TenantTx, Tx};
pub use store::{MigrationConfig, Needs, Reason, StorageConfig, Store};
