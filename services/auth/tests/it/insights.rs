//! What happened in a period, in the console's API.

use http::{Method, StatusCode};
use portolan_metering::{CallEra, CallerKind, Key, Measures, Pending, Totals};
use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
    registry::CallOutcome,
};
use portolan_storage::{
    Reason,
    platform::usage::{self, folds},
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    calls::{call, workspace, write},
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

/// Rule: METER-3. A bucket holds its upper bound, and leads to its calls.
#[tokio::test]
async fn durations_of_a_step_lead_to_their_calls() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let now = service.clock.now();
    let mut logged = Vec::new();
    for (took_us, calls) in [(16_384, 3), (16_385, 2), (800_000, 1)] {
        count(
            &service,
            now,
            key(tenant, "get", "Claude", 0),
            calls,
            took_us,
        )
        .await;
        for _ in 0..calls {
            let mut one = call(tenant, now, &format!("took_{took_us}"));
            one.measures.took_us = took_us;
            logged.push(one);
        }
    }
    write(&service, &logged).await;
    let shown = insights(&ann, "?period=1h").await;
    let step = shown["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        step["durations"],
        json!([
            {"upto_us": 16_384, "calls": 3},
            {"upto_us": 32_768, "calls": 2},
            {"upto_us": 1_048_576, "calls": 1},
        ])
    );
    let tokens = |part: &Value| part["tokens_out"].as_u64().unwrap();
    assert_eq!(
        tokens(&shown["total"]),
        150,
        "a quarter of 6 times 100 bytes"
    );
    for (query, tool, calls) in [
        ("longer_ms=8.192&shorter_ms=16.385", "took_16384", 3),
        ("longer_ms=16.384&shorter_ms=32.769", "took_16385", 2),
        ("longer_ms=524.288&shorter_ms=1048.577", "took_800000", 1),
    ] {
        let path = format!("/workspaces/acme/calls?{query}");
        let page = ann.call(Method::GET, &path, None).await.json();
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), calls, "{query}: {page}");
        assert!(
            items.iter().all(|item| item["tool_name"] == tool),
            "{query}"
        );
    }
}

async fn groups(person: &Browser<'_>, of: &str) -> Vec<Value> {
    let path = format!("/workspaces/acme/insights/{of}");
    let answer = person.call(Method::GET, &path, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{of}: {}", answer.text);
    let json = answer.json();
    assert_eq!(json.get("since"), None, "all of it was read");
    json["items"].as_array().unwrap().clone()
}

/// Rule: METER-13. A cause has its first failure of the log, and the calls of the period.
#[tokio::test]
async fn failures_are_grouped_by_cause() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let now = service.clock.now();
    let long_ago = now - Duration::days(3);
    folds::prepare(&service.store, long_ago).await.unwrap();
    let failed = |at, tool: &str, outcome, error: Option<&str>| {
        let mut call = call(tenant, at, tool);
        (call.outcome, call.status) = (outcome, None);
        call.error = error.map(str::to_owned);
        call
    };
    let gone = Some("The API answered 503.");
    let first = failed(long_ago, "get", CallOutcome::ToolError, gone);
    let mut many = failed(now - Duration::HOUR, "get", CallOutcome::ToolError, gone);
    many.weight = 4;
    let last = failed(now - Duration::MINUTE, "get", CallOutcome::ToolError, gone);
    let other = failed(now, "get", CallOutcome::UpstreamError, None);
    let over = failed(long_ago, "put", CallOutcome::Internal, Some("Gone."));
    let mut foreign = failed(now, "get", CallOutcome::ToolError, gone);
    foreign.tenant = TenantId::generate();
    let (first_id, last_id) = (first.id.time().unwrap(), last.id.time().unwrap());
    let fine = call(tenant, now, "get");
    write(&service, &[first, many, last, other, over, foreign, fine]).await;

    let causes = groups(&ann, "errors?period=24h").await;
    let shown: Vec<Value> = causes
        .iter()
        .map(|cause| {
            json!([
                cause["tool_name"],
                cause["outcome"],
                cause["error"],
                cause["calls"]
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["get", "tool_error", "The API answered 503.", 5]),
            json!(["get", "upstream_error", null, 1]),
        ]
    );
    let at = |name: &str| {
        let text = causes[0][name].as_str().unwrap();
        Timestamp::parse(text, &time::format_description::well_known::Rfc3339).unwrap()
    };
    assert!((at("first_at") - first_id).abs() < Duration::MILLISECOND);
    assert!((at("last_at") - last_id).abs() < Duration::MILLISECOND);
    assert_eq!(groups(&ann, "errors?period=7d").await.len(), 3);
    for (query, calls) in [
        ("tool=put", &[][..]),
        ("outcome=upstream_error", &[1]),
        ("server=pets", &[5, 1]),
        ("server=ships", &[]),
        ("client=Claude", &[]),
    ] {
        let causes = groups(&ann, &format!("errors?period=24h&{query}")).await;
        let shown = causes.iter().map(|cause| cause["calls"].as_i64().unwrap());
        assert_eq!(shown.collect::<Vec<_>>(), calls, "{query}");
    }
    // The address of the calls behind the first cause.
    let rfc = |at: Timestamp| {
        let text = at.format(&time::format_description::well_known::Rfc3339);
        text.unwrap().replace('+', "%2B")
    };
    let (from, to) = (rfc(first_id), rfc(last_id + Duration::MILLISECOND));
    let error = "The%20API%20answered%20503.";
    let path = format!(
        "/workspaces/acme/calls?tool=get&server=pets&outcome=tool_error&error={error}&from={from}&to={to}"
    );
    let behind = ann.call(Method::GET, &path, None).await.json();
    assert_eq!(behind["items"].as_array().unwrap().len(), 3, "{behind}");
}

/// Rule: METER-7, METER-13. Entries count with their weights; callers that are no people are apart.
#[tokio::test]
async fn calls_are_summed_by_person() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let user: UserId = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    let by = |user: Option<UserId>, caller, outcome, weight| {
        let mut call = call(tenant, now, "get");
        (call.user, call.caller, call.outcome) = (user, caller, outcome);
        call.weight = weight;
        call
    };
    let gone = UserId::generate();
    let calls = [
        by(Some(user), CallerKind::Person, CallOutcome::Ok, 20),
        by(Some(user), CallerKind::ApiKey, CallOutcome::ToolError, 1),
        by(
            Some(user),
            CallerKind::Person,
            CallOutcome::InvalidArguments,
            2,
        ),
        by(Some(gone), CallerKind::Person, CallOutcome::Ok, 3),
        by(None, CallerKind::Service, CallOutcome::Ok, 1),
        by(None, CallerKind::Service, CallOutcome::Internal, 1),
    ];
    write(&service, &calls).await;
    let people = groups(&ann, "people?period=1h").await;
    let shown: Vec<Value> = people
        .iter()
        .map(|one| {
            let names = [
                "user_id",
                "caller",
                "calls",
                "errors",
                "rejected",
                "tokens_out",
            ];
            Value::from_iter(names.map(|name| one[name].clone()))
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!([user, null, 23, 1, 2, 2_300]),
            json!([gone, null, 3, 0, 0, 300]),
            json!([null, "service", 2, 1, 0, 200]),
        ]
    );
    assert!(people[0]["user_name"].is_string(), "{}", people[0]);
    assert_eq!(people[1].get("user_name"), None, "no member");
    let only = groups(&ann, "people?period=1h&outcome=internal").await;
    assert_eq!(only.len(), 1, "{only:?}");
}
