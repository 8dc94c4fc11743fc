//! Drained counts that wait to be written.

use std::sync::Arc;

use portolan_metering::{Measures, Pending, Rollup, Totals};
use portolan_model::id::TenantId;

use crate::meter::key;

fn counts(tenant: TenantId, item: &str, calls: u64) -> Rollup {
    let mut totals = Totals::default();
    for _ in 0..calls {
        totals.add(Measures::default());
    }
    let item: Arc<str> = item.into();
    [(key(tenant, &item), totals)].into_iter().collect()
}

/// Rule: METER-6. A batch that may be in the database already stays as it was tried.
#[test]
fn a_batch_that_was_tried_never_changes() {
    let (mut pending, tenant) = (Pending::default(), TenantId::generate());
    pending.add(7, counts(tenant, "a", 1));
    pending.add(7, counts(tenant, "a", 2));
    let first = pending.next_batch().unwrap();
    assert_eq!((first.seq, first.minute, first.rollup.calls()), (1, 7, 3));
    pending.add(7, counts(tenant, "a", 4));
    pending.add(7, counts(tenant, "b", 8));
    pending.add(8, counts(tenant, "a", 16));
    let again = pending.next_batch().unwrap();
    assert_eq!((again.seq, again.rollup.calls()), (1, 3));
    let mut seen = Vec::new();
    while let Some(batch) = pending.next_batch() {
        seen.push((batch.seq, batch.minute, batch.rollup.calls()));
        pending.written();
    }
    assert_eq!(seen, [(1, 7, 3), (2, 7, 12), (3, 8, 16)]);
    pending.add(9, Rollup::default());
    assert!(pending.next_batch().is_none(), "nothing is no batch");
}

/// Rule: METER-6. A long outage costs memory by keys, and no call.
#[test]
fn an_outage_sums_up_minutes_and_loses_no_call() {
    let (mut pending, tenant) = (Pending::default(), TenantId::generate());
    let items: Vec<String> = (0..5_000).map(|n| format!("tool{n}")).collect();
    pending.add(0, counts(tenant, "tried", 1));
    assert_eq!(pending.next_batch().unwrap().seq, 1);
    for minute in 1..=60 {
        for chunk in items.chunks(1_000) {
            let mut all = Rollup::default();
            for item in chunk {
                all.merge(counts(tenant, item, 1));
            }
            pending.add(minute, all);
        }
    }
    assert!(pending.rows() <= 205_001, "{}", pending.rows());
    assert_eq!(pending.calls(), 1 + 60 * 5_000);
    let first = pending.next_batch().unwrap();
    assert_eq!((first.seq, first.rollup.calls()), (1, 1));
    let (mut last, mut calls) = (0, 0);
    while let Some(batch) = pending.next_batch() {
        assert!(batch.seq > last, "{} after {last}", batch.seq);
        last = batch.seq;
        calls += batch.rollup.calls();
        pending.written();
    }
    assert_eq!(calls, 1 + 60 * 5_000);
}
