//! The meter of a node.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use portolan_metering::{
    CallEra, CallerKind, Key, Measures, Meter, Rollup, Totals, key::OTHER, rollup::CappedRollup,
};
use portolan_model::id::{ServerId, TenantId};

pub(crate) fn key(tenant: TenantId, item: &Arc<str>) -> Key {
    Key {
        tenant,
        server: None,
        item: Arc::clone(item),
        client: None,
        caller: CallerKind::Person.code(),
        outcome: 0,
        era: CallEra::Session.code(),
    }
}

fn call(took_us: u64) -> Measures {
    Measures {
        took_us,
        backend_us: took_us / 2,
        bytes_in: 10,
        bytes_out: 100,
    }
}

/// Rule: METER-1. Threads record while another one drains.
#[test]
fn the_sum_of_all_drains_is_every_call() {
    const THREADS: usize = 4;
    const CALLS: u64 = 20_000;
    let meter = Arc::new(Meter::new(THREADS));
    let tenants: Vec<TenantId> = (0..3).map(|_| TenantId::generate()).collect();
    let items: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).into();
    let is_over = Arc::new(AtomicBool::new(false));
    let barrier = Arc::new(Barrier::new(THREADS + 1));
    let recording: Vec<_> = (0..THREADS)
        .map(|_| {
            let (meter, barrier) = (Arc::clone(&meter), Arc::clone(&barrier));
            let (tenants, items) = (tenants.clone(), items.clone());
            thread::spawn(move || {
                barrier.wait();
                for n in 0..CALLS {
                    let tenant = tenants[usize::try_from(n % 3).unwrap()];
                    let item = &items[usize::try_from(n % 5).unwrap()];
                    meter.record(key(tenant, item), call(n));
                }
            })
        })
        .collect();
    let draining = {
        let (meter, is_over) = (Arc::clone(&meter), Arc::clone(&is_over));
        let barrier = Arc::clone(&barrier);
        thread::spawn(move || {
            barrier.wait();
            let mut all = Rollup::default();
            while !is_over.load(Ordering::Acquire) {
                all.merge(meter.drain());
            }
            all.merge(meter.drain());
            all
        })
    };
    for thread in recording {
        thread.join().unwrap();
    }
    is_over.store(true, Ordering::Release);
    let all = draining.join().unwrap();
    let expected = CALLS * u64::try_from(THREADS).unwrap();
    assert_eq!(all.calls(), expected);
    assert_eq!(all.len(), 15);
    let took: u64 = all.iter().map(|(_, totals)| totals.took_us).sum();
    assert_eq!(took, CALLS * (CALLS - 1) / 2 * 4);
    let counted: u64 = all.iter().map(|(_, totals)| totals.durations.count()).sum();
    assert_eq!(counted, expected);
    assert!(meter.drain().is_empty());
}

/// Rule: METER-5.
#[test]
fn keys_beyond_the_cap_are_counted_as_other() {
    let meter = Meter::with_cap(1, 8);
    let (greedy, modest) = (TenantId::generate(), TenantId::generate());
    for n in 0..100 {
        meter.record(key(greedy, &format!("tool{n}").into()), call(1));
    }
    meter.record(key(modest, &"tool".into()), call(1));
    let drained = meter.drain();
    let of = |tenant: TenantId| {
        let mut rows: Vec<_> = drained
            .iter()
            .filter(|(key, _)| key.tenant == tenant)
            .map(|(key, totals)| (key.item.to_string(), totals.calls))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(of(modest), [("tool".to_owned(), 1)]);
    let rows = of(greedy);
    assert_eq!(rows.len(), 9, "{rows:?}");
    assert_eq!(rows[0], (OTHER.to_owned(), 92));
    assert_eq!(rows.iter().map(|(_, calls)| calls).sum::<u64>(), 100);
    let capped = drained.capped(4);
    assert_eq!(capped.calls(), 101);
    assert_eq!(capped.len(), 5, "four with the rest, and the other tenant");
}

/// Rule: METER-5. The memory of a fold does not grow with the keys that callers make up.
#[test]
fn a_rollup_keeps_to_its_cap_while_it_grows() {
    let (greedy, modest) = (TenantId::generate(), TenantId::generate());
    let mut totals = Totals::default();
    totals.add(call(1));
    let mut rollup = CappedRollup::new(100);
    let mut most = 0;
    for n in 0..10_000 {
        rollup.add(key(greedy, &format!("tool{n}").into()), &totals);
        rollup.add(key(greedy, &"busy".into()), &totals);
        if n % 1_000 == 0 {
            rollup.add(key(modest, &format!("tool{n}").into()), &totals);
        }
        most = most.max(rollup.len());
    }
    assert!(most <= 500, "{most}");
    let done = rollup.finish();
    assert_eq!(done.calls(), 20_010);
    let of = |tenant| done.iter().filter(move |(key, _)| key.tenant == tenant);
    assert_eq!(of(modest).count(), 10);
    assert_eq!(of(greedy).count(), 100, "with the sum of the rest");
    let named = |name: &str| {
        let mut rows = of(greedy).filter(|(key, _)| &*key.item == name);
        rows.next().map(|(_, totals)| totals.calls)
    };
    assert_eq!(named("busy"), Some(10_000));
    assert_eq!(named(OTHER), Some(10_000 - 98));
}

/// A key without calls is forgotten after five minutes, and its place goes to another one.
#[test]
fn idle_keys_make_room_for_new_ones() {
    let meter = Meter::with_cap(1, 1);
    let tenant = TenantId::generate();
    meter.record(key(tenant, &"old".into()), call(1));
    for _ in 0..40 {
        let _ = meter.drain();
    }
    meter.record(key(tenant, &"new".into()), call(1));
    let drained = meter.drain();
    let items: Vec<&str> = drained.iter().map(|(key, _)| &*key.item).collect();
    assert_eq!(items, ["new"]);
}

/// Rule: METER-2. Also after a drain, which keeps the keys.
#[test]
fn a_call_of_a_known_key_allocates_nothing() {
    let meter = Meter::new(2);
    let (tenant, server) = (TenantId::generate(), ServerId::generate());
    let (item, client): (Arc<str>, Arc<str>) = ("get_port".into(), "Claude".into());
    let record = |took: u64| {
        let key = Key {
            server: Some(server),
            client: Some(Arc::clone(&client)),
            ..key(tenant, &item)
        };
        meter.record(key, call(took));
    };
    for took in 1_000..2_000 {
        record(took);
    }
    assert_eq!(meter.drain().calls(), 1_000);
    let seen = allocation_counter::measure(|| {
        for took in 1_000..2_000 {
            record(took);
        }
    });
    assert_eq!(seen.count_total, 0, "{seen:?}");
    assert_eq!(meter.drain().calls(), 1_000);
}
