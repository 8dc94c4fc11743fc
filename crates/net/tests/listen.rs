//! The accept loop with real sockets: slow, large and confusing requests, limits, drain;
//! and streams of events.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of a test end with its runtime"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Extension;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::BodyExt;
use portolan_net::client_ip::TrustedProxies;
use portolan_net::health::{Check, Dependency, Health};
use portolan_net::layers::{AllowedHosts, Arrival, Front};
use portolan_net::listen::{BindError, ListenLimits, Peer, Sharing, Shutdown, bind, serve};
use portolan_net::sse_body::{self, SendError, SseBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tower::ServiceExt;

struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    serving: JoinHandle<usize>,
}

fn server(router: Router, limits: ListenLimits) -> Server {
    let bound = bind("127.0.0.1:0".parse().unwrap(), "PORTOLAN_LISTEN").unwrap();
    let listener = bound.listen().unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = Shutdown::default();
    let serving = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
    Server {
        address,
        shutdown,
        serving,
    }
}

/// A route whose request runs until it is released. The first `Notify` fires when a request begins;
/// the second releases it.
fn gated() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, gate) = (Arc::clone(&started), Arc::clone(&release));
    let router = hello().route(
        "/gated",
        get(move || async move {
            signal.notify_one();
            gate.notified().await;
            "finished"
        }),
    );
    (router, started, release)
}

fn hello() -> Router {
    Router::new()
        .route(
            "/",
            get(|Extension(peer): Extension<Peer>| async move {
                format!("hello {}", peer.address.ip())
            }),
        )
        .route("/echo", post(|body: String| async move { body }))
}

fn quick() -> ListenLimits {
    ListenLimits {
        head_within: Duration::from_millis(200),
        idle: Duration::from_millis(600),
        ..ListenLimits::default()
    }
}

/// Sends bytes and reads until the server closes or nothing came for a while.
async fn talk(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close while we still write: that is an answer too.
    let _ = stream.write_all(bytes).await;
    read_all(&mut stream, Duration::from_secs(3)).await
}

async fn read_all(stream: &mut TcpStream, within: Duration) -> String {
    let mut text = Vec::new();
    let _ = tokio::time::timeout(within, async {
        let mut buffer = [0_u8; 4096];
        while let Ok(n) = stream.read(&mut buffer).await {
            if n == 0 {
                break;
            }
            text.extend_from_slice(&buffer[..n]);
        }
    })
    .await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn requests_are_served_on_kept_connections_and_know_their_peer() {
    let server = server(hello(), ListenLimits::default());
    let text = talk(
        server.address,
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
    assert_eq!(text.matches("hello 127.0.0.1").count(), 3, "{text}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_what_to_do() {
    let taken = bind("127.0.0.1:0".parse().unwrap(), "PORTOLAN_LISTEN")
        .unwrap()
        .local_addr()
        .map(|a| (a, ()))
        .unwrap()
        .0;
    let holder = std::net::TcpListener::bind(taken).unwrap();
    let error = bind(holder.local_addr().unwrap(), "PORTOLAN_LISTEN").unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "address {taken} is in use; stop the other program or set PORTOLAN_LISTEN to another address"
        )
    );
    let error = bind("192.0.2.1:8080".parse().unwrap(), "PORTOLAN_LISTEN").unwrap_err();
    assert!(
        matches!(error, BindError::NoSuchAddress { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn slow_heads_are_cut_and_others_are_served_meanwhile() {
    // TEST-B1
    let server = server(hello(), quick());
    let mut slow = Vec::new();
    for start in [&b""[..], b"G", b"GET / HTTP/1.1\r\nhost: a\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(start).await.unwrap();
        slow.push(stream);
    }
    // One that drips: each byte is new, the head is not.
    let mut drip = TcpStream::connect(server.address).await.unwrap();
    let begun = Instant::now();
    let dripping = async {
        for byte in b"GET / HTTP/1.1\r\nx-slow: "
            .iter()
            .chain(std::iter::repeat(&b'a'))
        {
            if drip.write_all(&[*byte]).await.is_err() {
                break;
            }
            let mut buffer = [0_u8; 512];
            let read =
                tokio::time::timeout(Duration::from_millis(20), drip.read(&mut buffer)).await;
            if matches!(read, Ok(Ok(0) | Err(_))) {
                break;
            }
        }
        begun.elapsed()
    };
    let (dripped, meanwhile) = tokio::join!(
        dripping,
        talk(
            server.address,
            b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        )
    );
    assert!(meanwhile.contains("200 OK"));
    assert!(dripped < Duration::from_secs(2), "{dripped:?}");
    for mut stream in slow {
        let text = read_all(&mut stream, Duration::from_secs(2)).await;
        assert!(!text.contains("200 OK"), "{text}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_a_while_and_a_running_request_is_not_idle() {
    let (router, started, release) = gated();
    let server = server(router, quick());
    // Idle longer than a head may take, shorter than the idle time: still there.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let first = read_all(&mut stream, Duration::from_millis(300)).await;
    assert!(first.contains("200 OK"));
    stream
        .write_all(b"GET /gated HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    started.notified().await;
    // Longer than both limits.
    assert_eq!(read_all(&mut stream, Duration::from_millis(900)).await, "");
    release.notify_one();
    let answer = read_all(&mut stream, Duration::from_secs(3)).await;
    assert!(answer.ends_with("finished"), "{answer}");
    // And now it is idle: closed by the server.
    let mut end = [0_u8; 1];
    let closed = tokio::time::timeout(Duration::from_secs(3), stream.read(&mut end))
        .await
        .unwrap();
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

#[tokio::test]
async fn heads_beyond_the_bounds_are_431_and_framing_that_confuses_is_400() {
    // TEST-B7, TEST-B14, TEST-B2
    let server = server(hello(), ListenLimits::default());
    let many = "x-a: b\r\n".repeat(1000);
    let long = format!("x-a: {}\r\n", "b".repeat(64 * 1024));
    for lines in [many, long] {
        let text = talk(
            server.address,
            format!("GET / HTTP/1.1\r\nhost: a\r\n{lines}\r\n").as_bytes(),
        )
        .await;
        assert!(
            text.starts_with("HTTP/1.1 431"),
            "{} bytes of head: {text:?}",
            lines.len()
        );
    }
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for head in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: +5\r\n",
        "content-length: 5, 6\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding : chunked\r\n",
        "content-length: 5\r\n folded: x\r\n",
        "x\u{0}y: z\r\n",
        "x: a\rb\r\n",
    ] {
        let text = talk(
            server.address,
            format!("POST /echo HTTP/1.1\r\nhost: a\r\n{head}\r\nabcde{smuggled}").as_bytes(),
        )
        .await;
        assert!(text.starts_with("HTTP/1.1 400"), "{head:?}: {text}");
        assert_eq!(
            text.matches("HTTP/1.1").count(),
            1,
            "one answer, then the end: {head:?}: {text}"
        );
    }
    // RFC 9112 §6.3: with both, chunked decides, and the connection may not be reused for what
    // follows.
    let both = format!(
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
    );
    let text = talk(server.address, both.as_bytes()).await;
    assert!(
        text.matches("HTTP/1.1").count() <= 2 && !text.contains("smuggled"),
        "{text}"
    );
    let text = talk(server.address, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
}

#[tokio::test]
async fn no_more_connections_are_served_than_the_limit_and_the_next_waits() {
    let server = server(
        hello(),
        ListenLimits {
            connections: 1,
            ..ListenLimits::default()
        },
    );
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(
        read_all(&mut first, Duration::from_millis(200))
            .await
            .contains("200 OK")
    );
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(read_all(&mut second, Duration::from_millis(200)).await, "");
    drop(first);
    assert!(
        read_all(&mut second, Duration::from_secs(3))
            .await
            .contains("200 OK")
    );
}

/// STREAM-16.4, 0-5 s.
#[tokio::test]
async fn a_node_that_stops_takes_connections_and_tells_every_client_to_leave() {
    let (router, started, release) = gated();
    let server = server(router, ListenLimits::default());
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let before = read_all(&mut kept, Duration::from_millis(200)).await;
    assert!(
        before.contains("200 OK") && !before.contains("connection"),
        "{before}"
    );
    let mut running = TcpStream::connect(server.address).await.unwrap();
    running
        .write_all(b"GET /gated HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    started.notified().await;

    server.shutdown.stop.cancel();
    // A kept connection is not closed under a request that may be on its way.
    kept.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    release.notify_one();
    let fresh = talk(server.address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let (kept, running, fresh) = tokio::join!(
        read_all(&mut kept, Duration::from_secs(3)),
        read_all(&mut running, Duration::from_secs(3)),
        fresh,
    );
    for answer in [kept, running, fresh] {
        assert!(
            answer.contains("200 OK") && answer.contains("connection: close\r\n"),
            "{answer}"
        );
    }
    assert!(!server.serving.is_finished(), "still open for others");
    server.shutdown.close.cancel();
    assert_eq!(server.serving.await.unwrap(), 0);
}

/// STREAM-16.4, from 5 s on.
#[tokio::test]
async fn a_closed_listener_lets_running_requests_end_and_closes_idle_connections() {
    let (router, started, release) = gated();
    let server = server(router, ListenLimits::default());
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    read_all(&mut idle, Duration::from_millis(100)).await;
    let mut running = TcpStream::connect(server.address).await.unwrap();
    running
        .write_all(b"GET /gated HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    started.notified().await;
    server.shutdown.stop.cancel();
    server.shutdown.close.cancel();
    let mut end = [0_u8; 1];
    let closed = tokio::time::timeout(Duration::from_secs(3), idle.read(&mut end)).await;
    assert!(matches!(closed, Ok(Ok(0))), "{closed:?}");
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    drop(idle);
    while server.shutdown.connections.len() > 1 {
        tokio::task::yield_now().await;
    }
    release.notify_one();
    let answer = read_all(&mut running, Duration::from_secs(3)).await;
    assert!(answer.ends_with("finished"), "{answer}");
    assert_eq!(server.serving.await.unwrap(), 0);
}

#[tokio::test]
async fn what_runs_when_the_time_is_over_is_cut_and_counted() {
    let (router, started, _release) = gated();
    let server = server(router, ListenLimits::default());
    let mut running = TcpStream::connect(server.address).await.unwrap();
    running
        .write_all(b"GET /gated HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    started.notified().await;
    server.shutdown.close.cancel();
    server.shutdown.cut.cancel();
    assert_eq!(server.serving.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_says_a_comment_every_fifteen_seconds() {
    // MCP-T-9: 15 s ± 3 s, never with an id
    let (sender, body) = sse_body::channel(4);
    let mut body = std::pin::pin!(body);
    for _ in 0..5 {
        let begun = tokio::time::Instant::now();
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame, ":\n\n");
        assert!(
            (12..=18).contains(&begun.elapsed().as_secs()),
            "{:?}",
            begun.elapsed()
        );
    }
    // A frame counts as a sign of life: the next comment is a whole interval away.
    tokio::time::advance(Duration::from_secs(10)).await;
    sender
        .send(Bytes::from_static(b"data: {}\n\n"))
        .await
        .unwrap();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "data: {}\n\n"
    );
    let begun = tokio::time::Instant::now();
    body.frame().await.unwrap().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(12));
    drop(sender);
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_bounds_the_writer() {
    // TEST-B11
    let (sender, body) = sse_body::channel(2);
    for _ in 0..2 {
        sender.send(Bytes::from_static(b"x")).await.unwrap();
    }
    assert_eq!(
        sender.send(Bytes::from_static(b"x")).await,
        Err(SendError::Stalled)
    );
    drop(body);
    assert_eq!(
        sender.send(Bytes::from_static(b"x")).await,
        Err(SendError::Gone)
    );
    sender.gone().await;
}

#[tokio::test]
async fn t_8_an_event_stream_is_neither_cached_nor_buffered_nor_changed() {
    let frames = [Bytes::from_static(b"retry: 1000\n\n")];
    let answer = SseBody::new(futures_util::stream::iter(frames)).into_response();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert_eq!(answer.headers()["cache-control"], "no-cache, no-transform");
    assert_eq!(answer.headers()["x-accel-buffering"], "no");
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "retry: 1000\n\n"
    );
}

fn health() -> Health {
    Health::new(Arc::new(|| "a_total 1\n".to_owned()))
}

fn dependency(
    name: &'static str,
    needed: bool,
    check: fn() -> portolan_net::resolve::BoxFuture<'static, Result<(), String>>,
) -> Dependency {
    let check: Check = Arc::new(check);
    Dependency {
        name,
        needed,
        check,
    }
}

async fn ask(health: &Health, path: &'static str) -> (u16, String) {
    let request = http::Request::get(path)
        .body(axum::body::Body::empty())
        .unwrap();
    let answer = health.router().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn readiness_needs_the_flag_and_every_answer_that_is_needed_in_time() {
    let good = health();
    good.stands_on(dependency("database", true, || Box::pin(async { Ok(()) })));
    assert_eq!(ask(&good, "/readyz").await.0, 503);
    assert_eq!(ask(&good, "/healthz").await.0, 200);
    good.set_ready(true);
    assert_eq!(ask(&good, "/readyz").await.0, 503, "nobody has looked yet");
    assert_eq!(good.look().await, [("database", true)]);
    assert_eq!(
        ask(&good, "/readyz").await,
        (200, "ready\ndatabase: ok\n".to_owned())
    );
    assert_eq!(
        ask(&good, "/metrics").await,
        (200, "a_total 1\n".to_owned())
    );
    good.set_ready(false);
    assert_eq!(
        ask(&good, "/readyz").await.0,
        503,
        "at the beginning of a stop"
    );

    let bad = health();
    bad.stands_on(dependency("database", true, || {
        Box::pin(async { Err("no connection".to_owned()) })
    }));
    bad.stands_on(dependency("store", true, || {
        Box::pin(std::future::pending())
    }));
    bad.set_ready(true);
    bad.look().await;
    let (status, text) = ask(&bad, "/readyz").await;
    assert_eq!(status, 503);
    assert!(
        text.contains("not ready: database: no connection")
            && text.contains("not ready: store: no answer within 2 s"),
        "{text}"
    );
}

/// STREAM-17.4.
#[tokio::test(start_paused = true)]
async fn a_node_that_serves_from_memory_stays_ready_and_says_what_is_away() {
    let health = health();
    health.stands_on(dependency("database", false, || {
        Box::pin(std::future::pending())
    }));
    health.stands_on(dependency("redis", false, || {
        Box::pin(async { Err("the store did not answer".to_owned()) })
    }));
    health.set_ready(true);
    assert_eq!(health.look().await, [("database", false), ("redis", false)]);
    let before = tokio::time::Instant::now();
    let (status, text) = ask(&health, "/readyz").await;
    assert_eq!(status, 200);
    assert_eq!(
        text,
        "ready\ndatabase: no answer within 2 s\nredis: the store did not answer\n"
    );
    assert_eq!(before.elapsed(), Duration::ZERO, "answered from memory");
}

/// A connection from an address of this machine's own.
async fn from_place(place: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{place}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// The answer to one request on a connection.
async fn answer_on(mut stream: TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(request.as_bytes()).await;
    read_all(&mut stream, Duration::from_secs(5)).await
}

#[tokio::test]
async fn s2_an_address_that_holds_all_it_can_leaves_the_others_their_answers() {
    let limits = ListenLimits {
        connections: 40,
        sharing: Sharing {
            per_address: 10,
            ..Sharing::default()
        },
        ..ListenLimits::default()
    };
    let server = server(hello(), limits);
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(from_place("127.0.0.2", server.address).await);
    }
    let begun = Instant::now();
    let answer = answer_on(from_place("127.0.0.3", server.address).await, "/").await;
    let took = begun.elapsed();
    assert!(answer.ends_with("hello 127.0.0.3"), "{answer}");
    assert!(took < Duration::from_millis(100), "{took:?}");
    // A connection above the limit gets the reason, and is closed.
    let mut last = held.pop().unwrap();
    let refused = read_all(&mut last, Duration::from_secs(5)).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("too_many_connections"), "{refused}");
    assert!(refused.contains("nosniff") && refused.contains("; sandbox;"));
    // A client that closes some connections may open others.
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !answer_on(from_place("127.0.0.2", server.address).await, "/")
        .await
        .ends_with("hello 127.0.0.2")
    {
        assert!(Instant::now() < deadline, "places are not given back");
    }
}

#[tokio::test]
async fn s2_the_last_places_are_for_those_that_were_authorised() {
    let router = hello()
        .route(
            "/sign-in",
            get(|arrival: Arrival| async move {
                arrival.note_authorised();
                "authorised"
            }),
        )
        .layer(Front::new(
            AllowedHosts::new(["a"]),
            TrustedProxies::default(),
            None,
        ));
    let limits = ListenLimits {
        connections: 20,
        sharing: Sharing {
            per_address: 0,
            reserve: 5,
            ..Sharing::default()
        },
        ..ListenLimits::default()
    };
    let server = server(router, limits);
    let known = from_place("127.0.0.9", server.address).await;
    assert!(answer_on(known, "/sign-in").await.ends_with("authorised"));
    // Strangers of many addresses take all that they can.
    let mut held = Vec::new();
    for n in 0..30_u8 {
        let place = format!("127.0.1.{}", n + 1);
        held.push(from_place(&place, server.address).await);
    }
    let stranger = answer_on(from_place("127.0.0.4", server.address).await, "/").await;
    assert!(stranger.contains("too_many_connections"), "{stranger}");
    let known = answer_on(from_place("127.0.0.9", server.address).await, "/").await;
    assert!(known.ends_with("hello 127.0.0.9"), "{known}");
    drop(held);
}
