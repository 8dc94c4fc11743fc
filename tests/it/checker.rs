//! The checker of the chaos test, tried on histories that were doctored: each broken promise must be seen, and no kept one blamed.

mod admissions;
mod answers;
mod cancels;
mod excuses;
mod lists;
mod put_off;

use std::cell::Cell;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_tests::{
    checker::check,
    history::{Body, Fault, FaultKind, Line, Outcome, What},
};

/// An event id as the service writes it: stream, attempt, number.
fn id(stream: u8, attempt: u32, number: u64) -> String {
    let mut bytes = vec![b'A'];
    bytes.extend([stream; 8]);
    bytes.extend(number.to_be_bytes());
    bytes.extend(attempt.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(b"1 and a tag of 16 bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The same place under the id that a resumed stream begins with.
fn place(stream: u8, attempt: u32, number: u64) -> String {
    let bytes = URL_SAFE_NO_PAD
        .decode(id(stream, attempt, number))
        .unwrap_or_default();
    URL_SAFE_NO_PAD.encode([b"Rsalt", &bytes[1..]].concat())
}

fn result(of: &str) -> Outcome {
    Outcome::Result {
        of: of.to_owned(),
        whole: true,
        again: false,
    }
}

fn again(of: &str) -> Outcome {
    Outcome::Result {
        of: of.to_owned(),
        whole: true,
        again: true,
    }
}

fn error(code: i64, executed: &str) -> Outcome {
    Outcome::Error {
        code,
        executed: Some(executed.to_owned()),
    }
}

fn progress(of: &str, n: u64) -> Body {
    Body::Progress {
        of: of.to_owned(),
        n: n * 1000,
    }
}

fn got(call: &str, id: Option<String>, body: Body) -> What {
    What::Got {
        call: call.to_owned(),
        id,
        body,
    }
}

fn fault(name: &str, kind: FaultKind) -> What {
    What::Fault(Fault {
        name: name.to_owned(),
        kind,
    })
}

fn ended(call: &str, outcome: Outcome) -> What {
    What::Ended {
        call: call.to_owned(),
        outcome,
    }
}

fn began(call: &str, session: &str, safe: bool) -> What {
    What::Began {
        call: call.to_owned(),
        session: Some(session.to_owned()),
        safe,
        deadline: 20_000,
    }
}

/// A call that is streamed, cut after its first progress notice, resumed, and answered.
fn good(call: &str, stream: u8) -> Vec<What> {
    vec![
        began(call, "s", false),
        got(call, Some(id(stream, 1, 0)), Body::Priming),
        got(call, Some(id(stream, 1, 1)), progress(call, 1)),
        What::Resumed {
            call: call.to_owned(),
            status: 200,
        },
        got(call, Some(id(stream, 1, 2)), progress(call, 2)),
        got(call, Some(id(stream, 1, 3)), Body::Response(result(call))),
        ended(call, result(call)),
        What::Executed {
            call: call.to_owned(),
            times: 1,
            broken: 0,
        },
    ]
}

/// Lines at these milliseconds, put in their order.
fn at(mut lines: Vec<(u64, What)>) -> Vec<Line> {
    lines.sort_by_key(|(at, _)| *at);
    let lines = lines.into_iter();
    lines.map(|(at, what)| Line { at, what }).collect()
}

/// One line a second.
fn timed(whats: Vec<What>) -> Vec<Line> {
    (0..)
        .map(|second| second * 1000)
        .zip(whats)
        .map(|(at, what)| Line { at, what })
        .collect()
}

thread_local! {
    /// Doctored histories that this thread has seen through.
    static DETECTED: Cell<usize> = const { Cell::new(0) };
}

/// The rules that a history breaks.
fn broken(whats: Vec<What>) -> Vec<&'static str> {
    broken_by(&timed(whats))
}

/// The rules that these lines break.
fn broken_by(lines: &[Line]) -> Vec<&'static str> {
    let report = check(lines);
    if !report.violations.is_empty() {
        DETECTED.set(DETECTED.get() + 1);
    }
    let mut rules: Vec<_> = report
        .violations
        .iter()
        .map(|violation| violation.rule)
        .collect();
    rules.dedup();
    rules
}

/// The good history with one place changed.
fn doctored(change: impl FnOnce(&mut Vec<What>)) -> Vec<&'static str> {
    let mut whats = good("a", 1);
    change(&mut whats);
    broken(whats)
}

fn with_outcome(whats: &mut [What], outcome: &Outcome) {
    whats[5] = got("a", Some(id(1, 1, 3)), Body::Response(outcome.clone()));
    whats[6] = ended("a", outcome.clone());
}

fn executed(times: usize) -> What {
    asked(times, 0)
}

/// So often, and so often the API broke the connection at once.
fn asked(times: usize, broken: usize) -> What {
    What::Executed {
        call: "a".to_owned(),
        times,
        broken,
    }
}

fn over() -> What {
    fault("it is over", FaultKind::Over)
}

/// So many seconds in which nothing happens that matters.
fn quiet(seconds: usize) -> impl Iterator<Item = What> {
    let elsewhere = What::Deleted {
        session: "of nobody".to_owned(),
        took: 0,
    };
    std::iter::repeat_n(elsewhere, seconds)
}

/// The good history after a fault that was over so many seconds before.
fn long_after(kind: FaultKind, seconds: usize, change: impl FnOnce(&mut Vec<What>)) -> Vec<What> {
    let mut whats = good("a", 1);
    change(&mut whats);
    let mut all = vec![fault("something", kind), over()];
    all.extend(quiet(seconds));
    all.extend(whats);
    all
}

#[test]
fn a_history_that_keeps_every_promise_is_not_blamed() {
    let nothing: [&str; 0] = [];
    assert_eq!(broken(good("a", 1)), nothing);
    let report = check(&timed(good("a", 1)));
    assert_eq!((report.calls, report.events), (1, 4));
    assert_eq!(report.resumes[&200], 1);

    // An older client: no priming event.
    let older = doctored(|whats| {
        whats.remove(1);
    });
    assert_eq!(older, nothing);
    // The owner was killed, and an honest error took the result's place.
    let lost = doctored(|whats| {
        with_outcome(whats, &error(-32010, "unknown"));
        whats.insert(3, fault("kill mcp-1", FaultKind::Node));
    });
    assert_eq!(lost, nothing);
    // The store was emptied: a gap, notified before the event that follows it.
    let gap = doctored(|whats| {
        whats[4] = got("a", None, Body::Gap);
        whats.insert(3, fault("empty redis", FaultKind::StoreEmptied));
    });
    assert_eq!(gap, nothing);
    // A tool that only reads was run again by another node, and the result reports that.
    let second = doctored(|whats| {
        whats[0] = began("a", "s", true);
        whats[4] = got("a", Some(id(1, 2, 2)), progress("a", 1));
        whats[5] = got("a", Some(id(1, 2, 3)), Body::Response(again("a")));
        whats[6] = ended("a", again("a"));
        whats[7] = executed(2);
        whats.insert(3, fault("kill mcp-1", FaultKind::Node));
    });
    assert_eq!(second, nothing);
    // After DELETE there is only 404.
    let dead = vec![
        What::Deleted {
            session: "s".to_owned(),
            took: 0,
        },
        began("a", "s", false),
        ended("a", Outcome::Http(404)),
    ];
    assert_eq!(broken(dead), nothing);
}

#[test]
fn c1_another_calls_content_and_another_streams_event_are_seen() {
    assert_eq!(
        doctored(|whats| with_outcome(whats, &result("b"))),
        ["C1"],
        "crossed result"
    );
    assert_eq!(
        doctored(|whats| whats[4] = got("a", Some(id(1, 1, 2)), progress("b", 2))),
        ["C1"],
        "crossed progress"
    );
    assert_eq!(
        doctored(|whats| whats[4] = got("a", Some(id(2, 1, 2)), progress("a", 2))),
        ["C1"],
        "an event of another stream"
    );
    let half = Outcome::Result {
        of: "a".to_owned(),
        whole: false,
        again: false,
    };
    assert_eq!(doctored(|whats| with_outcome(whats, &half)), ["C1"], "half");
}

#[test]
fn c2_an_event_and_a_response_that_come_twice_are_seen() {
    assert_eq!(
        doctored(|whats| {
            let event = whats[2].clone();
            whats.insert(4, event);
        }),
        ["C2"]
    );
    let two = doctored(|whats| {
        let second = got("a", Some(id(1, 1, 4)), Body::Response(result("a")));
        whats.insert(6, second);
    });
    assert_eq!(two, ["C2"]);
}

#[test]
fn c3_events_that_change_places_and_progress_that_goes_back_are_seen() {
    assert!(doctored(|whats| whats.swap(2, 4)).contains(&"C3"));
    assert_eq!(
        doctored(|whats| whats[4] = got("a", Some(id(1, 1, 2)), progress("a", 1))),
        ["C3"]
    );
    let late = doctored(|whats| {
        let late = got("a", None, progress("a", 9));
        whats.insert(6, late);
    });
    assert_eq!(late, ["C3"], "after the response");
}

#[test]
fn c4_an_event_that_is_lost_in_silence_is_seen() {
    assert_eq!(
        doctored(|whats| {
            whats.remove(4);
        }),
        ["C4"],
        "in the middle"
    );
    assert_eq!(
        doctored(|whats| {
            whats.drain(1..3);
        }),
        ["C4"],
        "at the start"
    );
    assert_eq!(
        doctored(|whats| whats[4] = got("a", None, Body::Gap)),
        ["C4"],
        "a gap notice when the store had lost nothing"
    );
    // A loss of the store before the call began does not concern that call.
    let nothing: [&str; 0] = [];
    let with_gap = |whats: &mut Vec<What>| whats[4] = got("a", None, Body::Gap);
    for kind in [
        FaultKind::StoreAway,
        FaultKind::StoreEmptied,
        FaultKind::StoreFull,
    ] {
        assert_eq!(broken(long_after(kind, 30, with_gap)), ["C4"], "{kind:?}");
        assert_eq!(broken(long_after(kind, 2, with_gap)), nothing, "{kind:?}");
    }
    assert_eq!(
        broken(long_after(FaultKind::Node, 0, with_gap)),
        ["C4"],
        "a node that dies loses nothing that a client saw"
    );
}

#[test]
fn c5_a_call_without_an_outcome_or_with_two_or_too_late_is_seen() {
    assert_eq!(
        doctored(|whats| {
            whats.remove(6);
        }),
        ["C5"],
        "none"
    );
    assert_eq!(
        doctored(|whats| whats[6] = ended("a", Outcome::Hung)),
        ["C5"],
        "hung"
    );
    assert_eq!(
        doctored(|whats| {
            let second = ended("a", error(-32010, "unknown"));
            whats.insert(7, second);
        }),
        ["C5"],
        "two"
    );
    assert_eq!(
        doctored(|whats| {
            let pause = fault("pause mcp-2", FaultKind::Node);
            for _ in 0..40 {
                whats.insert(3, pause.clone());
            }
        }),
        ["C5"],
        "40 s after the deadline of 20 s"
    );
    let empty = vec![began("a", "s", false), ended("a", Outcome::Http(202))];
    assert_eq!(broken(empty), ["C5"], "success without a response");
    // While the store is away no node can take over: that is no fault of the nodes.
    let nothing: [&str; 0] = [];
    assert_eq!(
        doctored(|whats| {
            whats.insert(3, fault("stop redis", FaultKind::StoreAway));
            for _ in 0..40 {
                whats.insert(4, fault("wait", FaultKind::Other));
            }
            whats.insert(44, fault("redis is back", FaultKind::StoreBack));
        }),
        nothing
    );
    let left_alone = doctored(|whats| {
        whats.drain(4..6);
        whats[4] = ended("a", Outcome::Refused("gone".to_owned()));
    });
    assert_eq!(left_alone, ["C5"], "it had an id to resume with");
}

#[test]
fn c6_a_silent_second_execution_and_a_false_claim_are_seen() {
    assert_eq!(doctored(|whats| whats[7] = executed(2)), ["C6"], "silent");
    assert_eq!(
        doctored(|whats| {
            whats[0] = began("a", "s", true);
            whats[7] = executed(2);
        }),
        ["C6"],
        "allowed, but not said"
    );
    assert_eq!(
        doctored(|whats| {
            whats[0] = began("a", "s", true);
            with_outcome(whats, &again("a"));
            whats[7] = executed(3);
        }),
        ["C6"],
        "three times"
    );
    assert_eq!(
        doctored(|whats| with_outcome(whats, &again("a"))),
        ["C6"],
        "a tool that changes something was run again"
    );
    assert_eq!(doctored(|whats| whats[7] = executed(0)), ["C6"], "made up");
    // The API broke the connection: what only reads is asked once more, what changes something is not. That it did so to other calls at the
    // same time, or late, excuses nothing.
    let broken_api = |safe, times, broken| {
        doctored(|whats| {
            whats[0] = began("a", "s", safe);
            whats[7] = asked(times, broken);
            whats.insert(3, fault("api is Dead", FaultKind::Other));
        })
    };
    let nothing: [&str; 0] = [];
    assert_eq!(broken_api(true, 2, 1), nothing);
    assert_eq!(broken_api(true, 2, 0), ["C6"]);
    assert_eq!(broken_api(true, 3, 2), ["C6"]);
    assert_eq!(broken_api(false, 2, 1), ["C6"]);
    // For any other outcome: only a result can say that the call was run again.
    for outcome in [
        Outcome::ToolError("the API is broken".to_owned()),
        error(-32010, "unknown"),
    ] {
        let silent = doctored(|whats| {
            whats[0] = began("a", "s", true);
            with_outcome(whats, &outcome);
            whats[7] = executed(2);
            whats.insert(3, fault("kill mcp-1", FaultKind::Node));
        });
        assert_eq!(silent, ["C6"], "{outcome:?}");
    }
    let made_up = doctored(|whats| {
        with_outcome(whats, &error(-32016, "yes"));
        whats[7] = executed(0);
    });
    assert_eq!(made_up, ["C6"], "executed: yes, and the API was not asked");
    let denied = doctored(|whats| {
        with_outcome(whats, &error(-32010, "no"));
        whats.insert(3, fault("drain mcp-1", FaultKind::Node));
    });
    assert_eq!(denied, ["C6"], "executed: no, and the API knows better");
    let nobody = broken(vec![executed(1)]);
    assert_eq!(nobody, ["C6"], "nobody asked for it");
}

#[test]
fn c9_a_session_that_comes_back_or_dies_by_itself_is_seen() {
    let deleted = What::Deleted {
        session: "s".to_owned(),
        took: 0,
    };
    let revived = |extra: Vec<What>| {
        let mut whats = vec![deleted.clone()];
        whats.extend(extra);
        whats.extend(good("a", 1));
        broken(whats)
    };
    assert_eq!(revived(Vec::new()), ["C9"]);
    let nothing: [&str; 0] = [];
    assert_eq!(
        revived(vec![fault("empty redis", FaultKind::StoreEmptied)]),
        nothing,
        "the tombstone is lost with everything else"
    );
    assert_eq!(
        revived(vec![fault("stop redis", FaultKind::StoreAway)]),
        nothing,
        "the price of going on without the store"
    );
    let away = |until: usize, then: usize| {
        let mut extra = vec![fault("stop redis", FaultKind::StoreAway)];
        extra.extend(quiet(until));
        extra.push(fault("redis is back", FaultKind::StoreBack));
        extra.extend(quiet(then));
        revived(extra)
    };
    assert_eq!(away(5, 1), nothing, "a node that is about to notice");
    assert_eq!(away(5, 8), ["C9"], "it is back, and knows better");
    let mut longer = vec![fault("stop redis", FaultKind::StoreAway)];
    longer.extend(quiet(40));
    assert_eq!(revived(longer), ["C9"], "30 s, and no longer");
    let lost_after = |seconds: usize| {
        let mut whats = good("a", 1);
        let began = whats.remove(0);
        let mut all = vec![deleted.clone(), began];
        all.extend(quiet(seconds));
        all.push(fault("stop redis", FaultKind::StoreAway));
        all.extend(whats);
        broken(all)
    };
    assert_eq!(lost_after(0), nothing, "it was on its way");
    assert_eq!(lost_after(1), ["C9"], "it had arrived");
    let held_for = |seconds: usize, then: usize| {
        let mut whats = good("a", 1);
        let began = whats.remove(0);
        let mut all = vec![deleted.clone(), fault("hold mcp-1", FaultKind::Node), began];
        all.extend(quiet(seconds));
        all.push(over());
        all.extend(quiet(then));
        all.push(fault("stop redis", FaultKind::StoreAway));
        all.extend(whats);
        broken(all)
    };
    assert_eq!(held_for(5, 0), nothing, "looked at when the node went on");
    assert_eq!(held_for(5, 2), ["C9"], "that was before");
    let died = vec![began("a", "s", false), ended("a", Outcome::Http(404))];
    assert_eq!(broken(died), ["C9"], "404, and nobody deleted it");
}

#[test]
fn c12_an_id_that_is_used_twice_or_refused_is_seen() {
    let mut whats = good("a", 1);
    whats.extend(good("b", 1));
    assert!(broken(whats).contains(&"C12"));
    let refused = doctored(|whats| {
        whats.drain(4..6);
        whats[4] = ended("a", Outcome::Http(400));
    });
    assert_eq!(refused, ["C12"]);
}

#[test]
fn all_doctored_histories_are_detected_and_counted() {
    let before = DETECTED.get();
    c1_another_calls_content_and_another_streams_event_are_seen();
    c2_an_event_and_a_response_that_come_twice_are_seen();
    c3_events_that_change_places_and_progress_that_goes_back_are_seen();
    c4_an_event_that_is_lost_in_silence_is_seen();
    c5_a_call_without_an_outcome_or_with_two_or_too_late_is_seen();
    c6_a_silent_second_execution_and_a_false_claim_are_seen();
    c9_a_session_that_comes_back_or_dies_by_itself_is_seen();
    c12_an_id_that_is_used_twice_or_refused_is_seen();
    excuses::c15_an_error_that_blames_a_node_when_none_was_lost_is_seen();
    excuses::a_call_that_an_sdk_gives_up_without_need_is_seen();
    excuses::a_store_that_goes_back_excuses_what_it_forgot_and_nothing_else();
    excuses::a_resumed_stream_may_say_where_the_client_is_and_no_more();
    answers::c7_an_answer_that_is_lost_doubled_changed_or_crossed_is_seen();
    answers::c5_a_call_that_waits_in_vain_for_an_answer_is_seen();
    cancels::c8_work_that_goes_on_after_its_cancel_is_seen();
    cancels::c8_an_answer_to_what_was_cancelled_is_seen();
    lists::c10_who_is_not_told_of_a_change_is_seen();
    lists::c10_a_notice_that_comes_twice_is_seen();
    lists::c10_a_list_that_is_out_of_date_is_seen();
    admissions::c11_more_calls_than_a_limit_lets_in_are_seen();
    put_off::c14_a_service_that_puts_many_off_without_need_is_seen();
    let detected = DETECTED.get() - before;
    println!("checker: {detected} doctored histories, all detected");
    assert!(detected >= 15, "{detected}");
}
