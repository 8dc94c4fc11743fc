//! Sessions belong to all nodes: any node serves them, none loses them, and a deleted one is dead
//! everywhere (README point 4).

use anyhow::{Context, Result};
use portolan_tests::{
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Order, echo};

#[tokio::test]
async fn c9_a_session_that_was_deleted_on_one_node_is_unknown_on_every_node() -> Result<()> {
    let fleet = Fleet::of(3).await?;
    let session = fleet.session(LEGACY).await?;
    for node in 0..3 {
        echo(&fleet.on(node, &session)?, "known here").await?;
    }
    let order = Order::start(&fleet, &fleet.on(2, &session)?, 1).await?;
    let answer = fleet.on(0, &session)?.send(Method::DELETE).await?;
    assert!(answer.status.is_success(), "{}", answer.status);
    for node in 0..3 {
        let client = fleet.on(node, &session)?;
        let call = client.request("tools/list", json!({})).await?;
        assert_eq!(call.status, StatusCode::NOT_FOUND, "POST on {node}");
        let stream = client.open_stream().await?;
        assert_eq!(stream.status(), StatusCode::NOT_FOUND, "GET on {node}");
        let resumed = client.resume(order.first_id()?).await?.whole()?;
        assert_eq!(resumed.status, StatusCode::NOT_FOUND, "resume on {node}");
    }
    // Its running calls are stopped.
    fleet.fixture.held.given_up("order-1", 1).await
}

#[tokio::test]
async fn a_session_survives_that_redis_is_emptied() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let deleted = fleet.session(LEGACY).await?;
    for node in [0, 1, 0] {
        fleet.cluster.redis.empty().await?;
        echo(&fleet.on(node, &session)?, "rebuilt").await?;
    }
    // A rebuilt session is like any other.
    assert!(deleted.send(Method::DELETE).await?.status.is_success());
    assert!(session.send(Method::DELETE).await?.status.is_success());
    for gone in [&session, &deleted] {
        let answer = fleet.on(1, gone)?.request("ping", json!({})).await?;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    Ok(())
}

#[tokio::test]
async fn a_session_survives_that_every_node_is_killed_and_started_again() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    for node in &mut fleet.cluster.nodes {
        node.kill()?;
        node.start()?;
    }
    for node in &mut fleet.cluster.nodes {
        node.ready().await?;
    }
    for node in 0..2 {
        echo(&fleet.on(node, &session)?, "as if nothing had happened").await?;
    }
    Ok(())
}

#[tokio::test]
async fn s1_a_session_is_worth_nothing_to_another_client_on_any_node() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let id = session
        .header("mcp-session-id")
        .unwrap_or_default()
        .to_owned();
    let other = OAuthClient::register(fleet.cluster.url(), "Other").await?;
    let tokens = other.authorize(&fleet.owner, &fleet.published.url).await?;
    let thief = McpClient::new(&fleet.published.url)?
        .with_token(&tokens.access)?
        .with("mcp-session-id", &id)?
        .with("mcp-protocol-version", LEGACY)?;
    for node in 0..2 {
        let thief = fleet.on(node, &thief)?;
        let answer = thief.request("tools/list", json!({})).await?;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(
            thief.send(Method::DELETE).await?.status,
            StatusCode::NOT_FOUND
        );
        echo(&fleet.on(node, &session)?, "unharmed").await?;
    }
    Ok(())
}

/// Sessions that one client opens in a row, as clients do that open one for each call.
const MANY: usize = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_of_one_client_leave_next_to_nothing() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    for _ in 0..50 {
        fleet.session(LEGACY).await?;
    }
    let redis_before = fleet.cluster.redis.info("used_memory").await?;
    let node_before = fleet.cluster.nodes[0].memory()?;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = fleet.on(0, &fleet.mcp)?;
        clients.spawn(async move {
            let mut first = None;
            for _ in 0..MANY / 4 {
                let (session, _) = client.initialize(LEGACY).await?;
                first.get_or_insert(session);
            }
            first.context("a session")
        });
    }
    let mut sessions = Vec::new();
    while let Some(client) = clients.join_next().await {
        sessions.push(client??);
    }
    let redis = fleet.cluster.redis.info("used_memory").await?;
    let (redis, node) = (
        redis.saturating_sub(redis_before) / MANY as u64,
        fleet.cluster.nodes[0].memory()?.saturating_sub(node_before) / MANY as u64,
    );
    println!("{MANY} sessions: {redis} bytes of Redis and {node} bytes of the node each");
    // TEST-L11: 750 bytes of Redis.
    assert!(redis <= 750, "{redis} bytes of Redis");
    // A node remembers records for a minute. A fast run has all of them: about 1 KiB each, with the
    // pages of the allocator.
    assert!(node <= 1_536, "{node} bytes of the node");
    for session in sessions {
        echo(&session, "the first ones live").await?;
    }
    Ok(())
}
