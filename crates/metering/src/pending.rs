//! Drained counts until they are written.
//!
//! Only the first batch was ever tried, so only its fate can be unknown: it is tried again as it
//! is, under its own number, and the database takes it once (METER-6). All later ones may still
//! grow, so that an outage costs memory by keys and not by time.

use std::collections::VecDeque;

use crate::{Rollup, rollup};

/// Rows that wait at most before minutes are summed up.
const MOST_ROWS: usize = 200_000;

/// Counts of one minute.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its number: each of a process is written once, in this order.
    pub seq: i64,
    /// The minute, since the epoch.
    pub minute: i64,
    /// The counts.
    pub rollup: Rollup,
    is_tried: bool,
}

/// The batches of a process, oldest first.
#[derive(Debug, Default)]
pub struct Pending {
    batches: VecDeque<Batch>,
    last: i64,
}

impl Pending {
    /// Adds drained counts of a minute.
    pub fn add(&mut self, minute: i64, rollup: Rollup) {
        if rollup.is_empty() {
            return;
        }
        match self.batches.back_mut() {
            Some(last) if !last.is_tried && last.minute == minute => last.rollup.merge(rollup),
            _ => {
                self.last += 1;
                self.batches.push_back(Batch {
                    seq: self.last,
                    minute,
                    rollup,
                    is_tried: false,
                });
            }
        }
        if self.rows() > MOST_ROWS {
            self.shrink();
        }
    }

    /// Rows that wait.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.rollup.len()).sum()
    }

    /// Calls that wait.
    pub fn calls(&self) -> u64 {
        self.batches.iter().map(|batch| batch.rollup.calls()).sum()
    }

    /// The batch to write now. It stays until [`Self::written`].
    pub fn next_batch(&mut self) -> Option<&Batch> {
        let first = self.batches.front_mut()?;
        first.is_tried = true;
        Some(first)
    }

    /// The batch of [`Self::next_batch`] is in the database.
    pub fn written(&mut self) {
        self.batches.pop_front();
    }

    /// Sums up all batches that were not tried, under the minute of the last one.
    fn shrink(&mut self) {
        let tried = self.batches.front().is_some_and(|batch| batch.is_tried);
        let rest = self.batches.split_off(usize::from(tried));
        let Some(last) = rest.back() else { return };
        let (seq, minute) = (last.seq, last.minute);
        let mut rollup = Rollup::default();
        for batch in rest {
            rollup.merge(batch.rollup);
        }
        self.batches.push_back(Batch {
            seq,
            minute,
            rollup: rollup.capped(rollup::MOST_KEYS),
            is_tried: false,
        });
    }
}
