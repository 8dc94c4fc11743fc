//! Entries of a node by session, spread over several locks to avoid contention.

use std::{collections::HashMap, sync::Mutex};

use foldhash::fast::SeedableRandomState;

use crate::rng::NodeRng;
use crate::{lock, store::SessionKey};

/// Number of locks, large enough that few sessions share one.
const SHARDS: usize = 64;

type Shard<T> = Mutex<HashMap<SessionKey, Vec<T>, SeedableRandomState>>;

/// Entries of sessions. An entry is cheap to clone.
#[derive(Debug)]
pub(super) struct BySession<T> {
    shards: Box<[Shard<T>]>,
}

impl<T: Clone> BySession<T> {
    pub(super) fn new(rng: &NodeRng) -> Self {
        let shard = |_| Mutex::new(HashMap::with_hasher(rng.hashing()));
        Self {
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    fn shard(&self, session: SessionKey) -> &Shard<T> {
        // The first byte is the partition; the second one is as random.
        &self.shards[usize::from(session.0[1]) % SHARDS]
    }

    pub(super) fn insert(&self, session: SessionKey, entry: T) {
        lock(self.shard(session))
            .entry(session)
            .or_default()
            .push(entry);
    }

    /// Adds an entry unless `is_same` finds one.
    pub(super) fn insert_unless(
        &self,
        session: SessionKey,
        entry: T,
        is_same: impl Fn(&T) -> bool,
    ) -> bool {
        let mut shard = lock(self.shard(session));
        let entries = shard.entry(session).or_default();
        let is_new = !entries.iter().any(is_same);
        if is_new {
            entries.push(entry);
        }
        is_new
    }

    pub(super) fn find(&self, session: SessionKey, is: impl Fn(&T) -> bool) -> Option<T> {
        lock(self.shard(session))
            .get(&session)?
            .iter()
            .find(|entry| is(entry))
            .cloned()
    }

    pub(super) fn of(&self, session: SessionKey) -> Vec<T> {
        lock(self.shard(session))
            .get(&session)
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn remove(&self, session: SessionKey, is: impl Fn(&T) -> bool) {
        let mut shard = lock(self.shard(session));
        if let Some(entries) = shard.get_mut(&session) {
            entries.retain(|entry| !is(entry));
            if entries.is_empty() {
                shard.remove(&session);
            }
        }
    }

    pub(super) fn all(&self) -> Vec<T> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(lock(shard).values().flatten().cloned());
        }
        all
    }
}
