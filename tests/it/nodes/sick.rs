//! Redis or Postgres is down: what goes on, what waits, and that nothing is lost (STREAM-17).

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use portolan_tests::{
    cluster::{Cluster, Succession},
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    oauth::tokens,
    process::eventually,
};
use reqwest::StatusCode;
use serde_json::json;

use super::{Order, echo, is_progress, repeats, response};

async fn modern_echo(client: &McpClient, text: &str) -> Result<()> {
    let answer = client
        .modern(
            "tools/call",
            json!({"name": "echo_message", "arguments": {"message": text}}),
        )
        .await?;
    repeats(&answer, text)
}

/// Checks the promises while Redis does not answer, in any way.
async fn holds_without_redis(
    fleet: &Fleet,
    known: &McpClient,
    order: &mut Order,
) -> Result<Vec<portolan_tests::sse::Event>> {
    // A session that the node knows, and the stateless era, which asks Redis for nothing.
    for _ in 0..3 {
        echo(known, "known").await?;
        modern_echo(&fleet.on(0, &fleet.mcp)?, "stateless").await?;
        modern_echo(&fleet.on(1, &fleet.mcp)?, "stateless").await?;
    }
    // A node that does not know the session cannot say whether it was deleted.
    let began = Instant::now();
    let answer = fleet.on(1, known)?.request("tools/list", json!({})).await?;
    assert_eq!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        answer.text
    );
    assert!(!answer.header("retry-after").is_empty());
    // STREAM-B: which of its parts is away, and under the id of the request.
    assert_eq!(answer.code(), -32017, "{}", answer.text);
    assert_eq!(answer.json["error"]["data"], json!({"reason": "redis"}));
    assert!(!answer.json["id"].is_null(), "{}", answer.text);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // REVIEW-F4: no session begins whose next request could not be answered.
    for node in 0..2 {
        let hello = fleet.on(node, &fleet.mcp)?;
        let client = json!({"name": "harness", "version": "1"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client});
        let answer = hello.request("initialize", params).await?;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            answer.text
        );
        assert_eq!(answer.code(), -32017, "{}", answer.text);
        assert!(!answer.header("retry-after").is_empty());
    }
    // The open stream goes on, and gets its answer.
    let mut events = order.stream.until(is_progress).await?;
    order.release(fleet);
    events.extend(order.stream.rest().await?);
    response(&events)?;
    Ok(events)
}

/// Events that were sent meanwhile are in the log under the ids that they were sent with.
async fn nothing_was_lost(
    fleet: &Fleet,
    session: &McpClient,
    order: &Order,
    meanwhile: &[portolan_tests::sse::Event],
) -> Result<()> {
    // A node that knows that Redis is nearly full sends notifications without ids, and they are in
    // no log (STREAM-17.2).
    let seen = order.events[1..].iter().chain(meanwhile);
    let seen: Vec<_> = seen.filter(|event| event.id.is_some()).cloned().collect();
    let elsewhere = fleet.on(1, session)?;
    let mut back = elsewhere.resume(order.first_id()?).await?.stream()?;
    let again = back.rest().await?;
    assert_eq!(again, seen, "another node tells the same");
    // Sessions are made again, on every node, as soon as it answers.
    eventually("new sessions", Duration::from_secs(10), async || {
        let fresh = fleet.mcp.initialize(LEGACY).await;
        fresh.is_ok()
    })
    .await?;
    for node in 0..2 {
        echo(&fleet.on(node, session)?, "as before").await?;
    }
    Ok(())
}

#[tokio::test]
async fn s17_1_redis_is_stopped_and_comes_back() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let (known, _) = fleet.on(0, &fleet.mcp)?.initialize(LEGACY).await?;
    let mut order = Order::start(&fleet, &known, 101).await?;
    fleet.cluster.redis.stop()?;
    let meanwhile = holds_without_redis(&fleet, &known, &mut order).await?;
    fleet.cluster.redis.start_again().await?;
    nothing_was_lost(&fleet, &known, &order, &meanwhile).await
}

#[tokio::test]
async fn s17_1_redis_is_silent_and_comes_back() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let (known, _) = fleet.on(0, &fleet.mcp)?.initialize(LEGACY).await?;
    let mut order = Order::start(&fleet, &known, 101).await?;
    fleet.cluster.redis.pause()?;
    let meanwhile = holds_without_redis(&fleet, &known, &mut order).await?;
    fleet.cluster.redis.go_on()?;
    nothing_was_lost(&fleet, &known, &order, &meanwhile).await
}

/// TEST-F6: the new one lacks the last writes, and the old one, if it lives, accepts no writes any
/// more (`READONLY`).
#[tokio::test]
async fn s17_3_another_redis_takes_over_and_owners_write_again_what_it_was_not_told() -> Result<()>
{
    let mut fleet = Fleet::with(Cluster::builder().nodes(2).watched()).await?;
    let session = fleet.session(LEGACY).await?;
    for (number, servers, how) in [
        (101, 2.0, Succession::Death),
        (102, 3.0, Succession::Demotion),
    ] {
        let mut order = Order::start(&fleet, &fleet.on(0, &session)?, number).await?;
        fleet.cluster.heir_knows_all().await?;
        fleet.cluster.forget_from_now().await?;
        let mut meanwhile = order.stream.until(is_progress).await?;
        let (young, _) = fleet.on(0, &fleet.mcp)?.initialize(LEGACY).await?;
        echo(&young, "its record is lost").await?;
        fleet.cluster.succeed(how).await?;
        order.release(&fleet);
        meanwhile.extend(order.stream.rest().await?);
        response(&meanwhile)?;
        nothing_was_lost(&fleet, &session, &order, &meanwhile).await?;
        // Its id holds all that a node needs to make it again.
        let elsewhere = fleet.on(1, &young)?;
        eventually("a session goes on", Duration::from_secs(10), async || {
            echo(&elsewhere, "made again").await.is_ok()
        })
        .await?;
        for node in &fleet.cluster.nodes {
            let seen = node.metric("redis_incarnation").await?;
            assert!(seen >= servers, "{how:?}: {} has seen {seen}", node.name);
        }
        fleet.cluster.restore_heir().await?;
    }
    Ok(())
}

/// Longer than a node's entry in the list of nodes lives without its beat (STREAM-12.1: 6 s, and
/// two looks a second late).
const FORGETS: Duration = Duration::from_secs(10);

#[tokio::test]
async fn s17_2_a_full_redis_costs_no_node_its_place_and_no_call_its_answer() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 101).await?;
    let adoptions = async || -> Result<f64> {
        let [one, two] = [&fleet.cluster.nodes[0], &fleet.cluster.nodes[1]];
        let name = "mcp_adoptions_total";
        Ok(one.metric(name).await? + two.metric(name).await?)
    };
    let before = adoptions().await?;
    fleet.cluster.redis.starve(true).await?;
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < FORGETS {
        for node in 0..2 {
            echo(&fleet.on(node, &session)?, "known").await?;
            modern_echo(&fleet.on(node, &fleet.mcp)?, "stateless").await?;
            calls += 2;
        }
    }
    println!(
        "{calls} calls while Redis was full for {:?}",
        began.elapsed()
    );
    // A stream that begins now cannot be kept, and is answered all the same.
    let mut fresh = Order::start(&fleet, &fleet.on(1, &session)?, 102).await?;
    fresh.release(&fleet);
    response(&fresh.stream.rest().await?)?;
    let mut meanwhile = order.stream.until(is_progress).await?;
    order.release(&fleet);
    meanwhile.extend(order.stream.rest().await?);
    response(&meanwhile)?;
    for node in &fleet.cluster.nodes {
        let members = node.metric("members").await?;
        assert!(members > 1.9, "{} sees {members}", node.name);
    }
    let adopted = adoptions().await? - before;
    assert!(adopted < 0.5, "{adopted} streams were adopted");
    fleet.cluster.redis.starve(false).await?;
    nothing_was_lost(&fleet, &session, &order, &meanwhile).await
}

#[tokio::test]
async fn s9_a_resume_while_redis_is_down_is_held_and_then_served() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 101).await?;
    let id = order.first_id()?.to_owned();
    fleet.cluster.redis.stop()?;
    // A node that does not know the session.
    let mut held = fleet.on(1, &session)?.resume(&id).await?.stream()?;
    fleet.cluster.redis.start_again().await?;
    fleet.fixture.held.release("order-101");
    response(&held.rest().await?)?;
    Ok(())
}

#[tokio::test]
async fn s17_4_postgres_is_stopped_and_nobody_who_calls_tools_notices() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    for node in 0..2 {
        echo(&fleet.on(node, &session)?, "warm").await?;
        modern_echo(&fleet.on(node, &fleet.mcp)?, "warm").await?;
    }
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 101).await?;
    fleet.cluster.postgres.stop()?;
    for _ in 0..5 {
        for node in 0..2 {
            echo(&fleet.on(node, &session)?, "cached").await?;
            modern_echo(&fleet.on(node, &fleet.mcp)?, "cached").await?;
        }
    }
    let fresh = fleet.on(1, &fleet.mcp)?.initialize(LEGACY).await;
    let (fresh, _) = fresh.context("initialize asks Postgres for nothing")?;
    echo(&fresh, "new").await?;
    order.release(&fleet);
    response(&order.stream.rest().await?)?;
    fleet.cluster.postgres.start_again().await?;
    // Changes are received again.
    let console = fleet.owner.console();
    eventually("the console works", Duration::from_secs(30), async || {
        console.get("/me").await.is_ok()
    })
    .await
}

#[tokio::test]
async fn case_128_tokens_are_renewed_without_redis_and_wait_for_postgres() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    fleet.cluster.redis.stop()?;
    let renewed = tokens(fleet.client.refresh(&fleet.tokens.refresh).await?).await?;
    let mcp = fleet.mcp.clone().with_token(&renewed.access)?;
    for node in 0..2 {
        modern_echo(&fleet.on(node, &mcp)?, "without Redis").await?;
    }
    fleet.cluster.redis.start_again().await?;

    fleet.cluster.postgres.stop()?;
    for _ in 0..2 {
        let refused = fleet.client.refresh(&renewed.refresh).await?;
        let (status, body) = (refused.status(), refused.text().await?);
        // Its own words or those of the balancer, which has seen that it is not ready.
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        assert!(!body.contains("invalid_"), "AUTH-T7: {body}");
        for node in 0..2 {
            modern_echo(&fleet.on(node, &mcp)?, "a good token is good").await?;
        }
    }
    fleet.cluster.postgres.start_again().await?;
    let mut again = None;
    eventually(
        "the token is renewed",
        Duration::from_secs(30),
        async || {
            if let Ok(answer) = fleet.client.refresh(&renewed.refresh).await {
                again = tokens(answer).await.ok();
            }
            again.is_some()
        },
    )
    .await?;
    let again = again.context("new tokens")?;
    let mcp = mcp.with_token(&again.access)?;
    modern_echo(&fleet.on(1, &mcp)?, "with the new one").await
}
