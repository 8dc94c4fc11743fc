//! Draining lists (MCP-X-7F).

use portolan_upstream::{Connection, Legacy, Limits, List, Raw, Request, Ticket, UpstreamError};
use serde_json::json;

use crate::scripted::{Say, Server, result};

fn session(server: &Server, limits: Limits) -> Connection {
    let ticket = Ticket::read("2025-06-18 ").unwrap();
    Connection::Legacy(Legacy::resume(server.client(limits), ticket))
}

fn page(names: &[&str], next: Option<&str>) -> Say {
    let tools: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    result(next.map_or_else(
        || json!({"tools": tools}),
        |next| json!({"tools": tools, "nextCursor": next}),
    ))
}

#[tokio::test]
async fn x_7f_all_pages_are_fetched_with_the_servers_own_cursors() {
    let server = Server::start(vec![
        page(&["a", "b"], Some("")),
        page(&["c"], Some("x y")),
        page(&["d"], None),
    ])
    .await;
    let tools = session(&server, Limits::default())
        .list(List::Tools)
        .await
        .unwrap();
    assert_eq!(tools.len(), 4);
    let seen = server.seen();
    assert_eq!(seen[0].body["params"], json!({}));
    assert_eq!(seen[1].body["params"], json!({"cursor": ""}));
    assert_eq!(seen[2].body["params"], json!({"cursor": "x y"}));
    assert_eq!(seen[0].header("mcp-session-id"), None);
}

#[tokio::test]
async fn x_7f_circles_endless_pages_and_too_many_entries_are_given_up() {
    let server = Server::start(vec![page(&["a"], Some("1")), page(&["a"], Some("1"))]).await;
    let outcome = session(&server, Limits::default()).list(List::Tools).await;
    assert!(matches!(outcome, Err(UpstreamError::Violation(_))));
    let limits = Limits {
        pages: 2,
        ..Limits::default()
    };
    let server = Server::start(vec![page(&["a"], Some("1")), page(&["b"], Some("2"))]).await;
    assert!(matches!(
        session(&server, limits).list(List::Tools).await,
        Err(UpstreamError::TooMuch(_))
    ));
    let limits = Limits {
        entries: 2,
        ..Limits::default()
    };
    let server = Server::start(vec![page(&["a", "b", "c"], None)]).await;
    assert!(matches!(
        session(&server, limits).list(List::Tools).await,
        Err(UpstreamError::TooMuch(_))
    ));
    let server = Server::start(vec![result(json!({"tools": {}}))]).await;
    assert!(matches!(
        session(&server, Limits::default()).list(List::Tools).await,
        Err(UpstreamError::Violation(_))
    ));
}

/// REVIEW-F6: an invalid entry is skipped and the rest is read; an invalid value elsewhere
/// invalidates the answer.
#[tokio::test]
async fn f6_a_list_with_odd_entries_is_read_and_nothing_else_is() {
    let odd = [
        r#"{"name":"half","title":"\ud800"}"#.to_owned(),
        format!(
            r#"{{"name":"deep","x":{}{}}}"#,
            "[".repeat(70),
            "]".repeat(70)
        ),
        r#"{"name":"huge","x":1e400}"#.to_owned(),
    ];
    let text = format!(r#"{{"tools":[{}]}}"#, odd.join(","));
    let say = |text: String| -> Say {
        Box::new(move |seen| {
            let id = &seen.body["id"];
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#);
            crate::scripted::raw(body)
        })
    };
    let server = Server::start(vec![say(text.clone())]).await;
    let listed = session(&server, Limits::default()).list(List::Tools).await;
    let listed = listed.unwrap();
    let sound: Vec<bool> = listed.iter().map(|tool| tool.soundness().is_ok()).collect();
    assert_eq!(sound, [false, false, true]);
    let server = Server::start(vec![say(text)]).await;
    let call = Request::new("tools/call", Raw::empty_object());
    let outcome = session(&server, Limits::default()).ask(&call).await;
    assert!(
        matches!(outcome, Err(UpstreamError::Violation(_))),
        "{outcome:?}"
    );
}
