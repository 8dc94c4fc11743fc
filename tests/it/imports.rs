//! Imports of two workspaces at one process (REVIEW-S-1).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use portolan_tests::{console::Console, person::Person, stack::Stack};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Requests of a workspace that read or wait (`crates/site/src/readers.rs`).
const PLACES: usize = 5;
/// A process that does nothing else answers a small import in milliseconds.
const OTHERS_WAIT: Duration = Duration::from_secs(1);
/// The work of a request that ended is over after a tenth of a second; the machine may be busy.
const TURN_IS_BACK: Duration = Duration::from_secs(5);

/// A document whose three thousand operations share one large body: some ten seconds of work.
fn heavy() -> String {
    let members: Vec<String> = (0..1_500)
        .map(|n| format!(r#""p{n}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#))
        .collect();
    let members = members.join(",");
    let schema = format!(r#"{{"type":"object","properties":{{{members}}}}}"#);
    let body = format!(r#"{{"content":{{"application/json":{{"schema":{schema}}}}}}}"#);
    let paths: Vec<String> = (0..30_000)
        .map(|n| format!(r##""/p{n}":{{"$ref":"#/x/item"}}"##))
        .collect();
    let paths = paths.join(",");
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"x","version":"1"}},"paths":{{{paths}}},
            "x":{{"item":{{"post":{{"requestBody":{body},"responses":{{}}}}}}}}}}"#
    )
}

fn small() -> String {
    r#"{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{"/a":{"get":{"responses":{}}}}}"#
        .to_owned()
}

async fn preview(
    console: &Console<'_>,
    workspace: &str,
    document: &str,
) -> Result<(StatusCode, Value)> {
    let path = format!("/workspaces/{workspace}/imports/preview");
    let body = json!({"input": {"kind": "text", "text": document}});
    console.send(Method::POST, &path, Some(body)).await
}

/// Rule: REVIEW-S-1. A workspace has one turn and a short queue, another one does not wait for it,
/// and the turn is free again as soon as its request is gone.
#[tokio::test]
async fn s1_a_workspace_that_imports_much_keeps_no_other_waiting() -> Result<()> {
    let stack = Stack::start()?;
    let (ann, ben) = (
        Person::sign_up(&stack, "ann").await?,
        Person::sign_up(&stack, "ben").await?,
    );
    let (busy, other) = (ann.console(), ben.console());
    busy.create_workspace("busy").await?;
    other.create_workspace("other").await?;
    let (heavy, small) = (heavy(), small());

    let mut imports: FuturesUnordered<_> = (0..=PLACES)
        .map(|_| preview(&busy, "busy", &heavy))
        .collect();
    let (status, body) = imports.next().await.context("an answer")??;
    ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status} {body}");
    ensure!(body["error"]["code"] == "busy", "{body}");

    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        let answer = preview(&other, "other", &small);
        // The imports of the busy workspace go on meanwhile.
        let (status, body) = tokio::select! {
            answer = answer => answer?,
            over = imports.next() => anyhow::bail!("an import was over too early: {over:?}"),
        };
        ensure!(status == StatusCode::OK, "{status} {body}");
        shortest = shortest.min(begun.elapsed());
    }
    ensure!(
        shortest < OTHERS_WAIT,
        "another workspace waited {shortest:?}"
    );

    // The clients go away, and with them their connections.
    drop(imports);
    let begun = Instant::now();
    let (status, body) = preview(&busy, "busy", &small).await?;
    ensure!(status == StatusCode::OK, "{status} {body}");
    let waited = begun.elapsed();
    ensure!(waited < TURN_IS_BACK, "the turn came back after {waited:?}");
    println!("another workspace: {shortest:?}; the turn is back after {waited:?}");
    Ok(())
}
