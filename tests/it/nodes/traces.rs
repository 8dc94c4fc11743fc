//! One trace for each call, over nodes and to the API behind (STREAM-20, W3C Trace Context).

use std::{collections::BTreeSet, time::Instant};

use anyhow::{Context, Result};
use portolan_tests::{
    cluster::Cluster,
    collector::{Collector, Span},
    fleet::{Fleet, call},
    mcp::LEGACY,
};
use serde_json::{Value, json};

use super::{ADOPTION, Order, is_progress, response};

/// The client's span, under a trace of its own.
const CLIENT: &str = "00f067aa0ba902b7";

fn parent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-{CLIENT}-{flags}")
}

async fn fleet(nodes: usize, collector: &Collector) -> Result<Fleet> {
    let builder = Cluster::builder()
        .nodes(nodes)
        .setting("otlp_endpoint", collector.endpoint())
        .setting("trace_sample_ratio", 0);
    Fleet::with(builder).await
}

fn named<'a>(spans: &'a [Span], name: &str) -> Result<&'a Span> {
    spans
        .iter()
        .find(|span| span.name == name)
        .with_context(|| format!("{name} in {spans:?}"))
}

/// The header that the API got.
fn told(answer: &Value) -> &str {
    answer["result"]["structuredContent"]["headers"]["traceparent"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_call_is_one_trace_from_its_client_to_the_api() -> Result<()> {
    let collector = Collector::start().await?;
    let fleet = fleet(1, &collector).await?;
    let session = fleet.session(LEGACY).await?;
    let params = json!({"name": "show_headers", "arguments": {}});

    // A `traceparent` in a header, and another in the message, which counts.
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let said = session
        .clone()
        .with("traceparent", &parent(trace, "01"))?
        .with("tracestate", "vendor=a")?;
    let answer = said.request("tools/call", params.clone()).await?.json;
    let spans = collector
        .trace(trace, &["tools/call", "begin", "run", "upstream request"])
        .await?;
    let whole = named(&spans, "tools/call")?;
    let (begin, run) = (named(&spans, "begin")?, named(&spans, "run")?);
    let upstream = named(&spans, "upstream request")?;
    assert_eq!(whole.parent, CLIENT);
    assert_eq!((&begin.parent, &run.parent), (&whole.id, &whole.id));
    assert_eq!(upstream.parent, run.id);
    assert_eq!(spans.len(), 4, "{spans:?}");
    assert_eq!(told(&answer), format!("00-{trace}-{}-01", upstream.id));
    assert_eq!(
        answer["result"]["structuredContent"]["headers"]["tracestate"],
        "vendor=a"
    );
    assert_eq!(upstream.attributes["http.response.status_code"], "200");
    assert!(whole.attributes.contains_key("portolan.node.attached"));

    let other = "0af7651916cd43dd8448eb211c80319c";
    let mut in_message = params.clone();
    in_message["_meta"] = json!({"traceparent": parent(other, "01")});
    let answer = said.request("tools/call", in_message).await?.json;
    assert!(told(&answer).contains(other), "{answer}");
    collector
        .trace(other, &["tools/call", "upstream request"])
        .await?;

    // Not sampled: no span, and the API receives that flag. Without a `traceparent`: none of ours,
    // because the share is zero.
    let quiet = "11111111111111111111111111111111";
    let answer = session
        .clone()
        .with("traceparent", &parent(quiet, "00"))?
        .request("tools/call", params.clone())
        .await?
        .json;
    assert_eq!(told(&answer), parent(quiet, "00"));
    let answer = session.request("tools/call", params.clone()).await?.json;
    assert_eq!(told(&answer), "");
    let last = "22222222222222222222222222222222";
    let said = session.with("traceparent", &parent(last, "01"))?;
    said.request("tools/call", params).await?;
    collector.trace(last, &["upstream request"]).await?;
    let all = collector.spans();
    assert!(
        all.iter()
            .all(|span| [trace, other, last].contains(&span.trace.as_str())),
        "{all:?}"
    );
    Ok(())
}

/// Calls in a row of a client that wants each of them traced.
const GREEDY: u32 = 200;

#[tokio::test]
async fn a_client_that_wants_every_call_traced_has_so_many_a_second() -> Result<()> {
    let collector = Collector::start().await?;
    let builder = Cluster::builder()
        .nodes(1)
        .setting("otlp_endpoint", collector.endpoint())
        .setting("trace_sample_ratio", 0)
        .setting("trace_asked_per_second", 2);
    let fleet = Fleet::with(builder).await?;
    let session = fleet.session(LEGACY).await?;
    let params = json!({"name": "show_headers", "arguments": {}});
    let began = Instant::now();
    let (mut traced, mut refused) = (BTreeSet::new(), 0);
    for number in 1..=GREEDY {
        let trace = format!("{number:032x}");
        let said = session.clone().with("traceparent", &parent(&trace, "01"))?;
        let answer = said.request("tools/call", params.clone()).await?.json;
        let told = told(&answer);
        // The trace goes on, recorded or not, and the next server receives the flag.
        anyhow::ensure!(told.contains(&trace), "{answer}");
        if told.ends_with("-01") {
            traced.insert(trace);
        } else {
            assert_eq!(told, parent(&trace, "00"));
            refused += 1;
        }
    }
    let took = began.elapsed().as_secs_f64();
    let most = 2.0 + 2.0 * took;
    println!("{} of {GREEDY} traced in {took:.1} s", traced.len());
    assert!(
        f64::from(GREEDY - refused) <= most,
        "{traced:?} in {took} s"
    );
    assert!(!traced.is_empty() && refused > 0);
    for trace in &traced {
        collector.trace(trace, &["tools/call"]).await?;
    }
    let all = collector.spans();
    assert!(
        all.iter().all(|span| traced.contains(&span.trace)),
        "{all:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_resumed_and_adopted_stays_in_its_trace() -> Result<()> {
    let collector = Collector::start().await?;
    let mut fleet = fleet(2, &collector).await?;
    let session = fleet.session(LEGACY).await?;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let said = fleet
        .on(0, &session)?
        .with("traceparent", &parent(trace, "01"))?;
    let order = Order::start(&fleet, &said, 7).await?;
    let from = order.first_id()?.to_owned();
    drop(order.stream);
    let mut elsewhere = fleet.on(1, &session)?.resume(&from).await?.stream()?;
    elsewhere.until(is_progress).await?;
    let spans = collector.trace(trace, &["append", "resume"]).await?;
    let (append, resume) = (named(&spans, "append")?, named(&spans, "resume")?);
    for name in ["portolan.nonce", "portolan.node.owner"] {
        assert_eq!(append.attributes[name], resume.attributes[name], "{name}");
    }
    assert_eq!(append.parent, resume.parent, "both are parts of the call");
    assert_ne!(
        resume.attributes["portolan.node.owner"],
        resume.attributes["portolan.node.attached"]
    );
    assert!(append.attributes.contains_key("portolan.seq"));

    // Its owner is lost: the node that takes over continues its trace.
    fleet.cluster.nodes[0].kill()?;
    let rest = tokio::time::timeout(ADOPTION * 2, elsewhere.rest()).await??;
    assert_eq!(response(&rest)?["error"]["code"], -32010);
    let spans = collector.trace(trace, &["adopt"]).await?;
    let adopt = named(&spans, "adopt")?;
    assert_eq!(
        adopt.attributes["portolan.node.lost"],
        resume.attributes["portolan.node.owner"]
    );
    assert_eq!(adopt.parent, resume.parent);
    // AUTH-X1: no secret and no content.
    let text = format!("{spans:?}");
    let session_id = session.header("mcp-session-id").unwrap_or_default();
    assert!(!session_id.is_empty() && !text.contains(session_id));
    assert!(!text.contains("order-7"), "no arguments: {text}");
    Ok(())
}

#[tokio::test]
async fn a_call_of_the_stateless_era_is_traced_by_what_its_message_says() -> Result<()> {
    let collector = Collector::start().await?;
    let fleet = fleet(1, &collector).await?;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let params = json!({"name": "show_headers", "arguments": {}});
    let client = fleet.mcp.modern_client("tools/call", &params)?;
    let mut message = portolan_tests::mcp::modern_message("tools/call", params);
    message["params"]["_meta"]["traceparent"] = json!(parent(trace, "01"));
    let answer = client.message(&message).await?.json;
    assert!(told(&answer).contains(trace), "{answer}");
    let spans = collector
        .trace(trace, &["tools/call", "run", "upstream request"])
        .await?;
    assert_eq!(spans.len(), 3, "no session, no begin: {spans:?}");
    // A plain message of the older era has no `traceparent`, and the share is zero.
    let session = fleet.session(LEGACY).await?;
    session
        .message(&call(1, "show_headers", json!({}), None))
        .await?;
    Ok(())
}
