//! TEST-C14: hardly any request gets 503 while store and database are there.

use std::collections::BTreeMap;

use super::{Faults, Report};
use crate::history::{Line, Outcome, What};

/// One of so many requests may get 503.
const OF: usize = 1_000;
/// So few are no share yet: a short run has some two thousand requests that count, and one moment in which a balancer has not noticed the
/// death of a node meets as many at once as that node's connections.
const FEW: usize = 3;

pub(super) fn check(report: &mut Report, lines: &[Line], faults: &Faults) {
    let mut began: BTreeMap<&str, u64> = BTreeMap::new();
    let mut when = Vec::new();
    let mut note = |report: &mut Report, what: String, time: (u64, u64), status: u16| {
        if faults.excuse_503(time) {
            return;
        }
        report.undisturbed += 1;
        if status == 503 {
            report.put_off += 1;
            when.push(format!("{what} at {}", time.1));
        }
    };
    for line in lines {
        match &line.what {
            What::Began { call, .. } => {
                began.insert(call, line.at);
            }
            What::Ended { call, outcome } => {
                let from = began.get(call.as_str()).copied().unwrap_or(line.at);
                let status = match outcome {
                    Outcome::Http(status) => *status,
                    _ => 0,
                };
                note(report, call.clone(), (from, line.at), status);
            }
            What::Resumed { call, status } => {
                note(
                    report,
                    format!("a resume of {call}"),
                    (line.at, line.at),
                    *status,
                );
            }
            _ => {}
        }
    }
    if report.put_off > FEW.max(report.undisturbed / OF) {
        report.broken(
            "C14",
            format!(
                "{} of {} requests were put off with 503: {}",
                report.put_off,
                report.undisturbed,
                when.join(", ")
            ),
        );
    }
}
