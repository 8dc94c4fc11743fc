//! The cost of counts and of the log of calls: what Postgres and the node pay for them, and whether
//! the sums are the calls.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use portolan_metering::{CallEra, CallerKind, Key, Measures, Meter, Pending};
use portolan_model::{Clock, id::TenantId};
use portolan_storage::{
    Reason, StorageConfig, Store,
    platform::usage::{self, folds},
};
use portolan_tests::sql::Sql;

use crate::{
    Arguments,
    figure::{Bar, Figure, Table, number},
    paced::Paced,
    process::{self, Spent},
    scene::Alone,
};

/// Calls a second, and for how long after the budget of the log is half used.
const RATE: u32 = 2_000;
const WARM: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_secs(40);

/// Connections of the load.
const CONNECTIONS: usize = 32;

/// A node drains every ten seconds, and writes within two.
const FLUSHED: Duration = Duration::from_secs(25);

/// Calls a second of the synthetic load.
const SYNTHETIC: u64 = 10_000;

/// Measures one process at a steady rate, then the meter by itself.
pub(crate) async fn measure(
    arguments: &Arguments,
    api: std::net::SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let alone = Alone::new(api).await?;
    let per_call = steady(&alone, table).await?;
    synthetic(arguments, &alone, per_call, table).await
}

/// Calls that the database has counted.
async fn counted(sql: &mut Sql) -> Result<usize> {
    let rows = sql
        .ask("select coalesce(sum(calls), 0)::bigint from (select calls from usage_flush union all select calls from usage_minute) counted")
        .await?;
    Ok(rows[0][0].parse()?)
}

/// Waits until so many calls are counted, and for nothing longer than that.
async fn wait_for(sql: &mut Sql, calls: usize) -> Result<usize> {
    let until = Instant::now() + FLUSHED;
    loop {
        let seen = counted(sql).await?;
        if seen >= calls || Instant::now() > until {
            return Ok(seen);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Processor seconds of the node for a call.
async fn steady(alone: &Alone, table: &mut Table) -> Result<f64> {
    let (process, access) = (alone.process_id(), &alone.access);
    let sessions = access.sessions(CONNECTIONS).await?;
    let requests: Vec<_> = sessions
        .iter()
        .map(|session| access.call(session))
        .collect();
    // Autovacuum does this once in the first minutes of a new database, with or without calls; see
    // docs/performance.md.
    alone.owner_sql().await?.ask("vacuum analyze").await?;
    let load = Paced::start(access.address, requests, RATE, "NOBGO");
    tokio::time::sleep(WARM).await;
    let (begun, answers) = (Instant::now(), load.answers().0);
    let node = Spent::by(process)?;
    let postgres = process::cpu_seconds_of_children(process)?;
    tokio::time::sleep(MEASURED).await;
    let calls = load.answers().0 - answers;
    let node = Spent::by(process)?.since(&node);
    let postgres = process::cpu_seconds_of_children(process)? - postgres;
    let rate = number(calls) / begun.elapsed().as_secs_f64();
    drop(load);
    table.add(Figure {
        what: format!("Postgres at {RATE} calls/s, of the node's time"),
        seen: postgres / node,
        unit: "",
        bar: Bar::AtMost(0.05),
        note: format!("{rate:.0} calls/s; node {node:.2} s, Postgres {postgres:.2} s"),
    });
    Ok(node / number(calls))
}

/// A key of the synthetic load.
fn key(tenant: TenantId, item: &Arc<str>, client: &Arc<str>) -> Key {
    Key {
        tenant,
        server: None,
        item: Arc::clone(item),
        client: Some(Arc::clone(client)),
        caller: CallerKind::Person.code(),
        outcome: 0,
        era: CallEra::Session.code(),
    }
}

/// The meter under a synthetic load, written to the same database, folded, and compared.
async fn synthetic(
    arguments: &Arguments,
    alone: &Alone,
    per_call: f64,
    table: &mut Table,
) -> Result<()> {
    let seconds = if arguments.strict { 600 } else { 30 };
    let store = open(&alone.postgres()).await?;
    let meter = Arc::new(Meter::new(2));
    let is_over = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let recording: Vec<_> = (0..2)
        .map(|_| {
            let (meter, is_over) = (Arc::clone(&meter), Arc::clone(&is_over));
            thread::spawn(move || record(&meter, &is_over, begun, seconds))
        })
        .collect();
    let clock = Clock::system();
    let (process, mut pending) = (uuid::Uuid::new_v4(), Pending::default());
    let mut sql = alone.sql().await?;
    let before = counted(&mut sql).await?;
    let mut flush = async || -> Result<()> {
        let now = clock.now();
        pending.add(now.unix_timestamp().div_euclid(60), meter.drain());
        while let Some(batch) = pending.next_batch() {
            let mut tx = store.edge(Reason::Metering).await?;
            usage::flush(&mut tx, process, batch, now).await?;
            tx.commit().await?;
            pending.written();
        }
        Ok(())
    };
    while begun.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        flush().await?;
        folds::step(&store, clock.now()).await?;
    }
    is_over.store(true, Ordering::Release);
    let (mut calls, mut cpu) = (0, 0.0);
    for thread in recording {
        let (recorded, spent) = thread.join().ok().context("a thread that records")??;
        calls += recorded;
        cpu += spent;
    }
    flush().await?;
    let calls = usize::try_from(calls)?;
    let seen = wait_for(&mut sql, before + calls).await? - before;
    ensure!(seen > 0, "nothing was counted");
    table.add(Figure {
        what: format!("counted of {SYNTHETIC} calls/s in {seconds} s"),
        seen: number(seen) / number(calls),
        unit: "",
        bar: Bar::AtLeast(1.0),
        note: format!("{seen} of {calls}"),
    });
    table.add(Figure {
        what: "the meter, of the node's time for a call".to_owned(),
        seen: cpu / number(calls) / per_call,
        unit: "",
        bar: Bar::AtMost(0.03),
        note: format!(
            "{:.0} ns of {:.0} µs",
            1e9 * cpu / number(calls),
            1e6 * per_call
        ),
    });
    Ok(())
}

/// Half of the load on one thread. Calls, and the seconds that recording took.
fn record(meter: &Meter, is_over: &AtomicBool, begun: Instant, seconds: u64) -> Result<(u64, f64)> {
    let tenants: Vec<TenantId> = (0..20).map(|_| TenantId::generate()).collect();
    let items: Vec<Arc<str>> = (0..25).map(|n| format!("tool_{n}").into()).collect();
    let clients: [Arc<str>; 2] = ["Claude".into(), "Cursor".into()];
    let (mut calls, mut spent) = (0_u64, Duration::ZERO);
    for n in 0..seconds * 100 {
        let at = begun + Duration::from_millis(10 * n);
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if is_over.load(Ordering::Acquire) {
            break;
        }
        let burst = Instant::now();
        for _ in 0..SYNTHETIC / 200 {
            let at = usize::try_from(calls)?;
            let key = key(tenants[at % 20], &items[at / 20 % 25], &clients[at % 2]);
            meter.record(
                key,
                Measures {
                    took_us: 1_000 + calls % 7_000,
                    backend_us: 900,
                    bytes_in: 100,
                    bytes_out: 1_000,
                },
            );
            calls += 1;
        }
        spent += burst.elapsed();
    }
    Ok((calls, spent.as_secs_f64()))
}

/// The database of the process, as another process of the service would open it.
pub(crate) async fn open(socket: &Path) -> Result<Store> {
    let folder = socket.to_str().context("a path of text")?;
    let config = StorageConfig {
        url: format!("postgres://portolan_dev@localhost/portolan?host={folder}").into(),
        max_connections: 4,
        acquire_timeout_ms: 5_000,
    };
    Ok(Store::connect(&config).await?)
}
