//! Events of a workspace at their receivers (HOOK-1): signed deliveries with retries, alerts, and the
//! catalogue of events.
//!
//! An event is written with the change that it reports ([`portolan_storage::events`]). The
//! [`worker`] makes deliveries and [`alerts`] of it, sends them through the guarded egress
//! ([`send`]), and tries again by the [`schedule`]. Its rounds write the events of rules over counts of
//! calls and over ends of credentials (`evaluation`).

pub mod alerts;
pub mod catalogue;
mod evaluation;
pub mod message;
pub mod schedule;
pub mod secrets;
pub mod send;
pub mod worker;
