//! All nodes are replaced, one after the other, while clients work (STREAM-16.4).

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use portolan_tests::{
    caller::{Caller, Plan},
    checker::check,
    cluster::Cluster,
    fleet::{Fleet, call},
    history::{FaultKind, History, Outcome, What},
    mcp::{LEGACY, modern_message},
    process::eventually,
    sdk::{Sdk, SdkLoad},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Order, response};

/// Calls one after the other until `stop` is set.
async fn work(caller: Caller, name: String, stop: Arc<AtomicBool>) {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        // Most are over at once, some are streamed, some are still running when their node has to go.
        let millis = [0, 20, 3_000, 0, 50, 1_500, 8_000][number % 7];
        caller
            .call(&Plan::new(format!("{name}-{number}"), millis))
            .await;
        number += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_4_every_node_is_replaced_under_load_and_no_call_fails() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(3)
        .setting("drain_accept_secs", 5)
        .setting("drain_secs", 20);
    let mut fleet = Fleet::with(builder).await?;
    let history = History::default();
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..10 {
        let name = format!("session-{number}");
        let caller = Caller::in_session(fleet.session(LEGACY).await?, &name, &history);
        clients.spawn(work(caller, name, stop.clone()));
    }
    for number in 0..4 {
        let caller = Caller::stateless(fleet.mcp.clone(), &history);
        clients.spawn(work(caller, format!("stateless-{number}"), stop.clone()));
    }
    for node in &mut fleet.cluster.nodes {
        history.fault(format!("drain {}", node.name), FaultKind::Node);
        node.drain()?;
        let status = node.end(Duration::from_secs(40)).await?;
        assert!(status.success(), "{} ended with {status}", node.name);
        node.start()?;
        node.ready().await?;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.context("a client")?;
    }
    history.executed(&fleet.fixture.held);
    let lines = history.lines();
    let report = check(&lines);
    println!("{report}");
    let failed: Vec<_> = lines
        .iter()
        .filter_map(|line| match &line.what {
            What::Ended { call, outcome } if !matches!(outcome, Outcome::Result { .. }) => {
                Some(format!("{call} at {} ms: {outcome:?}", line.at))
            }
            _ => None,
        })
        .collect();
    if !failed.is_empty() || !report.violations.is_empty() {
        let place = fleet.keep("rolling", &lines)?;
        panic!(
            "failed calls: {failed:#?}\nhistory and logs are in {}",
            place.display()
        );
    }
    assert!(report.calls > 100, "too little load: {}", report.calls);
    Ok(())
}

/// Sessions of one token, each with its stream for news and one call at a time. Half of them are of each SDK.
const SESSIONS: usize = 50;

/// REVIEW-F1: the official clients of one key, which is what a service account is. Each node that
/// goes sends all of them to the others at once, for their calls and for their streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_every_node_is_replaced_and_fifty_official_clients_of_one_token_lose_nothing()
-> Result<()> {
    let builder = Cluster::builder()
        .nodes(3)
        .setting("drain_accept_secs", 5)
        .setting("drain_secs", 12)
        // New streams may be refused, and some are: nothing hangs on them. Those that come back are many more.
        .setting("stream_opens_per_minute", 60);
    let mut fleet = Fleet::with(builder).await?;
    let (history, folder) = (History::default(), tempfile::tempdir()?);
    let token = folder.path().join("token");
    fs::write(&token, &fleet.tokens.access)?;
    let (mut clients, mut inputs) = (JoinSet::new(), Vec::new());
    for sdk in [Sdk::TypeScript1, Sdk::Python1] {
        let (url, workers) = (&fleet.published.url, SESSIONS / 2);
        let load = SdkLoad::start(sdk, url, &token, workers, folder.path(), &history);
        let (load, input) = load?;
        clients.spawn(load.follow());
        inputs.push(input);
    }
    eventually("calls run", Duration::from_secs(60), async || {
        let begun = history.lines().into_iter();
        begun
            .filter(|line| matches!(line.what, What::Began { .. }))
            .count()
            >= SESSIONS
    })
    .await?;
    for node in &mut fleet.cluster.nodes {
        history.fault(format!("drain {}", node.name), FaultKind::Node);
        node.drain()?;
        let status = node.end(Duration::from_secs(40)).await?;
        assert!(status.success(), "{} ended with {status}", node.name);
        node.start()?;
        node.ready().await?;
    }
    drop(inputs);
    while let Some(client) = clients.join_next().await {
        client.context("a client")??;
    }
    let lines = history.lines();
    let mut failed = Vec::new();
    let (mut resumes, mut calls) = (0, 0);
    for line in &lines {
        match &line.what {
            What::Resumed { call, status } => {
                resumes += 1;
                if *status == 429 {
                    failed.push(format!("{call} at {} ms: a resume was refused", line.at));
                }
            }
            What::Ended { call, outcome } => {
                calls += 1;
                if !matches!(outcome, Outcome::Result { .. }) {
                    failed.push(format!("{call} at {} ms: {outcome:?}", line.at));
                }
            }
            _ => {}
        }
    }
    println!("{calls} calls, {resumes} resumes");
    if !failed.is_empty() {
        let place = fleet.keep("rolling-official", &lines)?;
        panic!(
            "failed: {failed:#?}\nhistory and logs are in {}",
            place.display()
        );
    }
    assert!(calls > 2 * SESSIONS && resumes > 10, "too little load");
    Ok(())
}

#[tokio::test]
async fn s16_4_a_call_of_a_draining_node_runs_on_and_is_read_elsewhere() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(2)
        .setting("drain_accept_secs", 1)
        .setting("drain_secs", 60);
    let mut fleet = Fleet::with(builder).await?;
    let session = fleet.session(LEGACY).await?;
    let own = fleet.on(0, &session)?;
    let mut streamed = Order::start(&fleet, &own, 51).await?;
    // Nothing was sent for this one when the node gets SIGTERM.
    let message = call(52, "held_order", json!({"key": "pending"}), None);
    let (pending, ()) = tokio::join!(own.start(&message), async {
        fleet
            .fixture
            .held
            .arrived("pending", 1)
            .await
            .expect("the call is under way");
        fleet.cluster.nodes[0].drain().expect("told");
    });
    let mut pending = pending?.stream()?;
    let ended = pending.rest().await?;
    assert!(
        ended.iter().all(|event| !event.is_response()),
        "it is not over: {ended:?}"
    );
    let pending_id = pending.last_id().context("an id to come back with")?;
    assert!(pending.retry().is_some());
    let more = streamed.stream.rest().await?;
    assert!(more.iter().all(|event| !event.is_response()), "{more:?}");
    let streamed_id = streamed.stream.last_id().context("an id")?.to_owned();

    let elsewhere = fleet.on(1, &session)?;
    for (id, key, request) in [(pending_id, "pending", 52), (&streamed_id, "order-51", 51)] {
        let mut stream = elsewhere.resume(id).await?.stream()?;
        fleet.fixture.held.release(key);
        let answer = response(&stream.rest().await?)?;
        assert_eq!(answer["id"], request);
        assert_eq!(answer["result"]["structuredContent"]["key"], key);
        assert_eq!(fleet.fixture.held.fate(key).arrived, 1, "TEST-C6");
    }
    let status = fleet.cluster.nodes[0].end(Duration::from_secs(20)).await?;
    assert!(status.success(), "{status}");
    Ok(())
}

#[tokio::test]
async fn s16_4_what_still_runs_when_the_time_is_up_is_told_honestly() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(2)
        .setting("drain_accept_secs", 0)
        .setting("drain_secs", 2);
    let mut fleet = Fleet::with(builder).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 61).await?;
    // Two that stand alone: one waits for its JSON, the other has a stream already.
    let alone = fleet.on(0, &fleet.mcp)?;
    let held = |key: &str| json!({"name": "held_order", "arguments": {"key": key}});
    let streaming = alone.modern_client("tools/call", &held("streamed"))?;
    let mut streamed = modern_message("tools/call", held("streamed"));
    streamed["params"]["_meta"]["progressToken"] = json!("t");
    let (waiting, streamed, status) = tokio::try_join!(
        alone.modern("tools/call", held("waiting")),
        streaming.message(&streamed),
        async {
            for key in ["waiting", "streamed"] {
                fleet.fixture.held.arrived(key, 1).await?;
            }
            // Until it is a stream.
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            fleet.cluster.nodes[0].drain()?;
            fleet.cluster.nodes[0].end(Duration::from_secs(20)).await
        }
    )?;
    assert!(status.success(), "{status}");
    assert!(streamed.text.contains("notifications/progress"), "a stream");
    for answer in [&waiting, &streamed] {
        let text = &answer.text;
        assert!(
            answer.status.is_success() && text.contains("draining") && text.contains("unknown"),
            "{text}"
        );
    }
    fleet.fixture.held.given_up("order-61", 1).await?;
    let elsewhere = fleet.on(1, &session)?;
    let mut stream = elsewhere.resume(order.first_id()?).await?.stream()?;
    let answer = response(&stream.rest().await?)?;
    assert_eq!(answer["error"]["code"], -32010, "{answer}");
    assert_eq!(answer["error"]["data"]["executed"], "unknown", "{answer}");
    assert_eq!(fleet.fixture.held.fate("order-61").arrived, 1, "TEST-C6");
    Ok(())
}
