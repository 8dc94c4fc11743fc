//! Runs the same random operations on Redis and on the model (layer TEST-D). Every reply and every
//! message must be equal. `PROPTEST_CASES` sets the number of walks; a fifth of them use a cluster.

use portolan_cluster::store::Store;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    fixture::{cluster::RedisCluster, connect, connect_with, options_at, server::RedisServer},
    model::{Model, bounds},
    model_walks::Ears,
    walk::{Bases, Draw, Op, draws, perform},
};

/// Number of walks: `PROPTEST_CASES`, or the default of every push.
fn walks() -> u32 {
    Config::default().cases.max(5_000)
}

/// Uses the same walks on each run, so that a difference is found again without a file.
fn runner() -> TestRunner {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    TestRunner::new_with_rng(Config::default(), rng)
}

#[tokio::test]
async fn redis_does_what_the_model_does() {
    let (server, mut runner) = (RedisServer::start(), runner());
    let mut store = connect(&server, bounds()).await;
    let (count, mut operations) = (walks(), 0);
    for walk in 0..count {
        let draws = draws(120).new_tree(&mut runner).expect("drawn").current();
        if walk % 20 == 0 {
            store = connect(&server, bounds()).await;
        }
        server.command(&["FLUSHDB"]).await;
        operations += run(&store, walk, &draws).await;
    }
    println!("D: {count} sequences, {operations} operations on one server, 0 differences");
}

#[tokio::test]
async fn a_cluster_does_what_the_model_does() {
    let (cluster, mut runner) = (RedisCluster::start().await, runner());
    let mut store = connect_with(options_at(cluster.url(), bounds())).await;
    let (count, mut operations) = (walks() / 5, 0);
    for walk in 0..count {
        let draws = draws(120).new_tree(&mut runner).expect("drawn").current();
        if walk % 20 == 0 {
            store = connect_with(options_at(cluster.url(), bounds())).await;
        }
        cluster.all(&["FLUSHDB"]).await;
        operations += run(&store, walk, &draws).await;
    }
    println!("D: {count} sequences, {operations} operations on a cluster, 0 differences");
}

/// Runs some walks on a store with one server.
pub(crate) async fn walk_through(store: &dyn Store, server: &RedisServer, count: u32) {
    let mut runner = runner();
    for walk in 0..count {
        let draws = draws(120).new_tree(&mut runner).expect("drawn").current();
        server.command(&["FLUSHDB"]).await;
        run(store, walk, &draws).await;
    }
}

async fn run(store: &dyn Store, walk: u32, draws: &[Draw]) -> usize {
    let mut ears = Ears::of(store).await;
    let mut model = Model::new(bounds());
    let mut bases = Bases::default();
    let mut done = Vec::new();
    for draw in draws {
        let op = draw.op(&model.facts(draw));
        if matches!(op, Op::Pass(_)) {
            continue;
        }
        let expected = model.perform(&op);
        let found = perform(store, &op, &mut bases).await;
        done.push(op);
        assert_eq!(
            found,
            expected,
            "walk {walk}, after {:#?}",
            &done[done.len().saturating_sub(4)..]
        );
    }
    ears.expect(&model.notified).await;
    done.len()
}
