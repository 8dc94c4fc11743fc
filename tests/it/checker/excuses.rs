//! Findings that a fault excuses, and findings that it does not.

use portolan_tests::checker::LOST_ITS_PLACE;

use super::*;

#[test]
pub(super) fn c15_an_error_that_blames_a_node_when_none_was_lost_is_seen() {
    assert_eq!(
        doctored(|whats| with_outcome(whats, &error(-32010, "unknown"))),
        ["C15"]
    );
    assert_eq!(
        doctored(|whats| with_outcome(whats, &error(-32011, "unknown"))),
        ["C15"]
    );
    assert_eq!(
        doctored(|whats| with_outcome(whats, &error(-31004, "unknown"))),
        ["C15"],
        "2026-07-28"
    );
    let nothing: [&str; 0] = [];
    let after = |code, kind, seconds| {
        let lost = |whats: &mut Vec<What>| with_outcome(whats, &error(code, "unknown"));
        broken(long_after(kind, seconds, lost))
    };
    let during = |code, kind| {
        doctored(|whats| {
            with_outcome(whats, &error(code, "unknown"));
            whats.insert(3, fault("something", kind));
        })
    };
    for code in [-32010, -32011, -31004] {
        assert_eq!(during(code, FaultKind::Node), nothing);
        assert_eq!(during(code, FaultKind::StoreAway), nothing);
        // The balancer, the API, Postgres, clients' own network: none of them takes a node away.
        assert_eq!(during(code, FaultKind::Other), ["C15"]);
        assert_eq!(after(code, FaultKind::Node, 10), ["C15"], "it was back");
        assert_eq!(after(code, FaultKind::StoreEmptied, 30), ["C15"]);
    }
    // TEST-F7: a stream that could not be kept is lost, and no node is.
    assert_eq!(during(-32011, FaultKind::StoreFull), nothing);
    assert_eq!(during(-32010, FaultKind::StoreFull), ["C15"]);
    let silent = |executed: Option<&str>| {
        doctored(|whats| {
            let executed = executed.map(str::to_owned);
            let code = -32010;
            with_outcome(whats, &Outcome::Error { code, executed });
            whats.insert(3, fault("kill mcp-1", FaultKind::Node));
        })
    };
    assert_eq!(silent(None), ["C15"], "no word on whether it took effect");
    assert_eq!(silent(Some("perhaps")), ["C15"], "none of the three");
}

#[test]
pub(super) fn a_call_that_an_sdk_gives_up_without_need_is_seen() {
    let tries = |statuses: &[u16], why: &str, kind: Option<FaultKind>| {
        doctored(|whats| {
            whats.truncate(3);
            if let Some(kind) = kind {
                whats.push(fault("something", kind));
            }
            whats.extend(statuses.iter().map(|status| What::Resumed {
                call: "a".to_owned(),
                status: *status,
            }));
            whats.push(ended("a", Outcome::GaveUp(why.to_owned())));
        })
    };
    let nothing: [&str; 0] = [];
    let balancer = Some(FaultKind::Other);
    // Two tries failed while the balancer was away: so it is written in the SDKs.
    assert_eq!(tries(&[0, 503], "two tries", balancer), nothing);
    assert_eq!(tries(&[200], LOST_ITS_PLACE, balancer), nothing);
    assert_eq!(tries(&[200, 0], "two tries", balancer), ["C5"], "after one");
    assert_eq!(
        tries(&[0, 0], "two tries", None),
        ["C5"],
        "nothing was wrong"
    );
    assert_eq!(
        tries(&[], LOST_ITS_PLACE, balancer),
        ["C5"],
        "no try at all"
    );
    assert_eq!(
        tries(&[400, 400], "two tries", balancer),
        ["C12"],
        "refused"
    );
    // The balancer was back for long when the tries failed.
    let late = |statuses: &[u16], why: &str| {
        broken(long_after(FaultKind::Other, 30, |whats| {
            whats.truncate(3);
            whats.extend(statuses.iter().map(|status| What::Resumed {
                call: "a".to_owned(),
                status: *status,
            }));
            whats.push(ended("a", Outcome::GaveUp(why.to_owned())));
        }))
    };
    assert_eq!(late(&[0, 503], "two tries"), ["C5"]);
    assert_eq!(late(&[200], LOST_ITS_PLACE), ["C5"]);
    assert_eq!(
        tries(&[0], LOST_ITS_PLACE, balancer),
        ["C5"],
        "no stream was resumed"
    );
}

#[test]
pub(super) fn a_store_that_goes_back_excuses_what_it_forgot_and_nothing_else() {
    let nothing: [&str; 0] = [];
    let forgets = || fault("forget what comes", FaultKind::StoreForgets);
    let is_back = || fault("another redis", FaultKind::StoreRolledBack);
    let go_back = |whats: &mut Vec<What>| {
        whats.insert(3, is_back());
        whats.insert(3, forgets());
    };
    let gap = doctored(|whats| {
        whats[4] = got("a", None, Body::Gap);
        go_back(whats);
    });
    assert_eq!(gap, nothing);
    let silent = doctored(|whats| {
        whats.remove(4);
        go_back(whats);
    });
    assert_eq!(silent, ["C4"], "lost, and no word of it");
    let repeated = |times: usize, told: bool| {
        doctored(|whats| {
            let event = whats[2].clone();
            whats.insert(4, event);
            if told {
                whats.insert(4, got("a", None, Body::Gap));
            }
            for _ in 0..times {
                go_back(whats);
            }
        })
    };
    assert_eq!(repeated(2, true), nothing, "the first branch came back");
    assert_eq!(repeated(1, true), ["C2"]);
    assert_eq!(repeated(2, false), ["C2"]);
    // One of the two was before there was a stream.
    let mut earlier = vec![forgets(), is_back()];
    earlier.extend(quiet(10));
    let mut whats = good("a", 1);
    let event = whats[2].clone();
    whats.insert(4, event);
    whats.insert(4, got("a", None, Body::Gap));
    go_back(&mut whats);
    earlier.extend(whats);
    assert_eq!(broken(earlier), ["C2"]);

    let deleted_for = |took| What::Deleted {
        session: "s".to_owned(),
        took,
    };
    let deleted = || deleted_for(0);
    let revived = |whats: Vec<What>| {
        let mut whats = whats;
        whats.extend(good("a", 1));
        broken(whats)
    };
    assert_eq!(
        revived(vec![forgets(), deleted(), is_back()]),
        nothing,
        "the DELETE was among the writes that it was not told of"
    );
    let twice = |second: Vec<What>| {
        let mut whats = vec![forgets(), forgets(), is_back()];
        whats.extend(second);
        revived(whats)
    };
    assert_eq!(
        twice(vec![deleted(), is_back()]),
        nothing,
        "the second one was not told either"
    );
    let mut after = vec![is_back()];
    after.extend(quiet(3));
    after.push(deleted());
    assert_eq!(twice(after), ["C9"], "both were there");
    let mut before = vec![deleted()];
    before.extend(quiet(3));
    before.extend([forgets(), is_back()]);
    assert_eq!(revived(before), ["C9"], "it was told of that one");
    assert_eq!(
        revived(vec![forgets(), is_back(), deleted()]),
        ["C9"],
        "it was there"
    );
    assert_eq!(
        revived(vec![forgets(), is_back(), deleted_for(2_000)]),
        nothing,
        "it was another one when the answer came"
    );
}

#[test]
pub(super) fn a_resumed_stream_may_say_where_the_client_is_and_no_more() {
    let nothing: [&str; 0] = [];
    let again = |id| {
        doctored(|whats| {
            let place = got("a", Some(id), Body::Priming);
            whats.insert(4, place);
        })
    };
    assert_eq!(again(place(1, 1, 1)), nothing);
    assert!(again(place(1, 1, 0)).contains(&"C3"), "it is further");
    assert!(
        again(id(1, 1, 1)).contains(&"C2"),
        "REVIEW-Q11: ids are unique"
    );
}
