//! Tools that call an API: arguments in, every kind of answer out, and an API that misbehaves.

use std::time::{Duration, Instant};

use anyhow::Result;
use portolan_tests::{
    mcp::{LEGACY, McpClient},
    scene::Scene,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn call(session: &McpClient, name: &str, arguments: Value) -> Result<Value> {
    let answer = session
        .request("tools/call", json!({"name": name, "arguments": arguments}))
        .await?;
    assert_eq!(answer.status, StatusCode::OK, "{name}: {}", answer.text);
    Ok(answer.json)
}

fn text(message: &Value) -> String {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn tl_a_call_reaches_the_api_with_the_credential_and_brings_its_answer() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = call(&session, "echo_message", json!({"message": "ahoy"})).await?;
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"message": "ahoy", "length": 4})
    );
    assert_eq!(
        serde_json::from_str::<Value>(&text(&answer))?["message"],
        "ahoy"
    );
    assert_ne!(answer["result"]["isError"], true);
    // The client's token stays here; the API sees its own.
    let seen = call(&session, "show_headers", json!({})).await?;
    assert!(
        !text(&seen).contains(&scene.tokens.access),
        "the client's token must not reach the API"
    );
    assert!(!text(&seen).to_ascii_lowercase().contains("mcp-session-id"));
    // Modern, without a session.
    let modern = scene
        .mcp
        .modern(
            "tools/call",
            json!({"name": "echo_message", "arguments": {"message": "ahoy"}}),
        )
        .await?;
    assert_eq!(
        modern.json["result"]["structuredContent"]["length"], 4,
        "{}",
        modern.text
    );
    Ok(())
}

#[tokio::test]
async fn tl_parameters_travel_in_the_style_the_document_names() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = call(
        &session,
        "search_things",
        json!({"q": "a & b", "tags": ["red", "blue"], "filter": {"colour": "grün"}}),
    )
    .await?;
    let query = &answer["result"]["structuredContent"]["query"];
    let expected = json!([
        ["q", "a & b"],
        ["tags", "red,blue"],
        ["filter[colour]", "grün"]
    ]);
    for pair in expected.as_array().expect("pairs") {
        assert!(
            query.as_array().is_some_and(|found| found.contains(pair)),
            "{pair} in {query}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn tl_wrong_arguments_are_named_by_their_path_and_nothing_is_called() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = session
        .request(
            "tools/call",
            json!({"name": "get_thing", "arguments": {"id": "seven"}}),
        )
        .await?;
    assert!(answer.text.contains("id"), "{}", answer.text);
    assert!(
        answer.json["result"]["isError"] == true || answer.code() == -32602,
        "{}",
        answer.text
    );
    let answer = session
        .request(
            "tools/call",
            json!({"name": "echo_message", "arguments": {}}),
        )
        .await?;
    assert!(answer.text.contains("message"), "{}", answer.text);
    assert_eq!(
        scene.fixture.count("/echo"),
        0,
        "a call that cannot be right is not made"
    );
    let answer = session
        .request(
            "tools/call",
            json!({"name": "no_such_tool", "arguments": {}}),
        )
        .await?;
    assert_eq!(answer.code(), -32602, "{}", answer.text);
    Ok(())
}

#[tokio::test]
async fn tl_each_media_type_becomes_its_content() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = call(&session, "test_simple_text", json!({})).await?;
    assert_eq!(text(&answer), "This is a simple text response for testing.");
    let answer = call(&session, "test_image_content", json!({})).await?;
    assert_eq!(answer["result"]["content"][0]["type"], "image");
    assert_eq!(answer["result"]["content"][0]["mimeType"], "image/png");
    let answer = call(&session, "test_audio_content", json!({})).await?;
    assert_eq!(answer["result"]["content"][0]["type"], "audio");
    let answer = call(&session, "test_embedded_resource", json!({})).await?;
    assert_eq!(answer["result"]["content"][0]["type"], "resource");
    assert!(
        answer["result"]["content"][0]["resource"]["blob"].is_string(),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn tl_an_api_that_fails_is_a_tool_error_with_its_status() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    for (tool, arguments, expected) in [
        ("get_thing", json!({"id": 404}), "404"),
        ("broken_answer", json!({}), "500"),
        ("broken_answer", json!({}), "the harbour is closed"),
        ("flaky_order", json!({}), "503"),
    ] {
        let answer = call(&session, tool, arguments).await?;
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        assert!(
            text(&answer).contains(expected),
            "{tool}: {}",
            text(&answer)
        );
    }
    assert_eq!(
        scene.fixture.count("/flaky"),
        1,
        "an unsafe method is not retried"
    );
    Ok(())
}

#[tokio::test]
async fn tl_a_huge_a_broken_and_a_redirecting_api_do_no_harm() -> Result<()> {
    let scene = Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = call(&session, "huge_answer", json!({})).await?;
    assert_eq!(
        answer["result"]["isError"], true,
        "the limit is said, not silently cut"
    );
    assert!(text(&answer).len() < 10_000, "{}", text(&answer).len());
    let answer = call(&session, "garbage_answer", json!({})).await?;
    assert!(
        answer["result"]["content"][0]["text"].is_string(),
        "{answer}"
    );
    let answer = call(&session, "elsewhere_answer", json!({})).await?;
    assert!(
        !text(&answer).contains("ami-id"),
        "redirects do not lead to metadata services: {}",
        text(&answer)
    );
    // After all that, ordinary calls still work.
    let answer = call(&session, "echo_message", json!({"message": "still here"})).await?;
    assert_eq!(
        answer["result"]["structuredContent"]["message"],
        "still here"
    );
    Ok(())
}

#[tokio::test]
async fn tl_a_slow_api_is_given_up_at_the_deadline() -> Result<()> {
    let scene = Scene::new().await?;
    let (workspace, source) = (&scene.published.workspace, &scene.published.source_id);
    scene
        .owner
        .console()
        .expect(Method::PATCH, &format!("/workspaces/{workspace}/sources/{source}"), Some(json!({"settings": {"timeout_ms": 1000, "max_response_bytes": 1_000_000, "follow_redirects": "none"}})))
        .await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let began = Instant::now();
    let answer = call(&session, "slow_answer", json!({})).await?;
    assert_eq!(answer["result"]["isError"], true);
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "took {:?}",
        began.elapsed()
    );
    Ok(())
}

#[tokio::test]
async fn tl_an_api_that_is_down_is_said_so() -> Result<()> {
    let Scene {
        fixture,
        stack: _stack,
        mcp,
        ..
    } = Scene::new().await?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    drop(fixture);
    // The fixture stops in its own thread; until it has, a call may still be answered.
    let mut last = Value::Null;
    for _ in 0..50 {
        last = call(&session, "echo_message", json!({"message": "anybody?"})).await?;
        if last["result"]["isError"] == true {
            assert!(!text(&last).is_empty());
            return Ok(());
        }
    }
    panic!("the API is gone, yet {last}");
}

#[tokio::test]
async fn annotations_follow_the_method() -> Result<()> {
    let scene = Scene::new().await?;
    let answer = scene.mcp.modern("tools/list", json!({})).await?;
    let tools = answer.json["result"]["tools"]
        .as_array()
        .expect("tools")
        .clone();
    let find = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(find("get_thing")["annotations"]["readOnlyHint"], true);
    assert_eq!(find("delete_thing")["annotations"]["destructiveHint"], true);
    assert_eq!(
        find("echo_message")["outputSchema"]["type"],
        "object",
        "an object in the 2xx answer has an output schema"
    );
    assert_eq!(find("get_thing")["inputSchema"]["required"], json!(["id"]));
    Ok(())
}
