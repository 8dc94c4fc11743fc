//! A workspace whose provider is the only way in, at consent, at refresh and for what was allowed before (`auth.md` F7, R7, K16; case 126).

use http::{StatusCode, header};
use portolan_model::{
    id::{IdentityProviderId, SessionId},
    member::Role,
};
use portolan_storage::{
    Reason, browser_sessions, members,
    single_sign_on::{self as stored, Provider},
};
use serde_json::Value;

use crate::{
    harness::{Scene, request},
    service::is_revoked,
};

async fn provider(scene: &Scene, id: IdentityProviderId, is_enforced: bool) {
    let provider = Provider {
        id,
        name: "Acme Works".to_owned(),
        issuer: "https://id.acme.example".to_owned(),
        client_id: "us".to_owned(),
        secret: None,
        version: 1,
        is_enforced,
    };
    let mut tx = scene.node.store().tenant(scene.acme).await.unwrap();
    stored::put(&mut tx, &provider, scene.node.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// As if Ann had come by the provider in the session that she has.
async fn step(scene: &Scene, id: IdentityProviderId) -> SessionId {
    let now = scene.node.clock.now();
    let mut tx = scene.node.store().system(Reason::SignIn).await.unwrap();
    let sessions = browser_sessions::list(&mut tx, scene.ann.user, now)
        .await
        .unwrap();
    stored::step(&mut tx, sessions[0].id, scene.acme, id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    sessions[0].id
}

async fn role(scene: &Scene) -> Role {
    let mut tx = scene.node.store().system(Reason::Workspaces).await.unwrap();
    members::role_of(&mut tx, scene.acme, scene.ann.user)
        .await
        .unwrap()
        .unwrap()
}

fn refresh(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn f7_consent_leads_to_the_provider_that_the_workspace_asks_for() {
    let mut scene = Scene::new().await;
    let id = IdentityProviderId::generate();
    provider(&scene, id, true).await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let request_id = path.rsplit('/').next().unwrap().to_owned();
    let led = scene.ann.get(&path).await;
    assert_eq!(
        led.header(header::LOCATION),
        format!("/login/company/acme?request={request_id}")
    );
    let page = scene.ann.get(led.header(header::LOCATION)).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(
        page.text
            .contains(&format!("/login/with/{id}?request={request_id}")),
        "{}",
        page.text
    );
    step(&scene, IdentityProviderId::generate()).await;
    let led = scene.ann.get(&path).await;
    assert_eq!(
        led.status,
        StatusCode::SEE_OTHER,
        "a former provider's word is not believed"
    );
    step(&scene, id).await;
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(reply.back().contains_key("code"), "{}", reply.text);
}

#[tokio::test]
async fn r7_k16_what_was_allowed_without_the_provider_ends_and_what_was_allowed_with_it_lives() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let id = IdentityProviderId::generate();
    provider(&scene, id, false).await;
    let without = scene.ann.tokens(&client).await;
    step(&scene, id).await;
    let with = scene.ann.tokens(&client).await;
    provider(&scene, id, true).await;
    // K16: nobody tells the grant; the refresh looks.
    assert_eq!(
        scene
            .node
            .refresh(&client, &refresh(&without))
            .await
            .refusal(),
        (400, "invalid_grant".to_owned())
    );
    let renewed = scene.node.refresh(&client, &refresh(&with)).await;
    assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.text);
    let with = renewed.json();
    // Case 126: the old one is dead for good.
    provider(&scene, id, false).await;
    assert_eq!(
        scene
            .node
            .refresh(&client, &refresh(&without))
            .await
            .refusal(),
        (400, "invalid_grant".to_owned())
    );
    assert!(!is_revoked(&scene.node, &with));

    // R7: another provider, made the only way, ends the rest at once.
    let other = IdentityProviderId::generate();
    provider(&scene, other, true).await;
    let mut tx = scene.node.store().system(Reason::Workspaces).await.unwrap();
    let ended = stored::end_others(&mut tx, scene.acme, scene.node.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ended.len(), 1);
    assert_eq!(
        scene.node.refresh(&client, &refresh(&with)).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn f7_an_owner_with_a_passkey_gets_in_when_the_provider_does_not_work() {
    let mut scene = Scene::new().await;
    assert_eq!(role(&scene).await, Role::Owner);
    provider(&scene, IdentityProviderId::generate(), true).await;
    let user = scene.ann.user;
    scene.ann.sign_in_by(user, &["hwk", "user", "mfa"]).await;
    let client = scene.client.clone();
    let tokens = scene.ann.tokens(&client).await;
    let renewed = scene.node.refresh(&client, &refresh(&tokens)).await;
    assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.text);
}
