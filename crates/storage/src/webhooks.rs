//! Webhooks and alerts: endpoints, deliveries of events, and what stands.

pub mod alerts;
pub mod deliveries;
pub mod endpoints;
