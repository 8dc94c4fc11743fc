//! Connection diagnostics (AUTH-X1, AUTH-X2): administrators see the connections of their own
//! workspace's clients, and no other's.

use std::time::{Duration as StdDuration, Instant};

use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};

use crate::harness::{Browser, CALLBACK, Node, Scene, code_request, encode, request, with};

/// The attempts that an administrator sees, once `ready` holds: the recorder writes concurrently
/// with the requests.
async fn attempts(admin: &mut Browser, path: &str, ready: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + StdDuration::from_secs(20);
    loop {
        let reply = admin.api(Method::GET, path, None).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        let items = reply.json()["items"].as_array().unwrap().clone();
        if ready(&items) {
            return items;
        }
        assert!(Instant::now() < end, "{items:#?}");
        tokio::time::sleep(StdDuration::from_millis(20)).await;
    }
}

fn steps(attempt: &Value) -> Vec<&str> {
    attempt["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect()
}

fn has_step(items: &[Value], step: &str) -> bool {
    items.iter().any(|attempt| steps(attempt).contains(&step))
}

/// A request of a program with this user agent.
async fn program(node: &Node, method: Method, path: &str, agent: &str, body: &str) -> Value {
    let kind = if path == "/oauth/register" {
        "application/json"
    } else {
        "application/x-www-form-urlencoded"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::USER_AGENT, agent)
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body.to_owned()))
        .unwrap();
    node.send(request).await.json()
}

const METADATA: &str = "/.well-known/oauth-authorization-server";

#[tokio::test]
async fn x2_the_whole_way_of_a_client_is_one_timeline() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    program(&node, Method::GET, METADATA, "app/1.0", "").await;
    let registration = json!({"client_name": "App", "redirect_uris": [CALLBACK]}).to_string();
    let made = program(
        &node,
        Method::POST,
        "/oauth/register",
        "app/1.0",
        &registration,
    )
    .await;
    let client = made["client_id"].as_str().unwrap().to_owned();
    let code = scene.ann.code(&request(&client)).await;
    let form = encode(&code_request(&client, &code));
    let tokens = program(&node, Method::POST, "/oauth/token", "app/1.0", &form).await;
    assert!(tokens["access_token"].is_string(), "{tokens}");

    let items = attempts(&mut scene.ann, "/acme/connects", |items| {
        has_step(items, "token")
    })
    .await;
    let attempt = items
        .iter()
        .find(|one| one["client_name"] == "App")
        .unwrap();
    assert_eq!(
        steps(attempt),
        [
            "server_metadata",
            "register",
            "authorize",
            "consent",
            "consent",
            "token"
        ]
    );
    assert_eq!(attempt["client_name"], "App");
    assert_eq!(attempt["user_name"], "ann");
    let sent = &attempt["steps"][2]["sent"];
    assert_eq!(sent["redirect_uri"], CALLBACK);
    assert_eq!(sent["code_challenge_method"], "S256");
    assert_eq!(sent["state"], true, "that there was one, and not which");
    assert_eq!(attempt["steps"][5]["agent"], "app/1.0");
    let text = Value::Array(items.clone()).to_string();
    for secret in [
        code.as_str(),
        tokens["access_token"].as_str().unwrap(),
        tokens["refresh_token"].as_str().unwrap(),
        "a state & more",
        crate::harness::VERIFIER,
        crate::harness::CHALLENGE,
    ] {
        assert!(!text.contains(secret), "AUTH-X1: {secret}");
    }
}

#[tokio::test]
async fn x2_a_refusal_names_its_rule_and_the_number_of_the_page_finds_it() {
    let mut scene = Scene::new().await;
    let wrong = with(
        request(&scene.client),
        "redirect_uri",
        Some("https://evil.example/cb?token=planted"),
    );
    let page = scene.ann.authorize(&wrong).await;
    page.assert_page();
    let number = page.text.split("Request ").nth(1).unwrap()[..24].to_owned();
    let path = format!("/acme/connects?request_id={number}");
    let items = attempts(&mut scene.ann, &path, |items| !items.is_empty()).await;
    let step = items[0]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&items[0]["state"], &step["rule"]),
        (&json!("refused"), &json!("A3"))
    );
    assert!(
        step["rule_says"]
            .as_str()
            .unwrap()
            .contains("must equal a registered one exactly")
    );
    assert_eq!(step["sent"]["redirect_uri"], "https://evil.example/cb?…");
    assert_eq!(step["request_id"], number.as_str());
    let nothing = format!("/acme/connects?request_id={}", "0".repeat(24));
    attempts(&mut scene.ann, &nothing, <[Value]>::is_empty).await;

    let plain = with(
        request(&scene.client),
        "code_challenge_method",
        Some("plain"),
    );
    scene.ann.authorize(&plain).await.back();
    let rules = |items: &[Value]| -> Vec<String> {
        items
            .iter()
            .flat_map(|one| one["steps"].as_array().unwrap().clone())
            .filter_map(|step| step["rule"].as_str().map(str::to_owned))
            .collect()
    };
    attempts(&mut scene.ann, "/acme/connects", |items| {
        rules(items).contains(&"A5".to_owned())
    })
    .await;
}

#[tokio::test]
async fn x2_a_public_client_that_sends_a_secret_meets_a_known_fault() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    let code = scene.ann.code(&request(&scene.client)).await;
    let mut fields = code_request(&scene.client, &code);
    fields.push(("client_secret", "planted-secret"));
    let form = encode(&fields);
    let refused = program(
        &node,
        Method::POST,
        "/oauth/token",
        "openai-mcp/1.0.0",
        &form,
    )
    .await;
    assert_eq!(refused["error"], "invalid_client");
    let items = attempts(&mut scene.ann, "/acme/connects", |items| {
        has_step(items, "token")
    })
    .await;
    assert_eq!(items.len(), 1, "joined by its client: {items:#?}");
    assert_eq!(items[0]["state"], "refused");
    let known = items[0]["known"].as_array().unwrap();
    assert!(
        known
            .iter()
            .any(|one| one["client"] == "ChatGPT and others"),
        "{known:?}"
    );
    assert!(
        !Value::Array(items.clone()).to_string().contains("planted"),
        "AUTH-X1"
    );
}

#[tokio::test]
async fn x2_m7_the_recorder_says_that_the_rule_of_the_workspace_refused() {
    let mut scene = Scene::new().await;
    let body = Some(json!({"rule": "verified"}));
    scene.ann.api(Method::PUT, "/acme/client-rule", body).await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    scene.ann.get(&path).await;
    let items = attempts(&mut scene.ann, "/acme/connects", |items| {
        has_step(items, "consent")
    })
    .await;
    let consent = items[0]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&consent["outcome"], &consent["rule"]),
        (&json!("refused"), &json!("M7"))
    );
}

#[tokio::test]
async fn x2_case_106_no_workspace_learns_of_another_ones_clients() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    let mut bob = node.person("bob").await;
    node.workspace(&bob, "beta").await;
    // One program of a vendor comes for both at once: its metadata request belongs to neither with
    // certainty.
    program(&node, Method::GET, METADATA, "hosted/1.0", "").await;
    for (person, resource) in [(&mut scene.ann, "acme"), (&mut bob, "beta")] {
        let resource = format!("https://mcp.example.com/t/{resource}/mcp");
        let asked = with(request(&scene.client), "resource", Some(&resource));
        let code = person.code(&asked).await;
        let form = encode(&code_request(&scene.client, &code));
        let tokens = program(&node, Method::POST, "/oauth/token", "hosted/1.0", &form).await;
        assert!(tokens["access_token"].is_string(), "{tokens}");
    }
    // A person without access tries acme.
    let path = bob.begin(&request(&scene.client)).await;
    bob.get(&path).await;

    let of_beta = attempts(&mut bob, "/beta/connects", |items| has_step(items, "token")).await;
    assert_eq!(of_beta.len(), 1, "{of_beta:#?}");
    let text = Value::Array(of_beta).to_string();
    assert!(!text.contains("acme") && !text.contains("ann"), "{text}");
    assert!(!text.contains("server_metadata"), "it may have been acme's");
    let refused = |items: &[Value]| items.iter().any(|one| one["state"] == "refused");
    let of_acme = attempts(&mut scene.ann, "/acme/connects", refused).await;
    let text = Value::Array(of_acme.clone()).to_string();
    assert!(
        !text.contains("beta") && !text.contains("bob"),
        "AUTH-N11: {text}"
    );
    assert!(!text.contains("server_metadata"), "it may have been beta's");

    for path in ["/acme/connects", "/doesnotexist/connects"] {
        let foreign = bob.api(Method::GET, path, None).await;
        assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{path}");
    }
}
