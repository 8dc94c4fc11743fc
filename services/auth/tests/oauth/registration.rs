//! Dynamic client registration (CASE-89 to CASE-93).

use axum::body::Body;
use http::{Request, StatusCode, header};
use serde_json::json;

use crate::harness::{CALLBACK, Scene};

#[tokio::test]
async fn c8_the_answer_echoes_what_was_registered() {
    let scene = Scene::new().await;
    let reply = scene.node.register(&json!({"client_name": "A\u{202e}pp\n", "redirect_uris": [CALLBACK], "scope": "admin mcp"})).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    assert_eq!(reply.header(header::CACHE_CONTROL), "no-store");
    let body = reply.json();
    assert_eq!(body["client_name"], "App", "CASE-43");
    assert_eq!(body["redirect_uris"], json!([CALLBACK]));
    assert_eq!(body["scope"], "mcp", "CASE-93");
    assert!(body.get("client_secret").is_none() && body.get("registration_access_token").is_none());
    assert!(
        body["client_id"]
            .as_str()
            .unwrap()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_'),
        "AUTH-T13"
    );
}

#[tokio::test]
async fn case_91_the_same_client_again_gets_the_same_id() {
    let scene = Scene::new().await;
    let id = async |name: &str, port: u16| {
        let metadata = json!({"client_name": name, "redirect_uris": [format!("http://127.0.0.1:{port}/callback")]});
        let body = scene.node.register(&metadata).await.json();
        assert_eq!(
            body["redirect_uris"], metadata["redirect_uris"],
            "its own port is echoed"
        );
        body["client_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(id("Tool", 1000).await, id("Tool", 2000).await);
    assert_ne!(id("Tool", 1000).await, id("Other", 1000).await);
    let secret = json!({"client_name": "Tool", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_post"});
    let (one, two) = (
        scene.node.register(&secret).await.json(),
        scene.node.register(&secret).await.json(),
    );
    assert_ne!(
        one["client_id"], two["client_id"],
        "clients with a secret are never shared"
    );
}

#[tokio::test]
async fn case_92_the_twenty_first_new_client_in_an_hour_waits() {
    let scene = Scene::new().await;
    // The scene has registered one.
    for at in 0..19 {
        scene.node.client(&format!("Client {at}")).await;
    }
    let metadata = json!({"client_name": "One more", "redirect_uris": [CALLBACK]});
    let reply = scene.node.register(&metadata).await;
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(reply.header(header::RETRY_AFTER).parse::<u32>().is_ok());
    scene.node.client("Client 3").await;
    scene.node.clock.advance(time::Duration::hours(1));
    scene.node.client("One more").await;
}

#[tokio::test]
async fn bad_registrations_name_the_fault() {
    let scene = Scene::new().await;
    let redirect = |uris: serde_json::Value| json!({"client_name": "x", "redirect_uris": uris});
    for uris in [
        json!([]),
        json!(["javascript:alert(1)"]),
        json!(["https://*.example/"]),
        json!("x"),
    ] {
        assert_eq!(
            scene.node.register(&redirect(uris)).await.refusal(),
            (400, "invalid_redirect_uri".to_owned())
        );
    }
    let keys = json!({"redirect_uris": [CALLBACK], "jwks_uri": "https://a.example/keys"});
    assert_eq!(
        scene.node.register(&keys).await.refusal(),
        (400, "invalid_client_metadata".to_owned())
    );
    for (media_type, body) in [
        ("text/plain", "{}"),
        ("application/json", "[]"),
        ("application/json", "{"),
    ] {
        let request = Request::post("/register").header(header::CONTENT_TYPE, media_type);
        let reply = scene
            .node
            .send(request.body(Body::from(body)).unwrap())
            .await;
        assert_eq!(
            reply.refusal(),
            (400, "invalid_client_metadata".to_owned()),
            "{media_type} {body}"
        );
    }
    let large = json!({"client_name": "x".repeat(17 * 1024), "redirect_uris": [CALLBACK]});
    assert_eq!(
        scene.node.register(&large).await.refusal(),
        (413, "invalid_request".to_owned())
    );
}

/// REVIEW-S-15: the same as for a metadata document (CASE-87). Another reader may take the other
/// one of two members with one name.
#[tokio::test]
async fn s15_a_registration_that_repeats_a_name_is_refused() {
    let scene = Scene::new().await;
    for text in [
        r#"{"redirect_uris":["http://127.0.0.1/cb"],"client_name":"One","client_name":"Two"}"#,
        r#"{"redirect_uris":["http://127.0.0.1/cb"],"x":{"a":1,"a":2}}"#,
    ] {
        let reply = scene.node.register_text(text).await;
        let expected = (400, "invalid_client_metadata".to_owned());
        assert_eq!(reply.refusal(), expected, "{text}");
    }
}
