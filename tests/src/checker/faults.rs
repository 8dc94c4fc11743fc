//! The faults of a history, and the findings that they explain. A fault explains findings between
//! its beginning and its end, and for as long afterwards as the design says; never those in the
//! rest of the run.

use crate::history::{FaultKind, Line, What};

use super::{CALL_LOST, NODE_LOST, STREAM_LOST};

/// A node that lost the store suspects no other node for this long afterwards, milliseconds
/// (STREAM-12.1). Within it, clients are notified of lost or refused writes, which are repaired.
const SUSPECTS_NOBODY: u64 = 12_000;
/// Sessions that a node knows are served for this long without the store, milliseconds (STREAM-17.1).
const SESSION_GRACE: u64 = 30_000;
/// After a fault everything works again within this time, milliseconds (TEST-C13).
const RECOVERS: u64 = 10_000;
/// A node has noticed by then that the store is back, milliseconds: a command that was not answered is given up after one second, and then
/// it connects anew. The line of a fault may be so much older than the fault.
pub(super) const NOTICES: u64 = 3_000;
/// An answer whose question is not known is tried again for so long, by the node that took it, milliseconds (STREAM-17.1).
const ANSWER_WAITS: u64 = 20_000;
/// Longest time by which a write that a replica lacks may precede the cut of its replication,
/// milliseconds.
const BEHIND: u64 = 1_000;

/// Longest time from the sending of a request until a node reads it, milliseconds.
const ON_ITS_WAY: u64 = 1_000;

/// From, until, milliseconds.
type Span = (u64, u64);

fn touches((from, until): Span, (began, ended): Span, slack: u64) -> bool {
    from <= ended && began <= until.saturating_add(slack)
}

/// Ends what has not ended.
fn close(spans: &mut [Span], at: u64) {
    for span in spans.iter_mut().filter(|span| span.1 == u64::MAX) {
        span.1 = at;
    }
}

/// Ends the oldest open span. If two stores take over one after the other, the writes that the
/// second one lacks are open until then.
fn close_first(spans: &mut [Span], at: u64) {
    if let Some(span) = spans.iter_mut().find(|span| span.1 == u64::MAX) {
        span.1 = at;
    }
}

/// Gathered from the lines.
#[derive(Debug, Default)]
pub(super) struct Faults {
    any: Vec<Span>,
    nodes: Vec<Span>,
    away: Vec<Span>,
    full: Vec<Span>,
    /// Nodes that receive no messages of others.
    deaf: Vec<Span>,
    database: Vec<Span>,
    emptied: Vec<u64>,
    /// From the first write that was lost, until another store took over.
    forgot: Vec<Span>,
}

impl Faults {
    pub(super) fn read(lines: &[Line]) -> Self {
        let mut faults = Self::default();
        for line in lines {
            let What::Fault(fault) = &line.what else {
                continue;
            };
            let (at, open) = (line.at, (line.at, u64::MAX));
            match fault.kind {
                FaultKind::Over => {
                    for spans in [
                        &mut faults.any,
                        &mut faults.nodes,
                        &mut faults.away,
                        &mut faults.full,
                        &mut faults.deaf,
                        &mut faults.database,
                    ] {
                        close(spans, at);
                    }
                    continue;
                }
                FaultKind::StoreBack => {
                    close(&mut faults.away, at);
                    continue;
                }
                FaultKind::StoreRolledBack => close_first(&mut faults.forgot, at),
                FaultKind::StoreForgets => faults.forgot.push(open),
                FaultKind::StoreAway => faults.away.push(open),
                FaultKind::StoreEmptied => faults.emptied.push(at),
                FaultKind::StoreFull => faults.full.push(open),
                FaultKind::Node => faults.nodes.push(open),
                FaultKind::Doorbells => faults.deaf.push(open),
                FaultKind::Database => faults.database.push(open),
                FaultKind::Other => {}
            }
            faults.any.push(open);
        }
        faults
    }

    /// When the store was another one, or empty.
    fn losses(&self) -> impl Iterator<Item = Span> {
        let emptied = self.emptied.iter().map(|at| (*at, *at));
        self.forgot.iter().copied().chain(emptied)
    }

    /// TEST-C15: may a call that ran so end with this error of ours? A node is lost to clients
    /// whose calls it ran, and to nodes that received no message of it. A stream is lost with the
    /// store, or if the store did not accept it.
    pub(super) fn explain(&self, code: i64, call: Span) -> bool {
        let node = self.nodes.iter().any(|span| touches(*span, call, NOTICES));
        let mut store = self.away.iter().copied().chain(self.losses());
        let full = code == STREAM_LOST && touches_any(&self.full, call, SUSPECTS_NOBODY);
        match code {
            NODE_LOST | CALL_LOST | STREAM_LOST => {
                node || full || store.any(|span| touches(span, call, SUSPECTS_NOBODY))
            }
            _ => true,
        }
    }

    /// TEST-C4: may events be missing that a call had until then, if a notice reports it?
    pub(super) fn excuse_gap(&self, until_then: Span) -> bool {
        touches_any(&self.away, until_then, SUSPECTS_NOBODY)
            || touches_any(&self.full, until_then, SUSPECTS_NOBODY)
            || self
                .losses()
                .any(|span| touches(span, until_then, SUSPECTS_NOBODY))
    }

    /// TEST-C2: how often the store went back while a stream was there.
    pub(super) fn roll_backs(&self, (began, until): Span) -> usize {
        let forgot = self.forgot.iter();
        forgot
            .filter(|(_, back)| began <= back.saturating_add(NOTICES) && *back <= until)
            .count()
    }

    /// TEST-C5: how much longer a call may take: while the store is away, and until nodes trust its
    /// records about each other, no node takes over from a lost one.
    pub(super) fn delay(&self, (began, ended): Span) -> u64 {
        let mut deaf: Vec<Span> = self.away.clone();
        // While it forgets it answers.
        deaf.extend(self.losses().map(|(_, until)| (until, until)));
        deaf.retain(|span| touches(*span, (began, ended), SUSPECTS_NOBODY));
        deaf.sort_unstable();
        let mut whole: Vec<Span> = Vec::new();
        for span in deaf {
            match whole.last_mut() {
                Some(last) if span.0 <= last.1.saturating_add(SUSPECTS_NOBODY) => {
                    last.1 = last.1.max(span.1);
                }
                _ => whole.push(span),
            }
        }
        whole
            .iter()
            .map(|(from, until)| {
                ended.min(*until).saturating_sub(began.max(*from)) + SUSPECTS_NOBODY
            })
            .sum()
    }

    /// TEST-C9: may a session that was deleted at some moment of `deleted` still be served to a
    /// call that began at `at`? Its end was lost, or it is served for a while by a node that cannot
    /// ask.
    pub(super) fn excuse_revival(&self, deleted: Span, at: u64) -> bool {
        let was_lost = self
            .forgot
            .iter()
            .any(|(from, until)| touches((from.saturating_sub(BEHIND), *until), deleted, 0));
        // A held node reads the requests to it when it goes on.
        let held = self
            .nodes
            .iter()
            .filter(|span| touches(**span, (at, at), ON_ITS_WAY));
        let looked_at = held.fold(at, |last, (_, until)| last.max(*until));
        let in_grace = self.away.iter().any(|(gone, back)| {
            let last = back
                .min(&gone.saturating_add(SESSION_GRACE))
                .saturating_add(NOTICES);
            gone.saturating_sub(ON_ITS_WAY) <= looked_at && at <= last
        });
        was_lost || in_grace || self.emptied.iter().any(|emptied| *emptied >= deleted.0)
    }

    /// TEST-C7: may an answer be lost that was taken? With the node of its call, or with what the
    /// store lost. A store that takes none loses none.
    pub(super) fn excuse_lost_answer(&self, call: Span) -> bool {
        self.explain(NODE_LOST, call)
    }

    /// TEST-C5: may a call wait in vain for an answer? The store lost the answer before its call
    /// had it; or did not have the question, so that a node kept the answer, and that node or the
    /// one that asked was lost. An answer that was not accepted needs only a store that accepted
    /// nothing.
    pub(super) fn excuse_unheard(&self, asked: u64, taken: Option<u64>) -> bool {
        let at = taken.unwrap_or(asked);
        let refused = [&self.full, &self.away]
            .into_iter()
            .any(|spans| touches_any(spans, (asked, asked), NOTICES));
        let lost_question = refused || self.lost_records((asked, at));
        let lost_answer = self
            .losses()
            .any(|span| touches(span, (at, at.saturating_add(NOTICES)), NOTICES));
        let lost_node = touches_any(&self.nodes, (at, at.saturating_add(ANSWER_WAITS)), 0);
        lost_answer || lost_question && (lost_node || taken.is_none())
    }

    /// TEST-C10: did the store lose the record of a session in this time?
    pub(super) fn lost_records(&self, time: Span) -> bool {
        self.losses().any(|span| touches(span, time, NOTICES))
    }

    /// TEST-C8: may a call run on that was cancelled, `call` being its life until then? The node
    /// that runs it is gone or receives no messages, or the store does not know where it runs.
    pub(super) fn excuse_late_cancel(&self, call: Span) -> bool {
        let mut all = self
            .nodes
            .iter()
            .chain(&self.away)
            .chain(&self.full)
            .chain(&self.deaf)
            .copied()
            .chain(self.losses());
        all.any(|span| touches(span, call, NOTICES))
    }

    /// TEST-C10: may news be late, or come once more, in this time? A held node notifies no client,
    /// and without the database no node learns of a change. Redis has no part in it (STREAM-17.1).
    pub(super) fn excuse_late_news(&self, time: Span) -> bool {
        touches_any(&self.nodes, time, 0) || touches_any(&self.database, time, 0)
    }

    /// TEST-C11: when nodes counted each for itself, and how many of them were not there when that
    /// began.
    pub(super) fn alone(&self) -> impl Iterator<Item = (Span, usize)> {
        self.away.iter().map(|(from, until)| {
            let dead = |node: &&Span| touches(**node, (*from, *from), SUSPECTS_NOBODY);
            ((*from, *until), self.nodes.iter().filter(dead).count())
        })
    }

    /// TEST-C11: when the store began to forget what had been let in, until it was another one or
    /// empty.
    pub(super) fn forgotten(&self) -> impl Iterator<Item = Span> {
        self.losses()
            .map(|(from, until)| (from.saturating_sub(BEHIND), until))
    }

    /// TEST-C11: nodes that began anew in this time.
    pub(super) fn starts(&self, time: Span) -> usize {
        let nodes = self.nodes.iter();
        nodes.filter(|span| touches(**span, time, 0)).count()
    }

    /// TEST-C14: may requests be put off in this time? Where the store or the database is away,
    /// slow, full or another one (TEST-F4 to TEST-F9), and where all nodes but one died together
    /// (TEST-F14).
    pub(super) fn excuse_503(&self, time: Span) -> bool {
        let together = self.nodes.windows(2).filter(|two| two[1].0 < two[0].1);
        let mut all = self
            .away
            .iter()
            .chain(&self.full)
            .chain(&self.database)
            .copied()
            .chain(self.losses())
            .chain(together.map(|two| two[0]));
        all.any(|span| touches(span, time, RECOVERS))
    }

    /// Whether anything was broken then, or a moment before.
    pub(super) fn holds(&self, at: u64) -> bool {
        touches_any(&self.any, (at, at), RECOVERS)
    }
}

fn touches_any(spans: &[Span], call: Span, slack: u64) -> bool {
    spans.iter().any(|span| touches(*span, call, slack))
}
