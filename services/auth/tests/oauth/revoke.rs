//! Revocation (R1–R4, CASE-132, CASE-133).

use http::{StatusCode, header};
use portolan_storage::{Reason, oauth::revocations};

use crate::harness::Scene;

async fn revoke(scene: &Scene, client: &str, token: &str, hint: &str) -> StatusCode {
    let fields = [
        ("token", token),
        ("client_id", client),
        ("token_type_hint", hint),
    ];
    let reply = scene.node.post("/oauth/revoke", &fields).await;
    assert_eq!(reply.header(header::CACHE_CONTROL), "no-store");
    reply.status
}

async fn news(scene: &Scene) -> Vec<revocations::RevocationKind> {
    let mut tx = scene
        .node
        .store()
        .system(Reason::Revocations)
        .await
        .unwrap();
    let live = revocations::live(&mut tx, None, scene.node.clock.now())
        .await
        .unwrap();
    live.entries.into_iter().map(|row| row.kind).collect()
}

#[tokio::test]
async fn r4_a_refresh_token_stands_for_its_grant_and_an_access_token_for_itself() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let tokens = scene.ann.tokens(&client).await;
    let (access, refresh) = (
        tokens["access_token"].as_str().unwrap(),
        tokens["refresh_token"].as_str().unwrap(),
    );
    // The hint is wrong on purpose (CASE-133).
    assert_eq!(
        revoke(&scene, &client, access, "refresh_token").await,
        StatusCode::OK
    );
    assert_eq!(news(&scene).await, [revocations::RevocationKind::Jti]);
    let next = scene.node.refresh(&client, refresh).await.json();
    let next = next["refresh_token"].as_str().unwrap();
    assert_eq!(
        revoke(&scene, &client, next, "access_token").await,
        StatusCode::OK
    );
    assert_eq!(
        news(&scene).await,
        [
            revocations::RevocationKind::Jti,
            revocations::RevocationKind::Grant
        ]
    );
    assert_eq!(
        scene.node.refresh(&client, next).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    assert_eq!(
        revoke(&scene, &client, next, "").await,
        StatusCode::OK,
        "again"
    );
}

#[tokio::test]
async fn r2_foreign_and_senseless_tokens_are_200_without_effect() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let other = scene.node.client("Other").await;
    let tokens = scene.ann.tokens(&client).await;
    for token in [
        "x",
        "rt_x",
        "a.b.c",
        tokens["refresh_token"].as_str().unwrap(),
        tokens["access_token"].as_str().unwrap(),
    ] {
        assert_eq!(revoke(&scene, &other, token, "").await, StatusCode::OK);
    }
    assert!(news(&scene).await.is_empty(), "CASE-132");
    assert_eq!(
        scene
            .node
            .refresh(&client, tokens["refresh_token"].as_str().unwrap())
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn r1_the_client_must_be_known() {
    let scene = Scene::new().await;
    assert_eq!(
        revoke(&scene, "cli_unknown", "x", "").await,
        StatusCode::UNAUTHORIZED
    );
    let reply = scene
        .node
        .post("/oauth/revoke", &[("client_id", &scene.client)])
        .await;
    assert_eq!(reply.refusal(), (400, "invalid_request".to_owned()));
}
