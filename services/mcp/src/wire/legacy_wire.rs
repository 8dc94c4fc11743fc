//! Sessions over the wire.

use crate::wire::*;

/// MCP-SD-14: the negotiated revision decides, not the examples.
#[tokio::test]
async fn l_2_a_served_legacy_version_is_answered_with_itself_and_any_other_with_the_latest_legacy_one()
 {
    let node = Node::start().await;
    for (asked, answered) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = node.post(&[], &initialize(asked)).await;
        let result = &answer.json()["result"];
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert_eq!(result["instructions"], "Ask before you adopt.");
        assert_eq!(
            result["capabilities"]["tools"]["listChanged"], true,
            "MCP-L-11"
        );
        assert_eq!(result["serverInfo"]["name"], "pets");
        assert_eq!(
            result["serverInfo"].get("title").is_some(),
            answered != "2025-03-26",
            "MCP-FA-5"
        );
    }
}

#[tokio::test]
async fn a_session_lists_calls_and_ends() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = node.post(&[("mcp-session-id", &session)], &notified).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0), "MCP-T-21");
    assert_eq!(
        node.call(&session, "ping", json!({})).await.json(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );

    let called = node
        .call(
            &session,
            "tools/call",
            json!({"name": "get_pet", "arguments": {"id": "7"}}),
        )
        .await;
    assert_eq!(called.header("content-type"), "application/json");
    assert_eq!(called.header("cache-control"), "no-store", "MCP-T-8");
    let result = &called.json()["result"];
    assert_eq!(
        result["structuredContent"],
        json!({"id": "7", "name": "Rex"})
    );
    assert_eq!(result["content"][0]["type"], "text", "MCP-TL-13");
    assert!(result.get("resultType").is_none(), "MCP-J-17");

    let delete = node.request("DELETE", &[("mcp-session-id", &session)], String::new());
    let deleted = node.send(delete).await;
    assert_eq!((deleted.status, deleted.body.len()), (200, 0), "MCP-T-45");
    let gone = node.call(&session, "ping", json!({})).await;
    assert_eq!((gone.status, gone.code()), (404, -32600), "MCP-T-43");
    assert!(gone.json().get("id").is_none());
    let again = node
        .send(node.request("DELETE", &[("mcp-session-id", &session)], String::new()))
        .await;
    assert_eq!(again.status, 404);
}

#[tokio::test]
async fn point_4_a_node_that_never_saw_the_session_goes_on_with_it() {
    let node = Node::start().await;
    let session = node.initialize("2025-06-18").await;
    let other = node.twin_after_a_loss().await;
    let called = other
        .call(
            &session,
            "tools/call",
            json!({"name": "get_pet", "arguments": {"id": "7"}}),
        )
        .await;
    assert_eq!(called.json()["result"]["structuredContent"]["name"], "Rex");
    // The client sent its revision: arguments that do not fit are an error of the protocol up to
    // 2025-06-18 (MCP-TL-17).
    assert_eq!(
        other
            .call(&session, "tools/call", json!({"name": "get_pet"}))
            .await
            .code(),
        -32602
    );
}

#[tokio::test]
async fn t_44_another_client_or_person_does_not_find_the_session() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    for claims in [
        AccessClaims {
            client_id: "client-b".to_owned(),
            ..node.claims()
        },
        AccessClaims {
            sub: UserId::generate().into(),
            ..node.claims()
        },
    ] {
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("authorization", &node.sign(&claims)),
        ];
        let answer = node.post(&headers, &rpc("ping", json!({}))).await;
        assert_eq!((answer.status, answer.code()), (404, -32600));
    }
    let regranted = AccessClaims {
        gid: Id::generate(),
        ..node.claims()
    };
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("authorization", &node.sign(&regranted)),
    ];
    assert_eq!(
        node.post(&headers, &rpc("ping", json!({}))).await.status,
        200,
        "a new grant of the same keeps it"
    );
    node.revocations.insert(
        portolan_cluster::Revocation::Grant(node.grant),
        NOW + time::Duration::HOUR,
    );
    assert_eq!(
        node.post(&headers, &rpc("ping", json!({}))).await.status,
        404,
        "the grant it was made under was revoked"
    );
}

#[tokio::test]
async fn t_46_and_t_47_the_version_header_of_a_session() {
    let node = Node::start().await;
    let session = node.initialize("2025-06-18").await;
    for (version, status) in [
        ("2025-06-18", 200),
        ("2025-11-25", 200),
        ("2025-03-26", 200),
        ("1999-01-01", 400),
    ] {
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", version),
        ];
        let answer = node.post(&headers, &rpc("ping", json!({}))).await;
        assert_eq!(answer.status, status, "{version}");
        if status == 400 {
            assert_eq!(
                (
                    answer.code(),
                    answer.json()["error"]["data"]["requested"].clone()
                ),
                (-32022, json!(version))
            );
        }
    }
}

#[tokio::test]
async fn t_13_a_header_that_stands_twice_is_refused() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let answer = node.post(&headers, &rpc("ping", json!({}))).await;
    assert_eq!((answer.status, answer.code()), (400, -32600));
}

#[tokio::test]
async fn pg_1_tl_2_pages_follow_each_other_to_the_end_and_tl_3_the_order_is_by_name() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let (mut names, mut cursor, mut sizes) = (Vec::new(), Value::Null, Vec::new());
    loop {
        let params = if cursor.is_null() {
            json!({})
        } else {
            json!({"cursor": cursor})
        };
        let result = node.call(&session, "tools/list", params).await.json()["result"].clone();
        let tools = result["tools"].as_array().unwrap().clone();
        sizes.push(tools.len());
        names.extend(
            tools
                .into_iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(names, ["broken", "get_pet", "slow", "with_header", "zebra"]);
}

#[tokio::test]
async fn pg_2_a_cursor_is_of_its_person_and_cannot_be_made_up() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let first = node.call(&session, "tools/list", json!({})).await.json();
    let cursor = first["result"]["nextCursor"].as_str().unwrap().to_owned();
    for bad in ["", "2", &cursor[1..]] {
        assert_eq!(
            node.call(&session, "tools/list", json!({"cursor": bad}))
                .await
                .code(),
            -32602,
            "{bad:?}"
        );
    }
    let mut other = node.twin().await;
    other.user = Id::generate();
    let theirs = other.initialize("2025-11-25").await;
    assert_eq!(
        other
            .call(&theirs, "tools/list", json!({"cursor": cursor}))
            .await
            .code(),
        -32602
    );
    // MCP-PG-3: tools come and go between pages; none is shown twice, and no remaining one is left
    // out.
    node.publish(&["aardvark", "broken", "slow", "zebra"]);
    let next = node
        .call(&session, "tools/list", json!({"cursor": cursor}))
        .await
        .json();
    let names: Vec<&str> = next["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["slow", "zebra"]);
}

#[tokio::test]
async fn tl_16_to_tl_19_each_fault_of_a_call_has_its_place() {
    let node = Node::start().await;
    for (revision, faults_are_results) in [
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let session = node.initialize(revision).await;
        let unknown = node
            .call(&session, "tools/call", json!({"name": "nope"}))
            .await;
        assert_eq!((unknown.status, unknown.code()), (200, -32602), "MCP-TL-16");
        assert_eq!(unknown.json()["error"]["message"], "Unknown tool: nope");
        assert_eq!(
            node.call(&session, "tools/call", json!({})).await.code(),
            -32602,
            "no name"
        );
        assert_eq!(
            node.call(
                &session,
                "tools/call",
                json!({"name": "get_pet", "arguments": []})
            )
            .await
            .code(),
            -32602
        );
        let misfit = node
            .call(
                &session,
                "tools/call",
                json!({"name": "get_pet", "arguments": {"id": 7}}),
            )
            .await
            .json();
        if faults_are_results {
            assert_eq!(misfit["result"]["isError"], true, "MCP-TL-18");
        } else {
            assert_eq!(misfit["error"]["code"], -32602, "MCP-TL-17");
        }
        assert!(
            misfit.to_string().contains("id"),
            "the path of the fault is named"
        );
        let broken = node
            .call(&session, "tools/call", json!({"name": "broken"}))
            .await
            .json();
        assert_eq!(broken["result"]["isError"], true, "MCP-TL-19");
        assert!(
            broken["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("502")
        );
        let fine = node
            .call(&session, "tools/call", json!({"name": "zebra"}))
            .await
            .json();
        assert_eq!(
            fine["result"].get("structuredContent").is_some(),
            revision != "2025-03-26",
            "MCP-FA-2"
        );
    }
}

#[tokio::test]
async fn er_3_and_the_empty_lists() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let ask = |method: &str, params: Value| {
        let (node, session, method) = (&node, &session, method.to_owned());
        async move { node.call(session, &method, params).await }
    };
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        assert_eq!(
            ask(method, json!({})).await.json()["result"],
            json!({member: []}),
            "clients.md 12"
        );
        assert_eq!(ask(method, json!({"cursor": "x"})).await.code(), -32602);
    }
    assert_eq!(
        ask("prompts/get", json!({"name": "x"})).await.code(),
        -32602,
        "MCP-PR-4"
    );
    let read = ask("resources/read", json!({"uri": "file:///x"})).await;
    assert_eq!(
        (read.code(), read.json()["error"]["data"]["uri"].clone()),
        (-32002, json!("file:///x")),
        "MCP-RE-4"
    );
    assert_eq!(
        ask("logging/setLevel", json!({"level": "debug"}))
            .await
            .json()["result"],
        json!({}),
        "MCP-LG-3"
    );
    assert_eq!(
        ask("logging/setLevel", json!({"level": "loud"}))
            .await
            .code(),
        -32602
    );
    let completion =
        json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}});
    assert_eq!(
        ask("completion/complete", completion).await.code(),
        -32602,
        "MCP-CP-4"
    );
    for method in [
        "tools/nope",
        "server/discover",
        "subscriptions/listen",
        "tasks/update",
        "sampling/createMessage",
    ] {
        let answer = ask(method, json!({})).await;
        assert_eq!((answer.status, answer.code()), (200, -32601), "{method}");
    }
}

#[tokio::test]
async fn j_12_to_j_16_batches_belong_to_2025_03_26() {
    let node = Node::start().await;
    let session = node.initialize("2025-03-26").await;
    let send = |session: String, batch: Value| {
        let node = &node;
        async move { node.post(&[("mcp-session-id", &session)], &batch).await }
    };
    let one = |id: i64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mixed = send(
        session.clone(),
        json!([
            one(1, "ping"),
            notification,
            one(2, "nope"),
            one(3, "tools/list")
        ]),
    )
    .await
    .json();
    let ids: Vec<i64> = mixed
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(mixed[1]["error"]["code"], -32601);
    let quiet = send(session.clone(), json!([notification])).await;
    assert_eq!((quiet.status, quiet.body.len()), (202, 0), "MCP-J-14");
    for bad in [
        json!([]),
        json!([one(1, "ping"), one(1, "ping")]),
        json!([initialize("2025-03-26")]),
    ] {
        let answer = send(session.clone(), bad).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, -32600),
            "MCP-J-13, MCP-J-15"
        );
    }
    let newer = node.initialize("2025-06-18").await;
    assert_eq!(
        send(newer, json!([one(1, "ping")])).await.status,
        400,
        "MCP-J-16"
    );
}

#[tokio::test]
async fn cn_1_a_cancelled_call_stops_and_is_not_answered() {
    let node = Arc::new(Node::start().await);
    let session = node.initialize("2025-11-25").await;
    let calling = {
        let (node, session) = (Arc::clone(&node), session.clone());
        TaskTracker::new().spawn(async move {
            node.call(&session, "tools/call", json!({"name": "slow"}))
                .await
        })
    };
    node.arrived.notified().await;
    let clash = node
        .call(&session, "tools/call", json!({"name": "zebra"}))
        .await;
    assert_eq!(
        (clash.status, clash.code()),
        (400, -32600),
        "MCP-J-3: the id is in flight"
    );
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(
        node.post(&[("mcp-session-id", &session)], &cancel)
            .await
            .status,
        202
    );
    let answer = calling.await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 0), "MCP-CN-4");
    assert_eq!(
        answer.header("content-type"),
        "text/event-stream",
        "MCP-T-22, REVIEW-F3"
    );
    assert_eq!(
        node.call(&session, "tools/call", json!({"name": "zebra"}))
            .await
            .status,
        200,
        "the id is free again"
    );
}

#[tokio::test]
async fn t_29_a_lost_connection_does_not_cancel_a_call_of_a_session() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    let call = rpc("tools/call", json!({"name": "slow"})).to_string();
    let request = node.request("POST", &[("mcp-session-id", &session)], call);
    let mut pending = Box::pin(node.router.clone().oneshot(request));
    tokio::select! {
        _ = &mut pending => panic!("the API does not answer"),
        () = node.arrived.notified() => {}
    }
    assert!(node.state.tracker.is_empty(), "no task while it is awaited");
    drop(pending);
    assert_eq!(node.state.tracker.len(), 1, "it goes on");
    node.send(node.request("DELETE", &[("mcp-session-id", &session)], String::new()))
        .await;
    node.state.tracker.close();
    node.state.tracker.wait().await;
}

#[tokio::test]
async fn t_7_who_reads_only_events_gets_the_answer_as_one() {
    let node = Node::start().await;
    let answer = node
        .post(
            &[("accept", "text/event-stream")],
            &initialize("2025-11-25"),
        )
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/event-stream")
    );
    let event = String::from_utf8(answer.body.clone()).unwrap();
    assert_eq!(data(&event)["result"]["protocolVersion"], "2025-11-25");
    assert!(!answer.header("mcp-session-id").is_empty());
}

#[tokio::test]
async fn d_2_a_draft_session_mirrors_its_methods() {
    let node = Node::start().await;
    let answer = node
        .post(&[("mcp-method", "initialize")], &initialize("2025-06-18"))
        .await;
    let session = answer.header("mcp-session-id").to_owned();
    let bare = node.call(&session, "ping", json!({})).await;
    assert_eq!((bare.status, bare.code()), (400, -32001));
    let headers = [("mcp-session-id", session.as_str()), ("mcp-method", "ping")];
    assert_eq!(
        node.post(&headers, &rpc("ping", json!({}))).await.status,
        200
    );
}
