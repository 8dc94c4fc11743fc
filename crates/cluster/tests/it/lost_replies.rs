//! Every operation may be applied although its reply is lost, and is then repeated
//! (STREAM-17.1 *down*).

use std::sync::Arc;

use crate::fixture::{
    Kind,
    fault::{Fault, FaultStore, Rates},
    names::*,
    server::RedisServer,
};
use bytes::Bytes;
use portolan_cluster::{
    memory::MemoryStore,
    store::{
        Appended, Begin, Bounds, Class, NodeMessage, Registered, Routed, Store, StreamState,
        TakenOver, Update,
    },
};
use portolan_model::{Clock, Timestamp};
use tokio_util::task::TaskTracker;

async fn faulty(kind: &Kind) -> FaultStore {
    let ground = kind.ground(Bounds::default()).await;
    FaultStore::new(ground.store, 1, TaskTracker::new())
}

#[tokio::test]
async fn what_was_applied_without_a_reply_is_recognised_when_repeated() {
    for kind in [Kind::Memory, Kind::Redis(RedisServer::start())] {
        let store = faulty(&kind).await;
        let name = kind.name();
        let lose = || store.next([Fault::Lost]);
        let key = stream(1);

        lose();
        assert!(is_down(&store.begin(S, ME, None, &fresh("one")).await));
        let Ok(Begin::Alive {
            version,
            body: Some(body),
        }) = store.begin(S, ME, None, &fresh("two")).await
        else {
            panic!("{name}: begin")
        };
        assert_eq!(body, "one", "{name}");

        lose();
        let body = Bytes::from_static(b"new");
        assert!(is_down(&store.update(S, ME, version, body.clone()).await));
        assert!(
            matches!(store.update(S, ME, version, body.clone()).await, Ok(Update::Conflict { body: found, .. }) if found == body),
            "{name}: the caller finds its own body"
        );

        let first = opening(vec![note("1"), question("q1")]);
        lose();
        assert!(is_down(&store.append(key, &first).await));
        let tail = Appended::Tail {
            tail: 2,
            state: StreamState::Open,
        };
        assert_eq!(
            store.append(key, &first).await,
            Ok(tail),
            "{name}: expect + 2"
        );

        let register = || store.register(S, "i:1", A, Some(key.nonce), MINUTE);
        lose();
        assert!(is_down(&register().await));
        assert_eq!(register().await, Ok(Registered::Done), "{name}");

        let answer = || store.answer(S, ME, "q1", Bytes::from_static(b"yes"));
        lose();
        assert!(is_down(&answer().await));
        assert_eq!(
            answer().await,
            Ok(Routed::Notified),
            "{name}: not a second answer"
        );
        lose();
        assert!(is_down(&store.take_answer(S, "q1").await));
        assert_eq!(
            store.take_answer(S, "q1").await,
            Ok(Some(Bytes::from_static(b"yes"))),
            "{name}: an answer is not lost with a reply"
        );

        lose();
        assert!(is_down(&store.cancel(S, ME, "i:1").await));
        assert_eq!(
            store.cancel(S, ME, "i:1").await,
            Ok(Routed::Notified),
            "{name}"
        );
        lose();
        assert!(is_down(&register().await));
        assert_eq!(register().await, Ok(Registered::Cancelled), "{name}");

        let take = take_over(key, Some(A), Some(B), 0x1234);
        lose();
        assert!(is_down(&store.take_over(&take).await));
        assert!(
            matches!(store.take_over(&take).await, Ok(TakenOver::Done { epoch, .. }) if epoch == crate::fixture::names::epoch(2, 0x1234)),
            "{name}: adopted once"
        );

        lose();
        assert!(is_down(&store.attach(key, ME, START, C).await));
        let (view, ..) = attach(&store, key, START, C).await;
        assert_eq!(
            view.generation, 3,
            "{name}: the connection is the newest either way"
        );

        let last = portolan_cluster::store::Append {
            owner: B,
            epoch: epoch(2, 0x1234),
            ..closing(2, vec![event(Class::Final, "f")])
        };
        lose();
        assert!(is_down(&store.append(key, &last).await));
        let tail = Appended::Tail {
            tail: 3,
            state: StreamState::Closed,
        };
        assert_eq!(store.append(key, &last).await, Ok(tail), "{name}");

        lose();
        assert!(is_down(&store.remove(S, ME, Remove::Ended(LIFE)).await));
        assert_eq!(
            store.remove(S, ME, Remove::Ended(LIFE)).await,
            Ok(false),
            "{name}"
        );
        assert_eq!(
            store.begin(S, ME, None, &fresh("x")).await,
            Ok(Begin::Unknown),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_fault_does_what_its_name_says() {
    let clock = Clock::test(Timestamp::UNIX_EPOCH);
    let memory = MemoryStore::new(Bounds::default(), clock);
    let tracker = TaskTracker::new();
    let store = FaultStore::new(Arc::new(memory.clone()), 1, tracker.clone());
    store.next([Fault::Before, Fault::Refused, Fault::None]);
    assert!(is_down(&store.begin(S, ME, None, &fresh("x")).await));
    assert!(is_refused(&store.begin(S, ME, None, &fresh("x")).await));
    assert!(memory.is_empty() && store.operations() == 0);
    begun(&store).await;
    assert_eq!((memory.len(), store.operations()), (1, 1));

    store.cut_off(true);
    assert!(is_down(&store.begin(S, ME, None, &fresh("x")).await));
    store.cut_off(false);
    begun(&store).await;

    // Messages during the outage are lost, and the node receives `Resync` after it.
    let mut messages = store.subscribe(A).await.expect("heard");
    store
        .register(S, "i:1", A, None, MINUTE)
        .await
        .expect("registered");
    let cancel = || memory.cancel(S, ME, "i:1");
    store.cut_off_messages(true);
    cancel().await.expect("rung");
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    store.cut_off_messages(false);
    assert_eq!(messages.recv().await, Some(NodeMessage::Resync));
    cancel().await.expect("rung");
    assert!(matches!(
        messages.recv().await,
        Some(NodeMessage::Cancel { .. })
    ));

    store.set_rates(Rates {
        message_twice: 1000,
        ..Rates::default()
    });
    cancel().await.expect("rung");
    for _ in 0..2 {
        assert!(matches!(
            messages.recv().await,
            Some(NodeMessage::Cancel { .. })
        ));
    }
    store.set_rates(Rates {
        message_lost: 1000,
        before: 1000,
        ..Rates::default()
    });
    cancel().await.expect("rung");
    assert!(is_down(&store.take_answer(S, "q").await));
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    store.set_rates(Rates::default());
    memory
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(
        messages.recv().await,
        Some(NodeMessage::Ended { session: S })
    );
    drop(messages);
}

#[tokio::test]
async fn the_same_seed_fails_in_the_same_way() {
    let run = async |seed| {
        let clock = Clock::test(Timestamp::UNIX_EPOCH);
        let memory = MemoryStore::new(Bounds::default(), clock);
        let store = FaultStore::new(Arc::new(memory), seed, TaskTracker::new());
        store.set_rates(Rates {
            before: 200,
            lost: 200,
            ..Rates::default()
        });
        let mut failed = Vec::new();
        for _ in 0..200 {
            failed.push(is_down(&store.begin(S, ME, None, &fresh("x")).await));
        }
        failed
    };
    let first = run(42).await;
    assert_eq!(first, run(42).await);
    assert_ne!(first, run(43).await);
    let failures = first.iter().filter(|failed| **failed).count();
    assert!((40..=110).contains(&failures), "{failures} of 200");
}
