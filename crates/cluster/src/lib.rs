//! What nodes share while they run and may lose: sessions, open streams, revocations.
//!
//! This room carries bytes and never reads them: what a session's body or a frame means is known to `mcp` alone. Nothing
//! here is the truth. A lost session is rebuilt from its id, a lost stream is opened again by its client, and revocations
//! are rows in Postgres that are read again at start.
//!
//! | Module | Subject |
//! |---|---|
//! | [`sessions`] | records of MCP sessions: owner, opaque body, tombstones |
//! | [`streams`] | open event streams, found by tenant, each with a bounded queue |
//! | [`revocations`] | what is refused before its token expires (`auth.md` §4.2) |
//!
//! All of it lives in this process: a cluster of one.

pub mod revocations;
pub mod sessions;
pub mod streams;

pub use revocations::{Revocation, Revocations, TokenFacts};
pub use sessions::{Found, SessionKey, SessionLimits, SessionRecord, Sessions};
pub use streams::{End, OpenStream, Streams, TooManyStreams};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that panicked while it held one of our locks left whole entries: each change is one insert or remove.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
