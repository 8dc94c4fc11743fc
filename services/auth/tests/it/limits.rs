//! Limits of a workspace in the console's API (STREAM-16).

use http::{Method, StatusCode};
use portolan_metering::{CallEra, CallerKind, Key, Measures, Pending, Totals};
use portolan_model::{
    Id,
    id::TenantId,
    limits::{LimitName, LimitSet, PlatformLimits},
    member::Role,
};
use portolan_site::config::{Calls, ConsoleLimits, InUse};
use portolan_storage::{
    Reason,
    accounts::members,
    platform::{limits as stored, tenants, usage},
    registry::registry_news::{News, NewsListener},
};
use serde_json::{Value, json};
use time::Duration;

use crate::test_service::{Browser, TestService};

/// The platform of the tests: 7 calls run, and the number of open streams is unknown.
pub(crate) fn limits() -> ConsoleLimits {
    let in_use = InUse::default();
    in_use.set(Box::new(|_| Box::pin(async { [Some(7), None] })));
    ConsoleLimits {
        platform: PlatformLimits {
            defaults: LimitSet::default()
                .with(LimitName::TenantCalls, 600)
                .with(LimitName::ClientRequests, 60)
                .with(LimitName::RunningCalls, 20)
                .with(LimitName::OpenStreams, 100),
            headroom: 5,
        },
        in_use,
        calls: Calls::default(),
    }
}

const PATH: &str = "/workspaces/acme/limits";

async fn workspace(service: &TestService, person: &Browser<'_>) -> TenantId {
    let new = json!({ "name": "Acme", "slug": "acme" });
    let answer = person.call(Method::POST, "/workspaces", Some(new)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let tenant = tenants::by_slug(&mut tx, "acme").await.unwrap();
    tenant.unwrap().id
}

async fn show(person: &Browser<'_>) -> Value {
    let answer = person.call(Method::GET, PATH, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()
}

fn named<'a>(limits: &'a Value, name: &str) -> &'a Value {
    let all = limits["limits"].as_array().unwrap();
    all.iter().find(|limit| limit["name"] == name).unwrap()
}

#[tokio::test]
async fn a_workspace_sees_what_holds_and_sets_its_own_within_the_platforms_bounds() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&service, &ann).await;
    let before = show(&ann).await;
    let names: Vec<_> = before["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        LimitName::ALL.map(LimitName::as_str),
        "REVIEW-F1: each one"
    );
    assert_eq!(
        named(&before, "running_calls"),
        &json!({
            "name": "running_calls", "unit": "at_once", "value": 20, "default": 20, "own": null,
            "minimum": 1, "maximum": 100, "in_use": 7, "refused": 0
        })
    );
    assert_eq!(
        named(&before, "tool_calls"),
        &json!({
            "name": "tool_calls", "unit": "per_minute", "value": null, "default": null, "own": null,
            "minimum": 1, "maximum": 3_000, "in_use": null, "refused": 0
        }),
        "the platform has no such limit"
    );

    let mut news = NewsListener::new(&service.store);
    assert_eq!(news.next().await, News::Everything, "it listens");
    let change = json!({ "running_calls": 3, "tool_calls": 3_000 });
    let after = ann.call(Method::PATCH, PATH, Some(change)).await;
    assert_eq!(after.status, StatusCode::OK, "{}", after.text);
    let after = after.json();
    assert_eq!(named(&after, "running_calls")["value"], 3);
    assert_eq!(named(&after, "running_calls")["own"], 3);
    assert_eq!(named(&after, "tool_calls")["value"], 3_000);
    assert_eq!(named(&after, "tenant_calls")["own"], Value::Null);
    assert_eq!(news.next().await, News::Changed(tenant), "nodes hear of it");
    let mut tx = service.store.node(tenant).await.unwrap();
    let own = stored::own(&mut tx).await.unwrap();
    assert_eq!(own.get(LimitName::RunningCalls), Some(3), "nodes read it");
    drop(tx);

    // Undo is the value from before: null.
    let change = json!({ "running_calls": null });
    let undone = ann.call(Method::PATCH, PATH, Some(change)).await.json();
    assert_eq!(
        named(&undone, "running_calls"),
        named(&before, "running_calls")
    );
    assert_eq!(
        named(&undone, "tool_calls")["own"],
        3_000,
        "absent leaves it"
    );

    // A change without effect makes no audit entry.
    let same = json!({ "tool_calls": 3_000, "running_calls": null });
    ann.call(Method::PATCH, PATH, Some(same)).await;
    let audit = ann.call(Method::GET, "/workspaces/acme/audit", None).await;
    let details: Vec<Value> = audit.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["action"] == "limits.changed")
        .map(|entry| entry["detail"].clone())
        .collect();
    assert_eq!(
        details,
        [
            json!({ "running_calls": { "from": 3, "to": null } }),
            json!({ "running_calls": { "from": null, "to": 3 }, "tool_calls": { "from": null, "to": 3_000 } }),
        ]
    );
}

#[tokio::test]
async fn values_out_of_bounds_and_unknown_names_are_refused_and_change_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&service, &ann).await;
    for value in [0, 101, u32::MAX] {
        let change = json!({ "tenant_calls": 5, "running_calls": value });
        let refused = ann.call(Method::PATCH, PATH, Some(change)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{value}");
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "limit_out_of_range");
        assert_eq!(error["field"], "running_calls");
        assert_eq!(error["details"], json!({ "minimum": 1, "maximum": 100 }));
    }
    for change in [
        json!({ "runing_calls": 3 }),
        json!({ "running_calls": "3" }),
        json!({ "running_calls": -1 }),
        json!({ "running_calls": 1.5 }),
    ] {
        let refused = ann.call(Method::PATCH, PATH, Some(change.clone())).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{change}");
    }
    assert_eq!(named(&show(&ann).await, "tenant_calls")["own"], Value::Null);
}

#[tokio::test]
async fn m_1_members_see_limits_and_only_admins_change_them_and_strangers_see_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&service, &ann).await;
    let dev = service.person("dev@acme.example").await;
    let me = dev.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let stranger = dev.call(Method::GET, PATH, None).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    let change = || Some(json!({ "running_calls": 3 }));
    let stranger = dev.call(Method::PATCH, PATH, change()).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, Role::Developer, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    show(&dev).await;
    let refused = dev.call(Method::PATCH, PATH, change()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        named(&show(&ann).await, "running_calls")["own"],
        Value::Null
    );
}

#[tokio::test]
async fn what_was_used_and_refused_in_six_hours_is_shown_in_buckets() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&service, &ann).await;
    let now = service.clock.now();
    let present = now.unix_timestamp().div_euclid(300) * 300;
    let bucket = time::OffsetDateTime::from_unix_timestamp(present).unwrap();
    let at = |minutes: i64, seconds: i64| {
        bucket + Duration::minutes(minutes) + Duration::seconds(seconds)
    };
    let key = |server| Key {
        tenant,
        server,
        item: "get_pet".into(),
        client: None,
        caller: CallerKind::Person.code(),
        outcome: 0,
        era: CallEra::Session.code(),
    };
    let server = || Some(Id::generate());
    let written = [
        // Two minutes of one bucket, an hour ago.
        (at(-60, 0), server()),
        (at(-60, 59), server()),
        (at(-59, 1), server()),
        // Too old, and of no client.
        (at(-6 * 60, 0), server()),
        (at(-60, 5), None),
    ];
    let mut pending = Pending::default();
    for (at, server) in written {
        let mut totals = Totals::default();
        totals.add(Measures::default());
        let minute = at.unix_timestamp().div_euclid(60);
        pending.add(minute, [(key(server), totals)].into_iter().collect());
    }
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    let process = uuid::Uuid::now_v7();
    while let Some(batch) = pending.next_batch() {
        usage::flush(&mut tx, process, batch, now).await.unwrap();
        pending.written();
    }
    tx.commit().await.unwrap();
    let mut tx = service.store.node(tenant).await.unwrap();
    for _ in 0..2 {
        let refused = [(LimitName::TenantCalls, 4), (LimitName::RunningCalls, 1)];
        stored::add_refusals(&mut tx, &refused, at(-59, 30))
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    let shown = show(&ann).await;
    let usage = &shown["usage"];
    let buckets = usage["buckets"].as_array().unwrap();
    assert_eq!((buckets.len(), &usage["bucket_minutes"]), (72, &json!(5)));
    assert_eq!(usage["from"], buckets[0]["at"]);
    let hour_ago = &buckets[71 - 12];
    assert_eq!(
        (
            &hour_ago["calls"],
            &hour_ago["busiest_minute"],
            &hour_ago["refused"]
        ),
        (&json!(3), &json!(2), &json!(10)),
        "{shown}"
    );
    let total: i64 = buckets
        .iter()
        .map(|bucket| bucket["calls"].as_i64().unwrap())
        .sum();
    assert_eq!(total, 3);
    assert_eq!(named(&shown, "tenant_calls")["refused"], 8);
    assert_eq!(named(&shown, "running_calls")["refused"], 2);
    assert_eq!(named(&shown, "tool_calls")["refused"], 0);
}
