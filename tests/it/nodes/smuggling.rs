//! Requests that two readers might take apart differently, behind both balancers (TEST-B14).
//!
//! The second request inside of each first one is complete, and has an effect that the API behind
//! the tools would see. It must have none, or be answered to its sender. No other client may ever
//! get an answer that is not its own.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use portolan_tests::{
    cluster::Cluster,
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient},
    proxy::Balancer,
    raw::{self, RawAnswer, RawHttp},
};
use reqwest::StatusCode;
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};

/// Tries behind each balancer.
const TRIES: usize = 5_000;
/// Of these, so many at once.
const AT_ONCE: usize = 16;
/// Clients that work beside them.
const VICTIMS: usize = 4;
/// Longest time until an answer that comes after another one.
const SOON: Duration = Duration::from_millis(700);

/// Headers with the length of the body, twice or unclear. `$` stands for a length in digits.
const LINES: &[&str] = &[
    "content-length: $\r\ntransfer-encoding: chunked\r\n",
    "transfer-encoding: chunked\r\ncontent-length: $\r\n",
    "content-length: $\r\ntransfer-encoding: xchunked\r\n",
    "content-length: $\r\ntransfer-encoding : chunked\r\n",
    "content-length: $\r\ntransfer-encoding:\tchunked\r\n",
    "content-length: $\r\ntransfer-encoding: \x0bchunked\r\n",
    "content-length: $\r\ntransfer-encoding: chunked\x0b\r\n",
    "content-length: $\r\ntransfer-encoding: chunked, identity\r\n",
    "content-length: $\r\ntransfer-encoding: identity, chunked\r\n",
    "content-length: $\r\ntransfer-encoding: chunked, chunked\r\n",
    "content-length: $\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n",
    "content-length: $\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
    "content-length: $\r\ntransfer-encoding: \"chunked\"\r\n",
    "content-length: $\r\ntransfer-encoding: CHUNKED\r\n",
    "content-length: $\r\ntransfer-encoding: chunked\0\r\n",
    "content-length: $\r\ntransfer-encoding:\r\n chunked\r\n",
    "content-length: $\r\nx: y\r\n transfer-encoding: chunked\r\n",
    "content-length: $\r\nx: y\rtransfer-encoding: chunked\r\n",
    "content-length: $\r\nx: y\ntransfer-encoding: chunked\r\n",
    "content-length: $\r\n\ttransfer-encoding: chunked\r\n",
    "content-length: $\r\ntransfer_encoding: chunked\r\n",
    "content-length: $\r\nconnection: transfer-encoding\r\ntransfer-encoding: chunked\r\n",
    "content-length: $\r\nconnection: content-length\r\n",
    "content-length: $\r\ncontent-length: 0\r\n",
    "content-length: 0\r\ncontent-length: $\r\n",
    "content-length: 0, $\r\n",
    "content-length: $, 0\r\n",
    "content-length: $, $\r\n",
    "content-length: +$\r\n",
    "content-length: 0x$\r\n",
    "content-length: $;\r\n",
    "content-length:\r\n $\r\n",
    "content-length : $\r\n",
    "content_length: $\r\n",
];

/// Where the second request begins: for who reads chunks, for who counts bytes, and for both.
const BODIES: usize = 3;

/// One try: its bytes, after the head of an ordinary request.
fn attempt(number: usize, smuggled: &str) -> String {
    let (whole, length) = match number / LINES.len() % BODIES {
        // CL.TE
        0 => {
            let whole = format!("0\r\n\r\n{smuggled}");
            let length = whole.len();
            (whole, length)
        }
        // TE.CL
        1 => {
            let first = format!("{:x}\r\n", smuggled.len());
            let length = first.len();
            (format!("{first}{smuggled}\r\n0\r\n\r\n"), length)
        }
        _ => {
            let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            (format!("{message}{smuggled}"), message.len())
        }
    };
    let lines = LINES[number % LINES.len()].replace('$', &length.to_string());
    format!("{lines}\r\n{whole}")
}

/// Names the effect of a try.
fn key(number: usize) -> String {
    format!("smuggled-{number}")
}

fn smuggled(client: &McpClient, number: usize) -> Result<String> {
    let work = json!({"call": key(number)});
    raw::post(client, &call(2, "do_work", work, None))
}

/// An attempt whose first request announces that no other follows.
async fn last_of_its_connection(client: &McpClient, number: usize) -> Result<Vec<RawAnswer>> {
    let (head, inner) = (raw::head(client, "POST")?, smuggled(client, number)?);
    let mut connection = RawHttp::to(client).await?;
    let request = format!("{head}connection: close\r\n{}", attempt(number, &inner));
    // A server that refuses the head may close the connection before the rest is sent.
    let _cut = connection.say(request).await;
    connection.answers().await
}

/// A try on a connection that stays.
async fn on_a_kept_connection(client: &McpClient, number: usize) -> Result<Vec<RawAnswer>> {
    let (head, inner) = (raw::head(client, "POST")?, smuggled(client, number)?);
    let mut connection = RawHttp::to(client).await?;
    let _cut = connection
        .say(format!("{head}{}", attempt(number, &inner)))
        .await;
    let mut answers = Vec::new();
    while let Ok(answer) = timeout(SOON, connection.answer()).await {
        match answer? {
            Some(answer) => answers.push(answer),
            None => break,
        }
    }
    Ok(answers)
}

/// Calls one after the other until `over` is set. Returns how many were served, and how many a
/// balancer refused.
async fn work(client: McpClient, name: usize, over: Arc<AtomicBool>) -> Result<(usize, usize)> {
    let (mut served, mut refused) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let number = served + refused;
        let text = format!("client {name}, call {number}");
        let message = call(number, "echo_message", json!({"message": text}), None);
        let answer = client.message(&message).await?;
        if matches!(answer.status.as_u16(), 502..=504) {
            refused += 1;
            continue;
        }
        super::repeats(&answer, &text)?;
        ensure!(answer.json["id"] == number, "{} for {number}", answer.text);
        served += 1;
    }
    Ok((served, refused))
}

/// Answers what was seen.
async fn behind(balancer: Balancer) -> Result<String> {
    let builder = Cluster::builder().nodes(2).balancer(balancer);
    let fleet = Fleet::with(builder).await?;
    let attacker = fleet.session(LEGACY).await?;
    one_answer_for_each(&fleet, &attacker).await?;
    one_answer_for_each(&fleet, &fleet.on(0, &attacker)?).await?;
    let over = Arc::new(AtomicBool::new(false));
    let mut victims = JoinSet::new();
    for name in 0..VICTIMS {
        let session = fleet.session(LEGACY).await?;
        victims.spawn(work(session, name, over.clone()));
    }
    let tries = stream::iter((0..TRIES).map(|number| last_of_its_connection(&attacker, number)));
    let answered: Vec<_> = tries.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for answers in &answered {
        assert!(
            answers.len() <= 1,
            "two answers to one request: {answers:?}"
        );
        let status = answers.first().map_or(0, |answer| answer.status.as_u16());
        *statuses.entry(status).or_default() += 1;
    }
    let done = fleet.fixture.held.arrivals();
    assert!(done.is_empty(), "requests came through: {done:?}");

    let all = LINES.len() * BODIES;
    let kept = (0..all).map(|number| {
        let attacker = &attacker;
        async move { anyhow::Ok((number, on_a_kept_connection(attacker, number).await?)) }
    });
    let kept: Vec<_> = stream::iter(kept)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let done = fleet.fixture.held.arrivals();
    for (number, answers) in &kept {
        // To a reader for whom the first request is over, what follows is a second one of the same client.
        let (key, own) = (key(*number), answers.len());
        let told = format!("\"{key}\"");
        let is_told = answers
            .iter()
            .any(|answer| String::from_utf8_lossy(&answer.body).contains(&told));
        assert_eq!(
            done.get(&key).copied().unwrap_or(0),
            usize::from(is_told),
            "{:?}: {answers:?}",
            attempt(*number, "…")
        );
        // Its remainder is then no request.
        let rest = answers.get(2).map(|answer| answer.status);
        assert!(
            own <= 3 && rest.is_none_or(|status| status == StatusCode::BAD_REQUEST),
            "{answers:?}"
        );
    }
    over.store(true, Ordering::Relaxed);
    let (mut served, mut refused) = (0, 0);
    while let Some(victim) = victims.join_next().await {
        let (own, none) = victim??;
        (served, refused) = (served + own, refused + none);
    }
    assert!(served > 200, "only {served} calls beside them");
    assert!(
        refused * 100 <= served,
        "{refused} of {served} were refused"
    );
    Ok(format!(
        "{balancer:?}: {TRIES} tries, answers by status (0: none) {statuses:?}; {} of {all} second requests were served to who sent them; \
         {served} calls of others beside them, {refused} refused",
        done.len()
    ))
}

/// Odd and allowed bytes have one answer for each request, in order; others are refused.
async fn one_answer_for_each(fleet: &Fleet, client: &McpClient) -> Result<()> {
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let mut pipeline = String::new();
    for id in 0..20 {
        pipeline.push_str(&raw::post(client, &ping(id))?);
    }
    let mut connection = RawHttp::to(client).await?;
    connection.say(&pipeline).await?;
    for id in 0..20_usize {
        let answer = connection.answer().await?.context("an answer")?;
        ensure!(answer.json()["id"] == id, "{id}: {answer:?}");
    }

    // A body where none belongs is never the next request.
    let (get, next) = (raw::head(client, "GET")?, raw::post(client, &ping(99))?);
    let get = get.replacen("application/json, text/event-stream", "text/html", 1);
    let inner = smuggled(client, TRIES)?;
    let mut connection = RawHttp::to(client).await?;
    let length = inner.len();
    connection
        .say(format!(
            "{get}content-length: {length}\r\n\r\n{inner}{next}"
        ))
        .await?;
    let first = connection.answer().await?.context("an answer")?;
    ensure!(first.status == StatusCode::NOT_ACCEPTABLE, "{first:?}");
    if let Some(second) = connection.answer().await? {
        ensure!(second.json()["id"] == 99, "{second:?}");
    }

    let older = raw::post(client, &ping(7))?.replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut connection = RawHttp::to(client).await?;
    connection.say(format!("{older}{next}")).await?;
    let answers = connection.answers().await?;
    ensure!(
        answers.len() == 1 && answers[0].json()["id"] == 7,
        "HTTP/1.0 ends with its answer: {answers:?}"
    );

    let host = raw::host(client)?;
    for line in [
        "GET /t/a b/mcp HTTP/1.1",
        "post / HTTP/1.1",
        "TRACE / HTTP/1.1",
        "POST / HTTP/9.9",
        "CONNECT evil.example:443 HTTP/1.1",
        "\u{1}",
    ] {
        let rest = format!("host: {host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        let answer = raw::ask(client, format!("{line}\r\n{rest}")).await?;
        let is_good = answer
            .as_ref()
            .is_some_and(|answer| answer.status.is_success());
        ensure!(!is_good, "{line}: {answer:?}");
    }
    let done = fleet.fixture.held.arrivals();
    ensure!(done.is_empty(), "requests came through: {done:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b14_no_request_is_smuggled_behind_haproxy() -> Result<()> {
    println!("{}", behind(Balancer::HaProxy).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b14_no_request_is_smuggled_behind_nginx() -> Result<()> {
    println!("{}", behind(Balancer::Nginx).await?);
    Ok(())
}
