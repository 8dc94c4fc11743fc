//! Sessions as a node serves them (STREAM-6, STREAM-17.1; design page, point 4).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    node::{SessionError, Unavailable},
    store::{Class, Update},
};
use tokio::time::Instant;

use super::world::{LIFE, ME, START, STRANGER, TENANT, World, fresh};

#[tokio::test(start_paused = true)]
async fn a_session_costs_one_call_and_lives_on_every_node_until_it_is_ended() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.unknown_session();
    let state = a.node.begin(session, ME, &fresh("one")).await.unwrap();
    assert!(state.rebuilt && state.body == "one");
    let state = b.node.begin(session, ME, &fresh("other")).await.unwrap();
    assert!(!state.rebuilt && state.body == "one");
    let before = b.faults.operations();
    let again = b.node.begin(session, ME, &fresh("other")).await.unwrap();
    assert_eq!((again, b.faults.operations() - before), (state.clone(), 1));
    let stranger = b.node.begin(session, STRANGER, &fresh("other")).await;
    assert_eq!(stranger, Err(SessionError::Unknown));

    let two = Bytes::from_static(b"two");
    let updated = a
        .node
        .update(session, ME, state.version, two.clone())
        .await
        .unwrap();
    let Update::Done(version) = updated else {
        panic!("{updated:?}")
    };
    let seen = b.node.begin(session, ME, &fresh("other")).await.unwrap();
    assert_eq!((seen.version, seen.body), (version, two));
    let late = b
        .node
        .update(session, ME, state.version, Bytes::from_static(b"three"))
        .await
        .unwrap();
    assert!(matches!(late, Update::Conflict { .. }));

    b.node.end(session, ME, LIFE).await.unwrap();
    for on in [&a, &b] {
        let ended = on.node.begin(session, ME, &fresh("four")).await;
        assert_eq!(ended, Err(SessionError::Unknown));
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_known_sessions_go_on_for_thirty_seconds_and_others_wait_two() {
    let world = World::new();
    let a = world.node().await;
    let known = world.session(&a).await;
    let stale = world.session(&a).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    a.node.begin(known, ME, &fresh("body")).await.unwrap();
    a.faults.cut_off(true);
    let down = Instant::now();
    while down.elapsed() < Duration::from_secs(29) {
        let state = a.node.begin(known, ME, &fresh("body")).await.unwrap();
        assert_eq!(state.body, "body");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // The last check was more than a minute ago.
    let refused = a.node.begin(stale, ME, &fresh("body")).await;
    assert_eq!(refused, Err(SessionError::Unavailable));
    let asked = Instant::now();
    let refused = a.node.begin(known, ME, &fresh("body")).await;
    assert_eq!(refused, Err(SessionError::Unavailable), "30 s are over");
    let waited = asked.elapsed().as_millis();
    assert!((1900..2400).contains(&waited), "{waited}");
    assert_eq!(a.node.end(known, ME, LIFE).await, Err(Unavailable));
    // A request that waits is served when the store returns.
    let new = fresh("new");
    let (served, ()) = tokio::join!(a.node.begin(stale, ME, &new), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.faults.cut_off(false);
    });
    assert_eq!(served.unwrap().body, "body");
}

#[tokio::test(start_paused = true)]
async fn every_operation_can_be_awaited_on_any_thread() {
    fn takes_send<T: Send>(operation: T) -> T {
        operation
    }
    let world = World::new();
    let a = world.node().await;
    let (node, session) = (&a.node, world.unknown_session());
    let new = world.new_stream(session);
    let (stream, one) = (new.stream, fresh("one"));
    let state = takes_send(node.begin(session, ME, &one)).await.unwrap();
    takes_send(node.update(session, ME, state.version, Bytes::new()))
        .await
        .unwrap();
    let (writer, reader) = takes_send(node.open(new));
    takes_send(writer.push(Class::Notification, Bytes::new()))
        .await
        .unwrap();
    drop(takes_send(writer.ask("q", Bytes::new())));
    drop(takes_send(reader));
    takes_send(node.resume(TENANT, stream, ME, START))
        .await
        .unwrap();
    takes_send(node.cancel(session, ME, "i:1")).await.unwrap();
    takes_send(node.answer(TENANT, session, ME, "q", Bytes::new()))
        .await
        .unwrap();
    takes_send(node.end(session, ME, LIFE)).await.unwrap();
    takes_send(node.drain()).await;
}

/// A call that began in a grace is not cancelled when its session turns out to be ended. Its client
/// receives the error for an unknown session, instead of no reply (MCP-T-45).
#[tokio::test(start_paused = true)]
async fn a_request_of_a_session_that_was_ended_elsewhere_learns_that_and_is_not_taken_for_cancelled()
 {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    a.faults.cut_off(true);
    b.node.end(session, ME, LIFE).await.unwrap();
    // Served from memory, because this node cannot know of the end.
    a.node.begin(session, ME, &fresh("body")).await.unwrap();
    let running = a.node.run(session, "i:1", Duration::from_secs(60)).unwrap();
    a.faults.cut_off(false);
    running.cancelled.cancelled().await;
    assert!(running.is_session_over());
    drop(running);
    let known = a.node.begin(session, ME, &fresh("body")).await;
    assert_eq!(known, Err(SessionError::Unknown), "no grace any more");

    // A message has the same effect.
    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", Duration::from_secs(60)).unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    b.node.end(session, ME, LIFE).await.unwrap();
    running.cancelled.cancelled().await;
    assert!(running.is_session_over());

    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", Duration::from_secs(60)).unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    b.node.cancel(session, ME, "i:1").await.unwrap();
    running.cancelled.cancelled().await;
    assert!(!running.is_session_over(), "a cancellation is one");
}

/// Design page, point 4, and STREAM-10: a client that makes a session for each call neither
/// fills the memory nor harms other clients.
#[tokio::test(start_paused = true)]
async fn a_principals_idle_sessions_beyond_a_few_leave_no_record_and_live_on() {
    let mut world = World::new();
    world.settings.sessions_of_one = 2;
    world.settings.unused_for = Duration::from_secs(60);
    let a = world.node().await;
    let make = async |session| {
        let begun = a.node.begin(session, ME, &fresh("body")).await.unwrap();
        assert!(begun.rebuilt);
        a.node.session_made(session, ME);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let first = world.unknown_session();
    make(first).await;
    for _ in 0..4 {
        make(world.unknown_session()).await;
    }
    world.memory.purge();
    assert_eq!(world.memory.len(), 5, "all are in use");
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        a.node.begin(first, ME, &fresh("body")).await.unwrap();
    }
    make(world.unknown_session()).await;
    world.memory.purge();
    assert_eq!(
        world.memory.len(),
        3,
        "the new ones, and the one that is used"
    );
    let again = a.node.begin(first, ME, &fresh("other")).await.unwrap();
    assert_eq!((again.rebuilt, &again.body[..]), (false, &b"body"[..]));
}
