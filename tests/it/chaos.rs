//! Chaos (TEST-X): real nodes behind HAProxy and nginx by turns, real Redis and Postgres, clients that follow the protocol and
//! the official SDKs; everything is killed, held, drained, cut off, emptied and stopped while they work, and the checker reads what
//! they saw.
//!
//! `PORTOLAN_TEST_CHAOS_SECS` makes it longer, `PORTOLAN_TEST_CHAOS_SEED` another one, `PORTOLAN_TEST_CHAOS_CLIENTS` busier
//! (`make chaos`).

mod lists;
mod load;
mod nemesis;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use portolan_tests::{
    checker::{Report, check},
    cluster::Cluster,
    fleet::Fleet,
    mcp::LEGACY,
    process::eventually,
    sdk::Sdk,
};
use regex::RegexBuilder;
use serde_json::json;

use self::{load::Load, nemesis::Nemesis};

/// Length of the short form.
const SHORT: u64 = 200;

/// From this length on it is the long form, in which so many nodes must die.
const LONG: u64 = 1_800;
const DEATHS: usize = 100;

/// Numbers that look random and are the same for the same seed (xorshift64*).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Small seeds are spread, and zero would stay zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from[index]
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test runs is no setting of the product"
)]
fn parameter(name: &str, default: u64) -> Result<u64> {
    match std::env::var(format!("PORTOLAN_TEST_CHAOS_{name}")) {
        Ok(text) => text.parse().with_context(|| format!("{name}: {text:?}")),
        Err(_) => Ok(default),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_promise_is_broken_while_everything_breaks() -> Result<()> {
    let (secs, seed, clients) = (
        parameter("SECS", SHORT)?,
        parameter("SEED", 20_261_121)?,
        parameter("CLIENTS", 36)?,
    );
    // One run in three has a Redis without a replica (TEST-X).
    let is_watched = seed % 3 != 1;
    let redis = if is_watched {
        "a replica and three sentinels"
    } else {
        "no replica"
    };
    println!("chaos: {secs} s, seed {seed}, {clients} clients, Redis with {redis}");
    let builder = Cluster::builder().nodes(3);
    let builder = if is_watched {
        builder.watched()
    } else {
        builder.linked()
    };
    let builder = builder
        .setting("drain_accept_secs", 5)
        .setting("drain_secs", 15);
    let mut fleet = Fleet::with(builder).await?;
    let load = Load::start(&fleet, clients, seed).await?;
    let history = load.history.clone();
    let mut nemesis = Nemesis::new(seed, history.clone());
    let began = Instant::now();
    // The long form is over when both are reached: on a busy machine nodes take longer to start.
    let deaths = if secs >= LONG { DEATHS } else { 0 };
    while began.elapsed() < Duration::from_secs(secs) || nemesis.deaths < deaths {
        if let Err(error) = nemesis.strike(&mut fleet).await {
            let place = fleet.keep(&format!("chaos-{seed}"), &history.lines())?;
            println!("{}", check(&history.lines()));
            return Err(error.context(format!("history and logs are in {}", place.display())));
        }
    }
    nemesis.settle(&mut fleet.cluster).await?;
    let mut secrets = load.finish().await?;
    everything_works_again(&mut fleet).await?;
    // As arguments of calls are written.
    secrets.push("\"call\":\"client-".to_owned());
    let searched = nothing_was_told(&fleet, &secrets)?;
    history.executed(&fleet.fixture.held);
    let lines = history.lines();
    let report = check(&lines);
    println!(
        "{report}\nlogs: {searched} lines, {} tokens and session ids, none in them\nfaults: {}, nodes that died: {}, length {:?}",
        secrets.len() - 1,
        nemesis.strikes,
        nemesis.deaths,
        began.elapsed()
    );
    if !report.violations.is_empty() {
        let place = fleet.keep(&format!("chaos-{seed}"), &lines)?;
        println!("history and logs are in {}", place.display());
    }
    assert!(report.violations.is_empty(), "a promise was broken");
    let outcomes = |kind| report.outcomes.get(kind).copied().unwrap_or(0);
    let (results, over_limit) = (outcomes("result"), outcomes("HTTP 429"));
    assert!(
        results * 2 > report.calls - over_limit,
        "hardly any call had a result"
    );
    assert!(
        report.calls as u64 > secs * 4 && report.events as u64 > secs * 4,
        "too little load"
    );
    assert!(nemesis.strikes as u64 >= secs / 8, "too few faults");
    if secs >= SHORT {
        assert!(nemesis.strikes >= nemesis::KINDS, "not every kind of harm");
        every_client_worked(&report);
        every_rule_had_something_to_judge(&report);
    }
    Ok(())
}

/// Each SDK, in each era that it speaks, had results. Calls that an SDK gives up by its own design
/// are a small part.
fn every_client_worked(report: &Report) {
    let mut names: Vec<_> = Sdk::ALL.iter().map(|sdk| sdk.name().to_owned()).collect();
    let modern = Sdk::ALL.iter().filter(|sdk| sdk.is_of_both_eras());
    names.extend(modern.map(|sdk| format!("{}m", sdk.name())));
    for name in names {
        let (results, calls) = report.clients.get(&name).copied().unwrap_or_default();
        assert!(
            results >= 10 && results * 2 > calls,
            "{name}: {results} results of {calls} calls"
        );
    }
    assert!(
        report.given_up * 20 < report.calls,
        "{} calls were given up",
        report.given_up
    );
}

/// A rule that judges nothing keeps nothing. A run of 200 s has several times as much.
fn every_rule_had_something_to_judge(report: &Report) {
    for (what, count, least) in [
        ("answers", report.answers, 50),
        ("cancels", report.cancels, 30),
        ("cancels that no fault delays", report.cancels_judged, 5),
        ("changes of lists", report.changes, 20),
        ("tellings that no fault delays", report.told, 10),
        ("calls under a limit", report.admissions, 50),
        ("undisturbed requests", report.undisturbed, 300),
    ] {
        assert!(count >= least, "{what}: {count}");
    }
}

/// TEST-S11: what nodes, Redis, Postgres and the balancer wrote meanwhile holds no token, no
/// argument and no session id. Answers how many lines that was.
fn nothing_was_told(fleet: &Fleet, secrets: &[String]) -> Result<usize> {
    let cluster = &fleet.cluster;
    let nodes = cluster.nodes.iter().chain([&cluster.auth]);
    let mut logs: Vec<(&str, String)> = nodes
        .map(|node| (node.name.as_str(), node.output()))
        .collect();
    for (name, log) in &logs {
        ensure!(log.lines().count() > 50, "{name} wrote too little to tell");
    }
    logs.push(("redis", cluster.redis.log()));
    logs.push(("postgres", cluster.postgres.log()));
    logs.push(("balancer", cluster.proxy.log()));
    ensure!(secrets.len() > 50, "{} secrets", secrets.len());
    // The end of a token is as secret as the whole.
    let ends = secrets.iter().map(|secret| {
        let from = secret.len().saturating_sub(24);
        regex::escape(secret.get(from..).unwrap_or(secret))
    });
    let sought = RegexBuilder::new(&ends.collect::<Vec<_>>().join("|"))
        .size_limit(1 << 28)
        .build()?;
    for (name, log) in &logs {
        if let Some(line) = log.lines().find(|line| sought.is_match(line)) {
            bail!("TEST-S11: {name} wrote: {line}");
        }
    }
    Ok(logs.iter().map(|(_, log)| log.lines().count()).sum())
}

/// TEST-C13: after the last fault every node is there and serves old and new clients.
async fn everything_works_again(fleet: &mut Fleet) -> Result<()> {
    for node in 0..fleet.cluster.nodes.len() {
        assert!(
            fleet.cluster.nodes[node].is_running()?,
            "{} fell over by itself:\n{}",
            fleet.cluster.nodes[node].name,
            fleet.cluster.nodes[node].last_words()
        );
        let client = fleet.on(node, &fleet.mcp)?;
        eventually("the node serves", Duration::from_secs(15), async || {
            let Ok((session, _)) = client.initialize(LEGACY).await else {
                return false;
            };
            let answer = session.request("tools/list", json!({})).await;
            answer.is_ok_and(|answer| answer.json.get("result").is_some())
        })
        .await?;
    }
    Ok(())
}
