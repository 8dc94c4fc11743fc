//! A store that loses writes, like a failover to a replica with a lag
//! (STREAM-11 *Two histories*, STREAM-17.3).

use portolan_cluster::{
    fork,
    memory::MemoryStore,
    store::{Append, Appended, Bounds, Class, Epoch, NodeMessage, Store, StreamState, TakeOver},
};
use portolan_model::{Clock, Timestamp};

use crate::fixture::names::*;

fn store() -> MemoryStore {
    MemoryStore::new(
        Bounds::default(),
        Clock::test(Timestamp::UNIX_EPOCH + time::Duration::days(20_000)),
    )
}

fn by(owner: portolan_cluster::store::NodeId, epoch: Epoch, append: Append) -> Append {
    Append {
        owner,
        epoch,
        ..append
    }
}

#[tokio::test]
async fn a_roll_back_raises_the_incarnation_and_makes_everybody_look() {
    let store = store();
    let mut incarnation = store.health().incarnation;
    let mut messages = store.subscribe(A).await.expect("heard");
    let before = store.snapshot();
    begun(&store).await;
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    store.roll_back(&before);
    assert!(incarnation.has_changed().expect("the store is there"));
    assert_eq!(*incarnation.borrow_and_update(), 1);
    assert_eq!(messages.recv().await, Some(NodeMessage::Resync));
    assert!(store.is_empty(), "the record and the tombstone were lost");
}

/// Found in an earlier draft (1): an owner writes again what the store lost, and no client notices.
#[tokio::test]
async fn an_owner_heals_its_stream_from_its_ring() {
    let store = store();
    let key = stream(1);
    let nothing = store.snapshot();
    open(&store, key, 2).await;
    let two = store.snapshot();
    store
        .append(key, &append(2, vec![note("3"), note("4")]))
        .await
        .expect("written");
    store.roll_back(&two);
    let tail = Appended::Tail {
        tail: 2,
        state: StreamState::Open,
    };
    assert_eq!(store.append(key, &append(4, Vec::new())).await, Ok(tail));
    let again = append(2, vec![note("3"), note("4")]);
    assert_eq!(store.append(key, &again).await, Ok(done(4, Some(A), 1)));
    store.roll_back(&nothing);
    assert_eq!(
        store.append(key, &append(4, Vec::new())).await,
        Ok(Appended::Gone)
    );
    let all = (1..=4).map(|n| note(&n.to_string())).collect();
    assert_eq!(
        store.append(key, &opening(all)).await,
        Ok(done(4, Some(A), 1))
    );
    let (view, position, split) = attach(&store, key, cursor(3, Epoch::FIRST), B).await;
    assert_eq!((seqs(&view.events), position, split), (vec![4], 3, false));
}

/// Found in an earlier draft (2): the store lost a takeover, and two owners used the same numbers.
#[tokio::test]
async fn a_client_of_a_lost_adoption_is_led_back_by_another_one() {
    let store = store();
    let key = stream(1);
    open(&store, key, 2).await;
    let before = store.snapshot();
    let (_, lost) = taken_over(&store, &take_over(key, Some(A), Some(B), 7)).await;
    store
        .append(key, &by(B, lost, append(2, vec![note("B3"), note("B4")])))
        .await
        .expect("written");
    store.roll_back(&before);
    // The former owner continues to write: the same numbers, other events.
    store
        .append(key, &append(2, vec![note("A3"), note("A4")]))
        .await
        .expect("written");
    let shown = cursor(4, lost);
    let (view, ..) = attach(&store, key, shown, C).await;
    assert!(view.epoch.term < lost.term, "STREAM-8.2: to be adopted");
    let wanted = TakeOver {
        shown,
        ..take_over(key, view.owner, Some(C), 8)
    };
    let (tail, now) = taken_over(&store, &wanted).await;
    assert_eq!((tail, now.term), (4, 3));
    assert_eq!(
        store.append(key, &append(4, vec![note("A5")])).await,
        Ok(Appended::Fenced)
    );
    store
        .append(key, &by(C, now, closing(4, vec![event(Class::Final, "f")])))
        .await
        .expect("closed");
    let (view, position, split) = attach(&store, key, shown, C).await;
    assert!(
        split,
        "the client is told that it may have missed something"
    );
    assert_eq!((position, seqs(&view.events)), (4, vec![5]));
}

/// Found in an earlier draft (5): both new owners count to term 2, and only the nonce differs.
#[tokio::test]
async fn two_adopters_after_a_roll_back_do_not_pass_for_one() {
    let store = store();
    let key = stream(1);
    open(&store, key, 2).await;
    let before = store.snapshot();
    let (_, lost) = taken_over(&store, &take_over(key, Some(A), Some(B), 0x0b0b)).await;
    store
        .append(key, &by(B, lost, append(2, vec![note("B3"), note("B4")])))
        .await
        .expect("written");
    store.roll_back(&before);
    let (_, kept) = taken_over(&store, &take_over(key, Some(A), Some(C), 0x0c0c)).await;
    assert_eq!(kept.term, lost.term);
    store
        .append(
            key,
            &by(C, kept, append(2, vec![note("C3"), note("C4"), note("C5")])),
        )
        .await
        .expect("written");
    let late = by(B, lost, append(4, vec![note("B5")]));
    assert_eq!(store.append(key, &late).await, Ok(Appended::Fenced));
    let (view, position, split) = attach(&store, key, cursor(4, lost), A).await;
    assert!(split);
    assert_eq!(
        (position, seqs(&view.events)),
        (2, vec![3, 4, 5]),
        "nothing of the other branch is skipped"
    );
    // The cursors of the events that the client receives now are in this history.
    for event in &view.events {
        let wrote = fork::attempt_of(event.seq, &view.epochs);
        let (_, position, split) = attach(&store, key, cursor(event.seq, wrote), A).await;
        assert_eq!((position, split), (event.seq, false));
    }
}

/// Found in an earlier draft (6), with the roll-back that shows it.
#[tokio::test]
async fn a_node_that_adopts_twice_is_fenced_from_its_first_attempt() {
    let store = store();
    let key = stream(1);
    open(&store, key, 1).await;
    let before = store.snapshot();
    let (_, first) = taken_over(&store, &take_over(key, Some(A), Some(B), 1)).await;
    store.roll_back(&before);
    let (_, second) = taken_over(&store, &take_over(key, Some(A), Some(B), 2)).await;
    assert_eq!(first.term, second.term);
    let old = by(B, first, append(1, vec![note("2")]));
    assert_eq!(store.append(key, &old).await, Ok(Appended::Fenced));
    let new = by(B, second, append(1, vec![note("2")]));
    assert_eq!(store.append(key, &new).await, Ok(done(2, Some(A), 1)));
}
