//! Conventions of the management API: problem details, idempotency keys, versions
//! (API-12 to API-14).

use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use portolan_model::id::AccessTokenId;
use portolan_storage::{
    Reason,
    accounts::idempotent_requests::{self, Claim},
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    console::workspace,
    races,
    test_service::{Answer, Browser, TestService},
};

const SERVERS: &str = "/workspaces/acme/servers";

async fn token(person: &Browser<'_>) -> String {
    let body =
        json!({"name": "Pipeline", "role": "developer", "scopes": ["registry:write"], "days": 3});
    let made = person
        .call(Method::POST, "/workspaces/acme/access-tokens", Some(body))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.json()["secret"].as_str().unwrap().to_owned()
}

/// A request with a token and one more header.
async fn send(
    service: &TestService,
    token: &str,
    (method, path): (Method, &str),
    (name, value): (&str, &str),
    body: Option<Value>,
) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(name, value);
    let request = match body {
        Some(body) => request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into()),
        None => request.body(Body::empty()),
    };
    service.browser().send(request.unwrap()).await
}

fn code(answer: &Answer) -> String {
    answer.json()["error"]["code"].as_str().unwrap().to_owned()
}

async fn with_key(service: &TestService, token: &str, key: &str, slug: &str) -> Answer {
    let body = json!({"name": slug, "slug": slug});
    let target = (Method::POST, SERVERS);
    send(service, token, target, ("idempotency-key", key), Some(body)).await
}

/// Rule: API-12.
#[tokio::test]
async fn refusals_are_problem_details() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let stranger = service.browser();
    let cross = Request::post("/api/v1/workspaces")
        .header("sec-fetch-site", "cross-site")
        .body(Body::empty())
        .unwrap();
    let refusals = [
        (
            stranger.call(Method::GET, "/me", None).await,
            401,
            "unauthenticated",
        ),
        (
            ann.call(Method::GET, "/workspaces/x", None).await,
            404,
            "not_found",
        ),
        (
            ann.call(Method::GET, "/nowhere", None).await,
            404,
            "not_found",
        ),
        (
            ann.call(Method::PUT, "/me", None).await,
            405,
            "method_not_allowed",
        ),
        (
            ann.call(Method::POST, "/workspaces", Some(json!({}))).await,
            422,
            "invalid_body",
        ),
        (
            ann.call(Method::POST, "/workspaces", None).await,
            415,
            "unsupported_media_type",
        ),
        (ann.send(cross).await, 403, "cross_site"),
    ];
    for (answer, status, name) in refusals {
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:portolan:problem:{name}"));
        assert_eq!(problem["error"]["code"], name);
        assert_eq!(problem["detail"], problem["error"]["message"]);
        assert_eq!(problem["title"], answer.status.canonical_reason().unwrap());
    }
}

/// Rule: API-13.
#[tokio::test]
async fn a_repeated_post_gets_the_first_answer() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (mine, other) = (token(&ann).await, token(&ann).await);
    let first = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text);
    let again = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(
        again.headers[header::CONTENT_TYPE],
        first.headers[header::CONTENT_TYPE]
    );
    let reused = with_key(&service, &mine, "k-1", "shop").await;
    assert_eq!(code(&reused), "idempotency_key_reused");
    let elsewhere = with_key(&service, &other, "k-1", "shop").await;
    assert_eq!(
        elsewhere.status,
        StatusCode::CREATED,
        "a key belongs to its token"
    );
    let refused = with_key(&service, &mine, "k-2", "sales").await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    let freed = with_key(&service, &mine, "k-2", "depot").await;
    assert_eq!(
        freed.status,
        StatusCode::CREATED,
        "it is free: {}",
        freed.text
    );
    for key in ["", "two words", "x".repeat(256).as_str()] {
        let refused = with_key(&service, &mine, key, "more").await;
        assert_eq!(code(&refused), "idempotency_key_invalid", "{key}");
    }
    service.wait(idempotent_requests::KEPT - Duration::seconds(1));
    let late = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!(late.text, first.text);
    service.wait(Duration::seconds(2));
    let anew = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!(
        anew.status,
        StatusCode::CONFLICT,
        "carried out again: {}",
        anew.text
    );
}

/// Rule: API-13.
#[tokio::test]
async fn of_concurrent_posts_with_a_key_one_is_carried_out() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mine = token(&ann).await;
    for round in races::rounds("of_concurrent_posts_with_a_key_one_is_carried_out") {
        // The budget of the token fills again.
        service.wait(Duration::seconds(2));
        let (key, slug) = (format!("k-{round}"), format!("server-{round}"));
        let one = || with_key(&service, &mine, &key, &slug);
        let (a, b, c, d) = tokio::join!(one(), one(), one(), one());
        let answers = [a, b, c, d];
        let done = answers
            .iter()
            .filter(|answer| answer.status == StatusCode::CREATED);
        assert!(done.count() >= 1);
        for answer in &answers {
            let is_done = answer.status == StatusCode::CREATED;
            assert!(
                is_done || code(answer) == "idempotency_in_flight",
                "{}",
                answer.text
            );
        }
        let listed = ann.call(Method::GET, SERVERS, None).await.json();
        let named = listed["items"].as_array().unwrap().iter();
        assert_eq!(
            named
                .filter(|server| server["slug"] == slug.as_str())
                .count(),
            1
        );
    }
}

/// Rule: API-13.
#[tokio::test]
async fn a_kept_answer_is_sealed() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mine = token(&ann).await;
    let done = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!(done.status, StatusCode::CREATED, "{}", done.text);
    let key = portolan_keys::digest(b"k-1");
    let shown = ann
        .call(Method::GET, "/workspaces/acme/access-tokens", None)
        .await;
    let id = shown.json()["items"][0]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let request = portolan_keys::digest(
        [
            b"/api/v1/workspaces/acme/servers\n".as_slice(),
            json!({"name": "sales", "slug": "sales"})
                .to_string()
                .as_bytes(),
        ]
        .concat()
        .as_slice(),
    );
    let now = service.clock.now();
    let claim = idempotent_requests::claim(&mut tx, (id, &key), &request, now)
        .await
        .unwrap();
    let Claim::Done(sealed) = claim else {
        panic!("{claim:?}");
    };
    assert!(!sealed.windows(5).any(|bytes| bytes == b"sales"));
}

/// Id of the only token.
async fn id_of(person: &Browser<'_>) -> AccessTokenId {
    let shown = person
        .call(Method::GET, "/workspaces/acme/access-tokens", None)
        .await;
    let id = &shown.json()["items"][0]["id"];
    id.as_str().unwrap().parse().unwrap()
}

/// Rule: API-13. A request that was held for lost does not answer for the one that has its key.
#[tokio::test]
async fn a_lost_claim_keeps_and_frees_nothing() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    token(&ann).await;
    let (key, request) = (portolan_keys::digest(b"k"), portolan_keys::digest(b"r"));
    let at = (id_of(&ann).await, &key);
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let first = service.clock.now();
    let claim = idempotent_requests::claim(&mut tx, at, &request, first).await;
    assert_eq!(claim.unwrap(), Claim::Taken);
    service.wait(idempotent_requests::LOST - Duration::seconds(1));
    let claim = idempotent_requests::claim(&mut tx, at, &request, service.clock.now()).await;
    assert_eq!(claim.unwrap(), Claim::Running);
    service.wait(Duration::seconds(2));
    let second = service.clock.now();
    let claim = idempotent_requests::claim(&mut tx, at, &request, second).await;
    assert_eq!(claim.unwrap(), Claim::Taken);
    let kept = idempotent_requests::keep(&mut tx, at, first, b"late").await;
    assert!(!kept.unwrap(), "its claim was taken");
    idempotent_requests::release(&mut tx, at, first)
        .await
        .unwrap();
    let claim = idempotent_requests::claim(&mut tx, at, &request, second).await;
    assert_eq!(claim.unwrap(), Claim::Running);
    let kept = idempotent_requests::keep(&mut tx, at, second, b"own").await;
    assert!(kept.unwrap());
    let claim = idempotent_requests::claim(&mut tx, at, &request, second).await;
    assert_eq!(claim.unwrap(), Claim::Done(b"own".to_vec()));
}

/// Rule: API-13. The bytes kept for a token are bounded; the refusal tells what to do.
#[tokio::test]
async fn a_token_that_keeps_too_much_is_refused_new_keys() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mine = token(&ann).await;
    let first = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text);
    let (id, now) = (id_of(&ann).await, service.clock.now());
    let request = portolan_keys::digest(b"r");
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    for n in 0..4_u8 {
        let key = portolan_keys::digest(&[n]);
        let claim = idempotent_requests::claim(&mut tx, (id, &key), &request, now).await;
        assert_eq!(claim.unwrap(), Claim::Taken);
        let answer = vec![n; 16 * 1024 * 1024];
        let kept = idempotent_requests::keep(&mut tx, (id, &key), now, &answer).await;
        assert!(kept.unwrap());
    }
    tx.commit().await.unwrap();
    let full = with_key(&service, &mine, "k-2", "depot").await;
    assert_eq!(full.status, StatusCode::TOO_MANY_REQUESTS, "{}", full.text);
    assert_eq!(code(&full), "idempotency_full");
    assert_eq!(full.headers[header::RETRY_AFTER], "3600");
    let again = with_key(&service, &mine, "k-1", "sales").await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    let body = json!({"name": "depot", "slug": "depot"});
    let target = (Method::POST, SERVERS);
    let plain = send(&service, &mine, target, ("accept", "*/*"), Some(body)).await;
    assert_eq!(plain.status, StatusCode::CREATED, "{}", plain.text);
    service.wait(idempotent_requests::KEPT + Duration::HOUR);
    let later = with_key(&service, &mine, "k-2", "later").await;
    assert_eq!(later.status, StatusCode::CREATED, "{}", later.text);
}

/// Rule: API-13. A sealed answer is bound to its token and key.
#[tokio::test]
async fn a_kept_answer_of_another_token_is_not_opened() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let first = token(&ann).await;
    let first_id = id_of(&ann).await;
    let done = with_key(&service, &first, "k-1", "sales").await;
    assert_eq!(done.status, StatusCode::CREATED, "{}", done.text);
    service.wait(Duration::seconds(1));
    let second = token(&ann).await;
    let second_id = id_of(&ann).await;
    assert_ne!(first_id, second_id, "the newest token is the first");
    let body = json!({"name": "sales", "slug": "sales"}).to_string();
    let said = format!("/api/v1{SERVERS}\n{body}");
    let (key, request) = (
        portolan_keys::digest(b"k-1"),
        portolan_keys::digest(said.as_bytes()),
    );
    let now = service.clock.now();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    let claim = idempotent_requests::claim(&mut tx, (first_id, &key), &request, now).await;
    let Claim::Done(sealed) = claim.unwrap() else {
        panic!("it was kept")
    };
    let at = (second_id, &key);
    let claim = idempotent_requests::claim(&mut tx, at, &request, now).await;
    assert_eq!(claim.unwrap(), Claim::Taken);
    let kept = idempotent_requests::keep(&mut tx, at, now, &sealed).await;
    assert!(kept.unwrap());
    tx.commit().await.unwrap();
    let copied = with_key(&service, &second, "k-1", "sales").await;
    assert_eq!(copied.status, StatusCode::INTERNAL_SERVER_ERROR);
    let own = with_key(&service, &first, "k-1", "sales").await;
    assert_eq!(own.text, done.text);
}

/// Rule: API-14.
#[tokio::test]
async fn a_change_of_another_version_is_refused() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mine = token(&ann).await;
    let made = with_key(&service, &mine, "k-1", "sales").await.json();
    let path = format!("{SERVERS}/{}", made["id"].as_str().unwrap());
    let read = async || ann.call(Method::GET, &path, None).await;
    let tag = async || {
        read().await.headers[header::ETAG]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let rename = async |condition: &str, name: &str| {
        let target = (Method::PATCH, path.as_str());
        let body = Some(json!({ "name": name }));
        send(&service, &mine, target, ("if-match", condition), body).await
    };
    let first = tag().await;
    let done = rename(&first, "One").await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let stale = rename(&first, "Two").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(code(&stale), "version_differs");
    assert_eq!(read().await.json()["name"], "One", "nothing changed");
    for wrong in ["nonsense", "\"r0\"", "W/\"r1\""] {
        assert_eq!(
            code(&rename(wrong, "Two").await),
            "version_differs",
            "{wrong}"
        );
    }
    let list = format!("\"r0\", {}", tag().await);
    assert_eq!(rename(&list, "Two").await.status, StatusCode::OK);
    assert_eq!(rename("*", "Three").await.status, StatusCode::OK);
    let now = tag().await;
    let (a, b) = tokio::join!(rename(&now, "Four"), rename(&now, "Five"));
    let mut statuses = [a.status.as_u16(), b.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let target = (Method::DELETE, "/token");
    let unversioned = send(&service, &mine, target, ("if-match", &now), None).await;
    assert_eq!(code(&unversioned), "no_version");
}
