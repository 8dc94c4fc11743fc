//! Which promises a history breaks. A pure function: it can be, and is, tried on histories that were doctored.

// With their paths, because a simulation takes this file from elsewhere.
#[path = "checker/admissions.rs"]
mod admissions;
#[path = "checker/answers.rs"]
mod answers;
#[path = "checker/cancels.rs"]
mod cancels;
#[path = "checker/faults.rs"]
mod faults;
#[path = "checker/news.rs"]
mod news;
#[path = "checker/put_off.rs"]
mod put_off;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use self::faults::Faults;
use crate::{
    history::{Body, FaultKind, Line, Outcome, What},
    sse::Position,
};

/// A call may have its outcome this much after its deadline, milliseconds (TEST-C5).
const GRACE: u64 = 15_000;

/// Why an SDK gave up that asked for the session's stream in place of the call's.
pub const LOST_ITS_PLACE: &str = "lost its place";
/// The node that ran the call was lost.
pub const NODE_LOST: i64 = -32010;
/// The same in the numbers of 2026-07-28 (MCP-ER-13, MCP-ER-15).
pub const CALL_LOST: i64 = -31004;
/// The stream's events are no longer kept.
pub const STREAM_LOST: i64 = -32011;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule: `C1` …
    pub rule: &'static str,
    /// A description of the violation.
    pub text: String,
}

/// The findings of a history.
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
    /// Results and calls of each kind of client: the first word of a call's name.
    pub clients: BTreeMap<String, (usize, usize)>,
    /// Calls whose GET the outgoing HTTP client sent once more, after the API had broken the connection.
    pub read_again: usize,
    /// Calls that an SDK gave up by its own design.
    pub given_up: usize,
    /// Faults by the first word of their name.
    pub faults: BTreeMap<String, usize>,
    /// Calls that were run again, and say so.
    pub run_again: usize,
    /// Answers that reached who asked (TEST-C7).
    pub answers: usize,
    /// Calls that did not receive the answer, because the store or a node lost it (TEST-C5).
    pub unheard: usize,
    /// Calls that were cancelled.
    pub cancels: usize,
    /// Of these, those whose end no fault could delay (TEST-C8).
    pub cancels_judged: usize,
    /// Changes of lists.
    pub changes: usize,
    /// How often a listener had to be notified of a change that no fault could delay (TEST-C10).
    pub told: usize,
    /// How often a listener was not notified because the store had lost its session in the first
    /// minute.
    pub unready: usize,
    /// Calls that a limit admitted (TEST-C11).
    pub admissions: usize,
    /// Requests while store and database were there (TEST-C14).
    pub undisturbed: usize,
    /// Of these, those that were put off.
    pub put_off: usize,
    /// How long after its deadline each call had its outcome, milliseconds; 0 within it.
    pub late: Vec<u64>,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
}

impl Report {
    /// How long after their deadlines 999 calls of 1,000 had their outcomes, and the last one; milliseconds.
    pub fn lateness(&self) -> (u64, u64) {
        let mut late = self.late.clone();
        late.sort_unstable();
        let last = late.len().saturating_sub(1);
        let at = |place: usize| late.get(place).copied().unwrap_or(0);
        (at(last * 999 / 1_000), at(last))
    }

    fn broken(&mut self, rule: &'static str, text: String) {
        self.violations.push(Violation { rule, text });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "calls {} · events {} · run again {} · read again {} · violations {}",
            self.calls,
            self.events,
            self.run_again,
            self.read_again,
            self.violations.len()
        )?;
        writeln!(f, "resumes by status {:?}", self.resumes)?;
        writeln!(f, "outcomes {:?}", self.outcomes)?;
        for (client, (results, calls)) in &self.clients {
            write!(f, "{client}: {results} results of {calls} calls · ")?;
        }
        writeln!(f, "given up by an SDK {}", self.given_up)?;
        writeln!(
            f,
            "answers {}, unheard {} · cancels {}, judged {} · list changes {}, tellings judged {}, not ready {} · admissions {} · put off {} of {}",
            self.answers,
            self.unheard,
            self.cancels,
            self.cancels_judged,
            self.changes,
            self.told,
            self.unready,
            self.admissions,
            self.put_off,
            self.undisturbed
        )?;
        let (most, all) = self.lateness();
        writeln!(
            f,
            "outcomes after their deadline: p99.9 {most} ms, the last {all} ms"
        )?;
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
    got: Vec<(u64, Option<&'h str>, &'h Body)>,
    resumes: Vec<(u64, u16)>,
    ended: Vec<(u64, &'h Outcome)>,
    asked: Option<u64>,
    /// The first answer that was taken.
    taken: Option<u64>,
    executed: usize,
    /// Of these, how often the API broke the connection at once.
    broken: usize,
}

/// Deleted sessions: the time when the deletion was requested, and the time when it was done.
type Deleted<'h> = BTreeMap<&'h str, (u64, u64)>;

/// True if every listener was notified of the last change: then the end of a run is quiet.
pub fn everyone_knows(lines: &[Line]) -> bool {
    news::everyone_knows(lines)
}

/// Checks TEST-C1 to TEST-C12, TEST-C14 and TEST-C15.
pub fn check(lines: &[Line]) -> Report {
    let mut report = Report::default();
    let faults = Faults::read(lines);
    let (calls, deleted) = gathered(&mut report, lines);
    answers::check(&mut report, lines, &faults);
    cancels::check(&mut report, lines, &faults);
    news::check(&mut report, lines, &faults);
    admissions::check(&mut report, lines, &faults);
    put_off::check(&mut report, lines, &faults);
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
        order(&mut report, name, call, began, &faults);
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
            if let Outcome::Error { code, executed } = outcome {
                honest_error(&mut report, name, *code, executed.as_deref());
                if !faults.explain(*code, (began, at)) {
                    report.broken(
                        "C15",
                        format!("{name} ended with {outcome:?}, and nothing had happened"),
                    );
                }
            }
            if *outcome == Outcome::Http(400) && !call.got.is_empty() {
                report.broken(
                    "C12",
                    format!("{name}: an id that the service had sent was refused"),
                );
            }
        }
        if let Some(session) = session {
            for id in call.got.iter().filter_map(|(_, id, _)| *id) {
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

/// The calls of a history, and the sessions that were deleted. Counts what the report shows.
fn gathered<'h>(
    report: &mut Report,
    lines: &'h [Line],
) -> (BTreeMap<&'h str, Call<'h>>, Deleted<'h>) {
    let mut calls: BTreeMap<&str, Call<'_>> = BTreeMap::new();
    let mut deleted = Deleted::new();
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
                    .push((line.at, id.as_deref(), body));
            }
            What::Resumed { call, status } => {
                *report.resumes.entry(*status).or_default() += 1;
                let tries = &mut calls.entry(call).or_default().resumes;
                tries.push((line.at, *status));
            }
            What::Ended { call, outcome } => {
                *report.outcomes.entry(kind(outcome)).or_default() += 1;
                let word = call.split('-').next().unwrap_or_default();
                let (results, ended) = report.clients.entry(word.to_owned()).or_default();
                *results += usize::from(matches!(outcome, Outcome::Result { .. }));
                *ended += 1;
                calls
                    .entry(call)
                    .or_default()
                    .ended
                    .push((line.at, outcome));
            }
            What::Executed {
                call,
                times,
                broken,
            } => {
                let call = calls.entry(call).or_default();
                call.executed += times;
                call.broken += broken;
            }
            What::Deleted { session, took } => {
                let while_asked = (line.at.saturating_sub(*took), line.at);
                deleted.entry(session).or_insert(while_asked);
            }
            // The second half of a fault is none.
            What::Fault(fault)
                if matches!(
                    fault.kind,
                    FaultKind::StoreBack | FaultKind::StoreRolledBack | FaultKind::Over
                ) => {}
            What::Fault(fault) => {
                let word = fault.name.split(' ').next().unwrap_or_default();
                *report.faults.entry(word.to_owned()).or_default() += 1;
            }
            What::Asked { call, .. } => {
                calls.entry(call).or_default().asked.get_or_insert(line.at);
            }
            What::Taken { call, .. } => {
                calls.entry(call).or_default().taken.get_or_insert(line.at);
            }
            // Of the rules below.
            _ => {}
        }
    }
    (calls, deleted)
}

/// TEST-C1: everything on the stream of a call is about that call.
fn own_content(report: &mut Report, name: &str, call: &Call<'_>) {
    let mut own = |of: &str, whole: bool, what: &str| {
        if of != name {
            report.broken("C1", format!("{name} got {what} of {of:?}"));
        } else if !whole {
            report.broken("C1", format!("{name} got {what} that is not whole"));
        }
    };
    for (_, _, body) in &call.got {
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

/// An error of ours about a call that was lost.
const fn is_loss(code: i64) -> bool {
    matches!(code, NODE_LOST | CALL_LOST | STREAM_LOST)
}

/// TEST-C15: the error of a stopped call states whether it took effect, in one of three words
/// (STREAM-B).
fn honest_error(report: &mut Report, name: &str, code: i64, executed: Option<&str>) {
    let is_said = matches!(executed, Some("no" | "unknown" | "yes"));
    if !is_said && (is_loss(code) || executed.is_some()) {
        report.broken(
            "C15",
            format!("{name}: error {code} does not say whether it took effect: {executed:?}"),
        );
    }
}

/// TEST-C2, TEST-C3, TEST-C4: nothing twice, nothing swapped, nothing missing.
fn order(report: &mut Report, name: &str, call: &Call<'_>, began: u64, faults: &Faults) {
    let mut seen = BTreeSet::new();
    let mut last: Option<Position> = None;
    let (mut gap, mut had_gap, mut progress, mut responses) = (false, false, None, 0);
    for (at, id, body) in &call.got {
        if let Some(id) = id
            && !seen.insert(*id)
        {
            // The store went back twice, and the first branch came back: a gap notice reports it
            // (STREAM-11).
            if !(had_gap && faults.roll_backs((began, *at)) >= 2) {
                report.broken("C2", format!("{name} got the event {id} twice"));
            }
            continue;
        }
        // A resumed stream begins with the client's position, under an id of its own.
        let is_place = last.is_some() && id.and_then(Position::read) == last;
        if matches!(body, Body::Priming) && is_place {
            continue;
        }
        if matches!(body, Body::Gap) {
            (gap, had_gap) = (true, true);
            if !faults.excuse_gap((began, *at)) {
                report.broken(
                    "C4",
                    format!("{name}: a gap, and the store had lost nothing of it"),
                );
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

/// TEST-C5: one outcome, in time.
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
    report.late.push((*at - began).saturating_sub(deadline));
    let is_late = *at - began > deadline + GRACE + faults.delay((began, *at));
    let is_unheard = call
        .asked
        .is_some_and(|asked| faults.excuse_unheard(asked, call.taken));
    if is_unheard && (is_late || matches!(outcome, Outcome::Hung)) {
        report.unheard += 1;
    } else if matches!(outcome, Outcome::Hung) {
        report.broken("C5", format!("{name} hung"));
    } else if let Outcome::GaveUp(why) = outcome {
        report.given_up += 1;
        given_up(report, name, call, (*at, why), faults);
    } else if is_late {
        report.broken("C5", format!("{name} took {} ms", at - began));
    }
    let could_resume = call.got.iter().any(|(_, id, _)| id.is_some());
    if matches!(outcome, Outcome::Refused(_)) && could_resume {
        report.broken(
            "C5",
            format!("{name} was left without an answer: {outcome:?}"),
        );
    }
    Some((*at, outcome))
}

/// Whose SDK gives up after two tries to resume has no outcome, and the service cannot help it. Each of the two must have failed while
/// something was broken, or right after; and none may have been refused as one of a client that is in the wrong.
fn given_up(
    report: &mut Report,
    name: &str,
    call: &Call<'_>,
    (at, why): (u64, &str),
    faults: &Faults,
) {
    let last = &call.resumes[call.resumes.len().saturating_sub(4)..];
    let was_resumed = |status: u16| (200..300).contains(&status);
    let failed = last
        .iter()
        .filter(|(at, status)| !was_resumed(*status) && faults.holds(*at))
        .count();
    // The TypeScript SDKs forget the id when a stream that was resumed breaks before it carried one.
    let lost_its_place = why.starts_with(LOST_ITS_PLACE)
        && last.iter().any(|(_, status)| was_resumed(*status))
        && faults.holds(at);
    if failed < 2 && !lost_its_place {
        report.broken(
            "C5",
            format!("{name} was given up ({why}) after these tries: {last:?}"),
        );
    }
    if last.iter().any(|(_, status)| (400..429).contains(status)) {
        report.broken("C12", format!("{name} could not be resumed: {last:?}"));
    }
}

/// TEST-C6: never a second execution that is not allowed and reported, and never a claim that the
/// API contradicts.
///
/// One exception: a GET whose connection the API breaks at once and without an answer is sent once more (RFC 9110 §9.2.2: a safe method
/// may be repeated). Whether it did so to this very call, the API knows.
fn executions(report: &mut Report, name: &str, call: &Call<'_>, safe: bool) {
    let outcome = call.ended.first().map(|(_, outcome)| *outcome);
    let again = matches!(outcome, Some(Outcome::Result { again: true, .. }));
    report.run_again += usize::from(again);
    match call.executed {
        0 | 1 => {}
        2 if safe && again => {}
        2 if safe && call.broken > 0 => report.read_again += 1,
        times => report.broken(
            "C6",
            format!(
                "{name} was run {times} times (safe: {safe}, broken by the API: {}), outcome {outcome:?}",
                call.broken
            ),
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
    {
        if claim == "no" && call.executed > 0 {
            report.broken("C6", format!("{name} was run, and the error denies it"));
        }
        if claim == "yes" && call.executed == 0 {
            report.broken("C6", format!("{name} was never run, and the error says so"));
        }
    }
}

/// TEST-C9: a deleted session stays dead, and any other session stays alive and answers.
fn life_of_session(
    report: &mut Report,
    name: &str,
    (began, ended): (u64, u64),
    outcome: &Outcome,
    deleted: Option<(u64, u64)>,
    in_session: bool,
    faults: &Faults,
) {
    match deleted {
        Some(deleted) if began > deleted.1 => {
            let served = matches!(
                outcome,
                Outcome::Result { .. } | Outcome::ToolError(_) | Outcome::Error { .. }
            );
            if served && !faults.excuse_revival(deleted, began) {
                report.broken("C9", format!("{name} was served in a deleted session"));
            }
        }
        Some((_, deleted)) if deleted <= ended => {}
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
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Hung => "hung".to_owned(),
        Outcome::GaveUp(_) => "given up".to_owned(),
    }
}
