//! Draining lists (X-7F).

use portolan_upstream::{Connection, Legacy, Limits, List, Ticket, UpstreamError};
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
