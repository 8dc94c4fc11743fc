//! Random walks of the memory store and the model, side by side (layer TEST-M).

use std::sync::Arc;

use portolan_cluster::{
    memory::MemoryStore,
    store::{NodeId, NodeMessage, Store},
};
use portolan_model::{Clock, Timestamp};
use proptest::prelude::*;
use tokio::sync::mpsc;

use crate::{
    fixture::names::{A, B, C, MINUTE},
    model::{Model, bounds},
    walk::{Bases, Draw, Op, draws, perform},
};

/// Messages of three nodes.
pub(crate) struct Ears(Vec<(NodeId, mpsc::Receiver<NodeMessage>)>);

impl Ears {
    pub(crate) async fn of(store: &dyn Store) -> Self {
        let mut ears = Vec::new();
        for node in [A, B, C] {
            ears.push((node, store.subscribe(node).await.expect("heard")));
        }
        Self(ears)
    }

    /// The messages so far, for stores that send them within a call.
    fn heard(&mut self) -> Vec<(NodeId, NodeMessage)> {
        let mut heard = Vec::new();
        for (node, ears) in &mut self.0 {
            while let Ok(message) = ears.try_recv() {
                heard.push((*node, message));
            }
        }
        heard
    }

    /// Waits for all expected messages, in order for each node.
    pub(crate) async fn expect(&mut self, notified: &[(NodeId, NodeMessage)]) {
        for (node, ears) in &mut self.0 {
            for (_, message) in notified.iter().filter(|(other, _)| other == node) {
                assert_eq!(
                    &crate::fixture::names::heard(ears).await,
                    message,
                    "{node:?}"
                );
            }
        }
    }
}

async fn walk(draws: Vec<Draw>) {
    let clock = Clock::test(Timestamp::UNIX_EPOCH + time::Duration::days(20_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(bounds(), clock.clone()));
    let mut ears = Ears::of(&*store).await;
    let mut model = Model::new(bounds());
    let mut bases = Bases::default();
    let mut done = Vec::new();
    for draw in &draws {
        let op = draw.op(&model.facts(draw));
        if let Op::Pass(time) = &op {
            clock.advance((*time).try_into().expect("short"));
        }
        // The model refills no tokens.
        if matches!(op, Op::TakenTokens(_)) && model.now > MINUTE {
            continue;
        }
        let expected = model.perform(&op);
        let found = perform(&*store, &op, &mut bases).await;
        done.push(op);
        assert_eq!(
            found,
            expected,
            "\n after {:#?}",
            &done[done.len().saturating_sub(4)..]
        );
        let mut notified = std::mem::take(&mut model.notified);
        notified.sort_by_key(|(node, _)| *node);
        assert_eq!(ears.heard(), notified, "\n after {:#?}", done.last());
    }
}

/// Number of walks of every push, over all four quarters; `PROPTEST_CASES` sets another.
const WALKS: u32 = 20_000;

/// Every reply and message of the memory store equals the model's (layer TEST-M). Four tests, so
/// that none takes a minute.
macro_rules! quarters {
    ($($name:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: ProptestConfig::default().cases.max(WALKS) / 4,
                max_shrink_iters: 500,
                failure_persistence: None,
                ..ProptestConfig::default()
            })]
            $(
                #[test]
                fn $name(draws in draws(200)) {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .build()
                        .expect("a runtime");
                    runtime.block_on(walk(draws));
                }
            )*
        }
    };
}

quarters!(
    the_memory_store_does_what_the_model_does,
    the_memory_store_does_what_the_model_does_in_the_second_quarter,
    the_memory_store_does_what_the_model_does_in_the_third_quarter,
    the_memory_store_does_what_the_model_does_in_the_last_quarter
);
