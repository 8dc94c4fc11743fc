//! The service may do no more where it keeps things than it has to (TEST-S14). That its roles in Postgres cannot see past
//! row-level security is held by `crates/storage/tests/it/row_level_security.rs`.

use std::fs;

use anyhow::{Context, Result, ensure};
use portolan_tests::{fleet::Fleet, mcp::LEGACY, stack::repository};
use reqwest::Method;
use serde_json::json;

use super::{Order, echo, response};

/// The rules that operators give the user of the nodes: behind its password in
/// `deploy/compose/secrets.sh`.
fn rules() -> Result<String> {
    let script = fs::read_to_string(repository().join("deploy/compose/secrets.sh"))?;
    let line = script
        .lines()
        .find_map(|line| line.strip_prefix("user portolan on "))
        .context("secrets.sh has a user for the nodes")?;
    let start = line.find(" ~").context("it may use some keys")?;
    Ok(line[start..].trim().to_owned())
}

/// Commands that destroy, reveal too much, or change the server. One word more or less would be
/// refused for that alone.
const FORBIDDEN: &[&[&str]] = &[
    &["FLUSHALL"],
    &["FLUSHDB"],
    &["SWAPDB", "0", "1"],
    &["KEYS", "*"],
    &["SORT", "pl1:x"],
    &["CONFIG", "GET", "*"],
    &["CONFIG", "SET", "maxmemory", "1"],
    &["ACL", "LIST"],
    &["CLIENT", "LIST"],
    &["MONITOR"],
    &["DEBUG", "SLEEP", "0"],
    &["SLOWLOG", "GET"],
    &["SAVE"],
    &["BGREWRITEAOF"],
    &["REPLICAOF", "NO", "ONE"],
    &["SHUTDOWN", "NOSAVE"],
    &["MODULE", "LIST"],
    &["RESTORE", "pl1:x", "0", "x"],
    // Keys and channels of another application.
    &["GET", "another-application"],
    &["SET", "another-application", "x"],
    &["PUBLISH", "another-application", "x"],
];

#[tokio::test]
async fn s14_nodes_work_with_a_user_of_redis_that_can_neither_empty_it_nor_look_around()
-> Result<()> {
    let rules = rules()?;
    let told = fs::read_to_string(repository().join("docs/operating.md"))?;
    ensure!(
        told.contains(&rules),
        "docs/operating.md says so too: {rules}"
    );
    let mut fleet = Fleet::of(2).await?;
    // The nodes come as the user without a name. From now on it may do what the rules say.
    let reset = [
        "ACL",
        "SETUSER",
        "default",
        "resetkeys",
        "resetchannels",
        "-@all",
    ];
    let set: Vec<&str> = reset.into_iter().chain(rules.split(' ')).collect();
    fleet.cluster.redis.command(&set).await?;
    for words in FORBIDDEN {
        let refused = fleet.cluster.redis.command(words).await;
        let said = refused.err().map(|error| format!("{error:#}"));
        assert!(
            said.as_ref().is_some_and(|said| said.contains("NOPERM")),
            "{words:?}: {said:?}"
        );
        let inside = format!("return redis.call('{}')", words.join("','"));
        let refused = fleet.cluster.redis.command(&["EVAL", &inside, "0"]).await;
        assert!(refused.is_err(), "{inside}: {refused:?}");
    }

    // One that starts so, and one that was there before.
    let node = &mut fleet.cluster.nodes[0];
    node.kill()?;
    node.start()?;
    node.ready().await?;
    let session = fleet.session(LEGACY).await?;
    let (here, there) = (fleet.on(0, &session)?, fleet.on(1, &session)?);
    for (id, (owner, other)) in [(1, (&here, &there)), (2, (&there, &here))] {
        let order = Order::start(&fleet, owner, id).await?;
        let first = order.first_id()?.to_owned();
        let mut resumed = other.resume(&first).await?.stream()?;
        order.release(&fleet);
        assert_eq!(response(&resumed.rest().await?)?["id"], id);
        let order = Order::start(&fleet, owner, id + 10).await?;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id + 10}});
        other.message(&cancel).await?;
        fleet.fixture.held.given_up(&order.key, 1).await?;
        echo(owner, "and quick calls").await?;
    }
    let over = here.send(Method::DELETE).await?;
    assert!(over.status.is_success(), "{}", over.text);
    for node in &fleet.cluster.nodes {
        let output = node.output();
        assert!(!output.contains("NOPERM"), "{}: {output}", node.name);
    }
    Ok(())
}
