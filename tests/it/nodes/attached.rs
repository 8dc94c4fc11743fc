//! An attached server on several nodes (ADR 39): each node has a connection of its own.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    attached::{self, Attach},
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    process::eventually,
};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn say(client: &McpClient, tool: &str, arguments: Value) -> Result<String> {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = client.request("tools/call", params).await?;
    let text = answer.json["result"]["content"][0]["text"].as_str();
    ensure!(answer.json["result"]["isError"] != true, "{}", answer.text);
    Ok(text.with_context(|| answer.text.clone())?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_calls_an_attached_server_and_a_killed_node_costs_its_own_calls_only()
-> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let folder = TempDir::new()?;
    let count = folder.path().join("count").display().to_string();
    let added = attached::add(&fleet.owner.console(), "harbour", "office").await?;
    let attach = Attach::command(
        &added,
        &added.address,
        &attached::stand_in(),
        &[("COUNT", &count)],
    )?;
    added
        .attached(&fleet.owner.console(), 1)
        .await
        .with_context(|| attach.log())?;
    // Two nodes with endpoints, and the one with the console.
    eventually(
        "each node is connected",
        Duration::from_secs(15),
        async || {
            let state = added.state(&fleet.owner.console()).await;
            state.is_ok_and(|state| state["programs"][0]["connections"] == 3)
        },
    )
    .await
    .with_context(|| attach.log())?;
    let console = fleet.owner.console();
    let tools = console.tool_ids("harbour", &added.source_id).await?;
    let published = console
        .publish("harbour", "office", &added.source_id, tools)
        .await?;
    let client = OAuthClient::register(fleet.cluster.url(), "Harness").await?;
    let tokens = client.authorize(&fleet.owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;

    // A session of a client, and its process, belong to no node.
    let (session, _) = mcp.initialize(LEGACY).await?;
    let first = fleet.on(0, &session)?;
    let second = fleet.on(1, &session)?;
    let pid = say(&first, "pid", json!({})).await?;
    for client in [&second, &first, &second] {
        assert_eq!(say(client, "pid", json!({})).await?, pid);
    }

    // The network between the program and all nodes is cut during a call.
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    let running = tokio::spawn({
        let first = first.clone();
        async move { say(&first, "slow", json!({"key": "cut", "ms": 3000})).await }
    });
    let executed = || fs::read_to_string(&count).unwrap_or_default();
    eventually("the call runs", Duration::from_secs(10), async || {
        executed().contains("slow cut")
    })
    .await?;
    let balancer = fleet.cluster.proxy.balancer();
    fleet.cluster.proxy.stop()?;
    eventually("the program notices", Duration::from_secs(10), async || {
        attach.log().contains("no connection to")
    })
    .await?;
    // The other balancer passes `Upgrade` on, too.
    fleet.cluster.proxy.start_again(balancer.other()).await?;
    let said = running.await??;
    assert_eq!(said, "slow cut done", "{}", attach.log());

    // A node dies while it runs a call.
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    let running = tokio::spawn({
        let first = first.clone();
        async move { say(&first, "slow", json!({"key": "lost", "ms": 3000})).await }
    });
    eventually("the call runs", Duration::from_secs(10), async || {
        executed().contains("slow lost")
    })
    .await?;
    fleet.cluster.nodes[0].kill()?;
    assert!(running.await?.is_err(), "its connection broke");
    assert_eq!(
        say(&second, "pid", json!({})).await?,
        pid,
        "the other node goes on"
    );

    // A node that comes back gets a connection soon.
    fleet.cluster.nodes[0].start()?;
    fleet.cluster.nodes[0].ready().await?;
    let again = fleet.on(0, &session)?;
    eventually(
        "the new node calls it",
        Duration::from_secs(30),
        async || {
            say(&again, "pid", json!({}))
                .await
                .is_ok_and(|said| said == pid)
        },
    )
    .await
    .with_context(|| attach.log())?;
    for call in ["slow cut", "slow lost"] {
        let executed = executed();
        assert_eq!(executed.matches(call).count(), 1, "once: {executed}");
    }
    Ok(())
}
