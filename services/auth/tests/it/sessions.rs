//! Browser sessions (AUTH-S1 to AUTH-S4, AUTH-S11; CASE-39, CASE-40, CASE-164).

use axum::body::Body;
use http::{Request, StatusCode, header};
use time::Duration;

use crate::test_service::{PASSWORD, TestService};

#[tokio::test]
async fn case_39_the_session_id_is_new_at_sign_in_and_the_old_one_is_dead() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let first = ann.cookie("__Host-sid").unwrap();
    assert_eq!(
        ann.sign_in("ann@acme.example", PASSWORD).await.status,
        StatusCode::SEE_OTHER
    );
    let second = ann.cookie("__Host-sid").unwrap();
    assert_ne!(first, second);
    let thief = service.browser();
    thief.set_cookie("__Host-sid", &first);
    assert!(!thief.is_signed_in().await);
    assert!(ann.is_signed_in().await);

    // A planted id never becomes a session (fixation).
    let victim = service.browser();
    let planted = format!("sid_{}", "A".repeat(43));
    victim.set_cookie("__Host-sid", &planted);
    victim.sign_in("ann@acme.example", PASSWORD).await;
    assert_ne!(victim.cookie("__Host-sid").unwrap(), planted);
    thief.set_cookie("__Host-sid", &planted);
    assert!(!thief.is_signed_in().await);
}

#[tokio::test]
async fn case_40_a_copied_cookie_is_worth_nothing_after_sign_out() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let copied = ann.cookie("__Host-sid").unwrap();
    assert_eq!(
        ann.get("/logout").await.status,
        StatusCode::METHOD_NOT_ALLOWED,
        "a link signs nobody out"
    );
    let answer = ann.post("/logout", &[]).await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/login?done=signed-out")
    );
    assert_eq!(answer.headers["clear-site-data"], "\"cookies\"");
    assert!(ann.cookie("__Host-sid").is_none());
    let thief = service.browser();
    thief.set_cookie("__Host-sid", &copied);
    assert!(!thief.is_signed_in().await);
}

#[tokio::test]
async fn s1_the_cookie_cannot_be_read_by_script_or_sent_to_other_hosts() {
    let service = TestService::open().await;
    let browser = service.browser();
    browser.sign_up("ann@acme.example", PASSWORD).await;
    let answer = browser
        .verify(&service.code_for("ann@acme.example").await)
        .await;
    let cookies: Vec<&str> = answer
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|value| value.to_str().unwrap())
        .collect();
    let cookie = cookies
        .iter()
        .find(|cookie| cookie.starts_with("__Host-sid=sid_"))
        .unwrap();
    for attribute in ["; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"));
}

#[tokio::test]
async fn s2_a_session_ends_after_14_idle_days_and_after_30_days_in_any_case() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let idle = service.browser();
    idle.sign_in("ann@acme.example", PASSWORD).await;
    service.wait(Duration::days(13));
    assert!(ann.is_signed_in().await);
    service.wait(Duration::days(1));
    assert!(!idle.is_signed_in().await, "14 days without a request");
    assert!(ann.is_signed_in().await, "seen yesterday");
    service.wait(Duration::days(13));
    assert!(ann.is_signed_in().await, "27 days, always in use");
    service.wait(Duration::days(3));
    assert!(!ann.is_signed_in().await, "30 days");
}

#[tokio::test]
async fn case_164_a_bearer_token_opens_nothing_in_the_console() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let session = ann.cookie("__Host-sid").unwrap();
    let request =
        Request::get("/api/v1/me").header(header::AUTHORIZATION, format!("Bearer {session}"));
    let answer = service
        .browser()
        .send(request.body(Body::empty()).unwrap())
        .await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.json()["error"]["code"], "invalid_token");
}

#[tokio::test]
async fn a_signed_in_browser_is_not_asked_again_unless_it_wants_to_switch() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let answer = ann.get("/login").await;
    assert_eq!(
        (answer.status, answer.location()),
        (StatusCode::SEE_OTHER, "/")
    );
    let answer = ann.get("/login?again=1").await;
    assert!(
        answer
            .text
            .contains("You are signed in as ann@acme.example")
    );
}
