//! Answers and cancellations reach the node that runs the request (STREAM-14).

use bytes::Bytes;
use portolan_cluster::store::{Bounds, INLINE, NodeMessage, Registered, Routed};

use crate::fixture::{Ground, names::*};

super::cases![
    a_cancellation_rings_the_node_that_runs_the_request,
    o_6_a_note_rings_the_node_that_holds_the_connection_of_a_session,
    a_cancellation_follows_an_adoption,
    a_cancellation_whose_doorbell_was_lost_is_found_by_asking_again,
    a_cancellation_that_comes_first_is_remembered with short_tombstone,
    a_cancellation_reaches_no_other_request_and_no_other_session,
    a_flood_of_cancellations_is_bounded with long_tombstone,
    running_requests_are_bounded_and_the_overdue_make_room with few,
    a_request_may_be_registered_again_with_its_stream with few,
    an_answer_rings_the_owner_with_the_payload,
    a_large_answer_is_fetched,
    only_the_first_answer_counts,
    an_answer_follows_an_adoption,
    an_answer_to_nothing_changes_nothing,
    questions_go_with_their_stream,
    writing_a_question_again_keeps_its_answer,
];

/// Long enough for any slow machine.
fn long_tombstone() -> Bounds {
    Bounds {
        tombstone: MINUTE,
        ..Bounds::default()
    }
}

fn short_tombstone() -> Bounds {
    Bounds {
        tombstone: ms(1000),
        ..Bounds::default()
    }
}

fn few() -> Bounds {
    Bounds {
        running: 3,
        ..Bounds::default()
    }
}

fn cancel(rpc: &str) -> NodeMessage {
    NodeMessage::Cancel {
        session: S,
        rpc: rpc.to_owned(),
    }
}

async fn a_cancellation_rings_the_node_that_runs_the_request(ground: &Ground) {
    let store = &*ground.store;
    let mut messages = store.subscribe(A).await.expect("heard");
    for rpc in ["i:1", "s:|\0:1", ""] {
        let registered = store.register(S, rpc, A, None, MINUTE).await;
        assert_eq!(registered, Ok(Registered::Done));
        assert_eq!(store.cancel(S, ME, rpc).await, Ok(Routed::Notified));
        assert_eq!(heard(&mut messages).await, cancel(rpc));
    }
    assert_eq!(
        store.cancel(S, ME, "i:1").await,
        Ok(Routed::Notified),
        "again"
    );
    assert_eq!(heard(&mut messages).await, cancel("i:1"));
}

async fn o_6_a_note_rings_the_node_that_holds_the_connection_of_a_session(ground: &Ground) {
    let store = &*ground.store;
    let (mut a, mut b) = (
        store.subscribe(A).await.expect("heard"),
        store.subscribe(B).await.expect("heard"),
    );
    for body in [&b"\x01\xff:\0"[..], b""] {
        let body = Bytes::copy_from_slice(body);
        assert_eq!(store.publish(S, B, body.clone()).await, Ok(()));
        let heard = heard(&mut b).await;
        assert_eq!(heard, NodeMessage::Session { session: S, body });
    }
    // No other node receives the message.
    nothing_else(store, &mut a, A).await;
}

async fn a_cancellation_follows_an_adoption(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut b = store.subscribe(B).await.expect("heard");
    open(store, key, 0).await;
    store
        .register(S, "i:1", A, Some(key.nonce), MINUTE)
        .await
        .expect("registered");
    taken_over(store, &take_over(key, Some(A), Some(B), 1)).await;
    assert_eq!(store.cancel(S, ME, "i:1").await, Ok(Routed::Notified));
    assert_eq!(heard(&mut b).await, cancel("i:1"));
    taken_over(store, &take_over(key, Some(B), None, 1)).await;
    assert_eq!(
        store.cancel(S, ME, "i:1").await,
        Ok(Routed::Nobody),
        "given up: whoever adopts it will learn"
    );
    let learned = store.register(S, "i:1", C, Some(key.nonce), MINUTE).await;
    assert_eq!(learned, Ok(Registered::Cancelled));
}

async fn a_cancellation_whose_doorbell_was_lost_is_found_by_asking_again(ground: &Ground) {
    let store = &*ground.store;
    let register = || store.register(S, "i:1", A, None, MINUTE);
    assert_eq!(register().await, Ok(Registered::Done));
    assert_eq!(register().await, Ok(Registered::Done));
    store.cancel(S, ME, "i:1").await.expect("cancelled");
    for _ in 0..2 {
        assert_eq!(register().await, Ok(Registered::Cancelled));
    }
    store.unregister(S, "i:1").await.expect("gone");
    assert_eq!(
        register().await,
        Ok(Registered::Done),
        "the number may be used again"
    );
}

async fn a_cancellation_that_comes_first_is_remembered(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(store.cancel(S, ME, "i:1").await, Ok(Routed::Nobody));
    for _ in 0..2 {
        assert_eq!(
            store.register(S, "i:1", A, None, MINUTE).await,
            Ok(Registered::Cancelled),
            "also when the first reply was lost"
        );
    }
    ground.pass(ms(1050)).await;
    assert_eq!(
        store.register(S, "i:1", A, None, MINUTE).await,
        Ok(Registered::Done)
    );
}

async fn a_cancellation_reaches_no_other_request_and_no_other_session(ground: &Ground) {
    let store = &*ground.store;
    let mut messages = store.subscribe(A).await.expect("heard");
    let mut other = S;
    other.0[1] ^= 0xff;
    store
        .register(other, "i:1", A, None, MINUTE)
        .await
        .expect("registered");
    store
        .register(S, "s:1", A, None, MINUTE)
        .await
        .expect("registered");
    assert_eq!(store.cancel(S, ME, "i:1").await, Ok(Routed::Nobody));
    nothing_else(store, &mut messages, A).await;
    let untouched = store.register(other, "i:1", A, None, MINUTE).await;
    assert_eq!(untouched, Ok(Registered::Done));
}

/// TEST-B13: a session keeps a limited number of tombstones.
async fn a_flood_of_cancellations_is_bounded(ground: &Ground) {
    let store = &*ground.store;
    for n in 0..200 {
        let routed = store.cancel(S, ME, &format!("i:{n}")).await;
        assert_eq!(routed, Ok(Routed::Nobody));
    }
    let mut remembered = 0;
    for n in 0..200 {
        let registered = store.register(S, &format!("i:{n}"), A, None, MINUTE).await;
        remembered += usize::from(registered == Ok(Registered::Cancelled));
    }
    assert_eq!(remembered, Bounds::default().tombstones);
    assert_eq!(
        store.cancel(S, ME, "i:0").await,
        Ok(Routed::Nobody),
        "what is remembered stays so"
    );
}

async fn running_requests_are_bounded_and_the_overdue_make_room(ground: &Ground) {
    let store = &*ground.store;
    for n in 0..3 {
        let life = if n == 0 { ms(600) } else { MINUTE };
        let registered = store.register(S, &format!("i:{n}"), A, None, life).await;
        assert_eq!(registered, Ok(Registered::Done));
    }
    let full = store.register(S, "i:3", A, None, MINUTE).await;
    assert_eq!(full, Ok(Registered::Full));
    ground.pass(ms(650)).await;
    assert_eq!(
        store.cancel(S, ME, "i:0").await,
        Ok(Routed::Nobody),
        "past its deadline nobody runs it"
    );
    let room = store.register(S, "i:3", A, None, MINUTE).await;
    assert_eq!(
        room,
        Ok(Registered::Done),
        "a tombstone takes no request's place"
    );
    let full = store.register(S, "i:4", A, None, MINUTE).await;
    assert_eq!(full, Ok(Registered::Full));
}

async fn a_request_may_be_registered_again_with_its_stream(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    for n in 0..3 {
        let rpc = format!("i:{n}");
        let registered = store.register(S, &rpc, A, None, MINUTE).await;
        assert_eq!(registered, Ok(Registered::Done));
    }
    open(store, key, 0).await;
    let again = store.register(S, "i:2", A, Some(key.nonce), MINUTE).await;
    assert_eq!(
        again,
        Ok(Registered::Done),
        "also when there is no room for another one"
    );
    taken_over(store, &take_over(key, Some(A), Some(B), 1)).await;
    let mut messages = store.subscribe(B).await.expect("heard");
    store.cancel(S, ME, "i:2").await.expect("cancelled");
    assert_eq!(heard(&mut messages).await, cancel("i:2"));
}

async fn an_answer_rings_the_owner_with_the_payload(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    begun(store).await;
    // Subscribed before the client moves. In a cluster a message may otherwise reach a node that
    // subscribes a moment later.
    let mut messages = store.subscribe(A).await.expect("heard");
    open(store, key, 0).await;
    attach(store, key, START, B).await;
    let moved = heard(&mut messages).await;
    assert!(matches!(moved, NodeMessage::Superseded { .. }), "{moved:?}");
    for (n, id) in ["q1", "q|:\0"].into_iter().enumerate() {
        store
            .append(key, &append(n as u64, vec![question(id)]))
            .await
            .expect("asked");
        let payload = Bytes::from_static(b"|\0:yes\xff");
        assert_eq!(store.take_answer(S, id).await, Ok(None));
        assert_eq!(
            store.answer(S, ME, id, payload.clone()).await,
            Ok(Routed::Notified)
        );
        assert_eq!(
            heard(&mut messages).await,
            NodeMessage::Answered {
                stream: key,
                question: id.to_owned(),
                payload: Some(payload.clone()),
            }
        );
        for _ in 0..2 {
            let taken = store.take_answer(S, id).await;
            assert_eq!(
                taken,
                Ok(Some(payload.clone())),
                "also when a reply was lost"
            );
        }
    }
}

async fn a_large_answer_is_fetched(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut messages = store.subscribe(A).await.expect("heard");
    open(store, key, 0).await;
    store
        .append(key, &append(0, vec![question("q1"), question("q2")]))
        .await
        .expect("asked");
    for (id, size) in [("q1", INLINE), ("q2", INLINE + 1)] {
        let payload = Bytes::from(vec![0; size]);
        store
            .answer(S, ME, id, payload.clone())
            .await
            .expect("answered");
        let NodeMessage::Answered {
            payload: notified, ..
        } = heard(&mut messages).await
        else {
            panic!("another doorbell")
        };
        assert_eq!(notified.is_some(), size == INLINE, "{id}");
        assert_eq!(store.take_answer(S, id).await, Ok(Some(payload)));
    }
}

/// TEST-C7, TEST-B12: later answers are accepted and have no effect.
async fn only_the_first_answer_counts(ground: &Ground) {
    let store = &*ground.store;
    let mut messages = store.subscribe(A).await.expect("heard");
    let answer =
        |payload: &'static str| store.answer(S, ME, "q1", Bytes::from_static(payload.as_bytes()));
    open(store, stream(1), 0).await;
    store
        .append(stream(1), &append(0, vec![question("q1")]))
        .await
        .expect("asked");
    assert_eq!(answer("first").await, Ok(Routed::Notified));
    assert_eq!(answer("second").await, Ok(Routed::Nobody));
    assert_eq!(
        answer("first").await,
        Ok(Routed::Notified),
        "its reply was lost"
    );
    for _ in 0..2 {
        let NodeMessage::Answered { payload, .. } = heard(&mut messages).await else {
            panic!("another doorbell")
        };
        assert_eq!(payload, Some(Bytes::from_static(b"first")));
    }
    nothing_else(store, &mut messages, A).await;
    assert_eq!(
        store.take_answer(S, "q1").await,
        Ok(Some(Bytes::from_static(b"first")))
    );
}

async fn an_answer_follows_an_adoption(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let mut b = store.subscribe(B).await.expect("heard");
    open(store, key, 0).await;
    store
        .append(key, &append(0, vec![question("q1"), question("q2")]))
        .await
        .expect("asked");
    taken_over(store, &take_over(key, Some(A), Some(B), 1)).await;
    let yes = Bytes::from_static(b"yes");
    assert_eq!(
        store.answer(S, ME, "q1", yes.clone()).await,
        Ok(Routed::Notified)
    );
    assert!(
        matches!(heard(&mut b).await, NodeMessage::Answered { question, .. } if question == "q1")
    );
    taken_over(store, &take_over(key, Some(B), None, 1)).await;
    assert_eq!(
        store.answer(S, ME, "q2", yes.clone()).await,
        Ok(Routed::Notified)
    );
    nothing_else(store, &mut b, B).await;
    assert_eq!(
        store.take_answer(S, "q2").await,
        Ok(Some(yes)),
        "kept for whoever adopts"
    );
}

async fn an_answer_to_nothing_changes_nothing(ground: &Ground) {
    let store = &*ground.store;
    let yes = Bytes::from_static(b"yes");
    assert_eq!(
        store.answer(S, ME, "q1", yes.clone()).await,
        Ok(Routed::Unasked)
    );
    begun(store).await;
    open(store, stream(1), 0).await;
    assert_eq!(store.answer(S, ME, "q1", yes).await, Ok(Routed::Unasked));
    assert_eq!(store.take_answer(S, "q1").await, Ok(None));
}

async fn questions_go_with_their_stream(ground: &Ground) {
    let store = &*ground.store;
    let yes = Bytes::from_static(b"yes");
    for n in 1..=2 {
        open(store, stream(n), 0).await;
        let ask = [
            question(&format!("answered {n}")),
            question(&format!("open {n}")),
        ];
        store
            .append(stream(n), &append(0, ask.to_vec()))
            .await
            .expect("asked");
        store
            .answer(S, ME, &format!("answered {n}"), yes.clone())
            .await
            .expect("answered");
    }
    store
        .append(stream(1), &closing(2, Vec::new()))
        .await
        .expect("closed");
    assert_eq!(store.take_answer(S, "answered 1").await, Ok(None));
    assert_eq!(
        store.answer(S, ME, "open 1", yes.clone()).await,
        Ok(Routed::Unasked)
    );
    assert_eq!(
        store.take_answer(S, "answered 2").await,
        Ok(Some(yes.clone()))
    );
    assert_eq!(
        store.answer(S, ME, "open 2", yes).await,
        Ok(Routed::Notified)
    );
}

/// STREAM-7: an owner that writes its events again after a roll-back.
async fn writing_a_question_again_keeps_its_answer(ground: &Ground) {
    let store = &*ground.store;
    let key = stream(1);
    let yes = Bytes::from_static(b"yes");
    open(store, key, 0).await;
    store
        .append(key, &append(0, vec![question("q1")]))
        .await
        .expect("asked");
    store
        .answer(S, ME, "q1", yes.clone())
        .await
        .expect("answered");
    store
        .append(key, &append(1, vec![question("q1")]))
        .await
        .expect("asked again");
    assert_eq!(store.take_answer(S, "q1").await, Ok(Some(yes)));
}
