//! Delivery of queued mail: SMTP, and the mailbox page of development.

pub mod config;
pub(crate) mod mailbox;
pub mod outbox;
pub mod smtp;
