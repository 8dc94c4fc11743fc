//! Endpoints of webhooks in the file of a workspace (CONF-14), with receivers on this machine.

use http::{Method, StatusCode};
use portolan_model::member::Role;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{code, of_workspace},
    configuration::{applied, exported, file, fine, planned, put},
    console::workspace,
    test_service::{Browser, TestService},
    webhook_receivers::{Manner, Receiver},
    webhooks::{key, run, worker},
};

const HOOKS: &str = "/workspaces/acme/webhooks";

/// A workspace, and a receiver that the service may call.
async fn scene() -> (Receiver, TestService) {
    let receiver = Receiver::start().await;
    let service = TestService::open_with(Receiver::policy(&[&receiver])).await;
    (receiver, service)
}

/// A file with one endpoint, with `more` members of it.
fn with_hook(receiver: &Receiver, more: &str) -> String {
    let url = receiver.url();
    file(&format!(
        "webhooks:\n  - url: {url}\n    events: [key.created]\n{more}"
    ))
}

const HEADER: &str = "    headers: [{name: X-Key, secret: env:HOOK_KEY}]\n";

fn hook_key(value: &str) -> Value {
    json!({"secrets": {"env:HOOK_KEY": value}})
}

async fn hooks(person: &Browser<'_>) -> Vec<Value> {
    let listed = fine(&person.call(Method::GET, HOOKS, None).await);
    listed["items"].as_array().unwrap().clone()
}

/// Rule: CONF-14
#[tokio::test]
async fn a_new_endpoint_is_challenged_when_it_is_applied() {
    let (receiver, service) = scene().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = with_hook(&receiver, HEADER);
    let plan = fine(&planned(&ann, "acme", &text, hook_key("planted-one")).await);
    assert_eq!(plan["changes"][0]["kind"], "webhook", "{plan}");
    assert_eq!(plan["changes"][0]["key"], receiver.url(), "{plan}");
    assert_eq!(receiver.take().len(), 0, "a plan sends nothing");

    receiver.now(Manner::Status(500, ""));
    let refused = applied(&ann, "acme", &plan).await;
    assert_eq!(code(&refused), "not_verified", "{}", refused.text);
    assert_eq!(refused.json()["error"]["details"]["line"], 4);
    assert_eq!(receiver.one().json()["type"], "endpoint.verify");
    assert_eq!(hooks(&ann).await, Vec::<Value>::new());

    receiver.now(Manner::Status(204, ""));
    let put = fine(&applied(&ann, "acme", &plan).await);
    let challenge = receiver.one();
    assert_eq!(challenge.json()["type"], "endpoint.verify");
    assert_eq!(challenge.headers["x-key"], "planted-one");
    assert!(challenge.headers["webhook-signature"].starts_with("v1,"));
    let made = hooks(&ann).await;
    assert_eq!(made[0]["managed_by"], "acme-prod", "{made:?}");
    let export = exported(&ann, "acme").await;
    let vault = format!("secret: vault:{}", receiver.url());
    assert!(export.contains(&vault), "{export}");
    let audit = fine(&ann.call(Method::GET, "/workspaces/acme/audit", None).await);
    for shown in [plan.to_string(), put.to_string(), export, audit.to_string()] {
        assert!(!shown.contains("planted-"), "{shown}");
        assert!(!shown.contains("whsec_"), "{shown}");
    }

    // The receiver gets its secret by a rotation.
    let id = made[0]["id"].as_str().unwrap();
    let path = format!("{HOOKS}/{id}/rotate");
    let rotated = fine(&ann.call(Method::POST, &path, Some(json!({}))).await);
    let secret = rotated["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"), "{rotated}");
    let plan = fine(&planned(&ann, "acme", &text, hook_key("planted-one")).await);
    assert_eq!(plan["changes"], json!([]), "a rotation is no difference");
    key(&ann, "CI").await;
    assert_eq!(run(&worker(&service)).await, 1);
    assert_eq!(receiver.one().headers["x-key"], "planted-one");
}

/// Rule: CONF-14
#[tokio::test]
async fn other_headers_are_challenged_and_other_events_are_not() {
    let (receiver, service) = scene().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = with_hook(&receiver, HEADER);
    put(&ann, "acme", &text, hook_key("planted-one")).await;
    receiver.take();
    let more = format!("{HEADER}    description: Ours\n    status: paused\n");
    let other = with_hook(&receiver, &more).replace("[key.created]", "[key.revoked, key.created]");
    let changed = put(&ann, "acme", &other, hook_key("planted-one")).await;
    assert_eq!(changed["changes"][0]["op"], "update", "{changed}");
    assert_eq!(receiver.take().len(), 0, "no other target");
    let hook = &hooks(&ann).await[0];
    assert_eq!(hook["state"], "paused", "{hook}");
    assert_eq!(hook["description"], "Ours", "{hook}");
    assert_eq!(
        hook["events"],
        json!(["key.created", "key.revoked"]),
        "{hook}"
    );

    let plan = fine(&planned(&ann, "acme", &other, hook_key("planted-two")).await);
    let expected = json!([{"op": "update", "kind": "webhook", "key": receiver.url(), "fields": [
        {"path": "headers.secret", "before": "(stored)", "after": "(changed)"}]}]);
    assert_eq!(plan["changes"], expected);
    fine(&applied(&ann, "acme", &plan).await);
    assert_eq!(receiver.one().headers["x-key"], "planted-two");

    // The vault keeps the value, and another endpoint does not get it.
    let kept = other.replace("env:HOOK_KEY", &format!("vault:{}", receiver.url()));
    let plan = fine(&planned(&ann, "acme", &kept, json!({})).await);
    assert_eq!(plan["changes"], json!([]));
    let moved = kept.replacen("/hook\n", "/other\n", 1);
    let answer = planned(&ann, "acme", &moved, json!({})).await;
    assert_eq!(code(&answer), "secret_unknown", "{}", answer.text);

    // A change in the console is overwritten; one after the plan is refused.
    let plan = fine(&planned(&ann, "acme", &text, hook_key("planted-two")).await);
    let id = hooks(&ann).await[0]["id"].as_str().unwrap().to_owned();
    let by_hand = json!({"description": "By hand"});
    let path = format!("{HOOKS}/{id}");
    fine(&ann.call(Method::PATCH, &path, Some(by_hand)).await);
    let late = applied(&ann, "acme", &plan).await;
    assert_eq!(code(&late), "plan_differs", "{}", late.text);
    put(&ann, "acme", &text, hook_key("planted-two")).await;
    let hook = &hooks(&ann).await[0];
    assert_eq!(
        (&hook["description"], &hook["state"]),
        (&json!(""), &json!("active")),
        "{hook}"
    );
}

/// Rule: CONF-14
#[tokio::test]
async fn a_file_deletes_its_endpoints_and_none_for_slack() {
    let (receiver, service) = scene().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    put(&ann, "acme", &with_hook(&receiver, ""), json!({})).await;
    let slack = json!({"url": format!("{}/T1/secret", receiver.url()), "format": "slack",
        "events": ["alert.fired"]});
    fine(&ann.call(Method::POST, HOOKS, Some(slack)).await);
    let by_hand = json!({"url": format!("{}/own", receiver.url()), "events": ["key.created"]});
    fine(&ann.call(Method::POST, HOOKS, Some(by_hand)).await);
    let export = exported(&ann, "acme").await;
    assert_eq!(export.matches("- url:").count(), 2, "{export}");
    let empty = file("");
    let deleted = async |prune: &str| -> Vec<String> {
        let plan = fine(&planned(&ann, "acme", &empty, json!({"prune": prune})).await);
        let changes = plan["changes"].as_array().unwrap().clone();
        let key = |one: &Value| one["key"].as_str().unwrap().to_owned();
        changes.iter().map(key).collect()
    };
    let (own, all) = (receiver.url(), format!("{}/own", receiver.url()));
    assert_eq!(deleted("none").await, Vec::<String>::new());
    assert_eq!(deleted("owned").await, std::slice::from_ref(&own));
    assert_eq!(deleted("all").await, [own, all]);
    put(&ann, "acme", &empty, json!({"prune": "all"})).await;
    let left = hooks(&ann).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["format"], "slack", "{left:?}");
}

/// Rules: CONF-12, CONF-14
#[tokio::test]
async fn endpoints_are_of_admins_and_of_tokens_with_the_scope() {
    let (receiver, service) = scene().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let text = with_hook(&receiver, "");
    let plans = "/workspaces/acme/configuration/plans";
    let try_plan = async |role, scopes: &[&str], text: &str, prune: &str| {
        let program = of_workspace(&service, &ann, role, scopes).await;
        let body = json!({"bundle": text, "prune": prune});
        program.call(Method::POST, plans, Some(body)).await
    };
    let (write, hooks) = ("registry:write", "webhooks:write");
    let developer = try_plan(Role::Developer, &[write, hooks], &text, "owned").await;
    assert_eq!(code(&developer), "forbidden", "{}", developer.text);
    for scopes in [&[write][..], &[write, "workspace:write"]] {
        let answer = try_plan(Role::Admin, scopes, &text, "owned").await;
        assert_eq!(code(&answer), "insufficient_scope", "{}", answer.text);
        assert!(answer.text.contains("webhooks:write"), "{}", answer.text);
    }
    let program = of_workspace(&service, &ann, Role::Admin, &[write, hooks]).await;
    let body = json!({"bundle": text});
    let plan = fine(&program.call(Method::POST, plans, Some(body)).await);
    assert_eq!(receiver.take().len(), 0);
    let path = format!("{plans}/{}/apply", plan["id"].as_str().unwrap());
    fine(&program.call(Method::POST, &path, Some(json!({}))).await);
    assert_eq!(receiver.one().json()["type"], "endpoint.verify");

    // A caller who does not see endpoints neither exports nor deletes them.
    let developer = of_workspace(&service, &ann, Role::Developer, &[write]).await;
    let export = "/workspaces/acme/configuration";
    let hidden = fine(&developer.call(Method::GET, export, None).await);
    assert_eq!(hidden["webhooks"], Value::Null, "{hidden}");
    let shown = fine(&program.call(Method::GET, export, None).await);
    assert_eq!(shown["webhooks"][0]["url"], receiver.url(), "{shown}");
    let none = try_plan(Role::Admin, &[write], &file(""), "all").await;
    assert_eq!(none.json()["changes"], json!([]), "{}", none.text);
    // A caller who only reads them may plan the file that changes nothing.
    let reads = [write, "workspace:read"];
    let same = try_plan(Role::Admin, &reads, &text, "owned").await;
    assert_eq!(same.json()["changes"], json!([]), "{}", same.text);
    let other = text.replace("key.created", "key.revoked");
    for (text, prune) in [(other.as_str(), "none"), (file("").as_str(), "owned")] {
        let answer = try_plan(Role::Admin, &reads, text, prune).await;
        assert_eq!(code(&answer), "insufficient_scope", "{}", answer.text);
    }

    // A person signed in recently, as in the console.
    service.wait(Duration::minutes(11));
    let another = text.replace("/hook\n", "/another\n");
    let answer = planned(&ann, "acme", &another, json!({})).await;
    assert_eq!(code(&answer), "confirm_first", "{}", answer.text);
}

/// Rules: CONF-2, CONF-14, HOOK-4
#[tokio::test]
async fn a_fault_of_an_endpoint_has_its_line() {
    let (receiver, service) = scene().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let good = with_hook(&receiver, HEADER);
    let url = receiver.url();
    let cases = [
        ("key.created", "key.made", "events_invalid", 5),
        ("[key.created]", "[]", "events_invalid", 5),
        (url.as_str(), "hook", "url_invalid", 4),
        (url.as_str(), "https://10.0.0.1/hook", "url_invalid", 4),
        (url.as_str(), "https://a:b@hooks.example/", "url_invalid", 4),
        ("X-Key", "webhook-id", "headers_invalid", 6),
        ("X-Key", "x key", "headers_invalid", 6),
        ("env:HOOK_KEY", "env:OTHER", "secret_missing", 6),
    ];
    for (from, to, expected, line) in cases {
        let text = good.replacen(from, to, 1);
        let answer = planned(&ann, "acme", &text, hook_key("planted-one")).await;
        assert_eq!(code(&answer), expected, "{to}: {}", answer.text);
        assert_eq!(
            answer.json()["error"]["details"]["line"],
            line,
            "{to}: {}",
            answer.text
        );
    }
    let twice = file(
        "webhooks:\n  - {url: 'https://hooks.example', events: [key.created]}\n  - {url: \
         'https://HOOKS.example/', events: [key.created]}\n",
    );
    let answer = planned(&ann, "acme", &twice, json!({})).await;
    assert_eq!(code(&answer), "configuration_invalid", "{}", answer.text);
    assert_eq!(
        answer.json()["error"]["details"]["line"],
        5,
        "{}",
        answer.text
    );

    let many = |count: usize| {
        let one = |number| format!("  - {{url: '{url}/{number}', events: [key.created]}}\n");
        let all: String = (0..count).map(one).collect();
        file(&format!("webhooks:\n{all}"))
    };
    let answer = planned(&ann, "acme", &many(21), json!({})).await;
    assert_eq!(code(&answer), "too_many_webhooks", "{}", answer.text);
    let most = planned(&ann, "acme", &many(20), json!({})).await;
    assert_eq!(most.status, StatusCode::CREATED, "{}", most.text);
}
