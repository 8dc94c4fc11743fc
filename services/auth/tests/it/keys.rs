//! API keys and service accounts in the console (AUTH-C16, AUTH-C17, AUTH-M9, AUTH-S2; CASE-106,
//! CASE-157).

use http::{Method, StatusCode};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    console::workspace,
    invitations::member,
    test_service::{Browser, TestService},
};

async fn make(person: &Browser<'_>, body: Value) -> crate::test_service::Answer {
    person
        .call(Method::POST, "/workspaces/acme/api-keys", Some(body))
        .await
}

#[tokio::test]
async fn c17_a_key_is_shown_once_and_known_by_its_beginning() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let made = make(
        &ann,
        json!({"name": "Laptop", "networks": ["192.0.2.7/24", "2001:db8::7"]}),
    )
    .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("mcpk_") && secret.len() == 5 + 43 + 6);
    let key = &made["key"];
    assert!(secret.starts_with(key["hint"].as_str().unwrap()));
    assert_eq!(key["networks"], json!(["192.0.2.0/24", "2001:db8::7/128"]));
    let listed = ann
        .call(Method::GET, "/workspaces/acme/api-keys", None)
        .await;
    assert!(!listed.text.contains(secret), "shown once");
    let listed = listed.json();
    assert_eq!(listed["items"][0]["name"], "Laptop");
    assert!(listed["items"][0].get("last_used_at").is_none());
    let days = |key: &Value| {
        let at = |member: &str| {
            time::OffsetDateTime::parse(
                key[member].as_str().unwrap(),
                &time::format_description::well_known::Rfc3339,
            )
            .unwrap()
        };
        (at("expires_at") - at("created_at")).whole_days()
    };
    assert_eq!(days(key), 90, "the default");
    for (body, field) in [
        (json!({"name": " "}), "name"),
        (json!({"name": "x", "days": 367}), "days"),
        (json!({"name": "x", "days": 0}), "days"),
        (
            json!({"name": "x", "networks": ["example.com"]}),
            "networks",
        ),
    ] {
        let refused = make(&ann, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.json()["error"]["field"], field);
    }
}

#[tokio::test]
async fn case_157_a_new_key_or_account_needs_a_recent_proof() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    service.wait(Duration::minutes(11));
    let accounts = "/workspaces/acme/service-accounts";
    let account = json!({"name": "Nightly", "auth": "client_secret"});
    for refused in [
        make(&ann, json!({"name": "Laptop"})).await,
        ann.call(Method::POST, accounts, Some(account)).await,
    ] {
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "confirm_first");
        assert_eq!(
            error["details"]["path"],
            "/account/confirm?request=w.keys.acme"
        );
    }
}

#[tokio::test]
async fn r7_members_have_their_own_keys_admins_see_all_and_a_removal_ends_them() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let bob = member(&service, &ann, "bob@acme.example", "member").await;
    let mine = make(&ann, json!({"name": "Ann's"})).await.json();
    let his = make(&bob, json!({"name": "Bob's"})).await.json();
    let names = |listed: &Value| -> Vec<String> {
        listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let keys = "/workspaces/acme/api-keys";
    let his_list = bob.call(Method::GET, keys, None).await.json();
    assert_eq!(names(&his_list), ["Bob's"]);
    let all = ann.call(Method::GET, keys, None).await.json();
    assert_eq!(names(&all), ["Bob's", "Ann's"]);
    let foreign = format!("{keys}/{}", mine["key"]["id"].as_str().unwrap());
    assert_eq!(
        bob.call(Method::DELETE, &foreign, None).await.status,
        StatusCode::NOT_FOUND,
        "CASE-106"
    );
    let accounts = "/workspaces/acme/service-accounts";
    let nightly = json!({"name": "Nightly", "auth": "client_secret"});
    let made = ann.call(Method::POST, accounts, Some(nightly)).await.json();
    let one = format!("{accounts}/{}", made["account"]["id"].as_str().unwrap());
    for (method, path) in [(Method::GET, accounts), (Method::DELETE, one.as_str())] {
        let refused = bob.call(method, path, None).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
    }
    let left = ann.call(Method::GET, accounts, None).await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{left}");
    let for_an_account =
        json!({"name": "x", "service_account_id": "svc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a"});
    assert_eq!(
        make(&bob, for_an_account).await.status,
        StatusCode::FORBIDDEN
    );

    let members = ann
        .call(Method::GET, "/workspaces/acme/members", None)
        .await
        .json();
    let him = members["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["email"] == "bob@acme.example")
        .unwrap()["user_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let removed = ann
        .call(
            Method::DELETE,
            &format!("/workspaces/acme/members/{him}"),
            None,
        )
        .await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.text);
    let left = ann.call(Method::GET, keys, None).await.json();
    assert_eq!(
        names(&left),
        ["Ann's"],
        "{his}: coming back does not revive it"
    );
    let log = ann
        .call(Method::GET, "/workspaces/acme/audit", None)
        .await
        .json();
    let ended = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["action"] == "api_key.revoked")
        .unwrap();
    assert!(
        ended
            .to_string()
            .contains(his["key"]["id"].as_str().unwrap()),
        "AUTH-M8: {ended}"
    );
}

#[tokio::test]
async fn c17_an_account_of_one_server_has_keys_for_that_server_only() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mut servers = Vec::new();
    for slug in ["github", "jira"] {
        let server = ann
            .call(
                Method::POST,
                "/workspaces/acme/servers",
                Some(json!({"name": slug, "slug": slug})),
            )
            .await;
        assert_eq!(server.status, StatusCode::CREATED, "{}", server.text);
        servers.push(server.json()["id"].as_str().unwrap().to_owned());
    }
    let account = ann
        .call(
            Method::POST,
            "/workspaces/acme/service-accounts",
            Some(json!({"name": "Nightly", "auth": "client_secret", "server_id": servers[0]})),
        )
        .await
        .json();
    let id = account["account"]["id"].as_str().unwrap();
    let resource = "https://portolan.test/t/acme/github/mcp";
    assert_eq!(account["account"]["resource"], resource);
    let narrow = make(&ann, json!({"name": "k", "service_account_id": id})).await;
    assert_eq!(narrow.json()["key"]["resource"], resource, "as the account");
    let wide = make(
        &ann,
        json!({"name": "k", "service_account_id": id, "server_id": servers[1]}),
    )
    .await;
    assert_eq!(wide.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(wide.json()["error"]["code"], "wider_than_account");
    let unknown = make(
        &ann,
        json!({"name": "k", "server_id": "srv_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a"}),
    )
    .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);

    for (body, field) in [
        (json!({"name": "x", "auth": "private_key_jwt"}), "jwks"),
        (
            json!({"name": "x", "auth": "private_key_jwt", "jwks_uri": "http://x.example/keys"}),
            "jwks_uri",
        ),
        (
            json!({"name": "x", "auth": "private_key_jwt", "jwks": {"keys": [{"kty": "oct", "k": "AA"}]}}),
            "jwks",
        ),
    ] {
        let refused = ann
            .call(
                Method::POST,
                "/workspaces/acme/service-accounts",
                Some(body),
            )
            .await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        assert_eq!(refused.json()["error"]["field"], field);
    }
}
