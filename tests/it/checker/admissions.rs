//! TEST-C11: a limit over all nodes.

use super::*;

/// Thirty a minute, three nodes, three clients.
fn limited() -> (u64, What) {
    let limit = What::Limited {
        calls: "limited".to_owned(),
        per_minute: 30,
        nodes: 3,
        at_a_time: 3,
    };
    (0, limit)
}

/// So many calls of one kind, `apart` milliseconds between them.
fn calls(word: &str, count: u64, from: u64, apart: u64) -> Vec<(u64, What)> {
    let each = (0..count).flat_map(|number| {
        let call = format!("{word}-{from}-{number}");
        let time = from + number * apart;
        [
            (time, began(&call, "s", false)),
            (time, What::Reached { call: call.clone() }),
            (time + 10, ended(&call, result(&call))),
            (
                time + 10,
                What::Executed {
                    call,
                    times: 1,
                    broken: 0,
                },
            ),
        ]
    });
    each.collect()
}

fn let_in(parts: Vec<Vec<(u64, What)>>) -> Vec<&'static str> {
    let mut lines = vec![limited()];
    lines.extend(parts.into_iter().flatten());
    broken_by(&at(lines))
}

fn during(kind: FaultKind, from: u64, until: u64) -> Vec<(u64, What)> {
    vec![(from, fault("something", kind)), (until, over())]
}

#[test]
pub(super) fn c11_more_calls_than_a_limit_lets_in_are_seen() {
    let nothing: [&str; 0] = [];
    let burst = |count| calls("limited", count, 20_000, 0);
    // All at once: the bucket, what a second brings, one for each node, and those under way.
    assert_eq!(let_in(vec![burst(36)]), nothing);
    assert_eq!(let_in(vec![burst(37)]), ["C11"]);
    // The limit is one every two seconds for an hour; two in three are one and a half times as
    // much.
    assert_eq!(let_in(vec![calls("limited", 1_800, 0, 2_000)]), nothing);
    assert_eq!(let_in(vec![calls("limited", 400, 0, 1_333)]), ["C11"]);
    // A full bucket, a quiet minute, and another one; without the minute it is too much.
    let twice = |apart: u64| {
        let second = calls("limited", 30, 20_000 + apart, 0);
        let_in(vec![burst(30), second])
    };
    assert_eq!(twice(60_000), nothing);
    assert_eq!(twice(30_000), ["C11"]);
    // Others have no limit.
    assert_eq!(let_in(vec![calls("client", 300, 20_000, 10)]), nothing);

    // While the store is away each node has its share, and a full bucket of it.
    let with = |count, kind, from, until| let_in(vec![burst(count), during(kind, from, until)]);
    assert_eq!(with(66, FaultKind::StoreAway, 15_000, 25_000), nothing);
    assert_eq!(with(70, FaultKind::StoreAway, 15_000, 25_000), ["C11"]);
    assert_eq!(with(66, FaultKind::StoreAway, 5_000, 10_000), ["C11"]);
    // It admits once more the calls that it forgot.
    assert_eq!(with(66, FaultKind::StoreEmptied, 20_000, 20_001), nothing);
    assert_eq!(with(70, FaultKind::StoreEmptied, 20_000, 20_001), ["C11"]);
    for kind in [FaultKind::Other, FaultKind::Database, FaultKind::StoreFull] {
        assert_eq!(with(40, kind, 15_000, 25_000), ["C11"], "{kind:?}");
    }
    // A node that begins lets one in before it asks.
    assert_eq!(with(37, FaultKind::Node, 20_000, 20_000), nothing);
    assert_eq!(with(38, FaultKind::Node, 20_000, 20_000), ["C11"]);
    // Two of three nodes were dead when the store went away, and came back: the third had counted
    // no other node.
    let alone = |count| {
        let mut lines = vec![
            (10_000, fault("kill mcp-1", FaultKind::Node)),
            (10_000, fault("kill mcp-2", FaultKind::Node)),
        ];
        lines.push((14_000, over()));
        lines.extend(during(FaultKind::StoreAway, 15_000, 25_000));
        let_in(vec![lines, burst(count)])
    };
    assert_eq!(alone(120), nothing);
    assert_eq!(alone(140), ["C11"]);
}
