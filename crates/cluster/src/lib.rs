//! What nodes share while they run and may lose: sessions, open streams, revocations.
//!
//! This crate carries bytes and never reads them. Only `mcp` knows the meaning of a session's body
//! or an event. No data here is authoritative. A lost session is rebuilt from its id. A client
//! opens a lost stream again. Revocations are rows in Postgres and are read again at start.
//!
//! | Module | Subject |
//! |---|---|
//! | [`streams`] | open event streams of notices, found by tenant, each with a bounded queue |
//! | [`revocations`] | tokens that are refused before they expire (AUTH-4.2) |
//! | [`revocation_freshness`] | whether a node may have missed too many revocations (ADR 25) |
//! | [`node`] | a node: sessions, writers and readers of streams, membership, takeover, limits |
//! | [`store`] | what nodes share: sessions, logs of streams, routing, limits (`docs/design/sessions-and-streams.md`) |
//! | [`memory`] | the store in the memory of one process |
//! | [`redis`] | the store in Redis, shared by many processes |
//! | [`config`] | settings of the operator for all of these |
//! | [`ledger`] | limits for a process that is not a node |
//! | [`fork`] | positions in a stream whose log lost a branch (STREAM-11) |

pub mod config;
pub mod enquiry;
pub mod fork;
#[cfg(test)]
#[path = "../tests/interleavings/scheduler.rs"]
mod interleaved;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod redis;
pub mod revocation_freshness;
pub mod revocations;
mod rng;
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

// In this crate's own tests, another task may run at each lock.
#[cfg(test)]
use interleaved::{lock, spawn};
#[cfg(not(test))]
use tokio_util::task::TaskTracker;

/// Map for lookups by ids and short keys, several times per call. Each map has its own random seed,
/// so that a client cannot choose keys that collide.
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Locks a mutex and ignores poisoning. Each change is one insert or remove, so a panic of a thread
/// leaves whole entries.
#[cfg(not(test))]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a task without waiting for its result.
#[cfg(not(test))]
fn spawn(tracker: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    tracker.spawn(task);
}
