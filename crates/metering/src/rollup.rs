//! Sums by key, merged from many rows.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use portolan_model::id::TenantId;

use crate::{Key, Totals, key::OTHER};

/// Most keys of one tenant in a minute, an hour or a day; the rest is summed under [`OTHER`].
pub const MOST_KEYS: usize = 20_000;

/// Sums by key.
#[derive(Debug, Clone, Default)]
pub struct Rollup {
    sums: HashMap<Key, Totals, foldhash::fast::RandomState>,
}

impl Rollup {
    /// Adds sums of a key.
    pub fn add(&mut self, key: Key, totals: &Totals) {
        match self.sums.entry(key) {
            Entry::Occupied(mut there) => there.get_mut().merge(totals),
            Entry::Vacant(free) => {
                free.insert(totals.clone());
            }
        }
    }

    /// Adds all of another one.
    pub fn merge(&mut self, other: Self) {
        for (key, totals) in other.sums {
            self.add(key, &totals);
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// True if it has no key.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Keys and sums, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Totals)> {
        self.sums.iter()
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.sums.values().map(|totals| totals.calls).sum()
    }

    /// Sums the keys of a tenant beyond `most`, those with the fewest calls first, under
    /// [`OTHER`] (METER-5). No call is lost.
    #[must_use]
    pub fn capped(self, most: usize) -> Self {
        let mut keys: HashMap<TenantId, usize> = HashMap::new();
        for key in self.sums.keys() {
            *keys.entry(key.tenant).or_default() += 1;
        }
        if keys.values().all(|count| *count <= most) {
            return self;
        }
        let other: Arc<str> = OTHER.into();
        let mut rows: Vec<(Key, Totals)> = self.sums.into_iter().collect();
        rows.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.calls));
        let mut capped = Self::default();
        let mut kept: HashMap<TenantId, usize> = HashMap::new();
        for (key, totals) in rows {
            let kept = kept.entry(key.tenant).or_default();
            *kept += 1;
            if *kept <= most {
                capped.add(key, &totals);
            } else {
                capped.add(key.other(&other), &totals);
            }
        }
        capped
    }
}

/// A rollup that keeps to a cap while rows are added: its memory grows with tenants, and not with
/// the keys that their callers make up (METER-5).
#[derive(Debug)]
pub struct CappedRollup {
    rollup: Rollup,
    most: usize,
    /// The number of keys at which it is capped again. It doubles, so that rollups of many tenants
    /// are not looked through at each key.
    cap_at: usize,
}

impl CappedRollup {
    /// With at most `most` keys of a tenant in the end.
    pub fn new(most: usize) -> Self {
        Self {
            rollup: Rollup::default(),
            most,
            cap_at: most.saturating_mul(4),
        }
    }

    /// Adds sums of a key.
    pub fn add(&mut self, key: Key, totals: &Totals) {
        self.rollup.add(key, totals);
        if self.rollup.len() > self.cap_at {
            // Twice the cap: a key with few calls so far may have many in the end.
            let most = self.most.saturating_mul(2);
            self.rollup = std::mem::take(&mut self.rollup).capped(most);
            self.cap_at = self.rollup.len().max(most).saturating_mul(2);
        }
    }

    /// The number of keys so far.
    pub fn len(&self) -> usize {
        self.rollup.len()
    }

    /// True if it has no key.
    pub fn is_empty(&self) -> bool {
        self.rollup.is_empty()
    }

    /// The sums, with at most as many keys of a tenant as wanted, and those of the rest.
    pub fn finish(self) -> Rollup {
        self.rollup.capped(self.most)
    }
}

impl FromIterator<(Key, Totals)> for Rollup {
    fn from_iter<I: IntoIterator<Item = (Key, Totals)>>(rows: I) -> Self {
        let mut rollup = Self::default();
        for (key, totals) in rows {
            rollup.add(key, &totals);
        }
        rollup
    }
}
