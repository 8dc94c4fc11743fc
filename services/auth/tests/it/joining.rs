//! Membership by a workspace's provider: two concurrent first sign-ins, and refusals at the last
//! moment (AUTH-F7).

use futures_util::future::join;
use http::{Method, StatusCode};
use portolan_model::id::TenantId;
use portolan_storage::{
    Reason,
    accounts::{identities, members, users},
};
use serde_json::json;
use time::Duration;

use crate::{
    races,
    single_sign_on::{SSO, Scene, workspaces},
    test_service::Browser,
};

/// The members with this address, whatever their names.
async fn members_with(olga: &Browser<'_>, email: &str) -> Vec<serde_json::Value> {
    let members = olga
        .call(Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    let items = members["items"].as_array().cloned().unwrap_or_default();
    items
        .into_iter()
        .filter(|one| one["email"] == email)
        .collect()
}

async fn acme(scene: &Scene) -> TenantId {
    let mut tx = scene
        .service
        .store
        .system(Reason::Workspaces)
        .await
        .unwrap();
    let olga = users::find_login(&mut tx, "olga@owner.example")
        .await
        .unwrap()
        .unwrap();
    members::workspace_of(&mut tx, olga.user, "acme")
        .await
        .unwrap()
        .unwrap()
        .tenant
        .id
}

#[tokio::test]
async fn f7_of_two_first_sign_ins_at_once_one_makes_the_account_and_both_are_in_it() {
    let scene = Scene::new().await;
    for round in
        races::rounds("f7_of_two_first_sign_ins_at_once_one_makes_the_account_and_both_are_in_it")
    {
        // The number of new members an hour is limited.
        scene.service.wait(Duration::hours(2));
        let email = format!("ann{round}@acme.example");
        scene
            .idp
            .say(json!({"sub": format!("ann-{round}"), "email": email, "name": "Ann"}));
        let (one, other) = (scene.service.browser(), scene.service.browser());
        let page = format!("/login/company?email={email}");
        let (back, other_back) = (
            scene.visit(&one, &page).await,
            scene.visit(&other, &page).await,
        );
        let (done, other_done) = join(one.get(&back), other.get(&other_back)).await;
        for answer in [&done, &other_done] {
            assert_eq!(
                (answer.status, answer.location()),
                (StatusCode::SEE_OTHER, "/"),
                "round {round}: {}",
                answer.text
            );
        }
        assert_eq!(workspaces(&one).await, ["acme"]);
        assert_eq!(workspaces(&other).await, ["acme"]);
        let olga = scene.olga().await;
        let found = members_with(&olga, &email).await;
        assert_eq!(found.len(), 1, "round {round}: {found:?}");
        let me = async |browser: &Browser<'_>| {
            browser.call(Method::GET, "/me", None).await.json()["user"]["id"].clone()
        };
        assert_eq!(me(&one).await, me(&other).await, "one account");
        assert_eq!(me(&one).await, found[0]["user_id"]);
    }
}

/// The account was made and the membership was not: both are rolled back.
#[tokio::test]
async fn f7_a_provider_that_goes_while_somebody_arrives_makes_no_account_and_no_member() {
    let scene = Scene::new().await;
    let email = "ann@acme.example";
    scene
        .idp
        .say(json!({"sub": "ann-1", "email": email, "name": "Ann"}));
    let ann = scene.service.browser();
    let back = scene
        .visit(&ann, &format!("/login/company?email={email}"))
        .await;
    let olga = scene.olga().await;
    let held = scene.idp.hold();
    let (refused, ()) = join(ann.get(&back), async {
        held.arrived().await;
        let removed = olga
            .call(Method::DELETE, &format!("{SSO}/provider"), None)
            .await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text);
        held.release();
    })
    .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(
        refused
            .text
            .contains("no longer a member of this workspace"),
        "{}",
        refused.text
    );
    assert!(!ann.is_signed_in().await);
    assert!(members_with(&olga, email).await.is_empty());
    let mut tx = scene.service.store.system(Reason::SignIn).await.unwrap();
    assert!(!users::is_address_verified(&mut tx, email).await.unwrap());
}

/// A removed member with an own account does not return by connecting the provider.
#[tokio::test]
async fn f7_who_was_removed_does_not_join_again_by_connecting_the_provider() {
    let scene = Scene::new().await;
    let email = "dave@acme.example";
    let dave = scene.service.person(email).await;
    let olga = scene.olga().await;
    let invited = olga
        .call(
            Method::POST,
            "/workspaces/acme/invitations",
            Some(json!({"email": email, "role": "developer"})),
        )
        .await;
    assert_eq!(invited.status, StatusCode::CREATED, "{}", invited.text);
    let mail = scene.service.newest_mail(email).await.body;
    let at = mail.find("/invitations?token=").unwrap();
    let opened = dave
        .get(mail[at..].split_whitespace().next().unwrap())
        .await;
    dave.fill(opened.location(), &[]).await;
    assert_eq!(workspaces(&dave).await, ["acme"]);
    let his = members_with(&olga, email).await.pop().unwrap();
    let path = format!(
        "/workspaces/acme/members/{}",
        his["user_id"].as_str().unwrap()
    );
    let removed = olga.call(Method::DELETE, &path, None).await;
    assert!(removed.status.is_success(), "{}", removed.text);

    scene.idp.say(json!({"sub": "dave-1", "email": email}));
    let offered = scene
        .sign_in(&dave, &format!("/login/company?email={email}"))
        .await
        .location()
        .to_owned();
    assert!(offered.starts_with("/login/connect/"), "{offered}");
    let refused = dave.fill(&offered, &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(workspaces(&dave).await.is_empty());
    assert!(members_with(&olga, email).await.is_empty());
    let tenant = acme(&scene).await;
    let mut tx = scene.service.store.system(Reason::SignIn).await.unwrap();
    let user = users::find_login(&mut tx, email).await.unwrap().unwrap();
    let linked = identities::of_user(&mut tx, user.user).await.unwrap();
    assert!(linked.is_empty(), "nor is it connected: {linked:?}");
    let role = members::role_of(&mut tx, tenant, user.user).await.unwrap();
    assert!(role.is_none());
}
