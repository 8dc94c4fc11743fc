//! The console's API: the newcomer's path step by step, and what bad input gets.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use portolan_tests::{
    fixture::FixtureApi, mcp::LEGACY, person::Person, scene::Scene, stack::Stack,
};
use reqwest::{Method, StatusCode};
use serde_json::json;

/// Nodes are notified of changes, not within the request that made them: polls the list until it
/// shows the change.
async fn until(scene: &Scene, what: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let listed = scene.mcp.modern("tools/list", json!({})).await?;
        if holds(&listed.text) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "not within 5 seconds: {what}");
    }
}

#[tokio::test]
async fn a_workspace_slug_is_taken_once_and_must_be_well_formed() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let (status, body) = console
        .send(
            Method::POST,
            "/workspaces",
            Some(json!({"name": "Again", "slug": "harbour"})),
        )
        .await?;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::CONFLICT, &json!("slug_taken")),
        "{body}"
    );
    assert_eq!(body["error"]["field"], "slug");
    for slug in ["", "Upper", "a b", "-x", "mcp", "ünder"] {
        let (status, body) = console
            .send(
                Method::POST,
                "/workspaces",
                Some(json!({"name": "Name", "slug": slug})),
            )
            .await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{slug}: {body}");
        assert_eq!(body["error"]["code"], "slug_invalid", "{slug}: {body}");
    }
    Ok(())
}

#[tokio::test]
async fn a_bad_document_is_answered_with_where_and_what() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    for (document, place) in [
        ("{\"openapi\": \"3.1.0\",\n  \"info\": {", "line"),
        ("openapi: 3.1.0\ninfo:\n  title: [", "line"),
        ("{\"swagger\": \"2.0\"}", "message"),
        ("hello", "message"),
        ("", "message"),
        (
            r#"{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{"/a":{"get":{"parameters":[{"$ref":"https://elsewhere.example/p.json"}],"responses":{}}}}}"#,
            "message",
        ),
    ] {
        let (status, body) = console
            .send(
                Method::POST,
                "/workspaces/harbour/imports/preview",
                Some(json!({"input": {"kind": "text", "text": document}})),
            )
            .await?;
        if status == StatusCode::OK {
            // A document with a usable rest: the operation is left out, with the reason.
            assert!(
                body["problems"]
                    .as_array()
                    .is_some_and(|problems| !problems.is_empty())
                    || body["operations"][0]["reason"].is_string(),
                "{document}: {body}"
            );
            continue;
        }
        assert_eq!(
            status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{document}: {body}"
        );
        assert_eq!(body["error"]["code"], "document_invalid", "{body}");
        let problem = &body["error"]["details"]["problems"][0];
        assert!(!problem[place].is_null(), "{document}: {body}");
    }
    Ok(())
}

#[tokio::test]
async fn the_demo_api_is_one_import_away() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let me = console.get("/me").await?;
    let url = me["demo_api"]["openapi_url"]
        .as_str()
        .context("the demo API is offered")?;
    let preview = console
        .post(
            "/workspaces/harbour/imports/preview",
            json!({"input": {"kind": "url", "url": url}}),
        )
        .await?;
    let operations = preview["operations"].as_array().context("operations")?;
    assert!(
        operations
            .iter()
            .filter(|operation| operation["status"] == "tool")
            .count()
            >= 5,
        "{preview}"
    );
    let source = console
        .post(
            "/workspaces/harbour/sources",
            json!({"name": "Demo", "kind": "openapi", "input": {"kind": "url", "url": url}}),
        )
        .await?;
    assert!(
        source["tool_count"]
            .as_u64()
            .is_some_and(|count| count >= 5),
        "{source}"
    );
    Ok(())
}

#[tokio::test]
async fn a_tool_can_be_tried_renamed_disabled_and_the_server_follows() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let base = format!("/workspaces/{}", scene.published.workspace);
    let found = console
        .get(&format!("{base}/tools?query=echo_message"))
        .await?;
    let id = found["items"][0]["id"]
        .as_str()
        .context("an id")?
        .to_owned();
    let tried = console
        .post(
            &format!("{base}/tools/{id}/try"),
            json!({"arguments": {"message": "on the page"}}),
        )
        .await?;
    assert_eq!(
        (&tried["ok"], &tried["structured_content"]["message"]),
        (&json!(true), &json!("on the page")),
        "{tried}"
    );
    let tried = console
        .post(&format!("{base}/tools/{id}/try"), json!({"arguments": {}}))
        .await?;
    assert_eq!(tried["ok"], false, "{tried}");
    assert!(
        tried["errors"]
            .as_array()
            .is_some_and(|errors| !errors.is_empty()),
        "{tried}"
    );

    console
        .expect(
            Method::PATCH,
            &format!("{base}/tools/{id}"),
            Some(json!({"description": "Shouts it back"})),
        )
        .await?;
    until(&scene, "clients see the change", |list| {
        list.contains("Shouts it back")
    })
    .await?;
    let changed = console
        .post(
            &format!("{base}/tools/enabled"),
            json!({"ids": [id], "enabled": false}),
        )
        .await?;
    assert_eq!(changed["changed"], 1);
    until(&scene, "a disabled tool is not offered", |list| {
        !list.contains("\"echo_message\"")
    })
    .await?;
    let called = scene
        .mcp
        .modern(
            "tools/call",
            json!({"name": "echo_message", "arguments": {"message": "x"}}),
        )
        .await?;
    assert_eq!(called.code(), -32602, "{}", called.text);
    Ok(())
}

#[tokio::test]
async fn a_paused_server_is_closed_and_opens_again() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let server = format!(
        "/workspaces/{}/servers/{}",
        scene.published.workspace, scene.published.server_id
    );
    console.post(&format!("{server}/pause"), json!({})).await?;
    let lists = |text: &str| text.contains("\"tools\"");
    // REVIEW-UX-BUG-15: the holder of a token for it gets the message.
    let is_paused = |text: &str| !lists(text) && text.contains("This server is paused.");
    until(&scene, "a paused server says so", is_paused).await?;
    console
        .post(&format!("{server}/publish"), json!({}))
        .await?;
    until(&scene, "a published server lists its tools", lists).await
}

/// REVIEW-UX-BUG-5: the time of the last request, and not of the last token.
#[tokio::test]
async fn bug_5_an_app_was_last_used_when_it_last_asked_for_something() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let path = format!("/workspaces/{}/apps", scene.published.workspace);
    let deadline = Instant::now() + Duration::from_secs(10);
    let before = console.get(&path).await?;
    assert_eq!(
        before["items"].as_array().map(Vec::len),
        Some(1),
        "{before}"
    );
    assert!(
        before["items"][0]["last_used_at"].is_null(),
        "a token is no use: {before}"
    );
    scene.mcp.modern("tools/list", json!({})).await?;
    loop {
        let app = console.get(&path).await?["items"][0].clone();
        if app["last_used_at"].is_string() {
            break;
        }
        anyhow::ensure!(Instant::now() < deadline, "not within 10 seconds: {app}");
    }
    let clients = format!("/workspaces/{}/clients", scene.published.workspace);
    let clients = console.get(&clients).await?;
    assert!(
        clients["clients"][0]["last_used_at"].is_string(),
        "{clients}"
    );
    Ok(())
}

#[tokio::test]
async fn secrets_go_in_and_never_come_out() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let base = format!("/workspaces/{}/sources", scene.published.workspace);
    for path in [
        base.clone(),
        format!("{base}/{}", scene.published.source_id),
    ] {
        let body = console.get(&path).await?.to_string();
        assert!(!body.contains(portolan_tests::fixture::TOKEN), "{path}");
        assert!(body.contains("bearer"), "{path} says which kind is set");
    }
    assert!(
        !scene.stack.log().contains(portolan_tests::fixture::TOKEN),
        "L: nothing secret in the log"
    );
    assert!(!scene.stack.log().contains(&scene.tokens.access));
    Ok(())
}

#[tokio::test]
async fn a_reimport_shows_what_would_change_before_it_does() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let source = format!(
        "/workspaces/{}/sources/{}",
        scene.published.workspace, scene.published.source_id
    );
    let mut document = scene.fixture.document();
    let paths = document["paths"].as_object_mut().context("paths")?;
    paths.remove("/headers");
    paths.insert("/tides".to_owned(), json!({"get": {"operationId": "read_tides", "summary": "Tides", "responses": {"200": {"description": "ok"}}}}));
    let input = json!({"kind": "text", "text": document.to_string()});
    let preview = console
        .post(
            &format!("{source}/reimport/preview"),
            json!({"input": input}),
        )
        .await?;
    assert_eq!(
        preview["added"].as_array().map(Vec::len),
        Some(1),
        "{preview}"
    );
    assert_eq!(
        preview["removed"][0]["tool_name"], "show_headers",
        "{preview}"
    );
    assert_eq!(
        preview["removed"][0]["used_by_servers"],
        json!(["fixture"]),
        "{preview}"
    );
    let (status, body) = console
        .send(
            Method::POST,
            &format!("{source}/reimport"),
            Some(json!({"input": input, "digest": "another"})),
        )
        .await?;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::CONFLICT, &json!("document_changed")),
        "{body}"
    );
    console
        .post(
            &format!("{source}/reimport"),
            json!({"input": input, "digest": preview["digest"]}),
        )
        .await?;
    until(&scene, "what is gone is not offered", |list| {
        !list.contains("\"show_headers\"")
    })
    .await
}

#[tokio::test]
async fn a_tool_made_by_hand_works_like_an_imported_one() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let source = console
        .post(
            "/workspaces/harbour/sources",
            json!({"name": "By hand", "kind": "http", "base_url": fixture.base_url()}),
        )
        .await?;
    let id = source["id"].as_str().context("an id")?.to_owned();
    console
        .expect(
            Method::PUT,
            &format!("/workspaces/harbour/sources/{id}/credential"),
            Some(json!({"kind": "bearer", "token": portolan_tests::fixture::TOKEN})),
        )
        .await?;
    let tool = console
        .post(
            &format!("/workspaces/harbour/sources/{id}/tools"),
            json!({"name": "find_thing", "description": "Finds a thing", "method": "GET", "path": "/things/{id}", "enabled": true,
                   "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]}),
        )
        .await?;
    let published = console
        .publish("harbour", "by-hand", &id, vec![tool["id"].clone()])
        .await?;
    let client = portolan_tests::oauth::OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&ann, &published.url).await?;
    let mcp = portolan_tests::mcp::McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    let answer = session
        .request(
            "tools/call",
            json!({"name": "find_thing", "arguments": {"id": 5}}),
        )
        .await?;
    assert!(answer.text.contains("thing 5"), "{}", answer.text);
    Ok(())
}

#[tokio::test]
async fn calls_and_changes_leave_a_trace_that_the_owner_can_read() -> Result<()> {
    let scene = Scene::new().await?;
    scene
        .mcp
        .modern(
            "tools/call",
            json!({"name": "get_thing", "arguments": {"id": 404}}),
        )
        .await?;
    let console = scene.owner.console();
    let workspace = &scene.published.workspace;
    // Written off the request's path: poll until it is there.
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let calls = console
            .get(&format!("/workspaces/{workspace}/calls"))
            .await?;
        if let Some(call) = calls["items"].as_array().and_then(|items| items.first()) {
            assert_eq!(
                (&call["tool_name"], &call["status"]),
                (&json!("get_thing"), &json!(404)),
                "{call}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "no call was logged");
    }
    let audit = console
        .get(&format!("/workspaces/{workspace}/audit"))
        .await?;
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .context("items")?
        .iter()
        .filter_map(|item| item["action"].as_str())
        .collect();
    assert!(
        actions.iter().any(|action| action.contains("publish")),
        "{actions:?}"
    );
    let overview = console
        .get(&format!("/workspaces/{workspace}/overview"))
        .await?;
    assert_eq!(overview["servers_published"], 1, "{overview}");
    Ok(())
}
