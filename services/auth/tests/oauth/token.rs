//! Codes and the token endpoint (CASE-46 to CASE-62, CASE-64, CASE-65, CASE-98 to CASE-101).

use axum::body::Body;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request, StatusCode, header};
use portolan_cluster::revocations::TokenFacts;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    harness::{CALLBACK, Scene, claims, code_request, encode, request, with},
    races,
};

fn refused(code: &str) -> (u16, String) {
    (400, code.to_owned())
}

#[tokio::test]
async fn t9_a_token_answer_has_what_clients_need_and_nothing_more() {
    let mut scene = Scene::new().await;
    let code = scene
        .ann
        .code(&with(
            request(&scene.client),
            "scope",
            Some("mcp claudeai offline_access"),
        ))
        .await;
    let reply = scene.node.redeem(&scene.client, &code).await;
    assert_eq!(reply.header(header::CACHE_CONTROL), "no-store");
    assert!(
        reply
            .header(header::CONTENT_TYPE)
            .starts_with("application/json")
    );
    assert_eq!(
        reply.header(header::ACCESS_CONTROL_ALLOW_ORIGIN),
        "*",
        "CASE-64"
    );
    let tokens = reply.json();
    let members: Vec<&String> = tokens.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "access_token",
            "token_type",
            "expires_in",
            "scope",
            "refresh_token"
        ]
    );
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], "mcp offline_access", "AUTH-A8");
    let claims = claims(&tokens);
    assert_eq!(claims["iss"], "https://mcp.example.com");
    assert_eq!(claims["aud"], "https://mcp.example.com/t/acme/mcp");
    assert_eq!(claims["tid"], scene.acme.to_string());
    assert_eq!(claims["client_id"], scene.client.as_str());
    assert!(
        claims.get("email").is_none() && claims.get("role").is_none(),
        "AUTH-K1"
    );
    assert!(
        scene
            .node
            .state
            .oauth
            .verifier
            .verify(
                tokens["access_token"].as_str().unwrap(),
                scene.node.clock.now()
            )
            .is_ok()
    );
}

#[tokio::test]
async fn case_46_a_code_used_twice_takes_everything_with_it() {
    let mut scene = Scene::new().await;
    let code = scene.ann.code(&request(&scene.client)).await;
    let tokens = scene.node.redeem(&scene.client, &code).await.json();
    scene.node.clock.advance(Duration::minutes(10));
    assert_eq!(
        scene.node.redeem(&scene.client, &code).await.refusal(),
        refused("invalid_grant")
    );
    let refresh = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(
        scene.node.refresh(&scene.client, refresh).await.refusal(),
        refused("invalid_grant")
    );
    assert!(is_revoked(&scene, &tokens));
}

fn is_revoked(scene: &Scene, tokens: &Value) -> bool {
    let access = tokens["access_token"].as_str().unwrap();
    let claims = scene
        .node
        .state
        .oauth
        .verifier
        .verify(access, scene.node.clock.now())
        .unwrap();
    scene.node.state.oauth.revocations.is_revoked(&TokenFacts {
        token: claims.jti,
        grant: claims.gid,
        subject: claims.sub,
        tenant: claims.tid,
        client: &claims.client_id,
        key: "",
        user_epoch: claims.ep.user,
        tenant_epoch: claims.ep.tenant,
        member_epoch: claims.ep.member,
    })
}

#[tokio::test]
async fn case_47_of_two_nodes_at_the_same_instant_one_redeems() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    for round in races::rounds("case_47_of_two_nodes_at_the_same_instant_one_redeems") {
        let code = scene.ann.code(&request(&scene.client)).await;
        let (one, two) = tokio::join!(
            scene.node.redeem(&scene.client, &code),
            second.redeem(&scene.client, &code)
        );
        let good = [&one, &two]
            .into_iter()
            .filter(|reply| reply.status == StatusCode::OK)
            .count();
        assert_eq!(good, 1, "round {round}: {} {}", one.text, two.text);
        scene.node.clock.advance(Duration::minutes(5));
    }
}

#[tokio::test]
async fn cases_48_to_51_what_does_not_match_does_not_burn_the_code() {
    let mut scene = Scene::new().await;
    let code = scene.ann.code(&request(&scene.client)).await;
    let other = scene.node.client("Other").await;
    for _ in 0..6 {
        assert_eq!(
            scene.node.redeem(&other, &code).await.refusal(),
            refused("invalid_grant"),
            "CASE-48"
        );
    }
    let good = code_request(&scene.client, &code);
    let wrong = "wrong-verifier-wrong-verifier-wrong-verifier-wrong";
    for (name, value, expected) in [
        ("code_verifier", Some(wrong), "invalid_grant"),
        ("code_verifier", None, "invalid_grant"),
        (
            "redirect_uri",
            Some("http://127.0.0.1:1/callback"),
            "invalid_grant",
        ),
        (
            "resource",
            Some("https://mcp.example.com/t/beta/mcp"),
            "invalid_target",
        ),
    ] {
        let reply = scene
            .node
            .post("/oauth/token", &with(good.clone(), name, value))
            .await;
        assert_eq!(reply.refusal(), refused(expected), "{name}");
    }
    let reply = scene
        .node
        .post("/oauth/token", &with(good, "redirect_uri", None))
        .await;
    assert_eq!(
        reply.status,
        StatusCode::OK,
        "CASE-51: OAuth 2.1 lets it be absent: {}",
        reply.text
    );
}

#[tokio::test]
async fn case_49_five_wrong_verifiers_kill_the_code() {
    let mut scene = Scene::new().await;
    let code = scene.ann.code(&request(&scene.client)).await;
    let wrong = with(
        code_request(&scene.client, &code),
        "code_verifier",
        Some("x"),
    );
    for _ in 0..5 {
        assert_eq!(
            scene.node.post("/oauth/token", &wrong).await.refusal(),
            refused("invalid_grant")
        );
    }
    assert_eq!(
        scene.node.redeem(&scene.client, &code).await.refusal(),
        refused("invalid_grant")
    );
}

#[tokio::test]
async fn case_52_a_code_ends_after_two_minutes() {
    let mut scene = Scene::new().await;
    let code = scene.ann.code(&request(&scene.client)).await;
    scene.node.clock.advance(Duration::seconds(121));
    assert_eq!(
        scene.node.redeem(&scene.client, &code).await.refusal(),
        refused("invalid_grant")
    );
    let code = scene.ann.code(&request(&scene.client)).await;
    scene.node.clock.advance(Duration::seconds(118));
    assert_eq!(
        scene.node.redeem(&scene.client, &code).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn case_53_a_code_is_no_refresh_token_and_the_other_way_round() {
    let mut scene = Scene::new().await;
    let code = scene.ann.code(&request(&scene.client)).await;
    assert_eq!(
        scene.node.refresh(&scene.client, &code).await.refusal(),
        refused("invalid_grant")
    );
    let tokens = scene.node.redeem(&scene.client, &code).await.json();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(
        scene.node.redeem(&scene.client, refresh).await.refusal(),
        refused("invalid_grant")
    );
}

#[tokio::test]
async fn cases_54_to_57_the_form_of_the_request() {
    let scene = Scene::new().await;
    let body = encode(&code_request(&scene.client, "ac_x"));
    let send = async |method: Method, path: &str, media_type: &str, body: String| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, media_type);
        scene
            .node
            .send(request.body(Body::from(body)).unwrap())
            .await
    };
    let form = "application/x-www-form-urlencoded";
    for media_type in ["application/json", "text/plain", "multipart/form-data"] {
        let reply = send(Method::POST, "/oauth/token", media_type, body.clone()).await;
        assert_eq!(reply.refusal(), refused("invalid_request"), "{media_type}");
    }
    let reply = send(
        Method::POST,
        "/oauth/token",
        "application/x-www-form-urlencoded; charset=UTF-8",
        body.clone(),
    )
    .await;
    assert_eq!(
        reply.refusal(),
        refused("invalid_grant"),
        "AUTH-T8: a charset is allowed"
    );
    assert_eq!(
        send(Method::GET, "/oauth/token", form, String::new())
            .await
            .status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    for twice in [
        "grant_type=authorization_code",
        "client_id=x",
        "unknown=1&unknown=2",
    ] {
        let reply = send(
            Method::POST,
            "/oauth/token",
            form,
            format!("{body}&{twice}"),
        )
        .await;
        assert_eq!(reply.refusal(), refused("invalid_request"), "{twice}");
    }
    let reply = send(Method::POST, "/oauth/token?client_id=x", form, body.clone()).await;
    assert_eq!(reply.refusal(), refused("invalid_request"), "CASE-56");
    let reply = send(
        Method::POST,
        "/oauth/token",
        form,
        format!("{body}&x={}", "x".repeat(65 * 1024)),
    )
    .await;
    assert_eq!(reply.refusal(), (413, "invalid_request".to_owned()));
}

#[tokio::test]
async fn cases_58_to_61_client_authentication() {
    let mut scene = Scene::new().await;
    let metadata = json!({"client_name": "S", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_basic"});
    let registered = scene.node.register(&metadata).await.json();
    let (id, secret) = (
        registered["client_id"].as_str().unwrap(),
        registered["client_secret"].as_str().unwrap(),
    );
    assert_eq!(registered["client_secret_expires_at"], 0, "AUTH-C9");
    let basic =
        |id: &str, secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let code = scene.ann.code(&request(id)).await;
    let anonymous = with(code_request(id, &code), "client_id", None);
    let named = code_request(id, &code);
    let with_secret = with(named.clone(), "client_secret", Some(secret));
    let unauthorized = (401, "invalid_client".to_owned());

    assert_eq!(
        scene.node.post("/oauth/token", &named).await.refusal(),
        unauthorized,
        "CASE-59: no secret"
    );
    assert_eq!(
        scene
            .node
            .post("/oauth/token", &with_secret)
            .await
            .refusal(),
        unauthorized,
        "CASE-61: not by post"
    );
    let wrong = scene
        .node
        .post_with("/oauth/token", &anonymous, Some(&basic(id, "cs_wrong")))
        .await;
    assert_eq!(wrong.refusal(), unauthorized);
    assert_eq!(
        wrong.header(header::WWW_AUTHENTICATE),
        "Basic realm=\"oauth\"",
        "AUTH-T10"
    );
    let both = scene
        .node
        .post_with("/oauth/token", &with_secret, Some(&basic(id, secret)))
        .await;
    assert_eq!(both.refusal(), refused("invalid_request"), "CASE-58");
    for malformed in ["Basic !!!", "Basic bm9jb2xvbg==", "Basic /w=="] {
        let reply = scene
            .node
            .post_with("/oauth/token", &anonymous, Some(malformed))
            .await;
        assert_eq!(reply.refusal(), unauthorized, "CASE-65 {malformed}");
    }
    let public = with(
        code_request(&scene.client, &code),
        "client_secret",
        Some(secret),
    );
    assert_eq!(
        scene.node.post("/oauth/token", &public).await.refusal(),
        unauthorized,
        "CASE-60"
    );
    assert_eq!(
        scene.node.redeem("cli_unknown", &code).await.refusal(),
        unauthorized,
        "AUTH-C12"
    );
    let assertion = with(named, "client_assertion", Some("e30.e30.x"));
    assert_eq!(
        scene.node.post("/oauth/token", &assertion).await.refusal(),
        unauthorized
    );
    let good = scene
        .node
        .post_with("/oauth/token", &anonymous, Some(&basic(id, secret)))
        .await;
    assert_eq!(
        good.status,
        StatusCode::OK,
        "none of it burned the code: {}",
        good.text
    );
}

#[tokio::test]
async fn case_62_grant_types_that_are_not_served() {
    let scene = Scene::new().await;
    for (grant_type, expected) in [
        ("password", "unsupported_grant_type"),
        (
            "urn:ietf:params:oauth:grant-type:device_code",
            "unsupported_grant_type",
        ),
        ("client_credentials", "unauthorized_client"),
    ] {
        let reply = scene
            .node
            .post(
                "/oauth/token",
                &[("grant_type", grant_type), ("client_id", &scene.client)],
            )
            .await;
        assert_eq!(reply.refusal(), refused(expected), "{grant_type}");
    }
}

#[tokio::test]
async fn cases_98_to_101_resource_at_the_token_endpoint() {
    let mut scene = Scene::new().await;
    let at = |path: &str| format!("https://mcp.example.com{path}");
    let (acme, github, beta) = (
        at("/t/acme/mcp"),
        at("/t/acme/github/mcp"),
        at("/t/beta/mcp"),
    );
    let odd = "HTTPS://Mcp.Example.com:443/t/acme/mcp/";

    // Named at both endpoints: equal in any spelling, otherwise refused with the code unused.
    let code = scene.ann.code(&request(&scene.client)).await;
    let good = code_request(&scene.client, &code);
    for wrong in [
        github.as_str(),
        &beta,
        "https://evil.example/mcp",
        "http://mcp.example.com/t/acme/mcp",
        "https://mcp.example.com/t/acme/mcp#x",
    ] {
        let reply = scene
            .node
            .post("/oauth/token", &with(good.clone(), "resource", Some(wrong)))
            .await;
        assert_eq!(reply.refusal(), refused("invalid_target"), "{wrong}");
        if wrong == beta {
            break;
        }
    }
    let mut two = good.clone();
    two.extend([("resource", acme.as_str()), ("resource", acme.as_str())]);
    assert_eq!(
        scene.node.post("/oauth/token", &two).await.refusal(),
        refused("invalid_target"),
        "CASE-99"
    );
    let tokens = scene
        .node
        .post("/oauth/token", &with(good, "resource", Some(odd)))
        .await
        .json();
    assert_eq!(claims(&tokens)["aud"], acme.as_str(), "CASE-101");

    // Named at the token endpoint alone: narrows within the picked workspace.
    let code = scene
        .ann
        .code(&with(request(&scene.client), "resource", None))
        .await;
    let good = code_request(&scene.client, &code);
    let foreign = scene
        .node
        .post("/oauth/token", &with(good.clone(), "resource", Some(&beta)))
        .await;
    assert_eq!(foreign.refusal(), refused("invalid_target"));
    let tokens = scene
        .node
        .post("/oauth/token", &with(good, "resource", Some(&github)))
        .await
        .json();
    assert_eq!(claims(&tokens)["aud"], github.as_str());
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let tokens = scene.node.refresh(&scene.client, refresh).await.json();
    assert_eq!(claims(&tokens)["aud"], github.as_str(), "and stays narrow");
}

#[tokio::test]
async fn j2_two_nodes_that_start_at_once_sign_with_the_same_keys() {
    let scene = Scene::new().await;
    let (two, three) = tokio::join!(scene.second_node(), scene.second_node());
    let first = scene.node.get("/oauth/jwks.json").await.json();
    assert_eq!(two.get("/oauth/jwks.json").await.json(), first);
    assert_eq!(three.get("/oauth/jwks.json").await.json(), first);
}
