//! The log of calls in the console's API: filters, pages, one call, exports, live.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::body::Body;
use futures_util::StreamExt;
use http::{Method, Request, StatusCode};
use portolan_metering::{CallEra, CallerKind, Measures};
use portolan_model::{
    Timestamp,
    id::{CallId, ServerId, TenantId, UserId},
    member::Role,
    registry::CallOutcome,
};
use portolan_storage::{
    Reason,
    accounts::members,
    platform::{
        call_contents::{self, NewContent},
        calls::{self, Call},
        usage::folds,
    },
    registry::credentials::{self, WrappedKey},
};
use serde_json::{Value, json};
use time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    console,
    test_service::{Browser, TestService},
};

const CALLS: &str = "/workspaces/acme/calls";

/// A workspace of a person.
pub(crate) async fn workspace(person: &Browser<'_>) -> TenantId {
    console::workspace(person, "acme").await;
    let me = person.call(Method::GET, "/me", None).await.json();
    me["workspaces"][0]["id"].as_str().unwrap().parse().unwrap()
}

pub(crate) fn call(tenant: TenantId, at: Timestamp, tool: &str) -> Call<'static> {
    Call {
        id: CallId::at(at),
        tenant,
        at,
        server: Some((ServerId::generate(), "pets".into())),
        item: tool.into(),
        client: Some("=Claude, \"Desktop\"".into()),
        client_version: Some("1.2".into()),
        client_id: Some("cli_1"),
        caller: CallerKind::Person,
        user: None,
        grant: None,
        revision: Some("2025-11-25"),
        era: CallEra::Session,
        outcome: CallOutcome::Ok,
        status: Some(200),
        measures: Measures {
            took_us: 12_000,
            backend_us: 9_000,
            bytes_in: 31,
            bytes_out: 400,
        },
        wait_us: 50,
        error: None,
        session: Some("ab12".to_owned()),
        trace: Some([0xab; 16]),
        node: Some("n1".into()),
        weight: 1,
    }
}

pub(crate) async fn write(service: &TestService, written: &[Call<'_>]) {
    // Shortly after midnight a call of some minutes ago is of yesterday.
    folds::prepare(&service.store, service.clock.now())
        .await
        .unwrap();
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    calls::insert_many(&mut tx, written).await.unwrap();
    tx.commit().await.unwrap();
}

async fn found(person: &Browser<'_>, query: &str) -> Value {
    let answer = person
        .call(Method::GET, &format!("{CALLS}{query}"), None)
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text);
    answer.json()
}

fn tools(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|call| call["tool_name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn filters_find_calls_and_wrong_ones_are_named() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let user: UserId = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    let mut slow = call(tenant, now - Duration::hours(2), "slow");
    slow.measures.took_us = 900_000;
    let mut failed = call(tenant, now - Duration::minutes(5), "failed");
    failed.outcome = CallOutcome::UpstreamError;
    failed.user = Some(user);
    failed.era = CallEra::Stateless;
    failed.error = Some("100% gone_".to_owned());
    let mut other = call(tenant, now - Duration::minutes(1), "other");
    other.server = Some((ServerId::generate(), "ships".into()));
    other.client = Some("Cursor".into());
    write(&service, &[slow, failed, other]).await;

    let before = (now - Duration::hours(1)).format(&time::format_description::well_known::Rfc3339);
    let before = before.unwrap().replace('+', "%2B");
    for (query, expected) in [
        (String::new(), &["other", "failed", "slow"][..]),
        ("?tool=slow".to_owned(), &["slow"]),
        ("?server=ships".to_owned(), &["other"]),
        ("?client=claude".to_owned(), &["failed", "slow"]),
        ("?user=ann".to_owned(), &["failed"]),
        (format!("?user={user}"), &["failed"]),
        ("?user=nobody".to_owned(), &[]),
        ("?outcome=error".to_owned(), &["failed"]),
        ("?outcome=ok&client=cursor".to_owned(), &["other"]),
        ("?era=stateless".to_owned(), &["failed"]),
        ("?longer_ms=500".to_owned(), &["slow"]),
        ("?shorter_ms=500".to_owned(), &["other", "failed"]),
        (
            "?longer_ms=11.999&shorter_ms=12.001".to_owned(),
            &["other", "failed"],
        ),
        ("?shorter_ms=12".to_owned(), &[]),
        ("?error=100%25%20gone_".to_owned(), &["failed"]),
        ("?error=100%25%20*".to_owned(), &["failed"]),
        ("?error=100%25".to_owned(), &[]),
        ("?error=*".to_owned(), &["failed"]),
        (format!("?to={before}"), &["slow"]),
        (format!("?from={before}"), &["other", "failed"]),
    ] {
        assert_eq!(tools(&found(&ann, &query).await), expected, "{query}");
    }
    for (query, field) in [
        ("?outcome=bad", "outcome"),
        ("?era=bronze", "era"),
        ("?longer_ms=-1", "longer_ms"),
        ("?shorter_ms=NaN", "shorter_ms"),
        ("?from=yesterday", "from"),
        ("?to=1", "to"),
    ] {
        let refused = ann
            .call(Method::GET, &format!("{CALLS}{query}"), None)
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert_eq!(refused.json()["error"]["field"], field, "{query}");
    }
}

/// Rule: METER-10. The id of the answer's `_meta` opens the call, in its workspace alone.
#[tokio::test]
async fn a_call_is_found_by_its_id_in_its_workspace_alone() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let now = service.clock.now();
    let (own, foreign) = (
        call(tenant, now, "get"),
        call(TenantId::generate(), now, "get"),
    );
    let (id, foreign_id) = (own.id, foreign.id);
    write(&service, &[own, foreign]).await;
    let shown = found(&ann, &format!("/{id}")).await;
    for (name, expected) in [
        ("id", json!(id)),
        ("tool_name", json!("get")),
        ("server_slug", json!("pets")),
        ("caller", json!("person")),
        ("client_version", json!("1.2")),
        ("revision", json!("2025-11-25")),
        ("era", json!("session")),
        ("outcome", json!("ok")),
        ("bytes_in", json!(31)),
        ("bytes_out", json!(400)),
        ("session", json!("ab12")),
        ("trace_id", json!("ab".repeat(16))),
        (
            "timing",
            json!({"wait_us": 50, "backend_us": 9_000, "own_us": 3_000, "took_us": 12_000}),
        ),
    ] {
        assert_eq!(shown[name], expected, "{name}");
    }
    for unknown in [
        foreign_id.to_string(),
        CallId::at(now).to_string(),
        "call_1".to_owned(),
    ] {
        let answer = ann
            .call(Method::GET, &format!("{CALLS}/{unknown}"), None)
            .await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{unknown}");
    }
}

/// An export has every call that the filter wants, over the pages of its reads, and no formula.
#[tokio::test]
async fn an_export_has_all_calls_and_no_formula() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let now = service.clock.now();
    let many: Vec<Call<'_>> = (0..2_300)
        .map(|n| call(tenant, now - Duration::milliseconds(n / 3), "get"))
        .chain([call(tenant, now, "put")])
        .collect();
    write(&service, &many).await;
    let csv = ann
        .call(Method::GET, &format!("{CALLS}/export?tool=get"), None)
        .await;
    let lines: Vec<&str> = csv.text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 2_301);
    assert!(lines[0].starts_with("id,at,server,tool,"), "{}", lines[0]);
    assert!(
        lines[1].contains(",\"'=Claude, \"\"Desktop\"\"\","),
        "{}",
        lines[1]
    );
    let columns = lines[0].split(',').count();
    assert_eq!(columns, 24);
    let all = ann
        .call(Method::GET, &format!("{CALLS}/export?format=jsonl"), None)
        .await;
    let ids: HashSet<String> = all
        .text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 2_301);
}

/// The stream sends calls that come after its beginning, each once.
#[tokio::test]
async fn new_calls_are_sent_as_events_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let now = service.clock.now();
    write(&service, &[call(tenant, now - Duration::SECOND, "before")]).await;
    let path = format!("{CALLS}/live");
    let (written, watching) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Goes on until the stream ends by itself.
    let writing = async {
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(300));
        loop {
            ticks.tick().await;
            watching.fetch_max(service.state.watchers().count(), Ordering::Relaxed);
            let tool = format!("tool_{}", written.fetch_add(1, Ordering::Relaxed));
            write(&service, &[call(tenant, now, &tool)]).await;
        }
    };
    let stream = tokio::select! {
        stream = ann.call(Method::GET, &path, None) => stream,
        () = writing => unreachable!("it does not end"),
    };
    assert_eq!(stream.status, StatusCode::OK, "{}", stream.text);
    assert_eq!(watching.into_inner(), 1, "METER-21: while it is open");
    assert_eq!(service.state.watchers().count(), 0, "and not longer");
    let sent: Vec<Value> = stream
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .flat_map(|data| serde_json::from_str::<Vec<Value>>(data).unwrap())
        .collect();
    let tools: Vec<&str> = sent
        .iter()
        .map(|call| call["tool_name"].as_str().unwrap())
        .collect();
    let distinct: HashSet<&&str> = tools.iter().collect();
    assert_eq!(distinct.len(), tools.len(), "each once: {tools:?}");
    assert!(!tools.contains(&"before"), "{tools:?}");
    let written = written.load(Ordering::Relaxed);
    // Those of the first and the last look may be in the list alone.
    assert!(
        tools.len() + 12 >= written,
        "{} of {written}: {tools:?}",
        tools.len()
    );
}

/// Rule: CAPTURE-8.
#[tokio::test]
async fn a_member_cannot_tell_whether_content_is_kept() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let bob = service.person("bob@acme.example").await;
    let me = bob.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let now = service.clock.now();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, Role::Developer, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let (kept, plain) = (call(tenant, now, "kept"), call(tenant, now, "plain"));
    write(&service, &[kept.clone(), plain.clone()]).await;
    let key = WrappedKey {
        id: Uuid::now_v7(),
        wrapped: b"wrapped".to_vec(),
    };
    let content = NewContent {
        tenant,
        call: kept.id,
        at: now,
        server: ServerId::generate(),
        ends_at: call_contents::end_of(now, 7),
        key: key.id,
        sealed: b"sealed".to_vec(),
    };
    let mut tx = service.store.tenant(tenant).await.unwrap();
    credentials::insert_data_key(&mut tx, &key, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    call_contents::insert_many(&mut tx, &[content])
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let path = |id: CallId| format!("{CALLS}/{id}");
    let owners = ann.call(Method::GET, &path(kept.id), None).await.json();
    assert!(owners["content_until"].is_string(), "{owners}");
    let mut seen = Vec::new();
    for id in [kept.id, plain.id] {
        let mut detail = bob.call(Method::GET, &path(id), None).await.json();
        assert!(detail.get("content_until").is_none(), "{detail}");
        detail["id"] = json!(null);
        detail["tool_name"] = json!(null);
        detail["server_id"] = json!(null);
        let reveal = format!("{}/reveal", path(id));
        let refused = bob.call(Method::POST, &reveal, Some(json!({}))).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        seen.push((detail, refused.text));
    }
    assert_eq!(seen[0], seen[1]);
    // The same as for an owner and a call without content.
    let reveal = format!("{}/reveal", path(plain.id));
    let nothing = ann.call(Method::POST, &reveal, Some(json!({}))).await;
    assert_eq!(
        (nothing.status, &nothing.text),
        (StatusCode::NOT_FOUND, &seen[0].1)
    );
    let audit = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .text;
    assert!(!audit.contains("call.revealed"), "{audit}");
}

/// Rule: CAPTURE-6.
#[tokio::test]
async fn a_capture_policy_is_set_read_and_refused() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    let new = json!({"name": "Pets", "slug": "pets"});
    let made = ann
        .call(Method::POST, "/workspaces/acme/servers", Some(new))
        .await
        .json();
    let id = made["id"].as_str().unwrap();
    let path = format!("/workspaces/acme/servers/{id}/capture");
    let first = ann.call(Method::GET, &path, None).await.json();
    assert_eq!(first, json!({"policy": "metadata", "days": 7}));
    for (policy, field) in [
        (json!({"policy": "sample", "days": 7}), "percent"),
        (
            json!({"policy": "sample", "percent": 0, "days": 7}),
            "percent",
        ),
        (json!({"policy": "all", "percent": 5, "days": 7}), "percent"),
        (json!({"policy": "all", "days": 31}), "days"),
        (json!({"policy": "all", "days": 0}), "days"),
    ] {
        let refused = ann.call(Method::PUT, &path, Some(policy)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["error"]["field"], field);
    }
    let sample = json!({"policy": "sample", "percent": 5, "days": 30});
    let set = ann.call(Method::PUT, &path, Some(sample.clone())).await;
    assert_eq!((set.status, set.json()), (StatusCode::OK, sample.clone()));
    assert_eq!(ann.call(Method::GET, &path, None).await.json(), sample);
    let audit = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .text;
    assert!(audit.contains("server.capture_changed"), "{audit}");
}

/// Rule: CAPTURE-10.
#[tokio::test]
async fn views_are_kept_shared_renamed_and_deleted() {
    const VIEWS: &str = "/workspaces/acme/call-views";
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let bob = service.person("bob@acme.example").await;
    let me = bob.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, Role::Viewer, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let body = |name: &str, shared: bool| json!({"name": name, "filter": {"outcome": "error", "dur": ">1s"}, "is_shared": shared});
    let own = ann
        .call(Method::POST, VIEWS, Some(body("Slow", false)))
        .await;
    assert_eq!(own.status, StatusCode::CREATED, "{}", own.text);
    let again = ann
        .call(Method::POST, VIEWS, Some(body("Slow", false)))
        .await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let shared = ann
        .call(Method::POST, VIEWS, Some(body("Team", true)))
        .await;
    let shared = shared.json()["id"].as_str().unwrap().to_owned();
    let refused = bob
        .call(Method::POST, VIEWS, Some(body("Mine", true)))
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let wrong = json!({"name": "x", "filter": {"colour": "red"}, "is_shared": false});
    let wrong = ann.call(Method::POST, VIEWS, Some(wrong)).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);

    let seen = bob.call(Method::GET, VIEWS, None).await.json();
    let names: Vec<_> = seen["items"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{seen}");
    assert_eq!(
        (&names[0]["name"], &names[0]["is_own"]),
        (&json!("Team"), &json!(false))
    );
    let path = format!("{VIEWS}/{shared}");
    for (method, sent) in [
        (Method::PUT, Some(body("Ours", false))),
        (Method::DELETE, None),
    ] {
        let refused = bob.call(method, &path, sent).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
    }
    let renamed = ann.call(Method::PUT, &path, Some(body("Ours", true))).await;
    assert_eq!(renamed.json()["name"], "Ours");
    let gone = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(
        bob.call(Method::GET, VIEWS, None).await.json()["items"],
        json!([])
    );
}

/// Rule: METER-22.
#[tokio::test]
async fn live_view_ends_soon_after_its_session() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let request = Request::get(format!("/api/v1{CALLS}/live"));
    let view = ann.begin(request.body(Body::empty()).unwrap()).await;
    assert_eq!(view.status(), StatusCode::OK);
    let mut view = view.into_body().into_data_stream();
    let now = service.clock.now();
    write(&service, &[call(tenant, now, "of_a_session")]).await;
    let mut seen = String::new();
    while !seen.contains("of_a_session") {
        let piece = view.next().await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&piece).unwrap());
    }
    let out = ann.post("/logout", &[]).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER, "{}", out.text);
    write(&service, &[call(tenant, now, "after_the_end")]).await;
    // By itself it would end seconds later.
    let rest = async {
        let mut rest = Vec::new();
        while let Some(piece) = view.next().await {
            rest.extend_from_slice(&piece.unwrap());
        }
        rest
    };
    let rest = timeout(std::time::Duration::from_secs(8), rest).await;
    let rest = String::from_utf8(rest.expect("the session ended")).unwrap();
    assert!(!rest.contains("after_the_end"), "{rest}");
    assert_eq!(service.state.watchers().count(), 0);
}

/// Rule: METER-21.
#[tokio::test]
async fn live_views_beyond_the_bound_are_refused() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let tenant = workspace(&ann).await;
    let me = ann.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap();
    let open: Vec<_> = (0..8)
        .map(|_| service.state.watchers().take(tenant, user).unwrap())
        .collect();
    let refused = ann.call(Method::GET, &format!("{CALLS}/live"), None).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.json()["error"]["code"], "too_many_live_views");
    assert_eq!(refused.headers["retry-after"], "20");
    drop(open);
    assert_eq!(service.state.watchers().count(), 0, "a refusal takes none");
}
