//! From an AI client through sign-up or sign-in back to its consent page
//! (AUTH-A11, AUTH-N11, AUTH-S8; CASE-30).

use axum::body::Body;
use http::{Request, StatusCode, header};
use serde_json::json;
use time::Duration;

use crate::test_service::{Answer, Browser, PASSWORD, TestService};

const CALLBACK: &str = "http://127.0.0.1:3333/callback";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Registers a client, begins its authorization request, and returns the redirect.
pub(crate) async fn begin(browser: &Browser<'_>) -> Answer {
    let metadata = json!({ "client_name": "Harbour Pilot", "redirect_uris": [CALLBACK] });
    let register =
        Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
    let client = browser
        .send(register.body(Body::from(metadata.to_string())).unwrap())
        .await
        .json();
    // Without a resource the picker decides, so no workspace has to exist.
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("response_type", "code")
        .append_pair("client_id", client["client_id"].as_str().unwrap())
        .append_pair("redirect_uri", CALLBACK)
        .append_pair("code_challenge", CHALLENGE)
        .append_pair("code_challenge_method", "S256")
        .finish();
    browser.get(&format!("/oauth/authorize?{query}")).await
}

pub(crate) fn request_id(answer: &Answer) -> String {
    let location = answer.location();
    let at = location
        .find("req_")
        .unwrap_or_else(|| panic!("no request in {location}"));
    location[at..at + 36].to_owned()
}

#[tokio::test]
async fn n11_a_newcomer_from_a_client_signs_up_makes_a_workspace_and_comes_to_the_consent_page() {
    let service = TestService::open().await;
    let ann = service.browser();
    let answer = begin(&ann).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let id = request_id(&answer);
    let page = match answer.location() {
        path if path.starts_with("/login?") => ann.get(path).await,
        path => {
            let answer = ann.get(path).await;
            assert_eq!(
                answer.status,
                StatusCode::SEE_OTHER,
                "{path}: {}",
                answer.text
            );
            ann.get(answer.location()).await
        }
    };
    assert!(
        page.text.contains("<strong>Harbour Pilot</strong>"),
        "the page says who asks: {}",
        page.text
    );
    assert!(
        page.text
            .contains(&format!("href=\"/signup?request={id}\"")),
        "{}",
        page.text
    );

    let form = ann.get(&format!("/signup?request={id}")).await;
    let token = form.field("form_token");
    let fields = [
        ("form_token", token.as_str()),
        ("request", &id),
        ("name", "Ann"),
        ("email", "ann@acme.example"),
        ("password", PASSWORD),
    ];
    assert_eq!(ann.post("/signup", &fields).await.location(), "/verify");
    let answer = ann
        .verify(&service.code_for("ann@acme.example").await)
        .await;
    assert_eq!(answer.location(), format!("/workspaces/new?request={id}"));
    let token = ann.get(answer.location()).await.field("form_token");
    let answer = ann
        .post(
            "/workspaces/new",
            &[("form_token", &token), ("request", &id), ("name", "Acme")],
        )
        .await;
    assert_eq!(
        answer.location(),
        format!("/oauth/consent/{id}"),
        "{}",
        answer.text
    );
    let consent = ann.get(answer.location()).await;
    assert_eq!(consent.status, StatusCode::OK);
    assert!(consent.text.contains("Harbour Pilot"));
}

#[tokio::test]
async fn signing_in_goes_on_to_the_consent_page_of_the_request() {
    let service = TestService::open().await;
    let owner = service.person("ann@acme.example").await;
    owner
        .call(
            http::Method::POST,
            "/workspaces",
            Some(json!({ "name": "Acme", "slug": "acme" })),
        )
        .await;

    let ann = service.browser();
    let id = request_id(&begin(&ann).await);
    let token = ann
        .get(&format!("/login?request={id}"))
        .await
        .field("form_token");
    let wrong = [
        ("form_token", token.as_str()),
        ("request", &id),
        ("email", "ann@acme.example"),
        ("password", "wrong wrong wrong"),
    ];
    let answer = ann.post("/login", &wrong).await;
    assert_eq!(
        answer.field("request"),
        id,
        "the request survives a wrong password"
    );
    let right = [
        ("form_token", token.as_str()),
        ("request", &id),
        ("email", "ann@acme.example"),
        ("password", PASSWORD),
    ];
    assert_eq!(
        ann.post("/login", &right).await.location(),
        format!("/oauth/consent/{id}")
    );
    let answer = ann.get(&format!("/login?request={id}")).await;
    assert_eq!(
        answer.location(),
        format!("/oauth/consent/{id}"),
        "signed in already"
    );
    let answer = ann.get(&format!("/login?request={id}&again=1")).await;
    assert_eq!(answer.status, StatusCode::OK, "to switch the account");
}

#[tokio::test]
async fn case_30_a_request_of_another_browser_or_too_old_says_start_again_and_names_nobody() {
    let service = TestService::open().await;
    let attacker = service.browser();
    let id = request_id(&begin(&attacker).await);
    let victim = service.person("ann@acme.example").await;
    for path in ["/login", "/signup", "/workspaces/new"] {
        let answer = victim.get(&format!("{path}?request={id}&again=1")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(
            answer.text.contains("Start again in your app")
                && !answer.text.contains("Harbour Pilot"),
            "{path}"
        );
    }
    service.wait(Duration::minutes(61));
    let answer = attacker.get(&format!("/login?request={id}")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
}
