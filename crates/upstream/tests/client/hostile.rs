//! Event streams that are meant to hurt (TEST-B10): what is read of one is bounded in bytes and in
//! time, its call fails with words about the server, and the session goes on.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use portolan_protocol::jsonrpc::Raw;
use portolan_upstream::{Connection, Legacy, Limits, Request, Ticket, UpstreamError};
use serde_json::json;

use crate::scripted::{Say, Seen, Server, events, result};

const MIB: usize = 1024 * 1024;
/// Bytes that a server sends if the client does not stop it.
const ENDLESS: usize = 100 * MIB;
/// One piece of it.
const PIECE: usize = 64 * 1024;
/// Bytes that may be in transit when the client stops: buffers of both kernels, and of the server.
const ON_THE_WAY: usize = 16 * MIB;

fn session(server: &Server, limits: Limits) -> Connection {
    let ticket = Ticket::read("2025-11-25 theirs").unwrap();
    Connection::Legacy(Legacy::resume(server.client(limits), ticket))
}

async fn outcome(connection: &Connection) -> Result<Raw, UpstreamError> {
    let call = Request::new("tools/call", Raw::parse(r#"{"name":"t"}"#).unwrap());
    connection.ask(&call).await
}

fn streamed(body: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(body))
        .unwrap()
}

/// The event with the answer to what was asked.
fn answer(seen: &Seen) -> String {
    let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"content": []}});
    format!("data: {answer}\n\n")
}

/// `beginning`, and then `piece` again and again. Counts what the connection takes.
fn endless(beginning: &'static str, piece: Vec<u8>, taken: &Arc<AtomicUsize>) -> Say {
    let (piece, taken) = (Bytes::from(piece), Arc::clone(taken));
    Box::new(move |_| {
        let pieces = stream::iter(0..ENDLESS / PIECE).map(move |_| {
            taken.fetch_add(piece.len(), Ordering::Relaxed);
            Ok(piece.clone())
        });
        let beginning = stream::once(async { Ok(Bytes::from_static(beginning.as_bytes())) });
        streamed(beginning.chain(pieces))
    })
}

#[tokio::test]
async fn b10_lines_and_events_without_an_end_are_read_up_to_their_bound() {
    let limits = Limits::default();
    let letters = vec![b'z'; PIECE];
    let lines = [&b"data: "[..], &letters[7..], &b"\n"[..]].concat();
    for (what, beginning, piece, bound) in [
        (
            "data without an end",
            "data: ",
            letters.clone(),
            limits.answer_bytes,
        ),
        (
            "an event of lines without an end",
            "",
            lines,
            limits.answer_bytes,
        ),
        ("a comment without an end", ": ", letters.clone(), MIB),
        ("an id without an end", "id: ", letters.clone(), MIB),
        ("a name without an end", "", letters, MIB),
    ] {
        let taken = Arc::default();
        let good = result(json!({"content": []}));
        let server = Server::start(vec![endless(beginning, piece, &taken), good]).await;
        let connection = session(&server, limits.clone());
        let failed = outcome(&connection).await;
        assert!(
            matches!(failed, Err(UpstreamError::TooMuch(_))),
            "{what}: {failed:?}"
        );
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken < bound + ON_THE_WAY, "{what}: {taken} bytes");
        assert!(outcome(&connection).await.is_ok(), "{what}: the session");
    }
}

#[tokio::test]
async fn b10_a_million_comments_and_what_follows_the_answer_cost_nothing() {
    let noisy: Say = Box::new(|seen| {
        let comments = Bytes::from(":\n\n: x\n\n".repeat(500));
        let comments = stream::iter(0..1_000).map(move |_| Ok(comments.clone()));
        let rest = [
            "retry: 1000000000000\nid: a\0b\n\n".to_owned(),
            answer(seen),
            // These messages follow the answer and are not read.
            answer(seen),
            "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n\ndata: {{{\n\n".to_owned(),
        ];
        let rest = stream::iter(rest.map(|text| Ok(Bytes::from(text))));
        streamed(comments.chain(rest))
    });
    let server = Server::start(vec![noisy, result(json!({"content": []}))]).await;
    let connection = session(&server, Limits::default());
    let (begun, got) = (Instant::now(), outcome(&connection).await);
    assert!(got.is_ok(), "{got:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert!(outcome(&connection).await.is_ok());
    assert_eq!(
        server.said(),
        ["tools/call", "tools/call"],
        "no answer to the ping"
    );
}

#[tokio::test]
async fn b10_comments_keep_no_call_alive_beyond_its_time() {
    let alive: Say = Box::new(|_| {
        streamed(stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok(Bytes::from_static(b":\n\n")), ()))
        }))
    });
    let server = Server::start(vec![alive, result(json!({"content": []}))]).await;
    let limits = Limits {
        silence: Duration::from_millis(500),
        total: Duration::from_millis(1_500),
        ..Limits::default()
    };
    let connection = session(&server, limits);
    let (begun, got) = (Instant::now(), outcome(&connection).await);
    assert!(matches!(got, Err(UpstreamError::Timeout(_))), "{got:?}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1_400), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(outcome(&connection).await.is_ok());
}

/// WHATWG rule: an id with NUL is ignored. An excessive `retry` has no effect when a sensible one
/// follows.
#[tokio::test]
async fn b10_an_id_with_nul_is_never_sent_back() {
    let breaks = events(
        &[
            "id: 1\ndata:\n\nretry: 1000000000000\n\n",
            "id: 2\0x\nretry: 10\ndata:\n\n",
        ],
        false,
    );
    // The rest is empty, and then the server is away: it is asked again, and each time from the
    // same place.
    let rest = events(&[": nothing more\n\n"], false);
    let server = Server::start(vec![breaks, rest]).await;
    let limits = Limits {
        total: Duration::from_secs(2),
        ..Limits::default()
    };
    let _over = outcome(&session(&server, limits)).await;
    let seen = server.seen();
    let resumed: Vec<_> = seen[1..]
        .iter()
        .map(|request| request.header("last-event-id"))
        .collect();
    assert!(!resumed.is_empty(), "it was asked for the rest");
    assert!(resumed.iter().all(|id| *id == Some("1")), "{resumed:?}");
}

#[tokio::test]
async fn b10_an_answer_to_another_request_fails_the_call_and_not_the_session() {
    let other = events(
        &["data: {\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{\"content\":[]}}\n\n"],
        true,
    );
    let server = Server::start(vec![other, result(json!({"content": []}))]).await;
    let connection = session(&server, Limits::default());
    let failed = outcome(&connection).await;
    assert!(
        matches!(failed, Err(UpstreamError::Violation(_))),
        "{failed:?}"
    );
    assert!(outcome(&connection).await.is_ok());
}
