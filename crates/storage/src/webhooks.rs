//! Webhooks and alerts: endpoints, deliveries of events, events in order, what stands, and the rules
//! over counts of calls and ends of credentials.

pub mod alerts;
pub mod call_rates;
pub mod deliveries;
pub mod endpoints;
pub mod expiring_credentials;
pub mod numbered;
