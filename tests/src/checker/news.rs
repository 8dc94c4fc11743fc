//! TEST-C10: a listener is notified of every change of a list, once; and a client that reads the
//! list sees it.

use std::collections::BTreeMap;

use super::{Faults, Report};
use crate::{
    history::{Line, What},
    sse::tools_mark,
};

/// From the commit until every listener is notified, milliseconds.
const WITHIN: u64 = 10_000;
/// Until then a session whose record the store lost counts as one that has not sent
/// `notifications/initialized`, milliseconds.
const READY: u64 = 60_000;
/// The end of a stream that is still there.
const OPEN: u64 = u64::MAX;

/// One change of a list.
#[derive(Debug, Clone, Copy)]
struct Change {
    revision: u64,
    /// The first attempt.
    from: u64,
    /// When it was known to be committed.
    until: Option<u64>,
}

/// A client that is notified.
#[derive(Debug, Default)]
struct Listener<'h> {
    list: &'h str,
    /// A new stream notifies it of the changes that it missed.
    remembered: bool,
    streams: Vec<(u64, u64)>,
    /// When it was notified, and the mark of the list, if that can be seen.
    told: Vec<(u64, Option<u64>)>,
}

/// The lists and listeners in a history.
#[derive(Debug, Default)]
struct News<'h> {
    lists: BTreeMap<&'h str, Vec<Change>>,
    listeners: BTreeMap<&'h str, Listener<'h>>,
    read: Vec<(u64, &'h str, u64)>,
}

impl<'h> News<'h> {
    fn gather(lines: &'h [Line]) -> Self {
        let mut news = Self::default();
        for line in lines {
            let at = line.at;
            match &line.what {
                What::Changing { list, revision } => {
                    let changes = news.lists.entry(list).or_default();
                    if changes.iter().all(|change| change.revision != *revision) {
                        changes.push(Change {
                            revision: *revision,
                            from: at,
                            until: None,
                        });
                    }
                }
                What::Changed { list, revision } => {
                    let mut changes = news.lists.entry(list).or_default().iter_mut();
                    if let Some(change) = changes.find(|change| change.revision == *revision) {
                        change.until = Some(at);
                    }
                }
                What::Listens {
                    listener,
                    list,
                    remembered,
                } => {
                    let entry = news.listeners.entry(listener).or_default();
                    (entry.list, entry.remembered) = (list, *remembered);
                    entry.streams.push((at, OPEN));
                }
                What::Told { listener, id } => {
                    let mark = id.as_deref().and_then(tools_mark);
                    let told = &mut news.listeners.entry(listener).or_default().told;
                    told.push((at, mark));
                }
                What::Left { listener } => {
                    let streams = &mut news.listeners.entry(listener).or_default().streams;
                    if let Some(stream) = streams.last_mut().filter(|stream| stream.1 == OPEN) {
                        stream.1 = at;
                    }
                }
                What::Listed { list, revision } => news.read.push((at, list, *revision)),
                _ => {}
            }
        }
        news
    }

    fn changes(&self, list: &str) -> &[Change] {
        self.lists.get(list).map_or(&[], Vec::as_slice)
    }
}

impl Listener<'_> {
    fn was_told(&self, (from, until): (u64, u64)) -> bool {
        let mut told = self.told.iter();
        told.any(|(at, _)| (from..=until).contains(at))
    }

    /// True if the store lost the session's record in its first minute. The session is not notified
    /// until that minute is over.
    fn is_taken_for_unready(&self, due: u64, faults: &Faults) -> bool {
        let began = self.streams.first().map_or(due, |(from, _)| *from);
        self.remembered && due <= began + READY + WITHIN && faults.lost_records((began, due))
    }

    /// The time within which it must be notified of a change; none if it need not be, or was not
    /// there.
    fn must_know(&self, change: &Change) -> Option<(u64, u64)> {
        let due = change.until? + WITHIN;
        let mut streams = self.streams.iter();
        if self.remembered {
            let (first, _) = self.streams.first()?;
            if *first > change.from {
                return None;
            }
            streams.find_map(|(from, until)| {
                let due = due.max(from + WITHIN);
                (*until > due).then_some((change.from.max(*from), due))
            })
        } else {
            // A client reads the list after it began to listen.
            let mut open = streams.filter(|(from, until)| *from <= change.from && *until > due);
            open.next().map(|_| (change.from, due))
        }
    }
}

/// A node that was held, or lost the database, knows everything again after this time.
fn a_while_before(at: u64) -> (u64, u64) {
    (at.saturating_sub(WITHIN), at)
}

/// True if every client with a stream was notified of the last change of its list.
pub(super) fn everyone_knows(lines: &[Line]) -> bool {
    let news = News::gather(lines);
    news.listeners.values().all(|listener| {
        let is_open = listener
            .streams
            .last()
            .is_some_and(|(_, until)| *until == OPEN);
        let begun = listener.streams.last().map_or(0, |(from, _)| *from);
        let last = news.changes(listener.list).last();
        let knows = |change: &Change| {
            let is_new = !listener.remembered && begun > change.from;
            change.until.is_some() && (is_new || listener.was_told((change.from, OPEN)))
        };
        !is_open || last.is_none_or(knows)
    })
}

pub(super) fn check(report: &mut Report, lines: &[Line], faults: &Faults) {
    let news = News::gather(lines);
    let end = lines.last().map_or(0, |line| line.at);
    report.changes = news.lists.values().flatten().count();
    for (name, listener) in &news.listeners {
        for change in news.changes(listener.list) {
            let Some((from, due)) = listener.must_know(change) else {
                continue;
            };
            // A late notification may not be lost: the next change includes this one, and the last
            // one comes when all is quiet.
            if due > end || faults.excuse_late_news((from, due)) {
                continue;
            }
            if listener.is_taken_for_unready(due, faults) {
                report.unready += 1;
                continue;
            }
            report.told += 1;
            if !listener.was_told((change.from, due)) {
                let Change { revision, .. } = change;
                let list = listener.list;
                report.broken(
                    "C10",
                    format!("{name} was not told of revision {revision} of {list} by {due}"),
                );
            }
        }
        once(report, name, listener, news.changes(listener.list), faults);
    }
    for (at, list, revision) in &news.read {
        let changes = news.changes(list);
        let newest = changes
            .iter()
            .filter(|change| change.until.is_some_and(|until| until + WITHIN <= *at))
            .max_by_key(|change| change.revision);
        if let Some(newest) = newest
            && newest.revision > *revision
            && !faults.excuse_late_news(a_while_before(*at))
        {
            let newest = newest.revision;
            report.broken(
                "C10",
                format!("{list} was read at {at} as of revision {revision}, and was at {newest}"),
            );
        }
        let begun = changes.iter().filter(|change| change.from <= *at);
        if begun.map(|change| change.revision).max().unwrap_or(0) < *revision {
            report.broken("C10", format!("{list} has a revision {revision} too early"));
        }
    }
}

/// No notice twice: ids show its list; without them there may be no more notices than changes.
fn once(
    report: &mut Report,
    name: &str,
    listener: &Listener<'_>,
    changes: &[Change],
    faults: &Faults,
) {
    let mut seen = BTreeMap::new();
    for (at, mark) in &listener.told {
        let Some(mark) = mark else { continue };
        if let Some(before) = seen.insert(*mark, *at)
            && !faults.excuse_late_news(a_while_before(*at))
        {
            report.broken(
                "C10",
                format!("{name} was told of the same list at {before} and at {at}"),
            );
        }
    }
    for (from, until) in &listener.streams {
        let on_it = listener.told.iter();
        let on_it = on_it.filter(|(at, mark)| mark.is_none() && (*from..=*until).contains(at));
        for (count, (at, _)) in (1..).zip(on_it) {
            let possible = changes.iter().filter(|change| {
                let is_old = change.until.is_some_and(|end| end + WITHIN < *from);
                change.from <= *at && !is_old
            });
            if count > possible.count() && !faults.excuse_late_news(a_while_before(*at)) {
                report.broken(
                    "C10",
                    format!("{name} was told {count} times by {at}, which is once too often"),
                );
                break;
            }
        }
    }
}
