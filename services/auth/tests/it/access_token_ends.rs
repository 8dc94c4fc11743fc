//! Ends of tokens of the management API: with a membership, a password, an identity and a rule for
//! sign-ins, and by revocation (API-4, API-9, API-11).

use http::{Method, StatusCode};
use portolan_model::member::Role;
use portolan_storage::{
    Reason,
    accounts::{browser_sessions, members},
    platform::audit_chain,
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{code, of_workspace, personal, scopes},
    console::{ids, workspace},
    invitations::member,
    provider::{self, Provider},
    second_factor,
    test_service::{PASSWORD, TestService},
};

/// Rule: API-4.
#[tokio::test]
async fn a_membership_that_ends_takes_the_token_for_good() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let bob = member(&service, &ann, "bob@acme.example", "member").await;
    workspace(&bob, "own").await;
    let his = personal(&service, &bob).await;
    let (tenant, user) = ids(&service, &bob, "acme").await;
    let status = async || his.get("/workspaces/acme").await.status;
    assert_eq!(status().await, StatusCode::OK);
    let remove = format!("/workspaces/acme/members/{user}");
    let removed = ann.call(Method::DELETE, &remove, None).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text);
    assert_eq!(status().await, StatusCode::NOT_FOUND);
    service.wait(Duration::minutes(1));
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, Role::Member, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status().await, StatusCode::NOT_FOUND, "of before");
    assert_eq!(his.get("/workspaces/own").await.status, StatusCode::OK);
    service.wait(Duration::minutes(1));
    let anew = personal(&service, &bob).await;
    assert_eq!(anew.get("/workspaces/acme").await.status, StatusCode::OK);
}

/// Rule: API-4.
#[tokio::test]
async fn personal_tokens_end_where_a_stolen_account_may() {
    use browser_sessions::EndReason::{
        AccountDeleted, AddressChanged, EndedElsewhere, FactorAdded, FactorChanged, Operator,
        PasswordChanged,
    };
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (_, user) = ids(&service, &ann, "acme").await;
    let shared = of_workspace(&service, &ann, Role::Viewer, &scopes()).await;
    let reasons = [
        (EndedElsewhere, true),
        (FactorAdded, true),
        (FactorChanged, true),
        (PasswordChanged, false),
        (AddressChanged, false),
        (AccountDeleted, false),
        (Operator, false),
    ];
    for (reason, lives) in reasons {
        let token = personal(&service, &ann).await;
        let session = ann.cookie("__Host-sid").unwrap();
        let digest = portolan_keys::token::digest(session.as_bytes());
        let now = service.clock.now();
        let mut tx = service.store.system(Reason::SignIn).await.unwrap();
        let kept = browser_sessions::find_live(&mut tx, &digest, now)
            .await
            .unwrap()
            .unwrap();
        let ended = browser_sessions::end_all(&mut tx, user, Some(kept.id), reason, now)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let status = token.get("/token").await.status;
        assert_eq!(status == StatusCode::OK, lives, "{reason:?}");
        assert_eq!(ended.tokens.is_empty(), lives, "{reason:?}");
    }
    assert_eq!(shared.get("/token").await.status, StatusCode::OK);
}

/// The platform's log: the tokens that ended for this reason.
async fn ended_for(service: &TestService, why: &str) -> Vec<Value> {
    let mut tx = service.store.system(Reason::Operator).await.unwrap();
    let links = audit_chain::links(&mut tx, None, 0, 200).await.unwrap();
    let entries = links.iter().map(|link| {
        let fields: Vec<Option<String>> =
            serde_json::from_str(link.entry.as_deref().unwrap()).unwrap();
        let detail: Value = serde_json::from_str(fields[12].as_deref().unwrap()).unwrap();
        (fields[6].clone().unwrap(), detail)
    });
    let ended =
        entries.filter(|(action, detail)| action == "access_token.revoked" && detail["why"] == why);
    ended.map(|(_, detail)| detail["name"].clone()).collect()
}

/// Rule: API-9. Tokens that end together have an entry each.
#[tokio::test]
async fn tokens_that_end_with_a_password_are_in_the_log() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let token = personal(&service, &ann).await;
    personal(&service, &ann).await;
    let new = "quartz lemon harbour ninety";
    let fields = [("current", PASSWORD), ("password", new)];
    let changed = ann.fill("/account/password", &fields).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    assert_eq!(token.get("/token").await.status, StatusCode::UNAUTHORIZED);
    let ended = ended_for(&service, "password_changed").await;
    assert_eq!(ended, [json!("Laptop"), json!("Laptop")]);
}

/// Rule: API-4 (AUTH-L14). A factor more takes no proof away; a replaced one does.
#[tokio::test]
async fn proof_of_a_token_outlives_an_added_factor() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, user) = ids(&service, &ann, "acme").await;
    second_factor::enrol(&service, &ann).await;
    let token = personal(&service, &ann).await;
    let rule = portolan_model::factor::SecondFactor::Required;
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    portolan_storage::oauth::factor_rules::set(&mut tx, tenant, rule, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for (reason, status) in [
        (browser_sessions::EndReason::FactorAdded, StatusCode::OK),
        (
            browser_sessions::EndReason::FactorChanged,
            StatusCode::FORBIDDEN,
        ),
    ] {
        let mut tx = service.store.system(Reason::SignIn).await.unwrap();
        browser_sessions::end_all(&mut tx, user, None, reason, service.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let opened = token.get("/workspaces/acme").await;
        assert_eq!(opened.status, status, "{reason:?}: {}", opened.text);
    }
}

/// Rule: API-4 (AUTH-F6). An identity that is removed takes the tokens along that it made.
#[tokio::test]
async fn tokens_end_with_the_identity_that_made_them() {
    const ANN: &str = "ann@acme.example";
    let works = Provider::start("works").await;
    let service = provider::service(vec![works.openid()], &[&works]).await;
    let ann = service.person(ANN).await;
    works.say(json!({"email": "ann@works.example", "email_verified": true, "name": "Ann"}));
    let added = works.sign_in(&service, &ann, "/account/sign-in").await;
    assert_eq!(added.location(), "/account/sign-in?done=added");
    let own = personal(&service, &ann).await;
    let other = service.browser();
    works.sign_in(&service, &other, "/login").await;
    assert!(other.is_signed_in().await);
    let made = personal(&service, &other).await;
    // A factor more does not hide how the session began.
    second_factor::enrol(&service, &other).await;
    let later = personal(&service, &other).await;
    assert_eq!(made.get("/token").await.status, StatusCode::OK);

    let page = other.get("/account/sign-in").await.text;
    let at = page.find("name=\"identity\" value=\"").unwrap() + 23;
    let identity = page[at..].split('"').next().unwrap();
    let removed = other
        .fill("/account/sign-in", &[("identity", identity)])
        .await;
    assert_eq!(removed.location(), "/account/sign-in?done=removed");
    for token in [&made, &later] {
        assert_eq!(token.get("/token").await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(
        own.get("/token").await.status,
        StatusCode::OK,
        "by password"
    );
    assert_eq!(ended_for(&service, "identity_unlinked").await.len(), 2);
}

/// Rule: API-4 (AUTH-L14, AUTH-F7).
#[tokio::test]
async fn rules_for_sign_ins_bind_personal_tokens() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let own = personal(&service, &ann).await;
    let shared = of_workspace(&service, &ann, Role::Viewer, &scopes()).await;
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let rule = portolan_model::factor::SecondFactor::Required;
    portolan_storage::oauth::factor_rules::set(&mut tx, tenant, rule, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let refused = own.get("/workspaces/acme").await;
    assert_eq!(code(&refused), "token_not_admitted");
    assert_eq!(shared.get("/workspaces/acme").await.status, StatusCode::OK);
}

/// Rule: API-11.
#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let bob = member(&service, &ann, "bob@acme.example", "member").await;
    let own = personal(&service, &ann).await;
    let id = own.get("/token").await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/me/access-tokens/{id}");
    let foreign = bob.call(Method::DELETE, &path, None).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "CASE-106");
    let path_of_workspace = format!("/workspaces/acme/access-tokens/{id}");
    let foreign = ann.call(Method::DELETE, &path_of_workspace, None).await;
    assert_eq!(
        foreign.status,
        StatusCode::NOT_FOUND,
        "of the person, not of the workspace"
    );
    let used = ann
        .call(Method::GET, "/me/access-tokens", None)
        .await
        .json();
    assert!(used["items"][0]["last_used_at"].is_string(), "{used}");
    let revoked = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(own.get("/token").await.status, StatusCode::UNAUTHORIZED);
    let again = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    let leaked = of_workspace(&service, &ann, Role::Viewer, &["audit:read"]).await;
    let ended = leaked.call(Method::DELETE, "/token", None).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text);
    assert_eq!(leaked.get("/token").await.status, StatusCode::UNAUTHORIZED);
    let session = ann.call(Method::GET, "/token", None).await;
    assert_eq!(session.status, StatusCode::NOT_FOUND, "a session has none");
}
