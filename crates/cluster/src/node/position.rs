//! Position of a client's connection in its stream, and the meaning of a reply of the store for it
//! (STREAM-8.1 to STREAM-8.4).

use crate::{
    fork,
    store::{Cursor, Epoch, View},
};

/// Position in a stream, for the connection and for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// The last event that the client received. It shows this cursor when it reconnects.
    pub(super) cursor: Cursor,
    /// The event before the next one: the cursor, or the point to which the connection was moved.
    pub(super) at: Cursor,
    /// Number up to which the client received gap notices.
    told: u64,
}

/// Meaning of a reply of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// A newer connection of the client holds the stream.
    Superseded,
    /// The store lost our attachment: attach again.
    Forgotten,
    /// The store lost the takeover in whose epoch the client's last event was written.
    LostTakeover,
    /// The position is on a branch that no longer exists, and was moved. Send a gap notice and read
    /// again.
    Moved {
        /// The number after which the client continues.
        to: u64,
    },
    /// Events that the client has not received were dropped.
    Dropped,
    /// The events of the reply follow the position.
    Follows,
}

impl Position {
    /// Position of a reconnecting client, from the cursor that it shows.
    pub(super) const fn shown(cursor: Cursor) -> Self {
        Self {
            cursor,
            at: cursor,
            told: 0,
        }
    }

    /// Position before the first event of a new stream.
    pub(super) const fn start() -> Self {
        Self::shown(Cursor {
            seq: 0,
            epoch: None,
        })
    }

    /// Moves to the position from which `attach` read.
    pub(super) fn attached(&mut self, position: u64, view: &View) {
        self.move_to(position, view);
    }

    /// Evaluates a reply. `generation` is the connection's.
    pub(super) fn judge(&mut self, generation: u64, view: &View) -> Judgement {
        if view.generation > generation {
            return Judgement::Superseded;
        }
        if view.generation < generation {
            return Judgement::Forgotten;
        }
        if self
            .cursor
            .epoch
            .is_some_and(|seen| seen.term > view.epoch.term)
        {
            return Judgement::LostTakeover;
        }
        let (to, is_split) = fork::place(self.at, &view.epochs);
        if is_split {
            self.move_to(to, view);
            return Judgement::Moved { to };
        }
        if view.dropped > self.at.seq && view.dropped > self.told {
            self.told = view.dropped;
            return Judgement::Dropped;
        }
        Judgement::Follows
    }

    fn move_to(&mut self, seq: u64, view: &View) {
        let epoch = if seq == self.at.seq && self.at.epoch.is_some() {
            // A position that was not moved may be beyond the end of the log, where its epoch
            // cannot be derived.
            let (_, is_split) = fork::place(self.at, &view.epochs);
            if is_split {
                Some(fork::attempt_of(seq, &view.epochs))
            } else {
                self.at.epoch
            }
        } else {
            Some(fork::attempt_of(seq, &view.epochs))
        };
        self.at = Cursor { seq, epoch };
    }

    /// Records an event that was delivered to the client.
    pub(super) fn wrote(&mut self, seq: u64, epoch: Epoch) {
        self.at = Cursor {
            seq,
            epoch: Some(epoch),
        };
        self.cursor = self.at;
    }

    /// Whether the event is the next one.
    pub(super) const fn is_next(&self, seq: u64) -> bool {
        seq == self.at.seq + 1
    }

    /// Records that all retained events were delivered. Events in between were dropped, and the
    /// client received a gap notice.
    pub(super) fn reached(&mut self, tail: u64, view: &View) {
        if tail > self.at.seq {
            self.move_to(tail, view);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::StreamState;

    const fn epoch(term: u32, nonce: u16) -> Epoch {
        Epoch { term, nonce }
    }

    fn view(generation: u64, tail: u64, dropped: u64, epochs: &[(u64, Epoch)]) -> View {
        View {
            owner: None,
            state: StreamState::Open,
            tail,
            dropped,
            generation,
            epoch: epochs.last().map_or(Epoch::FIRST, |last| last.1),
            epochs: epochs.to_vec(),
            deadline_in: Duration::ZERO,
            events: Vec::new(),
            more: false,
        }
    }

    fn at(seq: u64, of: Epoch) -> Position {
        Position::shown(Cursor {
            seq,
            epoch: Some(of),
        })
    }

    #[test]
    fn a_newer_generation_supersedes_and_an_older_one_was_forgotten() {
        let mut position = Position::start();
        assert_eq!(
            position.judge(1, &view(2, 0, 0, &[])),
            Judgement::Superseded
        );
        assert_eq!(position.judge(3, &view(2, 0, 0, &[])), Judgement::Forgotten);
    }

    #[test]
    fn an_attempt_below_that_of_the_last_event_seen_is_a_lost_adoption_even_after_a_move() {
        let second = epoch(2, 7);
        let mut position = at(5, second);
        assert_eq!(
            position.judge(1, &view(1, 5, 0, &[])),
            Judgement::LostTakeover
        );
        // The position was moved to another history. The client still has the event of epoch 2.
        assert_eq!(
            position.judge(1, &view(1, 5, 0, &[(3, epoch(2, 8))])),
            Judgement::Moved { to: 3 }
        );
        assert_eq!(position.at.seq, 3);
        assert_eq!(position.at.epoch, Some(Epoch::FIRST));
        assert_eq!(
            position.judge(1, &view(1, 5, 0, &[])),
            Judgement::LostTakeover
        );
    }

    #[test]
    fn a_moved_place_lies_in_the_history_it_was_moved_to() {
        let mut position = at(9, Epoch::FIRST);
        let history = [(4, epoch(2, 1)), (6, epoch(3, 2))];
        assert_eq!(
            position.judge(1, &view(1, 8, 0, &history)),
            Judgement::Moved { to: 4 }
        );
        assert_eq!(
            position.judge(1, &view(1, 8, 0, &history)),
            Judgement::Follows
        );
    }

    #[test]
    fn the_client_is_told_once_of_each_gap() {
        let mut position = at(2, Epoch::FIRST);
        assert_eq!(position.judge(1, &view(1, 9, 5, &[])), Judgement::Dropped);
        assert_eq!(position.judge(1, &view(1, 9, 5, &[])), Judgement::Follows);
        assert_eq!(position.judge(1, &view(1, 9, 7, &[])), Judgement::Dropped);
        position.wrote(9, Epoch::FIRST);
        assert_eq!(position.judge(1, &view(1, 9, 8, &[])), Judgement::Follows);
    }

    #[test]
    fn a_cursor_beyond_the_log_is_held_where_it_is() {
        let mut position = at(9, Epoch::FIRST);
        let short = view(1, 4, 0, &[]);
        position.attached(9, &short);
        assert_eq!(position.judge(1, &short), Judgement::Follows);
        assert_eq!(position.at.seq, 9);
        position.reached(4, &short);
        assert_eq!(position.at.seq, 9);
    }
}
