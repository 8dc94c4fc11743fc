//! The ends of streams and calls: drains, other connections, revocations, and a disabled transport.

use std::task::Poll;

use portolan_protocol::progress::Progress;
use portolan_storage::platform::tenants::Reach;
use tokio::{sync::Semaphore, time::Instant};

use crate::streams::list_changes::tell_tenant;
use crate::wire::{answers_wire::event, modern_wire::modern, *};

async fn called(node: &Node, session: &str, name: &str) -> Body {
    let body = json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call",
        "params": {"name": name, "_meta": {"progressToken": "p"}}});
    let request = node.request("POST", &[("mcp-session-id", session)], body.to_string());
    node.router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body()
}

/// The last event of a stream that ends.
async fn last(body: &mut Body) -> Value {
    let mut last = None;
    while let Some(event) = event(body).await {
        last = Some(data(&event));
    }
    last.expect("an answer")
}

#[tokio::test]
async fn t_26_and_n_6_a_node_that_stops_sends_newer_clients_away_and_lets_older_ones_read_their_answer()
 {
    let node = Node::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    node.script(move |channel| {
        let gate = Arc::clone(&waits);
        async move {
            let progress = Progress {
                progress: 1.0,
                total: None,
                message: None,
            };
            channel.progress(progress).await;
            gate.acquire().await.unwrap().forget();
            Ok("done".to_owned())
        }
    });
    let older = node.initialize("2025-06-18").await;
    let newer = node.initialize("2025-11-25").await;
    let mut stays = called(&node, &older, "zebra").await;
    let mut moves = called(&node, &newer, "zebra").await;
    let mut alone = modern("tools/call", json!({"name": "zebra"}));
    alone["params"]["_meta"]["progressToken"] = json!("p");
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "zebra"),
    ];
    let request = node.request("POST", &headers, alone.to_string());
    let answer = node.router.clone().oneshot(request).await.unwrap();
    let mut alone = answer.into_body();
    let mut listens = node.listen_to(json!("l"), &[]).await;
    event(&mut listens).await.unwrap();
    for stream in [&mut stays, &mut moves, &mut alone] {
        let told = data(&event(stream).await.unwrap());
        assert_eq!(
            told["method"], "notifications/progress",
            "MCP-T-27: before the answer"
        );
    }
    node.stopping.cancel();
    let mut goodbye = String::new();
    while let Some(frame) = frame(&mut moves).await {
        goodbye = frame;
    }
    assert!(
        goodbye.starts_with("retry: "),
        "MCP-N-6, MCP-T-25: {goodbye:?}"
    );
    let completed = last(&mut listens).await;
    assert_eq!(completed["id"], "l", "MCP-N-6, MCP-SB-8");
    assert!(
        completed["result"].is_object(),
        "MCP-N-6, MCP-SB-8: {completed}"
    );
    gate.add_permits(3);
    for stream in [&mut stays, &mut alone] {
        let answer = last(stream).await;
        assert_eq!(
            answer["result"]["content"][0]["text"], "done",
            "MCP-T-26, MCP-N-6"
        );
    }
}

#[tokio::test]
async fn t_37_t_35_and_n_2_an_answer_goes_to_who_resumed_its_stream_last_on_any_node() {
    let node = Node::start().await;
    node.publish(&["held"]);
    let other = node.twin().await;
    let session = node.initialize("2025-11-25").await;
    let mut first = called(&node, &session, "held").await;
    frame(&mut first).await;
    let priming = frame(&mut first).await.unwrap();
    let seen = event(&mut first).await.unwrap();
    // MCP-N-2: events that a client has received are in the log already, so the other node has
    // them.
    let from_start = event_id(&priming).unwrap();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("last-event-id", from_start),
    ];
    let (status, _, mut second) = other.open(&headers).await;
    assert_eq!(status, 200);
    assert_eq!(event(&mut second).await.unwrap(), seen, "MCP-T-35");
    node.release.notify_one();
    let answer = last(&mut second).await;
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"released": true})
    );
    // The older stream may stay open, or two eager clients would replace each other for ever. It
    // gets no more events of the answer.
    loop {
        let next = first.frame();
        tokio::pin!(next);
        let Poll::Ready(Some(frame)) = futures_util::poll!(next) else {
            break;
        };
        let frame = frame.unwrap().into_data().unwrap();
        let frame = String::from_utf8_lossy(&frame).into_owned();
        assert!(!frame.contains("result"), "MCP-T-37: {frame}");
    }
}

#[tokio::test]
async fn sb_11_what_changes_in_a_burst_is_told_once_a_second() {
    let node = Node::start().await;
    let session = node.ready_session("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    let begun = Instant::now();
    let change = async |tools: &[&str]| {
        node.publish(tools);
        tell_tenant(&node.state, node.tenant).await;
    };
    change(&["zebra"]).await;
    let first = frame(&mut stream).await.unwrap();
    for tools in [&["broken"][..], &["slow"], &["get_pet"]] {
        change(tools).await;
    }
    let second = frame(&mut stream).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(950), "MCP-SB-11");
    for told in [first, second] {
        assert_eq!(data(&told)["method"], "notifications/tools/list_changed");
    }
    assert!(is_quiet(&mut stream).await, "three changes, one notice");
}

#[tokio::test]
async fn l_13_nobody_says_that_it_shuts_down() {
    let node = Node::start().await;
    for revision in ["2024-11-05", "2025-11-25"] {
        let session = node.ready_session(revision).await;
        for method in ["shutdown", "exit"] {
            let answer = node.call(&session, method, json!({})).await;
            assert_eq!(answer.code(), -32601, "{method}");
        }
        let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
        let end = node.request("DELETE", &[("mcp-session-id", &session)], String::new());
        assert_eq!(node.send(end).await.status, 200);
        while let Some(frame) = frame(&mut stream).await {
            assert!(!frame.contains("data: {"), "MCP-L-13: it closes: {frame}");
        }
    }
}

#[tokio::test]
async fn ar_17_a_call_with_one_body_ends_with_its_token_and_not_with_the_patience_of_its_api() {
    let node = Node::start().await;
    node.publish(&["slow"]);
    let watching = TaskTracker::new().spawn(crate::changes::revocations(node.state.clone()));
    let answer = node.ask(
        "tools/call",
        json!({"name": "slow"}),
        &[("mcp-name", "slow")],
    );
    let revoking = async {
        node.arrived.notified().await;
        node.revocations.insert(
            portolan_cluster::Revocation::User {
                user: node.user,
                epoch: 2,
            },
            NOW + time::Duration::HOUR,
        );
    };
    let both = async { tokio::join!(answer, revoking) };
    // Its API would take twenty seconds.
    let (answer, ()) = tokio::time::timeout(Duration::from_secs(5), both)
        .await
        .expect("it ends");
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, &error["code"]), (200, &json!(-31004)));
    assert_eq!(error["data"]["reason"], "revoked", "{error}");
    node.stopping.cancel();
    watching.await.unwrap();
}

#[tokio::test]
async fn dp_6_a_workspace_that_turns_http_sse_off_is_served_at_its_other_address() {
    let node = Node::start().await;
    let door = |verb: &str, path: &str| {
        let mut request = node.request(verb, &[("accept", "text/event-stream")], String::new());
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    let stream = node
        .router
        .clone()
        .oneshot(door("GET", "/t/acme/pets/sse"))
        .await
        .unwrap();
    assert_eq!(stream.status(), 200, "it is served unless somebody says no");
    let mut stream = stream.into_body();
    let session = node.initialize("2025-11-25").await;
    let (_, _, mut newer) = node.open(&[("mcp-session-id", &session)]).await;
    for _ in 0..2 {
        frame(&mut stream).await.unwrap();
        frame(&mut newer).await.unwrap();
    }
    let target = Target::parse(PATH).unwrap();
    let reach = Reach {
        http_sse: false,
        ..Reach::default()
    };
    node.state.catalog.change_reach(node.tenant, &target, reach);
    tell_tenant(&node.state, node.tenant).await;
    while frame(&mut stream).await.is_some() {}
    assert!(is_quiet(&mut newer).await, "the other transport goes on");
    for (verb, path) in [
        ("GET", "/t/acme/pets/sse"),
        ("POST", "/t/acme/pets/messages?sessionId=x"),
    ] {
        let answer = node.send(door(verb, path)).await;
        assert_eq!(answer.status, 404, "{path}");
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(said.contains("/mcp"), "{said}");
    }
    node.initialize("2024-11-05").await;
    let modern = modern("server/discover", json!({}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    assert_eq!(node.post(&headers, &modern).await.status, 200);
}
