//! Tenants, their limits, the audit log, calls and their counts, mail and connection diagnostics.

pub mod audit;
pub mod audit_chain;
pub mod call_contents;
pub mod call_views;
pub mod calls;
pub mod connect_events;
pub mod limits;
pub mod mails;
pub mod operators;
pub mod recorder;
pub mod sealed;
pub mod search;
pub mod tenants;
pub mod usage;
