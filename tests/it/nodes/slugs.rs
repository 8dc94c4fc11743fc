//! Names of workspaces in URLs: the answers for a former name, the name of a deleted workspace, and
//! an unknown name (AUTH-M2, AUTH-M3, AUTH-M6, AUTH-E3; CASE-103, CASE-108).

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    fleet::{Fleet, sign_up},
    mcp::{Answer, McpClient},
    oauth::{OAuthClient, tokens},
    person::Person,
    process::eventually,
};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::revocation::REACH;

/// A workspace that is there, and one that never was. Equally long, so that lengths can be compared too.
const KNOWN: &str = "harbour";
const UNKNOWN: &str = "nowhere";
/// Where an MCP server may be.
const PATHS: &[&str] = &["/t/SLUG/fixture/mcp", "/t/SLUG/other/mcp/", "/t/SLUG/mcp"];

/// Status, headers and body.
type Seen = (StatusCode, BTreeMap<String, String>, String);

/// An answer as a stranger sees it, without what is different each time, and with a word in place of the name.
fn seen(answer: &Answer, slug: &str) -> Seen {
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).replace(slug, "SLUG");
            (name.to_string(), value)
        })
        .collect();
    (answer.status, headers, answer.text.replace(slug, "SLUG"))
}

/// All requests about a name that need no good token.
async fn asked(fleet: &Fleet, slug: &str) -> Result<Vec<Seen>> {
    let origin = fleet.cluster.url().origin().ascii_serialization();
    let mut answers = Vec::new();
    for path in PATHS {
        let path = path.replace("SLUG", slug);
        let metadata = format!("{origin}/.well-known/oauth-protected-resource{path}");
        let metadata = fleet.on(0, &McpClient::new(&metadata)?)?;
        answers.push(metadata.send(Method::GET).await?);
        let stranger = fleet.on(0, &McpClient::new(&format!("{origin}{path}"))?)?;
        let liar = stranger.clone().with_token("eyJhbGciOiJub25lIn0.e30.")?;
        for client in [&stranger, &liar] {
            answers.push(client.modern("tools/list", json!({})).await?);
            answers.push(client.send(Method::GET).await?);
            answers.push(client.send(Method::DELETE).await?);
        }
    }
    Ok(answers.iter().map(|answer| seen(answer, slug)).collect())
}

#[tokio::test]
async fn case_108_nothing_tells_a_workspace_that_is_there_from_one_that_never_was() -> Result<()> {
    let mut fleet = Fleet::of(1).await?;
    let reloads = "registry_reload_seconds_count";
    let before = fleet.cluster.nodes[0].metric(reloads).await?;
    let known = asked(&fleet, KNOWN).await?;
    let unknown = asked(&fleet, UNKNOWN).await?;
    ensure!(known == unknown, "{known:?}\n{unknown:?}");
    let after = fleet.cluster.nodes[0].metric(reloads).await?;
    ensure!(
        (after - before).abs() < 0.5,
        "nobody looked whether they are there: {before} {after}"
    );

    // A client with a good token of another workspace: the same query for both, and the same
    // answer.
    let bob = sign_up(&fleet.cluster, "bob").await?;
    let theirs = bob
        .console()
        .publish_fixture("lagoons", &fleet.fixture)
        .await?;
    let client = OAuthClient::register(fleet.cluster.url(), "Of Bob").await?;
    let access = client.authorize(&bob, &theirs.url).await?.access;
    let bobs = fleet.on(0, &McpClient::new(&theirs.url)?.with_token(&access)?)?;
    ensure!(bobs.modern("tools/list", json!({})).await?.status == StatusCode::OK);
    let mut answers = Vec::new();
    for slug in [KNOWN, UNKNOWN] {
        let before = fleet.cluster.nodes[0].metric(reloads).await?;
        let there = bobs.clone().at(&bobs.url.replace("lagoons", slug));
        let answer = there.modern("tools/list", json!({})).await?;
        ensure!(!answer.status.is_success(), "{}", answer.text);
        let loads = fleet.cluster.nodes[0].metric(reloads).await? - before;
        answers.push((seen(&answer, slug), format!("{loads} loads")));
    }
    ensure!(answers[0] == answers[1], "{answers:?}");

    // Without a database the answer is the same: no query takes longer for one of them.
    fleet.cluster.postgres.stop()?;
    ensure!(asked(&fleet, KNOWN).await? == known);
    ensure!(asked(&fleet, UNKNOWN).await? == known);
    Ok(())
}

/// The answer of each node.
pub(super) async fn answers(fleet: &Fleet, client: &McpClient) -> Result<Vec<StatusCode>> {
    let mut all = Vec::new();
    for node in 0..fleet.cluster.nodes.len() {
        let client = fleet.on(node, client)?;
        all.push(client.modern("tools/list", json!({})).await?.status);
    }
    Ok(all)
}

/// These names cannot be taken.
async fn are_taken(person: &Person, slugs: &[&str]) -> Result<()> {
    for slug in slugs {
        let body = json!({"name": "Mine now", "slug": slug});
        let (status, answer) = person
            .console()
            .send(Method::POST, "/workspaces", Some(body))
            .await?;
        ensure!(
            status == StatusCode::CONFLICT && answer["error"]["code"] == "slug_taken",
            "AUTH-M3, {slug}: {status} {answer}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn case_103_a_former_name_stays_with_its_workspace_and_that_of_a_deleted_one_is_nobodys()
-> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let bob = sign_up(&fleet.cluster, "bob").await?;
    let good = [StatusCode::OK; 2];
    ensure!(answers(&fleet, &fleet.mcp).await? == good);

    // No page changes a slug: this is what an operator would write.
    let mut sql = fleet.cluster.postgres.sql().await?;
    let tenant = sql
        .ask("select tenant_id from tenant_slugs where slug = 'harbour'")
        .await?[0][0]
        .clone();
    sql.ask(&format!(
        "update tenant_slugs set state = 'alias' where slug = 'harbour';
         insert into tenant_slugs (slug, tenant_id, state, since) values ('seaport', '{tenant}', 'primary', now());
         update tenants set registry_revision = registry_revision + 1 where id = '{tenant}'"
    ))
    .await?;
    let renamed = |client: &McpClient| {
        let url = client.url.replace("/t/harbour/", "/t/seaport/");
        client.clone().at(&url)
    };
    ensure!(renamed(&fleet.mcp).url != fleet.mcp.url);
    ensure!(answers(&fleet, &fleet.mcp).await? == good, "the old URL");
    ensure!(
        answers(&fleet, &renamed(&fleet.mcp)).await? == good,
        "the new URL, with a token for the old one"
    );
    let renewed = tokens(fleet.client.refresh(&fleet.tokens.refresh).await?).await?;
    let fresh = fleet
        .client
        .authorize(&fleet.owner, &fleet.published.url)
        .await?;
    for access in [&renewed.access, &fresh.access] {
        let mcp = fleet.mcp.clone().with_token(access)?;
        ensure!(answers(&fleet, &mcp).await? == good);
        ensure!(answers(&fleet, &renamed(&mcp)).await? == good);
    }
    are_taken(&bob, &["harbour", "seaport"]).await?;

    // Deleted: it can be restored, and its names wait for that.
    fleet
        .owner
        .console()
        .expect(
            Method::DELETE,
            "/workspaces/seaport",
            Some(json!({"slug": "seaport"})),
        )
        .await?;
    let mcp = fleet.mcp.clone().with_token(&fresh.access)?;
    let is_refused = async || {
        answers(&fleet, &mcp)
            .await
            .is_ok_and(|all| all.iter().all(|status| *status == StatusCode::UNAUTHORIZED))
    };
    eventually("its tokens are refused", 10 * REACH, is_refused).await?;
    are_taken(&bob, &["harbour", "seaport"]).await?;

    // Destroyed, a month later: the names are gone for good.
    sql.ask(&format!(
        "update tenants set delete_after = now() - interval '1 minute' where id = '{tenant}'"
    ))
    .await?;
    fleet.cluster.auth.kill()?;
    fleet.cluster.auth.start()?;
    fleet.cluster.auth.ready().await?;
    let mut left = Vec::new();
    let state = format!(
        "select t.status, s.slug, s.state from tenants t join tenant_slugs s on s.tenant_id = t.id where t.id = '{tenant}' order by s.slug"
    );
    let is_destroyed = async || {
        left = sql.ask(&state).await.unwrap_or_default();
        left.iter().any(|row| row[0] == "deleted")
    };
    eventually("it is destroyed", Duration::from_secs(60), is_destroyed)
        .await
        .with_context(|| fleet.cluster.auth.output())?;
    ensure!(
        left.iter().all(|row| row[2] == "tombstone") && left.len() == 2,
        "{left:?}"
    );
    eventually("the console is back", Duration::from_secs(30), async || {
        bob.console().get("/me").await.is_ok()
    })
    .await?;
    are_taken(&bob, &["harbour", "seaport"]).await?;
    for client in [&mcp, &renamed(&mcp)] {
        let all = answers(&fleet, client).await?;
        ensure!(all.iter().all(StatusCode::is_client_error), "{all:?}");
    }
    let refused = fleet.client.refresh(&fresh.refresh).await?;
    ensure!(refused.status() == StatusCode::BAD_REQUEST);
    Ok(())
}
