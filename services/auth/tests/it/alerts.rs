//! Alerts: what fires and ends them, the channels, and what a person has read (HOOK-20 to HOOK-22).

use http::{Method, StatusCode};
use portolan_model::id::{SourceId, TenantId};
use portolan_storage::registry::{
    credential_states::{self, CredentialState, Repeat, Seen},
    upstreams,
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    console::{ids, workspace},
    test_service::{Browser, TestService},
    webhook_receivers::{Received, Receiver},
    webhooks::{endpoint, key, run, worker},
};

const ALERTS: &str = "/workspaces/acme/alerts";
const RULES: &str = "/workspaces/acme/alert-rules";
const ANN: &str = "ann@acme.example";

async fn alerts(person: &Browser<'_>) -> Value {
    let answer = person.call(Method::GET, ALERTS, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()
}

async fn change(person: &Browser<'_>, rule: &str, change: Value) -> Value {
    let path = format!("{RULES}/{rule}");
    let answer = person.call(Method::PATCH, &path, Some(change)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let rules = answer.json();
    let all = rules["items"].as_array().unwrap();
    all.iter().find(|one| one["name"] == rule).unwrap().clone()
}

/// A source with a credential.
async fn source(service: &TestService, person: &Browser<'_>) -> (TenantId, SourceId) {
    let new = json!({"kind": "http", "name": "Orders", "base_url": "https://api.example"});
    let made = person
        .call(Method::POST, "/workspaces/acme/sources", Some(new))
        .await;
    let source: SourceId = made.json()["id"].as_str().unwrap().parse().unwrap();
    let path = format!("/workspaces/acme/sources/{source}/credential");
    let secret = json!({"kind": "bearer", "token": "planted"});
    let set = person.call(Method::PUT, &path, Some(secret)).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    (ids(service, person, "acme").await.0, source)
}

/// As an MCP node writes what a call showed.
async fn saw(service: &TestService, tenant: TenantId, source: SourceId, state: CredentialState) {
    let seen = Seen {
        source,
        version: 1,
        state,
        at: service.clock.now(),
    };
    let mut tx = service.store.node(tenant).await.unwrap();
    credential_states::note(&mut tx, &[seen], Repeat::Seldom)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// Rule: HOOK-20
#[tokio::test]
async fn refused_credential_fires_once_and_ends_when_it_works() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(
        &ann,
        &receiver,
        &[
            "credential.refused",
            "credential.restored",
            "alert.fired",
            "alert.resolved",
        ],
    )
    .await;
    let (tenant, source) = source(&service, &ann).await;
    let worker = worker(&service);
    saw(&service, tenant, source, CredentialState::Works).await;
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"], json!([]));
    let mails = service.mail_count(ANN).await;
    for _ in 0..3 {
        saw(&service, tenant, source, CredentialState::Refused(401)).await;
        service.wait(Duration::seconds(1));
    }
    run(&worker).await;
    let mut told: Vec<Value> = receiver.take().iter().map(Received::json).collect();
    // Deliveries that are due together have no order.
    told.sort_by_key(|one| std::cmp::Reverse(one["type"].to_string()));
    let kinds: Vec<_> = told
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["credential.refused", "alert.fired"]);
    assert_eq!(told[0]["data"]["status"], 401);
    assert_eq!(told[1]["data"]["severity"], "critical");
    let shown = alerts(&ann).await;
    assert_eq!(shown["unread"], 1);
    let alert = &shown["items"][0];
    assert_eq!(alert["state"], "firing");
    assert_eq!(alert["page"], format!("/sources/{source}"));
    assert_eq!(
        alert["text"],
        "The API of Orders refuses its credential: HTTP status 401."
    );
    assert_eq!(service.mail_count(ANN).await, mails + 1);
    let mail = service.newest_mail(ANN).await;
    assert!(mail.body.contains(&format!("/w/acme/sources/{source}")));

    saw(&service, tenant, source, CredentialState::Works).await;
    run(&worker).await;
    let shown = alerts(&ann).await;
    assert_eq!(shown["items"][0]["state"], "resolved");
    let mut told: Vec<Value> = receiver.take().iter().map(Received::json).collect();
    // Deliveries that are due together have no order.
    told.sort_by_key(|one| std::cmp::Reverse(one["type"].to_string()));
    assert_eq!(told[1]["type"], "alert.resolved", "{told:?}");
    assert_eq!(service.mail_count(ANN).await, mails + 2);
    assert!(service.newest_mail(ANN).await.subject.contains("Resolved"));
}

/// Rule: HOOK-21
#[tokio::test]
async fn refused_alert_ends_with_the_credential_it_is_about() {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &["alert.resolved"]).await;
    let worker = worker(&service);
    let secret = json!({"kind": "bearer", "token": "another"});
    let address = json!({"base_url": "https://api.example/v2"});
    let server = json!({
        "authorization_endpoint": "https://as.example/authorize", "token_endpoint": "https://as.example/token",
    });
    let sign_in =
        json!({"sharing": "person", "server": server, "client": {"client_id": "portolan"}});
    for (method, path, body) in [
        (Method::PUT, "/credential", Some(secret)),
        (Method::DELETE, "/credential", None),
        (Method::PATCH, "", Some(address)),
        (Method::PUT, "/sign-in", Some(sign_in)),
    ] {
        let (tenant, source) = source(&service, &ann).await;
        saw(&service, tenant, source, CredentialState::Refused(401)).await;
        run(&worker).await;
        let subject = json!(source.to_string());
        let newest = async || alerts(&ann).await["items"][0].clone();
        assert_eq!(newest().await["subject"], subject, "{path}");
        assert_eq!(newest().await["state"], "firing", "{path}");
        let mails = service.mail_count(ANN).await;
        let target = format!("/workspaces/acme/sources/{source}{path}");
        let changed = ann.call(method.clone(), &target, body).await;
        assert!(changed.status.is_success(), "{path}: {}", changed.text);
        assert_eq!(newest().await["state"], "resolved", "{method} {path}");
        run(&worker).await;
        assert_eq!(newest().await["state"], "resolved", "{method} {path}");
        let told = receiver.one().json();
        assert_eq!(told["data"]["subject"], subject, "{method} {path}");
        assert_eq!(service.mail_count(ANN).await, mails, "a person did it");
        service.wait(Duration::seconds(1));
    }
}

/// Rule: HOOK-20. The event of a refusal is older than the credential that took its place.
#[tokio::test]
async fn refusal_of_a_former_credential_fires_no_alert() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let (tenant, source) = source(&service, &ann).await;
    let worker = worker(&service);
    saw(&service, tenant, source, CredentialState::Refused(401)).await;
    let path = format!("/workspaces/acme/sources/{source}/credential");
    let secret = json!({"kind": "bearer", "token": "another"});
    let set = ann.call(Method::PUT, &path, Some(secret)).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"], json!([]));
}

/// Rule: HOOK-21
#[tokio::test]
async fn standing_alert_notifies_again_after_four_hours() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let (tenant, source) = source(&service, &ann).await;
    let worker = worker(&service);
    saw(&service, tenant, source, CredentialState::Refused(403)).await;
    run(&worker).await;
    let mails = service.mail_count(ANN).await;
    let read = ann
        .call(Method::POST, &format!("{ALERTS}/read"), Some(json!({})))
        .await;
    assert_eq!(read.status, StatusCode::NO_CONTENT);
    assert_eq!(alerts(&ann).await["unread"], 0);
    service.wait(Duration::hours(4) - Duration::minutes(1));
    worker.round().await.unwrap();
    assert_eq!(service.mail_count(ANN).await, mails);
    service.wait(Duration::minutes(2));
    worker.round().await.unwrap();
    worker.round().await.unwrap();
    assert_eq!(service.mail_count(ANN).await, mails + 1, "once");
    let shown = alerts(&ann).await;
    assert_eq!(shown["unread"], 1, "unread again");
    let id = shown["items"][0]["id"].as_str().unwrap();
    ann.call(
        Method::POST,
        &format!("{ALERTS}/{id}/read"),
        Some(json!({})),
    )
    .await;
    assert_eq!(alerts(&ann).await["unread"], 0);
}

/// Rule: HOOK-22
#[tokio::test]
async fn muted_rule_tells_nothing_and_a_rule_that_is_off_ends() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let (tenant, source) = source(&service, &ann).await;
    let worker = worker(&service);
    let rule = "credential_refused";
    let muted = change(&ann, rule, json!({"mute_hours": 6})).await;
    assert!(muted["muted_until"].is_string());
    let mails = service.mail_count(ANN).await;
    saw(&service, tenant, source, CredentialState::Refused(401)).await;
    run(&worker).await;
    assert_eq!(service.mail_count(ANN).await, mails);
    assert_eq!(alerts(&ann).await["items"][0]["state"], "firing");
    service.wait(Duration::hours(7));
    worker.round().await.unwrap();
    assert_eq!(service.mail_count(ANN).await, mails + 1, "the mute is over");
    let off = change(&ann, rule, json!({"enabled": false})).await;
    assert_eq!(off["enabled"], false);
    assert_eq!(alerts(&ann).await["items"][0]["state"], "resolved");
    saw(&service, tenant, source, CredentialState::Works).await;
    saw(&service, tenant, source, CredentialState::Refused(401)).await;
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"].as_array().unwrap().len(), 1);
    let path = format!("{RULES}/{rule}");
    for hours in [0, 2161] {
        let answer = ann
            .call(Method::PATCH, &path, Some(json!({"mute_hours": hours})))
            .await;
        assert_eq!(answer.json()["error"]["field"], "mute_hours");
    }
    let unknown = ann
        .call(Method::PATCH, &format!("{RULES}/none"), Some(json!({})))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// Rule: HOOK-20
#[tokio::test]
async fn upstream_alert_begins_with_the_second_failure() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let (tenant, source) = source(&service, &ann).await;
    let worker = worker(&service);
    let now = service.clock.now();
    let mut tx = service.store.tenant(tenant).await.unwrap();
    upstreams::insert(&mut tx, source, "", false, now)
        .await
        .unwrap();
    upstreams::failed(&mut tx, source, "no answer", now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"], json!([]), "one lost look");
    for _ in 0..2 {
        let mut tx = service.store.tenant(tenant).await.unwrap();
        upstreams::failed(&mut tx, source, "no answer", now)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    run(&worker).await;
    let shown = alerts(&ann).await;
    assert_eq!(shown["items"][0]["rule"], "upstream_down");
    assert_eq!(shown["items"][0]["count"], 1);
    let (none, list) = (json!({}), json!([]));
    let said = upstreams::Said {
        revision: "2025-11-25",
        name: None,
        version: None,
        instructions: None,
        capabilities: &none,
        skipped: &list,
    };
    let mut tx = service.store.tenant(tenant).await.unwrap();
    upstreams::looked(&mut tx, source, &said, None, now, now, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"][0]["state"], "resolved");
}

/// Rule: HOOK-20
#[tokio::test]
async fn expiring_key_alerts_at_each_step_once() {
    let service = TestService::open().await;
    let ann = service.person(ANN).await;
    workspace(&ann, "acme").await;
    let id = key(&ann, "CI").await;
    let worker = worker(&service);
    let mails = service.mail_count(ANN).await;
    let step = async || {
        for _ in 0..2 {
            worker.round().await.unwrap();
            run(&worker).await;
        }
        service.mail_count(ANN).await - mails
    };
    assert_eq!(step().await, 0);
    // A key lives 90 days.
    service.wait(Duration::days(77));
    assert_eq!(step().await, 1);
    let mail = service.newest_mail(ANN).await;
    assert!(
        mail.subject.contains("CI expires within 14 days"),
        "{}",
        mail.subject
    );
    service.wait(Duration::days(11));
    assert_eq!(step().await, 2);
    service.wait(Duration::days(1) + Duration::hours(1));
    assert_eq!(step().await, 3);
    assert!(
        service
            .newest_mail(ANN)
            .await
            .subject
            .contains("within a day")
    );
    let ann = service.browser();
    ann.sign_in(ANN, crate::test_service::PASSWORD).await;
    let shown = alerts(&ann).await;
    assert_eq!(shown["items"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["items"][0]["subject"], id.as_str());
    assert_eq!(shown["items"][0]["count"], 3);
    let path = format!("/workspaces/acme/api-keys/{id}");
    let revoked = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT, "{}", revoked.text);
    run(&worker).await;
    assert_eq!(alerts(&ann).await["items"][0]["state"], "resolved");
}
