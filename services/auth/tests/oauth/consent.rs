//! The consent page (CASE-27 to CASE-36, CASE-41, CASE-42, CASE-45, CASE-96, CASE-102).

use http::{Method, StatusCode, header};
use portolan_model::member::Role;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    harness::{ISSUER, Scene, claims, request, with},
    races,
};

#[tokio::test]
async fn n2_the_page_names_client_destination_account_and_workspace() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let page = scene.ann.get(&path).await;
    for wanted in [
        "Harness",
        "self-registered",
        "an app on this computer",
        "ann@example.com",
        "acme",
        "90 days",
    ] {
        assert!(page.text.contains(wanted), "{wanted}");
    }
    assert_eq!(page.header("x-frame-options"), "DENY", "CASE-35");
    let csp = page.header("content-security-policy");
    assert!(csp.contains("frame-ancestors 'none'"), "AUTH-N6");
    assert!(!csp.contains("form-action"), "AUTH-N7");
    assert_eq!(
        page.header("cross-origin-opener-policy"),
        "unsafe-none",
        "AUTH-N8"
    );
    assert_eq!(page.header(header::CACHE_CONTROL), "no-store");
}

#[tokio::test]
async fn case_27_a_form_needs_its_own_token() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let other = scene.ann.begin(&request(&scene.client)).await;
    let foreign = scene.ann.get(&other).await.field("token").unwrap();
    let page = scene.ann.get(&path).await;
    scene.node.clock.advance(Duration::SECOND);
    let workspace = page.field("workspace").unwrap();
    for token in ["", "AAAA", &foreign] {
        let reply = scene
            .ann
            .post(
                &path,
                &[
                    ("token", token),
                    ("workspace", &workspace),
                    ("decision", "approve"),
                ],
            )
            .await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN);
        reply.assert_page();
    }
}

#[tokio::test]
async fn cases_28_and_29_a_form_of_another_site_is_refused() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let token = scene.ann.get(&path).await.field("token").unwrap();
    scene.node.clock.advance(Duration::SECOND);
    let fields = [("token", token.as_str()), ("decision", "approve")];
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[],
    ] {
        assert_eq!(
            scene.ann.post_from(&path, &fields, headers).await.status,
            StatusCode::FORBIDDEN,
            "{headers:?}"
        );
    }
    assert_eq!(
        scene
            .ann
            .post_from(&path, &fields, &[("origin", ISSUER)])
            .await
            .status,
        StatusCode::SEE_OTHER,
        "an old browser"
    );
}

#[tokio::test]
async fn case_30_a_link_to_somebody_elses_request_shows_nothing() {
    let mut scene = Scene::new().await;
    let mut attacker = scene.node.person("mallory").await;
    let path = attacker.begin(&request(&scene.client)).await;
    let foreign = scene.ann.get(&path).await;
    foreign.assert_page();
    let unknown = scene
        .ann
        .get("/oauth/consent/req_0190f2c85d7e7f8090a0b0c0d0e0f000")
        .await;
    assert_eq!(foreign.status, unknown.status);
    assert!(!foreign.text.contains("Harness"));
    let own = scene.ann.begin(&request(&scene.client)).await;
    scene.ann.elsewhere().get(&own).await.assert_page();
}

#[tokio::test]
async fn case_31_after_a_switch_of_accounts_the_page_is_shown_again() {
    let mut scene = Scene::new().await;
    let bob = scene.node.person("bob").await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let page = scene.ann.get(&path).await;
    scene.node.clock.advance(Duration::SECOND);
    let (token, workspace) = (
        page.field("token").unwrap(),
        page.field("workspace").unwrap(),
    );
    scene.ann.sign_in(bob.user).await;
    let fields = [
        ("token", token.as_str()),
        ("workspace", workspace.as_str()),
        ("decision", "approve"),
    ];
    let reply = scene.ann.post(&path, &fields).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(reply.text.contains("bob@example.com"), "{}", reply.text);
}

#[tokio::test]
async fn cases_32_and_33_the_first_decision_stands_and_is_repeated() {
    let mut scene = Scene::new().await;
    for round in races::rounds("cases_32_and_33_the_first_decision_stands_and_is_repeated") {
        let path = scene.ann.begin(&request(&scene.client)).await;
        let page = scene.ann.get(&path).await;
        scene.node.clock.advance(Duration::SECOND);
        let (token, workspace) = (
            page.field("token").unwrap(),
            page.field("workspace").unwrap(),
        );
        let fields = |decision| {
            [
                ("token", token.as_str()),
                ("workspace", workspace.as_str()),
                ("decision", decision),
            ]
        };
        let (mut tab_one, mut tab_two) = (scene.ann.clone(), scene.ann.clone());
        let (one, two) = (fields("approve"), fields("approve"));
        let (one, two) = tokio::join!(tab_one.post(&path, &one), tab_two.post(&path, &two));
        assert_eq!(
            one.back()["code"],
            two.back()["code"],
            "a double click in round {round}"
        );
        assert_eq!(
            scene.ann.post(&path, &fields("deny")).await.back()["code"],
            one.back()["code"],
            "too late to say no"
        );
        let done = scene.ann.get(&path).await;
        assert_eq!(
            done.status,
            StatusCode::OK,
            "AUTH-A11: a reload is no error"
        );
        scene.node.clock.advance(Duration::seconds(121));
        let late = scene.ann.post(&path, &fields("approve")).await;
        assert_eq!(late.status, StatusCode::OK);
        assert!(!late.text.contains("ac_"));
    }
}

#[tokio::test]
async fn case_34_a_request_ends_after_an_hour() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let token = scene.ann.get(&path).await.field("token").unwrap();
    scene.node.clock.advance(Duration::minutes(61));
    scene
        .ann
        .post(&path, &[("token", &token), ("decision", "approve")])
        .await
        .assert_page();
    scene.ann.get(&path).await.assert_page();
}

#[tokio::test]
async fn case_36_a_decision_in_no_time_is_asked_again() {
    let mut scene = Scene::new().await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let page = scene.ann.get(&path).await;
    scene.node.clock.advance(Duration::milliseconds(50));
    let (token, workspace) = (
        page.field("token").unwrap(),
        page.field("workspace").unwrap(),
    );
    let fields = [
        ("token", token.as_str()),
        ("workspace", workspace.as_str()),
        ("decision", "approve"),
    ];
    let reply = scene.ann.post(&path, &fields).await;
    assert_eq!(reply.status, StatusCode::OK);
    scene.node.clock.advance(Duration::milliseconds(400));
    assert!(
        scene
            .ann
            .post(&path, &fields)
            .await
            .back()
            .contains_key("code")
    );
}

#[tokio::test]
async fn a12_a_custom_scheme_gets_a_page_with_the_link() {
    let mut scene = Scene::new().await;
    let callback = "cursor://anysphere.cursor-mcp/oauth/callback";
    let reply = scene
        .node
        .register(&json!({"client_name": "Editor", "redirect_uris": [callback]}))
        .await;
    let client = reply.json()["client_id"].as_str().unwrap().to_owned();
    let path = scene
        .ann
        .begin(&with(request(&client), "redirect_uri", Some(callback)))
        .await;
    let reply = scene.ann.decide(&path, "approve").await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(
        reply.text.contains(&format!("href=\"{callback}?code=ac_")),
        "{}",
        reply.text
    );
    assert!(reply.text.contains("http-equiv=\"refresh\""));
    assert!(
        !reply
            .header("content-security-policy")
            .contains("form-action"),
        "CASE-37"
    );
}

#[tokio::test]
async fn case_41_a_workspace_that_was_not_offered_is_refused() {
    let mut scene = Scene::new().await;
    let bob = scene.node.person("bob").await;
    let beta = scene.node.workspace(&bob, "beta").await;
    scene.node.workspace(&scene.ann, "second").await;
    let path = scene
        .ann
        .begin(&with(request(&scene.client), "resource", None))
        .await;
    let page = scene.ann.get(&path).await;
    scene.node.clock.advance(Duration::SECOND);
    let token = page.field("token").unwrap();
    for workspace in [beta.to_string(), String::new(), "ten_x".to_owned()] {
        let fields = [
            ("token", token.as_str()),
            ("workspace", &workspace),
            ("decision", "approve"),
        ];
        assert_eq!(
            scene.ann.post(&path, &fields).await.status,
            StatusCode::FORBIDDEN,
            "{workspace}"
        );
    }
}

#[tokio::test]
async fn case_42_a_client_that_borrows_a_name_gets_the_red_card() {
    let mut scene = Scene::new().await;
    for (name, red) in [
        ("Claude", true),
        ("Cl\u{430}ude Desktop", true),
        ("Harbour", false),
    ] {
        let client = scene.node.client(name).await;
        let path = scene.ann.begin(&request(&client)).await;
        let page = scene.ann.get(&path).await;
        assert_eq!(page.text.contains("client-card--unverified"), red, "{name}");
    }
    let verified = json!({"client_name": "Claude", "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"]});
    let client = scene.node.register(&verified).await.json()["client_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let callback = Some("https://claude.ai/api/mcp/auth_callback");
    let path = scene
        .ann
        .begin(&with(request(&client), "redirect_uri", callback))
        .await;
    let page = scene.ann.get(&path).await;
    assert!(page.text.contains("made by Anthropic") && page.text.contains("claude.ai"));
}

#[tokio::test]
async fn case_45_a_second_time_is_a_page_again() {
    let mut scene = Scene::new().await;
    scene.ann.tokens(&scene.client).await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    assert!(scene.ann.get(&path).await.field("token").is_some());
}

#[tokio::test]
async fn case_96_a_foreign_workspace_looks_like_one_that_does_not_exist() {
    let scene = Scene::new().await;
    let mut bob = scene.node.person("bob").await;
    scene.node.workspace(&bob, "beta").await;
    let mut pages = Vec::new();
    for slug in ["acme", "doesnotexist"] {
        let resource = format!("{ISSUER}/t/{slug}/mcp");
        let path = bob
            .begin(&with(request(&scene.client), "resource", Some(&resource)))
            .await;
        let page = bob.get(&path).await;
        assert_eq!(page.status, StatusCode::OK);
        let (id, token) = (
            path.rsplit('/').next().unwrap(),
            page.field("token").unwrap(),
        );
        pages.push(page.text.replace(id, "ID").replace(&token, "TOKEN"));
        scene.node.clock.advance(Duration::SECOND);
        let reply = bob
            .post(&path, &[("token", &token), ("decision", "deny")])
            .await;
        assert_eq!(reply.back()["error"], "access_denied", "leaving");
    }
    assert_eq!(pages[0], pages[1], "same bytes");
}

#[tokio::test]
async fn case_102_without_a_resource_the_person_picks_the_workspace() {
    let mut scene = Scene::new().await;
    let second = scene.node.workspace(&scene.ann, "second").await;
    for resource in [None, Some(ISSUER), Some("https://mcp.example.com/")] {
        let path = scene
            .ann
            .begin(&with(request(&scene.client), "resource", resource))
            .await;
        let page = scene.ann.get(&path).await;
        assert!(page.text.contains("type=\"radio\""));
        scene.node.clock.advance(Duration::SECOND);
        let token = page.field("token").unwrap();
        let fields = [
            ("token", token.as_str()),
            ("workspace", &second.to_string()),
            ("decision", "approve"),
        ];
        let code = scene.ann.post(&path, &fields).await.back()["code"].clone();
        let tokens = scene.node.redeem(&scene.client, &code).await.json();
        assert_eq!(
            claims(&tokens)["aud"],
            "https://mcp.example.com/t/second/mcp"
        );
        assert_eq!(claims(&tokens)["tid"], second.to_string());
    }
    // The page proposes the last picked workspace first.
    let path = scene
        .ann
        .begin(&with(request(&scene.client), "resource", None))
        .await;
    assert_eq!(
        scene.ann.get(&path).await.field("workspace"),
        Some(second.to_string())
    );
}

#[tokio::test]
async fn a10_a_fresh_sign_in_is_asked_for_when_the_client_wants_one() {
    let mut scene = Scene::new().await;
    scene.node.clock.advance(Duration::minutes(10));
    for (name, value) in [
        ("prompt", "login"),
        ("prompt", "select_account"),
        ("max_age", "300"),
    ] {
        let path = scene
            .ann
            .begin(&with(request(&scene.client), name, Some(value)))
            .await;
        let reply = scene.ann.get(&path).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{name}={value}");
        assert!(
            reply
                .header(header::LOCATION)
                .starts_with("/login?request=req_")
        );
        scene.ann.sign_in(scene.ann.user).await;
        assert_eq!(
            scene.ann.get(&path).await.status,
            StatusCode::OK,
            "{name}={value}"
        );
        scene.node.clock.advance(Duration::minutes(10));
    }
    let path = scene
        .ann
        .begin(&with(request(&scene.client), "max_age", Some("3600")))
        .await;
    assert_eq!(scene.ann.get(&path).await.status, StatusCode::OK);
}

#[tokio::test]
async fn case_23_two_requests_of_one_browser_finished_in_reverse_order_get_their_own_codes() {
    let mut scene = Scene::new().await;
    let other = scene.node.client("Other").await;
    let first = scene
        .ann
        .begin(&with(request(&scene.client), "state", Some("first")))
        .await;
    let second = scene
        .ann
        .begin(&with(request(&other), "state", Some("second")))
        .await;
    assert_ne!(first, second);
    let back_second = scene.ann.decide(&second, "approve").await.back();
    let back_first = scene.ann.decide(&first, "approve").await.back();
    assert_eq!(back_second["state"], "second");
    assert_eq!(back_first["state"], "first");
    assert_ne!(back_first["code"], back_second["code"]);
    for (client, back, stranger) in [
        (scene.client.clone(), &back_first, &other),
        (other.clone(), &back_second, &scene.client),
    ] {
        assert_eq!(
            scene.node.redeem(stranger, &back["code"]).await.refusal(),
            (400, "invalid_grant".to_owned()),
            "each code is its own client's"
        );
        let reply = scene.node.redeem(&client, &back["code"]).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    }
}

/// The page of a request for this server of acme, and its path.
async fn asked(scene: &mut Scene, slug: &str) -> (String, String) {
    let client = scene.client.clone();
    let resource = format!("{ISSUER}/t/acme/{slug}/mcp");
    let path = scene
        .ann
        .begin(&with(request(&client), "resource", Some(&resource)))
        .await;
    let page = scene.ann.get(&path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    (path, page.text)
}

/// RFC 8707 §2: a server that is created later must not find a consent for it.
#[tokio::test]
async fn s8_nothing_is_granted_for_a_server_that_is_not_there() {
    let mut scene = Scene::new().await;
    scene.ann.server("draft", "draft").await;
    let deleted = scene.ann.server("deleted", "published").await;
    let gone = format!("/acme/servers/{deleted}");
    let reply = scene.ann.api(Method::DELETE, &gone, None).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    for slug in ["ghost", "draft", "deleted"] {
        let (path, page) = asked(&mut scene, slug).await;
        assert!(page.contains("This server doesn’t exist"), "{slug}: {page}");
        assert!(!page.contains("value=\"approve\""), "{slug}");
        let forced = scene.ann.decide(&path, "approve").await;
        assert_eq!(forced.status, StatusCode::FORBIDDEN, "{slug}");
        let back = scene.ann.decide(&path, "deny").await.back();
        assert_eq!(back["error"], "invalid_target", "{slug}");
        assert_eq!(back["state"], "a state & more");
    }

    // A person who is no member gets the same answer in every case.
    scene.ann.server("real", "published").await;
    let mut bob = scene.node.person("bob").await;
    let mut pages = Vec::new();
    for slug in ["real", "ghost"] {
        let resource = format!("{ISSUER}/t/acme/{slug}/mcp");
        let client = scene.client.clone();
        let path = bob
            .begin(&with(request(&client), "resource", Some(&resource)))
            .await;
        let page = bob.get(&path).await;
        assert!(page.text.contains("You have no access"), "{}", page.text);
        let token = page.field("token").unwrap();
        pages.push(page.text.replace(&token, "TOKEN").replace(&path, "PATH"));
        let back = bob.decide(&path, "deny").await.back();
        assert_eq!(back["error"], "access_denied", "AUTH-N11: {slug}");
    }
    assert_eq!(pages[0], pages[1]);

    let (path, _) = asked(&mut scene, "real").await;
    assert!(
        scene
            .ann
            .decide(&path, "approve")
            .await
            .back()
            .contains_key("code")
    );
}

#[tokio::test]
async fn bug_15_the_page_says_that_a_server_is_paused() {
    let mut scene = Scene::new().await;
    scene.ann.server("desk", "paused").await;
    let (path, page) = asked(&mut scene, "desk").await;
    assert!(page.contains("This server is paused"), "{page}");
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(
        reply.back().contains_key("code"),
        "it can be allowed before"
    );
    scene.ann.server("open", "published").await;
    let (_, page) = asked(&mut scene, "open").await;
    assert!(!page.contains("paused"), "{page}");
}

/// Tools of acme: three that read, one that creates and one that deletes.
async fn harbour(scene: &mut Scene) -> Vec<Value> {
    let operation =
        |id: &str| json!({"operationId": id, "responses": {"200": {"description": "ok"}}});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Harbour", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": {
            "/berths": {"get": operation("listBerths"), "post": operation("bookBerth")},
            "/berths/all": {"get": operation("showAll"), "delete": operation("clearBerths")},
            "/tides": {"get": operation("readTides")},
        }
    });
    let input = json!({"kind": "text", "text": document.to_string()});
    let body = json!({"kind": "openapi", "name": "Harbour", "input": input});
    let made = scene
        .ann
        .api(Method::POST, "/acme/sources", Some(body))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let tools = scene.ann.api(Method::GET, "/acme/tools", None).await.json();
    tools["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn n2_the_page_tells_how_many_tools_there_are_and_which_make_changes() {
    let mut scene = Scene::new().await;
    let tools = harbour(&mut scene).await;
    assert_eq!(tools.len(), 5);
    for (slug, wanted) in [
        ("all", None),
        ("reader", Some(false)),
        ("writer", Some(true)),
    ] {
        let id = scene.ann.server(slug, "published").await;
        let chosen: Vec<Value> = tools
            .iter()
            .filter(|tool| {
                let changes = ["bookBerth", "clearBerths"].map(|name| tool["name"] == name);
                wanted.is_none_or(|wanted| changes.contains(&true) == wanted)
            })
            .map(|tool| json!({"tool_id": tool["id"]}))
            .collect();
        let path = format!("/acme/servers/{id}/tools");
        let body = Some(json!({ "tools": chosen }));
        let reply = scene.ann.api(Method::PUT, &path, body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    }
    for (slug, said) in [
        (
            "all",
            "<strong>5 tools</strong>, 2 can make changes, 1 of them can delete or overwrite",
        ),
        ("reader", "<strong>3 tools</strong>, all of them only read"),
        (
            "writer",
            "<strong>2 tools</strong>, all of them can make changes, 1 of them can delete",
        ),
    ] {
        let (_, page) = asked(&mut scene, slug).await;
        assert!(page.contains(said), "{slug}: {page}");
        assert!(!page.contains("<script"), "it works without");
    }
    let (_, page) = asked(&mut scene, "all").await;
    let places = ["clearBerths", "bookBerth", "listBerths"].map(|name| page.find(name));
    assert!(places.iter().all(Option::is_some), "{page}");
    assert!(places.is_sorted(), "what changes most comes first: {page}");

    // A grant for the whole workspace opens its published servers.
    let path = scene.ann.begin(&request(&scene.client)).await;
    let page = scene.ann.get(&path).await.text;
    assert!(page.contains("<strong>5 tools</strong>"), "{page}");
}

#[tokio::test]
async fn another_account_is_asked_for_and_decides_the_same_request() {
    let mut scene = Scene::new().await;
    let bob = scene.node.person("bob").await;
    scene.node.join(&bob, scene.acme, Role::Member).await;
    let path = scene.ann.begin(&request(&scene.client)).await;
    let reply = scene.ann.decide(&path, "switch").await;
    assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
    let login = reply.header(header::LOCATION).to_owned();
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(login, format!("/login?request={id}"));
    assert_eq!(scene.ann.get(&login).await.status, StatusCode::OK, "a form");
    let again = scene.ann.get(&path).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER, "ann is signed out");

    scene.ann.sign_in(bob.user).await;
    let page = scene.ann.get(&path).await;
    assert!(page.text.contains("bob@example.com"), "{}", page.text);
    let reply = scene.ann.decide(&path, "approve").await;
    assert!(reply.back().contains_key("code"));
}

/// REVIEW-S-9: the page shows the scheme beside the app's name, because any program may claim it.
#[tokio::test]
async fn s9_the_page_names_the_scheme_of_an_app() {
    let mut scene = Scene::new().await;
    let callback = "com.example.editor:/callback";
    let registered = scene
        .node
        .register(&json!({"client_name": "Editor", "redirect_uris": [callback]}))
        .await;
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();
    let parameters = with(request(&client), "redirect_uri", Some(callback));
    let path = scene.ann.begin(&parameters).await;
    let page = scene.ann.get(&path).await.text;
    let card = &page[page.find("client-card").unwrap()..page.find("<form").unwrap()];
    assert!(card.contains("com.example.editor:"), "{card}");

    let metadata = json!({"client_name": "Editor", "redirect_uris": ["editor://callback"]});
    let refused = scene.node.register(&metadata).await;
    assert_eq!(refused.refusal(), (400, "invalid_redirect_uri".to_owned()));
}
