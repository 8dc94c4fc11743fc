//! Ownership, death, takeover (STREAM-11 *Liveness*, STREAM-12).

use bytes::Bytes;
use portolan_cluster::store::{Append, Bounds, Class, Epoch, NodeMessage, TakeOver, TakenOver};

use crate::fixture::{Ground, names::*};

super::cases![
    one_of_two_adopters_wins,
    an_adoption_raises_the_attempt_and_marks_it,
    a_node_may_adopt_from_itself,
    numbers_go_on_after_what_a_client_has_shown,
    an_attempt_above_the_highest_shown_is_drawn,
    an_adoption_repeated_after_a_lost_reply_is_recognised,
    a_stream_can_be_given_up_and_taken,
    the_attached_node_hears_of_the_new_owner,
    an_adopter_learns_what_the_request_was,
    a_final_response_in_the_log_is_told,
    what_is_over_cannot_be_adopted,
    a_stuck_owner_is_replaced_after_the_deadline with short_overdue,
    each_node_knows_the_streams_that_it_owns,
];

fn short_overdue() -> Bounds {
    Bounds {
        overdue: ms(1000),
        ..Bounds::default()
    }
}

async fn one_of_two_adopters_wins(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 1).await;
    assert_eq!(
        taken_over(store, &take_over(key, Some(A), Some(B), 5)).await,
        (1, epoch(2, 5))
    );
    assert_eq!(
        store.take_over(&take_over(key, Some(A), Some(C), 6)).await,
        Ok(TakenOver::Lost)
    );
    assert_eq!(
        store.take_over(&take_over(key, None, Some(C), 6)).await,
        Ok(TakenOver::Lost)
    );
    assert_eq!(look(store, key).await.owner, Some(B));
}

async fn an_adoption_raises_the_attempt_and_marks_it(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    taken_over(store, &take_over(key, Some(A), Some(B), 0xffff)).await;
    taken_over(store, &take_over(key, Some(B), Some(C), 0)).await;
    let view = look(store, key).await;
    assert_eq!(view.epoch, epoch(3, 0));
    assert_eq!(view.epochs, [(2, epoch(2, 0xffff)), (2, epoch(3, 0))]);
    let mine = Append {
        owner: C,
        epoch: epoch(3, 0),
        ..append(2, vec![note("3")])
    };
    assert_eq!(store.append(key, &mine).await, Ok(done(3, Some(A), 1)));
}

/// STREAM-7: streams in a node's own set that no writer of it serves.
async fn a_node_may_adopt_from_itself(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 0).await;
    assert_eq!(
        taken_over(store, &take_over(key, Some(A), Some(A), 5))
            .await
            .1,
        epoch(2, 5)
    );
    assert_eq!(
        taken_over(store, &take_over(key, Some(A), Some(A), 6))
            .await
            .1,
        epoch(3, 6)
    );
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(vec![key]));
}

async fn numbers_go_on_after_what_a_client_has_shown(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let wanted = TakeOver {
        shown: cursor(6, Epoch::FIRST),
        ..take_over(key, Some(A), Some(B), 5)
    };
    assert_eq!(taken_over(store, &wanted).await, (6, epoch(2, 5)));
    let view = look(store, key).await;
    assert_eq!((view.tail, view.dropped), (6, 6), "the hole is marked");
    let mine = Append {
        owner: B,
        epoch: epoch(2, 5),
        ..append(6, vec![event(Class::Final, "error")])
    };
    assert_eq!(store.append(key, &mine).await, Ok(done(7, Some(A), 1)));
    let (view, position, split) = attach(store, key, cursor(6, Epoch::FIRST), C).await;
    assert_eq!((seqs(&view.events), position, split), (vec![7], 6, false));
}

async fn an_attempt_above_the_highest_shown_is_drawn(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let wanted = TakeOver {
        shown: cursor(1, epoch(4, 9)),
        ..take_over(key, Some(A), Some(B), 5)
    };
    assert_eq!(taken_over(store, &wanted).await, (2, epoch(5, 5)));
    assert_eq!(look(store, key).await.epochs, [(2, epoch(5, 5))]);
}

async fn an_adoption_repeated_after_a_lost_reply_is_recognised(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 2).await;
    let wanted = TakeOver {
        shown: cursor(3, Epoch::FIRST),
        ..take_over(key, Some(A), Some(B), 5)
    };
    for _ in 0..3 {
        assert_eq!(taken_over(store, &wanted).await, (3, epoch(2, 5)));
    }
    let given_up = take_over(key, Some(B), None, 0);
    for _ in 0..2 {
        assert_eq!(taken_over(store, &given_up).await, (3, epoch(2, 5)));
    }
    let taken = take_over(key, None, Some(C), 6);
    for _ in 0..2 {
        assert_eq!(taken_over(store, &taken).await, (3, epoch(3, 6)));
    }
    assert_eq!(look(store, key).await.epochs.len(), 2);
    assert_eq!(store.owned_by(S.partition(), None).await, Ok(Vec::new()));
}

/// STREAM-16.4: an owner gives its stream up, and another node takes it over.
async fn a_stream_can_be_given_up_and_taken(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 1).await;
    assert_eq!(
        store.take_over(&take_over(key, Some(B), None, 0)).await,
        Ok(TakenOver::Lost),
        "only by its owner"
    );
    taken_over(store, &take_over(key, Some(A), None, 0)).await;
    let view = look(store, key).await;
    assert_eq!((view.owner, view.epoch), (None, Epoch::FIRST));
    assert!(matches!(
        store.append(key, &append(1, vec![note("2")])).await,
        Ok(portolan_cluster::store::Appended::Fenced)
    ));
    assert_eq!(store.owned_by(S.partition(), None).await, Ok(vec![key]));
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(Vec::new()));
    assert_eq!(
        store.take_over(&take_over(key, Some(A), Some(B), 5)).await,
        Ok(TakenOver::Lost)
    );
    taken_over(store, &take_over(key, None, Some(B), 5)).await;
    assert_eq!(store.owned_by(S.partition(), Some(B)).await, Ok(vec![key]));
    assert_eq!(store.owned_by(S.partition(), None).await, Ok(Vec::new()));
}

async fn the_attached_node_hears_of_the_new_owner(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 0).await;
    attach(store, key, START, C).await;
    let mut messages = store.subscribe(C).await.expect("heard");
    let owner = |owner| NodeMessage::Owner { stream: key, owner };
    taken_over(store, &take_over(key, Some(A), None, 0)).await;
    assert_eq!(heard(&mut messages).await, owner(None));
    taken_over(store, &take_over(key, None, Some(B), 1)).await;
    assert_eq!(heard(&mut messages).await, owner(Some(B)));
    taken_over(store, &take_over(key, Some(B), Some(C), 2)).await;
    nothing_else(store, &mut messages, C).await;
}

async fn an_adopter_learns_what_the_request_was(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    open(store, key, 0).await;
    let Ok(TakenOver::Done {
        about,
        deadline_in,
        late,
        ..
    }) = store.take_over(&take_over(key, Some(A), Some(B), 1)).await
    else {
        panic!("not adopted")
    };
    assert_eq!(about, Bytes::from_static(b"about|\0"));
    assert!(deadline_in <= MINUTE && deadline_in > MINUTE / 2);
    assert!(!late);
}

/// STREAM-12.3, first rule: a takeover reports a final response that is in the log.
async fn a_final_response_in_the_log_is_told(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let events = vec![event(Class::Final, "f"), note("after it")];
    store.append(key, &opening(events)).await.expect("made");
    for nonce in [1, 2] {
        let late = store
            .take_over(&take_over(key, Some(A), Some(A), nonce))
            .await;
        assert!(
            matches!(late, Ok(TakenOver::Done { late: true, .. })),
            "{late:?}"
        );
    }
}

async fn what_is_over_cannot_be_adopted(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let wanted = take_over(key, Some(A), Some(B), 1);
    assert_eq!(
        store.take_over(&wanted).await,
        Ok(TakenOver::Over),
        "there was none"
    );
    open(store, key, 0).await;
    store
        .append(key, &closing(0, Vec::new()))
        .await
        .expect("closed");
    assert_eq!(store.take_over(&wanted).await, Ok(TakenOver::Over));
    assert_eq!(store.owned_by(S.partition(), Some(B)).await, Ok(Vec::new()));
}

async fn a_stuck_owner_is_replaced_after_the_deadline(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut first = opening(Vec::new());
    first.create.as_mut().expect("some").deadline_in = ms(100);
    store.append(key, &first).await.expect("made");
    let wanted = take_over(key, Some(C), Some(B), 1);
    assert_eq!(store.take_over(&wanted).await, Ok(TakenOver::Lost));
    ground.pass(ms(150)).await;
    assert_eq!(
        store.take_over(&wanted).await,
        Ok(TakenOver::Lost),
        "not at once"
    );
    ground.pass(ms(1000)).await;
    let late = store.take_over(&wanted).await;
    assert!(
        matches!(late, Ok(TakenOver::Done { deadline_in, .. }) if deadline_in.is_zero()),
        "{late:?}"
    );
    assert_eq!(
        store.owned_by(S.partition(), Some(A)).await,
        Ok(Vec::new()),
        "the real owner's set, whatever the caller thought"
    );
    assert_eq!(store.owned_by(S.partition(), Some(B)).await, Ok(vec![key]));
}

async fn each_node_knows_the_streams_that_it_owns(ground: &Ground) {
    let store = &*ground.store;
    for n in 1..=70 {
        open(store, stream(n), 0).await;
    }
    let mut elsewhere = stream(1);
    elsewhere.session.0[0] ^= 1;
    open(store, elsewhere, 0).await;
    for n in 1..=10 {
        store
            .append(stream(n), &closing(0, Vec::new()))
            .await
            .expect("closed");
    }
    for n in 11..=20 {
        taken_over(store, &take_over(stream(n), Some(A), Some(B), 1)).await;
    }
    let mut owned = store.owned_by(S.partition(), Some(A)).await.expect("asked");
    owned.sort();
    assert_eq!(owned, (21..=70).map(stream).collect::<Vec<_>>());
    let owned = store.owned_by(S.partition(), Some(B)).await.expect("asked");
    assert_eq!(owned.len(), 10);
    let partition = elsewhere.session.partition();
    assert_eq!(
        store.owned_by(partition, Some(A)).await,
        Ok(vec![elsewhere])
    );
}
