//! Random values that must differ between nodes. Nothing secret is drawn here.

use std::time::Duration;

use uuid::Uuid;

use crate::store::NodeId;

/// Digits of base 32, as in node ids.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 64 random bits, from the operating system's generator.
fn bits() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // Version and variant sit in different bits of the two halves.
    high.rotate_left(32) ^ low
}

/// A new node's id.
pub(crate) fn node_id() -> NodeId {
    let (mut low, mut high) = (bits(), bits());
    let mut id = [b'n'; 14];
    for digit in &mut id[1..] {
        *digit = DIGITS[usize::from((low & 31) as u8)];
        low = (low >> 5) | (high << 59);
        high >>= 5;
    }
    NodeId(id)
}

/// The mark of an attempt; never 0, which is the first attempt's.
pub(super) fn mark() -> u16 {
    let mark = bits().to_le_bytes();
    u16::from_le_bytes([mark[0], mark[1]]).max(1)
}

/// `period` shortened by up to a third, so that nodes do not walk in step.
pub(super) fn spread(period: Duration) -> Duration {
    let share = u32::from(bits().to_le_bytes()[0]);
    period.saturating_sub(period / 3 * share / 255)
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
        assert!((0..1000).all(|_| mark() != 0));
    }
}
