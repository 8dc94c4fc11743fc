//! Tokens of `portolan login`: codes that a command redeems once (CONF-15).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Method, Request, StatusCode, header};
use portolan_keys::digest;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{Program, code},
    console::workspace,
    races,
    test_service::{Answer, Browser, TestService},
};

const VERIFIER: &str = "the-secret-of-the-command";

fn wanted() -> Value {
    let challenge = URL_SAFE_NO_PAD.encode(digest(VERIFIER.as_bytes()).as_bytes());
    json!({"name": "portolan on laptop", "scopes": ["registry:read"], "days": 30,
        "workspace": "acme", "code_challenge": challenge, "page": "/account/command?port=1"})
}

/// A code of a person.
async fn issued(person: &Browser<'_>) -> String {
    let answer = person
        .call(Method::POST, "/me/command-tokens", Some(wanted()))
        .await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()["code"].as_str().unwrap().to_owned()
}

/// Redeems a code as a program does: without a cookie, and from no page of the console.
async fn redeem(service: &TestService, code: &str, verifier: &str) -> Answer {
    redeem_at(service, "203.0.113.7", (code, verifier)).await
}

async fn redeem_at(service: &TestService, address: &str, (code, verifier): (&str, &str)) -> Answer {
    let body = json!({"code": code, "code_verifier": verifier});
    let request = Request::post("/account/command/token")
        .header(header::CONTENT_TYPE, "application/json")
        .header("sec-fetch-site", "cross-site")
        .body(body.to_string().into())
        .unwrap();
    service.browser_at(address).send(request).await
}

/// Rule: CONF-15
#[tokio::test]
async fn a_command_redeems_its_code_once_for_a_token() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let issued = issued(&ann).await;
    let foreign = redeem(&service, &issued, "another-secret").await;
    assert_eq!(foreign.status, StatusCode::BAD_REQUEST, "{}", foreign.text);
    assert_eq!(code(&foreign), "code_invalid");

    let answer = redeem(&service, &issued, VERIFIER).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let made = answer.json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("ptlp_"), "{made}");
    let program = Program::new(&service, secret);
    let facts = program.call(Method::GET, "/token", None).await.json();
    assert_eq!(facts["name"], "portolan on laptop", "{facts}");
    assert_eq!(facts["scopes"], json!(["registry:read"]), "{facts}");
    assert_eq!(facts["workspaces"][0]["slug"], "acme", "{facts}");
    service.wait(Duration::days(29));
    let later = program.call(Method::GET, "/token", None).await;
    assert_eq!(later.status, StatusCode::OK, "{}", later.text);

    let again = redeem(&service, &issued, VERIFIER).await;
    assert_eq!(code(&again), "code_invalid", "{}", again.text);
    service.wait(Duration::days(2));
    let ended = program.call(Method::GET, "/token", None).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED, "{}", ended.text);
}

/// Rule: CONF-15
#[tokio::test]
async fn a_late_or_revoked_code_gives_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let late = issued(&ann).await;
    service.wait(Duration::seconds(121));
    let answer = redeem(&service, &late, VERIFIER).await;
    assert_eq!(code(&answer), "code_invalid", "{}", answer.text);
    let listed = ann.call(Method::GET, "/me/access-tokens", None).await;
    assert_eq!(listed.json()["items"], json!([]), "{}", listed.text);

    let revoked = issued(&ann).await;
    let listed = ann.call(Method::GET, "/me/access-tokens", None).await;
    let id = listed.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/me/access-tokens/{id}");
    ann.call(Method::DELETE, &path, None).await;
    let answer = redeem(&service, &revoked, VERIFIER).await;
    assert_eq!(code(&answer), "code_invalid", "{}", answer.text);

    // A proof leads back to the page with its query.
    service.wait(Duration::minutes(11));
    let answer = ann
        .call(Method::POST, "/me/command-tokens", Some(wanted()))
        .await;
    assert_eq!(code(&answer), "confirm_first", "{}", answer.text);
    let path = answer.json()["error"]["details"]["path"].to_string();
    let address = URL_SAFE_NO_PAD.encode("/account/command?port=1");
    assert!(path.contains(&address), "{path}");
}

/// Rule: CONF-15
#[tokio::test]
async fn of_concurrent_redemptions_one_gets_the_token() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    for round in races::rounds("of_concurrent_redemptions_one_gets_the_token") {
        let issued = issued(&ann).await;
        // An address has a budget of its own.
        let address = format!("198.51.{}.{}", round / 200, round % 200 + 1);
        let pair = (issued.as_str(), VERIFIER);
        let answers = tokio::join!(
            redeem_at(&service, &address, pair),
            redeem_at(&service, &address, pair),
            redeem_at(&service, &address, pair),
        );
        let answers = [answers.0, answers.1, answers.2];
        let won: Vec<_> = answers
            .iter()
            .filter(|answer| answer.status == StatusCode::OK)
            .collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        let secret = won[0].json()["secret"].as_str().unwrap().to_owned();
        let program = Program::new(&service, &secret);
        let ended = program.call(Method::DELETE, "/token", None).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text);
    }
}
