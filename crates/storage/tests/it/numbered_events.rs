//! Numbers of events: a reader that has all up to one misses none, in whatever order changes and
//! steps of the worker commit (HOOK-27).

use std::collections::BTreeSet;

use portolan_model::{event::EventType, id::TenantId};
use portolan_storage::{
    Reason, Store, SystemTx, TenantTx, events,
    webhooks::{
        deliveries,
        numbered::{self, NumberRange, NumberedEvent},
    },
};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::json;
use sqlx::{Connection, PgConnection};

use crate::{
    database::Database,
    races,
    scene::{Scene, now},
};

/// Changes that are open at once, at most.
const WRITERS: u8 = 4;

/// Workers whose step is open at once, at most.
const WORKERS: u8 = 2;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// This change writes an event, in the transaction that it has or a new one.
    Write(usize),
    Commit(usize),
    RollBack(usize),
    /// This worker takes up to three events, and does not commit yet.
    Spread(usize),
    CommitSpread(usize),
    RollBackSpread(usize),
    /// The reader looks.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let writer = || (0..WRITERS).prop_map(usize::from);
    let worker = || (0..WORKERS).prop_map(usize::from);
    let step = prop_oneof![
        5 => writer().prop_map(Step::Write),
        3 => writer().prop_map(Step::Commit),
        1 => writer().prop_map(Step::RollBack),
        3 => worker().prop_map(Step::Spread),
        3 => worker().prop_map(Step::CommitSpread),
        1 => worker().prop_map(Step::RollBackSpread),
        4 => Just(Step::Look),
    ];
    prop::collection::vec(step, 50..90)
}

/// A reader that goes on from the last number that it has.
#[derive(Default)]
struct Reader {
    position: i64,
    seen: Vec<String>,
    /// Events whose id is smaller than one of before: they would be lost behind an id.
    late: usize,
    largest: String,
}

async fn look(store: &Store, tenant: TenantId, after: i64) -> (Vec<NumberedEvent>, i64) {
    let mut tx = store.tenant(tenant).await.unwrap();
    let upto = numbered::newest(&mut tx).await.unwrap();
    let range = NumberRange { after, upto };
    let types = [EventType::KeyCreated.as_str().to_owned()];
    let found = numbered::list(&mut tx, range, &types, 1000).await.unwrap();
    (found, upto)
}

fn name(event: &NumberedEvent) -> String {
    event.event.data["name"].as_str().unwrap().to_owned()
}

impl Reader {
    async fn look(&mut self, store: &Store, tenant: TenantId) {
        let (found, upto) = look(store, tenant, self.position).await;
        assert!(found.is_sorted_by_key(|event| event.number));
        for event in found {
            let id = event.event.id.to_string();
            if id < self.largest {
                self.late += 1;
            } else {
                self.largest = id;
            }
            self.seen.push(name(&event));
        }
        self.position = upto;
    }
}

/// Open transactions, and the events that became visible.
struct Open {
    writers: Vec<Option<(TenantTx, Vec<String>)>>,
    workers: Vec<Option<(SystemTx, Vec<String>)>>,
    /// Names of events that are visible with their number.
    numbered: BTreeSet<String>,
    written: usize,
}

impl Open {
    async fn step(&mut self, step: Step, store: &Store, tenant: TenantId) {
        match step {
            Step::Write(at) => {
                if self.writers[at].is_none() {
                    let tx = store.tenant(tenant).await.unwrap();
                    self.writers[at] = Some((tx, Vec::new()));
                }
                self.written += 1;
                let name = format!("event {}", self.written);
                let (tx, names) = self.writers[at].as_mut().unwrap();
                let data = json!({ "name": name });
                events::write(tx, tenant, EventType::KeyCreated, data, now())
                    .await
                    .unwrap();
                names.push(name);
            }
            Step::Commit(at) => {
                if let Some((tx, _)) = self.writers[at].take() {
                    tx.commit().await.unwrap();
                }
            }
            Step::RollBack(at) => drop(self.writers[at].take()),
            Step::Spread(at) => {
                if self.workers[at].is_none() {
                    let mut tx = store.system(Reason::Webhooks).await.unwrap();
                    let taken = deliveries::spread(&mut tx, 3, now()).await.unwrap();
                    let names = taken.iter().map(|one| &one.data["name"]);
                    let names = names.filter_map(|name| Some(name.as_str()?.to_owned()));
                    self.workers[at] = Some((tx, names.collect()));
                }
            }
            Step::CommitSpread(at) => {
                if let Some((tx, names)) = self.workers[at].take() {
                    tx.commit().await.unwrap();
                    self.numbered.extend(names);
                }
            }
            Step::RollBackSpread(at) => drop(self.workers[at].take()),
            Step::Look => {}
        }
    }
}

/// Rule: HOOK-27
#[tokio::test]
async fn reader_of_numbers_sees_every_event_once_in_any_order() {
    let database = Database::new().await;
    let store = database.store((WRITERS + WORKERS + 1).into()).await;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[27; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tenant = Scene::new(&store).await.tenant;
    let mut reader = Reader::default();
    let mut open = Open {
        writers: (0..WRITERS).map(|_| None).collect(),
        workers: (0..WORKERS).map(|_| None).collect(),
        numbered: BTreeSet::new(),
        written: 0,
    };
    for round in races::rounds("reader_of_numbers_sees_every_event_once_in_any_order") {
        let mut steps = steps().new_tree(&mut runner).unwrap().current();
        steps.extend((0..usize::from(WRITERS)).map(Step::Commit));
        steps.extend((0..usize::from(WORKERS)).map(Step::CommitSpread));
        steps.push(Step::Look);
        for step in steps {
            open.step(step, &store, tenant).await;
            if let Step::Look = step {
                reader.look(&store, tenant).await;
                let seen: BTreeSet<String> = reader.seen.iter().cloned().collect();
                assert_eq!(seen.len(), reader.seen.len(), "round {round}: once each");
                assert_eq!(seen, open.numbered, "round {round}");
            }
        }
    }
    assert!(reader.late > 0, "the order was never another one");
}

/// Rule: HOOK-27
#[tokio::test]
async fn event_that_the_release_before_spreads_has_a_number() {
    let database = Database::new().await;
    let store = database.store(2).await;
    let tenant = Scene::new(&store).await.tenant;
    let mut tx = store.tenant(tenant).await.unwrap();
    for name in ["a", "b"] {
        let data = json!({ "name": name });
        events::write(&mut tx, tenant, EventType::KeyCreated, data, now())
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    sqlx::raw_sql(
        "set role portolan_core; update events set spread_at = at where data->>'name' = 'b'",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    let (found, upto) = look(&store, tenant, 0).await;
    assert_eq!(found.iter().map(name).collect::<Vec<_>>(), ["b"]);
    // A second change of the row leaves its number.
    sqlx::raw_sql(
        "update events set spread_at = at + interval '1 second' where spread_at is not null",
    )
    .execute(&mut owner)
    .await
    .unwrap();
    let mut tx = store.system(Reason::Webhooks).await.unwrap();
    deliveries::spread(&mut tx, 10, now()).await.unwrap();
    tx.commit().await.unwrap();
    let (found, _) = look(&store, tenant, upto).await;
    assert_eq!(found.iter().map(name).collect::<Vec<_>>(), ["a"]);
}
