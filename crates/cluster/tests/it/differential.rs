//! The same random operations on Redis and on the model (layer D): every answer and every doorbell must be the same.
//! `PROPTEST_CASES` asks for more walks.

use portolan_cluster::store::Store;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    fixture::{connect, server::RedisServer},
    model::{Model, bounds},
    model_walks::Ears,
    walk::{Bases, Draw, Op, draws, perform},
};

#[tokio::test]
async fn redis_does_what_the_model_does() {
    let server = RedisServer::start();
    // The same walks on each run: a difference is found again without being written down.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut store = connect(&server, bounds()).await;
    for walk in 0..Config::default().cases.max(300) {
        let draws = draws(120).new_tree(&mut runner).expect("drawn").current();
        if walk % 20 == 0 {
            store = connect(&server, bounds()).await;
        }
        server.command(&["FLUSHDB"]).await;
        run(&store, walk, &draws).await;
    }
}

async fn run(store: &dyn Store, walk: u32, draws: &[Draw]) {
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
    ears.expect(&model.rung).await;
}
