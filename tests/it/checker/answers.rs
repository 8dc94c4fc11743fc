//! C7: answers to what a call asks.

use super::*;

/// A call that asks, is told once, and has a result.
fn asked(call: &str) -> Vec<What> {
    let text = |text: &str| text.to_owned();
    vec![
        began(call, "s", false),
        What::Asked {
            call: text(call),
            about: text(call),
        },
        What::Answers {
            call: text(call),
            answer: format!("{call} says so"),
        },
        What::Taken {
            call: text(call),
            answer: format!("{call} says so"),
        },
        heard(call, call),
        ended(call, result(call)),
        What::Executed {
            call: text(call),
            times: 1,
            broken: 0,
        },
    ]
}

/// What the client of `whose` said, heard by `call`.
fn heard(call: &str, whose: &str) -> What {
    What::Heard {
        call: call.to_owned(),
        answer: format!("{whose} says so"),
    }
}

fn with(change: impl FnOnce(&mut Vec<What>)) -> Vec<&'static str> {
    let mut whats = asked("a");
    change(&mut whats);
    broken(whats)
}

#[test]
pub(super) fn c7_an_answer_that_is_lost_doubled_changed_or_crossed_is_seen() {
    let nothing: [&str; 0] = [];
    assert_eq!(with(|_| {}), nothing);
    assert_eq!(check(&timed(asked("a"))).answers, 1);
    // Two calls at once, each told its own.
    assert_eq!(with(|whats| whats.extend(asked("b"))), nothing);

    let crossed = with(|whats| {
        let mut other = asked("b");
        other[4] = heard("b", "a");
        whats.extend(other);
    });
    assert_eq!(crossed, ["C7"], "b was told what a's client said");
    let changed = with(|whats| {
        whats[4] = What::Heard {
            call: "a".to_owned(),
            answer: "a says s".to_owned(),
        };
    });
    assert_eq!(changed, ["C7"], "changed on the way");
    assert_eq!(
        with(|whats| whats.insert(5, heard("a", "a"))),
        ["C7"],
        "twice"
    );
    // A client that does not hear that it was taken says it again: then, too, the call hears it once.
    let again = |also_heard: bool| {
        with(|whats| {
            let said = whats[2].clone();
            whats.insert(3, said);
            if also_heard {
                whats.insert(6, heard("a", "a"));
            }
        })
    };
    assert_eq!(again(false), nothing);
    assert_eq!(again(true), ["C7"]);
    let misled = with(|whats| {
        whats[1] = What::Asked {
            call: "a".to_owned(),
            about: "b".to_owned(),
        };
    });
    assert_eq!(misled, ["C7"], "a question of another call");
    let early = with(|whats| whats.swap(2, 4));
    assert_eq!(early, ["C7"], "told before anybody said it");

    let lost = |outcome: Outcome, kind: Option<FaultKind>| {
        with(|whats| {
            whats[5] = ended("a", outcome);
            whats.remove(4);
            if let Some(kind) = kind {
                whats.insert(4, over());
                whats.insert(4, fault("something", kind));
            }
        })
    };
    let stopped = || Outcome::ToolError("nobody answered".to_owned());
    assert_eq!(lost(result("a"), None), ["C7"]);
    assert_eq!(lost(stopped(), None), ["C7"], "taken, and lost");
    assert_eq!(lost(stopped(), Some(FaultKind::Node)), nothing);
    assert_eq!(lost(stopped(), Some(FaultKind::StoreAway)), nothing);
    assert_eq!(lost(stopped(), Some(FaultKind::StoreEmptied)), nothing);
    for kind in [FaultKind::Other, FaultKind::Doorbells, FaultKind::Database] {
        assert_eq!(
            lost(stopped(), Some(kind)),
            ["C7"],
            "{kind:?}: the store has it, and its owner looks there"
        );
    }
    assert_eq!(
        lost(result("a"), Some(FaultKind::Node)),
        ["C7"],
        "a result that no answer led to"
    );
    // One that was refused need not be heard.
    let refused = with(|whats| {
        whats[5] = ended("a", stopped());
        whats.drain(3..5);
    });
    assert_eq!(refused, nothing);

    // A question that a store did not take, full or away, is one that no answer finds: that is counted.
    let hung = |kind: FaultKind, place: usize| {
        with(|whats| {
            whats[5] = ended("a", Outcome::Hung);
            whats.remove(4);
            whats.insert(place, fault("something", kind));
            whats.insert(place + 2, over());
        })
    };
    assert_eq!(hung(FaultKind::StoreFull, 1), nothing);
    assert_eq!(hung(FaultKind::StoreAway, 1), nothing);
    assert_eq!(hung(FaultKind::StoreEmptied, 3), nothing);
    assert!(
        hung(FaultKind::StoreFull, 3).contains(&"C5"),
        "asked before"
    );
    assert!(hung(FaultKind::Node, 1).contains(&"C5"));
}
