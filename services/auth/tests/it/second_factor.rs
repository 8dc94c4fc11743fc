//! Authenticator apps and recovery codes (AUTH-L11, AUTH-L12, AUTH-S3, AUTH-S4; CASE-153, CASE-155,
//! CASE-157).

use http::StatusCode;
use portolan_keys::{Secret, TotpSecret};
use portolan_site::breached::BreachedPasswords;
use time::Duration;

use crate::{
    races,
    test_service::{Answer, Browser, PASSWORD, TestService},
};

const PAGE: &str = "/account/two-factor";

/// An authenticator app.
pub(crate) struct App(TotpSecret);

impl App {
    /// Reads the key that the page shows to type.
    fn read(page: &str) -> Self {
        let shown = page
            .split("<p class=\"mono\">")
            .nth(1)
            .unwrap()
            .split('<')
            .next()
            .unwrap();
        // REVIEW-UX-3b 17: in groups, and whole for the button that copies.
        assert!(shown.split(' ').all(|group| group.len() <= 4), "{shown}");
        let text = shown.replace(' ', "");
        assert!(page.contains(&format!("data-copy=\"{text}\"")), "{page}");
        let mut bits = String::new();
        for letter in text.chars() {
            let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap();
            bits.push_str(&format!("{value:05b}"));
        }
        let bytes = bits
            .as_bytes()
            .chunks_exact(8)
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap());
        Self(TotpSecret::from_bytes(Secret::new(bytes.collect())))
    }

    pub(crate) fn code(&self, service: &TestService) -> String {
        self.0.code_at(service.clock.now())
    }
}

/// Activates an app. Returns the app and the recovery codes.
pub(crate) async fn enrol(service: &TestService, person: &Browser<'_>) -> (App, Vec<String>) {
    person.fill(PAGE, &[("what", "begin")]).await;
    let page = person.get(PAGE).await.text;
    // AUTH-L11: the QR code has the same contents as the key and the link.
    assert!(
        page.contains("<svg class=\"qr\"") && page.contains("h1v1h-1z"),
        "{page}"
    );
    let app = App::read(&page);
    let done = person
        .fill(PAGE, &[("what", "confirm"), ("code", &app.code(service))])
        .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let codes = done
        .text
        .split("<span class=\"mono\">")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(codes.len(), 10, "AUTH-L12");
    service.wait(Duration::seconds(60));
    (app, codes)
}

/// Posts a code on the page after the password.
async fn send_code(browser: &Browser<'_>, page: &Answer, code: &str) -> Answer {
    let fields = [
        ("form_token", page.field("form_token")),
        ("ticket", page.field("ticket")),
        ("code", code.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    browser.post("/login/code", &fields).await
}

#[tokio::test]
async fn l11_a_password_alone_does_not_sign_in_and_a_code_is_good_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let other = service.browser();
    other.sign_in("ann@acme.example", PASSWORD).await;
    let (app, _) = enrol(&service, &ann).await;
    assert!(ann.is_signed_in().await);
    assert!(
        !other.is_signed_in().await,
        "AUTH-S4: other browsers are out"
    );
    assert_eq!(
        service.newest_mail("ann@acme.example").await.subject,
        "Two-step verification was turned on",
        "AUTH-L16"
    );
    let dead = other.cookie("__Host-sid");
    let page = other.sign_in("ann@acme.example", PASSWORD).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        other.cookie("__Host-sid") == dead && !other.is_signed_in().await,
        "AUTH-S3: nothing is signed in between the steps"
    );
    for wrong in ["000000", "", "not a code"] {
        let refused = send_code(&other, &page, wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let code = app.code(&service);
    let done = send_code(&other, &page, &code).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert!(other.is_signed_in().await);
    // CASE-155: twice.
    let third = service.browser();
    let page = third.sign_in("ann@acme.example", PASSWORD).await;
    assert_eq!(
        send_code(&third, &page, &code).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    // The ticket is valid in its browser only, and for five minutes.
    let thief = service.browser();
    let token = thief.get("/login").await.field("form_token");
    service.wait(Duration::seconds(30));
    let stolen = [
        ("form_token", token.as_str()),
        ("ticket", &page.field("ticket")),
        ("code", &app.code(&service)),
    ];
    let answer = thief.post("/login/code", &stolen).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/login")
    );
    assert!(!thief.is_signed_in().await);
    service.wait(Duration::minutes(6));
    let late = send_code(&third, &page, &app.code(&service)).await;
    assert_eq!(late.location(), "/login");
}

#[tokio::test]
async fn case_155_of_many_uses_of_one_code_at_once_one_signs_in() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (app, _) = enrol(&service, &ann).await;
    // Another node.
    let second = service.knowing(BreachedPasswords::default());
    for round in races::rounds("case_155_of_many_uses_of_one_code_at_once_one_signs_in") {
        service.wait(Duration::minutes(6));
        let nodes = [&service, &second];
        let browsers: Vec<_> = (0..4).map(|at| nodes[at % 2].browser()).collect();
        let mut pages = Vec::new();
        for browser in &browsers {
            pages.push(browser.sign_in("ann@acme.example", PASSWORD).await);
        }
        let code = app.code(&service);
        let tries = browsers
            .iter()
            .zip(&pages)
            .map(|(browser, page)| send_code(browser, page, &code));
        let won = futures_util::future::join_all(tries)
            .await
            .iter()
            .filter(|answer| answer.status == StatusCode::SEE_OTHER)
            .count();
        assert_eq!(won, 1, "round {round}");
    }
}

#[tokio::test]
async fn l11_five_tries_in_five_minutes_whatever_browser_they_come_from() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (app, _) = enrol(&service, &ann).await;
    for n in 0..6 {
        let browser = service.browser();
        let page = browser.sign_in("ann@acme.example", PASSWORD).await;
        let status = send_code(&browser, &page, "000000").await.status;
        let expected = if n < 5 {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::TOO_MANY_REQUESTS
        };
        assert_eq!(status, expected, "{n}");
    }
    service.wait(Duration::minutes(5));
    let browser = service.browser();
    let page = browser.sign_in("ann@acme.example", PASSWORD).await;
    let done = send_code(&browser, &page, &app.code(&service)).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "nobody is locked out");
}

#[tokio::test]
async fn l12_a_recovery_code_opens_once_is_told_and_a_new_set_replaces_the_old_one() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (_, codes) = enrol(&service, &ann).await;
    let sign_in = async |code: &str| {
        let browser = service.browser();
        let page = browser.sign_in("ann@acme.example", PASSWORD).await;
        send_code(&browser, &page, code).await.status
    };
    let typed = codes[0].to_lowercase().replace('-', " ");
    assert_eq!(sign_in(&typed).await, StatusCode::SEE_OTHER);
    let told = service.newest_mail("ann@acme.example").await;
    assert_eq!(
        told.subject,
        "A recovery code was used for your Portolan account"
    );
    assert!(told.body.contains("You have 9 left"));
    assert_eq!(sign_in(&typed).await, StatusCode::UNPROCESSABLE_ENTITY);
    let bob = service.person("bob@acme.example").await;
    let (_, theirs) = enrol(&service, &bob).await;
    assert_eq!(
        sign_in(&theirs[0]).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "a code of one person is none of another"
    );
    service.wait(Duration::minutes(5));
    ann.sign_in("ann@acme.example", PASSWORD).await;
    let fresh = service.browser();
    let page = fresh.sign_in("ann@acme.example", PASSWORD).await;
    send_code(&fresh, &page, &codes[1]).await;
    let made = fresh.fill(PAGE, &[("what", "codes")]).await;
    assert!(made.text.contains("Save your recovery codes"));
    assert_eq!(
        sign_in(&codes[2]).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "the old set is dead"
    );
}

#[tokio::test]
async fn l12_a_recovery_code_outlives_a_change_of_the_master_secret_and_is_still_good_once() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (app, codes) = enrol(&service, &ann).await;
    let service = service.with_another_master_secret();
    for (code, expected) in [
        (codes[0].as_str(), StatusCode::SEE_OTHER),
        (codes[0].as_str(), StatusCode::UNPROCESSABLE_ENTITY),
        (app.code(&service).as_str(), StatusCode::SEE_OTHER),
    ] {
        let browser = service.browser();
        let page = browser.sign_in("ann@acme.example", PASSWORD).await;
        assert_eq!(send_code(&browser, &page, code).await.status, expected);
    }
}

#[tokio::test]
async fn case_153_a_new_password_by_mail_does_not_skip_the_second_factor() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (app, _) = enrol(&service, &ann).await;
    let browser = service.browser();
    browser
        .fill("/reset", &[("email", "ann@acme.example")])
        .await;
    let body = service.newest_mail("ann@acme.example").await.body;
    let at = body.find("/reset/choose").unwrap();
    let link = body[at..].split_whitespace().next().unwrap();
    let page = browser.get(link).await;
    let new = "violet gravel teapot nineteen";
    let fields = [
        ("form_token", page.field("form_token")),
        ("token", page.field("token")),
        ("password", new.to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert_eq!(
        browser.post("/reset/choose", &fields).await.status,
        StatusCode::OK
    );
    assert!(!ann.is_signed_in().await, "sessions are gone");
    let page = browser.sign_in("ann@acme.example", new).await;
    assert!(!browser.is_signed_in().await, "the code is asked for");
    let done = send_code(&browser, &page, &app.code(&service)).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn case_157_a_proof_includes_the_second_factor_and_removing_it_needs_one() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let (app, _) = enrol(&service, &ann).await;
    service.wait(Duration::minutes(11));
    let path = "/account/confirm?request=account.two-factor&for=required";
    // REVIEW-UX-BUG-28: viewing the status needs no recent sign-in; the page leads to the
    // confirmation.
    let seen = ann.get(PAGE).await;
    assert!(
        seen.text
            .contains(&format!("href=\"{}\"", path.replace('&', "&#38;"))),
        "{}",
        seen.text
    );
    assert!(!seen.text.contains("value=\"remove\""), "{}", seen.text);
    let token = ann.get(path).await.field("form_token");
    let removal = [("form_token", token.as_str()), ("what", "remove")];
    assert_eq!(ann.post(PAGE, &removal).await.location(), path);
    let confirm = async |code: &str| {
        let fields = [
            ("request", "account.two-factor"),
            ("password", PASSWORD),
            ("code", code),
        ];
        ann.fill(path, &fields).await
    };
    assert_eq!(
        confirm("").await.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "the password alone is no proof any more"
    );
    assert_eq!(confirm(&app.code(&service)).await.location(), PAGE);
    // REVIEW-UX-BUG-29: one click is not enough.
    let asked = ann.get(PAGE).await.text;
    let button = asked.find("value=\"remove\"").unwrap();
    assert!(asked[..button].contains("<details class=\"confirm\">"));
    ann.fill(PAGE, &[("what", "remove")]).await;
    assert_eq!(
        service.newest_mail("ann@acme.example").await.subject,
        "Two-step verification was turned off"
    );
    let fresh = service.browser();
    fresh.sign_in("ann@acme.example", PASSWORD).await;
    assert!(fresh.is_signed_in().await);
}

#[tokio::test]
async fn l11_an_app_counts_only_after_one_right_code() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    ann.fill(PAGE, &[("what", "begin")]).await;
    let wrong = ann
        .fill(PAGE, &[("what", "confirm"), ("code", "000000")])
        .await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let other = service.browser();
    other.sign_in("ann@acme.example", PASSWORD).await;
    assert!(other.is_signed_in().await, "nothing is asked for yet");
}
