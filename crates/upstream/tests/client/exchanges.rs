//! Requests, and all that may come before their answer (MCP-X-6…MCP-X-8, MCP-X-71…MCP-X-79,
//! MCP-X-7E, MCP-X-85).

use std::time::Duration;

use portolan_protocol::{error::RpcError, jsonrpc::Raw};
use portolan_upstream::{
    Connection, ExchangeEvent, Legacy, Limits, Modern, Request, Speaker, Ticket, UpstreamError,
};
use serde_json::json;

use crate::scripted::{Say, Server, error, events, json as body, plain, result};

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}

fn limits() -> Limits {
    Limits {
        silence: Duration::from_millis(500),
        ..Limits::default()
    }
}

fn session(server: &Server) -> Connection {
    let ticket = Ticket::read("2025-11-25 theirs").unwrap();
    Connection::Legacy(Legacy::resume(server.client(limits()), ticket))
}

fn modern(server: &Server) -> Connection {
    Connection::Modern(Modern::new(server.client(limits()), Speaker::ourselves()))
}

fn call() -> Request<'static> {
    Request {
        progress: true,
        ..Request::new(
            "tools/call",
            raw(r#"{"name":"t","arguments":{"region":"eu"}}"#),
        )
    }
}

async fn outcome(connection: &Connection) -> Result<Raw, UpstreamError> {
    connection.ask(&call()).await
}

#[tokio::test]
async fn a_stream_tells_progress_logs_and_questions_before_its_answer() {
    let server = Server::start(vec![
        events(
            &[
                "id: 1\ndata:\n\n: comment\n\n",
                "event: message\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$ID,\"progress\":1,\"total\":2}}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"other\",\"progress\":7}}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[]}}\n\n",
            ],
            false,
        ),
        plain(202),
        plain(202),
    ])
    .await;
    let connection = session(&server);
    let mut exchange = connection.call(&call()).await.unwrap();
    assert!(
        matches!(exchange.next().await.unwrap(), ExchangeEvent::Progress(p) if p.progress > 0.5 && p.total.is_some())
    );
    assert!(matches!(
        exchange.next().await.unwrap(),
        ExchangeEvent::Log(_)
    ));
    let ExchangeEvent::Request { id, method, .. } = exchange.next().await.unwrap() else {
        panic!("a question")
    };
    assert_eq!(method, "elicitation/create");
    connection
        .answer(&id, &Ok(raw(r#"{"action":"cancel"}"#)))
        .await
        .unwrap();
    assert!(matches!(
        exchange.next().await.unwrap(),
        ExchangeEvent::Answer(Ok(_))
    ));
    assert!(exchange.next().await.is_err(), "nothing follows an answer");
    let seen = server.seen();
    assert_eq!(
        seen[1].body,
        json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "cancel"}})
    );
    // MCP-X-71: pings are answered here.
    assert_eq!(
        seen[2].body,
        json!({"jsonrpc": "2.0", "id": 3, "result": {}})
    );
    assert_eq!(seen[1].header("mcp-session-id"), Some("theirs"));
}

#[tokio::test]
async fn x_30_a_question_that_nobody_can_answer_is_refused() {
    let server = Server::start(vec![
        events(
            &[
                "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}\n\n",
                "data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}\n\n",
            ],
            false,
        ),
        plain(202),
    ])
    .await;
    outcome(&session(&server)).await.unwrap();
    assert_eq!(server.seen()[1].body["error"]["code"], -32601);
}

#[tokio::test]
async fn x_7e_a_stream_that_breaks_is_asked_for_again_from_its_last_event() {
    let rest: Say = Box::new(|_| {
        crate::scripted::stream(
            &[
                "id: 8\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n",
            ],
            "",
            false,
        )
    });
    let server = Server::start(vec![
        events(&["retry: 10\nid: 7\ndata:\n\n"], false),
        plain(503),
        rest,
    ])
    .await;
    let connection = session(&server);
    let mut exchange = connection.call(&call()).await.unwrap();
    let id = exchange.id().to_json();
    let first = exchange.next().await;
    assert!(matches!(first, Ok(ExchangeEvent::Log(_))), "{first:?}");
    let seen = server.seen();
    assert_eq!(server.said(), ["tools/call", "GET", "GET"]);
    assert_eq!(seen[1].header("last-event-id"), Some("7"));
    assert_eq!(seen[1].header("mcp-session-id"), Some("theirs"));
    assert_eq!(seen[0].body["id"].to_string(), id);
    // It broke again behind event 8, and the script has nothing more: five tries, then it is given
    // up.
    assert!(matches!(
        exchange.next().await,
        Err(UpstreamError::Interrupted)
    ));
    assert_eq!(
        server.seen().last().unwrap().header("last-event-id"),
        Some("8")
    );
    assert_eq!(server.seen().len(), 3 + 5);
}

#[tokio::test]
async fn x_7e_l_12_a_server_that_wants_to_be_asked_again_later_than_the_call_may_take_is_not_asked_again()
 {
    let server = Server::start(vec![events(&["retry: 3600000\nid: 7\ndata:\n\n"], false)]).await;
    let client = server.client(Limits {
        total: Duration::from_millis(200),
        ..limits()
    });
    let ticket = Ticket::read("2025-11-25 theirs").unwrap();
    let connection = Connection::Legacy(Legacy::resume(client, ticket));
    assert!(matches!(
        outcome(&connection).await,
        Err(UpstreamError::Timeout(_))
    ));
    assert_eq!(server.said(), ["tools/call"]);
}

#[tokio::test]
async fn x_7e_without_ids_and_in_the_modern_era_a_broken_stream_is_not_asked_for_again() {
    let broken: &[&str] =
        &["data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"];
    let server = Server::start(vec![events(broken, false)]).await;
    assert!(matches!(
        outcome(&session(&server)).await,
        Err(UpstreamError::Interrupted)
    ));
    assert_eq!(server.seen().len(), 1);
    let server = Server::start(vec![events(&["id: 1\ndata:\n\n"], false)]).await;
    assert!(matches!(
        outcome(&modern(&server)).await,
        Err(UpstreamError::Interrupted)
    ));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn l_12_silence_ends_an_exchange_and_progress_does_not_go_on_for_ever() {
    let server = Server::start(vec![events(&["id: 1\ndata:\n\n"], true)]).await;
    assert!(matches!(
        outcome(&session(&server)).await,
        Err(UpstreamError::Timeout(_))
    ));
    let server = Server::start(vec![events(&[": x\n\n"], true)]).await;
    let client = server.client(Limits {
        total: Duration::from_millis(200),
        ..Limits::default()
    });
    let connection = Connection::Modern(Modern::new(client, Speaker::ourselves()));
    assert!(matches!(
        outcome(&connection).await,
        Err(UpstreamError::Timeout(_))
    ));
}

#[tokio::test]
async fn x_8_what_is_no_answer_to_what_was_asked_is_refused() {
    let cases: Vec<(&str, Say)> = vec![
        (
            "another id",
            Box::new(|_| body(200, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}))),
        ),
        ("no object", result(json!([1]))),
        (
            "an unknown result type",
            result(json!({"resultType": "riddle"})),
        ),
        (
            "no answer",
            Box::new(|_| body(200, &json!({"jsonrpc": "2.0", "method": "x"}))),
        ),
        ("no JSON", Box::new(|_| crate::scripted::status(200))),
        ("an empty batch", Box::new(|_| body(200, &json!([])))),
        (
            "a request on a modern stream",
            events(
                &["data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n"],
                true,
            ),
        ),
        ("garbage in an event", events(&["data: {{{\n\n"], true)),
    ];
    for (what, say) in cases {
        let server = Server::start(vec![say]).await;
        let outcome = outcome(&modern(&server)).await;
        assert!(
            matches!(outcome, Err(UpstreamError::Violation(_))),
            "{what}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn x_8_what_old_and_careless_servers_do_is_taken() {
    // JSON with a wrong charset, no resultType; a batch (MCP-X-7C); SSE without `event:` is in the
    // tests above.
    let batch: Say = Box::new(|seen| {
        body(
            200,
            &json!([{"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
                {"jsonrpc": "2.0", "id": seen.body["id"], "result": {"ok": 1}}]),
        )
    });
    for say in [result(json!({"content": []})), batch] {
        let server = Server::start(vec![say]).await;
        outcome(&modern(&server)).await.unwrap();
    }
    let null: Say = Box::new(|_| {
        body(
            400,
            &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}}),
        )
    });
    let server = Server::start(vec![null]).await;
    assert!(matches!(
        outcome(&modern(&server)).await,
        Err(UpstreamError::Refused(RpcError { code: -32600, .. }))
    ));
}

#[tokio::test]
async fn an_answer_or_event_beyond_its_bound_is_not_read_to_its_end() {
    let huge: Say = Box::new(|_| body(200, &json!({"x": "y".repeat(5_000)})));
    let server = Server::start(vec![huge]).await;
    let limits = Limits {
        answer_bytes: 1_000,
        ..Limits::default()
    };
    let connection = Connection::Modern(Modern::new(
        server.client(limits.clone()),
        Speaker::ourselves(),
    ));
    assert_eq!(outcome(&connection).await.unwrap_err().kind(), "too_large");
    let long: &'static str = Box::leak(format!("data: {}", "z".repeat(5_000)).into_boxed_str());
    let pieces: &'static [&'static str] = Box::leak(Box::new([long]));
    let server = Server::start(vec![events(pieces, true)]).await;
    let connection = Connection::Modern(Modern::new(server.client(limits), Speaker::ourselves()));
    assert_eq!(outcome(&connection).await.unwrap_err().kind(), "too_much");
}

#[tokio::test]
async fn x_6_a_header_mismatch_leads_to_a_fresh_list_and_one_more_try() {
    let mismatch = || error(400, json!({"code": -32020, "message": "Header mismatch"}));
    let listed = json!({"resultType": "complete", "tools": [{"name": "t", "inputSchema": {"type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}]});
    let server = Server::start(vec![
        mismatch(),
        result(listed.clone()),
        result(json!({"content": []})),
    ])
    .await;
    outcome(&modern(&server)).await.unwrap();
    let seen = server.seen();
    assert_eq!(server.said(), ["tools/call", "tools/list", "tools/call"]);
    assert_eq!(seen[0].header("mcp-param-region"), None);
    assert_eq!(seen[2].header("mcp-param-region"), Some("eu"));
    assert_ne!(seen[0].body["id"], seen[2].body["id"]);
    // Once: then it is an answer like any other.
    let server = Server::start(vec![mismatch(), result(listed), mismatch()]).await;
    assert!(
        matches!(outcome(&modern(&server)).await, Err(UpstreamError::Refused(error)) if error.code == -32020)
    );
}

#[tokio::test]
async fn x_81_a_server_that_no_longer_speaks_the_revision_is_probed_again() {
    let server = Server::start(vec![error(
        400,
        json!({"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}}),
    )])
    .await;
    assert!(matches!(
        outcome(&modern(&server)).await,
        Err(UpstreamError::Version(_))
    ));
}

#[tokio::test]
async fn x_85_a_busy_server_is_waited_for_once() {
    let busy = |seconds: &'static str| -> Say {
        Box::new(move |_| {
            let mut answer = crate::scripted::status(429);
            answer
                .headers_mut()
                .insert("retry-after", seconds.parse().unwrap());
            answer
        })
    };
    let server = Server::start(vec![busy("0"), result(json!({}))]).await;
    outcome(&session(&server)).await.unwrap();
    let server = Server::start(vec![busy("0"), busy("0")]).await;
    assert_eq!(
        outcome(&session(&server)).await.unwrap_err().kind(),
        "limited"
    );
    let server = Server::start(vec![busy("60")]).await;
    let error = outcome(&session(&server)).await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::Limited { retry_after: Some(wait) } if wait.as_secs() == 60)
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn x_77_a_legacy_server_is_told_that_a_request_is_cancelled() {
    let server = Server::start(vec![events(&["id: 1\ndata:\n\n"], true), plain(202)]).await;
    let connection = session(&server);
    let exchange = connection.call(&call()).await.unwrap();
    connection
        .cancel(exchange.id(), "the client has gone")
        .await
        .unwrap();
    let seen = server.seen();
    assert_eq!(seen[1].method(), "notifications/cancelled");
    assert_eq!(seen[1].body["params"]["requestId"], seen[0].body["id"]);
}

#[tokio::test]
async fn x_84_statuses_and_errors_of_the_protocol_are_told_apart() {
    let server = Server::start(vec![plain(502)]).await;
    assert_eq!(
        outcome(&session(&server)).await.unwrap_err().kind(),
        "status"
    );
    // A gateway's own JSON is no JSON-RPC.
    let gateway: Say = Box::new(|_| body(400, &json!({"message": "bad"})));
    let server = Server::start(vec![gateway]).await;
    assert_eq!(
        outcome(&session(&server)).await.unwrap_err().kind(),
        "status"
    );
    let server = Server::start(vec![error(
        200,
        json!({"code": -32602, "message": "Unknown tool: t"}),
    )])
    .await;
    assert!(
        matches!(outcome(&session(&server)).await, Err(UpstreamError::Refused(error)) if error.code == -32602)
    );
}
