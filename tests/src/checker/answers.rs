//! TEST-C7: an answer reaches its own call, once, unchanged; no call receives another's.

use std::collections::{BTreeMap, BTreeSet};

use super::{Faults, Report, is_loss};
use crate::history::{Line, Outcome, What};

/// Call and words.
type Answer<'h> = (&'h str, &'h str);

/// The answers in a history.
#[derive(Debug, Default)]
struct Answers<'h> {
    said: BTreeSet<Answer<'h>>,
    taken: BTreeMap<Answer<'h>, u64>,
    heard: BTreeMap<Answer<'h>, usize>,
    asked: BTreeSet<&'h str>,
    began: BTreeMap<&'h str, u64>,
    ended: BTreeMap<&'h str, (u64, &'h Outcome)>,
}

pub(super) fn check(report: &mut Report, lines: &[Line], faults: &Faults) {
    let mut all = Answers::default();
    for line in lines {
        match &line.what {
            What::Began { call, .. } => {
                all.began.insert(call, line.at);
            }
            What::Asked { call, about } => {
                all.asked.insert(call);
                if call != about {
                    report.broken("C7", format!("{call} got a question of {about:?}"));
                }
            }
            What::Answers { call, answer } => {
                all.said.insert((call, answer));
            }
            What::Taken { call, answer } => {
                all.taken.entry((call, answer)).or_insert(line.at);
            }
            What::Heard { call, answer } => {
                report.answers += 1;
                if !all.said.contains(&(call.as_str(), answer.as_str())) {
                    report.broken(
                        "C7",
                        format!("{call} was told {answer:?}, which its client did not say"),
                    );
                }
                *all.heard.entry((call, answer)).or_default() += 1;
            }
            What::Ended { call, outcome } => {
                all.ended.insert(call, (line.at, outcome));
            }
            _ => {}
        }
    }
    for ((call, answer), times) in &all.heard {
        if *times > 1 {
            report.broken("C7", format!("{call} was told {answer:?} {times} times"));
        }
    }
    let told: BTreeSet<&str> = all.heard.keys().map(|(call, _)| *call).collect();
    for call in &all.asked {
        let has_result = matches!(all.ended.get(call), Some((_, Outcome::Result { .. })));
        if has_result && !told.contains(call) {
            report.broken("C7", format!("{call} has a result and was told nothing"));
        }
    }
    for ((call, answer), at) in &all.taken {
        if all.heard.contains_key(&(*call, *answer)) {
            continue;
        }
        let ended = all.ended.get(call);
        let end = ended.map_or(u64::MAX, |(end, _)| *end);
        // Its call may have been lost before the answer, while no node knew that yet.
        let with_its_call = match ended {
            Some((_, Outcome::Error { code, .. })) if is_loss(*code) => {
                let began = all.began.get(call).copied().unwrap_or(*at);
                faults.explain(*code, (began, end))
            }
            _ => false,
        };
        if !with_its_call && !faults.excuse_lost_answer((*at, end)) {
            let outcome = ended.map(|(_, outcome)| outcome);
            report.broken(
                "C7",
                format!("{call}: {answer:?} was taken at {at}, and nobody was told of it; the end at {end}: {outcome:?}"),
            );
        }
    }
}
