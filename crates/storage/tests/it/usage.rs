//! Counts of calls and their log: flushed once, folded without a loss, carried over.

use std::{collections::HashSet, sync::Arc};

use portolan_metering::{
    CallEra, CallerKind, Key, Measures, MeteringConfig, Pending, Rollup, Totals, rollup,
};
use portolan_model::{
    Clock, Timestamp,
    id::{CallId, ServerId, TenantId},
    registry::CallOutcome,
};
use portolan_storage::{
    Reason, Store,
    platform::{
        calls::{self, Call, Wanted},
        usage::{
            self, Level,
            folds::{self, Step},
        },
    },
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use time::{Duration, UtcOffset};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{database::Database, scene::Scene};

fn key(tenant: TenantId, item: &str, outcome: i16) -> Key {
    Key {
        tenant,
        server: Some(ServerId::from_uuid(Uuid::from_u128(7))),
        item: item.into(),
        client: Some("Claude".into()),
        caller: CallerKind::Person.code(),
        outcome,
        era: CallEra::Session.code(),
    }
}

fn counts(key: Key, calls: u64) -> Rollup {
    let mut totals = Totals::default();
    for n in 0..calls {
        totals.add(Measures {
            took_us: 1_000 + n,
            backend_us: 500,
            bytes_in: 10,
            bytes_out: 100,
        });
    }
    [(key, totals)].into_iter().collect()
}

fn minute(at: Timestamp) -> i64 {
    at.unix_timestamp().div_euclid(60)
}

/// Flushes one batch, as a process that has flushed nothing else.
async fn flush(store: &Store, rollup: Rollup, minute_of: Timestamp, now: Timestamp) {
    let mut pending = Pending::default();
    pending.add(minute(minute_of), rollup);
    let mut tx = store.edge(Reason::Metering).await.unwrap();
    let batch = pending.next_batch().unwrap();
    assert!(
        usage::flush(&mut tx, Uuid::new_v4(), batch, now)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
}

/// Calls of a tenant at a level, in two days around a time.
async fn seen(store: &Store, tenant: TenantId, level: Level, at: Timestamp) -> u64 {
    let mut tx = store.tenant(tenant).await.unwrap();
    let day = Duration::DAY;
    let midnight = at
        .to_offset(UtcOffset::UTC)
        .replace_time(time::Time::MIDNIGHT);
    let mut calls = 0;
    usage::read(&mut tx, level, midnight - day, midnight + 3 * day, |sum| {
        assert_eq!(sum.totals.durations.count(), sum.totals.calls, "{sum:?}");
        calls += sum.totals.calls;
    })
    .await
    .unwrap();
    calls
}

async fn seen_at_all_levels(store: &Store, tenant: TenantId, at: Timestamp) -> [u64; 3] {
    [
        seen(store, tenant, Level::Minute, at).await,
        seen(store, tenant, Level::Hour, at).await,
        seen(store, tenant, Level::Day, at).await,
    ]
}

/// Folds all that can be folded; returns the calls of the folds.
async fn fold(store: &Store, now: Timestamp) -> u64 {
    assert!(folds::prepare(store, now).await.unwrap());
    let mut folded = 0;
    loop {
        match folds::step(store, now).await.unwrap() {
            Step::Folded { calls } => folded += calls,
            Step::Idle => return folded,
            Step::Elsewhere => panic!("nothing else folds"),
        }
    }
}

/// Rows of a table, as its owner counts them.
async fn rows(database: &Database, table: &str) -> i64 {
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let count = AssertSqlSafe(format!("select count(*) from {table}"));
    sqlx::query_scalar(count)
        .fetch_one(&mut owner)
        .await
        .unwrap()
}

/// Rule: METER-6. A process that does not know whether its flush arrived sends it again.
#[tokio::test]
async fn a_flush_that_is_tried_again_counts_once() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let (tenant, now) = (TenantId::generate(), Clock::system().now());
    let process = Uuid::new_v4();
    let mut pending = Pending::default();
    pending.add(minute(now), counts(key(tenant, "get", 0), 3));
    for is_new in [true, false, false] {
        let mut tx = store.edge(Reason::Metering).await.unwrap();
        let batch = pending.next_batch().unwrap();
        let written = usage::flush(&mut tx, process, batch, now).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(written, is_new);
    }
    pending.written();
    pending.add(minute(now), counts(key(tenant, "get", 0), 4));
    let mut tx = store.edge(Reason::Metering).await.unwrap();
    let batch = pending.next_batch().unwrap();
    assert!(usage::flush(&mut tx, process, batch, now).await.unwrap());
    drop(tx);
    assert_eq!(
        seen_at_all_levels(&store, tenant, now).await,
        [3; 3],
        "rolled back"
    );
    let mut tx = store.edge(Reason::Metering).await.unwrap();
    assert!(
        usage::flush(&mut tx, process, pending.next_batch().unwrap(), now)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert_eq!(seen_at_all_levels(&store, tenant, now).await, [7; 3]);
    let stranger = TenantId::generate();
    assert_eq!(seen_at_all_levels(&store, stranger, now).await, [0; 3]);
}

/// Rule: METER-8. At each step of the folds every level shows every call once.
#[tokio::test]
async fn folds_keep_every_call_at_every_level() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let (tenant, other) = (TenantId::generate(), TenantId::generate());
    let begin = Clock::system().now();
    let mut expected = 0;
    // Three hours of a flush each twenty minutes, with folds between them.
    for step in 0..9 {
        let now = begin + Duration::minutes(20 * step);
        fold(&store, now).await;
        for (tool, outcome, calls) in [("get", 0, 5), ("put", 1, 2), ("get", 0, 1)] {
            flush(&store, counts(key(tenant, tool, outcome), calls), now, now).await;
            expected += calls;
        }
        flush(&store, counts(key(other, "get", 0), 1), now, now).await;
        assert_eq!(
            seen_at_all_levels(&store, tenant, begin).await,
            [expected; 3],
            "{step}"
        );
    }
    let end = begin + Duration::hours(30);
    let mut at = begin + Duration::hours(3);
    while at < end {
        fold(&store, at).await;
        assert_eq!(
            seen_at_all_levels(&store, tenant, begin).await,
            [expected; 3],
            "{at}"
        );
        at += Duration::minutes(90);
    }
    assert_eq!(seen_at_all_levels(&store, other, begin).await, [9; 3]);
    assert_eq!(rows(&database, "usage_flush").await, 0, "all is folded");
    assert!(rows(&database, "usage_day").await > 0);

    // Late for its hour and its day: a node that could not write for long.
    flush(&store, counts(key(tenant, "get", 0), 11), begin, end).await;
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [expected + 11; 3]
    );
    assert!(fold(&store, end + Duration::minutes(6)).await >= 11);
    assert_eq!(rows(&database, "usage_flush").await, 0);
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [expected + 11; 3]
    );
}

/// Rule: METER-8. Several processes fold at once, while nodes flush.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn folds_at_once_and_flushes_beside_lose_nothing() {
    const ROUNDS: u64 = 20;
    let database = Database::new().await;
    let store = database.store(16).await;
    let tenant = TenantId::generate();
    let begin = Clock::system().now();
    assert!(folds::prepare(&store, begin).await.unwrap());
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                // By the clock of each node, in partitions that are folded meanwhile.
                let mut at = begin + Duration::minutes(i64::try_from(round % 4).unwrap() * 5);
                loop {
                    let mut pending = Pending::default();
                    pending.add(minute(begin), counts(key(tenant, "get", 0), 1));
                    let mut tx = store.edge(Reason::Metering).await.unwrap();
                    let batch = pending.next_batch().unwrap();
                    let written = usage::flush(&mut tx, Uuid::new_v4(), batch, at).await;
                    if written.is_ok() && tx.commit().await.is_ok() {
                        break;
                    }
                    // That partition is folded: the time of a node goes on.
                    at += Duration::minutes(5);
                }
            }
        });
    }
    for _ in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            for _ in 0..30 {
                let _ = folds::step(&store, begin + Duration::minutes(18)).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [4 * ROUNDS; 3]
    );
    fold(&store, begin + Duration::hours(2)).await;
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [4 * ROUNDS; 3]
    );
    assert_eq!(rows(&database, "usage_flush").await, 0);
}

/// Rule: METER-5. Hours and days have as many keys as a minute may have, and every call.
#[tokio::test]
async fn folded_hours_and_days_keep_to_the_cap_of_keys() {
    const KEYS: u64 = 12_000;
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = TenantId::generate();
    // Whole hours of one day (UTC).
    let begin = Clock::system().now().to_offset(UtcOffset::UTC);
    let begin = begin.replace_time(time::macros::time!(20:10)) + Duration::DAY;
    let mut one = Totals::default();
    one.add(Measures {
        took_us: 1_000,
        backend_us: 500,
        bytes_in: 10,
        bytes_out: 100,
    });
    for (n, after) in [0, 10, 60].into_iter().enumerate() {
        let now = begin + Duration::minutes(after);
        assert!(folds::prepare(&store, now).await.unwrap());
        let rows = (0..KEYS).map(|tool| (key(tenant, &format!("t{n}-{tool}"), 0), one.clone()));
        flush(&store, rows.collect(), now, now).await;
    }
    let folded = begin + Duration::hours(3);
    fold(&store, folded).await;
    let most = i64::try_from(rollup::MOST_KEYS).unwrap();
    assert_eq!(rows(&database, "usage_minute").await, 36_000);
    let hours = rows(&database, "usage_hour").await;
    assert_eq!(hours, most + 1 + 12_000, "24,000 and 12,000 keys");
    fold(&store, begin + Duration::hours(6)).await;
    assert_eq!(rows(&database, "usage_day").await, most);
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [3 * KEYS; 3]
    );
}

/// Rule: METER-9. Partitions go as a whole, and none before it is folded.
#[tokio::test]
async fn partitions_are_dropped_when_their_time_is_over() {
    let database = Database::new().await;
    let store = database.store(4).await;
    let (tenant, begin) = (TenantId::generate(), Clock::system().now());
    let config = MeteringConfig::default();
    flush(&store, counts(key(tenant, "get", 0), 5), begin, begin).await;
    let mut tx = store.tenant(tenant).await.unwrap();
    calls::insert_many(&mut tx, &[call(tenant, begin, "get")])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    assert!(folds::prepare(&store, begin).await.unwrap());
    let months = begin + Duration::days(100);
    folds::retire(&store, &config, months).await.unwrap();
    assert_eq!(rows(&database, "call_log").await, 0, "30 days");
    assert_eq!(
        seen_at_all_levels(&store, tenant, begin).await,
        [5; 3],
        "not folded yet"
    );

    let soon = begin + Duration::days(3);
    fold(&store, soon).await;
    assert!(folds::retire(&store, &config, soon).await.unwrap() > 0);
    assert_eq!(rows(&database, "usage_minute").await, 0, "48 hours");
    assert_eq!(rows(&database, "usage_hour").await, 1);
    assert_eq!(seen(&store, tenant, Level::Day, begin).await, 5);
    folds::retire(&store, &config, months).await.unwrap();
    assert_eq!(rows(&database, "usage_hour").await, 0, "90 days");
    assert_eq!(seen(&store, tenant, Level::Day, begin).await, 5);
    folds::retire(&store, &config, begin + Duration::days(24 * 30))
        .await
        .unwrap();
    assert_eq!(rows(&database, "usage_day").await, 1, "25 months");
    folds::retire(&store, &config, begin + Duration::days(28 * 31))
        .await
        .unwrap();
    assert_eq!(rows(&database, "usage_day").await, 0);
}

fn call(tenant: TenantId, at: Timestamp, item: &str) -> Call<'static> {
    Call {
        id: CallId::at(at),
        tenant,
        at,
        server: Some((ServerId::from_uuid(Uuid::from_u128(7)), "pets".into())),
        item: item.into(),
        client: Some("Claude 100%".into()),
        client_version: Some("2.1".into()),
        client_id: Some("cli_1"),
        caller: CallerKind::Service,
        user: None,
        grant: None,
        revision: Some("2025-11-25"),
        era: CallEra::Session,
        outcome: CallOutcome::ToolError,
        status: Some(404),
        measures: Measures {
            took_us: 12_000,
            backend_us: 11_000,
            bytes_in: 20,
            bytes_out: 300,
        },
        wait_us: 40,
        error: Some("The API answered 404.".to_owned()),
        session: Some("ab".to_owned()),
        trace: Some([9; 16]),
        node: Some(Arc::from("n1")),
        weight: 4,
    }
}

/// Rule: METER-7. Pages neither miss nor repeat a call, also with calls of one moment.
#[tokio::test]
async fn pages_of_calls_have_each_call_once() {
    let store = Database::new().await.store(4).await;
    let (tenant, other) = (TenantId::generate(), TenantId::generate());
    let now = Clock::system().now();
    let mut written = Vec::new();
    for n in 0..25 {
        written.push(call(tenant, now - Duration::milliseconds(n / 5), "get"));
    }
    let foreign = call(other, now, "get");
    let mut tx = store.edge(Reason::Metering).await.unwrap();
    calls::insert_many(&mut tx, written.iter().chain([&foreign]))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.tenant(tenant).await.unwrap();
    let mut wanted = Wanted::default();
    let mut ids = Vec::new();
    loop {
        let page = calls::list(&mut tx, &wanted, 7).await.unwrap();
        let Some(last) = page.last() else { break };
        wanted.before = Some((last.at, last.id));
        ids.extend(page.iter().map(|entry| entry.id));
    }
    assert_eq!(ids.len(), 25);
    let expected: HashSet<CallId> = written.iter().map(|call| call.id).collect();
    assert_eq!(ids.into_iter().collect::<HashSet<_>>(), expected);

    let found = calls::find(&mut tx, written[3].id).await.unwrap().unwrap();
    assert_eq!(
        (found.item.as_str(), found.weight, found.status),
        ("get", 4, Some(404))
    );
    assert_eq!(found.trace.as_deref(), Some(&[9; 16][..]));
    assert!(
        calls::find(&mut tx, foreign.id).await.unwrap().is_none(),
        "another tenant's"
    );
    assert!(
        calls::find(&mut tx, CallId::at(now))
            .await
            .unwrap()
            .is_none()
    );
}

/// Names of arguments come from clients, and Postgres holds no U+0000.
#[tokio::test]
async fn an_error_with_a_nul_is_kept_with_a_mark_in_its_place() {
    let store = Database::new().await.store(4).await;
    let (tenant, now) = (TenantId::generate(), Clock::system().now());
    let mut tx = store.tenant(tenant).await.unwrap();
    let mut named = call(tenant, now, "get");
    named.error = Some("/a\0b is not known".to_owned());
    let mut bare = call(tenant, now, "put");
    (bare.error, bare.client, bare.client_id) = (None, None, None);
    (bare.server, bare.session, bare.trace) = (None, None, None);
    calls::insert_many(&mut tx, [&named, &bare]).await.unwrap();
    let found = calls::find(&mut tx, named.id).await.unwrap().unwrap();
    assert_eq!(found.error.as_deref(), Some("/a\u{fffd}b is not known"));
    assert_eq!(found.client_id.as_deref(), Some("cli_1"));
    let found = calls::find(&mut tx, bare.id).await.unwrap().unwrap();
    assert_eq!((found.error, found.client), (None, None));
    assert_eq!((found.server_slug, found.trace), (None, None));
}

/// A filter finds what fits it, and a text with `%` is a text.
#[tokio::test]
async fn a_filter_finds_what_fits_and_nothing_else() {
    let store = Database::new().await.store(4).await;
    let (tenant, now) = (TenantId::generate(), Clock::system().now());
    let mut tx = store.tenant(tenant).await.unwrap();
    let mut quick = call(tenant, now, "list");
    quick.outcome = CallOutcome::Ok;
    quick.client = Some("Cursor".into());
    quick.measures.took_us = 500;
    quick.era = CallEra::Stateless;
    let both = [call(tenant, now - Duration::minutes(5), "get"), quick];
    calls::insert_many(&mut tx, &both).await.unwrap();
    let get = |wanted: Wanted| (wanted, "get");
    let list = |wanted: Wanted| (wanted, "list");
    let any = Wanted::default;
    for (wanted, item) in [
        get(Wanted {
            item: Some("get".to_owned()),
            ..any()
        }),
        get(Wanted {
            client: Some("CLAUDE 100%".to_owned()),
            ..any()
        }),
        list(Wanted {
            client: Some("curs".to_owned()),
            ..any()
        }),
        list(Wanted {
            outcomes: Some(vec![0]),
            ..any()
        }),
        get(Wanted {
            outcomes: Some(vec![1, 3]),
            ..any()
        }),
        get(Wanted {
            longer_us: Some(1_000),
            ..any()
        }),
        list(Wanted {
            shorter_us: Some(1_000),
            ..any()
        }),
        list(Wanted {
            era: Some(1),
            ..any()
        }),
        get(Wanted {
            to: Some(now - Duration::MINUTE),
            ..any()
        }),
        list(Wanted {
            from: Some(now - Duration::MINUTE),
            ..any()
        }),
    ] {
        let found = calls::list(&mut tx, &wanted, 10).await.unwrap();
        let items: Vec<_> = found.iter().map(|entry| entry.item.as_str()).collect();
        assert_eq!(items, [item], "{wanted:?}");
    }
    for wanted in [
        Wanted {
            client: Some("%".to_owned()),
            outcomes: Some(vec![0]),
            ..any()
        },
        Wanted {
            users: Some(Vec::new()),
            ..any()
        },
        Wanted {
            server: Some(ServerId::generate()),
            ..any()
        },
    ] {
        let found = calls::list(&mut tx, &wanted, 10).await.unwrap();
        assert!(found.is_empty(), "{wanted:?}: {found:?}");
    }
}

/// Rule: METER-12. Calls of before are in the new log and in the counts; what nodes of the previous
/// release write afterwards is seen in its place, and nothing twice.
#[tokio::test]
async fn calls_of_the_previous_release_are_carried_over() {
    const CARRY: [&str; 2] = [
        include_str!("../../../../migrations/20261126100300_tool_calls_upto.sql"),
        include_str!("../../../../migrations/20261126100400_tool_calls_copied.sql"),
    ];
    let database = Database::new().await;
    let store = database.store(4).await;
    let tenant = Scene::new(&store).await.tenant;
    let mut owner = PgConnection::connect(database.owner_url()).await.unwrap();
    let insert = |age: &str, tool: &str, outcome: &str| {
        AssertSqlSafe(format!(
            "insert into tool_calls (tenant_id, at, server_id, server_slug, tool_name, client_name, outcome, duration_ms)
             values ('{}', now() - interval '{age}', gen_random_uuid(), 'pets', '{tool}', 'Claude', '{outcome}', 12)",
            tenant.uuid()
        ))
    };
    for (age, outcome) in [
        ("20 days", "ok"),
        ("3 days", "tool_error"),
        ("5 hours", "ok"),
        ("5 hours", "invalid_arguments"),
        ("1 second", "internal"),
    ] {
        sqlx::raw_sql(insert(age, "before", outcome))
            .execute(&mut owner)
            .await
            .unwrap();
    }
    // As if the migrations ran now.
    sqlx::raw_sql("delete from tool_calls_carried")
        .execute(&mut owner)
        .await
        .unwrap();
    for file in CARRY {
        let mut tx = owner.begin().await.unwrap();
        sqlx::raw_sql(file).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }
    // A node of the previous release goes on.
    sqlx::raw_sql(insert("0 seconds", "after", "ok"))
        .execute(&mut owner)
        .await
        .unwrap();

    let now = Clock::system().now() + Duration::SECOND;
    let mut tx = store.tenant(tenant).await.unwrap();
    let listed = calls::list(&mut tx, &Wanted::default(), 50).await.unwrap();
    let items: Vec<_> = listed.iter().map(|entry| entry.item.as_str()).collect();
    assert_eq!(
        items,
        ["after", "before", "before", "before", "before", "before"]
    );
    let ids: HashSet<_> = listed.iter().map(|entry| entry.id).collect();
    assert_eq!(ids.len(), 6);
    for entry in &listed {
        let found = calls::find(&mut tx, entry.id).await.unwrap();
        assert_eq!(found.map(|found| found.item).as_ref(), Some(&entry.item));
    }
    let hours = usage::by_hour(&mut tx, now).await.unwrap();
    let sum = |of: fn(&usage::Hour) -> i64| hours.iter().map(of).sum::<i64>();
    assert_eq!(hours.len(), 24);
    assert_eq!(sum(|hour| hour.calls), 4);
    assert_eq!(sum(|hour| hour.errors), 1);
    assert_eq!(sum(|hour| hour.rejected), 1);
    let far = now - Duration::days(30);
    for level in [Level::Minute, Level::Hour, Level::Day] {
        let mut after = 0;
        let mut calls = 0;
        usage::read(&mut tx, level, far, now + Duration::DAY, |sum| {
            calls += sum.totals.calls;
            after += u64::from(sum.item == "after" && sum.outcome == 0);
        })
        .await
        .unwrap();
        assert_eq!(after, 1, "the call of the previous release: {level:?}");
        if level == Level::Day {
            assert_eq!(calls, 6);
        }
    }
    assert!(calls::counts(&mut tx).await.unwrap().has_call);
    let old: i64 = sqlx::query_scalar("select count(*) from tool_calls")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    assert_eq!(old, 6, "the previous release still reads its table");
}

/// Rule: METER-14. A search goes on where it ended, misses nothing, and ends.
#[tokio::test]
async fn a_bounded_search_goes_on_until_all_is_read() {
    let store = Database::new().await.store(4).await;
    let (tenant, now) = (TenantId::generate(), Clock::system().now());
    let mut tx = store.tenant(tenant).await.unwrap();
    // Four calls of each moment; a search ends within one.
    let written: Vec<Call<'_>> = (0..60)
        .map(|n| {
            let item = if n % 25 == 3 { "rare" } else { "get" };
            call(tenant, now - Duration::milliseconds(n / 4), item)
        })
        .collect();
    calls::insert_many(&mut tx, &written).await.unwrap();
    for (item, times) in [("rare", 3), ("none", 0), ("get", 57)] {
        let mut wanted = Wanted {
            item: Some(item.to_owned()),
            ..Wanted::default()
        };
        let (mut ids, mut pages) = (Vec::new(), 0);
        loop {
            pages += 1;
            assert!(pages <= 60, "{item}: it ends");
            let found = calls::search(&mut tx, &wanted, 5, 10).await.unwrap();
            ids.extend(found.entries.iter().map(|entry| entry.id));
            let last = found.entries.last().filter(|_| found.entries.len() == 5);
            let next = last.map(|last| (last.at, last.id)).or(found.next);
            if next.is_none() {
                break;
            }
            wanted.before = next;
        }
        assert_eq!(ids.len(), times, "{item}: each once");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), times, "{item}");
        assert!(pages >= 5, "{item}: {pages} pages of at most ten entries");
    }
    let all = calls::search(&mut tx, &Wanted::default(), 100, 10).await;
    let all = all.unwrap();
    assert_eq!(
        (all.entries.len(), all.next),
        (60, None),
        "no filter, no bound"
    );
}
