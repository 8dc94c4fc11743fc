//! The target of a sign-in, and the notice about the session before
//! (AUTH-S8; REVIEW-UX-BUG-1 and REVIEW-UX-BUG-13, REVIEW-UX-FRICTION-1).

use http::StatusCode;
use time::Duration;

use crate::{
    second_factor,
    test_service::{Browser, PASSWORD, TestService},
};

const NEW_PASSWORD: &str = "violet gravel teapot nineteen";
const PAGE: &str = "/w/acme/calls?tool=listPorts&outcome=error";

/// The sign-in page, as the console opens it.
fn from(address: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("from", address)
        .finish();
    format!("/login?{query}")
}

async fn workspace(person: &Browser<'_>) {
    let body = serde_json::json!({"name": "Acme", "slug": "acme"});
    let made = person
        .call(http::Method::POST, "/workspaces", Some(body))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

/// Fills in the sign-in page at `path`, and returns the location of the redirect.
async fn sign_in_at(browser: &Browser<'_>, path: &str) -> String {
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let (form_token, request) = (page.field("form_token"), page.field("request"));
    let done = browser
        .post(
            "/login",
            &[
                ("form_token", &form_token),
                ("request", &request),
                ("email", "ann@acme.example"),
                ("password", PASSWORD),
            ],
        )
        .await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    done.location().to_owned()
}

#[tokio::test]
async fn bug_1_a_deep_link_survives_signing_in_with_a_password_and_with_a_code() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    assert_eq!(ann.get(&from(PAGE)).await.location(), PAGE, "signed in");
    assert_eq!(sign_in_at(&service.browser(), &from(PAGE)).await, PAGE);
    assert_eq!(
        sign_in_at(&service.browser(), &from("/w/acme/audit")).await,
        "/w/acme/audit"
    );

    let (app, _) = second_factor::enrol(&service, &ann).await;
    let other = service.browser();
    let page = other.get(&from(PAGE)).await;
    let asked = other
        .post(
            "/login",
            &[
                ("form_token", &page.field("form_token")),
                ("request", &page.field("request")),
                ("email", "ann@acme.example"),
                ("password", PASSWORD),
            ],
        )
        .await;
    let done = other
        .post(
            "/login/code",
            &[
                ("form_token", &asked.field("form_token")),
                ("request", &asked.field("request")),
                ("ticket", &asked.field("ticket")),
                ("code", &app.code(&service)),
            ],
        )
        .await;
    assert_eq!(done.location(), PAGE);
}

#[tokio::test]
async fn bug_1_the_way_back_is_an_address_of_the_console_and_of_nobody_else() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    for foreign in [
        "//evil.example",
        "https://evil.example/w/acme",
        "/w//evil.example",
        "/w/acme/../../logout",
        "/\\evil.example",
        "/oauth/consent/req_0",
        "javascript:alert(1)",
        "/w/acme?\r\nSet-Cookie: a=b",
    ] {
        let guest = service.browser();
        // The sign-in form, as a browser sees it that signed in before; the welcome page has its
        // own test.
        assert_eq!(sign_in_at(&guest, &from(foreign)).await, "/", "{foreign}");
    }
    // A form's `request` word cannot name another address either.
    for word in ["at.Ly9ldmlsLmV4YW1wbGU", "at.", PAGE, "//evil.example"] {
        let guest = service.browser();
        let form_token = guest.get("/login").await.field("form_token");
        let refused = guest
            .post(
                "/login",
                &[
                    ("form_token", &form_token),
                    ("request", word),
                    ("email", "ann@acme.example"),
                    ("password", PASSWORD),
                ],
            )
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{word}");
    }
}

#[tokio::test]
async fn bug_1_a_deep_link_survives_sign_up_and_a_new_password() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    // The links of the sign-in page carry it.
    let guest = service.browser();
    let page = guest.get(&from("/w/acme/audit")).await;
    let word = page.field("request");
    for path in ["/signup", "/reset", "/login/company"] {
        let link = format!("href=\"{path}?request={word}\"");
        assert!(page.text.contains(&link), "{link} in {}", page.text);
    }

    let reset = format!("/reset?request={word}");
    let fields = [("request", word.as_str()), ("email", "ann@acme.example")];
    guest.fill(&reset, &fields).await;
    let mail = service.newest_mail("ann@acme.example").await;
    let at = mail.body.find("/reset/choose?").unwrap();
    let link = mail.body[at..].split_whitespace().next().unwrap();
    let page = guest.get(link).await;
    let done = guest
        .post(
            "/reset/choose",
            &[
                ("form_token", &page.field("form_token")),
                ("request", &page.field("request")),
                ("token", &page.field("token")),
                ("password", NEW_PASSWORD),
            ],
        )
        .await;
    let login = format!("href=\"/login?request={word}\"");
    assert!(done.text.contains(&login), "{}", done.text);

    // A new person has no workspace yet. A pending connection of an account must still be reached
    // (a bug lost it here).
    for (word, lands) in [(word.as_str(), "/"), ("account.apps", "/account/apps")] {
        let bob = service.browser();
        let email = format!("bob{}@acme.example", lands.len());
        let fields = [
            ("request", word),
            ("name", "Bob Jones"),
            ("email", email.as_str()),
            ("password", PASSWORD),
        ];
        bob.fill(&format!("/signup?request={word}"), &fields).await;
        let verified = bob.verify(&service.code_for(&email).await).await;
        assert_eq!(verified.location(), lands, "{}", verified.text);
    }
}

#[tokio::test]
async fn bug_13_a_session_that_ended_is_named_as_the_reason() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let notice = "You were signed out. Sign in to continue.";
    assert!(!service.browser().get("/login").await.text.contains(notice));
    service.wait(Duration::days(15));
    let page = ann.get(&from("/w/acme/audit")).await;
    assert!(page.text.contains(notice), "{}", page.text);
    // The account's pages show it too.
    let sent = ann.get("/account/sessions").await;
    assert!(ann.get(sent.location()).await.text.contains(notice));
    ann.sign_in("ann@acme.example", PASSWORD).await;
    let out = ann.post("/logout", &[]).await;
    let page = ann.get(out.location()).await;
    assert!(page.text.contains("You are signed out."), "{}", page.text);
    assert!(!page.text.contains(notice), "{}", page.text);
}

#[tokio::test]
async fn friction_1_a_browser_that_was_never_here_is_asked_whether_it_has_an_account() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    let guest = service.browser();
    assert_eq!(guest.get(&from("/")).await.location(), "/welcome");
    let page = guest.get("/welcome").await;
    assert!(
        page.text.contains("href=\"/signup\"") && page.text.contains("href=\"/login\""),
        "{}",
        page.text
    );
    // The browser visited the page, but has no sign-in.
    assert_eq!(guest.get(&from("/")).await.location(), "/welcome");
    // A request for a page implies an account.
    assert_eq!(
        guest.get(&from("/w/acme/audit")).await.status,
        StatusCode::OK
    );
    guest.sign_in("ann@acme.example", PASSWORD).await;
    assert_eq!(guest.get("/welcome").await.location(), "/");
    guest.post("/logout", &[]).await;
    assert_eq!(guest.get(&from("/")).await.status, StatusCode::OK);
    assert!(!guest.get("/login").await.text.contains("Welcome back"));
}
