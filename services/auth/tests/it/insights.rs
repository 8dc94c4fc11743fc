//! What happened in a period, in the console's API.

use http::{Method, StatusCode};
use portolan_metering::{CallEra, CallerKind, Key, Measures, Pending, Totals};
use portolan_model::{Timestamp, id::TenantId};
use portolan_storage::{Reason, platform::usage};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    console,
    test_service::{Browser, TestService},
};

fn key(tenant: TenantId, item: &str, client: &str, outcome: i16) -> Key {
    Key {
        tenant,
        server: None,
        item: item.into(),
        client: Some(client.into()),
        caller: CallerKind::Person.code(),
        outcome,
        era: CallEra::Session.code(),
    }
}

/// Counts so many calls of a duration at a time.
async fn count(service: &TestService, at: Timestamp, key: Key, calls: u64, took_us: u64) {
    let mut totals = Totals::default();
    for _ in 0..calls {
        totals.add(Measures {
            took_us,
            backend_us: 0,
            bytes_in: 10,
            bytes_out: 100,
        });
    }
    let mut pending = Pending::default();
    let minute = at.unix_timestamp().div_euclid(60);
    pending.add(minute, [(key, totals)].into_iter().collect());
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    let batch = pending.next_batch().unwrap();
    let now = service.clock.now();
    assert!(
        usage::flush(&mut tx, uuid::Uuid::new_v4(), batch, now)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
}

async fn insights(person: &Browser<'_>, query: &str) -> Value {
    let path = format!("/workspaces/acme/insights{query}");
    let answer = person.call(Method::GET, &path, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text);
    answer.json()
}

/// Rule: METER-1, METER-4. Every period has the same calls, in as many steps as it has.
#[tokio::test]
async fn each_period_sums_its_calls_and_those_before() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    console::workspace(&ann, "acme").await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let tenant: TenantId = me["workspaces"][0]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    count(&service, now, key(tenant, "get", "Claude", 0), 90, 10_000).await;
    count(&service, now, key(tenant, "get", "Claude", 3), 10, 800_000).await;
    count(&service, now, key(tenant, "put", "Cursor", 2), 5, 1_000).await;
    count(
        &service,
        now,
        key(TenantId::generate(), "get", "Claude", 0),
        7,
        1,
    )
    .await;
    for (period, hours, steps) in [
        ("1h", 1, 60),
        ("6h", 6, 72),
        ("24h", 24, 24),
        ("7d", 168, 28),
        ("30d", 720, 30),
        ("90d", 2_160, 90),
    ] {
        count(
            &service,
            now - Duration::hours(hours + hours / 2),
            key(tenant, period, "Before", 0),
            4,
            1,
        )
        .await;
        let shown = insights(&ann, &format!("?period={period}")).await;
        let total = &shown["total"];
        assert!(total["calls"].as_u64().unwrap() >= 105, "{period}: {total}");
        assert_eq!(
            (&total["errors"], &total["rejected"]),
            (&json!(10), &json!(5)),
            "{period}"
        );
        let all = shown["steps"].as_array().unwrap();
        assert_eq!(all.len(), steps, "{period}");
        let sum: u64 = all.iter().map(|step| step["calls"].as_u64().unwrap()).sum();
        assert_eq!(json!(sum), total["calls"], "{period}");
        let before = shown["tools"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == period);
        let before = before.unwrap_or_else(|| panic!("{period}: {shown}"));
        assert_eq!(
            (&before["calls"], &before["calls_before"]),
            (&json!(0), &json!(4)),
            "{period}"
        );
    }
    let shown = insights(&ann, "?period=1h").await;
    assert_eq!(shown["total"]["calls"], 105);
    assert_eq!(shown["before"]["calls"], 4);
    assert_eq!(shown["total"]["bytes_out"], 10_500);
    let near = |name: &str, exact: f64| {
        let seen = shown["total"][name].as_f64().unwrap();
        assert!(
            (seen - exact).abs() <= 0.044 * exact,
            "{name}: {seen} of {exact}"
        );
    };
    near("p50_ms", 10.0);
    near("p95_ms", 800.0);
    let names = |of: &str| -> Vec<Value> {
        let rows = shown[of].as_array().unwrap().iter();
        rows.map(|row| json!([row["name"], row["calls"]])).collect()
    };
    assert_eq!(
        names("clients")[..2],
        [json!(["Claude", 100]), json!(["Cursor", 5])]
    );
    assert_eq!(
        names("outcomes"),
        [
            json!(["ok", 90]),
            json!(["upstream_error", 10]),
            json!(["invalid_arguments", 5])
        ]
    );
}

#[tokio::test]
async fn a_filter_narrows_all_parts_and_a_wrong_one_is_named() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    console::workspace(&ann, "acme").await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let tenant: TenantId = me["workspaces"][0]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    count(&service, now, key(tenant, "get", "Claude", 0), 3, 10).await;
    count(&service, now, key(tenant, "put", "Cursor", 1), 2, 10).await;
    for (query, calls) in [
        ("", 5),
        ("?tool=get", 3),
        ("?client=Cursor", 2),
        ("?outcome=tool_error", 2),
        ("?tool=get&outcome=tool_error", 0),
        ("?server=none", 0),
    ] {
        let shown = insights(&ann, query).await;
        assert_eq!(shown["total"]["calls"], calls, "{query}");
        let rows = shown["tools"].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row["calls"].as_u64().unwrap()).sum();
        assert_eq!(sum, calls, "{query}");
    }
    for query in ["?outcome=bad", "?period=2h"] {
        let path = format!("/workspaces/acme/insights{query}");
        let refused = ann.call(Method::GET, &path, None).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
    }
}

/// Rule: METER-20. Clients state their names: a reader does not hold as many as they like.
#[tokio::test]
async fn names_beyond_the_most_are_summed_as_other() {
    const NAMES: u64 = 20_100;
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    console::workspace(&ann, "acme").await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let tenant: TenantId = me["workspaces"][0]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    let mut totals = Totals::default();
    totals.add(Measures {
        took_us: 1_000,
        backend_us: 0,
        bytes_in: 10,
        bytes_out: 100,
    });
    let rollup = (0..NAMES).map(|n| (key(tenant, "get", &format!("c{n}"), 0), totals.clone()));
    let mut pending = Pending::default();
    pending.add(now.unix_timestamp().div_euclid(60), rollup.collect());
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    let batch = pending.next_batch().unwrap();
    usage::flush(&mut tx, uuid::Uuid::new_v4(), batch, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let shown = insights(&ann, "?period=1h").await;
    assert_eq!(shown["total"]["calls"], NAMES);
    assert_eq!(shown["tools"][0]["calls"], NAMES);
    let clients = shown["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 100);
    assert_eq!(clients[0]["name"], "(other)", "the most calls");
    assert_eq!(clients[0]["calls"], NAMES - 20_000);
}
