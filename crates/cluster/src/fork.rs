//! Positions in a stream after the store lost a branch of it
//! (STREAM-8.3, STREAM-11 *Two histories*).
//!
//! A store that loses writes around a takeover may have given the same numbers to two owners. Each
//! epoch has the number after which it began and a random nonce. They show whether a client's
//! cursor is in the current history.

use crate::store::{Cursor, Epoch};

/// Returns the position after which a client continues, and whether its cursor is on a branch that
/// the store lost. The client then needs a gap notice. `epochs` are those above 1, in order.
///
/// A cursor of a higher epoch than the stream's is returned as it is: its stream has to be taken
/// over first (STREAM-8.2).
///
/// `attach.lua` has the same rules; random walks compare both (`tests/it/differential.rs`).
pub fn place(cursor: Cursor, epochs: &[(u64, Epoch)]) -> (u64, bool) {
    let Some(shown) = cursor.epoch else {
        return (cursor.seq, false);
    };
    let (mut position, mut split) = (cursor.seq, false);
    let mut known = shown.term <= 1;
    for (start, epoch) in epochs {
        if epoch.term < shown.term {
            continue;
        }
        if epoch.term == shown.term {
            known = true;
            if epoch.nonce != shown.nonce {
                // Another history: the common part ends where this epoch begins, at the latest.
                position = position.min(*start);
                split = true;
            } else if position < *start {
                position = *start;
                split = true;
            }
            continue;
        }
        // The next epoch: the shown one ended where it begins.
        if position > *start || !known {
            position = position.min(*start);
            split = true;
        }
        break;
    }
    (position, split)
}

/// The epoch in which the event `seq` was written.
pub fn attempt_of(seq: u64, epochs: &[(u64, Epoch)]) -> Epoch {
    epochs
        .iter()
        .rev()
        .find(|(start, _)| *start < seq)
        .map_or(Epoch::FIRST, |(_, epoch)| *epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn epoch(term: u32, nonce: u16) -> Epoch {
        Epoch { term, nonce }
    }

    fn shown(seq: u64, term: u32, nonce: u16) -> Cursor {
        Cursor {
            seq,
            epoch: Some(epoch(term, nonce)),
        }
    }

    #[test]
    fn cursors_of_a_lost_branch_are_moved_to_the_fork() {
        let epochs = [(10, epoch(2, 7)), (20, epoch(4, 9))];
        let cases = [
            (
                "no event shown",
                Cursor {
                    seq: 0,
                    epoch: None,
                },
                (0, false),
            ),
            ("first attempt, within", shown(10, 1, 0), (10, false)),
            ("first attempt, beyond its end", shown(11, 1, 0), (10, true)),
            ("second, within", shown(15, 2, 7), (15, false)),
            ("second, at its start", shown(10, 2, 7), (10, false)),
            ("second, below its start", shown(9, 2, 7), (10, true)),
            ("second, another nonce", shown(15, 2, 8), (10, true)),
            (
                "second, another nonce, far below",
                shown(5, 2, 8),
                (5, true),
            ),
            ("second, beyond its end", shown(21, 2, 7), (20, true)),
            (
                "third, which this history skipped",
                shown(18, 3, 1),
                (18, true),
            ),
            ("third, beyond the fourth", shown(28, 3, 1), (20, true)),
            ("fourth, within", shown(99, 4, 9), (99, false)),
            (
                "higher than the stream's: to be adopted",
                shown(30, 5, 1),
                (30, false),
            ),
        ];
        for (case, cursor, expected) in cases {
            assert_eq!(place(cursor, &epochs), expected, "{case}");
        }
    }

    #[test]
    fn an_event_belongs_to_the_last_attempt_that_began_before_it() {
        let epochs = [(10, epoch(2, 7)), (10, epoch(3, 8)), (20, epoch(4, 9))];
        assert_eq!(attempt_of(10, &epochs), Epoch::FIRST);
        assert_eq!(attempt_of(11, &epochs), epoch(3, 8));
        assert_eq!(attempt_of(21, &epochs), epoch(4, 9));
    }
}
