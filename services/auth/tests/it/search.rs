//! Search over a workspace: each role finds what its lists show, and nothing of other workspaces
//! (CASE-106, AUTH-M1).

use http::{Method, StatusCode};
use portolan_model::member::Role;
use portolan_storage::{Reason, accounts::members};
use serde_json::{Value, json};

use crate::{
    console::{ids, workspace},
    test_service::{Browser, TestService},
};

/// Makes in a workspace one thing of each kind, all named "Quay".
async fn furnish(person: &Browser<'_>, slug: &str) {
    let made = async |path: &str, body: Value| {
        let answer = person
            .call(
                Method::POST,
                &format!("/workspaces/{slug}{path}"),
                Some(body),
            )
            .await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        answer.json()
    };
    let source = made(
        "/sources",
        json!({"kind": "http", "name": "Quay", "base_url": "https://api.example/v1"}),
    )
    .await;
    let source = source["id"].as_str().unwrap().to_owned();
    made(
        &format!("/sources/{source}/tools"),
        json!({"name": "quay_list", "description": "Lists quays.", "method": "GET", "path": "/quays"}),
    )
    .await;
    let answer = person
        .call(
            Method::PUT,
            &format!("/workspaces/{slug}/sources/{source}/credential"),
            Some(json!({"kind": "bearer", "token": "planted-secret"})),
        )
        .await;
    assert!(answer.status.is_success(), "{}", answer.text);
    made("/servers", json!({"name": "Quay", "slug": "quay"})).await;
    made("/prompts", json!({"name": "quay", "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]})).await;
    made(
        "/resources",
        json!({"name": "quay", "uri": "https://quay.example/", "holds": {"kind": "text", "text": "x"}}),
    )
    .await;
    made("/api-keys", json!({"name": "Quay"})).await;
    made(
        "/service-accounts",
        json!({"name": "Quay", "auth": "client_secret"}),
    )
    .await;
    made(
        "/registered-clients",
        json!({"name": "Quay", "proof": "none", "redirect_uris": ["https://c.example/back"]}),
    )
    .await;
}

async fn kinds(person: &Browser<'_>, slug: &str, words: &str) -> Vec<String> {
    let path = format!("/workspaces/{slug}/search?q={words}");
    let answer = person.call(Method::GET, &path, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(!answer.text.contains("planted-secret"), "{}", answer.text);
    let mut kinds: Vec<String> = answer.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    kinds
}

#[tokio::test]
async fn search_finds_by_role_and_in_its_workspace_alone() {
    let service = TestService::open().await;
    let owner = service.person("quay-owner@acme.example").await;
    workspace(&owner, "acme").await;
    workspace(&owner, "lagoon").await;
    furnish(&owner, "acme").await;
    let (tenant, _) = ids(&service, &owner, "acme").await;
    let viewer = service.person("viewer@acme.example").await;
    let me = viewer.call(Method::GET, "/me", None).await.json();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
    members::add(&mut tx, tenant, user, Role::Viewer, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let all = [
        "api_key",
        "client",
        "credential",
        "member",
        "prompt",
        "resource",
        "server",
        "service_account",
        "source",
        "tool",
    ];
    assert_eq!(kinds(&owner, "acme", "quay").await, all);
    let shown: Vec<&str> = all
        .into_iter()
        .filter(|kind| !["api_key", "client", "service_account"].contains(kind))
        .collect();
    assert_eq!(kinds(&viewer, "acme", "QUAY").await, shown, "a viewer");
    assert_eq!(
        kinds(&owner, "acme", "quays%20GET").await,
        ["tool"],
        "every word counts"
    );
    for nothing in ["", "%20", "%25", "_%25", "nowhere"] {
        let found = kinds(&owner, "acme", nothing).await;
        assert!(found.is_empty(), "{nothing:?}: {found:?}");
    }
    // The same person, in a workspace that has only a member of that name.
    assert_eq!(kinds(&owner, "lagoon", "quay").await, ["member"]);
    // Another workspace, and one that does not exist.
    for slug in ["lagoon", "nowhere"] {
        let path = format!("/workspaces/{slug}/search?q=quay");
        let answer = viewer.call(Method::GET, &path, None).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{slug}");
    }
    let long = "x".repeat(201);
    let path = format!("/workspaces/acme/search?q={long}");
    let answer = owner.call(Method::GET, &path, None).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_choice_of_tools_is_checked_without_storing_it() {
    let service = TestService::open().await;
    let owner = service.person("owner@acme.example").await;
    workspace(&owner, "acme").await;
    workspace(&owner, "lagoon").await;
    furnish(&owner, "acme").await;
    let tools = owner
        .call(Method::GET, "/workspaces/acme/tools", None)
        .await
        .json();
    let tool = tools["items"][0]["id"].clone();
    let check = async |slug: &str| {
        let body =
            json!({"slug": "quay", "tools": [{"tool_id": tool, "published_name": "q".repeat(60)}]});
        let path = format!("/workspaces/{slug}/servers/check");
        let answer = owner.call(Method::POST, &path, Some(body)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.json()
    };
    let found = check("acme").await;
    assert!(found["tokens"].as_i64().unwrap() > 20, "{found}");
    assert_eq!(found["tools"][0]["tokens"], found["tokens"], "{found}");
    let note = found["tools"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("says too little"), "{note}");
    let clients: Vec<&str> = found["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["client"].as_str().unwrap())
        .collect();
    assert_eq!(clients, ["Cursor", "Claude Code", "VS Code"]);
    let elsewhere = check("lagoon").await;
    assert_eq!(elsewhere["tools"], json!([]), "a tool of another workspace");
}
