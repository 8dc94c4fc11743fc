//! The rule of a workspace on second factors, at consent, at the exchange of a code and at refresh
//! (AUTH-L14, AUTH-K16).

use http::{StatusCode, header};
use portolan_model::{factor::SecondFactor, id::UserId};
use portolan_storage::{
    Reason,
    accounts::passkeys::{self, New},
    oauth::factor_rules,
};
use time::Duration;

use crate::harness::{Scene, request};

async fn rule(scene: &Scene, rule: SecondFactor) {
    let mut tx = scene.node.store().system(Reason::Workspaces).await.unwrap();
    factor_rules::set(&mut tx, scene.acme, rule, scene.node.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn give_passkey(scene: &Scene, user: UserId) {
    let mut tx = scene.node.store().system(Reason::SignIn).await.unwrap();
    let new = New {
        user,
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

#[tokio::test]
async fn l14_consent_leads_to_the_factor_that_the_workspace_asks_for_and_back() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    rule(&scene, SecondFactor::Required).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let led = scene.ann.get(&path).await;
    let way = format!("/account/factor?workspace=acme&request={id}");
    assert_eq!(led.header(header::LOCATION), way);
    // She has no factor: the page shows how to add one, and links to the target.
    let page = scene.ann.get(&way).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for link in [
        format!("/account/two-factor?request={id}"),
        format!("/account/passkeys?request={id}"),
    ] {
        assert!(page.text.contains(&link), "{}", page.text);
    }
    // After ten minutes a new factor requires a recent sign-in first.
    scene.node.clock.advance(Duration::minutes(11));
    let stale = scene.ann.get(&way).await;
    assert_eq!(
        stale.header(header::LOCATION),
        format!("/account/confirm?request={id}")
    );
    // She has a factor, and has to prove it.
    let user = scene.ann.user;
    give_passkey(&scene, user).await;
    let asked = scene.ann.get(&way).await;
    let confirm = format!("/account/confirm?request={id}&for=required");
    assert_eq!(asked.header(header::LOCATION), confirm);
    let page = scene.ann.get(&confirm).await;
    assert!(
        page.text.contains("action=\"/account/confirm/passkey\"")
            && !page.text.contains("type=\"password\""),
        "a password alone would lead in a circle: {}",
        page.text
    );
    // After the proof, the original page continues.
    scene.ann.sign_in_by(user, &["hwk", "user", "mfa"]).await;
    assert_eq!(
        scene.ann.get(&way).await.header(header::LOCATION),
        format!("/oauth/consent/{id}")
    );
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(reply.back().contains_key("code"), "{}", reply.text);
}

#[tokio::test]
async fn l14_what_was_shown_before_the_rule_is_not_approved_after_it() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let page = scene.ann.get(&path).await;
    scene.node.clock.advance(Duration::SECOND);
    rule(&scene, SecondFactor::Passkey).await;
    let (token, workspace) = (
        page.field("token").unwrap(),
        page.field("workspace").unwrap(),
    );
    let fields = [
        ("token", token.as_str()),
        ("workspace", &workspace),
        ("decision", "approve"),
    ];
    let reply = scene.ann.post(&path, &fields).await;
    assert!(
        reply
            .header(header::LOCATION)
            .starts_with("/account/factor?workspace=acme&"),
        "{}",
        reply.text
    );
    // A code of an app is more than one factor, but no passkey.
    let user = scene.ann.user;
    scene.ann.sign_in_by(user, &["pwd", "otp", "mfa"]).await;
    let led = scene.ann.get(&path).await;
    assert_eq!(led.status, StatusCode::SEE_OTHER);
    scene.ann.sign_in_by(user, &["swk", "user", "mfa"]).await;
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(reply.back().contains_key("code"), "{}", reply.text);
}

#[tokio::test]
async fn l14_a_stricter_rule_ends_what_was_allowed_without_the_factor_and_nothing_else() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let weak = scene.ann.tokens(&client).await;
    let user = scene.ann.user;
    scene.ann.sign_in_by(user, &["pwd", "otp", "mfa"]).await;
    let strong = scene.ann.tokens(&client).await;
    let refresh = |tokens: &serde_json::Value| tokens["refresh_token"].as_str().unwrap().to_owned();
    let (weak, strong) = (refresh(&weak), refresh(&strong));
    rule(&scene, SecondFactor::Required).await;
    assert_eq!(
        scene.node.refresh(&client, &weak).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    let renewed = scene.node.refresh(&client, &strong).await;
    assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.text);
    let strong = refresh(&renewed.json());
    // CASE-126: a weaker rule does not revive ended grants.
    rule(&scene, SecondFactor::Off).await;
    assert_eq!(
        scene.node.refresh(&client, &weak).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    rule(&scene, SecondFactor::Passkey).await;
    assert_eq!(
        scene.node.refresh(&client, &strong).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn l14_k16_a_code_of_before_the_rule_gives_no_tokens_after_it() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let weak = scene.ann.code(&request(&client)).await;
    let user = scene.ann.user;
    scene.ann.sign_in_by(user, &["pwd", "otp", "mfa"]).await;
    let strong = scene.ann.code(&request(&client)).await;
    let stronger = scene.ann.code(&request(&client)).await;
    rule(&scene, SecondFactor::Required).await;
    assert_eq!(
        scene.node.redeem(&client, &weak).await.refusal(),
        (400, "invalid_grant".to_owned())
    );
    let given = scene.node.redeem(&client, &strong).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    rule(&scene, SecondFactor::Passkey).await;
    assert_eq!(
        scene.node.redeem(&client, &stronger).await.refusal(),
        (400, "invalid_grant".to_owned()),
        "a code of an app is no passkey"
    );
}
