//! Webhooks: endpoints in the console's API, and deliveries to receivers on this machine (HOOK-1 to
//! HOOK-13). The test moves the clock; nothing waits for a schedule.

use std::time::Duration as Span;

use http::{Method, StatusCode};
use portolan_keys::WebhookSecret;
use portolan_net::egress::EgressPolicy;
use portolan_webhooks::worker::WebhookWorker;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    console::workspace,
    test_service::{Browser, TestService},
    webhook_receivers::{Manner, Received, Receiver},
};

const PATH: &str = "/workspaces/acme/webhooks";

/// A worker that gives up on a receiver soon.
pub(crate) fn worker(service: &TestService) -> WebhookWorker {
    WebhookWorker::with_timeout(service.state.clone(), Span::from_millis(400))
}

/// Spreads events, and sends what is due until nothing is.
pub(crate) async fn run(worker: &WebhookWorker) -> usize {
    let mut sent = 0;
    loop {
        worker.spread().await.unwrap();
        let now = worker.deliver_due().await.unwrap();
        sent += now;
        if now == 0 {
            return sent;
        }
    }
}

/// Creates an endpoint at a receiver; returns its id and secret.
pub(crate) async fn endpoint(
    person: &Browser<'_>,
    receiver: &Receiver,
    events: &[&str],
) -> (String, String) {
    let body = json!({"url": receiver.url(), "events": events});
    let answer = person.call(Method::POST, PATH, Some(body)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(receiver.one().json()["type"], "endpoint.verify");
    let made = answer.json();
    (
        made["endpoint"]["id"].as_str().unwrap().to_owned(),
        made["secret"].as_str().unwrap().to_owned(),
    )
}

async fn get(person: &Browser<'_>, path: &str) -> Value {
    let answer = person.call(Method::GET, path, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    answer.json()
}

async fn post(person: &Browser<'_>, path: &str) -> Value {
    let answer = person.call(Method::POST, path, Some(json!({}))).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text);
    answer.json()
}

/// Makes a source of events: a key of the person.
pub(crate) async fn key(person: &Browser<'_>, name: &str) -> String {
    let path = "/workspaces/acme/api-keys";
    let answer = person
        .call(Method::POST, path, Some(json!({"name": name})))
        .await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()["key"]["id"].as_str().unwrap().to_owned()
}

fn is_signed(message: &Received, secret: &str) -> bool {
    let secret = WebhookSecret::parse(secret).unwrap();
    let timestamp = message.headers["webhook-timestamp"].parse().unwrap();
    let own = secret.sign(message.id(), timestamp, message.body.as_bytes());
    message.headers["webhook-signature"]
        .split(' ')
        .any(|one| one == own)
}

async fn open(receiver: &Receiver) -> TestService {
    TestService::open_with(Receiver::policy(&[receiver])).await
}

/// The deliveries of an endpoint: type, state, attempts, status.
async fn deliveries(person: &Browser<'_>, id: &str) -> Vec<(String, String, i64, Value)> {
    let listed = get(person, &format!("{PATH}/{id}/deliveries")).await;
    let items = listed["items"].as_array().unwrap();
    items
        .iter()
        .map(|one| {
            (
                one["type"].as_str().unwrap().to_owned(),
                one["state"].as_str().unwrap().to_owned(),
                one["attempts"].as_i64().unwrap(),
                one["status"].clone(),
            )
        })
        .collect()
}

/// Rule: HOOK-1
#[tokio::test]
async fn change_in_the_console_is_delivered_once() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, secret) = endpoint(&ann, &receiver, &["key.created", "key.revoked"]).await;
    let worker = worker(&service);
    let key = key(&ann, "CI").await;
    assert_eq!(run(&worker).await, 1);
    let message = receiver.one();
    assert!(is_signed(&message, &secret));
    assert_eq!(message.headers["content-type"], "application/json");
    let body = message.json();
    assert_eq!(body["type"], "key.created");
    assert_eq!(body["data"]["key"], key.as_str());
    assert_eq!(body["data"]["name"], "CI");
    assert!(body["data"]["actor"].as_str().unwrap().starts_with("usr_"));
    assert!(message.id().starts_with("evt_"));
    assert_eq!(run(&worker).await, 0, "once");
    let path = format!("/workspaces/acme/api-keys/{key}");
    ann.call(Method::DELETE, &path, None).await;
    assert_eq!(run(&worker).await, 1);
    assert_eq!(receiver.one().json()["type"], "key.revoked");
    let all = deliveries(&ann, &id).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one.1 == "delivered" && one.3 == 204));
    let path = format!("{PATH}/{id}/deliveries/{}", message.id());
    let detail = get(&ann, &path).await;
    assert_eq!(detail["data"], body["data"]);
    assert_eq!(detail["attempts"][0]["status"], 204);
}

/// Rule: HOOK-8
#[tokio::test]
async fn failures_are_tried_again_by_the_schedule() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["key.created"]).await;
    let worker = worker(&service);
    receiver.now(Manner::Status(500, ""));
    key(&ann, "CI").await;
    assert_eq!(run(&worker).await, 1);
    let first = receiver.one();
    let pauses = [5, 300, 1800, 7200, 18_000, 36_000, 36_000];
    for (place, pause) in pauses.into_iter().enumerate() {
        service.wait(Duration::seconds(pause * 4 / 5 - 1));
        assert_eq!(run(&worker).await, 0, "attempt {place} is too early");
        service.wait(Duration::seconds(pause * 2 / 5 + 2));
        assert_eq!(run(&worker).await, 1, "attempt {place}");
        let again = receiver.one();
        assert_eq!(again.id(), first.id());
        assert_eq!(again.body, first.body);
    }
    service.wait(Duration::days(1));
    assert_eq!(run(&worker).await, 0, "the schedule is at its end");
    let failed = vec![("key.created".to_owned(), "failed".to_owned(), 8, json!(500))];
    assert_eq!(deliveries(&ann, &id).await, failed);

    // A replay is a whole new round, under the same id.
    receiver.now(Manner::Status(200, ""));
    let path = format!("{PATH}/{id}/deliveries/{}/replay", first.id());
    post(&ann, &path).await;
    assert_eq!(run(&worker).await, 1);
    assert_eq!(receiver.one().id(), first.id());
    let detail = get(&ann, path.strip_suffix("/replay").unwrap()).await;
    assert_eq!(detail["delivery"]["state"], "delivered");
    assert_eq!(detail["attempts"].as_array().unwrap().len(), 9);
    assert_eq!(detail["attempts"][8]["response_head"], "ok");
}

/// Rule: HOOK-8
#[tokio::test]
async fn retry_after_of_the_receiver_is_honoured() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &["key.created"]).await;
    let worker = worker(&service);
    receiver.now(Manner::Status(503, "retry-after: 600\r\n"));
    key(&ann, "CI").await;
    assert_eq!(run(&worker).await, 1);
    service.wait(Duration::seconds(590));
    assert_eq!(run(&worker).await, 0);
    service.wait(Duration::seconds(11));
    assert_eq!(run(&worker).await, 1);
}

/// Rule: HOOK-10
#[tokio::test]
async fn slow_and_moving_receivers_end_an_attempt() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["key.created"]).await;
    let worker = worker(&service);
    let cases = [
        (Manner::Hangs, "pending", None),
        (Manner::DripsHead, "pending", None),
        (
            Manner::Status(302, "location: /hook\r\n"),
            "pending",
            Some(302),
        ),
        (Manner::DripsBody, "delivered", Some(200)),
        (Manner::Floods, "delivered", Some(200)),
    ];
    for (manner, state, status) in cases {
        receiver.now(manner.clone());
        key(&ann, "CI").await;
        assert_eq!(run(&worker).await, 1, "{manner:?}");
        let message = receiver.one();
        let detail = get(&ann, &format!("{PATH}/{id}/deliveries/{}", message.id())).await;
        assert_eq!(detail["delivery"]["state"], state, "{manner:?}");
        let attempt = &detail["attempts"][0];
        assert_eq!(attempt["status"].as_i64(), status, "{manner:?}");
        match manner {
            Manner::Hangs | Manner::DripsHead => {
                assert!(attempt["fault"].as_str().unwrap().contains("400 ms"));
            }
            Manner::DripsBody => {
                let head = attempt["response_head"].as_str().unwrap();
                assert!(head.starts_with("begins") && head.len() < 1024);
            }
            Manner::Floods => {
                assert_eq!(attempt["response_head"].as_str().unwrap().len(), 1024);
            }
            Manner::Status(..) => {}
        }
    }
}

/// Rule: HOOK-9
#[tokio::test]
async fn receiver_that_is_gone_is_disabled() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["key.created"]).await;
    let (other, _) = endpoint(&ann, &receiver, &["endpoint.disabled"]).await;
    let worker = worker(&service);
    receiver.now(Manner::Status(410, ""));
    key(&ann, "CI").await;
    let before = service.mail_count("ann@acme.example").await;
    assert_eq!(worker.spread().await.unwrap(), 1);
    assert_eq!(worker.deliver_due().await.unwrap(), 1);
    receiver.now(Manner::Status(200, ""));
    receiver.take();
    assert!(run(&worker).await >= 1);
    let told = receiver.one().json();
    assert_eq!(told["type"], "endpoint.disabled");
    assert_eq!(told["data"]["endpoint"], id.as_str());
    assert_eq!(told["data"]["reason"], "gone");
    let shown = get(&ann, &format!("{PATH}/{id}")).await;
    assert_eq!(shown["state"], "disabled");
    assert_eq!(shown["disabled_reason"], "gone");
    assert_eq!(service.mail_count("ann@acme.example").await, before + 1);
    let mail = service.newest_mail("ann@acme.example").await;
    assert!(
        mail.body.contains(&format!("/w/acme/webhooks/{id}")),
        "{}",
        mail.body
    );

    // While it is disabled it receives nothing; afterwards it can catch up.
    key(&ann, "Two").await;
    assert_eq!(run(&worker).await, 0);
    post(&ann, &format!("{PATH}/{id}/resume")).await;
    let since = json!({"since": "2026-01-01T00:00:00Z"});
    service.wait(Duration::seconds(1));
    let since = ann
        .call(Method::POST, &format!("{PATH}/{id}/replay"), Some(since))
        .await;
    assert_eq!(
        since.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        since.text
    );
    let from = service.clock.now() - Duration::DAY;
    let from = from
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap();
    let since = ann
        .call(
            Method::POST,
            &format!("{PATH}/{id}/replay"),
            Some(json!({"since": from})),
        )
        .await;
    assert_eq!(since.json()["count"], 2, "{}", since.text);
    run(&worker).await;
    let names: Vec<_> = receiver.take().iter().map(Received::json).collect();
    let created = |one: &&Value| one["type"] == "key.created";
    assert_eq!(names.iter().filter(created).count(), 2, "{names:?}");
    assert_eq!(
        get(&ann, &format!("{PATH}/{other}")).await["state"],
        "active"
    );
}

/// Rule: HOOK-9
#[tokio::test]
async fn five_days_of_failure_disable_an_endpoint() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["member.joined", "key.created"]).await;
    let worker = worker(&service);
    receiver.now(Manner::Status(500, ""));
    key(&ann, "One").await;
    run(&worker).await;
    let shown = get(&ann, &format!("{PATH}/{id}")).await;
    assert!(shown["failing_since"].is_string());
    // One success ends the count.
    receiver.now(Manner::Status(200, ""));
    service.wait(Duration::days(4));
    run(&worker).await;
    assert!(get(&ann, &format!("{PATH}/{id}")).await["failing_since"].is_null());
    receiver.now(Manner::Status(500, ""));
    let test = format!("{PATH}/{id}/test");
    let ann = service.browser();
    ann.sign_in("ann@acme.example", crate::test_service::PASSWORD)
        .await;
    post(&ann, &test).await;
    run(&worker).await;
    for day in 1..=5 {
        assert_eq!(
            get(&ann, &format!("{PATH}/{id}")).await["state"],
            "active",
            "day {day}"
        );
        service.wait(Duration::DAY);
        post(&ann, &test).await;
        run(&worker).await;
    }
    let shown = get(&ann, &format!("{PATH}/{id}")).await;
    assert_eq!(shown["state"], "disabled", "{shown}");
    assert_eq!(shown["disabled_reason"], "failing");
}

/// Rule: HOOK-6
#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, old) = endpoint(&ann, &receiver, &["key.created"]).await;
    let worker = worker(&service);
    let new = post(&ann, &format!("{PATH}/{id}/rotate")).await;
    let new = new["secret"].as_str().unwrap();
    let test = format!("{PATH}/{id}/test");
    post(&ann, &test).await;
    run(&worker).await;
    let message = receiver.one();
    assert!(is_signed(&message, &old) && is_signed(&message, new));
    service.wait(Duration::hours(23));
    post(&ann, &test).await;
    run(&worker).await;
    assert!(is_signed(&receiver.one(), &old));
    service.wait(Duration::hours(2));
    post(&ann, &test).await;
    run(&worker).await;
    let message = receiver.one();
    assert!(!is_signed(&message, &old) && is_signed(&message, new));
    let text = get(&ann, PATH).await.to_string();
    assert!(!text.contains("whsec_"), "secrets are shown once");
}

/// Rule: HOOK-3
#[tokio::test]
async fn endpoint_is_kept_only_after_its_challenge() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let create = async |body: Value| ann.call(Method::POST, PATH, Some(body)).await;
    receiver.now(Manner::Status(404, ""));
    let events = json!(["key.created"]);
    let answer = create(json!({"url": receiver.url(), "events": events})).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.json()["error"]["code"], "not_verified");
    assert!(answer.text.contains("404"), "{}", answer.text);
    receiver.now(Manner::Status(302, "location: /ok\r\n"));
    let answer = create(json!({"url": receiver.url(), "events": events})).await;
    assert_eq!(answer.json()["error"]["code"], "not_verified");
    assert_eq!(receiver.take().len(), 2, "redirects are not followed");
    receiver.now(Manner::Status(200, ""));
    for url in [
        "http://127.0.0.1:9/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "https://[::1]/",
        "https://0x7f.1/",
        "https://localhost/",
        "http://example.com/",
        "ftp://example.com/",
        "https://user:password@example.com/",
        "example.com",
    ] {
        let answer = create(json!({"url": url, "events": events})).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
        assert_eq!(answer.json()["error"]["field"], "url", "{url}");
    }
    let many: Vec<Value> = (0..11)
        .map(|n| json!({"name": format!("x-{n}"), "value": "1"}))
        .collect();
    for (body, field) in [
        (json!({"url": receiver.url(), "events": []}), "events"),
        (
            json!({"url": receiver.url(), "events": ["key.created", "x.y"]}),
            "events[1]",
        ),
        (
            json!({"url": receiver.url(), "events": events, "headers": many}),
            "headers",
        ),
        (
            json!({"url": receiver.url(), "events": events, "headers": [{"name": "webhook-id", "value": "x"}]}),
            "headers[0].name",
        ),
        (
            json!({"url": receiver.url(), "events": events, "headers": [{"name": "x", "value": "a\u{e9}"}]}),
            "headers[0].value",
        ),
    ] {
        let answer = create(body).await;
        assert_eq!(answer.json()["error"]["field"], field, "{}", answer.text);
    }
    assert!(receiver.take().is_empty());
    assert_eq!(get(&ann, PATH).await["items"], json!([]));
}

/// Rule: HOOK-5
#[tokio::test]
async fn headers_and_slack_urls_stay_secret() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let url = format!("{}/T0/planted-path", receiver.url());
    let headers = json!([{"name": "Authorization", "value": "Bearer planted-value"}]);
    let body =
        json!({"url": url, "format": "slack", "events": ["key.created"], "headers": headers});
    let made = ann.call(Method::POST, PATH, Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let challenge = receiver.one();
    assert!(challenge.json()["text"].as_str().unwrap().contains("Acme"));
    let worker = worker(&service);
    key(&ann, "<!channel>").await;
    run(&worker).await;
    let message = receiver.one();
    assert_eq!(message.headers["authorization"], "Bearer planted-value");
    assert!(!message.headers.contains_key("webhook-signature"));
    let text = message.json()["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("&lt;!channel&gt;") && !text.contains("<!"),
        "{text}"
    );
    let shown = get(&ann, PATH).await.to_string() + &made.text;
    assert!(shown.contains("authorization"), "{shown}");
    assert!(!shown.contains("planted"), "{shown}");
    let audit = get(&ann, "/workspaces/acme/audit").await.to_string();
    assert!(audit.contains("webhook.created") && !audit.contains("planted"));
}

/// Rule: HOOK-4
#[tokio::test]
async fn workspace_has_at_most_twenty_endpoints() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    for _ in 0..20 {
        endpoint(&ann, &receiver, &["key.created"]).await;
    }
    let body = json!({"url": receiver.url(), "events": ["key.created"]});
    let answer = ann.call(Method::POST, PATH, Some(body)).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.json()["error"]["code"], "too_many_webhooks");
    assert!(receiver.take().is_empty(), "no challenge");
    // One endpoint takes few deliveries at once, and a node has a limit over all.
    key(&ann, "CI").await;
    let worker = worker(&service);
    assert_eq!(worker.spread().await.unwrap(), 1);
    assert_eq!(worker.deliver_due().await.unwrap(), 20);
}

/// Rule: HOOK-11
#[tokio::test]
async fn endpoint_takes_four_deliveries_at_once() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["key.created"]).await;
    for _ in 0..6 {
        post(&ann, &format!("{PATH}/{id}/test")).await;
    }
    let worker = worker(&service);
    assert_eq!(worker.deliver_due().await.unwrap(), 4);
    assert_eq!(worker.deliver_due().await.unwrap(), 2);
    let ids: std::collections::BTreeSet<_> = receiver
        .take()
        .iter()
        .map(|one| one.id().to_owned())
        .collect();
    assert_eq!(ids.len(), 6);
}

/// Rule: HOOK-7
#[tokio::test]
async fn two_workers_send_each_delivery_once() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    endpoint(&ann, &receiver, &["key.created"]).await;
    let (one, two) = (worker(&service), worker(&service));
    for round in crate::races::rounds("deliveries of webhooks") {
        post(&ann, &format!("{PATH}/{}/test", first(&ann).await)).await;
        let sent = tokio::join!(one.deliver_due(), two.deliver_due());
        let sent = sent.0.unwrap() + sent.1.unwrap();
        assert_eq!(sent, 1, "round {round}");
        receiver.one();
    }
}

async fn first(person: &Browser<'_>) -> String {
    let all = get(person, PATH).await;
    all["items"][0]["id"].as_str().unwrap().to_owned()
}

/// Rule: HOOK-13
#[tokio::test]
async fn paused_endpoint_waits_and_moved_one_keeps_its_secret() {
    let (receiver, other) = (Receiver::start().await, Receiver::start().await);
    let service = TestService::open_with(Receiver::policy(&[&receiver, &other])).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, secret) = endpoint(&ann, &receiver, &["key.created"]).await;
    let worker = worker(&service);
    post(&ann, &format!("{PATH}/{id}/pause")).await;
    let test = ann
        .call(Method::POST, &format!("{PATH}/{id}/test"), Some(json!({})))
        .await;
    assert_eq!(test.json()["error"]["code"], "not_active");
    key(&ann, "CI").await;
    assert_eq!(run(&worker).await, 0);
    let target = json!({"url": other.url(), "headers": []});
    let moved = ann
        .call(Method::PUT, &format!("{PATH}/{id}/target"), Some(target))
        .await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    assert!(is_signed(&other.one(), &secret), "the challenge");
    post(&ann, &format!("{PATH}/{id}/resume")).await;
    assert_eq!(run(&worker).await, 1);
    assert!(is_signed(&other.one(), &secret));
    assert!(receiver.take().is_empty());
    let change = json!({"description": "Ops", "events": ["key.revoked"]});
    let changed = ann
        .call(Method::PATCH, &format!("{PATH}/{id}"), Some(change))
        .await;
    assert_eq!(changed.json()["events"], json!(["key.revoked"]));
    key(&ann, "Three").await;
    assert_eq!(run(&worker).await, 0, "not subscribed");
    let path = format!("{PATH}/{id}");
    let deleted = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let gone = ann.call(Method::GET, &path, None).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}

/// Rule: HOOK-4
#[tokio::test]
async fn endpoints_of_another_workspace_are_unknown() {
    let receiver = Receiver::start().await;
    let service = open(&receiver).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (id, _) = endpoint(&ann, &receiver, &["key.created"]).await;
    key(&ann, "CI").await;
    run(&worker(&service)).await;
    let event = receiver.one().id().to_owned();
    let bob = service.person("bob@beta.example").await;
    workspace(&bob, "beta").await;
    let target = json!({"url": receiver.url()});
    let since = json!({"since": service.clock.now().format(&time::format_description::well_known::Rfc3339).unwrap()});
    for (method, rest, body) in [
        (Method::GET, String::new(), None),
        (
            Method::PATCH,
            String::new(),
            Some(json!({"description": "x"})),
        ),
        (Method::DELETE, String::new(), None),
        (Method::PUT, "/target".to_owned(), Some(target)),
        (Method::POST, "/rotate".to_owned(), Some(json!({}))),
        (Method::POST, "/pause".to_owned(), Some(json!({}))),
        (Method::POST, "/resume".to_owned(), Some(json!({}))),
        (Method::POST, "/test".to_owned(), Some(json!({}))),
        (Method::POST, "/replay".to_owned(), Some(since)),
        (Method::GET, "/deliveries".to_owned(), None),
        (Method::GET, format!("/deliveries/{event}"), None),
        (
            Method::POST,
            format!("/deliveries/{event}/replay"),
            Some(json!({})),
        ),
    ] {
        for workspace in ["acme", "beta"] {
            let path = format!("/workspaces/{workspace}/webhooks/{id}{rest}");
            let answer = bob.call(method.clone(), &path, body.clone()).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}");
        }
    }
    assert!(receiver.take().is_empty());
    assert_eq!(get(&ann, &format!("{PATH}/{id}")).await["state"], "active");
    assert_eq!(
        get(&bob, "/workspaces/beta/webhooks").await["items"],
        json!([])
    );
}

/// Rule: HOOK-2
#[tokio::test]
async fn schemas_of_all_events_are_served() {
    let service = TestService::open_with(EgressPolicy::default()).await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let types = get(&ann, "/workspaces/acme/event-types").await;
    let types = types["items"].as_array().unwrap();
    assert!(types.len() > 15);
    for one in types {
        let url = one["schema"].as_str().unwrap();
        let path = url.strip_prefix("https://portolan.test").unwrap();
        let answer = service.browser().get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let schema = answer.json();
        assert_eq!(schema["$id"], url);
        assert_eq!(schema["properties"]["type"]["const"], one["name"]);
    }
    let unknown = service.browser().get("/schemas/events/x.y.v1.json").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}
