//! Cancellations and answers that arrive on another node than the one with the request (STREAM-14).

use std::time::Duration;

use portolan_cluster::{node::Over, store::Routed};

use super::world::{ME, TENANT, World, next, rest, some, text};

const DEADLINE: Duration = Duration::from_secs(300);

#[tokio::test(start_paused = true)]
async fn a_cancellation_on_another_node_stops_the_work() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", DEADLINE).unwrap();
    assert!(a.node.run(session, "i:1", DEADLINE).is_none(), "in flight");
    assert!(a.node.run(session, "s:1", DEADLINE).is_some(), "another id");
    tokio::time::sleep(Duration::from_millis(40)).await;
    let routed = b.node.cancel(session, ME, "i:1").await.unwrap();
    assert_eq!(routed, Routed::Notified);
    running.cancelled.cancelled().await;
    drop(running);
    assert!(a.node.run(session, "i:1", DEADLINE).is_some(), "free again");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_on_the_same_node_needs_no_store() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", DEADLINE).unwrap();
    a.faults.cut_off(true);
    let routed = a.node.cancel(session, ME, "i:1").await.unwrap();
    assert_eq!(routed, Routed::Notified);
    assert!(running.cancelled.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_overtakes_its_request_is_honoured() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let routed = b.node.cancel(session, ME, "i:1").await.unwrap();
    assert_eq!(routed, Routed::Nobody);
    let running = a.node.run(session, "i:1", DEADLINE).unwrap();
    assert!(!running.cancelled.is_cancelled());
    running.cancelled.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_whose_doorbell_was_lost_is_found_when_the_request_is_registered_again() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", DEADLINE).unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    a.faults.cut_off_messages(true);
    b.node.cancel(session, ME, "i:1").await.unwrap();
    let found = running.cancelled.cancelled();
    tokio::time::timeout(Duration::from_secs(16), found)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_short_call_is_not_made_known_and_a_long_one_leaves_nothing_behind() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let before = a.faults.operations();
    for number in 0..100 {
        let running = a.node.run(session, format!("i:{number}"), DEADLINE);
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(running);
    }
    let beats = a.faults.operations() - before;
    assert!(beats <= 2, "{beats}");
    let running = a.node.run(session, "s:long", DEADLINE);
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(running);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let routed = b.node.cancel(session, ME, "s:long").await.unwrap();
    assert_eq!(routed, Routed::Nobody);
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_another_node_reaches_the_call_that_asked() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    // Small enough for the message, and too large for it.
    for size in [10, 20_000] {
        let (writer, mut reader) = a.node.open(world.new_stream(session));
        let question = format!("q{size}");
        let answer = text("x".repeat(size));
        let (got, ()) = tokio::join!(writer.ask(&question, text("how?")), async {
            assert_eq!(some(&mut reader, 1).await, ["1 how?"]);
            let routed = b
                .node
                .answer(TENANT, session, ME, &question, answer.clone())
                .await
                .unwrap();
            assert_eq!(routed, Routed::Notified);
            let again = b
                .node
                .answer(TENANT, session, ME, &question, text("other"))
                .await;
            assert_eq!(again, Ok(Routed::Nobody), "only the first counts");
        });
        assert_eq!(got, Ok(answer));
        writer.finish(text("done"));
        assert_eq!(rest(&mut reader).await, ["2 done"]);
    }
    let unknown = b.node.answer(TENANT, session, ME, "q?", text("x")).await;
    assert_eq!(unknown, Ok(Routed::Unasked));
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_doorbell_was_lost_is_found_within_seconds() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    a.faults.cut_off_messages(true);
    let asked = writer.ask("q1", text("how?"));
    let asked = tokio::time::timeout(Duration::from_secs(10), asked);
    let (got, ()) = tokio::join!(asked, async {
        next(&mut reader).await;
        b.node
            .answer(TENANT, session, ME, "q1", text("so"))
            .await
            .unwrap();
    });
    assert_eq!(got.unwrap(), Ok(text("so")));
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_at_most_eight_questions_at_once_and_none_after_its_session_ended() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let (writer, _reader) = a.node.open(world.new_stream(session));
    let asks: Vec<_> = (0..8)
        .map(|number| {
            let writer = writer.clone();
            let question = format!("q{number}");
            world
                .tracker
                .spawn(async move { writer.ask(&question, text("how?")).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(
        writer.ask("q9", text("how?")).await,
        Err(Over::TooManyQuestions)
    );
    b.node.end(session, ME, super::world::LIFE).await.unwrap();
    for ask in asks {
        assert_eq!(ask.await.unwrap(), Err(Over::Over));
    }
}
