//! TEST-C8: what is cancelled stops within two seconds, and is not answered.

use std::collections::BTreeMap;

use super::{Faults, Report};
use crate::history::{Body, Line, Outcome, What};

/// From a cancel that was taken until the API sees it, milliseconds.
const WITHIN: u64 = 2_000;

/// When the API was asked for a call, answered, and was left alone.
#[derive(Debug, Default)]
struct Work {
    reached: Vec<u64>,
    served: Vec<u64>,
    given_up: Vec<u64>,
}

fn until(times: &[u64], at: u64) -> usize {
    times.iter().filter(|time| **time <= at).count()
}

pub(super) fn check(report: &mut Report, lines: &[Line], faults: &Faults) {
    let mut works: BTreeMap<&str, Work> = BTreeMap::new();
    let (mut began, mut cancelled, mut answered) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for line in lines {
        match &line.what {
            What::Began { call, .. } => {
                began.insert(call.as_str(), line.at);
            }
            What::Cancelled { call } => {
                cancelled.entry(call.as_str()).or_insert(line.at);
            }
            What::Ended {
                call,
                outcome: Outcome::Result { .. } | Outcome::ToolError(_) | Outcome::Error { .. },
            }
            | What::Got {
                call,
                body: Body::Response(_),
                ..
            } => {
                answered.entry(call.as_str()).or_insert(line.at);
            }
            What::Reached { call } => works.entry(call).or_default().reached.push(line.at),
            What::Served { call } => works.entry(call).or_default().served.push(line.at),
            What::GivenUp { call } => works.entry(call).or_default().given_up.push(line.at),
            _ => {}
        }
    }
    let none = Work::default();
    for (call, at) in cancelled {
        report.cancels += 1;
        let began = began.get(call).copied().unwrap_or(at);
        let work = works.get(call).unwrap_or(&none);
        let limit = at + WITHIN;
        if !faults.excuse_late_cancel((began, limit)) {
            report.cancels_judged += 1;
            let over = until(&work.served, limit) + until(&work.given_up, limit);
            if until(&work.reached, limit) > over {
                report.broken(
                    "C8",
                    format!("{call}: the API was still at work {WITHIN} ms after the cancel"),
                );
            }
            if work.reached.len() > until(&work.reached, limit) {
                report.broken("C8", format!("{call} was begun after its cancel"));
            }
        }
        // An answer that was on its way already may come; there is none to what the API was not allowed to end.
        let Some(answered) = answered.get(call) else {
            continue;
        };
        let was_sent = until(&work.served, limit) > 0;
        if !was_sent && !faults.excuse_late_cancel((began, *answered)) {
            report.broken("C8", format!("{call} was answered after its cancel"));
        }
    }
}
