//! Deletion of a workspace by its owner (AUTH-M6).

use http::{Method, StatusCode};
use portolan_storage::{
    Reason,
    accounts::endings::{self, Ending},
};
use serde_json::{Value, json};
use time::Duration;

use crate::test_service::{Browser, PASSWORD, TestService};

async fn workspace(owner: &Browser<'_>) {
    let body = json!({"name": "Acme", "slug": "acme"});
    let made = owner.call(Method::POST, "/workspaces", Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

async fn delete(browser: &Browser<'_>, typed: &str) -> (StatusCode, Value) {
    let body = json!({ "slug": typed });
    let answer = browser
        .call(Method::DELETE, "/workspaces/acme", Some(body))
        .await;
    (answer.status, answer.json())
}

async fn stopped(browser: &Browser<'_>) -> Value {
    browser.call(Method::GET, "/me", None).await.json()["stopped_workspaces"].clone()
}

#[tokio::test]
async fn m6_an_owner_deletes_a_workspace_with_its_typed_name_and_a_recent_proof_and_can_take_it_back()
 {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;

    let (status, refusal) = delete(&ann, "acne").await;
    assert_eq!(
        (status, &refusal["error"]["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("slug_differs")),
        "{refusal}"
    );
    // CASE-157.
    service.wait(Duration::minutes(11));
    let (status, refusal) = delete(&ann, "acme").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(refusal["error"]["code"], "confirm_first", "{refusal}");
    ann.sign_in("ann@acme.example", PASSWORD).await;
    let (status, answer) = delete(&ann, "acme").await;
    assert_eq!(status, StatusCode::OK, "{answer}");

    let gone = ann.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert_eq!(stopped(&ann).await[0]["slug"], "acme");
    let mail = service.newest_mail("ann@acme.example").await;
    assert!(mail.subject.contains("Acme"), "{}", mail.subject);

    // A stranger cannot restore it, and gets no information.
    let bob = service.person("bob@beta.example").await;
    let foreign = bob
        .call(Method::POST, "/workspaces/acme/restore", None)
        .await;
    let unknown = bob
        .call(Method::POST, "/workspaces/nowhere/restore", None)
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(foreign.text, unknown.text);

    let back = ann
        .call(Method::POST, "/workspaces/acme/restore", None)
        .await;
    assert_eq!(back.status, StatusCode::NO_CONTENT, "{}", back.text);
    let there = ann.call(Method::GET, "/workspaces/acme", None).await;
    assert_eq!(there.status, StatusCode::OK);
    assert_eq!(stopped(&ann).await, Value::Null);
}

#[tokio::test]
async fn m6_what_an_operator_stopped_only_an_operator_lets_go_on() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann).await;
    let id = ann.call(Method::GET, "/workspaces/acme", None).await.json()["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let (status, answer) = delete(&ann, "acme").await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    for (ending, told) in [
        // The same for a workspace that its owner deleted.
        (Ending::Evict, Value::Null),
        (Ending::Restore, Value::Null),
        (
            Ending::Suspend("The bill is open."),
            json!("The bill is open."),
        ),
        (Ending::Evict, Value::Null),
    ] {
        let mut tx = service.store.system(Reason::Operator).await.unwrap();
        assert!(
            endings::apply(&mut tx, id, ending, service.state.now())
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
        if ending == Ending::Restore {
            continue;
        }
        assert_eq!(stopped(&ann).await[0]["message"], told);
        let refused = ann
            .call(Method::POST, "/workspaces/acme/restore", None)
            .await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    }
}
