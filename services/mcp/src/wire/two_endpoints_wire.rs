//! HTTP+SSE of 2024-11-05, on one node and on two (MCP-O-1…MCP-O-7).

use crate::wire::*;

const EVENTS: &str = "/t/acme/pets/sse";

/// A client with its stream open.
struct Client {
    stream: Body,
    address: String,
}

impl Node {
    fn at(&self, verb: &str, path: &str, body: String) -> Request<Body> {
        let (mut parts, body) = self.request(verb, &[], body).into_parts();
        parts.uri = path.parse().unwrap();
        Request::from_parts(parts, body)
    }

    /// Opens the stream and reads the address for POSTs.
    async fn connect(&self) -> Client {
        let request = self.at("GET", EVENTS, String::new());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, mut stream) = response.into_parts();
        assert_eq!(
            (
                head.status.as_u16(),
                head.headers["content-type"].to_str().unwrap()
            ),
            (200, "text/event-stream")
        );
        assert!(!head.headers.contains_key("mcp-session-id"), "MCP-O-5");
        let first = frame(&mut stream).await.unwrap();
        let address = first
            .strip_prefix("event: endpoint\ndata: ")
            .unwrap_or_else(|| panic!("MCP-O-2: {first:?}"))
            .trim_end()
            .to_owned();
        assert!(
            address.starts_with("/t/acme/pets/messages?sessionId="),
            "{address}"
        );
        Client { stream, address }
    }

    /// POSTs to the address of a client.
    async fn say(&self, client: &Client, body: &Value) -> Answer {
        self.send(self.at("POST", &client.address, body.to_string()))
            .await
    }

    /// A connection that negotiated `revision`.
    async fn connect_and_initialize(&self, revision: &str) -> Client {
        let mut client = self.connect().await;
        assert_eq!(self.say(&client, &initialize(revision)).await.status, 202);
        let told = client.next().await;
        assert_eq!(told["result"]["protocolVersion"], revision, "{told}");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.say(&client, &ready).await.status, 202);
        client
    }
}

impl Client {
    /// The next message; comments are skipped.
    async fn next(&mut self) -> Value {
        loop {
            let frame = frame(&mut self.stream).await.expect("the stream goes on");
            if frame.starts_with(':') {
                continue;
            }
            assert!(frame.starts_with("event: message\n"), "MCP-O-3: {frame:?}");
            assert_eq!(event_id(&frame), None, "MCP-O-6");
            return data(&frame);
        }
    }
}

fn get_pet(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "get_pet", "arguments": {"id": "7"}}})
}

#[tokio::test]
async fn o_3_everything_comes_on_the_stream_and_a_post_gets_202_and_nothing() {
    let node = Node::start().await;
    let mut client = node.connect_and_initialize("2024-11-05").await;
    let ping = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
    let answer = node.say(&client, &ping).await;
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    assert_eq!(
        client.next().await,
        json!({"jsonrpc": "2.0", "id": "a", "result": {}})
    );
    node.say(&client, &rpc("tools/list", json!({}))).await;
    let list = client.next().await;
    assert_eq!(list["result"]["tools"][0]["name"], "broken");
    assert!(
        list["result"]["tools"][0].get("annotations").is_none(),
        "MCP-FA-1: {list}"
    );
    assert_eq!(node.say(&client, &get_pet(2)).await.status, 202);
    let called = client.next().await;
    assert_eq!(
        (
            &called["id"],
            called["result"]["content"][0]["type"].as_str()
        ),
        (&json!(2), Some("text"))
    );
    assert!(
        called["result"].get("structuredContent").is_none(),
        "MCP-FA-2: {called}"
    );
    node.say(&client, &rpc("resources/fetch", json!({}))).await;
    assert_eq!(
        client.next().await["error"]["code"],
        -32601,
        "MCP-ER-3: as a message, not a status"
    );
}

#[tokio::test]
async fn o_6_a_post_may_land_on_any_node() {
    let node = Node::start().await;
    let twin = node.twin().await;
    let mut client = node.connect().await;
    assert_eq!(
        twin.say(&client, &initialize("2024-11-05")).await.status,
        202
    );
    assert_eq!(
        client.next().await["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(twin.say(&client, &get_pet(5)).await.status, 202);
    let called = client.next().await;
    assert_eq!(
        (&called["id"], called["error"].is_null()),
        (&json!(5), true),
        "{called}"
    );
    assert_eq!(node.say(&client, &get_pet(6)).await.status, 202);
    assert_eq!(client.next().await["id"], 6);
}

#[tokio::test]
async fn o_6_the_session_ends_with_its_connection_and_its_calls_are_cancelled_on_every_node() {
    let node = Node::start().await;
    let twin = node.twin().await;
    twin.publish(&["slow"]);
    let client = node.connect_and_initialize("2024-11-05").await;
    let slow = rpc("tools/call", json!({"name": "slow", "arguments": {}}));
    assert_eq!(twin.say(&client, &slow).await.status, 202);
    node.arrived.notified().await;
    assert_eq!(twin.state.call_log.running(), 1);
    let Client { stream, address } = client;
    drop(stream);
    tokio::time::timeout(Duration::from_secs(5), async {
        while twin.state.call_log.running() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("MCP-O-6: the call is stopped");
    for side in [&node, &twin] {
        let late = side
            .send(side.at("POST", &address, get_pet(9).to_string()))
            .await;
        assert_eq!(late.status, 404, "MCP-O-4");
    }
}

#[tokio::test]
async fn o_5_any_legacy_version_is_negotiated_and_batches_belong_to_2025_03_26() {
    let node = Node::start().await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = node.connect_and_initialize(revision).await;
        let batch = json!([get_pet(1), {"jsonrpc": "2.0", "id": 2, "method": "ping"}]);
        let answer = node.say(&client, &batch).await;
        if revision == "2025-03-26" {
            assert_eq!(answer.status, 202, "MCP-J-12");
            let ids = [
                client.next().await["id"].clone(),
                client.next().await["id"].clone(),
            ];
            assert!(
                ids.contains(&json!(1)) && ids.contains(&json!(2)),
                "MCP-J-14: {ids:?}"
            );
        } else {
            assert_eq!(
                (answer.status, answer.code()),
                (400, -32600),
                "MCP-J-16: {revision}"
            );
        }
        node.say(&client, &initialize(revision)).await;
        assert_eq!(client.next().await["error"]["code"], -32600, "once");
    }
    let mut client = node.connect().await;
    node.say(&client, &initialize("2026-07-28")).await;
    assert_eq!(
        client.next().await["result"]["protocolVersion"],
        "2025-11-25",
        "MCP-L-2"
    );
}

#[tokio::test]
async fn pi_1_a_ping_is_answered_before_initialize_and_nothing_else_is() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    node.say(&client, &rpc("ping", json!({}))).await;
    assert_eq!(client.next().await["result"], json!({}));
    node.say(&client, &rpc("tools/list", json!({}))).await;
    assert_eq!(client.next().await["error"]["code"], -32600);
}

#[tokio::test]
async fn o_4_what_is_no_message_or_of_no_connection_is_refused_at_the_post() {
    let node = Node::start().await;
    let client = node.connect().await;
    let post = |path: &str, body: &str| node.send(node.at("POST", path, body.to_owned()));
    let malformed = post(&client.address, "{").await;
    assert_eq!((malformed.status, malformed.code()), (400, -32700));
    let shapeless = post(
        &client.address,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    )
    .await;
    assert_eq!((shapeless.status, shapeless.code()), (400, -32600));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (base, _) = client.address.split_once('?').unwrap();
    assert_eq!(post(base, ping).await.status, 400);
    for id in ["nonsense", &"A".repeat(90)] {
        assert_eq!(
            post(&format!("{base}?sessionId={id}"), ping).await.status,
            404
        );
    }
    // A session of the other transport has no stream here.
    let other = node.initialize("2024-11-05").await;
    assert_eq!(
        post(&format!("{base}?sessionId={other}"), ping)
            .await
            .status,
        404
    );
    let mut stranger = node.claims();
    stranger.client_id = "client-b".to_owned();
    let mut request = node.at("POST", &client.address, ping.to_owned());
    request
        .headers_mut()
        .insert(header::AUTHORIZATION, node.sign(&stranger).parse().unwrap());
    assert_eq!(
        node.send(request).await.status,
        404,
        "bound to who opened it"
    );
}

#[tokio::test]
async fn o_7_sd_10_both_addresses_are_guarded_like_the_endpoint() {
    let node = Node::start().await;
    let client = node.connect().await;
    for (verb, path, allow) in [
        ("GET", EVENTS, "GET, OPTIONS"),
        ("POST", client.address.as_str(), "POST, OPTIONS"),
    ] {
        let bare = Request::builder().method(verb).uri(path);
        let answer = node.send(bare.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 401, "MCP-T-4: {path}");
        let challenge = answer.header("www-authenticate");
        assert!(
            challenge.contains("/.well-known/oauth-protected-resource/t/acme/pets/sse\""),
            "AUTH-E3: {challenge}"
        );
        let mut foreign = node.at(verb, path, String::new());
        foreign
            .headers_mut()
            .insert(header::ORIGIN, "https://evil.example".parse().unwrap());
        assert_eq!(node.send(foreign).await.status, 403, "MCP-T-1: {path}");
        let wrong = node.send(node.at("DELETE", path, String::new())).await;
        assert_eq!(
            (wrong.status, wrong.header("allow")),
            (405, allow),
            "MCP-T-5, MCP-D-6"
        );
    }
    // MCP-SD-8: a client of the newer transport learns from a 405 that this is the older one.
    let newer = node.at("POST", EVENTS, initialize("2025-11-25").to_string());
    assert_eq!(node.send(newer).await.status, 405);
    let document = node
        .send(
            Request::get(format!("/.well-known/oauth-protected-resource{EVENTS}"))
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(
        document.json()["resource"],
        format!("{ISSUER}{EVENTS}"),
        "AUTH-E3"
    );
}

#[tokio::test]
async fn tl_20_news_of_the_list_come_on_the_stream_without_an_id() {
    let node = Node::start().await;
    let mut client = node.connect_and_initialize("2024-11-05").await;
    node.publish(&["zebra"]);
    crate::streams::list_changes::tell_tenant(&node.state, node.tenant).await;
    assert_eq!(
        client.next().await,
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
}

#[tokio::test]
async fn l_2_l_18_the_oldest_revision_is_served_on_streamable_http_too() {
    let node = Node::start().await;
    let session = node.initialize("2024-11-05").await;
    let listed = node.call(&session, "tools/list", json!({})).await.json();
    assert!(
        listed["result"]["tools"][0].get("annotations").is_none(),
        "{listed}"
    );
    let refused = node
        .post(
            &[
                ("mcp-protocol-version", "2031-01-01"),
                ("mcp-method", "tools/list"),
            ],
            &rpc(
                "tools/list",
                json!({"_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2031-01-01",
                    "io.modelcontextprotocol/clientCapabilities": {},
                }}),
            ),
        )
        .await;
    assert_eq!(
        refused.json()["error"]["data"]["supported"],
        json!([
            "2026-07-28",
            "2025-11-25",
            "2025-06-18",
            "2025-03-26",
            "2024-11-05"
        ])
    );
}
