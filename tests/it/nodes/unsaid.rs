//! Traces and metrics hold no secret, and no content of a call (TEST-S11). Logs are searched by
//! CASE-165, in `tests/it/secrets.rs`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    cluster::Cluster,
    collector::Collector,
    fixture::TOKEN,
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient},
    process::eventually,
};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Order, is_progress, response};

/// Stands in arguments, results, progress tokens, names that do not exist, and wrong credentials.
const PLANTED: &str = "planted-0123456789";

fn planted(what: &str) -> String {
    format!("{PLANTED}-{what}")
}

/// Calls that succeed, fail, stream, are cancelled, and are refused. Returns the values that must
/// not be found afterwards.
async fn speak(fleet: &Fleet) -> Result<Vec<String>> {
    let session = fleet.session(LEGACY).await?;
    let id = session.header("mcp-session-id").context("a session")?;
    let mut secrets = vec![
        PLANTED.to_owned(),
        TOKEN.to_owned(),
        fleet.tokens.access.clone(),
        fleet.tokens.refresh.clone(),
        id.to_owned(),
    ];
    let said = json!({"message": planted("argument")});
    let echo = call(1, "echo_message", said.clone(), Some(&planted("token")));
    for node in 0..2 {
        let answer = fleet.on(node, &session)?.message(&echo).await?;
        ensure!(answer.text.contains(PLANTED), "{}", answer.text);
    }
    for (tool, arguments) in [
        (planted("tool"), json!({})),
        ("echo_message".to_owned(), json!({"wrong": planted("name")})),
        ("broken_answer".to_owned(), json!({})),
        ("get_thing".to_owned(), json!({"id": planted("path")})),
        ("search_things".to_owned(), json!({"q": planted("query")})),
    ] {
        session.message(&call(2, &tool, arguments, None)).await?;
    }
    let params = json!({"name": "echo_message", "arguments": said});
    let answer = fleet.mcp.modern("tools/call", params.clone()).await?;
    ensure!(answer.status == StatusCode::OK, "{}", answer.text);

    // A stream that is resumed on another node and taken over by none, and one that is cancelled.
    let order = Order::start(fleet, &fleet.on(0, &session)?, 7).await?;
    let event = order.first_id()?.to_owned();
    let mut resumed = fleet.on(1, &session)?.resume(&event).await?.stream()?;
    resumed.until(is_progress).await?;
    order.release(fleet);
    response(&resumed.rest().await?)?;
    secrets.push(event);
    let cancelled = Order::start(fleet, &fleet.on(1, &session)?, 8).await?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 8, "reason": planted("reason")}});
    session.message(&cancel).await?;
    fleet.fixture.held.given_up(&cancelled.key, 1).await?;

    let wrong = McpClient::new(&fleet.published.url)?.with_token(&planted("bearer"))?;
    let refused = wrong.modern("tools/call", params).await?;
    ensure!(refused.status == StatusCode::UNAUTHORIZED);
    session.resume(&planted("event")).await?.whole()?;
    session.send(Method::DELETE).await?;
    Ok(secrets)
}

#[tokio::test]
async fn s11_no_span_and_no_metric_tells_a_token_an_argument_or_a_session() -> Result<()> {
    let collector = Collector::start().await?;
    let builder = Cluster::builder()
        .nodes(2)
        .setting("otlp_endpoint", collector.endpoint())
        .setting("trace_sample_ratio", 1);
    let fleet = Fleet::with(builder).await?;
    let secrets = speak(&fleet).await?;
    // The spans of every kind of call have come when the last one's have.
    let names = ["tools/call", "run", "upstream request", "resume"];
    eventually("spans of all kinds", Duration::from_secs(20), async || {
        let spans = collector.spans();
        names
            .iter()
            .all(|name| spans.iter().any(|span| span.name == *name))
            && spans
                .iter()
                .filter(|span| span.name == "tools/call")
                .count()
                >= 8
    })
    .await?;
    let spans = collector.spans();
    let mut texts: Vec<(&str, String)> = spans
        .iter()
        .map(|span| ("a span", format!("{span:?}")))
        .collect();
    for node in &fleet.cluster.nodes {
        texts.push(("the metrics", node.metrics().await?));
    }
    let search_works = texts.iter().any(|(_, text)| text.contains("tools/call"));
    ensure!(search_works, "the search finds what is there");
    for (what, text) in &texts {
        for secret in &secrets {
            ensure!(!text.contains(secret), "{what} tells {secret}: {text}");
            // Cut, as code does that shows only a part.
            let tail = secret.get(secret.len().saturating_sub(24)..);
            ensure!(
                tail.is_none_or(|tail| !text.contains(tail)),
                "{what} tells the end of {secret}: {text}"
            );
        }
    }
    println!(
        "{} spans and the metrics of {} nodes: none of {} secrets",
        spans.len(),
        fleet.cluster.nodes.len(),
        secrets.len()
    );
    Ok(())
}
