//! Service accounts at the management API: client credentials give a token of the workspace
//! (API-22 to API-26).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request, StatusCode, header};
use portolan_keys::ring::NewKeyPair;
use portolan_storage::{
    Reason,
    expiry::{self, Expired},
    oauth::clients,
    platform::operators::{self, AccessChange},
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    access_tokens::{Program, code, of_workspace},
    console::workspace,
    invitations::member,
    races,
    test_service::{Answer, Browser, PASSWORD, TestService},
};

const ACME: &str = "https://portolan.test/api/v1/workspaces/acme";
const ACCOUNTS: &str = "/workspaces/acme/service-accounts";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A service account of a workspace.
struct TestAccount {
    id: String,
    secret: String,
    /// Its path in the API.
    path: String,
}

impl TestAccount {
    /// Without access.
    async fn of(admin: &Browser<'_>, slug: &str) -> Self {
        let body = json!({"name": "Nightly", "auth": "client_secret"});
        Self::made(admin, slug, body).await
    }

    async fn made(admin: &Browser<'_>, slug: &str, body: Value) -> Self {
        let path = format!("/workspaces/{slug}/service-accounts");
        let answer = admin.call(Method::POST, &path, Some(body)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let made = answer.json();
        let id = made["account"]["id"].as_str().unwrap().to_owned();
        Self {
            secret: made["client_secret"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            path: format!("{path}/{id}"),
            id,
        }
    }

    /// With access.
    async fn with(admin: &Browser<'_>, role: &str, scopes: &[&str]) -> Self {
        let account = Self::of(admin, "acme").await;
        let answer = account.give(admin, role, scopes).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        account
    }

    async fn give(&self, admin: &Browser<'_>, role: &str, scopes: &[&str]) -> Answer {
        let body = json!({ "role": role, "scopes": scopes });
        let path = format!("{}/api-access", self.path);
        admin.call(Method::PUT, &path, Some(body)).await
    }

    async fn take(&self, admin: &Browser<'_>) -> Answer {
        let path = format!("{}/api-access", self.path);
        admin.call(Method::DELETE, &path, None).await
    }

    async fn switch(&self, admin: &Browser<'_>, enabled: bool) {
        let body = json!({ "enabled": enabled });
        let answer = admin.call(Method::PATCH, &self.path, Some(body)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }

    /// Adds a secret: its id and itself.
    async fn second_secret(&self, admin: &Browser<'_>) -> (String, String) {
        let path = format!("{}/secrets", self.path);
        let answer = admin.call(Method::POST, &path, None).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let made = answer.json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&made["secret"]["id"]), text(&made["client_secret"]))
    }

    async fn revoke_secret(&self, admin: &Browser<'_>, id: &str) {
        let path = format!("{}/secrets/{id}", self.path);
        let answer = admin.call(Method::DELETE, &path, None).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
    }

    /// The account as the list shows it.
    async fn shown(&self, admin: &Browser<'_>) -> Value {
        let list = admin.call(Method::GET, ACCOUNTS, None).await.json();
        let all = list["items"].as_array().unwrap();
        let own = all.iter().find(|one| one["id"] == self.id.as_str());
        own.unwrap().clone()
    }

    /// A request at the token endpoint, proved by Basic.
    async fn ask(&self, service: &TestService, fields: &[(&str, &str)]) -> Answer {
        let credentials = STANDARD.encode(format!("{}:{}", self.id, self.secret));
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .extend_pairs(fields)
            .finish();
        let request = Request::post("/oauth/token")
            .header(header::AUTHORIZATION, format!("Basic {credentials}"))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body.into());
        service.browser().send(request.unwrap()).await
    }

    async fn token(&self, service: &TestService) -> Answer {
        self.ask(service, &[("resource", ACME)]).await
    }

    async fn program<'a>(&self, service: &'a TestService) -> Program<'a> {
        program(service, &self.token(service).await)
    }
}

fn program<'a>(service: &'a TestService, answer: &Answer) -> Program<'a> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    Program::new(service, answer.json()["access_token"].as_str().unwrap())
}

async fn status(program: &Program<'_>) -> StatusCode {
    program.get("/token").await.status
}

/// Rule: API-23, API-24.
#[tokio::test]
async fn an_account_with_access_gets_a_token_of_its_workspace() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let account = TestAccount::of(&ann, "acme").await;
    assert!(account.shown(&ann).await.get("api_access").is_none());
    let given = account
        .give(&ann, "developer", &["registry:write", "registry:write"])
        .await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    let access = given.json()["api_access"].clone();
    assert_eq!(access["role"], "developer");
    assert_eq!(access["scopes"], json!(["registry:write"]));
    assert!(access.get("last_used_at").is_none(), "{access}");

    let answer = account.token(&service).await;
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let nightly = program(&service, &answer);
    let mut body = answer.json();
    let secret = body["access_token"].take();
    let secret = secret.as_str().unwrap();
    assert!(secret.starts_with("ptlw_"), "{secret}");
    let expected = json!({
        "access_token": null, "token_type": "Bearer", "expires_in": 900, "scope": "registry:write",
    });
    assert_eq!(body, expected);

    let servers = nightly.get("/workspaces/acme/servers").await;
    assert_eq!(servers.status, StatusCode::OK, "{}", servers.text);
    let server = json!({"name": "Sales", "slug": "sales"});
    let made = nightly
        .call(Method::POST, "/workspaces/acme/servers", Some(server))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let beyond = nightly.get("/workspaces/acme/audit").await;
    assert_eq!(code(&beyond), "insufficient_scope");
    let about = nightly.get("/token").await.json();
    assert_eq!(about["name"], "Nightly");
    assert_eq!(about["workspaces"][0]["role"], "developer");

    let tokens = ann
        .call(Method::GET, "/workspaces/acme/access-tokens", None)
        .await;
    assert_eq!(
        tokens.json()["items"],
        json!([]),
        "none of the permanent ones"
    );
    let shown = account.shown(&ann).await;
    assert!(shown["api_access"]["last_used_at"].is_string(), "{shown}");
    let log = ann.call(Method::GET, "/workspaces/acme/audit", None).await;
    assert!(!log.text.contains(secret), "no token");
    let log = log.json();
    let entries = log["items"].as_array().unwrap();
    let entry = |action: &str| entries.iter().find(|one| one["action"] == action).unwrap();
    let issued = entry("access_token.issued");
    assert_eq!(issued["actor"]["kind"], "service_account");
    assert_eq!(issued["detail"]["service_account"], account.id.as_str());
    assert_eq!(issued["detail"]["name"], "Nightly");
    let given = entry("service_account.api_access_given");
    assert_eq!(given["detail"]["role"], "developer");
    assert_eq!(entry("server.created")["actor"]["kind"], "access_token");

    service.wait(Duration::minutes(15));
    assert_eq!(status(&nightly).await, StatusCode::UNAUTHORIZED, "it ended");
    service.wait(Duration::minutes(1));
    let mut tx = service.store.system(Reason::Janitor).await.unwrap();
    let gone = expiry::purge(&mut tx, Expired::IssuedTokens, service.clock.now()).await;
    assert_eq!(gone.unwrap(), 1);
}

/// Rule: API-24.
#[tokio::test]
async fn a_scope_narrows_and_a_wider_one_is_refused() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let account = TestAccount::with(&ann, "viewer", &["registry:write", "audit:read"]).await;
    let with_slash = format!("{ACME}/");
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", account.id.as_str()),
        ("client_secret", account.secret.as_str()),
        ("resource", with_slash.as_str()),
    ];
    let whole = service.browser().post("/oauth/token", &fields).await;
    let viewer = program(&service, &whole);
    assert_eq!(whole.json()["scope"], "registry:write audit:read");
    let server = json!({"name": "Sales", "slug": "sales"});
    let refused = viewer
        .call(Method::POST, "/workspaces/acme/servers", Some(server))
        .await;
    assert_eq!(code(&refused), "forbidden", "a viewer");
    let narrow = [("resource", ACME), ("scope", "registry:read")];
    let narrowed = account.ask(&service, &narrow).await;
    assert_eq!(narrowed.json()["scope"], "registry:read");
    let log = program(&service, &narrowed)
        .get("/workspaces/acme/audit")
        .await;
    assert_eq!(code(&log), "insufficient_scope");
    for wider in ["registry:read calls:read", "mcp", "  "] {
        let fields = [("resource", ACME), ("scope", wider)];
        let refused = account.ask(&service, &fields).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wider}");
        assert_eq!(refused.json()["error"], "invalid_scope", "{wider}");
    }
}

/// Rule: API-24.
#[tokio::test]
async fn an_account_without_access_gets_one_answer() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    workspace(&ann, "other").await;
    let strong = TestAccount::with(&ann, "admin", &["registry:read"]).await;
    let none = TestAccount::of(&ann, "acme").await;
    let stranger = TestAccount::of(&ann, "other").await;
    let given = stranger.give(&ann, "admin", &["registry:read"]).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    let at = |slug: &str| format!("https://portolan.test/api/v1/workspaces/{slug}");
    let mut answers = Vec::new();
    for (account, slug) in [
        (&none, "acme"),
        (&none, "nowhere"),
        (&strong, "other"),
        (&strong, "nowhere"),
        (&stranger, "acme"),
    ] {
        answers.push(account.ask(&service, &[("resource", &at(slug))]).await);
    }
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert_eq!(answer.text, answers[0].text);
    }
    assert_eq!(answers[0].json()["error"], "invalid_target");
    let own = stranger.ask(&service, &[("resource", &at("other"))]).await;
    let other = program(&service, &own);
    let foreign = other.get("/workspaces/acme/servers").await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);

    // A resource or a proof that does not fit.
    let two = [("resource", ACME), ("resource", ACME)];
    let audience = [("resource", ACME), ("audience", "acme")];
    let above = [("resource", "https://portolan.test/api/v1")];
    let below = format!("{ACME}/servers");
    let below = [("resource", below.as_str())];
    let evil = [("resource", "https://evil.example/api/v1/workspaces/acme")];
    for fields in [&two[..], &audience, &above, &below, &evil] {
        let refused = strong.ask(&service, fields).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{fields:?}");
        assert_eq!(refused.json()["error"], "invalid_target", "{fields:?}");
    }
    let thief = TestAccount {
        id: strong.id.clone(),
        secret: none.secret.clone(),
        path: String::new(),
    };
    for slug in ["acme", "nowhere"] {
        let refused = thief.ask(&service, &[("resource", &at(slug))]).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{slug}");
        assert_eq!(refused.json()["error"], "invalid_client", "{slug}");
    }
}

/// Rule: API-25.
#[tokio::test]
async fn changed_or_removed_access_ends_its_tokens() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let account = TestAccount::with(&ann, "admin", &["registry:write"]).await;
    let first = account.program(&service).await;
    assert_eq!(status(&first).await, StatusCode::OK);
    let changed = account.give(&ann, "viewer", &["registry:read"]).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    assert!(changed.json()["api_access"].get("last_used_at").is_none());
    assert_eq!(status(&first).await, StatusCode::UNAUTHORIZED, "changed");
    let second = account.program(&service).await;
    let about = second.get("/token").await.json();
    assert_eq!(about["workspaces"][0]["role"], "viewer");

    let taken = account.take(&ann).await;
    assert_eq!(taken.status, StatusCode::NO_CONTENT, "{}", taken.text);
    assert_eq!(status(&second).await, StatusCode::UNAUTHORIZED, "taken");
    let refused = account.token(&service).await;
    assert_eq!(refused.json()["error"], "invalid_target");
    assert_eq!(account.take(&ann).await.status, StatusCode::NOT_FOUND);
    assert!(account.shown(&ann).await.get("api_access").is_none());
    let log = ann.call(Method::GET, "/workspaces/acme/audit", None).await;
    assert!(log.text.contains("service_account.api_access_taken"));
    // The old tokens do not return with a new access.
    account.give(&ann, "admin", &["registry:write"]).await;
    for old in [&first, &second] {
        assert_eq!(status(old).await, StatusCode::UNAUTHORIZED);
    }
}

/// Rule: API-25.
#[tokio::test]
async fn a_revoked_secret_switch_or_deletion_ends_its_tokens() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mut account = TestAccount::with(&ann, "viewer", &["registry:read"]).await;
    let old = account.program(&service).await;
    let shown = account.shown(&ann).await;
    let first = shown["secrets"][0]["id"].as_str().unwrap().to_owned();
    let (_, second) = account.second_secret(&ann).await;
    assert_eq!(status(&old).await, StatusCode::OK, "both secrets are live");
    account.revoke_secret(&ann, &first).await;
    assert_eq!(status(&old).await, StatusCode::UNAUTHORIZED, "revoked");
    let refused = account.token(&service).await;
    assert_eq!(refused.json()["error"], "invalid_client");
    account.secret = second;

    let old = account.program(&service).await;
    account.switch(&ann, false).await;
    assert_eq!(status(&old).await, StatusCode::UNAUTHORIZED, "disabled");
    let refused = account.token(&service).await;
    assert_eq!(refused.json()["error"], "invalid_client");
    account.switch(&ann, true).await;
    assert_eq!(status(&old).await, StatusCode::UNAUTHORIZED, "for good");

    // An operator blocks its client.
    let old = account.program(&service).await;
    let block = async |change| {
        let mut tx = service.store.system(Reason::Operator).await.unwrap();
        let client = clients::find(&mut tx, &account.id).await.unwrap().unwrap();
        let done = operators::set_blocked(&mut tx, client.id, change).await;
        assert!(done.unwrap());
        tx.commit().await.unwrap();
    };
    block(AccessChange::Stop).await;
    assert_eq!(status(&old).await, StatusCode::UNAUTHORIZED, "blocked");
    block(AccessChange::Restore).await;

    let old = account.program(&service).await;
    let deleted = ann.call(Method::DELETE, &account.path, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
    assert_eq!(status(&old).await, StatusCode::UNAUTHORIZED, "deleted");
    let refused = account.token(&service).await;
    assert_eq!(refused.json()["error"], "invalid_client");
    let given = account.give(&ann, "viewer", &["registry:read"]).await;
    assert_eq!(given.status, StatusCode::NOT_FOUND);
}

/// Rule: API-25. Of a token and the revocation of the secret that proves its account, at the same
/// time, no token is left.
#[tokio::test]
async fn no_token_outlives_a_secret_that_is_revoked_meanwhile() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let mut account = TestAccount::with(&ann, "viewer", &["registry:read"]).await;
    let shown = account.shown(&ann).await;
    let mut proof = shown["secrets"][0]["id"].as_str().unwrap().to_owned();
    for round in races::rounds("no_token_outlives_a_secret_that_is_revoked_meanwhile") {
        // The rates admit one request in a second, and a new secret needs a recent sign-in.
        service.wait(Duration::seconds(2));
        if round % 100 == 99 {
            ann.sign_in("ann@acme.example", PASSWORD).await;
        }
        let (next, secret) = account.second_secret(&ann).await;
        let (answer, ()) =
            tokio::join!(account.token(&service), account.revoke_secret(&ann, &proof));
        if answer.status == StatusCode::OK {
            let late = program(&service, &answer);
            assert_eq!(status(&late).await, StatusCode::UNAUTHORIZED, "{round}");
        }
        account.secret = secret;
        assert_eq!(
            status(&account.program(&service).await).await,
            StatusCode::OK
        );
        proof = next;
    }
}

/// Rule: API-24, API-25.
#[tokio::test]
async fn an_assertion_gives_one_token_until_the_keys_change() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let key = NewKeyPair::generate().unwrap();
    let keys = json!({"keys": [key.public]});
    let body = json!({"name": "Signer", "auth": "private_key_jwt", "jwks": keys});
    let account = TestAccount::made(&ann, "acme", body).await;
    account.give(&ann, "viewer", &["registry:read"]).await;
    let now = service.clock.now().unix_timestamp();
    let assertion = |jti: &str| {
        let claims = json!({"iss": account.id, "sub": account.id, "aud": "https://portolan.test",
            "iat": now, "exp": now + 60, "jti": jti});
        key.sign_assertion(&claims).unwrap().expose().clone()
    };
    let ask = async |jwt: &str| {
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_assertion_type", ASSERTION),
            ("client_assertion", jwt),
            ("resource", ACME),
        ];
        service.browser().post("/oauth/token", &fields).await
    };
    let first = assertion("first");
    let signer = program(&service, &ask(&first).await);
    assert_eq!(status(&signer).await, StatusCode::OK);
    let again = ask(&first).await;
    assert_eq!(again.json()["error"], "invalid_client", "used up");
    let keys = json!({"jwks": {"keys": [NewKeyPair::generate().unwrap().public]}});
    let path = format!("{}/public-keys", account.path);
    let replaced = ann.call(Method::PUT, &path, Some(keys)).await;
    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.text);
    assert!(replaced.json()["api_access"].is_object(), "it stays");
    assert_eq!(status(&signer).await, StatusCode::UNAUTHORIZED);
    let refused = ask(&assertion("second")).await;
    assert_eq!(refused.json()["error"], "invalid_client");
}

/// Rule: API-6, API-23.
#[tokio::test]
async fn access_is_given_by_people_within_their_role() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let account = TestAccount::of(&ann, "acme").await;
    for (body, field) in [
        (
            json!({"role": "owner", "scopes": ["registry:read"]}),
            "role",
        ),
        (json!({"role": "king", "scopes": ["registry:read"]}), "role"),
        (json!({"role": "viewer", "scopes": []}), "scopes"),
        (json!({"role": "viewer", "scopes": ["mcp"]}), "scopes[0]"),
    ] {
        let path = format!("{}/api-access", account.path);
        let refused = ann.call(Method::PUT, &path, Some(body.clone())).await;
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(refused.status, status, "{body} {}", refused.text);
        assert_eq!(refused.json()["error"]["field"], field, "{body}");
    }
    let bob = member(&service, &ann, "bob@acme.example", "admin").await;
    let refused = account.give(&bob, "owner", &["registry:read"]).await;
    assert_eq!(code(&refused), "role_too_strong");
    let given = account.give(&bob, "admin", &["registry:read"]).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    let eve = member(&service, &ann, "eve@acme.example", "developer").await;
    let refused = account.give(&eve, "viewer", &["registry:read"]).await;
    assert_eq!(code(&refused), "forbidden");
    assert_eq!(code(&account.take(&eve).await), "forbidden");

    // No token gives access or takes it, that of the account itself neither.
    let scopes = ["access:write", "workspace:write", "credentials:write"];
    let role = portolan_model::member::Role::Admin;
    let token = of_workspace(&service, &ann, role, &scopes).await;
    account.give(&ann, "admin", &scopes).await;
    let own = account.program(&service).await;
    let path = format!("{}/api-access", account.path);
    for program in [&token, &own] {
        let body = json!({"role": "admin", "scopes": ["audit:read"]});
        for (method, body) in [(Method::PUT, Some(body)), (Method::DELETE, None)] {
            let refused = program.call(method, &path, body).await;
            assert_eq!(code(&refused), "browser_only");
        }
        let secret = program
            .call(Method::POST, &format!("{}/secrets", account.path), None)
            .await;
        assert_eq!(code(&secret), "browser_only");
    }
}

/// Rule: API-22.
#[tokio::test]
async fn tokens_of_accounts_are_limited_by_address_and_workspace() {
    let service = TestService::open().await;
    let ann = service.person("ann@acme.example").await;
    workspace(&ann, "acme").await;
    let account = TestAccount::with(&ann, "viewer", &["registry:read"]).await;
    let thief = service.browser_at("203.0.113.7");
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", account.id.as_str()),
        ("client_secret", "cs_guess"),
        ("resource", ACME),
    ];
    for _ in 0..60 {
        let refused = thief.post("/oauth/token", &fields).await;
        assert_eq!(refused.json()["error"], "invalid_client");
    }
    let refused = thief.post("/oauth/token", &fields).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers.contains_key(header::RETRY_AFTER));

    for _ in 0..60 {
        let answer = account.token(&service).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    let refused = account.token(&service).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    service.wait(Duration::seconds(2));
    let answer = account.token(&service).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}
