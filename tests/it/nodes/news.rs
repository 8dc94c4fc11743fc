//! A change of the tools reaches every stream on every node (STREAM-15).

use std::time::{Duration, Instant};

use anyhow::Result;
use portolan_tests::{
    fleet::Fleet,
    mcp::{LEGACY, modern_message},
    native,
    sse::Event,
};
use reqwest::Method;
use serde_json::{Value, json};

fn is_news(event: &Event) -> bool {
    event.message()["method"] == "notifications/tools/list_changed"
}

#[tokio::test]
async fn s15_1_list_changed_reaches_sessions_and_listeners_on_every_node() -> Result<()> {
    let fleet = Fleet::of(3).await?;
    let mut streams = Vec::new();
    for node in 0..3 {
        let session = fleet.session(LEGACY).await?;
        streams.push(fleet.on(node, &session)?.listen().await?);
        let params = json!({"notifications": {"toolsListChanged": true}});
        let client = fleet
            .on(node, &fleet.mcp)?
            .modern_client("subscriptions/listen", &params)?;
        let mut listening = client
            .start(&modern_message("subscriptions/listen", params))
            .await?
            .stream()?;
        // The first event acknowledges the subscriptions.
        listening.message().await?;
        streams.push(listening);
    }
    // One that was away: its session exists, its stream does not.
    let away = fleet.session(LEGACY).await?;
    let mut earlier = fleet.on(0, &away)?.listen().await?;
    let id = earlier
        .until(|event| event.id.is_some())
        .await?
        .pop()
        .and_then(|event| event.id)
        .unwrap_or_default();
    drop(earlier);

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
    let changed = Instant::now();
    for stream in &mut streams {
        stream.until(is_news).await?;
    }
    assert!(
        changed.elapsed() < Duration::from_secs(7),
        "{:?}",
        changed.elapsed()
    );
    let mut back = fleet.on(2, &away)?.resume(&id).await?.stream()?;
    back.until(is_news).await?;
    Ok(())
}

#[tokio::test]
async fn s15_3_an_update_of_a_resource_reaches_who_subscribed_through_another_node() -> Result<()> {
    let fleet = Fleet::of(3).await?;
    let (console, published) = (fleet.owner.console(), &fleet.published);
    let written = native::offer(&console, published).await?;
    let uri = "test://watched-resource";
    let session = fleet.session(LEGACY).await?;
    let mut stream = fleet.on(1, &session)?.listen().await?;
    // The node that serves the session may not know the resource yet.
    let begun = Instant::now();
    loop {
        let subscribed = fleet
            .on(0, &session)?
            .request("resources/subscribe", json!({"uri": uri}))
            .await?;
        if subscribed.json["result"].is_object() {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{}",
            subscribed.json
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let params = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut listening = fleet
        .on(2, &fleet.mcp)?
        .modern_client("subscriptions/listen", &params)?
        .start(&modern_message("subscriptions/listen", params))
        .await?
        .stream()?;
    let acknowledged = listening.message().await?;
    assert_eq!(
        acknowledged["params"]["notifications"]["resourceSubscriptions"],
        json!([uri]),
        "MCP-SB-6"
    );
    let mut definition = native::resources(&published.source_id).swap_remove(3);
    definition["holds"]["text"] = json!("Another text.");
    let path = format!(
        "/workspaces/{}/resources/{}",
        published.workspace, written.resources[3]
    );
    console.expect(Method::PUT, &path, Some(definition)).await?;
    let is_update = |event: &Event| {
        let message = event.message();
        message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
    };
    stream.until(is_update).await?;
    listening.until(is_update).await?;
    Ok(())
}
