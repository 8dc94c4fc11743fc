//! Clients that administrators registered for their workspace (AUTH-C14, AUTH-C16, AUTH-T14;
//! CASE-157).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use portolan_keys::ring::NewKeyPair;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    harness::{Browser, CALLBACK, Node, Reply, Scene, code_request, request, with},
    service::{is_revoked, jwks},
};

async fn register(admin: &mut Browser, extra: Value) -> Reply {
    let mut body = json!({"name": "Desk", "redirect_uris": [CALLBACK], "proof": "none"});
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    admin
        .api(Method::POST, "/acme/registered-clients", Some(body))
        .await
}

async fn made(admin: &mut Browser, extra: Value) -> (String, String, String) {
    let reply = register(admin, extra).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let made = reply.json();
    (
        made["client"]["id"].as_str().unwrap().to_owned(),
        made["client"]["client_id"].as_str().unwrap().to_owned(),
        made["client_secret"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

async fn with_secret(node: &Node, client: &str, secret: &str, code: &str) -> Reply {
    let mut form = code_request(client, code);
    form.push(("client_secret", secret));
    node.post("/oauth/token", &form).await
}

#[tokio::test]
async fn c16_c14_what_is_registered_is_checked_and_a_secret_is_shown_once() {
    let mut scene = Scene::new().await;
    for (extra, field) in [
        (json!({"name": " "}), "name"),
        (json!({"redirect_uris": []}), "redirect_uris"),
        (
            json!({"redirect_uris": ["javascript:alert(1)"]}),
            "redirect_uris",
        ),
        (
            json!({"redirect_uris": ["https://*.example.com/cb"]}),
            "redirect_uris",
        ),
        (
            json!({"redirect_uris": ["https://app.example/cb#x"]}),
            "redirect_uris",
        ),
        (json!({"proof": "private_key_jwt"}), "jwks"),
    ] {
        let refused = register(&mut scene.ann, extra).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert_eq!(refused.json()["error"]["field"], field);
    }
    let (_, client, secret) = made(&mut scene.ann, json!({"proof": "client_secret"})).await;
    assert!(secret.starts_with("cs_"), "a secret of ours");
    let listed = scene
        .ann
        .api(Method::GET, "/acme/registered-clients", None)
        .await;
    assert!(!listed.text.contains(&secret), "shown once");
    let listed = listed.json();
    assert_eq!(listed["items"][0]["client_id"], client.as_str());
    assert!(secret.starts_with(listed["items"][0]["secrets"][0]["hint"].as_str().unwrap()));
}

#[tokio::test]
async fn c16_only_the_workspace_that_registered_it_can_be_picked() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    node.workspace(&scene.ann, "beta").await;
    let (_, client, _) = made(&mut scene.ann, json!({})).await;
    // Without a resource there is no picker, although she has two workspaces.
    let path = scene
        .ann
        .begin(&with(request(&client), "resource", None))
        .await;
    let page = scene.ann.get(&path).await;
    assert!(!page.text.contains("beta"), "{}", page.text);
    assert_eq!(page.field("workspace").unwrap(), scene.acme.to_string());
    let code = scene.ann.decide(&path, "approve").await.back()["code"].clone();
    assert_eq!(node.redeem(&client, &code).await.status, StatusCode::OK);
    // The request names the other workspace.
    let resource = "https://mcp.example.com/t/beta/mcp";
    let path = scene
        .ann
        .begin(&with(request(&client), "resource", Some(resource)))
        .await;
    let page = scene.ann.get(&path).await;
    assert!(
        page.text.contains("registered for another workspace"),
        "{}",
        page.text
    );
    node.clock.advance(Duration::SECOND);
    let (token, workspace) = (
        page.field("token").unwrap(),
        page.field("workspace").unwrap(),
    );
    let fields = [
        ("token", token.as_str()),
        ("workspace", &workspace),
        ("decision", "approve"),
    ];
    assert_eq!(
        scene.ann.post(&path, &fields).await.status,
        StatusCode::FORBIDDEN
    );
    // A person outside the client's workspace finds no workspace to choose.
    let mut bob = node.person("bob").await;
    node.workspace(&bob, "gamma").await;
    let path = bob.begin(&with(request(&client), "resource", None)).await;
    let page = bob.get(&path).await;
    assert!(
        page.text.contains("no access to this workspace"),
        "{}",
        page.text
    );
    // The strictest rule still admits a client that an administrator registered.
    let strict = Some(json!({"rule": "list"}));
    scene
        .ann
        .api(Method::PUT, "/acme/client-rule", strict)
        .await;
    scene.ann.tokens(&client).await;
}

#[tokio::test]
async fn c16_t14_two_secrets_at_a_time_in_either_way_and_none_after_revocation() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    let (id, client, first) = made(&mut scene.ann, json!({"proof": "client_secret"})).await;
    let secrets = format!("/acme/registered-clients/{id}/secrets");
    let added = scene.ann.api(Method::POST, &secrets, None).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text);
    let second = added.json()["client_secret"].as_str().unwrap().to_owned();
    let third = scene.ann.api(Method::POST, &secrets, None).await;
    assert_eq!(third.status, StatusCode::CONFLICT);

    let code = scene.ann.code(&request(&client)).await;
    assert_eq!(
        node.redeem(&client, &code).await.refusal(),
        (401, "invalid_client".to_owned()),
        "CASE-59"
    );
    assert_eq!(
        with_secret(&node, &client, &first, &code).await.status,
        StatusCode::OK
    );
    let code = scene.ann.code(&request(&client)).await;
    let basic = format!("Basic {}", STANDARD.encode(format!("{client}:{second}")));
    let form = with(code_request(&client, &code), "client_id", None);
    let tokens = node.post_with("/oauth/token", &form, Some(&basic)).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.text);

    let path = "/acme/registered-clients";
    let listed = scene.ann.api(Method::GET, path, None).await.json();
    let old = &listed["items"][0]["secrets"][0];
    assert!(old["last_used_at"].is_string(), "{old}");
    let old = format!("{secrets}/{}", old["id"].as_str().unwrap());
    let gone = scene.ann.api(Method::DELETE, &old, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let code = scene.ann.code(&request(&client)).await;
    assert_eq!(
        with_secret(&node, &client, &first, &code).await.refusal().0,
        401
    );
    assert_eq!(
        with_secret(&node, &client, &second, &code).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn c16_c13_a_client_with_a_key_of_its_own_needs_the_key() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let keys = json!({"proof": "private_key_jwt", "jwks": jwks(&key)});
    let (_, client, secret) = made(&mut scene.ann, keys).await;
    assert!(secret.is_empty());
    let code = scene.ann.code(&request(&client)).await;
    assert_eq!(
        scene.node.redeem(&client, &code).await.refusal(),
        (401, "invalid_client".to_owned())
    );
    let jwt = crate::service::assertion(&scene.node, &key, &client, &json!({}));
    let mut form = code_request(&client, &code);
    form.push((
        "client_assertion_type",
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    ));
    form.push(("client_assertion", &jwt));
    let tokens = scene.node.post("/oauth/token", &form).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.text);
}

#[tokio::test]
async fn r7_c16_switched_off_and_deleted_a_registered_client_is_refused_at_once() {
    let mut scene = Scene::new().await;
    let node = scene.node.clone();
    let (id, client, _) = made(&mut scene.ann, json!({})).await;
    let one = format!("/acme/registered-clients/{id}");
    let tokens = scene.ann.tokens(&client).await;
    let off = scene
        .ann
        .api(Method::PATCH, &one, Some(json!({"enabled": false})))
        .await;
    assert_eq!(off.status, StatusCode::OK, "{}", off.text);
    assert_eq!(off.json()["enabled"], false);
    assert!(is_revoked(&node, &tokens));
    let path = scene.ann.begin(&request(&client)).await;
    let page = scene.ann.get(&path).await;
    assert!(page.text.contains("blocked this app"), "{}", page.text);
    let on = json!({"enabled": true, "name": "Desk 2", "redirect_uris": [CALLBACK, "https://app.example/cb"]});
    let on = scene.ann.api(Method::PATCH, &one, Some(on)).await;
    assert_eq!(on.json()["name"], "Desk 2");
    let asked = with(
        request(&client),
        "redirect_uri",
        Some("https://app.example/cb"),
    );
    scene.ann.begin(&asked).await;
    let tokens = scene.ann.tokens(&client).await;

    let gone = scene.ann.api(Method::DELETE, &one, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    assert!(is_revoked(&node, &tokens));
    let refresh = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(
        node.refresh(&client, refresh).await.refusal(),
        (401, "invalid_client".to_owned()),
        "AUTH-C12: unknown"
    );
    scene.ann.authorize(&request(&client)).await.assert_page();
    let again = scene.ann.api(Method::DELETE, &one, None).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    // Rows that named the client do not appear in the list, and cause no error.
    let clients = scene.ann.api(Method::GET, "/acme/clients", None).await;
    assert_eq!(clients.status, StatusCode::OK, "{}", clients.text);
}

#[tokio::test]
async fn case_157_a_client_is_registered_only_by_somebody_who_proved_lately_who_they_are() {
    let mut scene = Scene::new().await;
    scene.node.clock.advance(Duration::minutes(11));
    let refused = register(&mut scene.ann, json!({"proof": "client_secret"})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "confirm_first");
    assert_eq!(
        error["details"]["path"],
        "/account/confirm?request=w.clients.acme"
    );
}

#[tokio::test]
async fn c16_a2_a_request_that_waits_does_not_outlive_what_its_client_was() {
    let mut scene = Scene::new().await;
    let (id, client, _) = made(&mut scene.ann, json!({})).await;
    let one = format!("/acme/registered-clients/{id}");
    let path = scene.ann.begin(&request(&client)).await;
    let page = scene.ann.get(&path).await;
    let (token, workspace) = (
        page.field("token").unwrap(),
        page.field("workspace").unwrap(),
    );
    // The former redirect URI is not accepted any more.
    let moved = json!({"redirect_uris": ["https://app.example/cb"]});
    let moved = scene.ann.api(Method::PATCH, &one, Some(moved)).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    scene.node.clock.advance(Duration::SECOND);
    let fields = [
        ("token", token.as_str()),
        ("workspace", &workspace),
        ("decision", "approve"),
    ];
    scene.ann.post(&path, &fields).await.assert_page();
    scene.ann.get(&path).await.assert_page();
    // The client is deleted.
    let asked = with(
        request(&client),
        "redirect_uri",
        Some("https://app.example/cb"),
    );
    let path = scene.ann.begin(&asked).await;
    scene.ann.api(Method::DELETE, &one, None).await;
    scene.ann.get(&path).await.assert_page();
}
