//! `/oauth/authorize`, discovery and metadata documents (CASE-1 to CASE-26, CASE-76, CASE-83,
//! CASE-86).

use http::{Method, Request, StatusCode, header};
use portolan_keys::digest;
use portolan_model::{
    client::{AuthMethod, ClientKind},
    id::ClientId,
};
use portolan_storage::{
    Reason,
    oauth::{
        client_documents::{self, Document},
        clients::{self, NewClient},
    },
};
use serde_json::json;
use time::Duration;

use crate::harness::{CALLBACK, ISSUER, Scene, encode, request, with};

#[tokio::test]
async fn a2_until_the_redirect_uri_is_proved_every_fault_is_a_page() {
    // CASE-1 to CASE-4, CASE-7, CASE-10 and CASE-11; a user before the host (CASE-5).
    let mut scene = Scene::new().await;
    let good = request(&scene.client);
    for (name, value) in [
        ("client_id", None),
        ("client_id", Some("cli_unknown")),
        ("redirect_uri", None),
        ("redirect_uri", Some("http://127.0.0.1:3333/callback/")),
        ("redirect_uri", Some("http://127.0.0.1:3333/callback?x=1")),
        ("redirect_uri", Some("http://127.0.0.1:3333/Callback")),
        ("redirect_uri", Some("http://127.0.0.1:3333/%63allback")),
        ("redirect_uri", Some("http://127.0.0.1:3333/callback#x")),
        ("redirect_uri", Some("http://localhost:3333/callback")),
        (
            "redirect_uri",
            Some("http://127.0.0.1@evil.example/callback"),
        ),
        ("redirect_uri", Some("https://evil.example/callback")),
    ] {
        scene
            .ann
            .authorize(&with(good.clone(), name, value))
            .await
            .assert_page();
    }
    let long = "s".repeat(4096);
    scene
        .ann
        .authorize(&with(good.clone(), "state", Some(&long)))
        .await
        .assert_page();
    for name in ["client_id", "redirect_uri"] {
        let mut twice = good.clone();
        twice.push((name, "https://evil.example/"));
        scene.ann.authorize(&twice).await.assert_page();
    }
    let huge = "x".repeat(9000);
    let reply = scene
        .ann
        .authorize(&with(good, "ignored", Some(&huge)))
        .await;
    assert_eq!(reply.status, StatusCode::URI_TOO_LONG, "AUTH-A1");
    reply.assert_page();
}

#[tokio::test]
async fn case_6_another_loopback_port_proceeds() {
    let mut scene = Scene::new().await;
    let parameters = with(
        request(&scene.client),
        "redirect_uri",
        Some("http://127.0.0.1:50123/callback"),
    );
    let path = scene.ann.begin(&parameters).await;
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(
        reply
            .header(header::LOCATION)
            .starts_with("http://127.0.0.1:50123/callback?code=ac_")
    );
}

#[tokio::test]
async fn a6_a7_after_it_faults_go_back_with_state_and_iss() {
    let mut scene = Scene::new().await;
    let good = request(&scene.client);
    for (name, value, expected) in [
        ("response_type", Some("token"), "unsupported_response_type"),
        ("response_type", None, "invalid_request"),
        ("code_challenge", None, "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
        ("request", Some("x"), "request_not_supported"),
        ("request_uri", Some("x"), "request_uri_not_supported"),
        ("response_mode", Some("form_post"), "invalid_request"),
        (
            "resource",
            Some("https://evil.example/mcp"),
            "invalid_target",
        ),
        ("prompt", Some("none"), "consent_required"),
    ] {
        let reply = scene.ann.authorize(&with(good.clone(), name, value)).await;
        let back = reply.back();
        assert_eq!(back["error"], expected, "{name}");
        assert_eq!(back["state"], "a state & more");
        assert_eq!(back["iss"], ISSUER);
        assert_eq!(reply.header(header::LOCATION).matches("iss=").count(), 1);
        assert_eq!(reply.header(header::CACHE_CONTROL), "no-store", "AUTH-A12");
        assert_eq!(
            reply.header(header::REFERRER_POLICY),
            "no-referrer",
            "AUTH-A12"
        );
        assert!(reply.text.is_empty(), "AUTH-A12");
    }
    let mut twice = good.clone();
    twice.push(("state", "other"));
    assert_eq!(
        scene.ann.authorize(&twice).await.back()["error"],
        "invalid_request",
        "CASE-16"
    );
    scene.ann.sign_out();
    let reply = scene
        .ann
        .authorize(&with(good, "prompt", Some("none")))
        .await;
    assert_eq!(reply.back()["error"], "login_required", "CASE-19");
}

#[tokio::test]
async fn case_20_a_long_odd_state_comes_back_byte_for_byte() {
    let mut scene = Scene::new().await;
    let state = format!("&#%\"+ ä{}", "y".repeat(2000));
    let path = scene
        .ann
        .begin(&with(request(&scene.client), "state", Some(&state)))
        .await;
    assert_eq!(
        scene.ann.decide(&path, "approve").await.back()["state"],
        state
    );
    let path = scene
        .ann
        .begin(&with(request(&scene.client), "state", None))
        .await;
    assert_eq!(
        scene.ann.decide(&path, "approve").await.back().get("state"),
        None,
        "none sent, none returned"
    );
}

#[tokio::test]
async fn case_22_head_and_post_make_no_request() {
    let mut scene = Scene::new().await;
    let path = format!("/oauth/authorize?{}", encode(&request(&scene.client)));
    for method in [Method::HEAD, Method::POST] {
        let request = Request::builder()
            .method(method.clone())
            .uri(&path)
            .header("sec-fetch-site", "same-origin");
        let reply = scene
            .node
            .send(request.body(axum::body::Body::empty()).unwrap())
            .await;
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert!(reply.headers.get(header::SET_COOKIE).is_none());
    }
    assert_eq!(scene.ann.get(&path).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn case_24_a_flood_from_one_network_is_throttled() {
    let mut scene = Scene::new().await;
    let parameters = request(&scene.client);
    let mut last = StatusCode::SEE_OTHER;
    for _ in 0..101 {
        last = scene.ann.authorize(&parameters).await.status;
    }
    assert_eq!(
        last,
        StatusCode::TOO_MANY_REQUESTS,
        "a browser has at most a hundred open"
    );
    for _ in 0..200 {
        last = scene.ann.elsewhere().authorize(&parameters).await.status;
    }
    assert_eq!(
        last,
        StatusCode::TOO_MANY_REQUESTS,
        "and a network has its own limit"
    );
    scene.node.clock.advance(Duration::minutes(5));
    assert_eq!(
        scene.ann.elsewhere().authorize(&parameters).await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn case_25_nothing_of_the_request_is_markup() {
    let mut scene = Scene::new().await;
    let script = "<script>alert(1)</script>";
    for name in ["client_id", "redirect_uri", "state"] {
        let reply = scene
            .ann
            .authorize(&with(request(&scene.client), name, Some(script)))
            .await;
        assert!(!reply.text.contains("<script"), "{name}");
    }
    let reply = scene
        .node
        .register(&json!({"client_name": script, "redirect_uris": [CALLBACK]}))
        .await;
    let client = reply.json()["client_id"].as_str().unwrap().to_owned();
    let path = scene.ann.begin(&request(&client)).await;
    let page = scene.ann.get(&path).await;
    assert!(!page.text.contains("<script"));
    assert!(!page.header("content-security-policy").contains("unsafe"));
}

#[tokio::test]
async fn e1_e2_e4_discovery_and_what_is_not_there() {
    let scene = Scene::new().await;
    let reply = scene
        .node
        .get("/.well-known/oauth-authorization-server")
        .await;
    let metadata = reply.json();
    assert_eq!(metadata["issuer"], ISSUER);
    assert_eq!(
        metadata["token_endpoint_auth_methods_supported"],
        json!([
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt"
        ])
    );
    assert_eq!(
        metadata["introspection_endpoint"],
        format!("{ISSUER}/oauth/introspect")
    );
    assert!(
        metadata
            .as_object()
            .unwrap()
            .values()
            .all(|value| !value.is_null())
    );
    assert_eq!(reply.header(header::CACHE_CONTROL), "public, max-age=300");
    for path in [
        "openid-configuration",
        "oauth-authorization-server/t/acme/mcp",
        "security.txt",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let request = Request::builder()
                .method(method)
                .uri(format!("/.well-known/{path}"));
            let reply = scene
                .node
                .send(request.body(axum::body::Body::empty()).unwrap())
                .await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{path}");
            assert_eq!(reply.json(), json!({"error": "not_found"}));
        }
    }
    let keys = scene.node.get("/oauth/jwks.json").await;
    assert_eq!(
        keys.json()["keys"].as_array().unwrap().len(),
        2,
        "the active one and its standby"
    );
    let again =
        Request::get("/oauth/jwks.json").header(header::IF_NONE_MATCH, keys.header(header::ETAG));
    let again = scene
        .node
        .send(again.body(axum::body::Body::empty()).unwrap())
        .await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED, "AUTH-J4");
}

#[tokio::test]
async fn e10_machines_have_cors_and_pages_have_none() {
    let scene = Scene::new().await;
    for path in [
        "/oauth/token",
        "/oauth/register",
        "/oauth/revoke",
        "/token",
        "/register",
        "/.well-known/oauth-authorization-server",
    ] {
        let preflight = Request::builder()
            .method(Method::OPTIONS)
            .uri(path)
            .header(header::ORIGIN, "https://inspector.example")
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST")
            .header(
                header::ACCESS_CONTROL_REQUEST_HEADERS,
                "content-type, mcp-protocol-version, x-other",
            );
        let reply = scene
            .node
            .send(preflight.body(axum::body::Body::empty()).unwrap())
            .await;
        assert!(reply.status.is_success(), "{path} {}", reply.status);
        assert_eq!(
            reply.header(header::ACCESS_CONTROL_ALLOW_ORIGIN),
            "*",
            "{path}"
        );
        assert!(
            reply
                .headers
                .get(header::ACCESS_CONTROL_ALLOW_CREDENTIALS)
                .is_none()
        );
        assert_eq!(
            reply.header(header::ACCESS_CONTROL_ALLOW_HEADERS),
            "content-type, mcp-protocol-version"
        );
    }
    let reply = scene.node.get("/oauth/authorize").await;
    assert!(
        reply
            .headers
            .get(header::ACCESS_CONTROL_ALLOW_ORIGIN)
            .is_none()
    );
}

#[tokio::test]
async fn cases_76_and_83_documents_at_private_or_odd_addresses_are_pages() {
    let mut scene = Scene::new().await;
    // CASE-77: addresses in every spelling that some resolver accepts.
    for address in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "93.184.216.34",
    ] {
        let client = format!("https://{address}/client.json");
        scene.ann.authorize(&request(&client)).await.assert_page();
    }
    for client in [
        "https://app.example/client.json",
        "http://app.example/client.json",
        "https://app.example:8443/client.json",
        "https://127.0.0.1/client.json",
        "https://app.example/client.json?x=1",
        "https://app.example",
    ] {
        scene.ann.authorize(&request(client)).await.assert_page();
    }
}

#[tokio::test]
async fn case_86_a_copy_of_an_hour_ago_serves_while_the_vendor_is_away() {
    let mut scene = Scene::new().await;
    let url = "https://app.example/client.json";
    let now = scene.node.clock.now();
    let mut tx = scene.node.store().system(Reason::OAuth).await.unwrap();
    let new = NewClient {
        id: ClientId::generate(),
        client_id: url,
        kind: ClientKind::Cimd,
        tenant: None,
        name: "Vendor",
        metadata: &json!({}),
        metadata_digest: digest(b"document"),
        auth_method: AuthMethod::None,
        application_type: "native",
        grant_types: &["authorization_code".to_owned(), "refresh_token".to_owned()],
        redirect_uris: &["http://127.0.0.1/callback".to_owned()],
        secret: None,
        ip_block: None,
    };
    let client = clients::register(&mut tx, &new, now).await.unwrap();
    let document = Document {
        client: client.id,
        digest: digest(b"document"),
        fresh_until: now + Duration::minutes(5),
        stale_until: now + Duration::DAY,
    };
    client_documents::store(&mut tx, url, &document, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    scene.node.clock.advance(Duration::HOUR);
    let tokens = scene.ann.tokens(url).await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    scene.node.clock.advance(Duration::DAY);
    scene.ann.authorize(&request(url)).await.assert_page();
    assert_eq!(
        scene.node.refresh(url, refresh).await.status,
        StatusCode::OK,
        "AUTH-C4: nobody is logged out by it"
    );
}
