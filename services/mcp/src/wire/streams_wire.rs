//! Streams that stay open, and their notifications.

use crate::streams::list_changes::tell_tenant;
use crate::wire::*;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Node {
    /// A session that has sent `notifications/initialized`.
    pub(crate) async fn ready_session(&self, revision: &str) -> String {
        let session = self.initialize(revision).await;
        let request = self.request(
            "POST",
            &[("mcp-session-id", &session)],
            INITIALIZED.to_owned(),
        );
        assert_eq!(self.send(request).await.status, 202);
        session
    }

    /// Changes the registry and notifies the node.
    async fn news(&self, tools: &[&str]) {
        self.publish(tools);
        tell_tenant(&self.state, self.tenant).await;
    }
}

#[tokio::test]
async fn t_24_only_newer_revisions_are_primed() {
    let node = Node::start().await;
    let session = node.ready_session("2025-11-25").await;
    let (status, headers, mut body) = node.open(&[("mcp-session-id", &session)]).await;
    assert_eq!(
        (status.as_u16(), headers["content-type"].to_str().unwrap()),
        (200, "text/event-stream")
    );
    assert_eq!(
        (
            headers["cache-control"].to_str().unwrap(),
            headers["x-accel-buffering"].to_str().unwrap()
        ),
        ("no-cache, no-transform", "no"),
        "MCP-T-8"
    );
    assert!(
        frame(&mut body).await.unwrap().starts_with("retry: "),
        "MCP-T-25"
    );
    let priming = frame(&mut body).await.unwrap();
    assert!(
        event_id(&priming).is_some() && priming.ends_with("data:\n\n"),
        "{priming:?}"
    );

    let older = node.ready_session("2025-06-18").await;
    let (_, _, mut body) = node.open(&[("mcp-session-id", &older)]).await;
    assert_eq!(frame(&mut body).await.unwrap(), ":\n\n");
    assert!(is_quiet(&mut body).await);
}

#[tokio::test]
async fn tl_20_news_reach_a_session_that_is_ready_and_only_when_its_list_changed() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let unready = node.initialize("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    let (_, _, mut early) = node.open(&[("mcp-session-id", &unready)]).await;
    frame(&mut stream).await;
    frame(&mut early).await;
    node.news(&["broken", "get_pet", "slow", "with_header", "zebra"])
        .await;
    assert!(
        is_quiet(&mut stream).await,
        "the same list again is no news"
    );
    node.news(&["zebra"]).await;
    let event = frame(&mut stream).await.unwrap();
    assert_eq!(
        data(&event),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    assert!(event.starts_with("event: message\n"), "MCP-T-10");
    assert!(event_id(&event).is_some(), "MCP-T-34");
    assert!(is_quiet(&mut early).await, "MCP-L-6");
}

#[tokio::test]
async fn t_36_an_event_id_of_ours_is_resumed_and_any_other_refused() {
    let node = Node::start().await;
    let session = node.ready_session("2025-11-25").await;
    let (_, _, mut first) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut first).await;
    let priming = frame(&mut first).await.unwrap();
    let seen = event_id(&priming).unwrap();
    drop(first);
    let other = node.ready_session("2025-11-25").await;
    for (session, id, status) in [
        (&session, seen, 200),
        (&session, "1-1", 400),
        (&other, seen, 400),
    ] {
        let (answered, _, _) = node
            .open(&[("mcp-session-id", session), ("last-event-id", id)])
            .await;
        assert_eq!(answered.as_u16(), status, "{id}");
    }
    // Changes from the time without a reader are sent at once.
    node.news(&["zebra"]).await;
    let (_, _, mut resumed) = node
        .open(&[("mcp-session-id", &session), ("last-event-id", seen)])
        .await;
    frame(&mut resumed).await;
    frame(&mut resumed).await;
    let notice = frame(&mut resumed).await.unwrap();
    assert_eq!(data(&notice)["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn t_33_a_session_may_have_several_streams_but_not_any_number() {
    let node = Node::start().await;
    let session = node.ready_session("2025-11-25").await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let (status, _, body) = node.open(&[("mcp-session-id", &session)]).await;
        assert_eq!(status.as_u16(), 200);
        open.push(body);
    }
    assert_eq!(
        node.open(&[("mcp-session-id", &session)]).await.0.as_u16(),
        409
    );
    assert_eq!(
        node.counted(),
        [(LimitName::SessionStreams, 1)],
        "REVIEW-F1"
    );
    open.pop();
    assert_eq!(
        node.open(&[("mcp-session-id", &session)]).await.0.as_u16(),
        200,
        "a closed one makes room"
    );
}

#[tokio::test(start_paused = true)]
async fn clients_7_reconnecting_in_a_loop_is_slowed_down() {
    let node = Node::with(McpConfig {
        stream_opens_per_minute: 2,
        ..McpConfig::default()
    })
    .await;
    let session = node.ready_session("2025-11-25").await;
    for status in [200, 200, 429] {
        let (answered, headers, _) = node.open(&[("mcp-session-id", &session)]).await;
        assert_eq!(answered.as_u16(), status);
        assert_eq!(headers.contains_key("retry-after"), status == 429);
    }
}

#[tokio::test]
async fn t_45_delete_ends_the_streams_of_the_session_and_no_others() {
    let node = Node::start().await;
    let (session, other) = (
        node.ready_session("2025-06-18").await,
        node.ready_session("2025-06-18").await,
    );
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    let (_, _, mut others) = node.open(&[("mcp-session-id", &other)]).await;
    frame(&mut stream).await;
    frame(&mut others).await;
    node.send(node.request("DELETE", &[("mcp-session-id", &session)], String::new()))
        .await;
    assert_eq!(frame(&mut stream).await, None);
    assert!(is_quiet(&mut others).await);
    assert_eq!(
        node.open(&[("mcp-session-id", &session)]).await.0.as_u16(),
        404
    );
}

#[tokio::test]
async fn ar_17_a_revocation_ends_the_stream() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    let watching = TaskTracker::new().spawn(crate::changes::revocations(node.state.clone()));
    tokio::task::yield_now().await;
    node.revocations.insert(
        portolan_cluster::Revocation::User {
            user: node.user,
            epoch: 2,
        },
        NOW + time::Duration::HOUR,
    );
    assert_eq!(frame(&mut stream).await, None);
    node.stopping.cancel();
    watching.await.unwrap();
}

#[tokio::test]
async fn t_25_a_drain_tells_newer_clients_when_to_come_back() {
    let node = Node::start().await;
    let session = node.ready_session("2025-11-25").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    frame(&mut stream).await;
    node.stopping.cancel();
    let last = frame(&mut stream).await.unwrap();
    let wait: u64 = last
        .trim()
        .strip_prefix("retry: ")
        .unwrap()
        .parse()
        .unwrap();
    assert!((500..=4_000).contains(&wait), "{wait}");
    assert_eq!(frame(&mut stream).await, None);
}

async fn listen(node: &Node, id: Value, notifications: Value) -> (u16, Body) {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {"notifications": notifications, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let response = node
        .router
        .clone()
        .oneshot(node.request("POST", &headers, body.to_string()))
        .await
        .unwrap();
    (response.status().as_u16(), response.into_body())
}

#[tokio::test]
async fn sb_2_to_sb_8_and_sb_12_a_listen_stream_from_acknowledgement_to_result() {
    let node = Node::start().await;
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["x:y"]});
    let (status, mut stream) = listen(&node, json!(42), wanted).await;
    assert_eq!(status, 200);
    let subscription = json!({"io.modelcontextprotocol/subscriptionId": 42});
    let first = data(&frame(&mut stream).await.unwrap());
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "MCP-SB-2"
    );
    assert_eq!(
        first["params"],
        json!({"_meta": subscription, "notifications": {"toolsListChanged": true}}),
        "MCP-SB-3, MCP-SB-6"
    );
    node.news(&["zebra"]).await;
    let event = frame(&mut stream).await.unwrap();
    assert_eq!(data(&event)["params"]["_meta"], subscription);
    assert_eq!(event_id(&event), None, "MCP-T-64");
    node.stopping.cancel();
    let last = data(&frame(&mut stream).await.unwrap());
    assert_eq!(
        (last["id"].clone(), last["result"]["resultType"].clone()),
        (json!(42), json!("complete")),
        "MCP-SB-8"
    );
    assert_eq!(
        last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        42
    );
    assert_eq!(
        frame(&mut stream).await,
        None,
        "MCP-SB-12: the result, and no notice of a cancellation"
    );
}

#[tokio::test]
async fn sb_4_and_sb_7_nothing_is_sent_that_was_not_asked_for() {
    let node = Node::start().await;
    let (status, mut stream) = listen(&node, json!("a"), json!({})).await;
    assert_eq!(status, 200);
    assert_eq!(
        data(&frame(&mut stream).await.unwrap())["params"]["notifications"],
        json!({})
    );
    node.news(&["zebra"]).await;
    assert!(is_quiet(&mut stream).await);
    assert_eq!(
        listen(&node, json!("b"), json!({"toolsListChanged": "yes"}))
            .await
            .0,
        200,
        "an error, with 200 (T-67)"
    );
    assert_eq!(
        listen(&node, json!("c"), json!({"taskIds": []})).await.0,
        400,
        "MCP-SB-13"
    );
}

#[tokio::test]
async fn sb_5_every_listen_gets_its_own_copy_and_sb_9_a_lost_one_is_gone() {
    let node = Node::start().await;
    let (_, mut one) = listen(&node, json!(1), json!({"toolsListChanged": true})).await;
    let (_, mut two) = listen(&node, json!(1), json!({"toolsListChanged": true})).await;
    frame(&mut one).await;
    frame(&mut two).await;
    node.news(&["zebra"]).await;
    assert!(frame(&mut one).await.is_some() && frame(&mut two).await.is_some());
    drop(one);
    assert_eq!(node.state.streams.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_no_longer_published_ends_its_streams() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    let (_, mut listening) = listen(&node, json!(7), json!({"toolsListChanged": true})).await;
    frame(&mut stream).await;
    frame(&mut listening).await;
    node.seed(PATH, None);
    tell_tenant(&node.state, node.tenant).await;
    assert_eq!(frame(&mut stream).await, None);
    assert_eq!(
        data(&frame(&mut listening).await.unwrap())["result"]["resultType"],
        "complete",
        "MCP-SB-10"
    );
}

/// STREAM-15.1: a received change is sent, even if the database does not answer at once.
#[tokio::test]
async fn s15_1_a_change_that_cannot_be_looked_at_is_told_when_it_can() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    node.state.catalog.outdate(Some(node.tenant));
    // A request reloads the catalogue: until that is done, the former list does not count as
    // current.
    let (answer, is_told) = tokio::join!(
        biased;
        node.call(&session, "tools/list", json!({})),
        tell_tenant(&node.state, node.tenant),
    );
    assert_eq!(answer.status, 200, "served from memory");
    assert!(!is_told, "not yet");
    assert!(is_quiet(&mut stream).await);
    node.publish(&["zebra"]);
    assert!(tell_tenant(&node.state, node.tenant).await);
    let event = frame(&mut stream).await.unwrap();
    assert_eq!(
        data(&event)["method"],
        "notifications/tools/list_changed",
        "{event}"
    );
}

/// STREAM-15.1: a change during the opening of a stream is sent to it, too.
#[tokio::test]
async fn s15_1_a_stream_that_was_opened_beside_a_change_is_told_once_more() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let (_, _, mut quiet) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut quiet).await;
    assert!(node.state.untold.take().is_empty(), "nothing was changed");
    node.state.catalog.outdate(Some(node.tenant));
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    assert!(node.state.untold.take().contains(&node.tenant));
}
