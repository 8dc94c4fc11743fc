//! A revoked grant is refused by every node, its open streams end and its running calls are
//! stopped, within a second (AUTH-4.1, AUTH-4.3, AUTH-R9; CASE-131, CASE-135).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use portolan_tests::{
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    sse::{Event, SseStream},
};
use reqwest::StatusCode;
use serde_json::json;

use super::{Order, response};

/// Longest reach of a revocation (AUTH-R9).
pub(super) const REACH: Duration = Duration::from_secs(1);
/// Apps that are revoked, each measured six times.
const ROUNDS: usize = 20;
/// Without Redis: all are connected before it dies, and their calls must not be over by then.
const ROUNDS_WITHOUT: usize = 5;

/// An app with a grant of its own, and at each of two nodes a stream of news and a call that runs.
struct App {
    refresh: String,
    nodes: Vec<McpClient>,
    news: Vec<SseStream>,
    orders: Vec<Order>,
}

impl App {
    async fn connect(fleet: &Fleet, number: usize) -> Result<Self> {
        let tokens = fleet
            .client
            .authorize(&fleet.owner, &fleet.published.url)
            .await?;
        let mcp = McpClient::new(&fleet.published.url)?.with_token(&tokens.access)?;
        let mut nodes = Vec::new();
        let (mut news, mut orders) = (Vec::new(), Vec::new());
        for node in 0..2 {
            let (session, _) = fleet.on(node, &mcp)?.initialize(LEGACY).await?;
            news.push(session.listen().await?);
            let id = i64::try_from(2 * number + node)?;
            orders.push(Order::start(fleet, &session, id).await?);
            nodes.push(fleet.on(node, &mcp)?);
        }
        Ok(Self {
            refresh: tokens.refresh,
            nodes,
            news,
            orders,
        })
    }

    /// Revokes, and measures from the answer: until each node refuses the token, and until each
    /// stream has ended. No node waits long to send a client the outcome of its call: also returns
    /// how many clients received one.
    async fn revoke(self, fleet: &Fleet) -> Result<(Vec<Duration>, usize)> {
        let answer = fleet.client.revoke(&self.refresh).await?;
        let began = Instant::now();
        ensure!(answer.status() == StatusCode::OK, "{}", answer.status());
        let refused = self.nodes.iter().map(|client| async move {
            loop {
                let answer = client.modern("tools/list", json!({})).await?;
                if answer.status == StatusCode::UNAUTHORIZED {
                    return anyhow::Ok(began.elapsed());
                }
                ensure!(answer.status == StatusCode::OK, "{}", answer.text);
                ensure!(began.elapsed() < 10 * REACH, "still accepted");
            }
        });
        let ended = self.news.into_iter().map(|mut stream| async move {
            let rest = tokio::time::timeout(10 * REACH, stream.rest());
            rest.await.context("the stream stays open")??;
            anyhow::Ok(began.elapsed())
        });
        let stopped = self.orders.into_iter().map(|mut order| async move {
            let rest = tokio::time::timeout(10 * REACH, order.stream.rest());
            let rest = rest.await.context("the answer stays open")??;
            let elapsed = began.elapsed();
            // The API sees the cancellation in any case.
            let is_told = rest.iter().any(Event::is_response);
            if is_told {
                let error = response(&rest)?["error"].clone();
                ensure!(
                    error["code"] == -32010 && error["data"]["reason"] == "revoked",
                    "{error}"
                );
            }
            let held = &fleet.fixture.held;
            held.until(&order.key, |fate| fate.given_up == 1).await?;
            anyhow::Ok((elapsed, is_told))
        });
        let (mut all, ended, stopped) = tokio::try_join!(
            try_join_all(refused),
            try_join_all(ended),
            try_join_all(stopped)
        )?;
        all.extend(ended);
        let told = stopped.iter().filter(|(_, is_told)| *is_told).count();
        all.extend(stopped.into_iter().map(|(elapsed, _)| elapsed));
        Ok((all, told))
    }
}

/// Says how long it took, and holds the promise.
fn judge(what: &str, mut reached: Vec<Duration>) -> Result<String> {
    reached.sort();
    let at = |share: usize| reached[(reached.len() * share / 100).min(reached.len() - 1)];
    ensure!(at(99) < REACH, "p99 {:?}", at(99));
    Ok(format!(
        "revocation, {what}: {} measured at two nodes, p50 {:?}, p99 {:?}, longest {:?}",
        reached.len(),
        at(50),
        at(99),
        at(100)
    ))
}

#[tokio::test]
async fn cases_131_and_135_a_revoked_grant_is_refused_and_all_that_is_open_ends_within_a_second()
-> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let (mut reached, mut told) = (Vec::new(), 0);
    for number in 0..ROUNDS {
        let app = App::connect(&fleet, number).await?;
        let (times, heard) = app.revoke(&fleet).await?;
        reached.extend(times);
        told += heard;
    }
    ensure!(told * 10 >= 2 * ROUNDS * 9, "{told} clients were told");
    println!("{}", judge("with Redis", reached)?);

    // CASE-135: the nodes receive it without Redis too.
    let mut apps = Vec::new();
    for number in ROUNDS..ROUNDS + ROUNDS_WITHOUT {
        apps.push(App::connect(&fleet, number).await?);
    }
    fleet.cluster.redis.stop()?;
    let mut reached = Vec::new();
    for app in apps {
        reached.extend(app.revoke(&fleet).await?.0);
    }
    println!("{}", judge("with Redis killed", reached)?);
    Ok(())
}
