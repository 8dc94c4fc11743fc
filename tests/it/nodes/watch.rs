//! The metrics that operators watch (STREAM-20).

use std::time::Duration;

use anyhow::Result;
use portolan_tests::{cluster::Node, fleet::Fleet, mcp::LEGACY, process::eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Order, echo, is_progress, response};

/// Metrics that every node has as soon as it is used.
const ALWAYS: &[&str] = &[
    "beat_age_seconds",
    "clock_skew_seconds",
    "drain_calls_cut_total",
    "limit_decisions_total",
    "listen_connected",
    "mcp_antientropy_repairs_total",
    "mcp_outage_mode_streams",
    "mcp_ring_overflow_total",
    "mcp_stream_memory_bytes",
    "mcp_stream_seal_failures_total",
    "mcp_tokens_unjudged_total",
    "members",
    "redis_breaker_state",
    "redis_incarnation",
    "redis_inflight",
    "redis_rtt_seconds",
    "redis_used_memory_ratio",
    "registry_reload_seconds",
    "registry_stale_seconds",
    "revocations_stale_seconds",
    "server_requests_open",
];

/// Metrics of the owner of a stream, and of the node at which it was resumed.
const OWNER: &[&str] = &["mcp_append_total", "tenant_log_bytes"];
const ELSEWHERE: &[&str] = &[
    "cancels_total",
    "mcp_doorbells_total",
    "mcp_resume_total",
    "mcp_stream_delivery_seconds",
    "mcp_streams_open",
];

async fn tells(node: &Node, names: &[&str]) -> Result<()> {
    eventually(
        "the node tells of what happened",
        Duration::from_secs(20),
        async || {
            let text = node.metrics().await.unwrap_or_default();
            let missing: Vec<_> = names
                .iter()
                .filter(|name| !text.contains(&format!("# TYPE {name} ")))
                .collect();
            if !missing.is_empty() {
                eprintln!("missing: {missing:?}");
            }
            missing.is_empty()
        },
    )
    .await
}

/// A gauge or counter that has one series.
async fn value(node: &Node, name: &str) -> Result<f64> {
    node.metric(name).await
}

#[tokio::test]
async fn s20_every_metric_is_told_by_the_nodes_that_did_the_work() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let (here, there) = (fleet.on(0, &session)?, fleet.on(1, &session)?);
    echo(&here, "one").await?;
    echo(&there, "two").await?;
    let order = Order::start(&fleet, &here, 7).await?;
    let from = order.first_id()?.to_owned();
    drop(order.stream);
    let mut elsewhere = there.resume(&from).await?.stream()?;
    // One that it missed, and one that came while it was there.
    elsewhere.until(is_progress).await?;
    elsewhere.until(is_progress).await?;
    fleet.fixture.held.release("order-7");
    response(&elsewhere.rest().await?)?;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    there.message(&cancel).await?;

    let (owner, other) = (&fleet.cluster.nodes[0], &fleet.cluster.nodes[1]);
    for node in [owner, other] {
        tells(node, ALWAYS).await?;
        assert!(value(node, "listen_connected").await? > 0.9);
        assert!(value(node, "registry_stale_seconds").await? < 20.0);
        assert!(value(node, "beat_age_seconds").await? < 6.0);
        assert!(value(node, "revocations_stale_seconds").await? < 6.0);
        let skew = value(node, "clock_skew_seconds").await?;
        assert!(skew.abs() < 0.25, "one machine, one clock: {skew}");
        let memory = value(node, "redis_used_memory_ratio").await?;
        assert!(memory > 0.0 && memory < 1.0, "{memory}");
    }
    tells(owner, OWNER).await?;
    tells(other, ELSEWHERE).await?;
    assert!(value(owner, "tenant_log_bytes").await? > 100.0);
    let text = other.metrics().await?;
    assert!(
        text.contains("mcp_stream_delivery_seconds_count{way=\"remote\"}"),
        "{text}"
    );
    assert!(
        text.contains("mcp_resume_total{outcome=\"ok\"} 1"),
        "{text}"
    );

    // A change of the tools.
    let (console, workspace) = (fleet.owner.console(), &fleet.published.workspace);
    let tools = console
        .tool_ids(workspace, &fleet.published.source_id)
        .await?;
    let body: Value = json!({"ids": [tools[0]], "enabled": false});
    console
        .expect(
            Method::POST,
            &format!("/workspaces/{workspace}/tools/enabled"),
            Some(body),
        )
        .await?;
    tells(other, &["notice_fanout_seconds"]).await
}
