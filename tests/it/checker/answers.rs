//! TEST-C7: answers to what a call asks.

use portolan_tests::checker::NODE_LOST;

use super::*;

/// A call that asks, receives one answer, and has a result.
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

/// The answer of the client of `whose`, as received by `call`.
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
    // Two calls at once, each with its own answer.
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
    // A client without a confirmation sends its answer again: then, too, the call receives it once.
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
    // The node of the call died long before there was an answer, and was found dead after it.
    let after_its_node = |outcome: Outcome, kind: FaultKind| {
        with(|whats| {
            whats[5] = ended("a", outcome);
            whats.remove(4);
            whats.splice(2..2, quiet(5));
            whats.splice(2..2, [fault("something", kind), over()]);
        })
    };
    let nobody = || error(NODE_LOST, "unknown");
    assert_eq!(after_its_node(nobody(), FaultKind::Node), nothing);
    assert_eq!(after_its_node(stopped(), FaultKind::Node), ["C7"]);
    assert_eq!(after_its_node(nobody(), FaultKind::Other), ["C7", "C15"]);
    // A refused answer need not be received.
    let refused = with(|whats| {
        whats[5] = ended("a", stopped());
        whats.drain(3..5);
    });
    assert_eq!(refused, nothing);

    assert_eq!(
        lost(stopped(), Some(FaultKind::StoreFull)),
        ["C7"],
        "it took none"
    );
}

#[test]
pub(super) fn c5_a_call_that_waits_in_vain_for_an_answer_is_seen() {
    let nothing: [&str; 0] = [];
    let hung = |change: &dyn Fn(&mut Vec<What>)| {
        with(|whats| {
            whats[5] = ended("a", Outcome::Hung);
            whats.remove(4);
            change(whats);
        })
    };
    let during = |kind: FaultKind, place: usize| {
        hung(&|whats| {
            whats.insert(place, fault("something", kind));
            whats.insert(place + 2, over());
        })
    };
    // An answer waits until the store has the question: it is received if the question was asked
    // before, or while the store was full or away.
    assert_eq!(during(FaultKind::StoreFull, 1), ["C7", "C5"]);
    assert_eq!(during(FaultKind::StoreFull, 3), ["C7", "C5"]);
    assert_eq!(during(FaultKind::StoreAway, 1), ["C5"]);
    assert_eq!(during(FaultKind::Node, 1), ["C5"]);
    // The store lost the answer; or the question, and that long before there was an answer.
    assert_eq!(during(FaultKind::StoreEmptied, 3), nothing);
    let emptied_before = hung(&|whats| {
        whats.splice(2..2, quiet(30));
        whats.insert(2, over());
        whats.insert(2, fault("empty redis", FaultKind::StoreEmptied));
    });
    assert!(emptied_before.contains(&"C5"), "{emptied_before:?}");
    // A node kept the answer, because the store did not have the question, and died.
    let with_its_node = hung(&|whats| {
        whats.insert(4, over());
        whats.insert(4, fault("kill mcp-1", FaultKind::Node));
        whats.insert(1, fault("fill redis", FaultKind::StoreFull));
    });
    assert_eq!(with_its_node, nothing);
    // It was not accepted.
    let refused = hung(&|whats| {
        whats.remove(3);
        whats.insert(1, fault("fill redis", FaultKind::StoreFull));
    });
    assert_eq!(refused, nothing);
}
