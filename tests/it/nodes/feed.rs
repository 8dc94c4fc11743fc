//! Revocations at nodes when Redis forgets everything, when a person's role changes, and when nodes
//! start in the middle of a storm (AUTH-4.2, AUTH-4.3; CASE-134, CASE-137, CASE-138).

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::text,
    fleet::{Fleet, sign_up},
    mcp::{Answer, LEGACY, McpClient},
    oauth::{OAuthClient, tokens},
    person::Person,
    process::eventually,
    sse::Event,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{echo, revocation::REACH};

/// Longest that the nodes may take to use a Redis that is empty.
const NOTICES: Duration = Duration::from_secs(20);
/// Revocations in a storm, and how many are written at once.
const STORM: usize = 10_000;
const GUST: usize = 100;

/// Ends a grant, as its app does. Returns when that is committed (R4).
async fn revoke(client: &OAuthClient, refresh: &str) -> Result<()> {
    let answer = client.revoke(refresh).await?;
    ensure!(answer.status() == StatusCode::OK, "{}", answer.status());
    Ok(())
}

async fn tools(client: &McpClient) -> Result<Answer> {
    client.modern("tools/list", json!({})).await
}

async fn status(fleet: &Fleet, node: usize, client: &McpClient) -> Result<StatusCode> {
    Ok(tools(&fleet.on(node, client)?).await?.status)
}

/// An app with a grant of its own: its refresh token, and what speaks with its access token.
async fn app(fleet: &Fleet) -> Result<(String, McpClient)> {
    let (client, url) = (&fleet.client, &fleet.published.url);
    let tokens = client.authorize(&fleet.owner, url).await?;
    Ok((
        tokens.refresh,
        fleet.mcp.clone().with_token(&tokens.access)?,
    ))
}

/// Waits until every node refuses it, and returns the time.
async fn refused_everywhere(fleet: &Fleet, client: &McpClient) -> Result<Duration> {
    let began = Instant::now();
    for node in 0..fleet.cluster.nodes.len() {
        let refuses = async || {
            status(fleet, node, client)
                .await
                .is_ok_and(|status| status == StatusCode::UNAUTHORIZED)
        };
        eventually("the token is refused", 10 * REACH, refuses).await?;
    }
    Ok(began.elapsed())
}

#[tokio::test]
async fn case_137_a_redis_that_forgot_everything_gives_no_revoked_token_back() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let (first_refresh, first) = app(&fleet).await?;
    let (second_refresh, second) = app(&fleet).await?;
    for node in 0..2 {
        ensure!(status(&fleet, node, &first).await? == StatusCode::OK);
    }
    revoke(&fleet.client, &first_refresh).await?;
    refused_everywhere(&fleet, &first).await?;

    // The nodes notice: they enter themselves anew in what is empty now.
    let session = fleet.session(LEGACY).await?;
    fleet.cluster.redis.empty().await?;
    let keys = async || fleet.cluster.redis.command(&["DBSIZE"]).await;
    eventually("the nodes write again", NOTICES, async || {
        keys().await.is_ok_and(|count| count != "0")
    })
    .await?;
    for node in 0..2 {
        echo(&fleet.on(node, &session)?, "made again").await?;
    }
    for node in [0, 1, 0, 1] {
        ensure!(status(&fleet, node, &first).await? == StatusCode::UNAUTHORIZED);
        ensure!(status(&fleet, node, &fleet.mcp).await? == StatusCode::OK);
        ensure!(status(&fleet, node, &second).await? == StatusCode::OK);
    }
    // It receives later revocations.
    revoke(&fleet.client, &second_refresh).await?;
    let took = refused_everywhere(&fleet, &second).await?;
    ensure!(took < REACH, "{took:?}");

    // And so does one that starts now, and finds nothing in Redis.
    fleet.cluster.redis.empty().await?;
    fleet.cluster.nodes[1].kill()?;
    fleet.cluster.nodes[1].start()?;
    fleet.cluster.nodes[1].ready().await?;
    for revoked in [&first, &second] {
        ensure!(status(&fleet, 1, revoked).await? == StatusCode::UNAUTHORIZED);
    }
    ensure!(status(&fleet, 1, &fleet.mcp).await? == StatusCode::OK);
    Ok(())
}

/// Invites, and accepts with the form of the page.
pub(super) async fn join(fleet: &Fleet, person: &Person, role: &str) -> Result<String> {
    let console = fleet.owner.console();
    let path = format!("/workspaces/{}/invitations", fleet.published.workspace);
    let invitation = console
        .post(&path, json!({"email": person.email, "role": role}))
        .await?;
    let page = format!("/invitations/{}", text(&invitation, "id")?);
    let form = person.browser.open(&page).await?.form_with("form_token")?;
    let page = person.browser.submit(form).await?;
    ensure!(page.status.is_success(), "{} {}", page.status, page.text());
    let path = format!("/workspaces/{}/members", fleet.published.workspace);
    let members = console.get(&path).await?;
    let members = members["items"].as_array().context("members")?;
    let member = members
        .iter()
        .find(|member| member["email"] == person.email.as_str())
        .context("a member")?;
    text(member, "user_id")
}

#[tokio::test]
async fn case_134_a_new_role_costs_one_401_and_the_stream_is_resumed() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let bob = sign_up(&fleet.cluster, "bob").await?;
    let bobs_id = join(&fleet, &bob, "member").await?;
    let old = fleet.client.authorize(&bob, &fleet.published.url).await?;
    let mcp = McpClient::new(&fleet.published.url)?.with_token(&old.access)?;
    let (session, _) = fleet.on(0, &mcp)?.initialize(LEGACY).await?;
    let mut news = session.listen().await?;
    let first = news.until(|event| event.id.is_some()).await?.pop();
    let place = first.and_then(|event| event.id).context("an id")?;
    for node in 0..2 {
        echo(&fleet.on(node, &session)?, "as a member").await?;
    }

    let path = format!(
        "/workspaces/{}/members/{bobs_id}",
        fleet.published.workspace
    );
    let console = fleet.owner.console();
    console
        .expect(Method::PATCH, &path, Some(json!({"role": "developer"})))
        .await?;
    let began = Instant::now();
    tokio::time::timeout(10 * REACH, news.rest())
        .await
        .context("the stream stays open")??;
    ensure!(began.elapsed() < REACH, "AUTH-R9: {:?}", began.elapsed());
    refused_everywhere(&fleet, &mcp).await?;

    // The one refusal that the client sees says what to do, and the session waits for it.
    let refused = session.resume(&place).await?.whole()?;
    ensure!(
        refused.status == StatusCode::UNAUTHORIZED
            && refused
                .header("www-authenticate")
                .contains("error=\"invalid_token\""),
        "{} {}",
        refused.status,
        refused.text
    );
    let renewed = tokens(fleet.client.refresh(&old.refresh).await?).await?;
    let session = session.with_token(&renewed.access)?;
    let mut back = fleet.on(1, &session)?.resume(&place).await?.stream()?;
    for node in [0, 1, 0, 1] {
        echo(&fleet.on(node, &session)?, "as a developer").await?;
        let fresh = fleet.mcp.clone().with_token(&renewed.access)?;
        ensure!(status(&fleet, node, &fresh).await? == StatusCode::OK);
    }

    // It is the same stream: it delivers new events.
    let tools = console
        .tool_ids(&fleet.published.workspace, &fleet.published.source_id)
        .await?;
    let body: Value = json!({"ids": [tools[0]], "enabled": false});
    let path = format!("/workspaces/{}/tools/enabled", fleet.published.workspace);
    console.expect(Method::POST, &path, Some(body)).await?;
    back.until(|event: &Event| event.message()["method"] == "notifications/tools/list_changed")
        .await?;
    ensure!(
        status(&fleet, 0, &fleet.mcp).await? == StatusCode::OK,
        "nobody else was disturbed"
    );
    Ok(())
}

#[tokio::test]
async fn case_138_a_node_that_starts_in_a_storm_of_revocations_serves_nobody_who_was_revoked()
-> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let (before_refresh, before) = app(&fleet).await?;
    let (during_refresh, during) = app(&fleet).await?;
    let (before, during, good) = (
        fleet.on(1, &before)?,
        fleet.on(1, &during)?,
        fleet.on(1, &fleet.mcp)?,
    );
    fleet.cluster.nodes[1].kill()?;
    revoke(&fleet.client, &before_refresh).await?;
    let mut sql = fleet.cluster.postgres.sql().await?;
    let gust = format!(
        "insert into revocations (kind, ref, tenant_id, epoch, expires_at, created_at)
         select 'grant', 'gr_' || replace(gen_random_uuid()::text, '-', ''), null, null, now() + interval '1 hour', now()
         from generate_series(1, {GUST})"
    );

    let is_ready = AtomicBool::new(false);
    let client = &fleet.client;
    let node = &mut fleet.cluster.nodes[1];
    let storm = async {
        let mut left = STORM / GUST;
        let mut written = 0;
        // It goes on until the node is there, and is never shorter than it should be.
        while left > 0 || !is_ready.load(Ordering::Relaxed) {
            sql.ask(&gust).await?;
            (left, written) = (left.saturating_sub(1), written + GUST);
            if written == STORM / 2 {
                revoke(client, &during_refresh).await?;
            }
        }
        anyhow::Ok(written)
    };
    let start = async {
        node.start()?;
        node.ready().await?;
        is_ready.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    // From its first moment on the node is asked for what it must not give.
    let asking = async {
        let mut refused = 0;
        while refused == 0 || !is_ready.load(Ordering::Relaxed) {
            // No process listens there yet.
            if let Ok(answer) = tools(&before).await {
                ensure!(answer.status != StatusCode::OK, "{}", answer.text);
                refused += usize::from(answer.status == StatusCode::UNAUTHORIZED);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ensure!(tools(&before).await?.status != StatusCode::OK);
        Ok(refused)
    };
    let (written, (), refused) = tokio::try_join!(storm, start, asking)?;
    println!(
        "{written} revocations; a revoked token was refused {refused} times while the node started"
    );
    let over = Instant::now();
    let is_refused = async || {
        tools(&during)
            .await
            .is_ok_and(|answer| answer.status == StatusCode::UNAUTHORIZED)
    };
    eventually("it heard of the storm", 10 * REACH, is_refused).await?;
    ensure!(over.elapsed() < REACH, "AUTH-R9: {:?}", over.elapsed());
    let counted = sql
        .ask("select count(*) from revocations where kind = 'grant'")
        .await?;
    let counted: usize = counted[0][0].parse()?;
    ensure!(counted == written + 2 && written >= STORM, "{counted}");
    ensure!(
        tools(&good).await?.status == StatusCode::OK,
        "the good one is good"
    );
    Ok(())
}
