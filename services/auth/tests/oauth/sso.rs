//! A workspace that requires its provider: at consent, at refresh, and for earlier grants
//! (AUTH-F7, AUTH-R7, AUTH-K16; CASE-126).

use http::{Method, StatusCode, header};
use portolan_model::{
    id::{IdentityProviderId, SessionId},
    member::Role,
};
use portolan_storage::{
    Reason,
    accounts::{
        browser_sessions, members,
        passkeys::{self, New},
        single_sign_on::{self as stored, Provider},
    },
};
use serde_json::{Value, json};

use crate::{
    harness::{Scene, request},
    service::is_revoked,
};

async fn provider(scene: &Scene, id: IdentityProviderId, is_enforced: bool) {
    let mut tx = scene.node.store().tenant(scene.acme).await.unwrap();
    let before = stored::of(&mut tx).await.unwrap();
    let provider = Provider {
        id,
        name: "Acme Works".to_owned(),
        issuer: "https://id.acme.example".to_owned(),
        client_id: "us".to_owned(),
        secret: None,
        version: before.map_or(1, |before| before.version + 1),
        is_enforced,
        is_off: false,
    };
    assert!(
        stored::put(&mut tx, &provider, scene.node.clock.now())
            .await
            .unwrap()
    );
    assert!(
        !stored::put(&mut tx, &provider, scene.node.clock.now())
            .await
            .unwrap(),
        "of two changes of one state one wins"
    );
    tx.commit().await.unwrap();
}

async fn give_passkey(scene: &Scene) {
    let mut tx = scene.node.store().system(Reason::SignIn).await.unwrap();
    let new = New {
        user: scene.ann.user,
        credential_id: b"one",
        public_key: b"key",
        host: "mcp.example.com",
        name: "Blue key",
        aaguid: [0; 16],
        is_backup_eligible: false,
        is_backed_up: false,
        sign_count: 0,
    };
    passkeys::add(&mut tx, &new, scene.node.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// Acts as if Ann had signed in with the provider in her present session.
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
    // AUTH-K16: the grant does not change; the refresh checks the rule.
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
    // CASE-126: the old one is dead permanently.
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
}

#[tokio::test]
async fn f7_k16_a_code_of_before_the_provider_was_the_only_way_gives_no_tokens_after_it() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let id = IdentityProviderId::generate();
    provider(&scene, id, false).await;
    let without = scene.ann.code(&request(&client)).await;
    step(&scene, id).await;
    let with = scene.ann.code(&request(&client)).await;
    let by_a_former_one = scene.ann.code(&request(&client)).await;
    provider(&scene, id, true).await;
    assert_eq!(
        scene.node.redeem(&client, &without).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    let given = scene.node.redeem(&client, &with).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    provider(&scene, IdentityProviderId::generate(), true).await;
    assert_eq!(
        scene.node.redeem(&client, &by_a_former_one).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn r7_the_console_ends_at_once_what_the_provider_does_not_let_act() {
    const SSO: &str = "/acme/single-sign-on";
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let id = IdentityProviderId::generate();
    provider(&scene, id, false).await;
    let without = scene.ann.tokens(&client).await;
    step(&scene, id).await;
    let with = scene.ann.tokens(&client).await;
    let enforced = format!("{SSO}/enforcement");
    let on = Some(json!({"enforced": true}));
    let early = scene.ann.api(Method::PUT, &enforced, on.clone()).await;
    assert_eq!(
        (early.status, early.json()["error"]["code"].as_str()),
        (StatusCode::CONFLICT, Some("passkey_first")),
        "no owner could get in when the provider fails: {}",
        early.text
    );
    give_passkey(&scene).await;
    let done = scene.ann.api(Method::PUT, &enforced, on).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert!(is_revoked(&scene.node, &without), "AUTH-R7: its tokens too");
    assert!(!is_revoked(&scene.node, &with));
    // Grants that came by a provider end with it.
    let provider = format!("{SSO}/provider");
    let gone = scene.ann.api(Method::DELETE, &provider, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    assert!(is_revoked(&scene.node, &with));
    assert_eq!(
        scene.node.refresh(&client, &refresh(&with)).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn f7_a_provider_that_an_operator_turned_off_is_none_until_it_is_entered_again() {
    const SSO: &str = "/acme/single-sign-on";
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let id = IdentityProviderId::generate();
    let without = scene.ann.tokens(&client).await;
    provider(&scene, id, true).await;
    step(&scene, id).await;
    let with = scene.ann.tokens(&client).await;
    let way = |page: &str| -> Option<String> {
        let at = page.find(&format!("/login/with/{id}"))?;
        let link = page[at..].split('"').next()?;
        Some(link.replace("&#38;", "&").replace("&amp;", "&"))
    };
    let page = scene.ann.get("/login/company/acme").await;
    let before = way(&page.text).expect("a link");

    // Acts like `portolan admin tenants sso-off`.
    let now = scene.node.clock.now();
    let mut tx = scene.node.store().system(Reason::Operator).await.unwrap();
    let off = stored::turn_off(&mut tx, scene.acme, now).await.unwrap();
    assert_eq!(off, Some(id));
    let again = stored::turn_off(&mut tx, scene.acme, now).await.unwrap();
    assert_eq!(again, None, "once");
    stored::end_confined(&mut tx, scene.acme, now)
        .await
        .unwrap();
    let ended = stored::end_others(&mut tx, scene.acme, now).await.unwrap();
    assert_eq!(ended.len(), 1, "what it had let in");
    tx.commit().await.unwrap();
    assert_eq!(
        scene.node.refresh(&client, &refresh(&with)).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    let renewed = scene.node.refresh(&client, &refresh(&without)).await;
    assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.text);

    // Neither the workspace nor its own address leads to it.
    let page = scene.ann.get("/login/company/acme").await;
    assert_eq!(way(&page.text), None, "{}", page.text);
    let nowhere = scene.ann.get(&before).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND, "{}", nowhere.text);
    let seen = scene.ann.api(Method::GET, SSO, None).await.json();
    assert_eq!(seen["provider"]["turned_off"], true, "{seen}");
    let on = Some(json!({"enforced": true}));
    for (method, path, body) in [
        (Method::PUT, format!("{SSO}/enforcement"), on),
        (Method::POST, format!("{SSO}/provider/test"), None),
    ] {
        let refused = scene.ann.api(method, &path, body).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_str()),
            (StatusCode::CONFLICT, Some("provider_off")),
            "{path}: {}",
            refused.text
        );
    }
    // Saving a form from before does not require the provider again.
    provider(&scene, id, true).await;
    let seen = scene.ann.api(Method::GET, SSO, None).await.json();
    assert_eq!(
        (
            &seen["provider"]["turned_off"],
            &seen["provider"]["enforced"]
        ),
        (&json!(false), &json!(false)),
        "{seen}"
    );
    let page = scene.ann.get("/login/company/acme").await;
    assert!(way(&page.text).is_some(), "{}", page.text);
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
