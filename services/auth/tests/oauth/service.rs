//! Service accounts at the token endpoint, and proof by key
//! (AUTH-C13, AUTH-C16, AUTH-C17, AUTH-T12; MCP-AX-1…MCP-AX-5; CASE-62, CASE-66, CASE-68, CASE-71,
//! CASE-74, CASE-130).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use portolan_cluster::revocations::TokenFacts;
use portolan_keys::{Assertion, digest, ring::NewKeyPair};
use portolan_model::{
    client::{AuthMethod, ClientKind},
    id::ClientId,
};
use portolan_storage::{
    Reason,
    oauth::{
        client_documents::{self, Document},
        clients::{self, Client, NewClient},
    },
};
use serde_json::{Value, json};
use time::Duration;

use crate::{
    harness::{CALLBACK, ISSUER, Node, Reply, Scene, claims, code_request, request, with},
    races,
};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

pub(crate) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

pub(crate) async fn by_secret(node: &Node, id: &str, secret: &str, more: &[(&str, &str)]) -> Reply {
    let mut form = vec![("grant_type", "client_credentials")];
    form.extend_from_slice(more);
    node.post_with("/oauth/token", &form, Some(&basic(id, secret)))
        .await
}

pub(crate) async fn by_assertion(node: &Node, jwt: &str, more: &[(&str, &str)]) -> Reply {
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", jwt),
    ];
    form.extend_from_slice(more);
    node.post("/oauth/token", &form).await
}

pub(crate) fn assertion(node: &Node, key: &NewKeyPair, client: &str, change: &Value) -> String {
    let at = node.clock.now().unix_timestamp();
    let mut claims = json!({"iss": client, "sub": client, "aud": ISSUER, "iat": at, "exp": at + 60,
        "jti": uuid::Uuid::new_v4().to_string()});
    for (member, value) in change.as_object().unwrap() {
        claims[member] = value.clone();
    }
    let jwt = key.sign_assertion(&claims).unwrap().expose().clone();
    assert!(Assertion::read(&jwt).is_ok() || change.get("iss").is_some());
    jwt
}

pub(crate) fn jwks(key: &NewKeyPair) -> Value {
    json!({"keys": [key.public]})
}

pub(crate) fn is_revoked(node: &Node, tokens: &Value) -> bool {
    let token = tokens["access_token"].as_str().unwrap();
    let claims = node
        .state
        .oauth
        .verifier
        .verify(token, node.clock.now())
        .unwrap();
    node.state.oauth.revocations.is_revoked(&TokenFacts {
        token: claims.jti,
        grant: claims.gid,
        subject: claims.sub,
        tenant: claims.tid,
        client: &claims.client_id,
        key: "",
        user_epoch: claims.ep.user,
        tenant_epoch: claims.ep.tenant,
        member_epoch: claims.ep.member,
    })
}

pub(crate) fn refused(reply: &Reply) -> (u16, String) {
    reply.refusal()
}

#[tokio::test]
async fn t12_a_service_account_gets_a_short_token_for_its_own_workspace() {
    let mut scene = Scene::new().await;
    let (id, secret) = scene.ann.service_account(json!({})).await;
    let reply = by_secret(&scene.node, &id, &secret, &[]).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    assert_eq!(reply.header("cache-control"), "no-store", "AUTH-T9");
    let tokens = reply.json();
    assert!(tokens.get("refresh_token").is_none(), "MCP-AX-3");
    assert_eq!(tokens["expires_in"], 900, "AUTH-K2");
    assert_eq!(tokens["scope"], "mcp");
    let claims = claims(&tokens);
    assert_eq!(claims["sub"], id.as_str(), "MCP-AX-5: svc_, never usr_");
    assert!(id.starts_with("svc_"));
    assert_eq!(claims["client_id"], id.as_str());
    assert_eq!(claims["aud"], "https://mcp.example.com/t/acme/mcp");
    assert_eq!(claims["tid"], scene.acme.to_string());
    assert!(claims.get("auth_time").is_none());
    assert!(!is_revoked(&scene.node, &tokens));

    // MCP-AX-4: both ways to send a secret; and the scopes in the token response (AUTH-A8).
    let post = [
        ("grant_type", "client_credentials"),
        ("client_id", id.as_str()),
        ("client_secret", secret.as_str()),
        ("scope", "claudeai offline_access mcp"),
    ];
    let tokens = scene.node.post("/oauth/token", &post).await.json();
    assert_eq!(tokens["scope"], "mcp", "nobody can be away");

    let listed = scene
        .ann
        .api(Method::GET, "/acme/service-accounts", None)
        .await
        .json();
    assert!(listed["items"][0]["last_used_at"].is_string());
    assert!(listed["items"][0]["secrets"][0]["last_used_at"].is_string());
    assert!(
        !listed.to_string().contains(&secret),
        "it was shown once: {listed}"
    );
    let discovery = scene
        .node
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    for grant in ["authorization_code", "refresh_token", "client_credentials"] {
        assert!(
            discovery["grant_types_supported"]
                .as_array()
                .unwrap()
                .contains(&json!(grant)),
            "MCP-AX-1: {grant}"
        );
    }
    assert_eq!(
        discovery["token_endpoint_auth_signing_alg_values_supported"],
        json!(["ES256", "EdDSA", "PS256", "RS256"]),
        "MCP-AX-2"
    );
}

#[tokio::test]
async fn t12_a_resource_of_another_workspace_or_wider_than_the_account_is_refused() {
    let mut scene = Scene::new().await;
    scene.node.workspace(&scene.ann, "beta").await;
    let (id, secret) = scene.ann.service_account(json!({})).await;
    let at = |path: &str| format!("{ISSUER}{path}");
    for (asked, aud) in [
        (at("/t/acme/mcp"), Some(at("/t/acme/mcp"))),
        (
            "HTTPS://MCP.example.com:443/t/acme/mcp/".to_owned(),
            Some(at("/t/acme/mcp")),
        ),
        (at("/t/acme/github/mcp"), Some(at("/t/acme/github/mcp"))),
        (at("/mcp"), Some(at("/mcp"))),
        (at("/"), Some(at("/t/acme/mcp"))),
        (at("/t/beta/mcp"), None),
        (at("/t/doesnotexist/mcp"), None),
        ("https://evil.example/mcp".to_owned(), None),
    ] {
        let reply = by_secret(&scene.node, &id, &secret, &[("resource", &asked)]).await;
        match aud {
            Some(aud) => assert_eq!(claims(&reply.json())["aud"], aud, "{asked}"),
            None => assert_eq!(
                refused(&reply),
                (400, "invalid_target".to_owned()),
                "CASE-95: {asked}"
            ),
        }
    }
    let two = [
        ("resource", "https://mcp.example.com/t/acme/mcp"),
        ("resource", "https://mcp.example.com/mcp"),
    ];
    assert_eq!(
        refused(&by_secret(&scene.node, &id, &secret, &two).await),
        (400, "invalid_target".to_owned())
    );
}

/// Rule: AUTH-T12, API-24, API-25.
#[tokio::test]
async fn access_to_the_api_leaves_tokens_for_mcp_alone() {
    let mut scene = Scene::new().await;
    let (id, secret) = scene.ann.service_account(json!({})).await;
    let acme = format!("{ISSUER}/api/v1/workspaces/acme");
    let api = [("resource", acme.as_str())];
    let mcp = by_secret(&scene.node, &id, &secret, &[]).await.json();
    assert_eq!(
        refused(&by_secret(&scene.node, &id, &secret, &api).await),
        (400, "invalid_target".to_owned()),
        "no access yet"
    );
    let path = format!("/acme/service-accounts/{id}/api-access");
    let rights = json!({"role": "viewer", "scopes": ["registry:read"]});
    let given = scene.ann.api(Method::PUT, &path, Some(rights)).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    let tokens = by_secret(&scene.node, &id, &secret, &api).await.json();
    let token = tokens["access_token"].as_str().unwrap();
    assert!(token.starts_with("ptlw_"), "{token}");
    assert_eq!(tokens["scope"], "registry:read");
    let again = by_secret(&scene.node, &id, &secret, &[]).await.json();
    assert_eq!(claims(&again)["aud"], "https://mcp.example.com/t/acme/mcp");
    let taken = scene.ann.api(Method::DELETE, &path, None).await;
    assert_eq!(taken.status, StatusCode::NO_CONTENT, "{}", taken.text);
    for tokens in [&mcp, &again] {
        assert!(!is_revoked(&scene.node, tokens));
    }
}

#[tokio::test]
async fn case_62_only_a_service_account_may_have_client_credentials() {
    let scene = Scene::new().await;
    let metadata = json!({"client_name": "S", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_basic",
        "grant_types": ["client_credentials", "authorization_code"]});
    let registered = scene.node.register(&metadata).await.json();
    assert_eq!(
        registered["grant_types"],
        json!(["authorization_code", "refresh_token"]),
        "MCP-AC-6: nobody registers for it"
    );
    let (id, secret) = (
        registered["client_id"].as_str().unwrap(),
        registered["client_secret"].as_str().unwrap(),
    );
    assert_eq!(
        refused(&by_secret(&scene.node, id, secret, &[]).await),
        (400, "unauthorized_client".to_owned())
    );
}

#[tokio::test]
async fn c16_a_secret_is_replaced_without_a_pause_and_a_revoked_one_takes_its_tokens_along() {
    let mut scene = Scene::new().await;
    let (id, first) = scene.ann.service_account(json!({})).await;
    let old = by_secret(&scene.node, &id, &first, &[]).await.json();
    let secrets = format!("/acme/service-accounts/{id}/secrets");
    let added = scene.ann.api(Method::POST, &secrets, None).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text);
    let second = added.json()["client_secret"].as_str().unwrap().to_owned();
    for secret in [&first, &second] {
        let reply = by_secret(&scene.node, &id, secret, &[]).await;
        assert_eq!(reply.status, StatusCode::OK, "both work");
    }
    let third = scene.ann.api(Method::POST, &secrets, None).await;
    assert_eq!(third.status, StatusCode::CONFLICT);
    assert_eq!(third.json()["error"]["code"], "too_many_secrets");

    let listed = scene
        .ann
        .api(Method::GET, "/acme/service-accounts", None)
        .await
        .json();
    let shown = &listed["items"][0]["secrets"][0];
    assert!(first.starts_with(shown["hint"].as_str().unwrap()));
    let one = format!("{secrets}/{}", shown["id"].as_str().unwrap());
    let gone = scene.ann.api(Method::DELETE, &one, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    assert!(
        is_revoked(&scene.node, &old),
        "who has the secret may have the token"
    );
    assert_eq!(
        refused(&by_secret(&scene.node, &id, &first, &[]).await),
        (401, "invalid_client".to_owned()),
        "also while it is remembered"
    );
    let new = by_secret(&scene.node, &id, &second, &[]).await.json();
    assert!(!is_revoked(&scene.node, &new));
    assert_eq!(
        scene.ann.api(Method::DELETE, &one, None).await.status,
        StatusCode::NOT_FOUND,
        "once"
    );
}

#[tokio::test]
async fn c16_of_ten_secrets_that_are_added_at_once_one_more_is_there() {
    let mut scene = Scene::new().await;
    let (id, _) = scene.ann.service_account(json!({})).await;
    let path = format!("/acme/service-accounts/{id}/secrets");
    for round in races::rounds("c16_of_ten_secrets_that_are_added_at_once_one_more_is_there") {
        let mut tries = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (mut ann, path) = (scene.ann.clone(), path.clone());
            tries.spawn(async move { ann.api(Method::POST, &path, None).await });
        }
        let mut made = tries.join_all().await;
        made.retain(|reply| reply.status == StatusCode::CREATED);
        assert_eq!(made.len(), 1, "round {round}");
        let second = made[0].json()["secret"]["id"].as_str().unwrap().to_owned();
        let gone = format!("{path}/{second}");
        let gone = scene.ann.api(Method::DELETE, &gone, None).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    }
}

#[tokio::test]
async fn r7_a_switched_off_account_is_refused_everywhere_and_on_again_starts_afresh() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    let (id, secret) = scene.ann.service_account(json!({})).await;
    let before = by_secret(&scene.node, &id, &secret, &[]).await.json();
    by_secret(&second, &id, &secret, &[]).await.json();
    let path = format!("/acme/service-accounts/{id}");
    let off = scene
        .ann
        .api(Method::PATCH, &path, Some(json!({"enabled": false})))
        .await;
    assert_eq!(off.json()["enabled"], false, "{}", off.text);
    assert!(is_revoked(&scene.node, &before));
    let off = by_secret(&scene.node, &id, &secret, &[]).await;
    assert_eq!(refused(&off), (401, "invalid_client".to_owned()));
    assert_eq!(
        off.header("www-authenticate"),
        "Basic realm=\"oauth\"",
        "AUTH-T10: the request used Basic"
    );
    // Another node may not have received the revocation. A token from its cache carries the old
    // epoch, and is invalid at once.
    let stale = by_secret(&second, &id, &secret, &[]).await;
    if stale.status == StatusCode::OK {
        assert!(is_revoked(&scene.node, &stale.json()));
    }
    scene.node.clock.advance(Duration::seconds(6));
    assert_eq!(
        refused(&by_secret(&second, &id, &secret, &[]).await),
        (401, "invalid_client".to_owned()),
        "and after a moment it asks"
    );
    scene
        .ann
        .api(Method::PATCH, &path, Some(json!({"enabled": true})))
        .await;
    let after = by_secret(&scene.node, &id, &secret, &[]).await.json();
    assert!(!is_revoked(&scene.node, &after));
    assert!(
        is_revoked(&scene.node, &before),
        "what was ended stays ended"
    );

    let gone = scene.ann.api(Method::DELETE, &path, None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    assert!(is_revoked(&scene.node, &after));
    assert_eq!(
        refused(&by_secret(&scene.node, &id, &secret, &[]).await),
        (401, "invalid_client".to_owned())
    );
}

#[tokio::test]
async fn c13_a_service_account_proves_itself_by_key() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let (id, secret) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks": jwks(&key)}))
        .await;
    assert_eq!(secret, "", "it has none");
    let node = &scene.node;
    for aud in [json!(ISSUER), json!(format!("{ISSUER}/")), json!([ISSUER])] {
        let jwt = assertion(node, &key, &id, &json!({ "aud": aud }));
        let reply = by_assertion(node, &jwt, &[]).await;
        assert_eq!(reply.status, StatusCode::OK, "CASE-68: {}", reply.text);
    }
    let named = assertion(node, &key, &id, &json!({}));
    let reply = by_assertion(node, &named, &[("client_id", &id)]).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);

    let unauthorized = (401, "invalid_client".to_owned());
    let fresh = |change: Value| assertion(node, &key, &id, &change);
    for (jwt, more, why) in [
        (
            fresh(json!({})),
            vec![("client_id", "svc_other")],
            "CASE-71",
        ),
        (
            fresh(json!({"aud": [ISSUER, "https://other.example"]})),
            vec![],
            "CASE-67",
        ),
        (
            fresh(json!({"aud": format!("{ISSUER}/oauth/token")})),
            vec![],
            "S-17: an endpoint is no name of ours",
        ),
        (
            fresh(json!({"exp": node.clock.now().unix_timestamp() + 3600})),
            vec![],
            "CASE-69",
        ),
        (fresh(json!({"iss": "svc_other"})), vec![], "CASE-71"),
    ] {
        let reply = by_assertion(node, &jwt, &more).await;
        assert_eq!(refused(&reply), unauthorized, "{why}");
    }
    let stranger = NewKeyPair::generate().unwrap();
    let forged = assertion(node, &stranger, &id, &json!({}));
    assert_eq!(
        refused(&by_assertion(node, &forged, &[]).await),
        unauthorized
    );
    let and_secret = [("client_id", id.as_str()), ("client_secret", "cs_x")];
    let both = by_assertion(node, &fresh(json!({})), &and_secret).await;
    assert_eq!(
        refused(&both),
        (400, "invalid_request".to_owned()),
        "AUTH-T14"
    );
    assert_eq!(
        refused(&by_secret(node, &id, "cs_x", &[]).await),
        unauthorized,
        "AUTH-T14: the registered method"
    );

    // With other keys, signatures of the old ones prove nothing any more.
    let waiting = fresh(json!({}));
    let path = format!("/acme/service-accounts/{id}/public-keys");
    let replaced = scene
        .ann
        .api(Method::PUT, &path, Some(json!({"jwks": jwks(&stranger)})))
        .await;
    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.text);
    assert_eq!(
        refused(&by_assertion(&scene.node, &waiting, &[]).await),
        unauthorized
    );
    let good = assertion(&scene.node, &stranger, &id, &json!({}));
    assert_eq!(
        by_assertion(&scene.node, &good, &[]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn case_66_of_two_nodes_at_the_same_instant_one_takes_an_assertion() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    let key = NewKeyPair::generate().unwrap();
    let (id, _) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks": jwks(&key)}))
        .await;
    for round in races::rounds("case_66_of_two_nodes_at_the_same_instant_one_takes_an_assertion") {
        // As many as the account may use in a minute.
        scene.node.clock.advance(Duration::SECOND);
        let jwt = assertion(&scene.node, &key, &id, &json!({}));
        let (one, two) = tokio::join!(
            by_assertion(&scene.node, &jwt, &[]),
            by_assertion(&second, &jwt, &[])
        );
        let mut statuses = [one.status, two.status];
        statuses.sort();
        assert_eq!(
            statuses,
            [StatusCode::OK, StatusCode::UNAUTHORIZED],
            "round {round}"
        );
        assert_eq!(
            refused(&by_assertion(&scene.node, &jwt, &[]).await),
            (401, "invalid_client".to_owned()),
            "and never again"
        );
    }
}

#[tokio::test]
async fn case_74_an_assertion_of_k_is_worth_nothing_with_a_code_of_p() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let (id, _) = scene
        .ann
        .service_account(json!({"auth": "private_key_jwt", "jwks": jwks(&key)}))
        .await;
    let code = scene.ann.code(&request(&scene.client)).await;
    let node = &scene.node;
    let jwt = assertion(node, &key, &id, &json!({}));
    for (client, status) in [(Some(scene.client.as_str()), 401), (None, 400)] {
        let mut form = with(code_request(&scene.client, &code), "client_id", client);
        form.extend([
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", &jwt),
        ]);
        let reply = node.post("/oauth/token", &form).await;
        assert_eq!(reply.status.as_u16(), status, "{}", reply.text);
    }
    assert_eq!(
        node.redeem(&scene.client, &code).await.status,
        StatusCode::OK,
        "the right client still succeeds"
    );
}

#[tokio::test]
async fn case_142_only_a_service_account_may_ask_about_tokens_and_only_of_its_workspace() {
    let mut scene = Scene::new().await;
    let (id, secret) = scene.ann.service_account(json!({})).await;
    let tokens = scene.ann.tokens(&scene.client).await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let node = scene.node.clone();
    let ask = async |token: &str, more: &[(&str, &str)], authorization: Option<&str>| {
        let mut form = vec![("token", token)];
        form.extend_from_slice(more);
        node.post_with("/oauth/introspect", &form, authorization)
            .await
    };
    let unauthorized = (401, "invalid_client".to_owned());
    assert_eq!(refused(&ask(&token, &[], None).await), unauthorized);
    let p = [("client_id", scene.client.as_str())];
    assert_eq!(refused(&ask(&token, &p, None).await), unauthorized, "P");

    let own = basic(&id, &secret);
    let good = ask(&token, &[], Some(&own)).await;
    assert_eq!(good.header("cache-control"), "no-store");
    let good = good.json();
    assert_eq!(good["active"], true, "{good}");
    assert_eq!(good["sub"], claims(&tokens)["sub"]);
    assert_eq!(good["aud"], "https://mcp.example.com/t/acme/mcp");
    assert_eq!(good["token_type"], "Bearer");
    let inactive = json!({"active": false});
    let refresh = tokens["refresh_token"].as_str().unwrap();
    for other in ["garbage", refresh, &format!("{token}x")] {
        assert_eq!(ask(other, &[], Some(&own)).await.json(), inactive);
    }

    // An account of another workspace, and one for another server only.
    node.workspace(&scene.ann, "beta").await;
    let made = scene
        .ann
        .api(
            Method::POST,
            "/beta/service-accounts",
            Some(json!({"name": "B", "auth": "client_secret"})),
        )
        .await
        .json();
    let foreign = basic(
        made["account"]["id"].as_str().unwrap(),
        made["client_secret"].as_str().unwrap(),
    );
    assert_eq!(ask(&token, &[], Some(&foreign)).await.json(), inactive);

    // Its own tokens, until the account is switched off.
    let mine = by_secret(&node, &id, &secret, &[]).await.json();
    let mine = mine["access_token"].as_str().unwrap();
    assert_eq!(ask(mine, &[], Some(&own)).await.json()["active"], true);

    let fields = [("token", refresh), ("client_id", scene.client.as_str())];
    node.post("/oauth/revoke", &fields).await;
    assert_eq!(
        ask(&token, &[], Some(&own)).await.json(),
        inactive,
        "the grant was revoked"
    );
    node.clock.advance(Duration::minutes(16));
    assert_eq!(ask(mine, &[], Some(&own)).await.json(), inactive, "over");
    let path = format!("/acme/service-accounts/{id}");
    scene
        .ann
        .api(Method::PATCH, &path, Some(json!({"enabled": false})))
        .await;
    let off = ask(mine, &[], Some(&own)).await;
    assert_eq!(refused(&off), unauthorized);
    assert_eq!(off.header("www-authenticate"), "Basic realm=\"oauth\"");
}

#[tokio::test]
async fn c17_whoever_holds_an_api_key_may_end_it() {
    let mut scene = Scene::new().await;
    let made = scene
        .ann
        .api(
            Method::POST,
            "/acme/api-keys",
            Some(json!({"name": "Leaked"})),
        )
        .await
        .json();
    let key = made["secret"].as_str().unwrap();
    for _ in 0..2 {
        let reply = scene.node.post("/oauth/revoke", &[("token", key)]).await;
        assert_eq!(
            reply.status,
            StatusCode::OK,
            "nothing is told: {}",
            reply.text
        );
    }
    let left = scene.ann.api(Method::GET, "/acme/api-keys", None).await;
    assert_eq!(left.json()["items"], json!([]));
    let audit = scene.ann.api(Method::GET, "/acme/audit", None).await.json();
    let ends = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["action"] == "api_key.revoked")
        .count();
    assert_eq!(ends, 1, "once");
}

pub(crate) const VENDOR: &str = "https://app.example/client.json";

/// A client with a metadata document, with the members that tests vary.
fn described<'a>(
    auth_method: AuthMethod,
    metadata: &'a Value,
    grant_types: &'a [String],
    redirect_uris: &'a [String],
) -> NewClient<'a> {
    NewClient {
        id: ClientId::generate(),
        client_id: VENDOR,
        kind: ClientKind::Cimd,
        tenant: None,
        name: "Vendor",
        metadata,
        metadata_digest: digest(metadata.to_string().as_bytes()),
        auth_method,
        application_type: "native",
        grant_types,
        redirect_uris,
        secret: None,
        ip_block: None,
    }
}

/// A client with this key, whose document has been read.
pub(crate) async fn key_client(node: &Node, key: &NewKeyPair) -> Client {
    let now = node.clock.now();
    let mut tx = node.store().system(Reason::OAuth).await.unwrap();
    let metadata = json!({"jwks": jwks(key)});
    let grants = ["authorization_code".to_owned(), "refresh_token".to_owned()];
    let uris = ["http://127.0.0.1/callback".to_owned()];
    let new = described(AuthMethod::PrivateKeyJwt, &metadata, &grants, &uris);
    let client = clients::register(&mut tx, &new, now).await.unwrap();
    let document = Document {
        client: client.id,
        digest: digest(b"document"),
        fresh_until: now + Duration::DAY,
        stale_until: now + Duration::DAY,
    };
    client_documents::store(&mut tx, VENDOR, &document, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    client
}

pub(crate) async fn with_proof(node: &Node, key: &NewKeyPair, fields: &[(&str, &str)]) -> Reply {
    let jwt = assertion(node, key, VENDOR, &json!({}));
    let mut form = fields.to_vec();
    form.extend([
        ("client_assertion_type", ASSERTION_TYPE),
        ("client_assertion", jwt.as_str()),
    ]);
    node.post("/oauth/token", &form).await
}

#[tokio::test]
async fn case_130_k8_the_refresh_token_of_a_key_stays_and_is_nothing_without_the_key() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    key_client(&scene.node, &key).await;
    let code = scene.ann.code(&request(VENDOR)).await;
    let node = scene.node.clone();
    assert_eq!(
        refused(&node.redeem(VENDOR, &code).await),
        (401, "invalid_client".to_owned()),
        "and the code is not burned"
    );
    let tokens = with_proof(&node, &key, &code_request(VENDOR, &code)).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.text);
    let first = tokens.json()["refresh_token"].as_str().unwrap().to_owned();
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", first.as_str()),
    ];
    for _ in 0..3 {
        node.clock.advance(Duration::days(20));
        let reply = with_proof(&node, &key, &form).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        assert_eq!(reply.json()["refresh_token"], first.as_str());
    }
    assert_eq!(
        refused(&node.refresh(VENDOR, &first).await),
        (401, "invalid_client".to_owned())
    );
    let stranger = NewKeyPair::generate().unwrap();
    assert_eq!(
        refused(&with_proof(&node, &stranger, &form).await),
        (401, "invalid_client".to_owned())
    );
}

#[tokio::test]
async fn case_75_c5_a_document_that_gives_its_key_up_refreshes_nothing_until_consent() {
    let mut scene = Scene::new().await;
    let key = NewKeyPair::generate().unwrap();
    let client = key_client(&scene.node, &key).await;
    let code = scene.ann.code(&request(VENDOR)).await;
    let node = scene.node.clone();
    let tokens = with_proof(&node, &key, &code_request(VENDOR, &code)).await;
    let refresh = tokens.json()["refresh_token"].as_str().unwrap().to_owned();

    let mut tx = node.store().system(Reason::OAuth).await.unwrap();
    let grants = ["authorization_code".to_owned(), "refresh_token".to_owned()];
    let uris = ["http://127.0.0.1/callback".to_owned()];
    let public = described(AuthMethod::None, &Value::Null, &grants, &uris);
    clients::replace_metadata(&mut tx, client.id, &public)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            refused(&node.refresh(VENDOR, &refresh).await),
            (400, "invalid_grant".to_owned())
        );
    }
    let fresh = scene.ann.tokens(VENDOR).await;
    let again = fresh["refresh_token"].as_str().unwrap();
    assert_eq!(node.refresh(VENDOR, again).await.status, StatusCode::OK);
}
