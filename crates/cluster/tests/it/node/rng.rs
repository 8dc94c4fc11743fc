//! Random schedule of a run: the same seed gives the same numbers.
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::time::Duration;

/// A sequence of random numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct NodeRng(pub(super) u64);

impl NodeRng {
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    pub(super) fn ms(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}
