//! Finding out what a server speaks (MCP-X-1…MCP-X-5), and holding sessions with it (MCP-X-7,
//! MCP-X-12).

use portolan_protocol::jsonrpc::Raw;
use portolan_upstream::{
    Connection, Legacy, Limits, Probed, Request, Speaker, Ticket, UpstreamError,
};
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::scripted::{Say, Server, error, events, json as body, plain, result};

async fn probe(server: &Server) -> Result<Probed, UpstreamError> {
    let client = server.client(Limits::default());
    client
        .probe(&Speaker::ourselves(), &TaskTracker::new())
        .await
}

fn handshake(version: &'static str) -> Say {
    Box::new(move |seen| {
        let mut answer = body(
            200,
            &json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"protocolVersion": version,
                "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "theirs", "version": "9"},
                "instructions": "Be kind."}}),
        );
        let id = "their-session".parse().unwrap();
        answer.headers_mut().insert("mcp-session-id", id);
        answer
    })
}

#[tokio::test]
async fn x_1_a_modern_server_is_asked_one_question_and_every_header_is_ours() {
    let server = Server::start(vec![result(json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"],
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "theirs", "title": "Theirs", "version": "1"}}
    }))])
    .await;
    let probed = probe(&server).await.unwrap();
    assert!(matches!(probed.connection, Connection::Modern(_)));
    assert_eq!(probed.facts.name().as_deref(), Some("Theirs"));
    assert!(probed.facts.has("tools") && !probed.facts.has("prompts"));
    let seen = &server.seen()[0];
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("server/discover"));
    assert_eq!(seen.header("authorization"), Some("Bearer ours"));
    assert_eq!(
        seen.body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"],
        "portolan"
    );
}

#[tokio::test]
async fn x_3_what_refuses_the_question_in_whatever_way_is_offered_a_handshake() {
    // The SDK 1.x of Python, word for word.
    let pythons: Say = Box::new(|_| {
        let refused = json!({"code": -32600, "message": "Bad Request: Missing session ID"});
        body(
            400,
            &json!({"jsonrpc": "2.0", "id": "server-error", "error": refused}),
        )
    });
    let refusals: Vec<Say> = vec![
        plain(400),
        plain(404),
        plain(405),
        plain(406),
        error(
            400,
            json!({"code": -32000, "message": "Bad Request: No valid session ID provided"}),
        ),
        error(404, json!({"code": -32001, "message": "Session not found"})),
        pythons,
        error(200, json!({"code": -32601, "message": "Method not found"})),
        error(404, json!({"code": -32601, "message": "Method not found"})),
        error(
            400,
            json!({"code": -32022, "message": "no", "data": {"supported": ["2025-06-18"]}}),
        ),
        result(json!({"supportedVersions": ["2025-11-25"]})),
    ];
    for refusal in refusals {
        let server = Server::start(vec![refusal, handshake("2025-06-18"), plain(202)]).await;
        let probed = probe(&server).await.unwrap();
        assert!(matches!(probed.connection, Connection::Legacy(_)));
        assert_eq!(probed.facts.revision.as_str(), "2025-06-18");
        assert_eq!(probed.facts.instructions.as_deref(), Some("Be kind."));
        let seen = server.seen();
        assert_eq!(
            server.said(),
            ["server/discover", "initialize", "notifications/initialized"]
        );
        // MCP-T-46: not on the handshake, whose version is in the body; on everything after it.
        assert_eq!(seen[1].header("mcp-protocol-version"), None);
        assert_eq!(seen[1].body["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(seen[2].header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(seen[2].header("mcp-session-id"), Some("their-session"));
    }
}

#[tokio::test]
async fn x_4_what_says_nothing_of_the_era_is_an_error_and_no_second_question() {
    for (code, kind) in [
        (401, "unauthorized"),
        (403, "forbidden"),
        (429, "limited"),
        (503, "status"),
    ] {
        let server = Server::start(vec![plain(code)]).await;
        let error = probe(&server).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn x_5_a_version_that_nobody_knows_is_a_fault_of_the_server() {
    for version in ["2031-01-01", "2026-07-28", ""] {
        let server = Server::start(vec![plain(404), handshake(version)]).await;
        assert!(
            matches!(probe(&server).await, Err(UpstreamError::Version(shown)) if shown == version)
        );
    }
    let server = Server::start(vec![error(
        400,
        json!({"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}),
    )])
    .await;
    assert!(matches!(
        probe(&server).await,
        Err(UpstreamError::Version(_))
    ));
}

#[tokio::test]
async fn x_2_a_server_that_refuses_the_version_it_names_is_asked_once_more() {
    let refuses = || {
        error(
            400,
            json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28", "2025-06-18"]}}),
        )
    };
    let knows = result(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}));
    let server = Server::start(vec![refuses(), knows]).await;
    let probed = probe(&server).await.unwrap();
    assert!(matches!(probed.connection, Connection::Modern(_)));
    assert_eq!(server.said(), ["server/discover", "server/discover"]);

    let server = Server::start(vec![refuses(), refuses()]).await;
    assert!(matches!(
        probe(&server).await,
        Err(UpstreamError::Version(_))
    ));
    assert_eq!(server.said(), ["server/discover", "server/discover"]);
}

#[tokio::test]
async fn x_1c_an_http_sse_server_is_found_last_and_answers_on_its_stream() {
    let server = Server::start(vec![
        plain(405),
        plain(405),
        events(
            &["event: endpoint\ndata: /messages?sessionId=abc\n\n"],
            true,
        ),
        plain(202),
    ])
    .await;
    // The handshake is never answered on that stream: what the server gets is what matters here.
    let client = server.client(Limits {
        silence: std::time::Duration::from_millis(300),
        ..Limits::default()
    });
    let outcome = client
        .probe(&Speaker::ourselves(), &TaskTracker::new())
        .await;
    assert!(
        matches!(outcome, Err(UpstreamError::Timeout(_))),
        "{outcome:?}"
    );
    assert_eq!(
        server.said(),
        ["server/discover", "initialize", "GET", "initialize"]
    );
    assert_eq!(
        server.seen()[3].header("authorization"),
        Some("Bearer ours")
    );
}

#[tokio::test]
async fn o_2_an_endpoint_event_that_leads_to_another_origin_never_gets_our_credential() {
    let server = Server::start(vec![
        plain(405),
        plain(405),
        events(
            &["event: endpoint\ndata: http://evil.example/messages\n\n"],
            true,
        ),
    ])
    .await;
    assert!(probe(&server).await.is_err());
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn x_7_a_forgotten_session_is_told_apart_and_its_ticket_goes_on_elsewhere() {
    let server = Server::start(vec![
        plain(404),
        handshake("2025-11-25"),
        plain(202),
        result(json!({"tools": []})),
        plain(404),
        plain(405),
    ])
    .await;
    let Connection::Legacy(legacy) = probe(&server).await.unwrap().connection else {
        panic!("it is a session")
    };
    // Sealed in a record, opened by another node.
    let ticket = Ticket::read(&legacy.ticket().to_text()).unwrap();
    let again = Connection::Legacy(Legacy::resume(server.client(Limits::default()), ticket));
    let request = Request::new("tools/list", Raw::empty_object());
    again.ask(&request).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[3].header("mcp-session-id"), Some("their-session"));
    assert!(matches!(
        again.ask(&request).await,
        Err(UpstreamError::SessionGone)
    ));
    again.end().await;
    assert_eq!(server.said().last().unwrap(), "DELETE");
    assert!(
        !format!("{again:?}").contains("their-session"),
        "no log shows it"
    );
}

#[tokio::test]
async fn t_41_a_session_id_that_no_header_could_carry_back_is_refused() {
    let odd: Say = Box::new(|seen| {
        let mut answer = body(
            200,
            &json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {}}),
        );
        let id = http::HeaderValue::from_bytes(b"a b").unwrap();
        answer.headers_mut().insert("mcp-session-id", id);
        answer
    });
    let server = Server::start(vec![plain(404), odd]).await;
    assert_eq!(probe(&server).await.unwrap_err().kind(), "violation");
}

#[tokio::test]
async fn ab_15_an_address_inside_is_not_called() {
    let server = Server::start(vec![]).await;
    let inside = portolan_net::egress::Egress::new(portolan_net::egress::EgressPolicy {
        allow_plain_http: true,
        ..Default::default()
    });
    let endpoint = portolan_upstream::Endpoint {
        url: format!("http://{}/mcp", server.address).parse().unwrap(),
        headers: http::HeaderMap::new(),
        secrets: portolan_net::secrets::Secrets::default(),
        limits: Limits::default(),
    };
    let client = portolan_upstream::Client::new(inside.unwrap(), endpoint);
    let outcome = client
        .probe(&Speaker::ourselves(), &TaskTracker::new())
        .await;
    assert_eq!(outcome.unwrap_err().kind(), "blocked_address");
    assert!(server.seen().is_empty());
}

/// MCP-X-5 (REVIEW-Q4): a server of both eras says by its handshake that it holds sessions;
/// MCP-X-4: what says nothing, does not.
#[tokio::test]
async fn q4_x_5_a_server_of_both_eras_holds_sessions_with_ids() {
    let holds = async |say: Vec<Say>| {
        let server = Server::start(say).await;
        let client = server.client(Limits::default());
        let held = client.holds_sessions(&Speaker::ourselves()).await;
        held.map(|held| held.map(|probed| probed.connection))
    };
    let held = holds(vec![handshake("2025-11-25"), plain(202)]).await;
    assert!(matches!(held, Ok(Some(Connection::Legacy(_)))), "{held:?}");
    let without_id = result(json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    for (what, say) in [
        ("no id", without_id),
        ("refused", plain(400)),
        ("no version of sessions", handshake("2026-07-28")),
        (
            "an error",
            error(200, json!({"code": -32601, "message": "no"})),
        ),
    ] {
        let held = holds(vec![say, plain(202)]).await;
        assert!(matches!(held, Ok(None)), "{what}: {held:?}");
    }
    for code in [401, 403, 429, 503] {
        assert!(holds(vec![plain(code)]).await.is_err(), "{code}");
    }
}
