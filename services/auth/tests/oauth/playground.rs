//! The console's own client: the playground of a server (PLAY-1 to PLAY-4).

use http::{Method, StatusCode, header};
use portolan_model::member::Role;
use serde_json::json;
use time::Duration;

use crate::harness::{Browser, CHALLENGE, Reply, Scene, VERIFIER, claims, with};

const CLIENT: &str = "cli_portolan_playground";
const CALLBACK: &str = "https://mcp.example.com/playground/callback";
const RESOURCE: &str = "https://mcp.example.com/t/acme/tools/mcp";

fn request() -> Vec<(&'static str, &'static str)> {
    vec![
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", CALLBACK),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", "mcp"),
        ("resource", RESOURCE),
        ("state", "s"),
    ]
}

/// Opens the consent page as a page of the console does: in a window of its own.
async fn from_console(person: &mut Browser, parameters: &[(&str, &str)]) -> Reply {
    let path = person.begin(parameters).await;
    let headers = [("sec-fetch-site", "same-origin")];
    person.get_from(&path, &headers).await
}

async fn scene() -> Scene {
    let mut scene = Scene::new().await;
    scene.ann.server("tools", "published").await;
    scene
}

/// Rule: PLAY-1.
#[tokio::test]
async fn the_playground_is_a_public_client_of_the_console() {
    let mut scene = scene().await;
    let page = from_console(&mut scene.ann, &request()).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for wanted in [
        "Portolan Playground",
        "Verified: made by Portolan",
        "part of this console",
        "this console",
    ] {
        assert!(page.text.contains(wanted), "{wanted}");
    }
    assert!(!page.text.contains("Unverified"), "{}", page.text);

    let code = scene.ann.code(&request()).await;
    let redeem = |verifier: &'static str| {
        let node = scene.node.clone();
        let code = code.clone();
        async move {
            let form = [
                ("grant_type", "authorization_code"),
                ("client_id", CLIENT),
                ("code", code.as_str()),
                ("code_verifier", verifier),
                ("redirect_uri", CALLBACK),
                ("resource", RESOURCE),
            ];
            node.post("/oauth/token", &form).await
        }
    };
    let wrong = redeem("a-verifier-that-is-another-one-and-long-enough").await;
    assert_eq!(wrong.refusal(), (400, "invalid_grant".to_owned()));
    let tokens = redeem(VERIFIER).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.text);
    let tokens = tokens.json();
    assert!(tokens.get("refresh_token").is_none(), "{tokens}");
    assert_eq!(claims(&tokens)["aud"], RESOURCE);
    assert_eq!(claims(&tokens)["client_id"], CLIENT);
}

/// Rule: PLAY-1. Its codes go to one page of the console.
#[tokio::test]
async fn another_redirect_of_the_playground_is_a_page() {
    let mut scene = scene().await;
    for uri in [
        "https://mcp.example.com/playground/callback/",
        "https://evil.example/playground/callback",
        "http://127.0.0.1/playground/callback",
    ] {
        let parameters = with(request(), "redirect_uri", Some(uri));
        scene.ann.authorize(&parameters).await.assert_page();
    }
    let taken = json!({"client_name": "Portolan Playground", "redirect_uris": [CALLBACK]});
    let other = scene.node.register(&taken).await.json();
    assert_ne!(other["client_id"], CLIENT, "an id is never chosen");
}

/// Rule: PLAY-3.
#[tokio::test]
async fn a_remembered_consent_answers_the_console_alone() {
    let mut scene = scene().await;
    let page = from_console(&mut scene.ann, &request()).await;
    assert_eq!(page.status, StatusCode::OK, "the first time is a click");
    scene.ann.code(&request()).await;

    let again = from_console(&mut scene.ann, &request()).await;
    let back = again.back();
    assert_eq!(back["state"], "s");
    assert!(back["code"].starts_with("ac_"), "{back:?}");

    // A link elsewhere, an old browser, and a request for the page itself.
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "none")],
        &[],
    ] {
        let path = scene.ann.begin(&request()).await;
        let page = scene.ann.get_from(&path, headers).await;
        assert_eq!(page.status, StatusCode::OK, "{headers:?}");
    }
    let asks = with(request(), "prompt", Some("consent"));
    let page = from_console(&mut scene.ann, &asks).await;
    assert_eq!(page.status, StatusCode::OK, "AUTH-A10");
    let more = with(request(), "scope", Some("mcp offline_access"));
    let page = from_console(&mut scene.ann, &more).await;
    assert_eq!(page.status, StatusCode::OK, "more than was allowed");
    let wider = with(
        request(),
        "resource",
        Some("https://mcp.example.com/t/acme/mcp"),
    );
    let page = from_console(&mut scene.ann, &wider).await;
    assert_eq!(page.status, StatusCode::OK, "another resource");

    // Another client of the same person never goes on in silence.
    let harness = scene.client.clone();
    scene.ann.tokens(&harness).await;
    let page = from_console(&mut scene.ann, &crate::harness::request(&harness)).await;
    assert_eq!(page.status, StatusCode::OK, "AUTH-N1");
}

/// Rule: PLAY-3. What ends a grant ends what is remembered.
#[tokio::test]
async fn a_disconnected_playground_asks_again() {
    let mut scene = scene().await;
    scene.ann.code(&request()).await;
    let apps = scene.ann.api(Method::GET, "/acme/apps", None).await.json();
    for app in apps["items"].as_array().unwrap() {
        let path = format!("/acme/apps/{}", app["id"].as_str().unwrap());
        let reply = scene.ann.api(Method::DELETE, &path, None).await;
        assert_eq!(reply.status, StatusCode::NO_CONTENT, "{}", reply.text);
    }
    let page = from_console(&mut scene.ann, &request()).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    scene.ann.code(&request()).await;
    scene.node.clock.advance(Duration::days(91));
    let user = scene.ann.user;
    scene.ann.sign_in(user).await;
    let page = from_console(&mut scene.ann, &request()).await;
    assert_eq!(page.status, StatusCode::OK, "grants end after 90 days");
}

/// Rule: PLAY-2.
#[tokio::test]
async fn a_workspace_with_a_list_admits_the_playground_until_it_blocks() {
    let mut scene = scene().await;
    let rule = json!({"rule": "list"});
    let reply = scene
        .ann
        .api(Method::PUT, "/acme/client-rule", Some(rule))
        .await;
    assert!(reply.status.is_success(), "{}", reply.text);
    scene.ann.code(&request()).await;

    let clients = scene.ann.api(Method::GET, "/acme/clients", None).await;
    let clients = clients.json();
    let id = clients["clients"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["client_id"] == CLIENT)
        .unwrap_or_else(|| panic!("{clients}"))["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/acme/clients/{id}/decision");
    let block = json!({"decision": "blocked"});
    let reply = scene.ann.api(Method::PUT, &path, Some(block)).await;
    assert!(reply.status.is_success(), "{}", reply.text);
    let page = from_console(&mut scene.ann, &request()).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("blocked this app"), "{}", page.text);
}

/// Rule: PLAY-3. A role that calls no tools gets no code, remembered or not.
#[tokio::test]
async fn a_member_who_became_a_viewer_gets_no_code() {
    let mut scene = scene().await;
    let mut bob = scene.node.person("bob").await;
    scene.node.join(&bob, scene.acme, Role::Member).await;
    bob.code(&request()).await;
    let path = format!("/acme/members/{}", bob.user);
    let viewer = json!({"role": "viewer"});
    let reply = scene.ann.api(Method::PATCH, &path, Some(viewer)).await;
    assert!(reply.status.is_success(), "{}", reply.text);
    let page = from_console(&mut bob, &request()).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.header(header::LOCATION).is_empty());
    assert!(page.text.contains("viewer"), "{}", page.text);
}
