//! Which promises a history breaks. A pure function: it can be, and is, tried on histories that were doctored.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    history::{Body, FaultKind, Line, Outcome, What},
    sse::Position,
};

/// A call may have its outcome this much after its deadline, milliseconds (C5).
const GRACE: u64 = 15_000;
/// A node that lost the store takes nobody for dead for this long afterwards, milliseconds (`streams.md` §12.1).
const SUSPECTS_NOBODY: u64 = 12_000;
/// Sessions that a node knows are served for this long without the store, milliseconds (`streams.md` §17.1).
const SESSION_GRACE: u64 = 30_000;
/// A fault explains an honest error of calls that ran this much later, milliseconds: adoption takes its time.
const EXPLAINS: u64 = 30_000;

/// The node that ran the call was lost.
pub const NODE_LOST: i64 = -32010;
/// The stream's events are no longer kept.
pub const STREAM_LOST: i64 = -32011;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule: `C1` …
    pub rule: &'static str,
    /// What happened.
    pub text: String,
}

/// What a history shows.
#[derive(Debug, Default)]
pub struct Report {
    /// Calls that were begun.
    pub calls: usize,
    /// Events that clients got.
    pub events: usize,
    /// Streams that were resumed, by HTTP status.
    pub resumes: BTreeMap<u16, usize>,
    /// Outcomes by kind.
    pub outcomes: BTreeMap<String, usize>,
    /// Faults by the first word of their name.
    pub faults: BTreeMap<String, usize>,
    /// Calls that were run again, and say so.
    pub run_again: usize,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
}

impl Report {
    fn broken(&mut self, rule: &'static str, text: String) {
        self.violations.push(Violation { rule, text });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "calls {} · events {} · run again {} · violations {}",
            self.calls,
            self.events,
            self.run_again,
            self.violations.len()
        )?;
        writeln!(f, "resumes by status {:?}", self.resumes)?;
        writeln!(f, "outcomes {:?}", self.outcomes)?;
        write!(f, "faults {:?}", self.faults)?;
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        for violation in &self.violations {
            *rules.entry(violation.rule).or_default() += 1;
        }
        if !rules.is_empty() {
            write!(f, "\nbroken {rules:?}")?;
        }
        for violation in self.violations.iter().take(40) {
            write!(f, "\n{}: {}", violation.rule, violation.text)?;
        }
        Ok(())
    }
}

/// One call, gathered.
#[derive(Debug, Default)]
struct Call<'h> {
    began: Option<(u64, Option<&'h str>, bool, u64)>,
    got: Vec<(Option<&'h str>, &'h Body)>,
    ended: Vec<(u64, &'h Outcome)>,
    executed: usize,
}

/// What was done to the service, gathered.
#[derive(Debug, Default)]
struct Faults {
    all: Vec<u64>,
    away: Vec<(u64, u64)>,
    emptied: Vec<u64>,
}

impl Faults {
    fn read(lines: &[Line]) -> Self {
        let mut faults = Self::default();
        for line in lines {
            let What::Fault(fault) = &line.what else {
                continue;
            };
            if fault.kind != FaultKind::StoreBack {
                faults.all.push(line.at);
            }
            match fault.kind {
                FaultKind::StoreAway => faults.away.push((line.at, u64::MAX)),
                FaultKind::StoreBack => {
                    if let Some(last) = faults.away.last_mut() {
                        last.1 = line.at;
                    }
                }
                FaultKind::StoreEmptied => faults.emptied.push(line.at),
                FaultKind::Node | FaultKind::Other => {}
            }
        }
        faults
    }

    fn explain(&self, from: u64, to: u64) -> bool {
        self.all
            .iter()
            .any(|at| *at + EXPLAINS >= from && *at <= to)
    }

    /// How much longer a call may take that ran from `from` to `to`: while the store is away, and until nodes trust what it
    /// says about each other, nobody takes over from a lost node.
    fn delay(&self, from: u64, to: u64) -> u64 {
        let away = self
            .away
            .iter()
            .filter(|(gone, back)| *gone <= to && from <= back.saturating_add(SUSPECTS_NOBODY))
            .map(|(gone, back)| to.min(*back).saturating_sub(from.max(*gone)) + SUSPECTS_NOBODY);
        let emptied = self
            .emptied
            .iter()
            .filter(|at| from <= **at + SUSPECTS_NOBODY && **at <= to)
            .map(|_| SUSPECTS_NOBODY);
        away.chain(emptied).sum()
    }

    /// May a session that was deleted at `deleted` still be served at `at`?
    fn excuse_revival(&self, deleted: u64, at: u64) -> bool {
        self.emptied.iter().any(|emptied| *emptied >= deleted)
            || self
                .away
                .iter()
                .any(|(from, to)| *from <= at && at <= to.saturating_add(SESSION_GRACE))
    }
}

/// Checks C1–C6, C9, C12 and C15 of the test plan.
pub fn check(lines: &[Line]) -> Report {
    let mut report = Report::default();
    let faults = Faults::read(lines);
    let mut calls: BTreeMap<&str, Call<'_>> = BTreeMap::new();
    let mut deleted: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Began {
                call,
                session,
                safe,
                deadline,
            } => {
                report.calls += 1;
                let entry = calls.entry(call).or_default();
                if entry.began.is_some() {
                    report.broken("history", format!("{call} began twice"));
                }
                entry.began = Some((line.at, session.as_deref(), *safe, *deadline));
            }
            What::Got { call, id, body } => {
                report.events += 1;
                calls
                    .entry(call)
                    .or_default()
                    .got
                    .push((id.as_deref(), body));
            }
            What::Resumed { status, .. } => *report.resumes.entry(*status).or_default() += 1,
            What::Ended { call, outcome } => {
                *report.outcomes.entry(kind(outcome)).or_default() += 1;
                calls
                    .entry(call)
                    .or_default()
                    .ended
                    .push((line.at, outcome));
            }
            What::Executed { call, times } => {
                calls.entry(call).or_default().executed += times;
            }
            What::Deleted { session } => {
                deleted.entry(session).or_insert(line.at);
            }
            What::Fault(fault) => {
                let word = fault.name.split(' ').next().unwrap_or_default();
                *report.faults.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    let mut ids: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (name, call) in &calls {
        let Some((began, session, safe, deadline)) = call.began else {
            report.broken(
                "C6",
                format!("{name} was never begun by a client, and yet it was run or answered"),
            );
            continue;
        };
        own_content(&mut report, name, call);
        order(&mut report, name, call, &faults);
        let end = one_outcome(&mut report, name, call, (began, deadline), &faults);
        executions(&mut report, name, call, safe);
        if let Some((at, outcome)) = end {
            life_of_session(
                &mut report,
                name,
                (began, at),
                outcome,
                session.and_then(|session| deleted.get(session).copied()),
                session.is_some(),
                &faults,
            );
            let honest = !matches!(
                outcome,
                Outcome::Error {
                    code: NODE_LOST | STREAM_LOST,
                    ..
                }
            ) || faults.explain(began, at);
            if !honest {
                report.broken(
                    "C15",
                    format!("{name} ended with {outcome:?}, and nothing had happened"),
                );
            }
            if *outcome == Outcome::Http(400) && !call.got.is_empty() {
                report.broken(
                    "C12",
                    format!("{name}: an id that the service had sent was refused"),
                );
            }
        }
        if let Some(session) = session {
            for id in call.got.iter().filter_map(|(id, _)| *id) {
                if let Some(other) = ids.insert((session, id), name)
                    && other != *name
                {
                    report.broken("C12", format!("{name} and {other} share the id {id}"));
                }
            }
        }
    }
    report
}

/// C1: everything on the stream of a call is about that call.
fn own_content(report: &mut Report, name: &str, call: &Call<'_>) {
    let mut own = |of: &str, whole: bool, what: &str| {
        if of != name {
            report.broken("C1", format!("{name} got {what} of {of:?}"));
        } else if !whole {
            report.broken("C1", format!("{name} got {what} that is not whole"));
        }
    };
    for (_, body) in &call.got {
        match body {
            Body::Progress { of, .. } => own(of, true, "progress"),
            Body::Response(Outcome::Result { of, whole, .. }) => own(of, *whole, "a result"),
            _ => {}
        }
    }
    for (_, outcome) in &call.ended {
        if let Outcome::Result { of, whole, .. } = outcome {
            own(of, *whole, "a result");
        }
    }
}

/// C2, C3, C4: nothing twice, nothing swapped, nothing missing.
fn order(report: &mut Report, name: &str, call: &Call<'_>, faults: &Faults) {
    let mut seen = BTreeSet::new();
    let mut last: Option<Position> = None;
    let (mut gap, mut progress, mut responses) = (false, None, 0);
    for (id, body) in &call.got {
        if let Some(id) = id
            && !seen.insert(*id)
        {
            report.broken("C2", format!("{name} got the event {id} twice"));
            continue;
        }
        if matches!(body, Body::Gap) {
            gap = true;
            if faults.emptied.is_empty() && faults.away.is_empty() {
                report.broken("C4", format!("{name}: a gap, and the store lost nothing"));
            }
        }
        if matches!(body, Body::Response(_)) {
            responses += 1;
        }
        if responses > 0 && !matches!(body, Body::Response(_)) {
            report.broken("C3", format!("{name}: {body:?} after the response"));
        }
        if let Body::Progress { n, .. } = body {
            let attempt = id.and_then(Position::read).map(|position| position.attempt);
            if progress.is_some_and(|(before, far)| before == attempt && *n <= far) {
                report.broken("C3", format!("{name}: progress went back to {n}"));
            }
            progress = Some((attempt, *n));
        }
        let Some(position) = id.and_then(Position::read) else {
            continue;
        };
        if let Some(before) = last {
            if position.stream != before.stream {
                report.broken("C1", format!("{name} got an event of another stream"));
            } else if !gap && position.number <= before.number {
                report.broken(
                    "C3",
                    format!("{name}: event {} after {}", position.number, before.number),
                );
            } else if !gap && position.number != before.number + 1 {
                report.broken(
                    "C4",
                    format!(
                        "{name}: nothing between events {} and {}, and no word of it",
                        before.number, position.number
                    ),
                );
            }
        } else if !gap && position.number > 1 {
            report.broken(
                "C4",
                format!("{name}: the first event has number {}", position.number),
            );
        }
        last = Some(position);
        gap = false;
    }
    if responses > 1 {
        report.broken("C2", format!("{name} got {responses} responses"));
    }
}

/// C5: one outcome, in time.
fn one_outcome<'h>(
    report: &mut Report,
    name: &str,
    call: &Call<'h>,
    (began, deadline): (u64, u64),
    faults: &Faults,
) -> Option<(u64, &'h Outcome)> {
    let [(at, outcome)] = call.ended.as_slice() else {
        report.broken("C5", format!("{name} has {} outcomes", call.ended.len()));
        return None;
    };
    if matches!(outcome, Outcome::Hung) {
        report.broken("C5", format!("{name} hung"));
    } else if at - began > deadline + GRACE + faults.delay(began, *at) {
        report.broken("C5", format!("{name} took {} ms", at - began));
    }
    let could_resume = call.got.iter().any(|(id, _)| id.is_some());
    if matches!(outcome, Outcome::Refused(_)) && could_resume {
        report.broken(
            "C5",
            format!("{name} was left without an answer: {outcome:?}"),
        );
    }
    Some((*at, outcome))
}

/// C6: never a silent second execution, and never a claim that the API contradicts.
fn executions(report: &mut Report, name: &str, call: &Call<'_>, safe: bool) {
    let outcome = call.ended.first().map(|(_, outcome)| *outcome);
    let again = matches!(outcome, Some(Outcome::Result { again: true, .. }));
    report.run_again += usize::from(again);
    let silent = matches!(outcome, Some(Outcome::Result { again: false, .. }));
    match call.executed {
        0 | 1 => {}
        2 if safe && !silent => {}
        times => report.broken(
            "C6",
            format!("{name} was run {times} times (safe: {safe}), outcome {outcome:?}"),
        ),
    }
    if again && !safe {
        report.broken("C6", format!("{name} was run again and must not be"));
    }
    if matches!(outcome, Some(Outcome::Result { .. })) && call.executed == 0 {
        report.broken("C6", format!("{name} has a result and was never run"));
    }
    if let Some(Outcome::Error {
        executed: Some(claim),
        ..
    }) = outcome
        && claim == "no"
        && call.executed > 0
    {
        report.broken("C6", format!("{name} was run, and the error denies it"));
    }
}

/// C9: a deleted session stays dead, and one that nobody deleted stays alive and answers.
fn life_of_session(
    report: &mut Report,
    name: &str,
    (began, ended): (u64, u64),
    outcome: &Outcome,
    deleted: Option<u64>,
    in_session: bool,
    faults: &Faults,
) {
    match deleted {
        Some(deleted) if began > deleted => {
            let served = matches!(
                outcome,
                Outcome::Result { .. } | Outcome::ToolError(_) | Outcome::Error { .. }
            );
            if served && !faults.excuse_revival(deleted, began) {
                report.broken("C9", format!("{name} was served in a deleted session"));
            }
        }
        Some(deleted) if deleted <= ended => {}
        _ => {
            if in_session && *outcome == Outcome::Http(404) {
                report.broken("C9", format!("{name}: 404 in a session that lives"));
            }
            // Where a session ends, its calls end without a response.
            if matches!(outcome, Outcome::Http(200..=299)) {
                report.broken("C5", format!("{name}: success, and no response"));
            }
        }
    }
}

fn kind(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result { again: false, .. } => "result".to_owned(),
        Outcome::Result { again: true, .. } => "result, run again".to_owned(),
        Outcome::ToolError(_) => "tool error".to_owned(),
        Outcome::Error { code, .. } => format!("error {code}"),
        Outcome::Http(status) => format!("HTTP {status}"),
        Outcome::Refused(_) => "connection".to_owned(),
        Outcome::Hung => "hung".to_owned(),
    }
}
