//! Several nodes over one store, with clients that move between them (`streams.md` §1, §11).

mod answers;
mod chaos;
mod limits;
mod messages;
mod outage;
mod places;
mod real;
mod revocation_freshness;
mod rng;
mod sessions;
mod simulated;
mod slow;
mod streams;
mod takeover;
mod world;
