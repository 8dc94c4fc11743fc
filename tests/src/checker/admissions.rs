//! TEST-C11: over any window no more calls are let in than `burst + rate · (window + 1 s) + nodes`,
//! and what each node may add by itself while the store is away (STREAM-16.1).

use super::{Faults, Report};
use crate::history::{Line, What};

/// How long a leased token lives, milliseconds.
const LEASE: f64 = 1_000.0;
/// A minute, milliseconds.
const MINUTE: f64 = 60_000.0;

/// A limit that was set.
#[derive(Debug, Clone, Copy)]
struct Limit<'h> {
    calls: &'h str,
    since: u64,
    per_minute: u64,
    nodes: u64,
    at_a_time: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds and calls of one run are far from 2^52"
)]
fn float(number: u64) -> f64 {
    number as f64
}

impl Limit<'_> {
    fn burst(self) -> f64 {
        float(self.per_minute)
    }

    /// Calls in so many milliseconds.
    fn rate(self, millis: f64) -> f64 {
        self.burst() / MINUTE * millis
    }

    /// How many calls may arrive from `from` to `until`, both included, while nothing is broken.
    fn allows(self, (from, until): (u64, u64)) -> f64 {
        let window = float(until - from);
        // Those under way when the window begins were let in before it.
        let beside = float(self.nodes) + float(self.at_a_time);
        self.burst() + self.rate(window + LEASE) + beside
    }

    /// The same with what was broken.
    fn bears(self, (from, until): (u64, u64), faults: &Faults) -> f64 {
        let nodes = float(self.nodes);
        let mut most = self.allows((from, until));
        for ((gone, back), dead) in faults.alone() {
            // Until a node has noticed that the store is back.
            let back = back.saturating_add(super::faults::NOTICES);
            if gone > until || back < from {
                continue;
            }
            let alone = float(back.min(until).saturating_sub(gone.max(from)));
            let known = self.nodes.saturating_sub(dead as u64).max(1);
            most += (self.burst() + self.rate(alone)) * nodes / float(known);
        }
        for (lost, back) in faults.forgotten() {
            if lost <= until && back >= from {
                // The next store does not know the requests that were admitted meanwhile, at most
                // the size of the bucket.
                most += self.burst();
            }
        }
        // A node that begins owes nothing: the first call of a key is let in at once.
        most + float(faults.starts((from, until)) as u64)
    }
}

pub(super) fn check(report: &mut Report, lines: &[Line], faults: &Faults) {
    let limits = lines.iter().filter_map(|line| match &line.what {
        What::Limited {
            calls,
            per_minute,
            nodes,
            at_a_time,
        } => Some(Limit {
            calls,
            since: line.at,
            per_minute: *per_minute,
            nodes: *nodes,
            at_a_time: *at_a_time,
        }),
        _ => None,
    });
    for limit in limits {
        let arrivals: Vec<u64> = lines
            .iter()
            .filter(|line| line.at >= limit.since)
            .filter_map(|line| match &line.what {
                What::Reached { call } => {
                    let word = call.split('-').next().unwrap_or_default();
                    (word == limit.calls).then_some(line.at)
                }
                _ => None,
            })
            .collect();
        report.admissions += arrivals.len();
        for (index, from) in arrivals.iter().enumerate() {
            let late = arrivals[index..].iter().zip(1_u64..);
            let mut over = late.filter(|(until, count)| {
                let (window, count) = ((*from, **until), float(*count));
                // First what spares most windows the rest.
                count > limit.allows(window) && count > limit.bears(window, faults)
            });
            if let Some((until, count)) = over.next() {
                let most = limit.bears((*from, *until), faults);
                report.broken(
                    "C11",
                    format!(
                        "{count} calls of {} were let in from {from} to {until}, and no more than {most:.0} may be",
                        limit.calls
                    ),
                );
                break;
            }
        }
    }
}
