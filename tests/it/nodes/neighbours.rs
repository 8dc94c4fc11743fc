//! Two tenants whose tools, ids and tokens of progress have the same names, at work at the same time (TEST-S4).

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    fleet::{Fleet, call, sign_up},
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    scale::sized,
};
use serde_json::json;
use tokio::task::JoinSet;

/// Calls of each worker: 100,000 of all eight in `make full`.
fn calls() -> usize {
    sized(400, 12_500)
}
/// Workers of each tenant, one half of them without a session.
const WORKERS: usize = 4;

/// Calls one after the other, and finds its own words in every answer, and no other client's.
async fn work(client: McpClient, own: &'static str, other: &'static str) -> Result<()> {
    for number in 0..calls() {
        let text = format!("{own}-{number}");
        let arguments = json!({"message": text});
        let answer = if client.header("mcp-session-id").is_some() {
            let message = call(number, "echo_message", arguments, None);
            client.message(&message).await?
        } else {
            let params = json!({"name": "echo_message", "arguments": arguments});
            client.modern("tools/call", params).await?
        };
        let said = &answer.json["result"]["structuredContent"]["message"];
        ensure!(
            *said == text && !answer.text.contains(other),
            "{own}: {} {}",
            answer.status,
            answer.text
        );
    }
    // One that is streamed, under the same id, the same token of progress, and at the same moment.
    if client.header("mcp-session-id").is_some() {
        let work = json!({"call": format!("{own}-streamed"), "millis": 1_500});
        let answer = client
            .message(&call(1, "do_work", work, Some("the same")))
            .await?;
        let done = &answer.text;
        ensure!(
            done.contains(&format!("{own}-streamed")) && !done.contains(other),
            "{own}: {done}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_two_tenants_with_equal_names_and_ids_never_see_each_others_words() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let bob = sign_up(&fleet.cluster, "bob").await?;
    // The same server of the same API, with the same tools, in another workspace.
    let theirs = bob
        .console()
        .publish_fixture("lagoon", &fleet.fixture)
        .await?;
    let tokens = OAuthClient::register(fleet.cluster.url(), "Harness")
        .await?
        .authorize(&bob, &theirs.url)
        .await?;
    let bobs = McpClient::new(&theirs.url)?.with_token(&tokens.access)?;
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        for (mcp, own, other) in [
            (&fleet.mcp, "of-the-harbour", "of-the-lagoon"),
            (&bobs, "of-the-lagoon", "of-the-harbour"),
        ] {
            let here = fleet.on(number % 2, mcp)?;
            let client = if number < WORKERS / 2 {
                here.initialize(LEGACY).await?.0
            } else {
                here
            };
            workers.spawn(work(client, own, other));
        }
    }
    while let Some(worker) = workers.join_next().await {
        worker.context("a worker")??;
    }
    // A token of one opens nothing of the other.
    let crossed = bobs.clone().at(&fleet.published.url);
    let answer = crossed.modern("tools/list", json!({})).await?;
    ensure!(answer.status.is_client_error(), "{}", answer.text);
    Ok(())
}
