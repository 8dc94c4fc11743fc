//! A client's connection attaches to a stream, on any node (STREAM-8, STREAM-9, STREAM-11).

use portolan_cluster::store::{Append, Attached, Class, Epoch, NodeMessage, StreamState, TakeOver};

use crate::fixture::{Ground, names::*};

super::cases![
    the_newest_connection_wins_and_the_former_node_is_told,
    the_same_node_is_not_told_of_itself,
    a_closed_stream_is_shown_and_not_taken_over,
    what_is_gone_and_what_is_unknown_differ,
    exactly_the_missed_events_follow_the_cursor,
    a_cursor_beyond_the_tail_is_held,
    a_cursor_of_a_lost_branch_is_moved_to_the_fork,
    equal_numbers_with_another_mark_are_another_branch,
    an_event_belongs_to_the_attempt_that_wrote_it,
    a_cursor_of_a_higher_attempt_is_left_to_an_adoption,
];

async fn the_newest_connection_wins_and_the_former_node_is_told(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut a = store.subscribe(A).await.expect("heard");
    let mut b = store.subscribe(B).await.expect("heard");
    open(store, key, 0).await;
    let (view, ..) = attach(store, key, START, B).await;
    assert_eq!(view.generation, 2);
    let (view, ..) = attach(store, key, START, C).await;
    assert_eq!(view.generation, 3);
    let superseded = |generation| NodeMessage::Superseded {
        stream: key,
        generation,
    };
    assert_eq!(heard(&mut a).await, superseded(1));
    assert_eq!(heard(&mut b).await, superseded(2));
    assert_eq!(
        store.append(key, &append(0, vec![note("1")])).await,
        Ok(done(1, Some(C), 3))
    );
    nothing_else(store, &mut a, A).await;
    nothing_else(store, &mut b, B).await;
}

async fn the_same_node_is_not_told_of_itself(ground: &Ground) {
    let store = &*ground.store;
    let mut a = store.subscribe(A).await.expect("heard");
    open(store, stream(1), 0).await;
    let (view, ..) = attach(store, stream(1), START, A).await;
    assert_eq!(
        view.generation, 2,
        "its former connection is superseded all the same"
    );
    nothing_else(store, &mut a, A).await;
}

async fn a_closed_stream_is_shown_and_not_taken_over(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 1).await;
    store
        .append(key, &closing(1, vec![event(Class::Final, "f")]))
        .await
        .expect("closed");
    let mut a = store.subscribe(A).await.expect("heard");
    for _ in 0..2 {
        let (view, position, split) = attach(store, key, cursor(1, Epoch::FIRST), B).await;
        assert_eq!((view.generation, view.state), (1, StreamState::Closed));
        assert_eq!((seqs(&view.events), position, split), (vec![2], 1, false));
    }
    nothing_else(store, &mut a, A).await;
}

async fn what_is_gone_and_what_is_unknown_differ(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(
        store.attach(stream(1), ME, START, A).await,
        Ok(Attached::Gone),
        "an authentic id without a record lives (design page, point 4)"
    );
    begun(store).await;
    assert_eq!(
        store.attach(stream(1), ME, START, A).await,
        Ok(Attached::Gone)
    );
    assert_eq!(
        store.attach(stream(1), OTHER, START, A).await,
        Ok(Attached::Unknown)
    );
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(
        store.attach(stream(1), ME, START, A).await,
        Ok(Attached::Unknown)
    );
}

async fn exactly_the_missed_events_follow_the_cursor(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 4).await;
    for seen in 0..=4 {
        let (view, position, split) = attach(store, key, cursor(seen, Epoch::FIRST), B).await;
        assert_eq!(seqs(&view.events), (seen + 1..=4).collect::<Vec<_>>());
        assert_eq!((position, split, view.tail), (seen, false, 4));
    }
}

/// STREAM-9: the store lost writes, which the owner will write again. Events that the client has
/// are skipped.
async fn a_cursor_beyond_the_tail_is_held(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let (view, position, split) = attach(store, key, cursor(5, Epoch::FIRST), B).await;
    assert_eq!((view.events.len(), position, split), (0, 5, false));
    let again = (3..=6).map(|n| note(&n.to_string())).collect();
    store.append(key, &append(2, again)).await.expect("written");
    let (view, ..) = attach(store, key, cursor(5, Epoch::FIRST), B).await;
    assert_eq!(seqs(&view.events), [6]);
}

/// A stream of three epochs: 1 wrote 1–3, 2 (nonce 7) 4–6, 3 (nonce 9) 7–8.
async fn three_attempts(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 3).await;
    taken_over(store, &take_over(key, Some(A), Some(B), 7)).await;
    let second = Append {
        owner: B,
        epoch: epoch(2, 7),
        ..append(3, vec![note("4"), note("5"), note("6")])
    };
    store.append(key, &second).await.expect("written");
    taken_over(store, &take_over(key, Some(B), Some(C), 9)).await;
    let third = Append {
        owner: C,
        epoch: epoch(3, 9),
        ..append(6, vec![note("7"), note("8")])
    };
    store.append(key, &third).await.expect("written");
}

async fn a_cursor_of_a_lost_branch_is_moved_to_the_fork(ground: &Ground) {
    three_attempts(ground).await;
    let store = &*ground.store;
    let cases = [
        ("none shown", START, 0, false),
        ("first, within", cursor(3, Epoch::FIRST), 3, false),
        ("first, beyond its end", cursor(5, Epoch::FIRST), 3, true),
        ("second, at its start", cursor(3, epoch(2, 7)), 3, false),
        ("second, below its start", cursor(2, epoch(2, 7)), 3, true),
        ("second, within", cursor(5, epoch(2, 7)), 5, false),
        ("second, beyond its end", cursor(8, epoch(2, 7)), 6, true),
        ("third, within", cursor(7, epoch(3, 9)), 7, false),
        ("third, below its start", cursor(1, epoch(3, 9)), 6, true),
    ];
    for (case, cursor, expected, moved) in cases {
        let (view, position, split) = attach(store, stream(1), cursor, B).await;
        assert_eq!((position, split), (expected, moved), "{case}");
        assert_eq!(
            seqs(&view.events),
            (expected + 1..=8).collect::<Vec<_>>(),
            "{case}"
        );
        assert_eq!(view.epochs, [(3, epoch(2, 7)), (6, epoch(3, 9))], "{case}");
    }
}

/// Found in an earlier draft (2, 5): two new owners after a roll-back count to the same number.
async fn equal_numbers_with_another_mark_are_another_branch(ground: &Ground) {
    three_attempts(ground).await;
    let store = &*ground.store;
    for (case, cursor, expected) in [
        ("second", cursor(5, epoch(2, 8)), 3),
        ("second, near", cursor(2, epoch(2, 8)), 2),
        ("third", cursor(8, epoch(3, 1)), 6),
    ] {
        let (view, position, split) = attach(store, stream(1), cursor, B).await;
        assert_eq!((position, split), (expected, true), "{case}");
        assert_eq!(
            view.events.first().map(|event| event.seq),
            Some(expected + 1)
        );
    }
}

/// Found in earlier drafts (3, 4): a partial replay must not skip events, and a client must learn
/// of a moved position.
async fn an_event_belongs_to_the_attempt_that_wrote_it(ground: &Ground) {
    three_attempts(ground).await;
    let store = &*ground.store;
    let (view, ..) = attach(store, stream(1), START, B).await;
    for event in &view.events {
        let wrote = portolan_cluster::fork::attempt_of(event.seq, &view.epochs);
        let expected = match event.seq {
            1..=3 => Epoch::FIRST,
            4..=6 => epoch(2, 7),
            _ => epoch(3, 9),
        };
        assert_eq!(wrote, expected, "{}", event.seq);
        let (rest, position, split) = attach(store, stream(1), cursor(event.seq, wrote), B).await;
        assert_eq!((position, split), (event.seq, false));
        assert_eq!(seqs(&rest.events), (event.seq + 1..=8).collect::<Vec<_>>());
    }
    // After the gap notice the client still shows the old cursor. It is moved to the same position
    // again.
    for _ in 0..2 {
        let (_, position, split) = attach(store, stream(1), cursor(5, epoch(2, 8)), B).await;
        assert_eq!((position, split), (3, true));
    }
}

async fn a_cursor_of_a_higher_attempt_is_left_to_an_adoption(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let shown = cursor(4, epoch(3, 5));
    let (view, position, split) = attach(store, key, shown, B).await;
    assert_eq!((view.epoch, position, split), (Epoch::FIRST, 4, false));
    let wanted = TakeOver {
        shown,
        ..take_over(key, Some(A), Some(B), 6)
    };
    assert_eq!(taken_over(store, &wanted).await, (4, epoch(4, 6)));
    let (view, position, split) = attach(store, key, shown, B).await;
    assert_eq!(
        (position, split),
        (4, true),
        "its branch is none that this store knows"
    );
    assert_eq!((view.tail, view.dropped), (4, 4));
}
