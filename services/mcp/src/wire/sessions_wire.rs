//! Sessions as people see them, over two nodes (PLAY-8, PLAY-9).

use std::sync::Arc;

use portolan_cluster::{SessionKey, store::Principal};
use portolan_model::{
    Id,
    id::{TenantId, UserId},
    live_session::{LiveSession, MomentKind},
};
use portolan_protocol::revision::Revision;
use serde_json::json;

use super::{Node, frame, rpc};
use crate::{
    caller::SessionOwner,
    live_sessions::{board::Facts, directory::SessionDirectory},
    session_replies,
    streams::services::StreamServices,
};

/// Starts the replies of a node; those of a running service begin with it.
fn replies(node: &Node) {
    let streams: &StreamServices = &node.state;
    let streams = streams.clone();
    node.state.tracker.spawn(session_replies::reply(streams));
}

fn directory(node: &Node) -> SessionDirectory {
    let store = Arc::new(node.shared.clone());
    SessionDirectory::new(store, node.keys.clone(), node.clock.clone())
}

async fn two_nodes() -> (Node, Node, SessionDirectory) {
    let one = Node::start().await;
    let two = one.twin().await;
    replies(&one);
    replies(&two);
    // The replies subscribe before anything is asked.
    tokio::task::yield_now().await;
    let asked = directory(&one);
    (one, two, asked)
}

async fn listed(directory: &SessionDirectory, tenant: TenantId) -> Vec<LiveSession> {
    let listed = directory.list(tenant).await.unwrap();
    assert_eq!(listed.silent, 0, "{listed:?}");
    listed.found
}

/// Rule: PLAY-8.
#[tokio::test]
async fn a_session_of_two_nodes_is_listed_once() {
    let (one, two, directory) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    one.clock.advance(time::Duration::SECOND);
    one.call(&session, "tools/list", json!({})).await;
    one.clock.advance(time::Duration::SECOND);
    let call = json!({"name": "get_pet", "arguments": {"petId": "1"}});
    two.call(&session, "tools/call", call).await;

    let found = listed(&directory, one.tenant).await;
    let [seen] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(seen.is_session);
    assert_eq!(seen.client_name.as_deref(), Some("test"));
    assert_eq!(seen.client_version.as_deref(), Some("1"));
    assert_eq!(seen.client_id, "client-a");
    assert_eq!(seen.subject, one.user.to_string());
    assert_eq!((seen.requests, seen.calls), (2, 1));
    assert_eq!(seen.revision, "2025-11-25");
    assert_eq!(seen.last_at - seen.began_at, 2_000);
    assert_eq!(seen.nodes.len(), 2);
    let last = String::from_utf8_lossy(&two.state.node.id().0).into_owned();
    assert_eq!(seen.nodes[0], last, "the node of the last request");

    let moments = directory.moments(one.tenant, &seen.id).await.unwrap().found;
    let kinds: Vec<_> = moments
        .iter()
        .map(|moment| (moment.kind, moment.method.as_deref()))
        .collect();
    assert_eq!(
        kinds,
        [
            (MomentKind::Opened, None),
            (MomentKind::Request, Some("tools/list")),
            (MomentKind::Request, Some("tools/call")),
        ]
    );
    assert_ne!(moments[1].node, moments[2].node, "the node has changed");
}

/// Rule: PLAY-8. Open streams are counted.
#[tokio::test]
async fn open_streams_of_a_session_are_counted() {
    let (one, _two, directory) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let (status, _, mut body) = one.open(&headers).await;
    assert_eq!(status, 200);
    frame(&mut body).await.unwrap();
    let found = listed(&directory, one.tenant).await;
    assert_eq!(found[0].streams, 1);
    let moments = directory.moments(one.tenant, &found[0].id).await.unwrap();
    let last = moments.found.last().unwrap();
    assert_eq!(last.kind, MomentKind::Stream);
    drop(body);
}

/// Rule: PLAY-8. A client of 2026-07-28 has no session, and is seen.
#[tokio::test]
async fn a_client_without_session_is_listed_as_one() {
    let (one, two, directory) = two_nodes().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "3"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    for node in [&one, &two] {
        let list = rpc("tools/list", json!({"_meta": meta}));
        let answer = node.post(&headers, &list).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let found = listed(&directory, one.tenant).await;
    let [seen] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(!seen.is_session);
    assert_eq!(seen.client_name.as_deref(), Some("modern"));
    assert_eq!((seen.requests, seen.nodes.len()), (2, 2));
    let ended = directory.end(one.tenant, &seen.id).await.unwrap();
    assert!(!ended.found, "there is nothing to end");
}

/// Rule: PLAY-9.
#[tokio::test]
async fn a_session_that_is_ended_is_gone_on_every_node() {
    let (one, two, directory) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    let other = one.initialize("2025-11-25").await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let (_, _, mut body) = two.open(&headers).await;
    frame(&mut body).await.unwrap();
    let found = listed(&directory, one.tenant).await;
    assert_eq!(found.len(), 2);
    let streaming = found.iter().find(|seen| seen.streams == 1).unwrap();
    let ended = directory.end(one.tenant, &streaming.id).await.unwrap();
    assert!(ended.found);
    while frame(&mut body).await.is_some() {}
    for node in [&one, &two] {
        let answer = node.call(&session, "tools/list", json!({})).await;
        assert_eq!(answer.status, 404, "{answer:?}");
    }
    let answer = two.call(&other, "tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "another session of the same client");
    let left = listed(&directory, one.tenant).await;
    assert_eq!(left.len(), 1);
    let again = directory.end(one.tenant, &streaming.id).await.unwrap();
    assert!(!again.found);
}

/// Rule: PLAY-9. The list has the 1,000 last used; an older one can be ended too.
#[tokio::test]
async fn a_session_beyond_the_list_can_be_ended() {
    let (one, two, directory) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    let id = listed(&directory, one.tenant).await[0].id.clone();
    one.clock.advance(time::Duration::SECOND);
    let other = Arc::new(SessionOwner {
        principal: Principal([7; 16]),
        subject: UserId::generate().into(),
        client_id: "client-b".into(),
    });
    for n in 0..1_000_u32 {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&n.to_be_bytes());
        key[15] = u8::try_from(n % 251).unwrap();
        one.state
            .sessions
            .used(SessionKey(key), one.clock.now(), || Facts {
                tenant: one.tenant,
                server: Id::generate(),
                owner: Arc::clone(&other),
                revision: Revision::V2025_11_25,
                created_at: Some(one.clock.now()),
            });
    }
    let shown = listed(&directory, one.tenant).await;
    assert_eq!(shown.len(), 1_000);
    assert!(
        shown.iter().all(|seen| seen.id != id),
        "used before all others"
    );
    let found = directory.one(one.tenant, &id).await.unwrap().found.unwrap();
    assert_eq!((found.id.as_str(), found.is_session), (id.as_str(), true));
    assert_eq!(found.subject, one.user.to_string());
    let stranger: TenantId = Id::generate();
    assert_eq!(directory.one(stranger, &id).await.unwrap().found, None);
    assert!(directory.end(one.tenant, &id).await.unwrap().found);
    assert_eq!(directory.one(one.tenant, &id).await.unwrap().found, None);
    let answer = two.call(&session, "tools/list", json!({})).await;
    assert_eq!(answer.status, 404, "{answer:?}");
}

/// Rule: PLAY-8, PLAY-9. Other tenants see and end nothing, and nothing opens without the keys.
#[tokio::test]
async fn sessions_of_another_tenant_are_unknown() {
    let (one, _two, asked) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    let id = listed(&asked, one.tenant).await[0].id.clone();
    let stranger: TenantId = Id::generate();
    assert_eq!(listed(&asked, stranger).await, []);
    assert_eq!(asked.moments(stranger, &id).await.unwrap().found, []);
    assert!(!asked.end(stranger, &id).await.unwrap().found);
    let answer = one.call(&session, "tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!session.contains(&id) && !id.contains(&session));
}

/// Rule: PLAY-8. DELETE reaches one node; the others do not show the session any more.
#[tokio::test]
async fn a_session_that_its_client_ended_is_not_listed() {
    let (one, two, directory) = two_nodes().await;
    let session = one.initialize("2025-11-25").await;
    for node in [&one, &two] {
        node.call(&session, "tools/list", json!({})).await;
    }
    let id = listed(&directory, one.tenant).await[0].id.clone();
    let headers = [("mcp-session-id", session.as_str())];
    one.clock.advance(time::Duration::SECOND);
    let ended = two.request("DELETE", &headers, String::new());
    assert_eq!(two.send(ended).await.status, 200);
    assert_eq!(listed(&directory, one.tenant).await, []);
    let moments = directory.moments(one.tenant, &id).await.unwrap().found;
    assert_eq!(moments.last().unwrap().kind, MomentKind::Ended);
}
