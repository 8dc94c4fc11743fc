//! Nodes that may check tokens while revocations are not received (ADR 25; CASE-136).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portolan_cluster::{
    Revocations,
    revocation_freshness::{LEAST_STALENESS, RevocationFreshness},
    store::Store,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::world::World;
use crate::fixture::fault::FaultStore;

const MOST: Duration = Duration::from_secs(60);
/// Just below the limit.
const ALMOST: Duration = Duration::from_secs(59);
const SECOND: Duration = Duration::from_secs(1);

/// A process with a feed that can stop, and a store that it can lose.
struct Process {
    revocations: Revocations,
    messages: Arc<AtomicBool>,
    store: Arc<FaultStore>,
    _stop: DropGuard,
}

impl Process {
    /// Starts a process. A node `judges`; other processes only report.
    fn start(world: &World, judges: bool) -> Self {
        let memory: Arc<dyn Store> = Arc::new(world.memory.clone());
        let store = Arc::new(FaultStore::new(memory, 1, world.tracker.clone()));
        let (revocations, stop) = (Revocations::default(), CancellationToken::new());
        let messages = Arc::new(AtomicBool::new(true));
        let (feed, heard, over) = (Arc::clone(&messages), revocations.clone(), stop.clone());
        world.tracker.spawn(async move {
            while !over.is_cancelled() {
                if feed.load(Ordering::Relaxed) {
                    heard.heard(Instant::now());
                }
                sleep(Duration::from_millis(500)).await;
            }
        });
        let revocation_freshness =
            RevocationFreshness::new(revocations.clone(), Arc::clone(&store) as _);
        if judges {
            world
                .tracker
                .spawn(revocation_freshness.enforce(MOST, stop.clone()));
        } else {
            world
                .tracker
                .spawn(revocation_freshness.report(stop.clone()));
        }
        Self {
            revocations,
            messages,
            store,
            _stop: stop.drop_guard(),
        }
    }

    fn messages(&self, messages: bool) {
        self.messages.store(messages, Ordering::Relaxed);
    }

    fn judges(&self) -> bool {
        !self.revocations.is_cut_off()
    }
}

/// All nodes check tokens for this time, at any moment.
async fn all_judge(nodes: &[&Process], length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        assert!(nodes.iter().all(|node| node.judges()));
        sleep(SECOND / 4).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s17_4_while_nobody_hears_everybody_judges() {
    let world = World::new();
    let (a, b) = (Process::start(&world, true), Process::start(&world, true));
    let auth = Process::start(&world, false);
    all_judge(&[&a, &b], SECOND * 5).await;
    for process in [&a, &b, &auth] {
        process.messages(false);
    }
    all_judge(&[&a, &b], MOST * 5).await;
    for process in [&a, &b, &auth] {
        process.messages(true);
    }
    all_judge(&[&a, &b], SECOND * 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_alone_hears_nothing_judges_no_longer_and_does_again_when_it_hears() {
    let world = World::new();
    let (a, b) = (Process::start(&world, true), Process::start(&world, true));
    sleep(SECOND * 5).await;
    b.messages(false);
    // Revocations of the last second count as received.
    all_judge(&[&a, &b], ALMOST).await;
    sleep(SECOND * 4).await;
    assert!(a.judges() && !b.judges());
    b.messages(true);
    sleep(SECOND * 2).await;
    assert!(a.judges() && b.judges());

    // The only node, and the service that revokes.
    let world = World::new();
    let (node, auth) = (Process::start(&world, true), Process::start(&world, false));
    node.messages(false);
    sleep(MOST + SECOND * 4).await;
    assert!(!node.judges());
    auth.messages(false);
    sleep(LEAST_STALENESS).await;
    assert!(node.judges(), "it was the first to lose Postgres");
}

#[tokio::test(start_paused = true)]
async fn case_136_without_both_no_node_judges_and_each_does_again_by_itself() {
    let world = World::new();
    let (a, b) = (Process::start(&world, true), Process::start(&world, true));
    sleep(SECOND * 5).await;
    // Redis alone is down.
    for node in [&a, &b] {
        node.store.cut_off(true);
    }
    all_judge(&[&a, &b], MOST * 2).await;
    // Postgres is down, too.
    for node in [&a, &b] {
        node.messages(false);
    }
    all_judge(&[&a, &b], ALMOST).await;
    sleep(SECOND * 4).await;
    assert!(!a.judges() && !b.judges());

    // Redis is back for both nodes, Postgres for one. The other node has still missed the
    // revocations that the first one receives.
    for node in [&a, &b] {
        node.store.cut_off(false);
    }
    a.messages(true);
    sleep(SECOND * 2).await;
    assert!(a.judges());
    for _ in 0..60 {
        assert!(!b.judges());
        sleep(SECOND).await;
    }
    b.messages(true);
    sleep(SECOND * 2).await;
    assert!(a.judges() && b.judges());

    // Both are down again, and only Redis returns. No process receives revocations, and both nodes
    // learn that.
    for node in [&a, &b] {
        node.messages(false);
        node.store.cut_off(true);
    }
    sleep(MOST + SECOND * 4).await;
    assert!(!a.judges() && !b.judges());
    for node in [&a, &b] {
        node.store.cut_off(false);
    }
    sleep(SECOND * 4).await;
    assert!(
        !a.judges() && !b.judges(),
        "who hears needs a moment to say so"
    );
    sleep(LEAST_STALENESS).await;
    assert!(a.judges() && b.judges());
}

/// `portolan dev`, and `serve --role all` without Redis.
#[tokio::test(start_paused = true)]
async fn a_process_on_its_own_always_judges() {
    let world = World::new();
    let alone = Process::start(&world, true);
    alone.messages(false);
    all_judge(&[&alone], MOST * 3).await;
}
