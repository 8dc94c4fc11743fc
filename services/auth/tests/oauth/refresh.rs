//! Refresh tokens (CASE-119 to CASE-125, CASE-127, CASE-129).

use std::collections::BTreeSet;

use http::StatusCode;
use portolan_keys::{SecretToken, TokenForm};
use portolan_storage::{Reason, oauth::refresh_tokens};
use time::Duration;

use crate::{
    harness::{Scene, claims, request, with},
    races,
    statements::Statements,
};

fn refused(code: &str) -> (u16, String) {
    (400, code.to_owned())
}

async fn first(scene: &mut Scene) -> String {
    let client = scene.client.clone();
    scene.ann.tokens(&client).await["refresh_token"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Refreshes and returns the new refresh token.
async fn next(scene: &Scene, token: &str) -> String {
    let reply = scene.node.refresh(&scene.client, token).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    reply.json()["refresh_token"].as_str().unwrap().to_owned()
}

/// The number of tokens of the family without a successor.
pub(crate) async fn live_branches(scene: &Scene, token: &str) -> i64 {
    let digest = SecretToken::parse(TokenForm::Refresh, token)
        .unwrap()
        .digest();
    let mut tx = scene.node.store().system(Reason::OAuth).await.unwrap();
    let locked = refresh_tokens::lock(&mut tx, &digest)
        .await
        .unwrap()
        .unwrap();
    refresh_tokens::live_tokens(&mut tx, locked.family)
        .await
        .unwrap()
}

async fn assert_dead(scene: &Scene, token: &str) {
    assert_eq!(
        scene.node.refresh(&scene.client, token).await.refusal(),
        refused("invalid_grant")
    );
}

#[tokio::test]
async fn case_119_fifty_processes_with_one_token_all_go_on_with_one_successor() {
    let mut scene = Scene::new().await;
    let second = scene.second_node().await;
    let mut token = first(&mut scene).await;
    for round in
        races::rounds("case_119_fifty_processes_with_one_token_all_go_on_with_one_successor")
    {
        // AUTH-K17: sixty in a minute.
        scene.node.clock.advance(Duration::MINUTE);
        let attempts = (0..races::crowd(round, 50)).map(|at| {
            let node = if at % 2 == 0 { &scene.node } else { &second };
            node.refresh(&scene.client, &token)
        });
        let mut successors = BTreeSet::new();
        for reply in futures_util::future::join_all(attempts).await {
            assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
            successors.insert(reply.json()["refresh_token"].as_str().unwrap().to_owned());
        }
        assert_eq!(successors.len(), 1, "round {round}");
        assert_eq!(live_branches(&scene, &token).await, 1, "round {round}");
        let head = successors.pop_first().unwrap();
        assert_ne!(head, token);
        token = head;
    }
    assert_ne!(next(&scene, &token).await, token);
}

#[tokio::test]
async fn case_120_the_window_closes_after_two_minutes() {
    let mut scene = Scene::new().await;
    let one = first(&mut scene).await;
    let two = next(&scene, &one).await;
    scene.node.clock.advance(Duration::seconds(119));
    assert_eq!(next(&scene, &one).await, two, "the same successor");
    let three = next(&scene, &two).await;
    scene.node.clock.advance(Duration::seconds(2));
    assert_dead(&scene, &one).await;
    assert_dead(&scene, &three).await;
    let mut tx = scene
        .node
        .store()
        .system(Reason::Revocations)
        .await
        .unwrap();
    let news = portolan_storage::oauth::revocations::live(&mut tx, None, scene.node.clock.now())
        .await
        .unwrap();
    let entries = news.entries.len();
    assert_eq!(entries, 1, "committed, although the request was refused");
    let mails = portolan_storage::platform::mails::newest(&mut tx, 10)
        .await
        .unwrap();
    assert_eq!(mails.len(), 1, "AUTH-K11: the person is told");
    assert!(mails[0].body.contains("Harness"));
}

#[tokio::test]
async fn case_121_a_lost_answer_is_given_again_hours_later() {
    let mut scene = Scene::new().await;
    let one = first(&mut scene).await;
    let lost = next(&scene, &one).await;
    scene.node.clock.advance(Duration::hours(6));
    assert_eq!(next(&scene, &one).await, lost);
    scene.node.clock.advance(Duration::hours(19));
    assert_dead(&scene, &one).await;
    assert_dead(&scene, &lost).await;
}

/// REVIEW-S-10: a thief of an idle client's token does not receive its successor for a day.
#[tokio::test]
async fn s10_beyond_two_minutes_a_lost_answer_is_given_again_to_the_same_network_only() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let from = async |scene: &Scene, address: &str, token: &str| {
        let reply = scene.node.refresh_from(address, &client, token).await;
        (reply.status == StatusCode::OK)
            .then(|| reply.json()["refresh_token"].as_str().unwrap().to_owned())
    };
    for (own, same, other) in [
        ("203.0.113.7", "203.0.113.99", "203.0.114.7"),
        ("2001:db8:1:2::3", "2001:db8:1:2:f::9", "2001:db8:1:3::3"),
    ] {
        let one = first(&mut scene).await;
        let two = from(&scene, own, &one).await.unwrap();
        scene.node.clock.advance(Duration::seconds(120));
        let led = from(&scene, other, &one).await;
        assert_eq!(
            led.as_ref(),
            Some(&two),
            "AUTH-K9: two minutes are everybody's"
        );
        scene.node.clock.advance(Duration::hours(6));
        assert_eq!(from(&scene, same, &one).await, Some(two.clone()), "{same}");
        assert_eq!(from(&scene, other, &one).await, None, "{other}");
        assert_eq!(
            from(&scene, own, &two).await,
            None,
            "AUTH-K11: the family is over"
        );
    }
}

/// REVIEW-S-10: the person sees that another network repeated a refresh, and the connections that
/// ended because of it.
#[tokio::test]
async fn s10_connected_apps_tell_of_a_renewal_that_was_repeated_from_elsewhere() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let told = "from another network at";
    let one = first(&mut scene).await;
    let two = next(&scene, &one).await;
    next(&scene, &one).await;
    let page = scene.ann.get("/account/apps").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(!page.text.contains(told), "the same network is no news");

    let led = scene.node.refresh_from("198.51.100.1", &client, &one).await;
    assert_eq!(led.json()["refresh_token"], two.as_str());
    assert!(scene.ann.get("/account/apps").await.text.contains(told));

    scene.node.clock.advance(Duration::seconds(121));
    let refused = scene.node.refresh_from("198.51.100.1", &client, &one).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let page = scene.ann.get("/account/apps").await.text;
    assert!(page.contains("Harness was disconnected"), "{page}");
    assert!(!page.contains(told), "it is not among the living any more");
}

#[tokio::test]
async fn case_122_two_generations_back_leads_to_the_head_inside_the_window() {
    let mut scene = Scene::new().await;
    let one = first(&mut scene).await;
    let two = next(&scene, &one).await;
    let three = next(&scene, &two).await;
    let four = next(&scene, &three).await;
    assert_eq!(next(&scene, &one).await, four);
    assert_eq!(next(&scene, &two).await, four);
    assert_eq!(next(&scene, &three).await, four);
    scene.node.clock.advance(Duration::seconds(121));
    assert_dead(&scene, &two).await;
    assert_dead(&scene, &four).await;
}

#[tokio::test]
async fn case_123_another_client_is_refused_and_does_no_harm() {
    let mut scene = Scene::new().await;
    let token = first(&mut scene).await;
    let other = scene.node.client("Other").await;
    assert_eq!(
        scene.node.refresh(&other, &token).await.refusal(),
        refused("invalid_grant")
    );
    next(&scene, &token).await;
}

#[tokio::test]
async fn cases_124_and_125_scope_at_refresh() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let mut token = first(&mut scene).await;
    for scope in [
        "mcp offline_access",
        "offline_access",
        "openid profile",
        "mcp",
    ] {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client.as_str()),
            ("refresh_token", &token),
            ("scope", scope),
        ];
        let reply = scene.node.post("/oauth/token", &fields).await;
        assert_eq!(reply.status, StatusCode::OK, "{scope}: {}", reply.text);
        assert_eq!(reply.json()["scope"], "mcp");
        token = reply.json()["refresh_token"].as_str().unwrap().to_owned();
    }
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", &token),
        ("scope", "\""),
    ];
    assert_eq!(
        scene.node.post("/oauth/token", &fields).await.refusal(),
        refused("invalid_scope")
    );
    next(&scene, &token).await;

    // Narrower now, and full again at the next refresh.
    let parameters = with(request(&client), "scope", Some("mcp offline_access"));
    let code = scene.ann.code(&parameters).await;
    let token = scene.node.redeem(&client, &code).await.json()["refresh_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", &token),
        ("scope", "mcp"),
    ];
    let narrow = scene.node.post("/oauth/token", &fields).await.json();
    assert_eq!(narrow["scope"], "mcp");
    let full = scene
        .node
        .refresh(&client, narrow["refresh_token"].as_str().unwrap())
        .await
        .json();
    assert_eq!(full["scope"], "mcp offline_access");
}

#[tokio::test]
async fn k15_resource_at_refresh_is_the_same_or_below() {
    let mut scene = Scene::new().await;
    let client = scene.client.clone();
    let token = first(&mut scene).await;
    let ask = async |token: &str, resource: &str| {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client.as_str()),
            ("refresh_token", token),
            ("resource", resource),
        ];
        scene.node.post("/oauth/token", &fields).await
    };
    for wrong in [
        "https://mcp.example.com/t/beta/mcp",
        "https://mcp.example.com/mcp",
        "https://evil.example/mcp",
    ] {
        assert_eq!(
            ask(&token, wrong).await.refusal(),
            refused("invalid_target"),
            "{wrong}"
        );
    }
    let narrow = ask(&token, "https://mcp.example.com/t/acme/github/mcp")
        .await
        .json();
    assert_eq!(
        claims(&narrow)["aud"],
        "https://mcp.example.com/t/acme/github/mcp"
    );
    let token = narrow["refresh_token"].as_str().unwrap();
    let same = ask(token, "https://mcp.example.com/t/acme/mcp/")
        .await
        .json();
    assert_eq!(claims(&same)["aud"], "https://mcp.example.com/t/acme/mcp");
}

#[tokio::test]
async fn k17_a_loop_is_told_to_wait_and_loses_nothing() {
    let mut scene = Scene::new().await;
    let mut token = first(&mut scene).await;
    let mut refusal = None;
    for _ in 0..61 {
        let reply = scene.node.refresh(&scene.client, &token).await;
        if reply.status == StatusCode::OK {
            token = reply.json()["refresh_token"].as_str().unwrap().to_owned();
        } else {
            refusal = Some(reply);
            break;
        }
    }
    let refusal = refusal.expect("the sixty-first");
    assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refusal.header("retry-after").parse::<u32>().is_ok());
    scene.node.clock.advance(Duration::MINUTE);
    next(&scene, &token).await;
}

#[tokio::test]
async fn case_127_a_family_ends_when_idle_and_after_ninety_days() {
    let mut scene = Scene::new().await;
    let token = first(&mut scene).await;
    scene.node.clock.advance(Duration::days(30));
    assert_dead(&scene, &token).await;

    let user = scene.ann.user;
    scene.ann.sign_in(user).await;
    let mut token = first(&mut scene).await;
    for _ in 0..4 {
        scene.node.clock.advance(Duration::days(20));
        portolan_oauth::jwks::rotate(&scene.node.state)
            .await
            .unwrap();
        token = next(&scene, &token).await;
    }
    scene.node.clock.advance(Duration::days(10));
    assert_dead(&scene, &token).await;
}

#[tokio::test]
async fn case_129_a_token_with_a_broken_checksum_is_refused_without_a_question_about_it() {
    let mut scene = Scene::new().await;
    let token = first(&mut scene).await;
    let (statements, _listening) = Statements::listen();
    // The queries that find the client, which every request needs (AUTH-C12).
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", scene.client.as_str()),
    ];
    let reply = scene.node.post("/oauth/token", &fields).await;
    assert_eq!(reply.refusal(), refused("invalid_request"));
    let known = statements.take();
    assert!(!known.is_empty(), "the driver tells nothing");

    let swapped = |at: usize| {
        let other = if token.as_bytes()[at] == b'A' {
            "B"
        } else {
            "A"
        };
        format!("{}{other}{}", &token[..at], &token[at + 1..])
    };
    let broken = [
        swapped(token.len() - 1),
        swapped("rt_".len()),
        swapped(token.len() / 2),
        token[..token.len() - 1].to_owned(),
        format!("{token}A"),
        token.replacen("rt_", "ac_", 1),
        "rt_".to_owned(),
    ];
    for broken in &broken {
        assert_dead(&scene, broken).await;
        assert_eq!(statements.take(), known, "AUTH-K6: {broken}");
    }
    next(&scene, &token).await;
    let asked = statements.take();
    assert!(
        asked.len() > known.len() && asked.iter().any(|text| text.contains("refresh_")),
        "{asked:?}"
    );
}
