//! Sign-in to APIs by OAuth: the entered authorization server, and its effect on stored data
//! (MCP-AU-6…MCP-AU-15). The tests make no request to an authorization server,
//! because one that is entered by its addresses needs none.

use http::{Method, StatusCode};
use portolan_model::{
    id::{SourceId, TenantId, UserId},
    member::Role,
    registry::SourceKind,
};
use portolan_storage::{
    Reason,
    accounts::members,
    registry::{
        credentials, sources,
        upstream_oauth::{self as stored, NewConnection},
    },
};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::{
    console::{ids, workspace},
    test_service::{Answer, Browser, TestService},
};

const SECRET: &str = "planted-client-secret";
const BASE: &str = "https://api.example/v1";

fn fine(answer: Answer) -> Value {
    assert!(
        answer.status.is_success(),
        "{}: {}",
        answer.status,
        answer.text
    );
    if answer.text.is_empty() {
        return Value::Null;
    }
    answer.json()
}

fn refused(answer: Answer, status: StatusCode, code: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text);
    let body = answer.json();
    assert_eq!(body["error"]["code"], code, "{body}");
    body["error"].clone()
}

fn server() -> Value {
    json!({
        "authorization_endpoint": "https://as.example/authorize?audience=x", "token_endpoint": "https://as.example/token",
        "revocation_endpoint": "https://as.example/revoke",
    })
}

fn form(sharing: &str) -> Value {
    json!({
        "sharing": sharing, "scope": "read  write", "server": server(),
        "client": {"client_id": "app", "client_secret": SECRET, "auth": "post"},
    })
}

/// A workspace with an API.
struct Scene<'a> {
    ann: Browser<'a>,
    tenant: TenantId,
    user: UserId,
    source: SourceId,
}

impl<'a> Scene<'a> {
    async fn open(service: &'a TestService) -> Self {
        let ann = service.person("ann@acme.example").await;
        workspace(&ann, "acme").await;
        let (tenant, user) = ids(service, &ann, "acme").await;
        let body = json!({"kind": "http", "name": "Notes", "base_url": BASE});
        let made = ann
            .call(Method::POST, "/workspaces/acme/sources", Some(body))
            .await;
        let source = fine(made)["id"].as_str().unwrap().parse().unwrap();
        Self {
            ann,
            tenant,
            user,
            source,
        }
    }

    async fn call(&self, method: Method, rest: &str, body: Option<Value>) -> Answer {
        let path = format!("/workspaces/acme/sources/{}{rest}", self.source);
        self.ann.call(method, &path, body).await
    }

    async fn set(&self, form: Value) -> Answer {
        self.call(Method::PUT, "/sign-in", Some(form)).await
    }

    async fn seen(&self) -> Value {
        fine(self.call(Method::GET, "/sign-in", None).await)
    }

    async fn begin(&self) -> Answer {
        self.call(Method::POST, "/account", Some(json!({}))).await
    }

    async fn link(&self, service: &TestService, owner: Option<UserId>) {
        link(service, self.tenant, self.source, (BASE, owner), self.user).await;
    }
}

/// Inserts an account with tokens that cannot be opened; the tests check its row only. The
/// workspace has a data key.
pub(crate) async fn link(
    service: &TestService,
    tenant: TenantId,
    source: SourceId,
    (address, owner): (&str, Option<UserId>),
    connected_by: UserId,
) {
    let mut tx = service.store.tenant(tenant).await.unwrap();
    let key = credentials::newest_data_key(&mut tx)
        .await
        .unwrap()
        .unwrap();
    let new = NewConnection {
        id: Uuid::now_v7(),
        source,
        owner,
        connected_by,
        issuer: "https://as.example",
        server: &json!({}),
        address,
        resource: None,
        scope: None,
        renewable: true,
        sealed: &[1],
        key: key.id,
        expires_at: service.clock.now(),
    };
    let kept = stored::connect(&mut tx, &new, service.clock.now()).await;
    assert!(kept.unwrap());
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn au_6_au_8_au_10_an_api_is_signed_in_to_where_somebody_said() {
    let service = TestService::open().await;
    let scene = Scene::open(&service).await;
    let before = scene.seen().await;
    assert_eq!(before["sharing"], Value::Null);
    let redirect = before["redirect_uri"].as_str().unwrap().to_owned();
    assert!(redirect.ends_with(&format!("/connect/callback/{}", scene.source)));

    let key = json!({"kind": "bearer", "token": "of-before"});
    fine(
        scene
            .call(Method::PUT, "/credential", Some(key.clone()))
            .await,
    );
    let answer = scene.set(form("workspace")).await;
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
    let view = fine(answer);
    assert_eq!(view["sharing"], "workspace");
    assert_eq!(view["scope"], "read write");
    assert_eq!(view["client"]["client_id"], "app");
    assert_eq!(view["server"]["issuer"], Value::Null, "nobody said it");
    assert_eq!(view["server"]["token_endpoint"], "https://as.example/token");
    assert!(view.get("own").is_none(), "one account for all: {view}");
    let source = fine(scene.call(Method::GET, "", None).await);
    assert_eq!(source["credential"], Value::Null, "one or the other");
    assert_eq!(source["sign_in"], "workspace");
    refused(
        scene.call(Method::PUT, "/credential", Some(key)).await,
        StatusCode::CONFLICT,
        "signed_in",
    );

    let begun = fine(scene.begin().await);
    let address = Url::parse(begun["url"].as_str().unwrap()).unwrap();
    assert_eq!(address.host_str(), Some("as.example"));
    let pairs: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    let parameter = |name: &str| {
        let mut found = pairs.iter().filter(|(key, _)| key == name);
        let first = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice: {address}");
        first
    };
    assert_eq!(parameter("audience"), Some("x"), "what was entered stays");
    assert_eq!(parameter("client_id"), Some("app"));
    assert_eq!(parameter("code_challenge_method"), Some("S256"), "always");
    assert_eq!(parameter("scope"), Some("read write"));
    assert_eq!(parameter("redirect_uri"), Some(redirect.as_str()));
    assert_eq!(
        parameter("resource"),
        None,
        "a server that was named may not know it"
    );
    assert!(!begun.to_string().contains(SECRET));

    // Absent members stay.
    let only_scope = json!({"sharing": "workspace", "scope": "read"});
    let view = fine(scene.set(only_scope).await);
    assert_eq!(view["scope"], "read");
    assert_eq!(view["client"]["client_id"], "app");
    assert_eq!(view["server"]["token_endpoint"], "https://as.example/token");

    fine(scene.call(Method::DELETE, "/sign-in", None).await);
    assert_eq!(scene.seen().await["sharing"], Value::Null);
    let log = fine(
        scene
            .ann
            .call(Method::GET, "/workspaces/acme/audit", None)
            .await,
    );
    let text = log.to_string();
    for action in ["upstream.sign_in_set", "upstream.sign_in_removed"] {
        assert!(text.contains(action), "{text}");
    }
    assert!(!text.contains(SECRET));
}

#[tokio::test]
async fn au_15_au_16_what_no_request_may_go_to_is_not_kept() {
    let service = TestService::open().await;
    let scene = Scene::open(&service).await;
    refused(
        scene.set(json!({"sharing": "workspace"})).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "server_needed",
    );
    for (field, server) in [
        ("server", json!({})),
        (
            "server",
            json!({"token_endpoint": "https://as.example/token"}),
        ),
        (
            "server",
            json!({"issuer": "https://as.example", "token_endpoint": "https://as.example/token"}),
        ),
        ("server.issuer", json!({"issuer": "http://as.example"})),
        ("server.issuer", json!({"issuer": "https://10.0.0.1"})),
        (
            "server.authorization_endpoint",
            json!({"authorization_endpoint": "javascript:alert(1)", "token_endpoint": "https://as.example/token"}),
        ),
        (
            "server.authorization_endpoint",
            json!({"authorization_endpoint": "https://as.example/a#b", "token_endpoint": "https://as.example/token"}),
        ),
        (
            "server.token_endpoint",
            json!({"authorization_endpoint": "https://as.example/a", "token_endpoint": "http://as.example/token"}),
        ),
        (
            "server.token_endpoint",
            json!({"authorization_endpoint": "https://as.example/a", "token_endpoint": "https://169.254.169.254/token"}),
        ),
        (
            "server.token_endpoint",
            json!({"authorization_endpoint": "https://as.example/a", "token_endpoint": "https://ann:secret@as.example/token"}),
        ),
        (
            "server.revocation_endpoint",
            json!({"authorization_endpoint": "https://as.example/a", "token_endpoint": "https://as.example/t", "revocation_endpoint": "file:///x"}),
        ),
    ] {
        let form = json!({"sharing": "workspace", "server": server});
        let fault = refused(
            scene.set(form).await,
            StatusCode::UNPROCESSABLE_ENTITY,
            "server_invalid",
        );
        assert_eq!(fault["field"], field, "{server}");
    }
    let by_client =
        json!({"sharing": "workspace", "method": "client_credentials", "server": server()});
    refused(
        scene.set(by_client).await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "method_invalid",
    );
    assert_eq!(scene.seen().await["sharing"], Value::Null);

    // An MCP server names its own.
    let new = sources::NewSource {
        id: SourceId::generate(),
        kind: SourceKind::Mcp,
        name: "Theirs",
        base_url: "https://mcp.example/mcp",
        document: None,
        security: &json!([]),
    };
    let mut tx = service.store.tenant(scene.tenant).await.unwrap();
    sources::insert(&mut tx, &new, service.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let path = format!("/workspaces/acme/sources/{}/sign-in", new.id);
    refused(
        scene
            .ann
            .call(Method::PUT, &path, Some(form("workspace")))
            .await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "server_invalid",
    );
}

#[tokio::test]
async fn au_7_no_client_and_no_account_goes_with_other_addresses() {
    let service = TestService::open().await;
    let scene = Scene::open(&service).await;
    fine(scene.set(form("person")).await);
    scene.link(&service, Some(scene.user)).await;
    scene.link(&service, None).await;

    // The same server, and the same API with a slash at the end: everything stays.
    fine(
        scene
            .set(json!({"sharing": "person", "server": server()}))
            .await,
    );
    let slash = json!({"base_url": format!("{BASE}/")});
    fine(scene.call(Method::PATCH, "", Some(slash)).await);
    let view = scene.seen().await;
    assert_eq!(view["linked_persons"], 1, "{view}");
    assert_eq!(view["client"]["client_id"], "app");
    assert_eq!(view["own"]["status"], "ok");

    // With another token endpoint, the secret would be sent there.
    let mut elsewhere = server();
    elsewhere["token_endpoint"] = json!("https://evil.example/token");
    let view = fine(
        scene
            .set(json!({"sharing": "person", "server": elsewhere}))
            .await,
    );
    assert_eq!(view["client"], Value::Null, "{view}");
    assert_eq!(view["linked_persons"], 0);
    assert_eq!(view["connection"], Value::Null);

    fine(scene.set(form("workspace")).await);
    scene.link(&service, None).await;
    let moved = json!({"base_url": "https://api.example/v2"});
    fine(scene.call(Method::PATCH, "", Some(moved)).await);
    let view = scene.seen().await;
    assert_eq!(view["connection"], Value::Null, "{view}");
    assert_eq!(view["client"], Value::Null);
    assert_eq!(
        view["server"]["token_endpoint"], "https://as.example/token",
        "addresses are no secret"
    );
    let fault = refused(
        scene.begin().await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "client_needed",
    );
    assert!(fault["message"].as_str().unwrap().contains("client id"));
}

#[tokio::test]
async fn au_14_where_each_person_has_an_account_each_gets_a_page_of_their_own() {
    let service = TestService::open().await;
    let scene = Scene::open(&service).await;
    let bob = service.person("bob@acme.example").await;
    let (_, bob_id) = ids(&service, &bob, "acme").await;
    fine(scene.set(form("person")).await);
    refused(
        scene.begin().await,
        StatusCode::CONFLICT,
        "own_accounts_only",
    );
    let path = format!("/workspaces/acme/sources/{}/sign-in", scene.source);
    let stranger = bob.call(Method::GET, &path, None).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    for (role, calls) in [(Role::Viewer, false), (Role::Member, true)] {
        let mut tx = service.store.system(Reason::Workspaces).await.unwrap();
        members::add(&mut tx, scene.tenant, bob_id, role, service.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let seen = fine(bob.call(Method::GET, &path, None).await);
        assert_eq!(seen.get("own").is_some(), calls, "{role}: {seen}");
    }
    let seen = fine(bob.call(Method::GET, &path, None).await);
    assert_eq!(seen["own"]["status"], Value::Null);
    let page = Url::parse(seen["own"]["connect_url"].as_str().unwrap()).unwrap();
    let shown = bob.get(page.path()).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
    assert!(shown.text.contains("api.example"), "{}", shown.text);
    let foreign = scene.ann.get(page.path()).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{}", foreign.text);
    // A person's account is private: the workspace sees only that it exists.
    scene.link(&service, Some(bob_id)).await;
    let view = scene.seen().await;
    assert_eq!(view["linked_persons"], 1);
    assert_eq!(view["own"]["status"], Value::Null, "{view}");
    assert_eq!(
        fine(bob.call(Method::GET, &path, None).await)["own"]["status"],
        "ok"
    );
    let linked = bob.get("/account/linked").await;
    assert!(linked.text.contains("Notes"), "{}", linked.text);
    assert!(
        linked.text.contains("as.example"),
        "where it is: {}",
        linked.text
    );
    let others = scene.ann.get("/account/linked").await;
    assert!(!others.text.contains("Notes"), "{}", others.text);
}

/// REVIEW-S-14: another workspace's source, or an unknown one, has no account to disconnect and no
/// sign-in to remove.
#[tokio::test]
async fn s14_what_is_taken_away_from_an_unknown_source_is_a_404() {
    let service = TestService::open().await;
    let scene = Scene::open(&service).await;
    let eve = service.person("eve@evil.example").await;
    workspace(&eve, "evil").await;
    for (source, status) in [
        (scene.source, StatusCode::NOT_FOUND),
        (SourceId::generate(), StatusCode::NOT_FOUND),
    ] {
        for what in ["account", "sign-in", "credential"] {
            let path = format!("/workspaces/evil/sources/{source}/{what}");
            let answer = eve.call(Method::DELETE, &path, None).await;
            assert_eq!(answer.status, status, "{what}: {}", answer.text);
        }
    }
    for what in ["/account", "/sign-in", "/credential"] {
        let own = scene.call(Method::DELETE, what, None).await;
        assert_eq!(own.status, StatusCode::NO_CONTENT, "{what}: {}", own.text);
    }
}
