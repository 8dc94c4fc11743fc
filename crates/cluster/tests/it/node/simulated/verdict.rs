//! Broken promises of a run. The checker of the chaos test judges TEST-C1 to TEST-C6, TEST-C9,
//! TEST-C12 and TEST-C15. This module judges TEST-C7, TEST-C8, TEST-C10, calls that were given up,
//! and durations.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    calls::millis,
    hardship::RECOVERS,
    record::{Fact, Halt},
};
use crate::{
    checker::{self, Report, Violation},
    history::{Line, Outcome, What},
};

/// Maximum time from a single fault to the outcome of every call that it touched, in milliseconds.
pub(super) const LONGEST: u64 = 15_000;
/// Time in which a node notices the return of a store, in milliseconds.
const NOTICES: u64 = 1_000;
/// Maximum delay of a call without faults, in milliseconds.
const IN_TIME: u64 = 500;
/// Time in which the client of an ended session reconnects and receives the error, in milliseconds.
const COMES_BACK: u64 = 4_000;
/// Maximum time from the reply to a cancellation to the end of the work (TEST-C8).
const STOPS: u64 = 2_000;
/// Maximum time from a change to its notice (TEST-C10).
const TELLS: u64 = 10_000;

/// Findings of a run.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) report: Report,
    pub(super) violations: Vec<Violation>,
    /// Number of calls that one fault touched, and the longest time from it to an outcome.
    pub(super) touched: usize,
    pub(super) longest: u64,
    pub(super) faults: usize,
    pub(super) given_up: usize,
}

/// Begin and end of a fault. The end is the time at which everything works as before.
type Span = (u64, u64);

#[derive(Default)]
struct Call<'h> {
    session: &'h str,
    takes: u64,
    began: u64,
    ended: Option<(u64, &'h Outcome)>,
    work: Vec<(u64, Option<(u64, Halt)>)>,
    is_unwanted: bool,
    cancelled: Option<u64>,
}

/// Judges a run.
pub(super) fn judge(lines: &[Line], facts: &[(u64, Fact)]) -> Verdict {
    let mut verdict = Verdict {
        report: checker::check(lines),
        ..Verdict::default()
    };
    let harms = harms(facts);
    verdict.faults = harms.len();
    let calls = gather(lines, facts);
    let mut deleting = BTreeMap::new();
    for (at, fact) in facts {
        if let Fact::Deleting { session } = fact {
            deleting.entry(session.as_str()).or_insert(*at);
        }
    }
    for (name, call) in &calls {
        let touching: Vec<Span> = harms
            .iter()
            .copied()
            .filter(|harm| touches(*harm, call))
            .collect();
        let is_deleted = is_deleted(&deleting, call);
        outcome(&mut verdict, name, call, &touching, is_deleted);
        cancellation(&mut verdict, name, call, &harms);
    }
    answers(&mut verdict, facts);
    notices(&mut verdict, facts, &harms);
    // The checker does not know two things: a DELETE takes effect before its client receives the
    // reply, and two faults may make a client give up.
    let mut of_checker = std::mem::take(&mut verdict.report.violations);
    of_checker.retain(|violation| {
        let name = violation.text.split([' ', ':']).next().unwrap_or_default();
        let is_early = violation.text.ends_with("404 in a session that lives")
            && calls
                .get(name)
                .is_some_and(|call| is_deleted(&deleting, call));
        // This module checks both more precisely.
        let is_given_up = violation.text.contains(" was given up ");
        let is_late = violation.text.contains(" took ") && violation.text.ends_with(" ms");
        !is_early && !is_given_up && !is_late
    });
    verdict.violations.append(&mut of_checker);
    verdict
}

/// Whether a DELETE of the session was in flight before the call had its outcome.
fn is_deleted(deleting: &BTreeMap<&str, u64>, call: &Call<'_>) -> bool {
    deleting
        .get(call.session)
        .is_some_and(|at| call.ended.is_none_or(|(ended, _)| *at <= ended))
}

impl Verdict {
    fn broken(&mut self, rule: &'static str, text: String) {
        self.violations.push(Violation { rule, text });
    }
}

fn gather<'h>(lines: &'h [Line], facts: &'h [(u64, Fact)]) -> BTreeMap<&'h str, Call<'h>> {
    let mut calls: BTreeMap<&str, Call<'_>> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Began { call, session, .. } => {
                let entry = calls.entry(call).or_default();
                entry.began = line.at;
                entry.session = session.as_deref().unwrap_or_default();
            }
            What::Ended { call, outcome } => {
                calls.entry(call).or_default().ended = Some((line.at, outcome));
            }
            _ => {}
        }
    }
    for (at, fact) in facts {
        match fact {
            Fact::Planned { call, takes } => calls.entry(call).or_default().takes = *takes,
            Fact::WorkBegan { call } => calls.entry(call).or_default().work.push((*at, None)),
            Fact::WorkEnded { call, why } => {
                let work = &mut calls.entry(call).or_default().work;
                if let Some(last) = work.last_mut() {
                    last.1 = Some((*at, *why));
                }
            }
            Fact::Cancelling { call } => calls.entry(call).or_default().is_unwanted = true,
            Fact::CancelAccepted { call } => {
                calls.entry(call).or_default().cancelled = Some(*at);
            }
            _ => {}
        }
    }
    calls
}

/// Begin and end of each fault. A fault without an end lasts to the end of the run.
fn harms(facts: &[(u64, Fact)]) -> Vec<Span> {
    let mut harms = BTreeMap::new();
    for (at, fact) in facts {
        match fact {
            Fact::Harm { number } => {
                harms.insert(*number, (*at, u64::MAX / 2));
            }
            Fact::Healed { number } => {
                if let Some(harm) = harms.get_mut(number) {
                    harm.1 = *at;
                }
            }
            _ => {}
        }
    }
    harms.into_values().collect()
}

fn recovered((_, until): Span) -> u64 {
    until.saturating_add(millis(RECOVERS))
}

fn touches(harm: Span, call: &Call<'_>) -> bool {
    let ended = call.ended.map_or(u64::MAX, |(at, _)| at);
    harm.0 <= ended && call.began <= recovered(harm)
}

/// Whether there was no fault between the two times, nor shortly before.
fn is_quiet(harms: &[Span], from: u64, until: u64) -> bool {
    !harms
        .iter()
        .any(|harm| harm.0 <= until && from <= recovered(*harm))
}

/// A call without a fault has a result. A call with one fault has an outcome soon. Only two
/// overlapping faults may make a client give up.
fn outcome(verdict: &mut Verdict, name: &str, call: &Call<'_>, harms: &[Span], is_deleted: bool) {
    let Some((ended, outcome)) = call.ended else {
        return;
    };
    if let Outcome::GaveUp(_) = outcome {
        verdict.given_up += 1;
        let overlap = harms.iter().enumerate().any(|(place, one)| {
            harms[place + 1..]
                .iter()
                .any(|other| other.0 <= recovered(*one) && one.0 <= recovered(*other))
        });
        if !overlap {
            verdict.broken(
                "C5",
                format!("{name} was given up, and no two faults overlap"),
            );
        }
    }
    match harms {
        [] => {
            let is_good = match outcome {
                Outcome::Result { .. } => true,
                Outcome::Http(404) => is_deleted,
                Outcome::Error { code, .. } => *code == super::words::CANCELLED && call.is_unwanted,
                // The session was ended before there was an event id.
                Outcome::Refused(_) => is_deleted,
                _ => false,
            };
            if !is_good {
                verdict.broken("C5", format!("{name} ended with {outcome:?}, undisturbed"));
            }
            let comes_back = if is_deleted { COMES_BACK } else { 0 };
            if ended > call.began + call.takes + comes_back + IN_TIME {
                verdict.broken("C5", format!("{name} ended at {ended}, undisturbed"));
            }
        }
        [(from, _)] => {
            let due = (*from).max(call.began + call.takes);
            let took = ended.saturating_sub(due);
            verdict.touched += 1;
            verdict.longest = verdict.longest.max(took);
            if took > LONGEST {
                verdict.broken(
                    "C5",
                    format!("{name} had its outcome {took} ms after the only fault"),
                );
            }
        }
        several => {
            let over = several.iter().map(|(_, until)| *until).max().unwrap_or(0) + NOTICES;
            // The first of two faults may keep an answer on the node that received it. The second
            // may take that node or the answer. The call then waits for as long as a person may
            // think. One fault alone loses no answer.
            let gave_up = call.work.iter().filter_map(|(_, end)| match end {
                Some((at, Halt::Unanswered)) => Some(*at),
                _ => None,
            });
            let due = gave_up.fold(over.max(call.began + call.takes), u64::max);
            // In an ended session no outcome is required, also if a fault restores the session.
            if ended > due + LONGEST && !is_deleted {
                verdict.broken(
                    "C5",
                    format!("{name} had its outcome at {ended}, long after the last fault"),
                );
            }
        }
    }
}

/// Checks TEST-C8: a cancelled call has no result, and its work ends in time.
fn cancellation(verdict: &mut Verdict, name: &str, call: &Call<'_>, harms: &[Span]) {
    if let (Some((_, Outcome::Result { .. })), [(_, Some((_, Halt::Cancelled)))]) =
        (call.ended, call.work.as_slice())
    {
        verdict.broken("C8", format!("{name} has a result and was stopped"));
    }
    let Some(accepted) = call.cancelled else {
        return;
    };
    for (began, ended) in &call.work {
        let due = accepted.max(*began) + STOPS;
        let is_late = ended.is_none_or(|(at, _)| at > due);
        if is_late && is_quiet(harms, *began, due) {
            verdict.broken(
                "C8",
                format!("{name} was cancelled at {accepted} and runs on"),
            );
        }
    }
}

/// Checks TEST-C7: a call receives the answer to its own question, once.
fn answers(verdict: &mut Verdict, facts: &[(u64, Fact)]) {
    let mut heard = BTreeSet::new();
    for (_, fact) in facts {
        let (Fact::Heard { question, answer } | Fact::Answered { question, answer }) = fact else {
            continue;
        };
        let number = question.trim_start_matches('q');
        if *answer != format!("sim-{number} says so") {
            verdict.broken("C7", format!("{question} was answered: {answer}"));
        }
        if matches!(fact, Fact::Heard { .. }) && !heard.insert(question) {
            verdict.broken("C7", format!("{question} was answered twice"));
        }
    }
}

/// Checks TEST-C10: a subscriber receives a notice of every change in time.
fn notices(verdict: &mut Verdict, facts: &[(u64, Fact)], harms: &[Span]) {
    let mut changes: Vec<(u64, u64)> = Vec::new();
    // Subscribers with the time of their subscription and the known revision.
    let mut streams: BTreeMap<usize, (Option<u64>, u64)> = BTreeMap::new();
    for (at, fact) in facts {
        match fact {
            Fact::Changed { revision } => changes.push((*at, *revision)),
            Fact::Subscribed { who } => streams.entry(*who).or_default().0 = Some(*at),
            Fact::Told { who, revision } => {
                let known = &mut streams.entry(*who).or_default().1;
                if revision <= known {
                    verdict.broken("C10", format!("{who} was told of {revision} after {known}"));
                }
                *known = (*known).max(*revision);
            }
            Fact::Unsubscribed { who } => {
                let (since, known) = streams.entry(*who).or_default();
                let Some(since) = since.take() else {
                    continue;
                };
                for (changed, revision) in &changes {
                    let due = since.max(*changed) + TELLS;
                    let is_quiet = !harms
                        .iter()
                        .any(|(from, until)| *from <= due && due - TELLS <= *until);
                    if revision > known && due <= *at && is_quiet {
                        verdict.broken(
                            "C10",
                            format!("{who} was not told of {revision}, changed at {changed}"),
                        );
                    }
                }
            }
            _ => {}
        }
    }
}
