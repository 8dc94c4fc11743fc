//! The consent page (cases 27–36, 41, 42, 45, 96, 102).

use http::{StatusCode, header};
use serde_json::json;
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
        "registered by itself",
        "an app on this computer",
        "ann@example.com",
        "acme",
        "90 days",
    ] {
        assert!(page.text.contains(wanted), "{wanted}");
    }
    assert_eq!(page.header("x-frame-options"), "DENY", "case 35");
    let csp = page.header("content-security-policy");
    assert!(csp.contains("frame-ancestors 'none'"), "N6");
    assert!(!csp.contains("form-action"), "N7");
    assert_eq!(
        page.header("cross-origin-opener-policy"),
        "unsafe-none",
        "N8"
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
        assert_eq!(done.status, StatusCode::OK, "A11: a reload is no error");
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
        "case 37"
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
    // The one that was picked is proposed first the next time.
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
