//! Tries at signing in, and messages, are counted over all nodes (AUTH-L6; known gap of the review:
//! one budget a process).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    cluster::{Cluster, Node},
    fixture::FixtureApi,
    process::eventually,
};
use regex::Regex;
use reqwest::{StatusCode, header, redirect::Policy};

/// Tries of one account, and how long it takes until there is one more.
const TRIES: usize = 10;
const ONE_MORE: Duration = Duration::from_secs(60);
/// Messages to one address, likewise.
const MESSAGES: usize = 5;

/// A browser that was never here before, from an address of its own.
struct Stranger<'a> {
    cluster: &'a Cluster,
    number: u16,
}

impl Stranger<'_> {
    /// Opens a page on one node and sends its form; whether it was let in.
    async fn sends(&mut self, node: &Node, path: &str, fields: &[(&str, &str)]) -> Result<bool> {
        self.number += 1;
        let [high, low] = self.number.to_be_bytes();
        let from = format!("203.0.{high}.{low}");
        let public = self.cluster.url();
        let host = format!(
            "{}:{}",
            public.host_str().unwrap_or_default(),
            public.port().unwrap_or_default()
        );
        let url = format!("http://{}{path}", node.address());
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .build()?;
        let page = http
            .get(&url)
            .header(header::HOST, &host)
            .header("x-forwarded-for", &from)
            .send()
            .await?;
        let cookies: Vec<_> = page
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|cookie| Some(cookie.to_str().ok()?.split(';').next()?.to_owned()))
            .collect();
        let text = page.text().await?;
        let token = Regex::new("name=\"form_token\" value=\"([^\"]+)\"")?
            .captures(&text)
            .context("a form")?[1]
            .to_owned();
        let mut form = vec![("form_token", token.as_str())];
        form.extend_from_slice(fields);
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let answer = http
            .post(&url)
            .header(header::HOST, &host)
            .header("x-forwarded-for", &from)
            .header(header::COOKIE, cookies.join("; "))
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await?;
        let status = answer.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            ensure!(answer.headers().contains_key(header::RETRY_AFTER));
            return Ok(false);
        }
        ensure!(
            matches!(status, StatusCode::OK | StatusCode::UNPROCESSABLE_ENTITY),
            "{path}: {status} {}",
            answer.text().await?
        );
        Ok(true)
    }

    /// How many of so many wrong passwords are compared, on each node in turn.
    async fn guesses(&mut self, nodes: &[&Node], email: &str, tries: usize) -> Result<usize> {
        let fields = [("email", email), ("password", "not the password")];
        let mut compared = 0;
        for node in nodes.iter().cycle().take(tries) {
            compared += usize::from(self.sends(node, "/login", &fields).await?);
        }
        Ok(compared)
    }
}

#[tokio::test]
async fn l6_two_nodes_have_one_budget_for_sign_in_and_messages_and_half_of_it_without_redis()
-> Result<()> {
    let fixture = FixtureApi::start()?;
    let mut cluster = Cluster::builder().nodes(1).start(&fixture).await?;
    let second = cluster.another_auth().await?;
    // A node begins to count with the others as soon as it has found Redis.
    let mut warm = Stranger {
        cluster: &cluster,
        number: 0,
    };
    for node in [&cluster.auth, &second] {
        let mut known = buckets(&cluster).await?;
        eventually("it counts in Redis", Duration::from_secs(30), async || {
            let email = format!("{}@warm.example", warm.number);
            let _ = warm.guesses(&[node], &email, 1).await;
            let now = buckets(&cluster).await.unwrap_or_default();
            std::mem::replace(&mut known, now) < now
        })
        .await?;
    }
    let mut stranger = Stranger {
        cluster: &cluster,
        number: 1_000,
    };
    let nodes = [&cluster.auth, &second];
    let began = Instant::now();
    let compared = stranger.guesses(&nodes, "ann@acme.example", 30).await?;
    let refilled = |began: Instant| {
        let minutes = began.elapsed().as_secs() / ONE_MORE.as_secs();
        usize::try_from(minutes).unwrap_or(0)
    };
    assert!(
        (TRIES..=TRIES + refilled(began)).contains(&compared),
        "{compared} passwords were compared for one account"
    );
    let mut sent = 0;
    for node in nodes.iter().cycle().take(12) {
        let fields = [("email", "ann@acme.example")];
        sent += usize::from(stranger.sends(node, "/reset", &fields).await?);
    }
    assert_eq!(sent, MESSAGES, "messages to one address");

    let number = stranger.number;
    cluster.redis.stop()?;
    let mut stranger = Stranger {
        cluster: &cluster,
        number,
    };
    let nodes = [&cluster.auth, &second];
    let began = Instant::now();
    let compared = stranger.guesses(&nodes, "bob@acme.example", 30).await?;
    assert!(
        (TRIES..=TRIES + refilled(began)).contains(&compared),
        "{compared} without Redis: half a budget on each of two nodes"
    );
    // A used-up budget stays used up.
    let began = Instant::now();
    let compared = stranger.guesses(&nodes, "ann@acme.example", 10).await?;
    assert!(compared <= 2 + refilled(began), "{compared} compared");
    Ok(())
}

/// Accounts that are counted in Redis.
async fn buckets(cluster: &Cluster) -> Result<usize> {
    let count = "return #redis.call('KEYS', '*auth:accounts*')";
    let keys = cluster.redis.command(&["EVAL", count, "0"]).await?;
    Ok(keys.parse()?)
}
