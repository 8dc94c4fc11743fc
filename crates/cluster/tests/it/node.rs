//! Several nodes over one store, and clients that hop between them (`streams.md` §1, §11).

mod adoption;
mod answers;
mod chance;
mod chaos;
mod hearing;
mod limits;
mod messages;
mod outage;
mod places;
mod real;
mod sessions;
mod simulated;
mod slow;
mod streams;
mod world;
