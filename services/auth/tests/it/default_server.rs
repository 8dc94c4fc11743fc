//! The default server of a workspace in the console, and its effect on nodes
//! (AUTH-5.1, AUTH-5.4).

use http::{Method, StatusCode};
use portolan_model::{id::TenantId, member::Role};
use portolan_storage::{Reason, accounts::members, registry::catalog};
use serde_json::{Value, json};

use crate::{
    console::{ids, workspace},
    test_service::{Browser, TestService},
};

const WS: &str = "/workspaces/acme";
const CHOICE: &str = "/workspaces/acme/default-server";

/// Creates a draft and returns its id.
async fn draft(person: &Browser<'_>, slug: &str) -> String {
    let body = json!({ "name": slug, "slug": slug });
    let path = format!("{WS}/servers");
    let made = person.call(Method::POST, &path, Some(body)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn turn(person: &Browser<'_>, id: &str, what: &str) -> Value {
    let path = format!("{WS}/servers/{id}/{what}");
    let turned = person.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(turned.status, StatusCode::OK, "{}", turned.text);
    turned.json()
}

async fn choose(person: &Browser<'_>, id: Option<&str>) -> StatusCode {
    let body = json!({ "server_id": id });
    person.call(Method::PUT, CHOICE, Some(body)).await.status
}

/// Slugs of the servers that the console shows under the workspace's own URL.
async fn shown(person: &Browser<'_>) -> Vec<String> {
    let path = format!("{WS}/servers");
    let list = person.call(Method::GET, &path, None).await.json();
    let servers = list["items"].as_array().unwrap().iter();
    servers
        .filter(|server| server["workspace_url"] == "https://portolan.test/t/acme/mcp")
        .map(|server| server["slug"].as_str().unwrap().to_owned())
        .collect()
}

/// The server that a node serves there, and the registry's revision.
async fn served(service: &TestService, tenant: TenantId) -> (Option<String>, i64) {
    let mut tx = service.store.node(tenant).await.unwrap();
    let server = catalog::published(&mut tx, None).await.unwrap();
    let address = catalog::address(&mut tx).await.unwrap().unwrap();
    (server.map(|server| server.slug), address.registry_revision)
}

#[tokio::test]
async fn section_5_1_the_first_published_server_is_the_default_and_an_administrator_chooses_another()
 {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let (boats, crews) = (draft(&ann, "boats").await, draft(&ann, "crews").await);
    assert!(shown(&ann).await.is_empty(), "none is published");
    let first = turn(&ann, &boats, "publish").await;
    assert_eq!(first["workspace_url"], "https://portolan.test/t/acme/mcp");
    let second = turn(&ann, &crews, "publish").await;
    assert!(second.get("workspace_url").is_none(), "{second}");
    assert_eq!(shown(&ann).await, ["boats"]);

    // The short address is offered for its server, beside the server's own.
    for (id, slug, is_default) in [(&boats, "boats", true), (&crews, "crews", false)] {
        let path = format!("{WS}/servers/{id}/connection");
        let connection = ann.call(Method::GET, &path, None).await.json();
        let own = format!("https://portolan.test/t/acme/{slug}/mcp");
        assert_eq!(connection["url"], own);
        assert_eq!(connection["clients"][0]["snippet"], own);
        let short = connection.get("short");
        assert_eq!(short.is_some(), is_default, "{connection}");
        if let Some(short) = short {
            assert_eq!(short["url"], "https://portolan.test/t/acme/mcp");
            assert_eq!(short["clients"][0]["snippet"], short["url"]);
        }
    }

    // The log of changes is ordered by time.
    service.wait(time::Duration::SECOND);
    let (before, revision) = served(&service, tenant).await;
    assert_eq!(before.as_deref(), Some("boats"));
    assert_eq!(choose(&ann, Some(&crews)).await, StatusCode::NO_CONTENT);
    let (now, raised) = served(&service, tenant).await;
    assert_eq!(now.as_deref(), Some("crews"));
    assert!(raised > revision, "nodes look again");
    assert_eq!(shown(&ann).await, ["crews"]);
    assert_eq!(choose(&ann, Some(&crews)).await, StatusCode::NO_CONTENT);
    assert_eq!(served(&service, tenant).await.1, raised, "nothing changed");

    // The default stays while it is paused; the next published server does not replace it.
    turn(&ann, &crews, "pause").await;
    assert_eq!(served(&service, tenant).await.0, None);
    turn(&ann, &boats, "publish").await;
    assert_eq!(served(&service, tenant).await.0, None);
    turn(&ann, &crews, "publish").await;
    assert_eq!(served(&service, tenant).await.0.as_deref(), Some("crews"));

    service.wait(time::Duration::SECOND);
    assert_eq!(choose(&ann, None).await, StatusCode::NO_CONTENT);
    assert_eq!(served(&service, tenant).await.0, None);
    let later = draft(&ann, "docks").await;
    turn(&ann, &later, "publish").await;
    assert!(shown(&ann).await.is_empty(), "none was chosen, and stays");

    let path = format!("{WS}/audit");
    let audit = ann.call(Method::GET, &path, None).await.json();
    let changes: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["action"] == "tenant.default_server_changed")
        .map(|item| item["detail"].clone())
        .collect();
    assert_eq!(
        changes,
        [
            json!({ "from": "crews", "to": null }),
            json!({ "from": "boats", "to": "crews" }),
            json!({ "from": null, "to": "boats" }),
        ],
        "newest first"
    );
}

#[tokio::test]
async fn section_5_1_only_an_administrator_chooses_and_only_among_the_servers_of_the_workspace() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    let bob = service.person("bob@acme.example").await;
    workspace(&ann, "acme").await;
    workspace(&bob, "beta").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let (_, bob_id) = ids(&service, &bob, "beta").await;
    let boats = draft(&ann, "boats").await;
    assert_eq!(
        choose(&bob, Some(&boats)).await,
        StatusCode::NOT_FOUND,
        "a stranger"
    );
    let body = json!({ "server_id": boats });
    let path = "/workspaces/beta/default-server";
    let stolen = bob.call(Method::PUT, path, Some(body)).await;
    assert_eq!(
        stolen.status,
        StatusCode::NOT_FOUND,
        "another workspace's server"
    );
    for (role, status) in [
        (Role::Developer, StatusCode::FORBIDDEN),
        (Role::Admin, StatusCode::NO_CONTENT),
    ] {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        members::add(&mut tx, tenant, bob_id, role, service.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        assert_eq!(choose(&bob, Some(&boats)).await, status, "{role}");
    }
    for body in [json!({}), json!({ "server_id": "srv_1" }), json!(null)] {
        let refused = ann.call(Method::PUT, CHOICE, Some(body)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let path = format!("{WS}/servers/{boats}");
    let deleted = ann.call(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status, StatusCode::OK, "{}", deleted.text);
    assert_eq!(choose(&ann, Some(&boats)).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn section_5_4_an_administrator_says_whether_a_token_without_a_server_opens_all_of_them() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let (tenant, _) = ids(&service, &ann, "acme").await;
    let as_nodes_see_it = async || {
        let mut tx = service.store.node(tenant).await.unwrap();
        let address = catalog::address(&mut tx).await.unwrap().unwrap();
        (address.reach, address.registry_revision)
    };
    let shown = ann.call(Method::GET, WS, None).await.json();
    assert_eq!(shown["workspace_tokens"], true, "the rule's default");
    let (_, before) = as_nodes_see_it().await;
    let body = json!({ "workspace_tokens": false });
    let changed = ann.call(Method::PATCH, WS, Some(body)).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    let changed = changed.json();
    assert_eq!(
        (&changed["workspace_tokens"], &changed["http_sse"]),
        (&json!(false), &json!(true)),
        "what is not given stays"
    );
    let (reach, after) = as_nodes_see_it().await;
    assert!(!reach.workspace_tokens && reach.http_sse);
    assert!(after > before, "nodes look again");
    let path = format!("{WS}/audit");
    let audit = ann.call(Method::GET, &path, None).await.json();
    let is_noted = |item: &Value| item["action"] == "tenant.workspace_tokens_changed";
    assert!(
        audit["items"].as_array().unwrap().iter().any(is_noted),
        "{audit}"
    );
}
