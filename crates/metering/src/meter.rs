//! The counts of a running node.
//!
//! A call takes whichever shard is free, beginning with that of its thread. There are more shards
//! than threads, so that one is always free, and no call waits for a lock (METER-2). A drain holds
//! one shard at a time.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
};

use portolan_model::id::TenantId;

use crate::{Key, Measures, Rollup, Totals, key::OTHER};

/// Most keys of one tenant in one shard; calls of more are counted under [`OTHER`] (METER-5).
pub const SHARD_KEYS: usize = 4_096;

/// Drains after which a key without calls is forgotten: five minutes of ten seconds.
const IDLE_DRAINS: u8 = 30;

/// The counts of a node. Every thread may record.
#[derive(Debug)]
pub struct Meter {
    shards: Box<[Shard]>,
    other: Arc<str>,
    most_keys: usize,
}

/// Padded to two lines of the cache, so that threads do not share one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<ShardCounts>);

#[derive(Debug, Default)]
struct ShardCounts {
    cells: HashMap<Key, Tally, foldhash::fast::RandomState>,
    /// Keys of each tenant, without those of [`OTHER`].
    keys: HashMap<TenantId, usize, foldhash::fast::RandomState>,
}

#[derive(Debug, Default)]
struct Tally {
    totals: Totals,
    /// Drains since the last call.
    idle: u8,
}

/// The first shard that a thread tries.
fn home() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: Cell<Option<usize>> = const { Cell::new(None) };
    }
    HOME.with(|home| {
        home.get().unwrap_or_else(|| {
            let new = NEXT.fetch_add(1, Ordering::Relaxed);
            home.set(Some(new));
            new
        })
    })
}

impl Meter {
    /// For so many threads that record at once.
    pub fn new(threads: usize) -> Self {
        Self::with_cap(threads, SHARD_KEYS)
    }

    /// With another cap of keys.
    pub fn with_cap(threads: usize, most_keys: usize) -> Self {
        let shards = (threads + 2).next_power_of_two();
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            other: OTHER.into(),
            most_keys,
        }
    }

    /// ShardCounts a call.
    pub fn record(&self, key: Key, call: Measures) {
        let mut shard = self.free();
        if let Some(known) = shard.cells.get_mut(&key) {
            known.totals.add(call);
            known.idle = 0;
            return;
        }
        let keys = shard.keys.entry(key.tenant).or_default();
        let key = if *keys < self.most_keys {
            *keys += 1;
            key
        } else {
            key.other(&self.other)
        };
        let counted = shard.cells.entry(key).or_default();
        counted.totals.add(call);
        counted.idle = 0;
    }

    /// A shard that nothing else holds.
    fn free(&self) -> MutexGuard<'_, ShardCounts> {
        let mut at = home();
        loop {
            match self.shards[at % self.shards.len()].0.try_lock() {
                Ok(shard) => return shard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => at = at.wrapping_add(1),
            }
        }
    }

    /// Takes all counts since the last drain. Known keys stay known.
    pub fn drain(&self) -> Rollup {
        let mut drained = Rollup::default();
        for shard in &self.shards {
            let mut shard = shard.0.lock().unwrap_or_else(PoisonError::into_inner);
            let ShardCounts { cells, keys } = &mut *shard;
            cells.retain(|key, counted| {
                if counted.totals.calls > 0 {
                    drained.add(key.clone(), &counted.totals);
                    counted.totals.clear();
                    return true;
                }
                counted.idle += 1;
                let stays = counted.idle < IDLE_DRAINS;
                if !stays
                    && *key.item != *OTHER
                    && let Some(count) = keys.get_mut(&key.tenant)
                {
                    *count -= 1;
                }
                stays
            });
            keys.retain(|_, count| *count > 0);
        }
        drained
    }
}
