//! Commands to Redis of a call (STREAM-5): one in the session era, none without a session.

use std::time::{Duration, Instant};

use anyhow::Result;
use portolan_tests::{
    cluster::Cluster,
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient},
};
use reqwest::StatusCode;
use serde_json::json;

const CALLS: usize = 200;

/// Most commands that one node may spend on leases of limits, in a second (TEST-L10).
const LEASES_A_SECOND: f64 = 100.0;

/// Calls faster than this are not registered as running (STREAM-5: 25 ms on the node).
const QUICK: Duration = Duration::from_millis(25);

/// Commands that clients of Redis sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// To the record of a session: what a caller waits for.
    pub(super) sessions: Vec<String>,
    /// To the rest of a session: running requests, streams.
    pub(super) beside: Vec<String>,
    /// For limits.
    pub(super) leases: usize,
    /// How long it all took.
    pub(super) took: Duration,
}

/// Commands that were sent while `work` ran. Heartbeats, and scans of whole partitions, depend on
/// time and are left out.
pub(super) async fn sent(fleet: &Fleet, work: impl AsyncFnOnce() -> Result<()>) -> Result<Sent> {
    let (watch, began) = (fleet.cluster.redis.watch().await?, Instant::now());
    work().await?;
    let took = began.elapsed();
    let seen = watch.stop(&fleet.cluster.redis).await?;
    let about = |marks: &[&str]| -> Vec<String> {
        seen.iter()
            .filter(|line| {
                line.contains("pl1:{")
                    && !line.contains("}:o:")
                    && marks.iter().any(|mark| line.contains(mark))
            })
            .cloned()
            .collect()
    };
    Ok(Sent {
        sessions: about(&["}:s:"]),
        beside: about(&["}:f:", "}:m:", "}:e:", "}:x:", "}:q:"]),
        leases: about(&[":{q:"]).len(),
        took,
    })
}

/// Answers how many of the calls were not quick.
async fn echo_often(client: &McpClient) -> Result<usize> {
    let mut slow = 0;
    for number in 0..CALLS {
        let began = Instant::now();
        super::echo(client, &format!("call {number}")).await?;
        slow += usize::from(began.elapsed() >= QUICK);
    }
    Ok(slow)
}

#[tokio::test]
async fn s5_a_call_in_a_session_costs_one_command_and_one_without_costs_none() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.session(LEGACY).await?;
    super::echo(&session, "warm").await?;
    let mut slow = 0;
    let busy = sent(&fleet, async || {
        slow = echo_often(&session).await?;
        Ok(())
    })
    .await?;
    println!(
        "session era, {CALLS} calls in {:?}, {slow} slow: {} commands awaited, {} beside, {} for leases",
        busy.took,
        busy.sessions.len(),
        busy.beside.len(),
        busy.leases
    );
    // A command that a busy machine delays is sent once more, and its call is a slow one.
    assert!(
        (CALLS..=CALLS + slow).contains(&busy.sessions.len()),
        "one for each call, not {}",
        busy.sessions.len()
    );
    // One more: the end of the first call, which was slow because all was cold, may be published
    // late.
    assert!(
        busy.beside.len() <= 2 * slow + 1,
        "only slow calls are registered: {:#?}",
        busy.beside.iter().take(5).collect::<Vec<_>>()
    );
    assert_leases(&busy);

    let client = fleet.mcp.clone();
    let arguments = json!({"name": "echo_message", "arguments": {"message": "x"}});
    client.modern("tools/call", arguments.clone()).await?;
    let busy = sent(&fleet, async || {
        for _ in 0..CALLS {
            let answer = client.modern("tools/call", arguments.clone()).await?;
            anyhow::ensure!(answer.status.is_success(), "{}", answer.text);
        }
        Ok(())
    })
    .await?;
    println!(
        "stateless era, {CALLS} calls in {:?}: {} commands, {} for leases",
        busy.took,
        busy.sessions.len() + busy.beside.len(),
        busy.leases
    );
    assert!(
        busy.sessions.is_empty() && busy.beside.is_empty(),
        "{busy:#?}"
    );
    assert_leases(&busy);
    Ok(())
}

fn assert_leases(busy: &Sent) {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let a_second = busy.leases as f64 / busy.took.as_secs_f64().max(1.0);
    assert!(a_second <= LEASES_A_SECOND, "{a_second} leases a second");
}

#[tokio::test]
async fn b8_b9_made_up_ids_cost_redis_nothing() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.session(LEGACY).await?;
    // Not a call: the record of a running one is removed a moment after its answer.
    session.request("tools/list", json!({})).await?;
    let id = session.header("mcp-session-id").unwrap_or_default();
    let busy = sent(&fleet, async || {
        for number in 0..50_u32 {
            let event = format!("QWcWcGKQJrwoAAAAAAAAAAAAAAAAAAAx{number:04}");
            let answer = session.resume(&event).await?.whole()?;
            anyhow::ensure!(
                answer.status == StatusCode::BAD_REQUEST,
                "{}",
                answer.status
            );
            let (kept, _) = id.split_at(id.len() - 4);
            let guess = session
                .clone()
                .with("mcp-session-id", &format!("{kept}{number:04}"))?;
            let answer = guess.request("tools/list", json!({})).await?;
            anyhow::ensure!(answer.status == StatusCode::NOT_FOUND, "{}", answer.status);
        }
        Ok(())
    })
    .await?;
    assert!(
        busy.sessions.is_empty() && busy.beside.is_empty(),
        "{busy:#?}"
    );
    Ok(())
}

/// Runs a streamed call and searches for its content in everything that was written to Redis.
async fn finds_in_redis(seal: bool) -> Result<bool> {
    let builder = Cluster::builder().nodes(1).setting("redis_seal", seal);
    let fleet = Fleet::with(builder).await?;
    let session = fleet.session(LEGACY).await?;
    let key = "a-very-private-word";
    let message = call(1, "held_order", json!({"key": key}), Some(key));
    let mut stream = session.start(&message).await?.stream()?;
    stream.until(super::is_progress).await?;
    fleet.fixture.held.release(key);
    let rest = stream.rest().await?;
    assert!(rest.iter().any(|event| event.data.contains(key)));
    let written = fleet.cluster.redis.written()?;
    let stands = |text: &str| {
        written
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    for (what, secret) in [
        ("a session's id", session.header("mcp-session-id")),
        ("an access token", Some(fleet.tokens.access.as_str())),
        ("a credential", Some(portolan_tests::fixture::TOKEN)),
    ] {
        assert!(
            !stands(secret.unwrap_or_default()),
            "{what} stands in Redis"
        );
    }
    Ok(stands(key))
}

#[tokio::test]
async fn s6_what_calls_carry_is_sealed_in_redis_unless_an_operator_says_otherwise() -> Result<()> {
    assert!(!finds_in_redis(true).await?, "sealed");
    // The search would find it.
    assert!(finds_in_redis(false).await?, "not sealed");
    Ok(())
}
