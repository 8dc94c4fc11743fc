//! Rules of the protocol that no other wire test covers, revision by revision.

use crate::wire::*;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const META: &str = "io.modelcontextprotocol";

/// A call of `get_pet` in a session, with headers.
async fn pet(node: &Node, session: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![("mcp-session-id", session)];
    all.extend_from_slice(headers);
    let call = rpc(
        "tools/call",
        json!({"name": "get_pet", "arguments": {"id": "7"}}),
    );
    node.post(&all, &call).await
}

#[tokio::test]
async fn l_1_l_3_l_10_initialize_in_every_legacy_revision() {
    let node = Node::start().await;
    let modern = node.ask("server/discover", json!({}), &[]).await.json();
    let identity = &modern["result"]["_meta"][format!("{META}/serverInfo")];
    for revision in LEGACY {
        // MCP-L-10, MCP-SD-3: members that are not client capabilities are ignored.
        let params = json!({"protocolVersion": revision, "clientInfo": {"name": "t", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "made_up": {"x": 1}}});
        // MCP-SD-1, MCP-T-48: the header on initialize is accepted and ignored.
        let answer = node
            .post(
                &[("mcp-protocol-version", "2025-06-18")],
                &rpc("initialize", params),
            )
            .await;
        let result = &answer.json()["result"];
        assert_eq!(
            (answer.status, &result["protocolVersion"]),
            (200, &json!(revision))
        );
        assert_eq!(
            answer.header("content-type"),
            "application/json",
            "MCP-T-23, MCP-SD-9"
        );
        assert!(
            answer.has(HeaderName::from_static("mcp-session-id")),
            "MCP-T-40"
        );
        assert_eq!(result["serverInfo"]["name"], identity["name"], "MCP-L-10");
        assert_eq!(
            result["serverInfo"]["version"], identity["version"],
            "MCP-L-10"
        );
        assert_eq!(
            result["capabilities"]["tools"]["listChanged"], true,
            "MCP-TL-1, MCP-L-11"
        );
        assert_eq!(
            result["capabilities"].get("completions").is_some(),
            revision != "2024-11-05",
            "MCP-CP-1"
        );
        assert!(
            result.get("resultType").is_none()
                && result["capabilities"].get("extensions").is_none(),
            "MCP-J-17"
        );
        for wrong in [
            json!({"protocolVersion": 7}),
            json!({"protocolVersion": revision, "capabilities": [], "clientInfo": {}}),
        ] {
            let refused = node.post(&[], &rpc("initialize", wrong)).await;
            assert_eq!(
                (refused.status, refused.code()),
                (400, -32602),
                "MCP-L-3, MCP-ER-4"
            );
            assert_eq!(
                refused.json()["error"]["data"]["supported"][1],
                "2025-11-25",
                "MCP-SD-5"
            );
        }
    }
}

#[tokio::test]
async fn l_4_each_session_acts_as_its_revision_and_l_8_initialize_cannot_be_cancelled() {
    let node = Node::start().await;
    for revision in LEGACY {
        let session = node.initialize(revision).await;
        let list = node.call(&session, "tools/list", json!({})).await.json();
        let tool = &list["result"]["tools"][0];
        let has = |field: &str| tool.get(field).is_some();
        assert_eq!(
            (has("annotations"), has("title")),
            (revision > "2024-11-05", revision > "2025-03-26"),
            "MCP-FA-1: {revision}"
        );
        let called = pet(&node, &session, &[]).await;
        // MCP-T-22: errors of well-formed requests come with 200, too.
        assert_eq!(called.status, 200);
        let result = &called.json()["result"];
        assert_eq!(
            result.get("structuredContent").is_some(),
            revision > "2025-03-26",
            "MCP-FA-2: {revision}"
        );
        assert_eq!(result["content"][0]["type"], "text", "MCP-TL-13, MCP-TL-14");
        let unknown = node
            .call(&session, "tools/call", json!({"name": "none"}))
            .await;
        assert_eq!(
            (unknown.status, unknown.code()),
            (200, -32602),
            "MCP-T-22, MCP-TL-16"
        );
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(
            node.post(&headers, &cancel).await.status,
            202,
            "MCP-L-8, MCP-CN-6"
        );
        let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
        assert_eq!(
            node.post(&headers, &ping).await.json()["result"],
            json!({}),
            "MCP-L-8: the session lives"
        );
    }
}

#[tokio::test]
async fn j_6_every_response_has_exactly_one_of_result_and_error() {
    let node = Node::start().await;
    let session = node.initialize("2025-11-25").await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({"cursor": "made up"})),
        ("tools/call", json!({"name": "broken"})),
        ("tools/call", json!({"name": "none"})),
        ("no/such", json!({})),
        ("prompts/get", json!({"name": "none"})),
    ] {
        for body in [
            node.call(&session, method, params.clone()).await.json(),
            node.ask(
                method,
                params.clone(),
                &[("mcp-name", params["name"].as_str().unwrap_or_default())],
            )
            .await
            .json(),
        ] {
            let (result, error) = (body.get("result"), body.get("error"));
            assert_ne!(result.is_some(), error.is_some(), "{method}: {body}");
            if let Some(error) = error {
                assert!(
                    error["code"].is_i64() && error["message"].is_string(),
                    "{body}"
                );
            }
        }
    }
}

#[tokio::test]
async fn j_4_two_connections_may_use_the_same_id_at_once() {
    let node = Node::start().await;
    let (one, two) = ("get_pet", "zebra");
    let ask = |name: &'static str| {
        let node = &node;
        async move {
            let arguments = json!({"name": name, "arguments": {"id": "1"}});
            node.ask("tools/call", arguments, &[("mcp-name", name)])
                .await
        }
    };
    let (first, second) = tokio::join!(ask(one), ask(two));
    assert_eq!(
        (first.json()["id"].as_str(), second.json()["id"].as_str()),
        (Some("r-1"), Some("r-1"))
    );
    assert!(first.json().get("result").is_some() && second.json().get("result").is_some());
}

#[tokio::test]
async fn e_2_e_11_e_12_l_15_both_eras_at_one_url_and_a_modern_request_leaves_nothing_behind() {
    let node = Node::start().await;
    let session = node.initialize("2025-03-26").await;
    let mixed = node
        .ask(
            "tools/list",
            json!({}),
            &[("mcp-session-id", &session), ("last-event-id", "x")],
        )
        .await;
    assert_eq!(
        mixed.json()["result"]["resultType"],
        "complete",
        "MCP-E-2: modern, whatever else is there"
    );
    assert!(
        !mixed.has(HeaderName::from_static("mcp-session-id")),
        "MCP-E-12"
    );
    let legacy = node.call(&session, "tools/list", json!({})).await.json();
    assert!(
        legacy["result"].get("resultType").is_none(),
        "MCP-E-11: the session is what it was"
    );
    // MCP-L-15, MCP-L-20: the next request repeats all data, and the client's name has no effect.
    let mut body = modern_wire::modern("tools/list", json!({}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    body["params"]["_meta"][format!("{META}/clientInfo")] =
        json!({"name": "portolan-admin", "version": "0"});
    let named = node.post(&headers, &body).await.json();
    assert_eq!(
        named["result"]["tools"],
        mixed.json()["result"]["tools"],
        "MCP-L-20"
    );
    body["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove(&format!("{META}/clientCapabilities"));
    let refused = node.post(&headers, &body).await;
    assert_eq!(
        (refused.status, refused.code()),
        (400, -32602),
        "MCP-L-14, MCP-T-66"
    );
}

#[tokio::test]
async fn l_21_l_22_lists_do_not_vary_by_session_or_by_what_was_called() {
    let node = Node::start().await;
    let (one, two) = (
        node.initialize("2025-11-25").await,
        node.initialize("2025-11-25").await,
    );
    let before = node.call(&one, "tools/list", json!({})).await.json();
    pet(&node, &one, &[]).await;
    assert_eq!(
        node.call(&one, "tools/list", json!({})).await.json(),
        before
    );
    assert_eq!(
        node.call(&two, "tools/list", json!({})).await.json(),
        before
    );
}

#[tokio::test]
async fn j_20_j_23_j_24_metadata_that_means_nothing_here_is_no_fault() {
    let node = Node::start().await;
    for meta in [
        json!({"traceparent": "nonsense", "tracestate": 7, "baggage": [], "com.example/x": {"deep": [1]}}),
        json!({"tools.mcp.com/odd": null, "": 1, "-bad-": 2, "progressToken": "p"}),
    ] {
        let mut body = modern_wire::modern(
            "tools/call",
            json!({"name": "get_pet", "arguments": {"id": "1"}}),
        );
        for (key, value) in meta.as_object().unwrap() {
            body["params"]["_meta"][key] = value.clone();
        }
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "get_pet"),
        ];
        let answer = node.post(&headers, &body).await;
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        assert!(answer.json()["result"]["isError"].as_bool() != Some(true));
    }
}

#[tokio::test]
async fn t_20_t_30_t_42_t_49_each_verb_of_a_session_is_checked_for_itself() {
    let node = Node::start().await;
    let session = node.ready_session("2025-11-25").await;
    for verb in ["POST", "GET", "DELETE"] {
        let body = if verb == "POST" {
            rpc("ping", json!({})).to_string()
        } else {
            String::new()
        };
        let anonymous = node.request(
            verb,
            &[("mcp-session-id", &session), ("authorization", "")],
            body.clone(),
        );
        assert_eq!(node.send(anonymous).await.status, 401, "MCP-T-49: {verb}");
        let without = node.send(node.request(verb, &[], body)).await;
        assert_eq!(
            (without.status, without.code()),
            (400, -32600),
            "MCP-T-42, MCP-E-5: {verb}"
        );
    }
    let (status, headers, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    assert_eq!(
        (status.as_u16(), &headers["content-type"]),
        (200, &http::HeaderValue::from_static("text/event-stream")),
        "MCP-T-30"
    );
    frame(&mut stream).await;
    frame(&mut stream).await;
    assert_eq!(pet(&node, &session, &[]).await.status, 200);
    assert!(
        is_quiet(&mut stream).await,
        "MCP-T-31, MCP-T-32: answers do not come here; MCP-PI-2: nor do pings"
    );
    let gone = node
        .send(node.request("DELETE", &[("mcp-session-id", &session)], String::new()))
        .await;
    assert_eq!(
        (gone.status, gone.body.len()),
        (200, 0),
        "MCP-T-45, MCP-SD-7"
    );
    let after = node.call(&session, "ping", json!({})).await;
    assert_eq!(
        (after.status, after.code()),
        (404, -32600),
        "MCP-T-43, MCP-SD-6, MCP-ER-2"
    );
    assert!(after.json().get("id").is_none(), "MCP-J-7");
}

#[tokio::test]
async fn t_60_t_61_t_62_t_69_a_modern_post_is_one_request_or_one_notification() {
    let node = Node::start().await;
    let batch = json!([modern_wire::modern("tools/list", json!({}))]);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let refused = node.post(&headers, &batch).await;
    assert_eq!(
        (refused.status, refused.code()),
        (400, -32600),
        "MCP-T-60, MCP-J-16"
    );
    let answer = node
        .ask("tools/list", json!({}), &[("accept", "text/event-stream")])
        .await;
    let text = String::from_utf8(answer.body.clone()).unwrap();
    assert_eq!(
        answer.header("content-type"),
        "text/event-stream",
        "MCP-T-61"
    );
    assert!(
        text.starts_with("event: message\ndata: {")
            && !text.contains("\nid:")
            && !text.contains("retry:"),
        "MCP-T-62, MCP-T-64: {text}"
    );
    let body = modern_wire::modern("tools/list", json!({}));
    let silent = node.post(&[("mcp-method", "tools/list")], &body).await;
    assert_eq!(
        (silent.status, silent.code()),
        (400, -32020),
        "MCP-T-69, MCP-ER-9"
    );
    // MCP-T-68: decided before a stream begins, even for a client that reads only events.
    let unknown = node
        .ask("no/such", json!({}), &[("accept", "text/event-stream")])
        .await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (404, -32601),
        "MCP-T-66, MCP-T-68, MCP-ER-3"
    );
}

#[tokio::test]
async fn h_1_h_4_h_7_h_8_h_9_h_10_h_11_mirrored_names_in_every_spelling() {
    let node = Node::start().await;
    let call = json!({"name": "get_pet", "arguments": {"id": "1"}});
    let named = |name: &'static str| {
        node.ask("tools/call", call.clone(), &[])
            .then_named(&node, name)
    };
    assert_eq!(named("get_pet").await, (200, None));
    assert_eq!(named("  get_pet\t").await, (200, None), "MCP-H-6");
    assert_eq!(
        named("=?base64?Z2V0X3BldA==?=").await,
        (200, None),
        "MCP-H-7, MCP-H-10, MCP-SD-20"
    );
    for wrong in [
        "get_Pet",
        "=?base64?Z2V0X3BldA?=",
        "=?base64?Z2V0X3Bld!==?=",
        "=?base64?/w==?=",
    ] {
        assert_eq!(
            named(wrong).await,
            (400, Some(-32020)),
            "MCP-H-5, MCP-H-8: {wrong}"
        );
    }
    for literal in [
        "=?base64?Z2V0X3BldA==",
        "=?BASE64?Z2V0X3BldA==?=",
        "Z2V0X3BldA==",
    ] {
        assert_eq!(
            named(literal).await,
            (400, Some(-32020)),
            "MCP-H-9: it is no name but text: {literal}"
        );
    }
    let raw = http::HeaderValue::from_bytes(b"get_p\xe9t").unwrap();
    let mut request = node.request(
        "POST",
        &[
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
        ],
        modern_wire::modern("tools/call", call.clone()).to_string(),
    );
    request.headers_mut().insert("mcp-name", raw);
    let answer = node.send(request).await;
    assert_eq!((answer.status, answer.code()), (400, -32020), "MCP-H-11");
    let other = node
        .ask("tools/list", json!({}), &[("mcp-name", "whatever")])
        .await;
    assert_eq!(other.status, 200, "MCP-H-4");
    let wrong = node
        .post(
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/List"),
            ],
            &modern_wire::modern("tools/list", json!({})),
        )
        .await;
    assert_eq!(
        (wrong.status, wrong.code()),
        (400, -32020),
        "MCP-H-1, MCP-T-12"
    );
    assert_eq!(wrong.json()["id"], "r-1", "MCP-E-9");
}

/// Repeats a call with `Mcp-Name`.
trait ThenNamed {
    async fn then_named(self, node: &Node, name: &str) -> (u16, Option<i64>);
}

impl<F: Future<Output = Answer>> ThenNamed for F {
    async fn then_named(self, node: &Node, name: &str) -> (u16, Option<i64>) {
        let missing = self.await;
        assert_eq!(
            (missing.status, missing.code()),
            (400, -32020),
            "MCP-H-2: it is required"
        );
        let call = json!({"name": "get_pet", "arguments": {"id": "1"}});
        let answer = node.ask("tools/call", call, &[("mcp-name", name)]).await;
        (answer.status, answer.json()["error"]["code"].as_i64())
    }
}

#[tokio::test]
async fn h_13_h_20_h_15_h_19_mirrored_arguments_of_the_tool_as_it_is_served_now() {
    let node = Node::start().await;
    let call = |arguments: Value, headers: &'static [(&'static str, &'static str)]| {
        let node = &node;
        async move {
            let mut all = vec![("mcp-name", "with_header")];
            all.extend_from_slice(headers);
            let answer = node
                .ask(
                    "tools/call",
                    json!({"name": "with_header", "arguments": arguments}),
                    &all,
                )
                .await;
            (answer.status, answer.json()["error"]["code"].as_i64())
        }
    };
    let refused = (400, Some(-32020));
    assert_eq!(call(json!({"id": "7"}), &[]).await, refused, "MCP-H-13");
    assert_eq!(
        call(json!({}), &[("mcp-param-pet", "7")]).await,
        refused,
        "MCP-H-13"
    );
    assert_eq!(
        call(json!({"id": "7"}), &[("mcp-param-pet", "8")]).await,
        refused
    );
    assert_eq!(
        call(json!({"id": "7"}), &[("Mcp-Param-Pet", "7")]).await,
        (200, None),
        "MCP-T-12"
    );
    assert_eq!(
        call(
            json!({"id": "7"}),
            &[("mcp-param-pet", "7"), ("mcp-param-other", "x")]
        )
        .await,
        (200, None),
        "MCP-H-15"
    );
    // MCP-H-19: no older list is remembered.
    node.publish(&["get_pet"]);
    let gone = node
        .ask(
            "tools/call",
            json!({"name": "with_header", "arguments": {"id": "7"}}),
            &[("mcp-name", "with_header")],
        )
        .await;
    assert_eq!(
        (gone.status, gone.code()),
        (200, -32602),
        "MCP-T-67, MCP-TL-16"
    );
}

#[tokio::test]
async fn d_1_d_2_d_6_d_7_who_mirrors_its_method_at_initialize_speaks_the_draft() {
    let node = Node::start().await;
    for revision in ["2025-03-26", "2025-06-18"] {
        let answer = node
            .post(&[("mcp-method", "initialize")], &initialize(revision))
            .await;
        assert_eq!(
            answer.json()["result"]["protocolVersion"],
            revision,
            "MCP-D-1: whatever version it speaks"
        );
        let session = answer.header("mcp-session-id").to_owned();
        let bare = [("mcp-session-id", session.as_str())];
        let refused = node.post(&bare, &rpc("ping", json!({}))).await;
        assert_eq!(
            (refused.status, refused.code()),
            (400, -32001),
            "MCP-D-2, MCP-ER-6, MCP-SD-17, MCP-SD-18"
        );
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            node.post(&bare, &notice).await.status,
            400,
            "MCP-D-2: on notifications, too"
        );
        let mirrored = [bare[0], ("mcp-method", "notifications/initialized")];
        assert_eq!(node.post(&mirrored, &notice).await.status, 202);
        let answered = json!({"jsonrpc": "2.0", "id": "q", "result": {}});
        assert_eq!(
            node.post(&bare, &answered).await.status,
            202,
            "MCP-D-2: not on responses"
        );
        assert_eq!(
            pet(
                &node,
                &session,
                &[("mcp-method", "tools/call"), ("mcp-name", "get_pet")]
            )
            .await
            .status,
            200
        );
        assert_eq!(
            pet(
                &node,
                &session,
                &[("mcp-method", "tools/call"), ("mcp-name", "zebra")]
            )
            .await
            .status,
            400,
            "MCP-H-2"
        );
        // MCP-D-5: a value that looks encoded and is not is text.
        let odd = pet(
            &node,
            &session,
            &[("mcp-method", "tools/call"), ("mcp-name", "=?base64?!?=")],
        )
        .await;
        assert_eq!((odd.status, odd.code()), (400, -32001), "MCP-D-5");
        let (_, headers, mut stream) = node.open(&bare).await;
        assert_eq!(headers["x-accel-buffering"], "no", "MCP-D-6");
        assert!(
            frame(&mut stream).await.unwrap().starts_with("retry: "),
            "MCP-D-7"
        );
        assert!(
            event_id(&frame(&mut stream).await.unwrap()).is_some(),
            "MCP-D-7: primed"
        );
    }
    // MCP-D-3: other clients need not mirror, but may not contradict.
    let session = node.initialize("2025-06-18").await;
    assert_eq!(pet(&node, &session, &[]).await.status, 200);
    let refused = pet(&node, &session, &[("mcp-method", "tools/list")]).await;
    assert_eq!((refused.status, refused.code()), (400, -32001), "MCP-D-3");
}

#[tokio::test]
async fn er_1_what_is_no_json_is_a_parse_error() {
    let node = Node::start().await;
    for body in ["{", "", "{\"jsonrpc\":\"2.0\"", "nonsense"] {
        let answer = node.send(node.request("POST", &[], body.to_owned())).await;
        assert_eq!((answer.status, answer.code()), (400, -32700), "{body:?}");
        assert!(answer.json().get("result").is_none(), "{body:?}");
    }
}

#[tokio::test]
async fn n_7_a_cursor_of_one_node_is_good_on_another() {
    let node = Node::start().await;
    let twin = node.twin().await;
    let names = ["broken", "get_pet", "slow", "with_header", "zebra"];
    twin.publish(&names);
    let session = node.initialize("2025-11-25").await;
    let first = node.call(&session, "tools/list", json!({})).await.json();
    let cursor = &first["result"]["nextCursor"];
    let next = twin
        .call(&session, "tools/list", json!({"cursor": cursor}))
        .await
        .json();
    let shown: Vec<&str> = [&first, &next]
        .iter()
        .flat_map(|page| page["result"]["tools"].as_array().unwrap())
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(shown, names[..4]);
}

#[tokio::test]
async fn tl_23_calls_are_checked_held_to_what_is_published_and_limited() {
    let node = Node::start().await;
    node.publish_with(
        &["get_pet"],
        &LimitSet::default().with(LimitName::ToolCalls, 3),
    );
    let session = node.initialize("2025-11-25").await;
    let call = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        node.call(&session, "tools/call", params).await
    };
    let misfit = call("get_pet", json!({"id": 7})).await.json();
    assert_eq!(misfit["result"]["isError"], true, "MCP-TL-23: inputs");
    assert_eq!(
        call("zebra", json!({})).await.code(),
        -32602,
        "MCP-TL-23: access"
    );
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(call("get_pet", json!({"id": "1"})).await.status);
    }
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "MCP-TL-23: {statuses:?}");
}

#[tokio::test]
async fn dp_1_and_dp_2_nothing_of_ours_asks_for_roots_or_samples() {
    let node = Node::start().await;
    let mut body = initialize("2025-11-25");
    body["params"]["capabilities"] = json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}});
    let session = node.post(&[], &body).await;
    let session = session.header("mcp-session-id").to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    for notice in [
        "notifications/initialized",
        "notifications/roots/list_changed",
    ] {
        let notice = json!({"jsonrpc": "2.0", "method": notice});
        assert_eq!(node.post(&headers, &notice).await.status, 202);
    }
    let (_, _, mut stream) = node.open(&headers).await;
    frame(&mut stream).await;
    frame(&mut stream).await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "get_pet", "arguments": {"id": "1"}}),
        ),
        ("tools/call", json!({"name": "broken"})),
        ("resources/list", json!({})),
        ("prompts/list", json!({})),
    ] {
        let answer = node.call(&session, method, params).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        for asked in ["roots/list", "sampling/createMessage"] {
            assert!(
                !said.contains(asked),
                "MCP-DP-1, MCP-DP-2: {method}: {said}"
            );
        }
    }
    assert!(
        is_quiet(&mut stream).await,
        "MCP-DP-1, MCP-DP-2: nor beside them"
    );
}

#[tokio::test]
async fn l_5_sd_2_sd_4_the_older_name_of_initialized_is_taken_without_accept() {
    let node = Node::start().await;
    let session = node.initialize("2025-06-18").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    let older = json!({"jsonrpc": "2.0", "method": "initialized"});
    assert_eq!(
        node.post(&[("mcp-session-id", &session)], &older)
            .await
            .status,
        202
    );
    node.publish(&["zebra"]);
    crate::streams::list_changes::tell_tenant(&node.state, node.tenant).await;
    let news = frame(&mut stream).await.unwrap();
    assert_eq!(
        data(&news)["method"],
        "notifications/tools/list_changed",
        "MCP-L-6"
    );
}
