//! Long calls: answers that become streams, and their continuation on any node.

use crate::wire::{modern_wire::modern, *};

/// A node that serves the tool `held`, and a session on it.
async fn with_session(revision: &str) -> (Node, String) {
    let node = Node::start().await;
    node.publish(&["held"]);
    let session = node.initialize(revision).await;
    (node, session)
}

impl Node {
    /// Calls `held` and returns the head of the answer once it arrives.
    async fn call_held(&self, session: &str) -> (HeaderMap, Body) {
        let body = json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call",
            "params": {"name": "held", "_meta": {"progressToken": "p"}}});
        let request = self.request("POST", &[("mcp-session-id", session)], body.to_string());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        assert_eq!(parts.status, 200);
        (parts.headers, body)
    }
}

/// The next event that has data.
pub(crate) async fn event(body: &mut Body) -> Option<String> {
    loop {
        let frame = frame(body).await?;
        if frame.contains("\ndata: ") {
            return Some(frame);
        }
    }
}

#[tokio::test]
async fn streams_6_and_t_27_a_call_that_takes_long_is_answered_by_a_stream_with_progress() {
    let (node, session) = with_session("2025-11-25").await;
    let (headers, mut body) = node.call_held(&session).await;
    assert_eq!(headers["content-type"], "text/event-stream");
    assert!(
        frame(&mut body).await.unwrap().starts_with("retry: "),
        "MCP-T-25"
    );
    let priming = frame(&mut body).await.unwrap();
    assert!(
        event_id(&priming).is_some() && priming.ends_with("data:\n\n"),
        "MCP-T-24"
    );
    let progress = event(&mut body).await.unwrap();
    assert_eq!(data(&progress)["method"], "notifications/progress");
    assert_eq!(data(&progress)["params"]["progressToken"], "p", "MCP-PP-1");
    node.release.notify_one();
    let last = loop {
        let event = event(&mut body).await.unwrap();
        if data(&event)["method"].is_null() {
            break event;
        }
    };
    assert!(event_id(&last).is_some(), "MCP-T-34");
    assert_eq!(data(&last)["id"], "long");
    assert_eq!(
        data(&last)["result"]["structuredContent"],
        json!({"released": true})
    );
    assert_eq!(frame(&mut body).await, None, "a clean end");
}

#[tokio::test]
async fn streams_9_t_35_and_n_1_another_node_gives_the_rest_of_an_answer_and_nothing_twice() {
    let (node, session) = with_session("2025-11-25").await;
    let other = node.twin().await;
    let (_, mut body) = node.call_held(&session).await;
    frame(&mut body).await;
    let priming = frame(&mut body).await.unwrap();
    let first = event(&mut body).await.unwrap();
    let seen = event_id(&first).unwrap().to_owned();
    drop(body);
    let (status, _, mut rest) = other
        .open(&[("mcp-session-id", &session), ("last-event-id", &seen)])
        .await;
    assert_eq!(status, 200);
    node.release.notify_one();
    let mut after = Vec::new();
    while let Some(event) = event(&mut rest).await {
        after.push(event);
    }
    assert!(!after.contains(&first), "what was seen does not come again");
    let last = data(after.last().unwrap());
    assert_eq!(
        last["result"]["structuredContent"],
        json!({"released": true})
    );

    // MCP-N-1: the session is the same on every node.
    let level = json!({"level": "debug"});
    assert_eq!(
        other.call(&session, "logging/setLevel", level).await.status,
        200
    );
    for node in [&node, &other] {
        let pinged = node.call(&session, "ping", json!({})).await;
        assert_eq!(pinged.json()["result"], json!({}), "MCP-N-1");
    }

    // From the beginning, after the end: every event again with the same ids, from either node.
    let from_start = event_id(&priming).unwrap().to_owned();
    for node in [&node, &other] {
        let (_, _, mut again) = node
            .open(&[("mcp-session-id", &session), ("last-event-id", &from_start)])
            .await;
        let mut all = Vec::new();
        while let Some(event) = event(&mut again).await {
            all.push(event);
        }
        let expected: Vec<_> = std::iter::once(&first).chain(&after).cloned().collect();
        assert_eq!(all, expected);
    }
}

#[tokio::test]
async fn streams_14_and_n_4_a_cancellation_on_another_node_ends_the_call_without_an_answer() {
    let (node, session) = with_session("2025-11-25").await;
    let other = node.twin().await;
    let (_, mut body) = node.call_held(&session).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}});
    let answer = other.post(&[("mcp-session-id", &session)], &cancel).await;
    assert_eq!(answer.status, 202);
    while let Some(event) = event(&mut body).await {
        assert_eq!(data(&event)["method"], "notifications/progress", "MCP-CN-4");
    }
}

#[tokio::test]
async fn c9_and_n_4_a_session_that_one_node_ended_is_over_on_the_other_with_its_streams() {
    let (node, session) = with_session("2025-11-25").await;
    let other = node.twin().await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    let (_, mut call) = node.call_held(&session).await;
    let delete = other.request("DELETE", &[("mcp-session-id", &session)], String::new());
    assert_eq!(other.send(delete).await.status, 200);
    for node in [&node, &other] {
        assert_eq!(node.call(&session, "ping", json!({})).await.status, 404);
    }
    while frame(&mut stream).await.is_some() {}
    while frame(&mut call).await.is_some() {}
}

#[tokio::test]
async fn streams_9_an_answer_that_is_no_longer_kept_is_an_honest_error() {
    let (node, session) = with_session("2025-11-25").await;
    let (_, mut body) = node.call_held(&session).await;
    frame(&mut body).await;
    let priming = frame(&mut body).await.unwrap();
    let seen = event_id(&priming).unwrap().to_owned();
    let other = node.twin_after_a_loss().await;
    let (status, _, mut rest) = other
        .open(&[("mcp-session-id", &session), ("last-event-id", &seen)])
        .await;
    assert_eq!(status, 200);
    let error = data(&event(&mut rest).await.unwrap());
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!("long"), &json!(-32011))
    );
}

#[tokio::test]
async fn t_63_progress_of_a_modern_call_needs_no_session_and_no_ids() {
    let node = Node::start().await;
    node.publish(&["held"]);
    let mut body = modern("tools/call", json!({"name": "held"}));
    body["params"]["_meta"]["progressToken"] = json!(5);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "held"),
    ];
    let request = node.request("POST", &headers, body.to_string());
    let response = node.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body();
    let progress = event(&mut stream).await.unwrap();
    assert_eq!(event_id(&progress), None);
    assert_eq!(data(&progress)["params"]["progressToken"], 5);
    node.release.notify_one();
    let mut last = progress;
    while let Some(event) = event(&mut stream).await {
        last = event;
    }
    assert_eq!(
        data(&last)["result"]["structuredContent"],
        json!({"released": true})
    );
}
