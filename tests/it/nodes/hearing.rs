//! Nodes that receive no revocations: when they go on to judge tokens, and when they do not
//! (AUTH-4.3.6, STREAM-17.4, ADR 25; CASE-136).

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, ensure};
use portolan_tests::{
    cluster::Cluster,
    fleet::Fleet,
    link::Weather,
    mcp::{Answer, McpClient},
    process::eventually,
};
use reqwest::StatusCode;
use serde_json::json;

use super::revocation::REACH;

/// The least that can be set, in seconds.
const SILENCE: u32 = 15;
/// Within what a node has noticed everything, on a machine that does other things too.
const NOTICES: Duration = Duration::from_secs(60);
const CUT_OFF: &str = "tokens are answered 503";
const BACK: &str = "tokens are judged again";

/// One client at one node, and how it was answered so far.
struct Asking {
    client: McpClient,
    seen: BTreeSet<StatusCode>,
    last: Option<Answer>,
}

impl Asking {
    fn of(fleet: &Fleet, node: usize, client: &McpClient) -> Result<Self> {
        Ok(Self {
            client: fleet.on(node, client)?,
            seen: BTreeSet::new(),
            last: None,
        })
    }

    /// Asks. No answer at all counts as 511.
    async fn status(&mut self) -> StatusCode {
        self.last = self.client.modern("tools/list", json!({})).await.ok();
        let none = StatusCode::NETWORK_AUTHENTICATION_REQUIRED;
        let status = self.last.as_ref().map_or(none, |answer| answer.status);
        self.seen.insert(status);
        status
    }

    /// Asks until it is answered so. Answers what else was seen on the way.
    async fn until(&mut self, wanted: StatusCode, limit: Duration) -> Result<BTreeSet<StatusCode>> {
        self.seen.clear();
        let what = format!("answered {wanted}");
        eventually(&what, limit, async || self.status().await == wanted).await?;
        let mut seen = std::mem::take(&mut self.seen);
        seen.remove(&wanted);
        Ok(seen)
    }

    /// The last answer is a 503 with `Retry-After`, and asks for no sign-in.
    fn was_put_off(&self) -> Result<()> {
        let answer = self.last.as_ref();
        ensure!(
            answer.is_some_and(|answer| answer.status == StatusCode::SERVICE_UNAVAILABLE
                && answer.header("retry-after").parse::<u64>().is_ok()
                && answer.header("www-authenticate").is_empty()
                && answer.json["error"]["code"].is_i64()),
            "{answer:?}"
        );
        Ok(())
    }
}

fn only(allowed: &[StatusCode], seen: &BTreeSet<StatusCode>) -> Result<()> {
    ensure!(
        seen.iter().all(|status| allowed.contains(status)),
        "{seen:?}"
    );
    Ok(())
}

/// Asks until the node has been silent for so long.
async fn until_silent_for(
    fleet: &Fleet,
    node: usize,
    asking: &mut Asking,
    seconds: u32,
) -> Result<()> {
    let node = &fleet.cluster.nodes[node];
    let what = format!("{} has heard nothing for {seconds} s", node.name);
    eventually(&what, NOTICES, async || {
        asking.status().await;
        let silent = node.metric("revocations_stale_seconds").await;
        silent.is_ok_and(|silent| silent > f64::from(seconds))
    })
    .await
}

fn said(fleet: &Fleet, node: usize, sentence: &str) -> usize {
    let output = fleet.cluster.nodes[node].output();
    output.matches(sentence).count()
}

const OK: StatusCode = StatusCode::OK;
const AWAY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const REFUSED: StatusCode = StatusCode::UNAUTHORIZED;

#[tokio::test]
async fn case_136_without_redis_and_postgres_tokens_are_put_off_and_never_refused() -> Result<()> {
    let builder = Cluster::builder().nodes(2);
    let builder = builder.setting("revocation_max_staleness_secs", SILENCE);
    let mut fleet = Fleet::with(builder).await?;
    let mut asking = Vec::new();
    for node in 0..2 {
        let mut at = Asking::of(&fleet, node, &fleet.mcp)?;
        ensure!(at.status().await == OK);
        asking.push(at);
    }

    // Postgres alone is away, for all: nothing can be revoked, and callers notice nothing
    // (STREAM-17.4).
    fleet.cluster.postgres.stop()?;
    for (node, at) in asking.iter_mut().enumerate() {
        until_silent_for(&fleet, node, at, SILENCE + 10).await?;
        only(&[OK], &at.seen)?;
        ensure!(said(&fleet, node, CUT_OFF) == 0);
    }

    // Redis too: each may be the one that is cut off.
    fleet.cluster.redis.stop()?;
    for (node, at) in asking.iter_mut().enumerate() {
        only(&[OK], &at.until(AWAY, NOTICES).await?)?;
        at.was_put_off()?;
        // For any token: a judgement could tell its client something that may not hold.
        let garbage = fleet.mcp.clone().with_token("e30.e30.c2ln")?;
        let mut garbage = Asking::of(&fleet, node, &garbage)?;
        ensure!(garbage.status().await == AWAY);
        garbage.was_put_off()?;
        // A client without a token learns, as ever, where to get one.
        let nobody = fleet.mcp.clone().with("authorization", "")?;
        let mut nobody = Asking::of(&fleet, node, &nobody)?;
        ensure!(nobody.status().await == REFUSED);
        let node = &fleet.cluster.nodes[node];
        ensure!(node.metric("mcp_tokens_unjudged_total").await? > 1.5);
    }

    // Redis is back, and its records show each node that no other one receives revocations.
    fleet.cluster.redis.start_again().await?;
    for at in &mut asking {
        only(&[AWAY], &at.until(OK, NOTICES).await?)?;
    }
    fleet.cluster.redis.stop()?;
    for at in &mut asking {
        only(&[OK], &at.until(AWAY, NOTICES).await?)?;
        at.was_put_off()?;
    }

    // Both are.
    fleet.cluster.postgres.start_again().await?;
    fleet.cluster.redis.start_again().await?;
    for (node, at) in asking.iter_mut().enumerate() {
        only(&[AWAY], &at.until(OK, NOTICES).await?)?;
        let told = (said(&fleet, node, CUT_OFF), said(&fleet, node, BACK));
        ensure!(told == (2, 2), "once for each change: {told:?}");
    }
    Ok(())
}

/// The reason for it: a node without revocations does not accept tokens that others revoke, nor
/// does it later, when its connections are back.
#[tokio::test]
async fn case_136_a_node_that_is_cut_off_alone_lets_nobody_in_who_was_revoked_meanwhile()
-> Result<()> {
    let builder = Cluster::builder().nodes(2).linked();
    let builder = builder.setting("revocation_max_staleness_secs", SILENCE);
    let fleet = Fleet::with(builder).await?;
    let tokens = fleet
        .client
        .authorize(&fleet.owner, &fleet.published.url)
        .await?;
    let revoked = fleet.mcp.clone().with_token(&tokens.access)?;
    let mut there = Asking::of(&fleet, 0, &revoked)?;
    let mut here = Asking::of(&fleet, 1, &revoked)?;
    let mut good = Asking::of(&fleet, 1, &fleet.mcp)?;
    for at in [&mut there, &mut here, &mut good] {
        ensure!(at.status().await == OK);
    }

    // It loses Postgres, and the others do not: they say so in Redis, which it still has.
    let [_, node] = &fleet.cluster.nodes[..] else {
        anyhow::bail!("two nodes");
    };
    fleet.cluster.postgres.close_way(&node.name).await?;
    eventually("the grant is revoked", NOTICES, async || {
        let answer = fleet.client.revoke(&tokens.refresh).await;
        answer.is_ok_and(|answer| answer.status() == OK)
    })
    .await?;
    only(&[OK], &there.until(REFUSED, 10 * REACH).await?)?;
    only(&[OK], &here.until(AWAY, NOTICES).await?)?;
    here.was_put_off()?;
    ensure!(good.status().await == AWAY, "it cannot know which are good");

    // Redis goes, and comes back before Postgres.
    let link = &fleet.cluster.links[1];
    link.set(Weather::Cut);
    let breaker = async |state: f64| {
        eventually("the node notices", NOTICES, async || {
            let seen = node.metric("redis_breaker_state").await;
            seen.is_ok_and(|seen| (seen - state).abs() < 0.1)
        })
        .await
    };
    breaker(1.0).await?;
    here.seen.clear();
    link.set(Weather::Clear);
    breaker(0.0).await?;
    until_silent_for(&fleet, 1, &mut here, 3 * SILENCE).await?;
    only(&[AWAY], &here.seen)?;

    fleet.cluster.postgres.open_way(&node.name)?;
    only(&[AWAY], &here.until(REFUSED, NOTICES).await?)?;
    good.until(OK, NOTICES).await?;
    ensure!(here.status().await == REFUSED);
    ensure!(there.status().await == REFUSED);
    let told = (said(&fleet, 1, CUT_OFF), said(&fleet, 1, BACK));
    ensure!(told == (1, 1), "once for each change: {told:?}");
    ensure!(said(&fleet, 0, CUT_OFF) == 0);
    Ok(())
}
