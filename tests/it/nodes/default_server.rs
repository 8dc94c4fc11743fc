//! The URLs that name no server, or no workspace either, on every node: what they lead to, and whose tokens open what (AUTH-5.1, AUTH-5.4;
//! CASE-97, CASE-102).

use std::time::Duration;

use anyhow::{Result, ensure};
use portolan_tests::{
    fleet::{Fleet, sign_up},
    mcp::McpClient,
    oauth::tokens,
    process::eventually,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::slugs::answers;

const ALL: [StatusCode; 2] = [StatusCode::OK; 2];
const NONE: [StatusCode; 2] = [StatusCode::UNAUTHORIZED; 2];
/// A change of the registry reaches every node by then.
const NEWS: Duration = Duration::from_secs(10);

/// The default server of workspace `harbour`, as its owner chooses it.
async fn choose(fleet: &Fleet, id: Option<&str>) -> Result<Value> {
    let path = "/workspaces/harbour/default-server";
    let console = fleet.owner.console();
    let body = json!({"server_id": id});
    console.expect(Method::PUT, path, Some(body)).await
}

#[tokio::test]
async fn case_97_the_workspaces_own_url_leads_to_its_default_server_and_tokens_of_servers_stay_out()
-> Result<()> {
    let fleet = Fleet::of(2).await?;
    let origin = fleet.cluster.url().origin().ascii_serialization();
    let (workspace, platform) = (format!("{origin}/t/harbour/mcp"), format!("{origin}/mcp"));
    let server = fleet.published.url.clone();
    let stranger = McpClient::new(&workspace)?;

    // The status for each token, at the workspace, at the platform and at the server.
    let open = async |access: &str| -> Result<Vec<Vec<StatusCode>>> {
        let mut all = Vec::new();
        for url in [&workspace, &platform, &server] {
            let client = stranger.clone().with_token(access)?.at(url);
            all.push(answers(&fleet, &client).await?);
        }
        Ok(all)
    };
    let of_server = open(&fleet.tokens.access).await?;
    ensure!(
        of_server == [NONE, NONE, ALL],
        "97, though it is the default one: {of_server:?}"
    );
    // CASE-102: a client that names no resource gets the choice of the picker.
    for resource in [Some(workspace.as_str()), Some(platform.as_str()), None] {
        let (code, pkce) = fleet.client.code(&fleet.owner, resource).await?;
        let given = tokens(fleet.client.redeem(&code, &pkce.verifier).await?).await?;
        let opened = open(&given.access).await?;
        ensure!(opened == [ALL, ALL, ALL], "{resource:?}: {opened:?}");
    }

    // At the URL without a workspace each person reaches their own.
    let bob = sign_up(&fleet.cluster, "bob").await?;
    let lagoon = bob
        .console()
        .publish_fixture("lagoon", &fleet.fixture)
        .await?;
    let bobs = fleet.client.authorize(&bob, &platform).await?;
    let bobs = stranger.clone().with_token(&bobs.access)?;
    for url in [&platform, &lagoon.url] {
        let seen = answers(&fleet, &bobs.clone().at(url)).await?;
        ensure!(seen == ALL, "{url}: {seen:?}");
    }
    let foreign = answers(&fleet, &bobs.at(&workspace)).await?;
    ensure!(foreign == [StatusCode::NOT_FOUND; 2], "{foreign:?}");
    Ok(())
}

#[tokio::test]
async fn section_5_1_nodes_hear_which_server_is_the_default_one() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let origin = fleet.cluster.url().origin().ascii_serialization();
    let workspace = format!("{origin}/t/harbour/mcp");
    let given = fleet.client.authorize(&fleet.owner, &workspace).await?;
    let client = fleet.mcp.clone().with_token(&given.access)?.at(&workspace);
    let become_all = async |what: &str, status: StatusCode| {
        eventually(what, NEWS, async || {
            let seen = answers(&fleet, &client).await;
            seen.is_ok_and(|seen| seen == [status; 2])
        })
        .await
    };
    become_all("the first one is the default", StatusCode::OK).await?;
    choose(&fleet, None).await?;
    become_all("none is", StatusCode::NOT_FOUND).await?;
    choose(&fleet, Some(&fleet.published.server_id)).await?;
    become_all("it is again", StatusCode::OK).await?;

    // Node rule (c): a token for the workspace is one for its default server alone, if the
    // workspace chose that.
    let of_server = client.clone().at(&fleet.published.url);
    ensure!(answers(&fleet, &of_server).await? == ALL);
    let change = json!({"workspace_tokens": false});
    fleet
        .owner
        .console()
        .expect(Method::PATCH, "/workspaces/harbour", Some(change))
        .await?;
    eventually("it names the server or nothing", NEWS, async || {
        let seen = answers(&fleet, &of_server).await;
        seen.is_ok_and(|seen| seen == NONE)
    })
    .await?;
    ensure!(answers(&fleet, &client).await? == ALL);
    ensure!(answers(&fleet, &fleet.mcp).await? == ALL);
    Ok(())
}
