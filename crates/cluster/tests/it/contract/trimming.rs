//! Bounds of logs, and events that are never dropped (STREAM-10).

use bytes::Bytes;
use portolan_cluster::store::{Append, Appended, Bounds, Class, Epoch, TakeOver};

use crate::fixture::{Ground, names::*};

super::cases![
    the_oldest_notifications_are_dropped_to_three_quarters with eight,
    bytes_count_as_well_as_events with eight,
    what_a_client_must_have_is_never_dropped with eight,
    what_may_not_be_dropped_and_does_not_fit_ends_the_stream with eight,
    the_newest_event_is_never_dropped with eight,
    the_last_event_below_what_an_adopter_was_shown_is_no_longer_the_newest with eight,
    an_answer_holds_one_page with eight,
];

fn eight() -> Bounds {
    Bounds {
        events: 8,
        bytes: 1000,
        page: (5, 600),
        ..Bounds::default()
    }
}

async fn the_oldest_notifications_are_dropped_to_three_quarters(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 8).await;
    let view = look(store, key).await;
    assert_eq!((view.dropped, view.more), (0, true), "just full");
    let written = store.append(key, &append(8, vec![note("9")])).await;
    assert_eq!(written, Ok(done(9, Some(A), 1)));
    let view = look(store, key).await;
    assert_eq!((view.dropped, view.tail), (3, 9));
    assert_eq!(seqs(&view.events), [4, 5, 6, 7, 8], "of 4 to 9, one page");
}

async fn bytes_count_as_well_as_events(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let big = || note(&"x".repeat(400));
    let written = store.append(key, &opening(vec![big(), big()])).await;
    assert_eq!(written, Ok(done(2, Some(A), 1)));
    assert_eq!(look(store, key).await.dropped, 0);
    store
        .append(key, &append(2, vec![big()]))
        .await
        .expect("written");
    let view = look(store, key).await;
    assert_eq!(
        (view.dropped, seqs(&view.events)),
        (2, vec![3]),
        "1200 bytes, down to 750"
    );
    let small: Vec<_> = (0..4).map(|_| note("s")).collect();
    store.append(key, &append(3, small)).await.expect("written");
    assert_eq!(look(store, key).await.dropped, 2, "the sum was kept right");
}

async fn what_a_client_must_have_is_never_dropped(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let pinned = vec![
        note("1"),
        question("q1"),
        event(Class::Answer, "3"),
        note("4"),
    ];
    store.append(key, &opening(pinned)).await.expect("made");
    let mut expect = 4;
    for _ in 0..5 {
        let more = vec![note("n"), note("n"), note("n")];
        store
            .append(key, &append(expect, more))
            .await
            .expect("written");
        expect += 3;
    }
    let last = vec![event(Class::Final, "f")];
    store
        .append(key, &closing(expect, last))
        .await
        .expect("written");
    let generation = look(store, key).await.generation;
    assert_eq!(generation, 1);
    let (first, ..) = attach(store, key, START, A).await;
    let position = cursor(first.events.last().expect("some").seq, Epoch::FIRST);
    let (second, ..) = attach(store, key, position, A).await;
    let all: Vec<_> = first.events.iter().chain(&second.events).collect();
    let kept: Vec<_> = all
        .iter()
        .filter(|event| event.class != Class::Notification)
        .map(|event| event.seq)
        .collect();
    assert_eq!(kept, [2, 3, 20]);
    assert!(all.len() <= 8 && second.dropped >= 4, "{}", second.dropped);
    for pair in all.windows(2) {
        let [earlier, later] = pair else { continue };
        assert!(
            later.seq == earlier.seq + 1 || later.seq <= second.dropped + 1,
            "a hole above the mark"
        );
    }
}

async fn what_may_not_be_dropped_and_does_not_fit_ends_the_stream(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let pinned = |n: usize| (0..n).map(|n| question(&format!("q{n}"))).collect();
    assert_eq!(
        store.append(key, &opening(pinned(8))).await,
        Ok(done(8, Some(A), 1))
    );
    let over = store.append(key, &append(8, vec![question("q9")])).await;
    assert!(
        matches!(
            over,
            Ok(Appended::Done {
                tail: 9,
                overflow: true,
                ..
            })
        ),
        "{over:?}"
    );
    let last = Append {
        close: Some(portolan_cluster::store::StreamState::Closed),
        ..append(9, vec![event(Class::Final, "too much")])
    };
    let ended = store.append(key, &last).await;
    assert!(matches!(ended, Ok(Appended::Done { tail: 10, .. })));
}

async fn the_newest_event_is_never_dropped(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let huge = Bytes::from(vec![b'x'; 5000]);
    let written = store
        .append(
            key,
            &opening(vec![note("1"), event(Class::Notification, huge)]),
        )
        .await;
    assert!(
        matches!(
            written,
            Ok(Appended::Done {
                tail: 2,
                overflow: true,
                ..
            })
        ),
        "{written:?}"
    );
    let view = look(store, key).await;
    assert_eq!((seqs(&view.events), view.dropped), (vec![2], 1));
}

/// The new owner continues after the highest number that a client showed. The last event of the log
/// is then no longer the newest, and may be dropped like any other.
async fn the_last_event_below_what_an_adopter_was_shown_is_no_longer_the_newest(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let huge = event(Class::Notification, Bytes::from(vec![b'x'; 5000]));
    let written = store.append(key, &opening(vec![huge])).await;
    assert!(
        matches!(written, Ok(Appended::Done { overflow: true, .. })),
        "{written:?}"
    );
    let wanted = TakeOver {
        shown: cursor(4, Epoch::FIRST),
        ..take_over(key, Some(A), Some(B), 7)
    };
    let (tail, epoch) = taken_over(store, &wanted).await;
    assert_eq!(tail, 4);
    let nothing = Append {
        owner: B,
        epoch,
        ..append(4, Vec::new())
    };
    assert_eq!(store.append(key, &nothing).await, Ok(done(4, Some(A), 1)));
    let view = look(store, key).await;
    assert_eq!((seqs(&view.events), view.dropped), (vec![], 4));
}

/// TEST-L9: a longer log is read page by page.
async fn an_answer_holds_one_page(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 7).await;
    let (view, ..) = attach(store, key, START, B).await;
    assert_eq!((view.events.len(), view.more), (5, true));
    let (view, ..) = attach(store, key, cursor(5, Epoch::FIRST), B).await;
    assert_eq!((seqs(&view.events), view.more), (vec![6, 7], false));
    let key = stream(2);
    let big = (0..3)
        .map(|_| event(Class::Answer, "x".repeat(301)))
        .collect();
    store.append(key, &opening(big)).await.expect("made");
    let (view, ..) = attach(store, key, START, B).await;
    assert_eq!(
        (view.events.len(), view.more),
        (2, true),
        "no more once the bytes are reached"
    );
}
