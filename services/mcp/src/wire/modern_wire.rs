//! 2026-07-28 over the wire.

use crate::wire::*;

const VERSION: &str = "2026-07-28";

pub(crate) fn modern(method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "2"},
    });
    json!({"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params})
}

impl Node {
    pub(crate) async fn ask(&self, method: &str, params: Value, more: &[(&str, &str)]) -> Answer {
        let mut headers = vec![("mcp-protocol-version", VERSION), ("mcp-method", method)];
        headers.extend_from_slice(more);
        self.post(&headers, &modern(method, params)).await
    }
}

#[tokio::test]
async fn l_17_discover_tells_versions_capabilities_and_who_we_are() {
    let node = Node::start().await;
    let answer = node.ask("server/discover", json!({}), &[]).await;
    let body = answer.json();
    assert_eq!(body["id"], "r-1", "MCP-J-5");
    let result = &body["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"][0], VERSION, "MCP-L-18");
    assert_eq!(
        (result["ttlMs"].clone(), result["cacheScope"].clone()),
        (json!(300_000), json!("private")),
        "MCP-CA-4"
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "pets",
        "MCP-J-18"
    );
    assert!(
        !answer.has(HeaderName::from_static("mcp-session-id")),
        "MCP-E-12"
    );
}

#[tokio::test]
async fn a_request_that_stands_alone_lists_and_calls() {
    let node = Node::start().await;
    let list = node.ask("tools/list", json!({}), &[]).await.json();
    assert_eq!(
        (
            list["result"]["ttlMs"].clone(),
            list["result"]["resultType"].clone()
        ),
        (json!(60_000), json!("complete"))
    );
    let cursor = list["result"]["nextCursor"].clone();
    let next = node
        .ask("tools/list", json!({"cursor": cursor}), &[])
        .await
        .json();
    assert_eq!(next["result"]["tools"][0]["name"], "slow");
    assert_eq!(next["result"]["cacheScope"], "private", "MCP-CA-2");
    let call = node
        .ask(
            "tools/call",
            json!({"name": "get_pet", "arguments": {"id": "9"}}),
            &[("mcp-name", "get_pet")],
        )
        .await;
    let result = &call.json()["result"];
    assert_eq!(
        (
            result["resultType"].clone(),
            result["structuredContent"]["id"].clone()
        ),
        (json!("complete"), json!("9"))
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "pets"
    );
    let misfit = node
        .ask(
            "tools/call",
            json!({"name": "get_pet"}),
            &[("mcp-name", "get_pet")],
        )
        .await
        .json();
    assert_eq!(
        (
            misfit["result"]["isError"].clone(),
            misfit["result"]["resultType"].clone()
        ),
        (json!(true), json!("complete")),
        "MCP-TL-18"
    );
}

#[tokio::test]
async fn e_7_the_ladder_gives_each_fault_its_code() {
    let node = Node::start().await;
    let method_only =
        |method: &'static str| vec![("mcp-protocol-version", VERSION), ("mcp-method", method)];
    let no_header = node.post(&[], &modern("tools/list", json!({}))).await;
    assert_eq!(
        (
            no_header.status,
            no_header.code(),
            no_header.json()["id"].clone()
        ),
        (400, -32020, json!("r-1")),
        "step 2, E-9"
    );
    let no_method = node
        .post(
            &[("mcp-protocol-version", VERSION)],
            &modern("tools/list", json!({})),
        )
        .await;
    assert_eq!(
        (no_method.status, no_method.code()),
        (400, -32020),
        "step 3"
    );
    let no_name = node
        .post(
            &method_only("tools/call"),
            &modern("tools/call", json!({"name": "zebra"})),
        )
        .await;
    assert_eq!((no_name.status, no_name.code()), (400, -32020), "MCP-H-5");
    let unknown = node.ask("tools/nope", json!({}), &[]).await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (404, -32601),
        "step 6, T-66"
    );
    for gone in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/list",
        "initialize",
        "tasks/result",
    ] {
        let answer = node.ask(gone, json!({}), &[]).await;
        assert_eq!(
            (answer.status, answer.code()),
            (404, -32601),
            "MCP-E-10: {gone}"
        );
    }
    let no_tool = node
        .ask(
            "tools/call",
            json!({"name": "nope"}),
            &[("mcp-name", "nope")],
        )
        .await;
    assert_eq!(
        (no_tool.status, no_tool.code()),
        (200, -32602),
        "step 7, T-67"
    );
    let resource = node
        .ask(
            "resources/read",
            json!({"uri": "x:y"}),
            &[("mcp-name", "x:y")],
        )
        .await;
    assert_eq!(
        (resource.status, resource.code()),
        (200, -32602),
        "MCP-RE-5"
    );
}

#[tokio::test]
async fn h_12_and_h_13_a_mirrored_argument_must_be_there_and_equal() {
    let node = Node::start().await;
    let call = |more: Vec<(&'static str, &'static str)>| {
        let node = &node;
        async move {
            let mut headers = vec![("mcp-name", "with_header")];
            headers.extend(more);
            node.ask(
                "tools/call",
                json!({"name": "with_header", "arguments": {"id": "5"}}),
                &headers,
            )
            .await
        }
    };
    let missing = call(vec![]).await;
    assert_eq!((missing.status, missing.code()), (400, -32020));
    assert_eq!(call(vec![("mcp-param-pet", "6")]).await.code(), -32020);
    assert_eq!(
        call(vec![("mcp-param-pet", "5")]).await.json()["result"]["structuredContent"]["id"],
        "5"
    );
    let legacy = node.initialize("2025-11-25").await;
    let answer = node
        .call(
            &legacy,
            "tools/call",
            json!({"name": "with_header", "arguments": {"id": "5"}}),
        )
        .await;
    assert_eq!(
        answer.json()["result"]["structuredContent"]["id"],
        "5",
        "MCP-D-3: not asked of legacy sessions"
    );
}

#[tokio::test]
async fn e_14_a_modern_notification_is_taken() {
    let node = Node::start().await;
    let mut body = modern("notifications/cancelled", json!({"requestId": 1}));
    body.as_object_mut().unwrap().remove("id");
    let answer = node.post(&[("mcp-protocol-version", VERSION)], &body).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0));
}

#[tokio::test]
async fn t_63_and_cn_5_a_lost_connection_drops_the_work() {
    let node = Node::start().await;
    let headers = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "slow"),
    ];
    let request = node.request(
        "POST",
        &headers,
        modern("tools/call", json!({"name": "slow"})).to_string(),
    );
    let mut pending = Box::pin(node.router.clone().oneshot(request));
    for _ in 0..50 {
        assert!(futures_util::poll!(&mut pending).is_pending());
        tokio::task::yield_now().await;
    }
    drop(pending);
    assert!(
        node.state.tracker.is_empty(),
        "no task outlives the request"
    );
}

#[tokio::test]
async fn t_65_get_and_delete_without_a_session_are_400() {
    let node = Node::start().await;
    for verb in ["GET", "DELETE"] {
        let answer = node.send(node.request(verb, &[], String::new())).await;
        assert_eq!((answer.status, answer.code()), (400, -32600), "{verb}");
    }
}
