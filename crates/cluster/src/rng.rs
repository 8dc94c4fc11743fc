//! Random values that must differ between nodes. They are not used for secrets.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use foldhash::{SharedSeed, fast::SeedableRandomState};
use uuid::Uuid;

use crate::store::NodeId;

/// Digits of base 32, as in node ids.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Source of a node's random values.
#[derive(Debug)]
pub(crate) enum NodeRng {
    /// The operating system's generator.
    System,
    /// A seeded generator: the same seed gives the same values.
    Seed(AtomicU64),
}

impl NodeRng {
    /// Creates the source for [`super::NodeSettings::seed`].
    pub(crate) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::System, |seed| Self::Seed(AtomicU64::new(seed)))
    }

    fn bits(&self) -> u64 {
        match self {
            Self::System => {
                let (high, low) = Uuid::new_v4().as_u64_pair();
                // The UUID's version and variant bits are at different positions of the two halves.
                high.rotate_left(32) ^ low
            }
            Self::Seed(state) => next(state),
        }
    }

    /// A new node's id.
    pub(crate) fn node_id(&self) -> NodeId {
        let (mut low, mut high) = (self.bits(), self.bits());
        let mut id = [b'n'; 14];
        for digit in &mut id[1..] {
            *digit = DIGITS[usize::from((low & 31) as u8)];
            low = (low >> 5) | (high << 59);
            high >>= 5;
        }
        NodeId(id)
    }

    /// Draws the nonce of an epoch. Never 0, which is the nonce of the first epoch.
    pub(crate) fn nonce(&self) -> u16 {
        let nonce = self.bits().to_le_bytes();
        u16::from_le_bytes([nonce[0], nonce[1]]).max(1)
    }

    /// Shortens `period` by up to a third, so that nodes do not act in lockstep.
    pub(crate) fn spread(&self, period: Duration) -> Duration {
        let share = u32::from(self.bits().to_le_bytes()[0]);
        period.saturating_sub(period / 3 * share / 255)
    }

    /// Hasher for maps that are iterated. It is random, so that a client cannot choose keys that
    /// collide. With a seed, the iteration order is reproducible.
    pub(crate) fn hashing(&self) -> SeedableRandomState {
        match self {
            Self::System => SeedableRandomState::random(),
            Self::Seed(state) => {
                SeedableRandomState::with_seed(next(state), SharedSeed::global_fixed())
            }
        }
    }
}

/// Draws the id of a process that uses the store like a node but is not a member.
pub(crate) fn node_id() -> NodeId {
    NodeRng::System.node_id()
}

/// Returns the next number of a pseudo-random sequence; the same start gives the same sequence
/// (`SplitMix64`).
pub(crate) fn next(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_ids_are_an_n_and_13_base_32_characters_and_differ() {
        let id = node_id();
        assert_eq!(id.0[0], b'n');
        assert!(id.0[1..].iter().all(|c| DIGITS.contains(c)));
        assert_ne!(id, node_id());
    }

    #[test]
    fn no_mark_is_that_of_the_first_attempt() {
        assert!((0..1000).all(|_| NodeRng::System.nonce() != 0));
    }

    #[test]
    fn the_same_seed_leads_to_the_same_values() {
        let drawn = |seed| {
            let rng = NodeRng::new(Some(seed));
            (rng.node_id(), rng.nonce(), rng.node_id())
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
