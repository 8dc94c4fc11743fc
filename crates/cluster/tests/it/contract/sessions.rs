//! Records, tombstones, principals (design page point 4; STREAM-3.1).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::store::{
    Appended, Attached, Begin, Bounds, Fresh, NodeMessage, Registered, Routed, StreamState, Update,
    Version,
};

use crate::fixture::{Ground, names::*};

super::cases![
    a_record_is_made_once_and_found_again,
    the_body_is_given_only_to_those_who_do_not_have_it,
    another_principal_learns_and_changes_nothing,
    an_update_is_a_compare_and_swap,
    bodies_hold_any_bytes,
    an_ended_session_stays_ended_for_its_absolute_life,
    a_session_without_a_record_can_be_ended,
    ending_takes_everything_along_and_may_be_repeated,
    nothing_is_made_in_an_ended_session,
    every_node_concerned_hears_of_the_end,
    an_idle_record_is_made_again_with_another_version with short_idle,
    use_prolongs_the_idle_life with short_idle,
    no_record_outlives_the_absolute_life,
];

fn short_idle() -> Bounds {
    Bounds {
        idle: ms(1500),
        ..Bounds::default()
    }
}

async fn a_record_is_made_once_and_found_again(ground: &Ground) {
    let store = &*ground.store;
    let Ok(Begin::Rebuilt { version }) = store.begin(S, ME, None, &fresh("one")).await else {
        panic!("not made")
    };
    assert_eq!(
        store.begin(S, ME, None, &fresh("two")).await,
        Ok(Begin::Alive {
            version,
            body: Some(Bytes::from_static(b"one"))
        }),
        "what is there is not replaced"
    );
}

async fn the_body_is_given_only_to_those_who_do_not_have_it(ground: &Ground) {
    let store = &*ground.store;
    let version = begun(store).await;
    let found = store.begin(S, ME, Some(version), &fresh("")).await;
    assert_eq!(
        found,
        Ok(Begin::Alive {
            version,
            body: None
        })
    );
    let known = Some(Version(version.0.wrapping_sub(1)));
    let found = store.begin(S, ME, known, &fresh("")).await;
    assert!(matches!(found, Ok(Begin::Alive { body: Some(body), .. }) if body == "body"));
}

/// TEST-S1, TEST-C1: the session's id is useless for another principal.
async fn another_principal_learns_and_changes_nothing(ground: &Ground) {
    let store = &*ground.store;
    let version = begun(store).await;
    let key = stream(1);
    open(store, key, 1).await;
    store
        .append(key, &append(1, vec![question("q1")]))
        .await
        .expect("written");
    store
        .register(S, "i:1", A, Some(key.nonce), MINUTE)
        .await
        .expect("registered");
    let mut messages = store.subscribe(A).await.expect("heard");
    assert_eq!(
        store.begin(S, OTHER, Some(version), &fresh("x")).await,
        Ok(Begin::Unknown)
    );
    assert_eq!(
        store.update(S, OTHER, version, Bytes::new()).await,
        Ok(Update::Unknown)
    );
    assert_eq!(
        store.attach(key, OTHER, START, B).await,
        Ok(Attached::Unknown)
    );
    assert_eq!(store.cancel(S, OTHER, "i:1").await, Ok(Routed::Unknown));
    assert_eq!(
        store.answer(S, OTHER, "q1", Bytes::from_static(b"a")).await,
        Ok(Routed::Unknown)
    );
    assert_eq!(
        store.remove(S, OTHER, Remove::Ended(LIFE)).await,
        Ok(false),
        "like an unknown one"
    );
    assert_eq!(
        store.begin(S, ME, Some(version), &fresh("x")).await,
        Ok(Begin::Alive {
            version,
            body: None
        })
    );
    assert_eq!(store.take_answer(S, "q1").await, Ok(None));
    assert_eq!(look(store, key).await.generation, 1);
    nothing_else(store, &mut messages, A).await;
}

async fn an_update_is_a_compare_and_swap(ground: &Ground) {
    let store = &*ground.store;
    assert_eq!(
        store.update(S, ME, Version(1), Bytes::new()).await,
        Ok(Update::Unknown),
        "of no record"
    );
    let first = begun(store).await;
    let second = Version(first.0.wrapping_add(1));
    let body = Bytes::from_static(b"second");
    assert_eq!(
        store.update(S, ME, first, body.clone()).await,
        Ok(Update::Done(second))
    );
    assert_eq!(
        store
            .update(S, ME, first, Bytes::from_static(b"late"))
            .await,
        Ok(Update::Conflict {
            version: second,
            body: body.clone()
        }),
        "also the repetition of one whose reply was lost: the body tells"
    );
    let found = store.begin(S, ME, Some(first), &fresh("x")).await;
    assert_eq!(
        found,
        Ok(Begin::Alive {
            version: second,
            body: Some(body)
        })
    );
}

async fn bodies_hold_any_bytes(ground: &Ground) {
    let store = &*ground.store;
    let every: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    for body in [Vec::new(), vec![0], every] {
        let version = begun(store).await;
        let body = Bytes::from(body);
        store
            .update(S, ME, version, body.clone())
            .await
            .expect("updated");
        let found = store.begin(S, ME, None, &fresh("x")).await;
        assert!(matches!(found, Ok(Begin::Alive { body: Some(found), .. }) if found == body));
    }
}

/// TEST-C9: the tombstone lives for the rest of the absolute life.
async fn an_ended_session_stays_ended_for_its_absolute_life(ground: &Ground) {
    let store = &*ground.store;
    begun(store).await;
    store
        .remove(S, ME, Remove::Ended(ms(1000)))
        .await
        .expect("ended");
    assert_eq!(
        store.begin(S, ME, None, &fresh("x")).await,
        Ok(Begin::Unknown)
    );
    assert_eq!(
        store.update(S, ME, Version(1), Bytes::new()).await,
        Ok(Update::Unknown)
    );
    ground.pass(ms(1050)).await;
    assert!(
        matches!(
            store.begin(S, ME, None, &fresh("x")).await,
            Ok(Begin::Rebuilt { .. })
        ),
        "then its id is no longer authentic, and nobody asks"
    );
}

async fn a_session_without_a_record_can_be_ended(ground: &Ground) {
    let store = &*ground.store;
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(
        store.begin(S, ME, None, &fresh("x")).await,
        Ok(Begin::Unknown)
    );
    assert_eq!(
        store.attach(stream(1), ME, START, A).await,
        Ok(Attached::Unknown)
    );
    assert_eq!(store.cancel(S, ME, "i:1").await, Ok(Routed::Unknown));
}

/// Found in an earlier draft (8): entries of open streams were left behind.
async fn ending_takes_everything_along_and_may_be_repeated(ground: &Ground) {
    let store = &*ground.store;
    begun(store).await;
    open(store, stream(1), 3).await;
    open(store, stream(2), 0).await;
    store
        .append(stream(2), &append(0, vec![question("q1")]))
        .await
        .expect("written");
    taken_over(store, &take_over(stream(1), Some(A), Some(B), 1)).await;
    store
        .answer(S, ME, "q1", Bytes::from_static(b"yes"))
        .await
        .expect("answered");
    for _ in 0..2 {
        store
            .remove(S, ME, Remove::Ended(LIFE))
            .await
            .expect("ended");
        for node in [Some(A), Some(B), None] {
            assert_eq!(store.owned_by(S.partition(), node).await, Ok(Vec::new()));
        }
        assert_eq!(store.take_answer(S, "q1").await, Ok(None));
        assert_eq!(
            store.attach(stream(1), ME, START, A).await,
            Ok(Attached::Unknown)
        );
        assert_eq!(
            store.answer(S, ME, "q1", Bytes::from_static(b"yes")).await,
            Ok(Routed::Unknown)
        );
    }
}

async fn nothing_is_made_in_an_ended_session(ground: &Ground) {
    let store = &*ground.store;
    begun(store).await;
    open(store, stream(1), 1).await;
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    let over = Appended::Closed {
        state: StreamState::Cancelled,
        tail: 0,
    };
    assert_eq!(
        store.append(stream(1), &append(1, vec![note("2")])).await,
        Ok(over.clone())
    );
    assert_eq!(
        store.append(stream(1), &opening(vec![note("1")])).await,
        Ok(over)
    );
    assert_eq!(
        store.register(S, "i:9", A, None, MINUTE).await,
        Ok(Registered::Ended)
    );
    assert_eq!(store.unregister(S, "i:9").await, Ok(()));
}

async fn every_node_concerned_hears_of_the_end(ground: &Ground) {
    let store = &*ground.store;
    let mut nodes = Vec::new();
    for node in [A, B, C] {
        nodes.push((node, store.subscribe(node).await.expect("heard")));
    }
    begun(store).await;
    open(store, stream(1), 0).await; // A owns it
    attach(store, stream(1), START, B).await; // B shows it
    assert!(matches!(
        heard(&mut nodes[0].1).await,
        NodeMessage::Superseded { .. }
    ));
    store
        .register(S, "s:|\0", C, None, MINUTE)
        .await
        .expect("registered");
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    for (node, messages) in &mut nodes {
        assert_eq!(
            heard(messages).await,
            NodeMessage::Ended { session: S },
            "{node:?}"
        );
        nothing_else(store, messages, *node).await;
    }
}

async fn an_idle_record_is_made_again_with_another_version(ground: &Ground) {
    let store = &*ground.store;
    let first = begun(store).await;
    open(store, stream(1), 2).await;
    ground.pass(ms(1600)).await;
    assert_eq!(
        store.update(S, ME, first, Bytes::new()).await,
        Ok(Update::Unknown)
    );
    let (view, ..) = attach(store, stream(1), START, A).await;
    assert_eq!(
        seqs(&view.events),
        [1, 2],
        "the session lives (T: idle expiry)"
    );
    let Ok(Begin::Rebuilt { version }) = store.begin(S, ME, Some(first), &fresh("new")).await
    else {
        panic!("not made again")
    };
    assert_ne!(
        version, first,
        "a node that knows the old body must not take it for this one"
    );
}

async fn use_prolongs_the_idle_life(ground: &Ground) {
    let store = &*ground.store;
    let version = begun(store).await;
    for _ in 0..3 {
        ground.pass(ms(800)).await;
        assert_eq!(
            store.begin(S, ME, Some(version), &fresh("x")).await,
            Ok(Begin::Alive {
                version,
                body: None
            })
        );
    }
}

async fn no_record_outlives_the_absolute_life(ground: &Ground) {
    let store = &*ground.store;
    let left = |life| Fresh {
        body: Bytes::from_static(b"old"),
        life,
    };
    assert_eq!(
        store.begin(S, ME, None, &left(Duration::ZERO)).await,
        Ok(Begin::Unknown)
    );
    assert_eq!(
        store
            .begin(S, ME, None, &left(Duration::from_micros(900)))
            .await,
        Ok(Begin::Unknown),
        "less than the smallest life"
    );
    store
        .begin(S, ME, None, &left(ms(300)))
        .await
        .expect("made");
    store
        .begin(S, ME, None, &left(ms(150)))
        .await
        .expect("found");
    ground.pass(ms(350)).await;
    assert_eq!(
        store.update(S, ME, Version(0), Bytes::new()).await,
        Ok(Update::Unknown)
    );
}
