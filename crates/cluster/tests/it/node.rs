//! Several nodes over one store, with clients that move between them (STREAM-1, STREAM-11).

mod answers;
mod chaos;
mod enquiry;
mod limits;
mod messages;
mod outage;
mod permits;
mod real;
mod revocation_freshness;
mod sessions;
mod simulated;
mod slow;
mod streams;
mod takeover;
mod world;
