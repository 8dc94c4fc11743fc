//! The rule of a workspace on second factors, in the console (AUTH-L14), and the recent
//! sign-in of sensitive changes (AUTH-S2).

use http::{Method, StatusCode};
use portolan_keys::{Secret, TotpSecret};
use portolan_model::factor::SecondFactor;
use portolan_storage::{
    Reason,
    accounts::{
        passkeys::{self, New},
        users,
    },
    oauth::factor_rules,
};
use serde_json::{Value, json};
use time::Duration;

use crate::test_service::{Answer, Browser, PASSWORD, TestService};

async fn workspace(owner: &Browser<'_>) {
    let body = json!({"name": "Acme", "slug": "acme"});
    let made = owner.call(Method::POST, "/workspaces", Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

async fn set(browser: &Browser<'_>, rule: &str) -> Answer {
    let body = json!({ "second_factor": rule });
    browser
        .call(Method::PATCH, "/workspaces/acme/security", Some(body))
        .await
}

/// The app with the key that the page shows.
fn app(page: &str) -> TotpSecret {
    let text = page.split("<p class=\"mono\">").nth(1).unwrap();
    let mut bits = String::new();
    for letter in text.split('<').next().unwrap().replace(' ', "").chars() {
        let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap();
        bits.push_str(&format!("{value:05b}"));
    }
    let bytes = bits
        .as_bytes()
        .chunks_exact(8)
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap());
    TotpSecret::from_bytes(Secret::new(bytes.collect()))
}

/// Activates an authenticator app from the page at `path`. Returns the page with the recovery
/// codes.
async fn enrol(service: &TestService, person: &Browser<'_>, path: &str) -> (TotpSecret, Answer) {
    let request = path
        .split_once("request=")
        .map_or("", |(_, request)| request);
    person
        .fill(path, &[("what", "begin"), ("request", request)])
        .await;
    let app = app(&person.get(path).await.text);
    let code = app.code_at(service.clock.now());
    let fields = [
        ("what", "confirm"),
        ("code", code.as_str()),
        ("request", request),
    ];
    let done = person.fill(path, &fields).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    (app, done)
}

fn error(answer: &Answer) -> Value {
    answer.json()["error"].clone()
}

#[tokio::test]
async fn l14_a_member_without_the_factor_is_led_to_it_and_goes_on_where_she_was() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    let before = ann
        .call(Method::GET, "/workspaces/acme/security", None)
        .await
        .json();
    assert_eq!(
        (
            &before["second_factor"],
            &before["members"],
            &before["members_with_factor"]
        ),
        (&json!("off"), &json!(1), &json!(0))
    );

    // An admin cannot lock herself out with one click.
    let refused = set(&ann, "required").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(error(&refused)["code"], "second_factor_first");
    let path = "/account/two-factor?request=w.security.acme";
    assert_eq!(error(&refused)["details"]["path"], path);
    let (_, codes) = enrol(&service, &ann, path).await;
    assert!(
        codes.text.contains("href=\"/w/acme/security\""),
        "back to where she was: {}",
        codes.text
    );
    let done = set(&ann, "required").await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert_eq!(done.json()["members_with_factor"], 1);

    // With a password alone the whole workspace is closed, and the answer names the page to visit.
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let bob = service.person("bob@acme.example").await;
    let user = users::find_login(&mut tx, "bob@acme.example")
        .await
        .unwrap()
        .unwrap()
        .user;
    let acme = portolan_storage::platform::tenants::by_slug(&mut tx, "acme")
        .await
        .unwrap()
        .unwrap();
    let role = portolan_model::member::Role::Developer;
    portolan_storage::accounts::members::add(&mut tx, acme.id, user, role, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for path in ["", "/sources", "/tools", "/members", "/calls"] {
        let closed = bob
            .call(Method::GET, &format!("/workspaces/acme{path}"), None)
            .await;
        assert_eq!(closed.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(error(&closed)["code"], "second_factor_first", "{path}");
        assert_eq!(
            error(&closed)["details"]["path"],
            "/account/factor?workspace=acme&request=w.overview.acme"
        );
    }
    // A stranger gets no information about the rule.
    let eve = service.person("eve@evil.example").await;
    let hidden = eve.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    let away = eve
        .get("/account/factor?workspace=acme&request=w.overview.acme")
        .await;
    assert_eq!(away.location(), "/w/acme");

    let page = bob
        .get("/account/factor?workspace=acme&request=w.overview.acme")
        .await;
    assert!(page.text.contains("Acme"), "{}", page.text);
    let (_, codes) = enrol(
        &service,
        &bob,
        "/account/two-factor?request=w.overview.acme",
    )
    .await;
    assert!(codes.text.contains("href=\"/w/acme\""), "{}", codes.text);
    let open = bob.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(
        open.status,
        StatusCode::OK,
        "the session was proved by the app too"
    );
    let events = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .json();
    assert!(
        events.to_string().contains("tenant.second_factor_rule"),
        "{events}"
    );
}

#[tokio::test]
async fn l14_where_a_passkey_is_asked_for_an_app_does_not_do_and_the_way_leads_to_one() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    enrol(&service, &ann, "/account/two-factor").await;
    let refused = set(&ann, "passkey").await;
    assert_eq!(
        error(&refused)["details"]["path"],
        "/account/passkeys?request=w.security.acme"
    );
    assert_eq!(
        set(&ann, "always").await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let acme = portolan_storage::platform::tenants::by_slug(&mut tx, "acme")
        .await
        .unwrap()
        .unwrap();
    let rule = SecondFactor::Passkey;
    factor_rules::set(&mut tx, acme.id, rule, service.clock.now())
        .await
        .unwrap();
    let user = users::find_login(&mut tx, "ann@acme.example")
        .await
        .unwrap()
        .unwrap()
        .user;
    let new = New {
        user,
        credential_id: b"one",
        public_key: b"key",
        host: "portolan.test",
        name: "Blue key",
        aaguid: [0; 16],
        is_backup_eligible: false,
        is_backed_up: false,
        sign_count: 0,
    };
    let closed = ann.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(closed.status, StatusCode::OK, "not committed yet");
    tx.commit().await.unwrap();
    let closed = ann.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(error(&closed)["code"], "second_factor_first");
    let way = "/account/factor?workspace=acme&request=w.overview.acme";
    let page = ann.get(way).await.text;
    assert!(
        page.contains("Add a passkey") && !page.contains("authenticator app"),
        "an app does not do: {page}"
    );
    let mut tx = service.store.system(Reason::SignIn).await.unwrap();
    passkeys::add(&mut tx, &new, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        ann.get(way).await.location(),
        "/account/confirm?request=w.overview.acme&for=passkey"
    );
}

#[tokio::test]
async fn case_157_without_a_recent_proof_each_sensitive_change_is_refused_and_says_where_to_give_it()
 {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    let accounts = "/workspaces/acme/service-accounts";
    let nightly = json!({"name": "Nightly", "auth": "client_secret"});
    let made = ann
        .call(Method::POST, accounts, Some(nightly.clone()))
        .await
        .json();
    let account = format!("{accounts}/{}", made["account"]["id"].as_str().unwrap());
    service.wait(Duration::minutes(11));

    // Pages. The form token comes from a page without a requirement.
    let token = ann.get("/account/password").await.field("form_token");
    for (path, page, fields) in [
        (
            "/account/email",
            "email",
            &[("email", "new@acme.example")] as &[(&str, &str)],
        ),
        ("/account/email/confirm", "email", &[("code", "12345678")]),
        ("/account/two-factor", "two-factor", &[("what", "begin")]),
        ("/account/two-factor", "two-factor", &[("what", "remove")]),
        ("/account/two-factor", "two-factor", &[("what", "codes")]),
        ("/account/passkeys/options", "passkeys", &[]),
        ("/account/passkeys", "passkeys", &[("what", "add")]),
        (
            "/account/passkeys",
            "passkeys",
            &[("what", "rename"), ("name", "x")],
        ),
        ("/account/passkeys", "passkeys", &[("what", "remove")]),
        // AUTH-F6: unlink.
        ("/account/sign-in", "sign-in", &[]),
    ] {
        let mut all = vec![("form_token", token.as_str())];
        all.extend_from_slice(fields);
        let refused = ann.post(path, &all).await;
        assert_eq!(refused.status, StatusCode::SEE_OTHER, "{path} {fields:?}");
        assert_eq!(
            refused.location(),
            format!("/account/confirm?request=account.{page}"),
            "{path} {fields:?}"
        );
    }
    // A change of password requires the current one, which is as good as a recent sign-in.
    let wrong = [
        ("form_token", token.as_str()),
        ("current", "not this one at all"),
        ("password", "violet gravel teapot nineteen"),
    ];
    let refused = ann.post("/account/password", &wrong).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);

    // The console.
    for (method, path, page, body) in [
        (
            Method::POST,
            "/workspaces/acme/api-keys".to_owned(),
            "keys",
            json!({"name": "Laptop"}),
        ),
        (Method::POST, accounts.to_owned(), "keys", nightly),
        (
            Method::POST,
            format!("{account}/secrets"),
            "keys",
            json!({}),
        ),
        (
            Method::PATCH,
            account.clone(),
            "keys",
            json!({"enabled": true}),
        ),
        (
            Method::PATCH,
            "/workspaces/acme/security".to_owned(),
            "security",
            json!({"second_factor": "off"}),
        ),
        (
            Method::DELETE,
            "/workspaces/acme".to_owned(),
            "settings",
            json!({"slug": "acme"}),
        ),
    ] {
        let refused = ann.call(method, &path, Some(body)).await;
        assert_eq!(
            refused.status,
            StatusCode::FORBIDDEN,
            "{path} {}",
            refused.text
        );
        assert_eq!(error(&refused)["code"], "confirm_first", "{path}");
        assert_eq!(
            error(&refused)["details"]["path"],
            format!("/account/confirm?request=w.{page}.acme"),
            "{path}"
        );
    }

    // After the confirmation the change succeeds on the same page.
    let fields = [("request", "account.passkeys"), ("password", PASSWORD)];
    let done = ann
        .fill("/account/confirm?request=account.passkeys", &fields)
        .await;
    assert_eq!(done.location(), "/account/passkeys");
    assert_eq!(ann.get("/account/passkeys").await.status, StatusCode::OK);
    let made = ann
        .call(
            Method::POST,
            "/workspaces/acme/api-keys",
            Some(json!({"name": "Laptop"})),
        )
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}
