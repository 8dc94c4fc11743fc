//! Sign-up and verification (AUTH-L3, AUTH-L5, AUTH-L7; CASE-147 to CASE-151).

use http::{StatusCode, header};
use time::Duration;

use crate::test_service::{PASSWORD, TestService};

#[tokio::test]
async fn a_newcomer_signs_up_confirms_the_code_and_is_signed_in() {
    let service = TestService::open().await;
    let ann = service.browser();
    let answer = ann.sign_up("ann@acme.example", PASSWORD).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/verify"),
        "{}",
        answer.text
    );
    assert!(
        !ann.is_signed_in().await,
        "an unverified account is nobody (L7)"
    );

    let answer = ann
        .verify(&service.code_for("ann@acme.example").await)
        .await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/")
    );
    let me = ann.call(http::Method::GET, "/me", None).await.json();
    assert_eq!(me["user"]["email"], "ann@acme.example");
    assert_eq!(me["user"]["display_name"], "Ann Smith");
    assert_eq!(me["workspaces"], serde_json::json!([]));
    assert_eq!(me["dev_mailbox_url"], "https://portolan.test/dev/mail");
}

#[tokio::test]
async fn l3_a_form_with_faults_names_each_of_them_and_keeps_what_was_typed() {
    let service = TestService::open().await;
    let ann = service.browser();
    for (password, expected) in [
        ("Password12345!", "easy to guess"),
        ("short", "at least 12 characters"),
        (&"x".repeat(129), "at most 128 characters"),
        ("ann.smith@acme.example", "easy to guess"),
    ] {
        let answer = ann
            .fill(
                "/signup",
                &[
                    ("name", " "),
                    ("email", "ann.smith@acme.example"),
                    ("password", password),
                ],
            )
            .await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            answer.text.contains(expected),
            "{password}: {}",
            answer.text
        );
        assert!(answer.text.contains("Enter your name"));
        assert!(
            answer.text.contains("value=\"ann.smith@acme.example\""),
            "the address is kept"
        );
        let rest = answer.text.replace("value=\"ann.smith@acme.example\"", "");
        assert!(!rest.contains(password), "the password is not: {rest}");
    }
    assert_eq!(service.mail_count("ann.smith@acme.example").await, 0);
}

#[tokio::test]
async fn case_149_signing_up_with_a_known_address_looks_the_same_and_gets_another_mail() {
    let service = TestService::open().await;
    service.person("ann@acme.example").await;
    let (known, unknown) = (service.browser(), service.browser());
    let first = known.sign_up("Ann@ACME.example", PASSWORD).await;
    let second = unknown.sign_up("new@acme.example", PASSWORD).await;
    assert_eq!(
        (first.status, first.location()),
        (second.status, second.location())
    );
    let first = known.get("/verify").await;
    let second = unknown.get("/verify").await;
    let blank = |answer: &crate::test_service::Answer, email: &str| {
        answer
            .text
            .replace(email, "")
            .replace(&answer.field("form_token"), "")
    };
    assert_eq!(
        blank(&first, "Ann@ACME.example"),
        blank(&second, "new@acme.example")
    );

    let mail = service.newest_mail("Ann@ACME.example").await;
    assert_eq!(mail.subject, "You already have a Portolan account");
    assert!(
        mail.body.contains("https://portolan.test/login"),
        "the link has the configured host (S10)"
    );
    // Guessing has the same small chance for a known address, and gets the same response.
    for (browser, email) in [(&known, "Ann@ACME.example"), (&unknown, "new@acme.example")] {
        let answer = browser.verify("00000000").await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{email}");
        assert!(answer.text.contains("You have 4 more attempts"), "{email}");
    }
}

#[tokio::test]
async fn case_150_opening_the_link_of_the_mail_uses_nothing_up() {
    let service = TestService::open().await;
    let ann = service.browser();
    ann.sign_up("ann@acme.example", PASSWORD).await;
    let code = service.code_for("ann@acme.example").await;
    for _ in 0..7 {
        let answer = ann.get(&format!("/verify?code={code}")).await;
        assert!(
            answer.text.contains(&format!("value=\"{code}\"")),
            "prefilled"
        );
    }
    // A scanner has no cookie: it sees no address and has no effect.
    let scanner = service.browser().get(&format!("/verify?code={code}")).await;
    assert_eq!(scanner.status, StatusCode::NOT_FOUND);
    assert!(!scanner.text.contains("ann@"));
    assert_eq!(ann.verify(&code).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn case_151_the_sixth_try_is_dead_even_with_the_right_code() {
    let service = TestService::open().await;
    let ann = service.browser();
    ann.sign_up("ann@acme.example", PASSWORD).await;
    let code = service.code_for("ann@acme.example").await;
    let wrong = if code == "12345678" {
        "87654321"
    } else {
        "12345678"
    };
    for left in [
        "4 more attempts",
        "3 more attempts",
        "2 more attempts",
        "1 more attempt",
        "the last attempt",
    ] {
        let answer = ann.verify(wrong).await;
        assert!(answer.text.contains(left), "{left}: {}", answer.text);
    }
    let answer = ann.verify(&code).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text.contains("no longer works"));
    assert!(!ann.is_signed_in().await);

    service.wait(Duration::minutes(1));
    let token = ann.get("/verify").await.field("form_token");
    let answer = ann.post("/verify/resend", &[("form_token", &token)]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let answer = ann
        .verify(&service.code_for("ann@acme.example").await)
        .await;
    assert_eq!(
        answer.status,
        StatusCode::SEE_OTHER,
        "a new code has new tries"
    );
}

#[tokio::test]
async fn l7_a_code_lives_ten_minutes_in_the_browser_that_asked_for_it() {
    let service = TestService::open().await;
    let ann = service.browser();
    ann.sign_up("ann@acme.example", PASSWORD).await;
    let code = service.code_for("ann@acme.example").await;

    let other = service.browser();
    other.sign_up("eve@acme.example", PASSWORD).await;
    let answer = other.verify(&code).await;
    assert_eq!(
        answer.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "another browser's code is a wrong one"
    );

    service.wait(Duration::minutes(10));
    let answer = ann.verify(&code).await;
    assert!(answer.text.contains("no longer works"), "{}", answer.text);
    assert!(!ann.is_signed_in().await);
}

#[tokio::test]
async fn l7_codes_are_sent_again_once_a_minute_and_five_times_in_all() {
    let service = TestService::open().await;
    let ann = service.browser();
    ann.sign_up("ann@acme.example", PASSWORD).await;
    let token = ann.get("/verify").await.field("form_token");
    let again = async || ann.post("/verify/resend", &[("form_token", &token)]).await;

    let early = again().await;
    assert_eq!(early.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(early.headers.contains_key(header::RETRY_AFTER));
    assert_eq!(service.mail_count("ann@acme.example").await, 1);
    for _ in 0..4 {
        service.wait(Duration::minutes(1));
        assert_eq!(again().await.status, StatusCode::OK);
    }
    service.wait(Duration::minutes(1));
    assert_eq!(again().await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(service.mail_count("ann@acme.example").await, 5);
}

#[tokio::test]
async fn case_160_whoever_confirms_an_address_first_has_it_and_the_other_sign_up_is_worth_nothing()
{
    let service = TestService::open().await;
    let attacker = service.browser();
    attacker
        .sign_up("bob@acme.example", "attacker chose these words")
        .await;
    let bob = service.browser();
    bob.sign_up("bob@acme.example", PASSWORD).await;
    let code = service.code_for("bob@acme.example").await;
    assert_eq!(
        attacker.verify(&code).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(bob.verify(&code).await.status, StatusCode::SEE_OTHER);

    let elsewhere = service.browser();
    assert_eq!(
        elsewhere
            .sign_in("bob@acme.example", "attacker chose these words")
            .await
            .status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        elsewhere.sign_in("bob@acme.example", PASSWORD).await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn l15_sign_ups_from_one_address_are_bounded() {
    let service = TestService::open().await;
    for n in 0..6 {
        let browser = service.browser_at("203.0.113.9");
        let answer = browser
            .sign_up(&format!("user{n}@acme.example"), PASSWORD)
            .await;
        let expected = if n < 5 {
            StatusCode::SEE_OTHER
        } else {
            StatusCode::TOO_MANY_REQUESTS
        };
        assert_eq!(answer.status, expected, "sign-up {n}");
    }
    let other = service
        .browser_at("203.0.113.10")
        .sign_up("user9@acme.example", PASSWORD)
        .await;
    assert_eq!(other.status, StatusCode::SEE_OTHER);
}
