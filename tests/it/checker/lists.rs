//! TEST-C10: lists that change.

use super::*;

/// The id of a notice on a session's own stream.
fn news(mark: u64) -> String {
    let mut bytes = vec![b'N'];
    bytes.extend([7; 12]);
    bytes.extend(mark.to_be_bytes());
    bytes.extend(b"the other lists, and a tag of 16 bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

fn list() -> String {
    "moles".to_owned()
}

fn changing(revision: u64) -> What {
    What::Changing {
        list: list(),
        revision,
    }
}

fn changed(revision: u64) -> What {
    What::Changed {
        list: list(),
        revision,
    }
}

fn listens(listener: &str) -> What {
    What::Listens {
        listener: listener.to_owned(),
        list: list(),
        remembered: listener.starts_with("session"),
    }
}

/// A notification of this list; without a session it has no mark of the list.
fn told(listener: &str, mark: Option<u64>) -> What {
    What::Told {
        listener: listener.to_owned(),
        id: mark.map(news),
    }
}

fn left(listener: &str) -> What {
    What::Left {
        listener: listener.to_owned(),
    }
}

fn listed(revision: u64) -> What {
    What::Listed {
        list: list(),
        revision,
    }
}

/// Two changes, and one listener of each era that is notified of both.
fn good() -> Vec<(u64, What)> {
    vec![
        (1_000, listens("session")),
        (1_000, listens("alone")),
        (10_000, changing(1)),
        (10_100, changed(1)),
        (10_300, told("session", Some(1))),
        (10_400, told("alone", None)),
        (40_000, changing(2)),
        (40_100, changed(2)),
        (40_300, told("session", Some(2))),
        (40_400, told("alone", None)),
        (70_000, listed(2)),
    ]
}

fn with(change: impl FnOnce(&mut Vec<(u64, What)>)) -> Vec<&'static str> {
    let mut lines = good();
    change(&mut lines);
    broken_by(&at(lines))
}

fn during(kind: FaultKind, from: u64, until: u64) -> [(u64, What); 2] {
    [(from, fault("something", kind)), (until, over())]
}

#[test]
pub(super) fn c10_who_is_not_told_of_a_change_is_seen() {
    let nothing: [&str; 0] = [];
    assert_eq!(with(|_| {}), nothing);
    let report = check(&at(good()));
    assert_eq!((report.changes, report.told), (2, 4));

    for (place, who) in [(8, "session"), (9, "alone")] {
        let untold = with(|lines| {
            lines.remove(place);
        });
        assert_eq!(untold, ["C10"], "{who}");
        let late = |time| with(|lines| lines[place].0 = time);
        assert_eq!(late(50_100), nothing, "{who}: ten seconds");
        assert_eq!(late(50_101), ["C10"], "{who}");
        for (kind, rules) in [
            (FaultKind::Node, &nothing[..]),
            (FaultKind::Database, &nothing[..]),
            (FaultKind::StoreAway, &["C10"][..]),
            (FaultKind::Other, &["C10"][..]),
        ] {
            let excused = with(|lines| {
                lines.remove(place);
                lines.extend(during(kind, 41_000, 45_000));
            });
            assert_eq!(excused, rules, "{who}: {kind:?}");
            let before = with(|lines| {
                lines.remove(place);
                lines.extend(during(kind, 30_000, 35_000));
            });
            assert_eq!(before, ["C10"], "{who}: {kind:?} that was over");
        }
    }
    // A session whose record is lost in its first minute counts as one that has not sent
    // `notifications/initialized`, until the minute is over.
    let emptied = |place: usize, time, later: Option<(u64, What)>| {
        with(|lines| {
            lines.remove(place);
            lines[0].0 = 4_000;
            lines.extend(during(FaultKind::StoreEmptied, time, time + 1));
            lines.push((120_000, left("nobody")));
            lines.extend([(80_000, changing(3)), (80_100, changed(3))]);
            lines.push((80_200, told("alone", None)));
            lines.extend(later);
        })
    };
    let later = || Some((80_300, told("session", Some(3))));
    assert_eq!(emptied(8, 30_000, later()), nothing);
    assert_eq!(emptied(8, 30_000, None), ["C10"], "it is over by then");
    assert_eq!(emptied(8, 70_000, later()), ["C10"], "an older one is not");
    assert_eq!(
        emptied(9, 30_000, later()),
        ["C10"],
        "and nobody without a session"
    );
    // A session that was away is notified when it comes back; a listener without one reads the list
    // then.
    let away = |who: &str, place: usize, notice: Option<(u64, What)>| {
        with(|lines| {
            lines.remove(place);
            lines.extend([(39_000, left(who)), (55_000, listens(who))]);
            lines.extend(notice);
        })
    };
    let notice = (55_200, told("session", Some(2)));
    assert_eq!(away("session", 8, Some(notice)), nothing);
    assert_eq!(away("session", 8, None), ["C10"]);
    assert_eq!(away("alone", 9, None), nothing);
    // One that opened its session later knows the list.
    let newcomer = with(|lines| lines.push((45_000, listens("session-2"))));
    assert_eq!(newcomer, nothing);
    // One notice may report two changes that come together.
    let together = with(|lines| {
        lines.extend([(40_120, changing(3)), (40_180, changed(3))]);
        lines[10].1 = listed(3);
    });
    assert_eq!(together, nothing);
}

#[test]
pub(super) fn c10_a_notice_that_comes_twice_is_seen() {
    let nothing: [&str; 0] = [];
    assert_eq!(
        with(|lines| lines.push((60_000, told("session", Some(2))))),
        ["C10"]
    );
    assert_eq!(
        with(|lines| lines.push((60_000, told("session", Some(3))))),
        nothing,
        "of another list: what it was before it was this one"
    );
    assert_eq!(
        with(|lines| lines.push((60_000, told("alone", None)))),
        ["C10"],
        "three notices of two changes"
    );
    let again_elsewhere = |kind: Option<FaultKind>| {
        with(|lines| {
            lines.extend([
                (50_500, left("session")),
                (51_000, listens("session")),
                (51_200, told("session", Some(1))),
                (51_300, told("session", Some(2))),
            ]);
            if let Some(kind) = kind {
                lines.extend(during(kind, 46_000, 48_000));
            }
        })
    };
    assert_eq!(again_elsewhere(None), ["C10"], "a node that is behind");
    assert_eq!(again_elsewhere(Some(FaultKind::Database)), nothing);
    assert_eq!(again_elsewhere(Some(FaultKind::StoreAway)), ["C10"]);
    // Without a session: on a new stream, of a change that the node had not seen when it began.
    let anew = |notices: usize| {
        with(|lines| {
            lines.remove(9);
            lines.extend([(40_110, left("alone")), (40_150, listens("alone"))]);
            lines.extend((0..notices).map(|_| (40_500, told("alone", None))));
        })
    };
    assert_eq!(anew(1), nothing);
    assert_eq!(anew(2), ["C10"]);
}

#[test]
pub(super) fn c10_a_list_that_is_out_of_date_is_seen() {
    let nothing: [&str; 0] = [];
    let read = |time, revision| with(|lines| lines[10] = (time, listed(revision)));
    assert_eq!(read(70_000, 1), ["C10"]);
    assert_eq!(read(45_000, 1), nothing, "within ten seconds");
    assert_eq!(read(70_000, 3), ["C10"], "nobody has made this one");
    let after = |kind| {
        with(|lines| {
            lines[10].1 = listed(1);
            lines.extend(during(kind, 66_000, 69_000));
        })
    };
    assert_eq!(after(FaultKind::Database), nothing);
    assert_eq!(after(FaultKind::StoreAway), ["C10"]);
}
