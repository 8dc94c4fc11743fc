//! TEST-C8: calls that are cancelled.

use super::*;

fn name() -> String {
    "a".to_owned()
}

/// A call that the API works on, cancelled after a second, which the API sees half a second later.
fn cancelled() -> Vec<(u64, What)> {
    vec![
        (60_000, began("a", "s", false)),
        (60_100, What::Reached { call: name() }),
        (61_000, What::Cancelled { call: name() }),
        (61_500, What::GivenUp { call: name() }),
        (61_600, ended("a", Outcome::Cancelled)),
        (90_000, executed(1)),
    ]
}

fn with(change: impl FnOnce(&mut Vec<(u64, What)>)) -> Vec<&'static str> {
    let mut lines = cancelled();
    change(&mut lines);
    broken_by(&at(lines))
}

/// Something that goes on from `from` to `until`.
fn during(lines: &mut Vec<(u64, What)>, kind: FaultKind, from: u64, until: u64) {
    lines.extend([(from, fault("something", kind)), (until, over())]);
}

#[test]
pub(super) fn c8_work_that_goes_on_after_its_cancel_is_seen() {
    let nothing: [&str; 0] = [];
    assert_eq!(with(|_| {}), nothing);
    let report = check(&at(cancelled()));
    assert_eq!((report.cancels, report.cancels_judged), (1, 1));

    let seen_at = |time: u64| with(|lines| lines[3].0 = time);
    assert_eq!(seen_at(63_000), nothing, "two seconds");
    assert_eq!(seen_at(63_001), ["C8"]);
    let never = with(|lines| {
        lines.remove(3);
    });
    assert_eq!(never, ["C8"]);
    // It had answered before it could be stopped.
    let answered = |time: u64| with(|lines| lines[3] = (time, What::Served { call: name() }));
    assert_eq!(answered(62_900), nothing);
    assert_eq!(answered(64_000), ["C8"], "it went on to its end");
    // The cancel came first.
    let unbegun = with(|lines| {
        lines.drain(3..4);
        lines.remove(1);
        lines.pop();
    });
    assert_eq!(unbegun, nothing);
    let begun_late = with(|lines| {
        lines[1].0 = 63_500;
        lines[3].0 = 63_600;
    });
    assert_eq!(begun_late, ["C8"], "and yet it was begun");

    let late = |kind, from, until| {
        with(|lines| {
            lines[3].0 = 66_000;
            during(lines, kind, from, until);
        })
    };
    for kind in [
        FaultKind::Node,
        FaultKind::StoreAway,
        FaultKind::StoreFull,
        FaultKind::Doorbells,
    ] {
        assert_eq!(late(kind, 60_500, 64_000), nothing, "{kind:?}");
        assert_eq!(late(kind, 50_000, 56_000), ["C8"], "{kind:?}: long over");
        assert_eq!(late(kind, 63_500, 64_000), ["C8"], "{kind:?}: later");
    }
    for kind in [FaultKind::Other, FaultKind::Database] {
        assert_eq!(late(kind, 60_500, 64_000), ["C8"], "{kind:?}");
    }
}

#[test]
pub(super) fn c8_an_answer_to_what_was_cancelled_is_seen() {
    let nothing: [&str; 0] = [];
    let answer = |outcome: Outcome, last: What| {
        with(|lines| {
            lines[3].1 = last;
            lines[4].1 = ended("a", outcome);
        })
    };
    let served = || What::Served { call: name() };
    let given_up = || What::GivenUp { call: name() };
    assert_eq!(answer(result("a"), served()), nothing, "it was on its way");
    assert_eq!(answer(result("a"), given_up()), ["C8"]);
    assert_eq!(answer(error(-32016, "unknown"), given_up()), ["C8"]);
    let failed = Outcome::ToolError("the API hung up".to_owned());
    assert_eq!(answer(failed, given_up()), ["C8"]);
    // Its node died with the cancel.
    let lost = with(|lines| {
        lines[4] = (72_000, ended("a", error(-32010, "unknown")));
        during(lines, FaultKind::Node, 61_200, 63_000);
    });
    assert_eq!(lost, nothing);
    // A client that resumes after its end must not get one either.
    let after = with(|lines| {
        lines[3] = (61_500, given_up());
        lines.push((
            61_550,
            got("a", Some(id(1, 1, 1)), Body::Response(result("a"))),
        ));
    });
    assert!(after.contains(&"C8"), "{after:?}");
}
