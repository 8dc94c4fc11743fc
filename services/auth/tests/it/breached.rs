//! AUTH-L4, CASE-148: stolen passwords are not accepted.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, extract::Path, http::HeaderMap, routing::get};
use http::StatusCode;
use portolan_net::egress::{AllowedDestination, EgressPolicy};
use portolan_site::breached::BreachedPasswords;
use tokio::net::TcpListener;

use crate::test_service::TestService;

/// A password that the strength check accepts.
const STOLEN: &str = "harpsichord ninepin walrus";
/// Its SHA-1, as the service returns it; a request has the first five digits.
const DIGEST: &str = "B699B3F282871B910128DBF563125A19DB0D3B77";

/// A service like Have I Been Pwned: knows one password, pads, and counts the requests.
async fn service(asked: Arc<AtomicUsize>, is_well: bool) -> String {
    let answer = move |Path(prefix): Path<String>, headers: HeaderMap| async move {
        asked.fetch_add(1, Ordering::SeqCst);
        assert_eq!(prefix.len(), 5, "it learns five digits and no more");
        assert_eq!(headers["add-padding"], "true");
        if !is_well {
            return (StatusCode::INTERNAL_SERVER_ERROR, String::new());
        }
        let known = if DIGEST.starts_with(&prefix) {
            format!("{}:7\r\n", &DIGEST[5..])
        } else {
            String::new()
        };
        (
            StatusCode::OK,
            format!("0018A45C4D1DEF81644B54AB7F969B88D65:0\r\n{known}"),
        )
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        axum::serve(
            listener,
            Router::new().route("/range/{prefix}", get(answer)),
        )
        .await
        .unwrap();
    });
    address.to_string()
}

async fn open(list: &str, service: &str) -> TestService {
    let (host, port) = service.rsplit_once(':').unwrap();
    let policy = EgressPolicy {
        allow: vec![AllowedDestination::address(
            host.parse().unwrap(),
            port.parse().unwrap(),
        )],
        ..EgressPolicy::default()
    };
    let ranges = format!("http://{service}/range/").parse().unwrap();
    TestService::open_knowing(policy, BreachedPasswords::new(list, Some(ranges))).await
}

#[tokio::test]
async fn case_148_a_stolen_password_is_refused_by_the_service_and_without_it_by_the_list() {
    let asked = Arc::new(AtomicUsize::new(0));
    let well = open("", &service(Arc::clone(&asked), true).await).await;
    let refused = well.browser().sign_up("ann@acme.example", STOLEN).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("stolen"), "{}", refused.text);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // A short one is refused without a request.
    well.browser().sign_up("ann@acme.example", "short").await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let taken = well
        .browser()
        .sign_up("ann@acme.example", "anchovy tram lantern sixty")
        .await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER, "{}", taken.text);

    let down = open(STOLEN, &service(Arc::clone(&asked), false).await).await;
    let refused = down.browser().sign_up("ann@acme.example", STOLEN).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let taken = down
        .browser()
        .sign_up("ann@acme.example", "anchovy tram lantern sixty")
        .await;
    assert_eq!(
        taken.status,
        StatusCode::SEE_OTHER,
        "a service that is down stops nobody: {}",
        taken.text
    );
}

#[tokio::test]
async fn l4_who_signs_in_with_a_stolen_password_comes_in_and_is_asked_to_change_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let before = open("", &service(Arc::clone(&asked), false).await).await;
    before.person_with("ann@acme.example", STOLEN).await;
    // The password was stolen meanwhile.
    let after = before.knowing(BreachedPasswords::new(STOLEN, None));
    let browser = after.browser();
    let done = browser.sign_in("ann@acme.example", STOLEN).await;
    assert_eq!(done.location(), "/account/password?why=stolen");
    assert!(browser.is_signed_in().await, "it still signs in");
    let page = browser.get(done.location()).await;
    assert!(page.text.contains("stolen passwords"), "{}", page.text);
    assert!(page.text.contains("href=\"/\">Not now"), "{}", page.text);
    let changed = browser
        .fill(
            done.location(),
            &[
                ("why", "stolen"),
                ("current", STOLEN),
                ("password", "violet gravel teapot nineteen"),
            ],
        )
        .await;
    assert_eq!(changed.location(), "/", "where she wanted to go");
    let browser = after.browser();
    let done = browser
        .sign_in("ann@acme.example", "violet gravel teapot nineteen")
        .await;
    assert_eq!(done.location(), "/");
}
