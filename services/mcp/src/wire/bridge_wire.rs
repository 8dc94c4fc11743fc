//! Rules of translation and of refusals that no other test file covers.

use crate::wire::{asking_wire::modern_upstream, upstream_tasks_wire::heard_of, *};

/// Rule: MCP-AR-9.
#[tokio::test]
async fn a_refused_request_is_a_json_rpc_error_without_an_id() {
    let node = Node::start().await;
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
    let request = Request::post(PATH)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .unwrap();
    let answer = node.send(request).await;
    assert_eq!((answer.status, answer.code()), (401, -32600));
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(answer.json().get("id").is_none(), "{}", answer.json());
}

/// Rule: MCP-X-21.
#[tokio::test]
async fn a_state_without_questions_is_called_again_silently() {
    let node = Node::start().await;
    node.script(|channel| modern_upstream(channel, json!({"requestState": "s"})));
    let session = node.initialize("2025-11-25").await;
    let answer = node
        .call(&session, "tools/call", json!({"name": "zebra"}))
        .await;
    let result = &answer.json()["result"];
    assert_eq!(result["content"][0]["text"], "none", "{result}");
}

/// Rule: MCP-X-3H.
#[tokio::test]
async fn other_roots_of_a_session_are_not_sent_to_a_stateless_server() {
    let node = Node::start().await;
    node.publish_theirs("new", "optional", &["fails"]);
    let session = node.initialize("2025-11-25").await;
    let call = json!({"name": "fails"});
    node.call(&session, "tools/call", call.clone()).await;
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let taken = node.post(&[("mcp-session-id", &session)], &notice).await;
    assert_eq!(taken.status, 202);
    node.call(&session, "tools/call", call).await;
    let calls = heard_of(&node.heard, "tools/call").len();
    assert_eq!(calls, 4, "each is called again with tasks (X-52)");
    let roots = heard_of(&node.heard, "notifications/roots/list_changed");
    assert!(roots.is_empty(), "{roots:?}");
}
