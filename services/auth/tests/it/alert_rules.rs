//! Alert rules over counts of calls and over ends of credentials: their thresholds, one event for
//! each rise and fall, and other workspaces (HOOK-23 to HOOK-26). The test moves the clock.

use http::{Method, StatusCode};
use portolan_metering::{CallEra, CallerKind, Key, Measures, Pending, Totals, key::outcome_code};
use portolan_model::{
    id::{ServerId, SourceId, TenantId, UserId},
    limits::LimitName,
    registry::CallOutcome,
};
use portolan_storage::{
    Reason,
    platform::{
        limits,
        usage::{self, folds},
    },
    registry::{
        credentials,
        upstream_oauth::{self, NewConnection},
    },
};
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use crate::{
    console::{ids, workspace},
    races,
    test_service::{Browser, PASSWORD, TestService},
    webhook_receivers::{Received, Receiver},
    webhooks::{endpoint, run, worker},
};

const ANN: &str = "ann@acme.example";
const RULES: &str = "/workspaces/acme/alert-rules";
const BASE: &str = "https://api.example";

async fn ask(person: &Browser<'_>, method: Method, path: &str, body: Option<Value>) -> Value {
    let answer = person.call(method, path, body).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text);
    answer.json()
}

async fn alerts(person: &Browser<'_>, slug: &str) -> Vec<Value> {
    let path = format!("/workspaces/{slug}/alerts");
    let listed = ask(person, Method::GET, &path, None).await;
    listed["items"].as_array().unwrap().clone()
}

/// A rule after a change; without a change, as it is.
async fn rule(person: &Browser<'_>, name: &str, change: Option<Value>) -> Value {
    let rules = match change {
        Some(change) => {
            let path = format!("{RULES}/{name}");
            ask(person, Method::PATCH, &path, Some(change)).await
        }
        None => ask(person, Method::GET, RULES, None).await,
    };
    let all = rules["items"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap().clone()
}

async fn server(person: &Browser<'_>, ws: &str, slug: &str) -> ServerId {
    let path = format!("/workspaces/{ws}/servers");
    let body = json!({"name": format!("Server {slug}"), "slug": slug});
    let made = ask(person, Method::POST, &path, Some(body)).await;
    made["id"].as_str().unwrap().parse().unwrap()
}

/// Counts calls of the present minute, as a node flushes them.
async fn count(
    service: &TestService,
    (tenant, server): (TenantId, ServerId),
    outcome: CallOutcome,
    calls: u64,
) {
    let now = service.clock.now();
    assert!(folds::prepare(&service.store, now).await.unwrap());
    let key = Key {
        tenant,
        server: Some(server),
        item: "get".into(),
        client: None,
        caller: CallerKind::Person.code(),
        outcome: outcome_code(outcome),
        era: CallEra::Session.code(),
    };
    let mut totals = Totals::default();
    for _ in 0..calls {
        totals.add(Measures::default());
    }
    let mut pending = Pending::default();
    let minute = now.unix_timestamp().div_euclid(60);
    pending.add(minute, [(key, totals)].into_iter().collect());
    let mut tx = service.store.edge(Reason::Metering).await.unwrap();
    let batch = pending.next_batch().unwrap();
    let is_new = usage::flush(&mut tx, Uuid::new_v4(), batch, now).await;
    assert!(is_new.unwrap());
    tx.commit().await.unwrap();
}

/// Types of the messages that came, in alphabetical order: what is due together has no order.
fn told(receiver: &Receiver) -> Vec<String> {
    let messages = receiver.take();
    let kinds = messages.iter().map(Received::json);
    let mut kinds: Vec<_> = kinds
        .map(|one| one["type"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    kinds
}

const RATES: &[&str] = &[
    "error_rate.exceeded",
    "error_rate.recovered",
    "alert.fired",
    "alert.resolved",
];

/// Rule: HOOK-24. Exactly the threshold fires; one call fewer than the minimum, or less than the
/// threshold, does not.
#[tokio::test]
async fn failed_calls_fire_once_at_the_threshold() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, RATES).await;
    let tenant = ids(&service, &ann, "acme").await.0;
    let orders = server(&ann, "acme", "orders").await;
    let few = server(&ann, "acme", "few").await;
    let good = server(&ann, "acme", "good").await;
    let bob = service.person("bob@bolt.example").await;
    workspace(&bob, "bolt").await;
    let theirs = ids(&service, &bob, "bolt").await.0;
    let other = server(&bob, "bolt", "orders").await;
    let (ok, failed) = (CallOutcome::Ok, CallOutcome::UpstreamError);
    for (of, outcome, calls) in [
        ((tenant, orders), ok, 57),
        ((tenant, orders), failed, 3),
        ((tenant, few), CallOutcome::ToolError, 49),
        ((tenant, good), CallOutcome::InvalidArguments, 59),
        ((tenant, good), CallOutcome::Internal, 2),
        ((theirs, other), ok, 97),
        ((theirs, other), failed, 3),
    ] {
        count(&service, of, outcome, calls).await;
    }
    let worker = worker(&service);
    let mails = service.mail_count(ANN).await;
    worker.round().await.unwrap();
    run(&worker).await;
    assert_eq!(told(&receiver), ["alert.fired", "error_rate.exceeded"]);
    let shown = alerts(&ann, "acme").await;
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(shown[0]["rule"], "error_rate");
    assert_eq!(shown[0]["subject"], orders.to_string());
    assert_eq!(
        shown[0]["text"],
        "3 of 60 calls of the server Server orders failed in 15 minutes."
    );
    let page = shown[0]["page"].as_str().unwrap();
    assert!(page.starts_with("/calls?server=orders&outcome=error&from="));
    assert_eq!(service.mail_count(ANN).await, mails + 1);
    assert!(alerts(&bob, "bolt").await.is_empty(), "another workspace");

    service.wait(Duration::minutes(1));
    count(&service, (tenant, few), CallOutcome::InvalidArguments, 1).await;
    worker.round().await.unwrap();
    run(&worker).await;
    assert_eq!(told(&receiver), ["alert.fired", "error_rate.exceeded"]);
    let shown = alerts(&ann, "acme").await;
    assert_eq!(shown[0]["subject"], few.to_string(), "the fiftieth call");
    assert_eq!(shown[1]["count"], 1, "a standing alert fires once");
}

/// Rule: HOOK-24
#[tokio::test]
async fn error_rate_resolves_after_its_minutes_below() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, RATES).await;
    let tenant = ids(&service, &ann, "acme").await.0;
    let orders = server(&ann, "acme", "orders").await;
    let worker = worker(&service);
    count(&service, (tenant, orders), CallOutcome::Internal, 50).await;
    let after = async |minutes: i64| {
        service.wait(Duration::minutes(minutes));
        worker.round().await.unwrap();
        run(&worker).await;
        told(&receiver)
    };
    assert_eq!(after(0).await, ["alert.fired", "error_rate.exceeded"]);
    // The minute of the calls is above for the last time after ten minutes, and below after 16.
    assert!(after(10).await.is_empty());
    assert!(after(6).await.is_empty(), "below, for six minutes");
    assert!(after(8).await.is_empty(), "below, for 14 minutes");
    assert_eq!(alerts(&ann, "acme").await[0]["state"], "firing");
    assert_eq!(after(1).await, ["alert.resolved", "error_rate.recovered"]);
    assert_eq!(alerts(&ann, "acme").await[0]["state"], "resolved");
    let mail = service.newest_mail(ANN).await;
    assert!(mail.subject.contains("Resolved"), "{}", mail.subject);
    assert!(after(1).await.is_empty());
    count(&service, (tenant, orders), CallOutcome::Internal, 50).await;
    assert_eq!(after(1).await, ["alert.fired", "error_rate.exceeded"]);
}

/// Rule: HOOK-24
#[tokio::test]
async fn evaluations_at_once_fire_and_resolve_once() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &RATES[..2]).await;
    let tenant = ids(&service, &ann, "acme").await.0;
    let orders = server(&ann, "acme", "orders").await;
    let [one, two, three] = [worker(&service), worker(&service), worker(&service)];
    let at_once = async |wait: Duration| {
        service.wait(wait);
        let (a, b, c) = tokio::join!(one.round(), two.round(), three.round());
        a.and(b).and(c).unwrap();
        run(&one).await;
        told(&receiver)
    };
    for round in races::rounds("evaluations_at_once_fire_and_resolve_once") {
        service.wait(Duration::minutes(1));
        count(&service, (tenant, orders), CallOutcome::ToolError, 50).await;
        let rise = at_once(Duration::ZERO).await;
        assert_eq!(rise, ["error_rate.exceeded"], "round {round}");
        let fall = at_once(Duration::minutes(16)).await;
        assert_eq!(fall, ["error_rate.recovered"], "round {round}");
    }
}

/// Rule: HOOK-23
#[tokio::test]
async fn changed_threshold_takes_effect_at_once() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let tenant = ids(&service, &ann, "acme").await.0;
    let orders = server(&ann, "acme", "orders").await;
    let worker = worker(&service);
    count(&service, (tenant, orders), CallOutcome::Ok, 90).await;
    count(&service, (tenant, orders), CallOutcome::ToolError, 10).await;
    let evaluate = async || {
        service.wait(Duration::minutes(1));
        worker.round().await.unwrap();
        run(&worker).await;
        alerts(&ann, "acme").await.len()
    };
    let change = json!({"percent": 11, "minutes": 20});
    let set = rule(&ann, "error_rate", Some(change)).await;
    let percent = json!({
        "name": "percent", "value": 11, "default": 5, "own": 11, "minimum": 1, "maximum": 100,
    });
    assert_eq!(set["thresholds"][0], percent);
    assert_eq!(set["thresholds"][1]["value"], 20);
    assert_eq!(set["thresholds"][2]["own"], Value::Null);
    let counts = &set["counts"][0];
    assert_eq!(counts["name"], "Server orders");
    assert_eq!(
        (&counts["part"], &counts["whole"]),
        (&json!(10), &json!(100))
    );
    assert_eq!(evaluate().await, 0, "below 11 %");
    let set = rule(
        &ann,
        "error_rate",
        Some(json!({"min_calls": 101, "percent": null})),
    )
    .await;
    assert_eq!(set["thresholds"][0]["own"], Value::Null);
    assert_eq!(evaluate().await, 0, "one call too few");
    rule(&ann, "error_rate", Some(json!({"min_calls": 100}))).await;
    assert_eq!(evaluate().await, 1);
    rule(&ann, "error_rate", Some(json!({"enabled": false}))).await;
    assert_eq!(alerts(&ann, "acme").await[0]["state"], "resolved");
    assert_eq!(evaluate().await, 1, "off");
    let on = rule(&ann, "error_rate", Some(json!({"enabled": true}))).await;
    assert_eq!(on["thresholds"][2]["own"], 100, "a switch keeps thresholds");
    assert_eq!(evaluate().await, 2, "on again");
}

/// Rule: HOOK-23
#[tokio::test]
async fn threshold_outside_its_bounds_is_refused() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    for (name, change, code, field) in [
        (
            "error_rate",
            json!({"percent": 0}),
            "threshold_out_of_range",
            "percent",
        ),
        (
            "error_rate",
            json!({"minutes": 61}),
            "threshold_out_of_range",
            "minutes",
        ),
        (
            "error_rate",
            json!({"days": 3}),
            "threshold_unknown",
            "days",
        ),
        (
            "quota_near",
            json!({"percent": 100}),
            "threshold_out_of_range",
            "percent",
        ),
        (
            "upstream_down",
            json!({"percent": 5}),
            "threshold_unknown",
            "percent",
        ),
    ] {
        let before = rule(&ann, name, None).await;
        let path = format!("{RULES}/{name}");
        let refused = ann.call(Method::PATCH, &path, Some(change)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["error"]["code"], code, "{name}");
        assert_eq!(refused.json()["error"]["field"], field, "{name}");
        let after = rule(&ann, name, None).await;
        assert_eq!(after["thresholds"], before["thresholds"]);
    }
}

/// Rule: HOOK-25. The platform of the tests gives a workspace 600 calls a minute.
#[tokio::test]
async fn calls_near_the_limit_fire_once_an_hour() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &["quota.80"]).await;
    let tenant = ids(&service, &ann, "acme").await.0;
    let orders = server(&ann, "acme", "orders").await;
    let worker = worker(&service);
    // The beginning of an hour: what follows is within it.
    let into = service.clock.now().unix_timestamp().rem_euclid(3600);
    service.wait(Duration::seconds(3600 - into));
    let busy = async |calls: u64| {
        count(&service, (tenant, orders), CallOutcome::Ok, calls).await;
        worker.round().await.unwrap();
        run(&worker).await;
        service.wait(Duration::minutes(1));
        receiver.take()
    };
    assert!(busy(479).await.is_empty());
    let near = busy(480).await;
    assert_eq!(near.len(), 1, "minutes do not add up");
    let data = &near[0].json()["data"];
    assert_eq!(data["limit"], "tenant_calls");
    assert_eq!(
        (&data["used"], &data["allowed"]),
        (&json!(480), &json!(600))
    );
    assert_eq!(alerts(&ann, "acme").await[0]["rule"], "quota_near");
    assert!(busy(500).await.is_empty(), "once an hour");
    let used = &rule(&ann, "quota_near", None).await["counts"][0];
    assert_eq!((&used["part"], &used["whole"]), (&json!(500), &json!(600)));
    service.wait(Duration::hours(1));
    let mut tx = service.store.tenant(tenant).await.unwrap();
    let (name, now) = (LimitName::TenantCalls, service.clock.now());
    limits::set(&mut tx, name, Some(1_000), now).await.unwrap();
    tx.commit().await.unwrap();
    assert!(busy(700).await.is_empty(), "its own limit");
    rule(&ann, "quota_near", Some(json!({"percent": 70}))).await;
    assert_eq!(busy(1).await.len(), 1, "its own share of the limit");
}

/// Inserts the account of a workspace at a source. Its tokens cannot be opened.
async fn account(
    service: &TestService,
    (tenant, source, user): (TenantId, SourceId, UserId),
    is_renewable: bool,
    life: Duration,
) {
    let now = service.clock.now();
    let mut tx = service.store.tenant(tenant).await.unwrap();
    let key = credentials::newest_data_key(&mut tx).await.unwrap();
    let new = NewConnection {
        id: Uuid::now_v7(),
        source,
        owner: None,
        connected_by: user,
        issuer: "https://as.example",
        server: &json!({}),
        address: BASE,
        resource: None,
        scope: None,
        renewable: is_renewable,
        sealed: &[1],
        key: key.unwrap().id,
        expires_at: now + life,
    };
    assert!(upstream_oauth::connect(&mut tx, &new, now).await.unwrap());
    tx.commit().await.unwrap();
}

/// A source that is signed in to by OAuth.
async fn source(person: &Browser<'_>, name: &str) -> SourceId {
    let body = json!({"kind": "http", "name": name, "base_url": BASE});
    let made = ask(person, Method::POST, "/workspaces/acme/sources", Some(body)).await;
    let source: SourceId = made["id"].as_str().unwrap().parse().unwrap();
    let form = json!({
        "sharing": "workspace",
        "server": {
            "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token",
        },
        "client": {"client_id": "app", "client_secret": "planted", "auth": "post"},
    });
    let path = format!("/workspaces/acme/sources/{source}/sign-in");
    let set = person.call(Method::PUT, &path, Some(form)).await;
    assert!(set.status.is_success(), "{}", set.text);
    source
}

/// Rule: HOOK-26
#[tokio::test]
async fn expiring_credential_alerts_once_for_each_end() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &["credential.expiring", "alert.resolved"]).await;
    let (tenant, user) = ids(&service, &ann, "acme").await;
    let orders = source(&ann, "Orders").await;
    let renewed = source(&ann, "Renewed").await;
    let month = Duration::days(30);
    account(&service, (tenant, orders, user), false, month).await;
    account(&service, (tenant, renewed, user), true, month).await;
    let token = async |name: &str, days: i64| {
        let body =
            json!({"name": name, "role": "developer", "scopes": ["audit:read"], "days": days});
        let path = "/workspaces/acme/access-tokens";
        let made = ask(&ann, Method::POST, path, Some(body)).await;
        made["token"]["id"].as_str().unwrap().to_owned()
    };
    let pipeline = token("Pipeline", 30).await;
    token("Short", 3).await;
    let own = json!({"name": "Own", "scopes": ["audit:read"], "days": 30, "workspace": "acme"});
    ask(&ann, Method::POST, "/me/access-tokens", Some(own)).await;
    let worker = worker(&service);
    let round = async |wait: Duration| {
        service.wait(wait);
        for _ in 0..2 {
            worker.round().await.unwrap();
            run(&worker).await;
        }
        let mut told: Vec<Value> = receiver.take().iter().map(Received::json).collect();
        told.sort_by_key(|one| one["data"]["name"].to_string());
        told
    };
    assert!(round(Duration::ZERO).await.is_empty());
    assert!(round(Duration::days(22)).await.is_empty(), "eight days");
    let mails = service.mail_count(ANN).await;
    let events = round(Duration::days(1)).await;
    assert_eq!(events.len(), 2, "{events:?}");
    let (account_data, token_data) = (&events[0]["data"], &events[1]["data"]);
    assert_eq!(account_data["credential"], orders.to_string());
    assert_eq!(account_data["kind"], "account");
    assert_eq!(token_data["credential"], pipeline.as_str());
    assert_eq!(token_data["kind"], "access_token");
    assert_eq!(token_data["days"], 7);
    assert_eq!(service.mail_count(ANN).await, mails + 2);
    assert!(round(Duration::days(1)).await.is_empty(), "once");

    let ann = service.browser();
    ann.sign_in(ANN, PASSWORD).await;
    let shown = alerts(&ann, "acme").await;
    let pages: Vec<_> = shown
        .iter()
        .map(|one| one["page"].as_str().unwrap())
        .collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(pages.contains(&"/keys") && pages.contains(&format!("/sources/{orders}").as_str()));
    let path = format!("/workspaces/acme/access-tokens/{pipeline}");
    let revoked = ann.call(Method::DELETE, &path, None).await;
    assert!(revoked.status.is_success(), "{}", revoked.text);
    account(&service, (tenant, orders, user), false, month).await;
    let ended = round(Duration::ZERO).await;
    let kinds: Vec<_> = ended
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["alert.resolved", "alert.resolved"]);
    let states = alerts(&ann, "acme").await;
    assert!(states.iter().all(|one| one["state"] == "resolved"));
    let events = round(Duration::days(24)).await;
    assert_eq!(events.len(), 1, "its next end: {events:?}");
    assert_eq!(events[0]["data"]["credential"], orders.to_string());
}
