//! Revocations as an outbox (AUTH-4.3, AUTH-R9; AUTH-6.3, last paragraph): numbers and times are
//! given when rows are written, and rows are seen when they are committed. A reader that looks back
//! as far as the longest transaction took sees them all.

use std::collections::BTreeSet;

use portolan_model::Timestamp;
use portolan_storage::{
    SystemTx,
    oauth::revocations::{self, New, RevocationKind},
};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use time::Duration;

use crate::{
    database::Database,
    races,
    scene::{now, system},
};

/// Transactions that are open at once, at most.
const WRITERS: u8 = 5;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// This writer writes a row, in the transaction that it has or a new one.
    Write(usize),
    Commit(usize),
    RollBack(usize),
    /// The reader looks.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let writer = || (0..WRITERS).prop_map(usize::from);
    let step = prop_oneof![
        5 => writer().prop_map(Step::Write),
        2 => writer().prop_map(Step::Commit),
        1 => writer().prop_map(Step::RollBack),
        3 => Just(Step::Look),
    ];
    prop::collection::vec(step, 40..80)
}

/// An open transaction.
struct Writer {
    tx: SystemTx,
    begun: Timestamp,
    rows: Vec<String>,
}

/// The one that reads on from a mark, as a node does.
#[derive(Default)]
struct Reader {
    mark: Option<Timestamp>,
    /// When the transactions began that were open since the last look.
    begun: Vec<Timestamp>,
    seen: BTreeSet<String>,
    /// Rows that it would have missed if it did not look back.
    late: usize,
}

impl Reader {
    async fn look(&mut self, tx: &mut SystemTx) {
        let oldest = self.begun.iter().min().copied();
        let since = self
            .mark
            .map(|mark| oldest.map_or(mark, |oldest| oldest.min(mark)));
        let live = revocations::live(tx, since, now()).await.unwrap();
        for row in live.entries {
            let is_late = self.mark.is_some_and(|mark| row.created_at <= mark);
            if self.seen.insert(row.reference) && is_late {
                self.late += 1;
            }
        }
        self.mark = Some(live.read_at);
    }
}

#[tokio::test]
async fn r9_a_reader_that_looks_back_sees_every_row_in_whatever_order_they_are_committed() {
    let database = Database::new().await;
    let writers = database.store(WRITERS.into()).await;
    let nodes = database.store(1).await;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut committed, mut reader) = (BTreeSet::new(), Reader::default());
    let mut written = 0;
    for round in races::rounds(
        "r9_a_reader_that_looks_back_sees_every_row_in_whatever_order_they_are_committed",
    ) {
        let mut open: Vec<Option<Writer>> = (0..WRITERS).map(|_| None).collect();
        let mut steps = steps().new_tree(&mut runner).unwrap().current();
        steps.extend((0..open.len()).map(Step::Commit));
        steps.push(Step::Look);
        for step in steps {
            match step {
                Step::Write(at) => {
                    if open[at].is_none() {
                        let mut tx = system(&writers).await;
                        let begun = revocations::live(&mut tx, None, now())
                            .await
                            .unwrap()
                            .read_at;
                        reader.begun.push(begun);
                        let rows = Vec::new();
                        open[at] = Some(Writer { tx, begun, rows });
                    }
                    let writer = open[at].as_mut().unwrap();
                    written += 1;
                    let reference = format!("row {written}");
                    let new = New {
                        kind: RevocationKind::Client,
                        reference: &reference,
                        tenant: None,
                        epoch: None,
                        expires_at: now() + Duration::HOUR,
                    };
                    revocations::insert(&mut writer.tx, &new).await.unwrap();
                    writer.rows.push(reference);
                }
                Step::Commit(at) => {
                    if let Some(writer) = open[at].take() {
                        writer.tx.commit().await.unwrap();
                        committed.extend(writer.rows);
                    }
                }
                Step::RollBack(at) => drop(open[at].take()),
                Step::Look => {
                    reader.look(&mut system(&nodes).await).await;
                    assert_eq!(reader.seen, committed, "round {round}");
                    reader.begun = open.iter().flatten().map(|writer| writer.begun).collect();
                }
            }
        }
    }
    assert!(reader.late > 0, "the order was never another one");
}
