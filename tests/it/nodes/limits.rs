//! Limits hold over all nodes, and a tenant changes its own (STREAM-16).

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::{
    cluster::Cluster,
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient},
    process::eventually,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::{Order, echo};

/// A quick call; whether it was let in.
async fn gets_in(client: &McpClient) -> Result<bool> {
    let arguments = json!({"message": "room?"});
    let answer = client
        .message(&call(9, "echo_message", arguments, None))
        .await?;
    if answer.status == StatusCode::TOO_MANY_REQUESTS {
        assert_eq!(answer.code(), -32013);
        assert_eq!(
            answer.json["error"]["data"],
            json!({"reason": "running_requests"})
        );
        assert_eq!(answer.header("retry-after"), "1");
        return Ok(false);
    }
    anyhow::ensure!(answer.status == StatusCode::OK, "{}", answer.text);
    Ok(true)
}

#[tokio::test]
async fn running_calls_of_a_tenant_are_limited_over_all_nodes_and_a_dead_nodes_share_is_free()
-> Result<()> {
    let builder = Cluster::builder()
        .nodes(2)
        .setting("tenant_running_calls", 3);
    let mut fleet = Fleet::with(builder).await?;
    let session = fleet.session(LEGACY).await?;
    let (first, second) = (fleet.on(0, &session)?, fleet.on(1, &session)?);
    // Both nodes know of each other.
    for node in [0, 1] {
        eventually("two members", Duration::from_secs(10), async || {
            fleet.cluster.nodes[node].metric("members").await.ok() == Some(2.0)
        })
        .await?;
    }
    let one = Order::start(&fleet, &first, 51).await?;
    let two = Order::start(&fleet, &first, 52).await?;
    let mut three = Order::start(&fleet, &second, 53).await?;
    assert!(!gets_in(&first).await? && !gets_in(&second).await?);
    // A finished call frees its permit on the other node too.
    three.release(&fleet);
    super::response(&three.stream.rest().await?)?;
    eventually(
        "room on the first node",
        Duration::from_secs(5),
        async || gets_in(&first).await.unwrap_or(false),
    )
    .await?;
    assert!(gets_in(&second).await?);
    // Two run on the first node. When it is dead, all three are the second one's.
    let four = Order::start(&fleet, &second, 54).await?;
    assert!(!gets_in(&second).await?);
    fleet.cluster.nodes[0].kill()?;
    drop((one, two));
    eventually("room again", Duration::from_secs(15), async || {
        gets_in(&second).await.unwrap_or(false)
    })
    .await?;
    four.release(&fleet);
    Ok(())
}

/// Calls that the node of the next test bears, what one workspace may have of them, and what the noisy one wants.
const BEARS: usize = 40;
const SHARE: usize = 30;
const WANTS: usize = 200;

/// TEST-S12, in small.
#[tokio::test]
async fn s12_a_workspace_that_wants_five_nodes_full_of_calls_costs_the_others_none() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(1)
        .setting("node_running_calls", BEARS);
    let fleet = Fleet::with(builder).await?;
    let console = fleet.owner.console();
    let second = console.publish_fixture("quay", &fleet.fixture).await?;
    let tokens = fleet.client.authorize(&fleet.owner, &second.url).await?;
    let quiet = McpClient::new(&second.url)?.with_token(&tokens.access)?;
    let (quiet, _) = fleet.on(0, &quiet)?.initialize(LEGACY).await?;
    let noisy = fleet.on(0, &fleet.session(LEGACY).await?)?;
    // No limit of its own stands in its way.
    let mut noise = JoinSet::new();
    for number in 0..WANTS {
        let (noisy, key) = (noisy.clone(), format!("noise-{number}"));
        let message = call(
            i64::try_from(number)?,
            "held_order",
            json!({"key": key}),
            None,
        );
        noise.spawn(async move { (key, noisy.message(&message).await) });
    }
    let mut refused = Vec::new();
    while refused.len() < WANTS - SHARE {
        let ended = timeout(Duration::from_secs(30), noise.join_next()).await?;
        let (key, answer) = ended.context("calls that still run")??;
        let answer = answer?;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{key}");
        assert_eq!(answer.code(), -32017, "{}", answer.text);
        refused.push(key);
    }
    let held = &fleet.fixture.held;
    eventually("its share runs", Duration::from_secs(10), async || {
        held.fates().len() == SHARE
    })
    .await?;
    // It goes on wanting more while the other one works.
    for number in 0..20 {
        echo(&quiet, "undisturbed").await?;
        let order = call(500 + number, "held_order", json!({"key": "more"}), None);
        let more = noisy.message(&order).await?;
        assert_eq!(more.status, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(held.fate("more").arrived, 0);
    for key in held.fates().into_keys() {
        held.release(&key);
    }
    while let Some(ended) = noise.join_next().await {
        let (key, answer) = ended?;
        assert_eq!(answer?.status, StatusCode::OK, "{key}");
    }
    echo(&noisy, "room again").await
}

#[tokio::test]
async fn a_workspace_changes_its_limits_and_every_node_holds_them_in_a_moment() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let path = format!("/workspaces/{}/limits", fleet.published.workspace);
    let console = fleet.owner.console();
    let named = |limits: &Value, name: &str| {
        let all = limits["limits"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|limit| limit["name"] == name)
    };
    let before = console.get(&path).await?;
    let running = named(&before, "running_calls").unwrap_or_default();
    assert_eq!(
        (&running["value"], &running["own"]),
        (&json!(500), &Value::Null)
    );

    let order = Order::start(&fleet, &fleet.on(0, &session)?, 61).await?;
    // The console is a process without MCP endpoints.
    eventually("it shows what runs", Duration::from_secs(10), async || {
        console
            .get(&path)
            .await
            .is_ok_and(|limits| named(&limits, "running_calls").unwrap_or_default()["in_use"] == 1)
    })
    .await?;
    let change = json!({"running_calls": 1});
    console.expect(Method::PATCH, &path, Some(change)).await?;
    for node in [0, 1] {
        let client = fleet.on(node, &session)?;
        eventually("the new limit holds", Duration::from_secs(10), async || {
            gets_in(&client).await.is_ok_and(|is_in| !is_in)
        })
        .await?;
    }
    // Running calls go on; refusals are shown.
    eventually("refusals are shown", Duration::from_secs(15), async || {
        console.get(&path).await.is_ok_and(|limits| {
            let running = named(&limits, "running_calls").unwrap_or_default();
            running["refused"].as_i64() >= Some(2)
        })
    })
    .await?;
    let reset = json!({"running_calls": null});
    console.expect(Method::PATCH, &path, Some(reset)).await?;
    for node in [0, 1] {
        let client = fleet.on(node, &session)?;
        eventually("the default holds", Duration::from_secs(10), async || {
            echo(&client, "in").await.is_ok()
        })
        .await?;
    }
    // Calls of the console's *Try* page count among the calls of the workspace.
    let least = named(&before, "tenant_calls").unwrap_or_default()["minimum"].clone();
    let few = json!({"tenant_calls": least});
    console.expect(Method::PATCH, &path, Some(few)).await?;
    let (workspace, source) = (&fleet.published.workspace, &fleet.published.source_id);
    let tools = console.tool_ids(workspace, source).await?;
    let tool = tools[0].as_str().unwrap_or_default();
    let trial = format!("/workspaces/{workspace}/tools/{tool}/try");
    let most = 1 + least.as_u64().unwrap_or_default();
    let mut refusal = Value::Null;
    for _ in 0..=most {
        let (status, answer) = console
            .send(Method::POST, &trial, Some(json!({"arguments": {}})))
            .await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            refusal = answer;
        }
    }
    assert_eq!(refusal["error"]["code"], "over_limit");
    order.release(&fleet);
    Ok(())
}
