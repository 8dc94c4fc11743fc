//! The owner of a running call is lost: an honest outcome in time, and never a silent second execution (STREAM-12).

use std::time::{Duration, Instant};

use anyhow::Result;
use portolan_tests::{
    fleet::{Fleet, call},
    mcp::LEGACY,
};
use serde_json::json;

use super::{ADOPTION, Order, echo, response};

/// The error for a call whose owner is gone, from the node that takes over.
fn assert_node_lost(answer: &serde_json::Value, id: i64) {
    assert_eq!(answer["id"], id);
    let error = &answer["error"];
    assert_eq!(error["code"], -32010, "{answer}");
    assert_eq!(error["data"]["reason"], "node_lost", "{answer}");
    assert_eq!(error["data"]["executed"], "unknown", "{answer}");
}

#[tokio::test]
async fn c5_c6_a_killed_owner_is_told_on_another_node_within_twelve_seconds() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 11).await?;
    let died = Instant::now();
    fleet.cluster.nodes[0].kill()?;
    assert!(order.stream.rest().await.is_err(), "cut in the middle");

    let mut elsewhere = fleet
        .on(1, &session)?
        .resume(order.first_id()?)
        .await?
        .stream()?;
    let events = elsewhere.rest().await?;
    assert!(died.elapsed() < ADOPTION, "told after {:?}", died.elapsed());
    assert_eq!(
        events[..order.events.len() - 1],
        order.events[1..],
        "TEST-C4"
    );
    assert_node_lost(&response(&events)?, 11);
    assert_eq!(fleet.fixture.held.fate("order-11").arrived, 1, "TEST-C6");
    // The session does not die with the node.
    echo(&fleet.on(1, &session)?, "still here").await
}

#[tokio::test]
async fn results_exist_before_the_client_comes_back() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 12).await?;
    fleet.cluster.nodes[0].kill()?;
    fleet.cluster.nodes[0].start()?;
    fleet.cluster.nodes[0].ready().await?;
    // It is another node now, whatever its address: it holds the client and takes over like any
    // other.
    let mut back = fleet
        .on(0, &session)?
        .resume(order.first_id()?)
        .await?
        .stream()?;
    assert_node_lost(&response(&back.rest().await?)?, 12);
    Ok(())
}

#[tokio::test]
async fn s12_an_owner_that_wakes_up_finds_itself_fenced_and_hangs_up() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 13).await?;
    fleet.cluster.nodes[0].pause()?;
    let mut elsewhere = fleet
        .on(1, &session)?
        .resume(order.first_id()?)
        .await?
        .stream()?;
    let answer = response(&elsewhere.rest().await?)?;
    assert_node_lost(&answer, 13);
    assert_eq!(fleet.fixture.held.fate("order-13").given_up, 0, "it sleeps");

    // The first connection is still there: it stays silent, or ends.
    let mut stream = order.stream;
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    let first = tokio::spawn(async move {
        while let Ok(Some(event)) = stream.next().await {
            assert!(!event.is_response(), "a second outcome: {event:?}");
        }
    });
    fleet.cluster.nodes[0].go_on()?;
    // Its outgoing request is dropped, and no client receives a second outcome.
    fleet.fixture.held.given_up("order-13", 1).await?;
    let first_id = order.events[0].id.as_deref().unwrap_or_default();
    let mut later = fleet.on(0, &session)?.resume(first_id).await?.stream()?;
    assert_eq!(response(&later.rest().await?)?, answer);
    echo(&fleet.on(0, &session)?, "awake").await?;
    if first.is_finished() {
        first.await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_had_sent_nothing_fails_at_once_and_is_not_repeated() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.on(0, &fleet.session("2025-06-18").await?)?;
    // An older client gets nothing for ten seconds: there is no id to come back with.
    let message = call(1, "held_order", json!({"key": "silent"}), None);
    let (answer, ()) = tokio::join!(session.start(&message), async {
        fleet
            .fixture
            .held
            .arrived("silent", 1)
            .await
            .expect("the call is under way");
        fleet.cluster.nodes[0].kill().expect("killed");
    });
    assert!(answer.is_err(), "{answer:?}");
    // Long enough for a take-over, if there were one: the other node has suspected the dead one and
    // read its records.
    let left = Instant::now();
    let node = &fleet.cluster.nodes[1];
    portolan_tests::process::eventually(
        "the other node is alone",
        Duration::from_secs(20),
        async || {
            left.elapsed() > ADOPTION
                || node
                    .metric("members")
                    .await
                    .is_ok_and(|live| (live - 1.0).abs() < 0.1)
        },
    )
    .await?;
    assert_eq!(fleet.fixture.held.fate("silent").arrived, 1, "TEST-C6");
    Ok(())
}

#[tokio::test]
async fn c5_a_client_that_waits_for_a_lost_owner_is_told_also_when_the_store_forgets_the_stream()
-> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 14).await?;
    fleet.cluster.nodes[0].kill()?;
    let mut elsewhere = fleet
        .on(1, &session)?
        .resume(order.first_id()?)
        .await?
        .stream()?;
    // The missed events are here, so the stream is attached; then everything is gone.
    elsewhere.until(super::is_progress).await?;
    fleet.cluster.redis.empty().await?;
    let emptied = Instant::now();
    // A clean end without a response asks the client to come back.
    let mut last = elsewhere.last_id().unwrap_or_default().to_owned();
    let mut events = elsewhere.rest().await?;
    while events.is_empty() && emptied.elapsed() < 2 * ADOPTION {
        let mut again = fleet.on(1, &session)?.resume(&last).await?.stream()?;
        events = again.rest().await?;
        last = again.last_id().unwrap_or(&last).to_owned();
    }
    let answer = response(&events)?;
    assert_eq!(answer["id"], 14);
    let code = &answer["error"]["code"];
    assert!(*code == -32010 || *code == -32011, "{answer}");
    assert!(
        emptied.elapsed() < 2 * ADOPTION,
        "told after {:?}",
        emptied.elapsed()
    );
    Ok(())
}

#[tokio::test]
async fn c5_an_owner_that_membership_has_forgotten_counts_as_lost() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 15).await?;
    fleet.cluster.nodes[0].kill()?;
    // As after the loss of the store between two of its heartbeats: no entry shows that it ever
    // lived.
    for key in ["pl1:{nodes}:z", "pl1:{nodes}:i"] {
        fleet.cluster.redis.command(&["DEL", key]).await?;
    }
    let forgotten = Instant::now();
    let mut elsewhere = fleet
        .on(1, &session)?
        .resume(order.first_id()?)
        .await?
        .stream()?;
    assert_node_lost(&response(&elsewhere.rest().await?)?, 15);
    assert!(
        forgotten.elapsed() < 2 * ADOPTION,
        "told after {:?}",
        forgotten.elapsed()
    );
    Ok(())
}
