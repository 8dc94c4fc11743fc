//! TEST-C14: requests that are answered 503.

use super::*;

/// So many calls, one every hundred milliseconds. The first `put_off` of them are answered 503.
fn calls(count: u64, put_off: u64) -> Vec<(u64, What)> {
    let each = (0..count).flat_map(|number| {
        let call = format!("a-{number}");
        let (time, served) = (number * 100, number >= put_off);
        let outcome = if served {
            result(&call)
        } else {
            Outcome::Http(503)
        };
        [
            (time, began(&call, "s", false)),
            (time + 50, ended(&call, outcome)),
            (
                time + 50,
                What::Executed {
                    call,
                    times: usize::from(served),
                    broken: 0,
                },
            ),
        ]
    });
    each.collect()
}

fn with(count: u64, put_off: u64, kind: Option<FaultKind>) -> Vec<&'static str> {
    let mut lines = calls(count, put_off);
    if let Some(kind) = kind {
        lines.extend([(0, fault("something", kind)), (1_000, over())]);
    }
    broken_by(&at(lines))
}

#[test]
pub(super) fn c14_a_service_that_puts_many_off_without_need_is_seen() {
    let nothing: [&str; 0] = [];
    // One in a thousand.
    assert_eq!(with(9_000, 9, None), nothing);
    assert_eq!(with(9_000, 10, None), ["C14"]);
    // Three are no share of a few.
    assert_eq!(with(500, 3, None), nothing);
    assert_eq!(with(500, 4, None), ["C14"]);
    let report = check(&at(calls(500, 3)));
    assert_eq!((report.put_off, report.undisturbed), (3, 500));
    for kind in [
        FaultKind::StoreAway,
        FaultKind::StoreEmptied,
        FaultKind::StoreFull,
        FaultKind::Database,
    ] {
        assert_eq!(with(500, 10, Some(kind)), nothing, "{kind:?}");
        assert_eq!(with(500, 200, Some(kind)), ["C14"], "{kind:?}: long after");
    }
    for kind in [FaultKind::Node, FaultKind::Doorbells, FaultKind::Other] {
        assert_eq!(with(500, 10, Some(kind)), ["C14"], "{kind:?}");
    }
    // TEST-F14: all nodes but one.
    let mut lines = calls(500, 10);
    lines.extend([
        (0, fault("kill mcp-1", FaultKind::Node)),
        (0, fault("kill mcp-2", FaultKind::Node)),
        (1_000, over()),
    ]);
    assert_eq!(broken_by(&at(lines)), nothing);
    // A resume counts as a request, too.
    let mut lines = calls(500, 0);
    let resumed = |number: u64| {
        let call = format!("a-{number}");
        (number * 100 + 20, What::Resumed { call, status: 503 })
    };
    lines.extend((0..4).map(resumed));
    assert_eq!(broken_by(&at(lines)), ["C14"]);
}
