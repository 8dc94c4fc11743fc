//! Counts of calls, and their log, over nodes that end in order and that are killed.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use portolan_tests::{
    cluster::Cluster,
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient},
    process::eventually,
    sql::Sql,
};
use serde_json::json;

/// A node drains its meter every ten seconds, and writes within two seconds of that.
const FLUSHED: Duration = Duration::from_secs(25);

/// A draining node has written all by then.
const ENDED: Duration = Duration::from_secs(40);

/// The id of the next request.
static NEXT: AtomicI64 = AtomicI64::new(100);

/// So many calls, and their ids as the client sees them.
async fn calls(client: &McpClient, count: usize) -> Result<Vec<String>> {
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count / 10 {
        let ten = (0..10).map(|_| async {
            // Of one session, so each has an id of its own.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let arguments = json!({"message": "hello"});
            let message = call(number, "echo_message", arguments, None);
            let answer = client.message(&message).await?;
            let id = &answer.json["result"]["_meta"]["io.github.portolan/callId"];
            let id = id.as_str().with_context(|| answer.text.clone())?;
            anyhow::Ok(id.to_owned())
        });
        ids.extend(try_join_all(ten).await?);
    }
    Ok(ids)
}

/// All counted calls. None is folded into hours within a test.
async fn counted(sql: &mut Sql) -> Result<usize> {
    let rows = sql
        .ask("select coalesce(sum(calls), 0)::bigint from (select calls from usage_flush union all select calls from usage_minute) counted")
        .await?;
    Ok(rows[0][0].parse()?)
}

/// The ids of the log of calls, as clients see them.
async fn logged(sql: &mut Sql) -> Result<BTreeSet<String>> {
    let rows = sql
        .ask("select 'call_' || replace(id::text, '-', '') from call_log")
        .await?;
    Ok(rows.into_iter().flatten().collect())
}

async fn wait_for(sql: &mut Sql, calls: usize) -> Result<()> {
    let waited = eventually("all calls are counted", FLUSHED, async || {
        counted(sql).await.is_ok_and(|counted| counted >= calls)
    });
    waited.await?;
    let seen = counted(sql).await?;
    ensure!(
        seen == calls,
        "{seen} calls are counted, and {calls} were made"
    );
    Ok(())
}

/// Rule: METER-1, METER-6, METER-10. A killed node loses what it had not flushed, and nothing else;
/// a node that ends in order loses nothing.
#[tokio::test]
async fn a_killed_node_loses_what_it_had_not_flushed() -> Result<()> {
    const FLUSHED_BEFORE: usize = 150;
    const BEFORE_DEATH: usize = 100;
    const BEFORE_END: usize = 60;
    let builder = Cluster::builder().nodes(2);
    let mut fleet = Fleet::with(builder.setting("calls_per_minute", 100_000)).await?;
    let session = fleet.session(LEGACY).await?;
    let (first, second) = (fleet.on(0, &session)?, fleet.on(1, &session)?);
    let mut sql = fleet.cluster.postgres.sql().await?;

    let mut ids = calls(&first, FLUSHED_BEFORE).await?;
    ids.extend(calls(&second, FLUSHED_BEFORE).await?);
    let flushed = 2 * FLUSHED_BEFORE;
    wait_for(&mut sql, flushed).await?;

    calls(&first, BEFORE_DEATH).await?;
    fleet.cluster.nodes[0].kill()?;
    ids.extend(calls(&second, BEFORE_END).await?);
    fleet.cluster.nodes[1].drain()?;
    let status = fleet.cluster.nodes[1].end(ENDED).await?;
    ensure!(
        status.success(),
        "{status}: {}",
        fleet.cluster.nodes[1].last_words()
    );

    let safe = flushed + BEFORE_END;
    let seen = counted(&mut sql).await?;
    ensure!(
        (safe..=safe + BEFORE_DEATH).contains(&seen),
        "{seen} calls are counted: at least {safe} were flushed, and {BEFORE_DEATH} were not"
    );
    // The ids that clients saw are those of the log: all of it was written before the death.
    let logged = logged(&mut sql).await?;
    let missing: Vec<_> = ids.iter().filter(|id| !logged.contains(*id)).collect();
    ensure!(missing.is_empty(), "not in the log: {missing:?}");
    Ok(())
}

/// Rule: METER-6. While Postgres is away counts wait, and none is lost.
#[tokio::test]
async fn counts_wait_for_a_database_that_is_away() -> Result<()> {
    let builder = Cluster::builder().nodes(1);
    let mut fleet = Fleet::with(builder.setting("calls_per_minute", 100_000)).await?;
    let session = fleet.session(LEGACY).await?;
    let client = fleet.on(0, &session)?;
    calls(&client, 20).await?;
    fleet.cluster.postgres.stop()?;
    calls(&client, 40).await?;
    eventually("a flush has failed", FLUSHED, async || {
        let retried = fleet.cluster.nodes[0]
            .metric("mcp_counts_retried_total")
            .await;
        retried.is_ok_and(|retried| retried > 0.0)
    })
    .await?;
    fleet.cluster.postgres.start_again().await?;
    let mut sql = fleet.cluster.postgres.sql().await?;
    wait_for(&mut sql, 60).await
}
