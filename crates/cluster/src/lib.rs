//! What nodes share while they run and may lose: sessions, open streams, revocations.
//!
//! This room carries bytes and never reads them: what a session's body or a frame means is known to `mcp` alone. Nothing
//! here is the truth. A lost session is rebuilt from its id, a lost stream is opened again by its client, and revocations
//! are rows in Postgres that are read again at start.
//!
//! | Module | Subject |
//! |---|---|
//! | [`streams`] | open event streams of news, found by tenant, each with a bounded queue |
//! | [`revocations`] | what is refused before its token expires (`auth.md` §4.2) |
//! | [`revocation_freshness`] | when a node may have missed too many of them (ADR 25) |
//! | [`node`] | this process among its like: writers and readers of streams, membership, takeover, limits |
//! | [`store`] | what nodes share: sessions, logs of streams, routing, limits (`streams.md`) |
//! | [`memory`] | that store in one process |
//! | [`redis`] | that store in Redis, for many |
//! | [`node`] | what a process does with it: sessions, writers and readers of streams, takeover, limits |
//! | [`ledger`] | limits, seen by a process that is no node |
//! | [`fault`] | a store whose answers get lost, for tests |
//! | [`fork`] | positions in a stream whose log lost a branch (`streams.md` §11) |

pub mod fault;
pub mod fork;
mod gcra;
#[cfg(test)]
mod interleaved;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod redis;
pub mod revocation_freshness;
pub mod revocations;
mod shown;
pub mod store;
pub mod streams;
mod subscribers;

pub use revocations::{Revocation, Revocations, TokenFacts};
pub use store::SessionKey;
pub use streams::{Doorway, End, OpenStream, Streams, TooManyStreams};

use std::collections::HashMap;
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard, PoisonError};

// In this crate's own tests a lock is a place where another task may come in between.
#[cfg(test)]
use interleaved::{lock, spawn};
#[cfg(not(test))]
use tokio_util::task::TaskTracker;

/// For what every call looks up, several times, by ids and short keys. A seed of its own for each map, so that nobody can choose keys
/// that meet.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A thread that panicked while it held one of our locks left whole entries: each change is one insert or remove.
#[cfg(not(test))]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a task of which nobody waits for the outcome.
#[cfg(not(test))]
fn spawn(tracker: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    tracker.spawn(task);
}
