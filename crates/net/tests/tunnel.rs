//! Tunnels: requests of a node to a program that has opened the connection (ADR 39).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of a test end with its runtime"
)]

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use portolan_net::{
    egress::{Egress, EgressError, EgressPolicy, EgressRequest},
    listen::{self, ListenLimits, Shutdown},
    tunnel::{self, Tunnel, TunnelError},
};
use tokio::{
    net::TcpStream,
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use url::Url;

const OURS: u128 = 7;
const THEIRS: u128 = 8;

fn egress() -> Egress {
    Egress::new(EgressPolicy::default()).unwrap()
}

fn address(name: &str) -> Url {
    tunnel::url_of(name).unwrap()
}

/// Requests that reached `/hang`, and the news of each.
static HANGING: AtomicUsize = AtomicUsize::new(0);
static HANGS: Notify = Notify::const_new();

/// A program: it answers with its words, the path and the body. `/hang` gets no answer.
async fn answer(words: &'static str, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if request.uri().path() == "/hang" {
        HANGING.fetch_add(1, Ordering::SeqCst);
        HANGS.notify_one();
        std::future::pending::<()>().await;
    }
    let authority = request.uri().authority().map(ToString::to_string);
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let text = format!("{words} {} {path} {}", authority.unwrap(), body.len());
    Response::new(Full::new(text.into()))
}

/// Opens a tunnel whose other end is in this process.
async fn open(
    egress: &Egress,
    scope: u128,
    name: &str,
    instance: &str,
    words: &'static str,
) -> (Tunnel, JoinHandle<()>) {
    let (node, program) = tokio::io::duplex(64 * 1024);
    let served = tokio::spawn(async move {
        let service =
            service_fn(
                move |request| async move { Ok::<_, Infallible>(answer(words, request).await) },
            );
        let served = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(program), service);
        let _ = served.await;
    });
    let opened = egress
        .tunnels()
        .open(scope, name, instance, TokioIo::new(node));
    let (tunnel, connection) = opened.await.unwrap();
    tokio::spawn(connection);
    (tunnel, served)
}

async fn said(egress: &Egress, request: EgressRequest) -> String {
    let answer = egress.send(request).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[test]
fn a_name_is_one_label_of_a_host() {
    for name in ["a", "office-files", "x1", &"a".repeat(40)] {
        let url = address(name);
        assert_eq!(tunnel::name_of(&url), Some(name));
        assert_eq!(url.path(), "/mcp");
    }
    for name in [
        "",
        "-a",
        "a-",
        "A",
        "a.b",
        "a_b",
        "xn--a",
        "ä",
        "a b",
        "a/b",
        "a@b",
        "a:1",
        &"a".repeat(41),
    ] {
        assert_eq!(tunnel::url_of(name), None, "{name}");
    }
    for other in [
        "https://office.attached.invalid.example.com/",
        "https://a.b.attached.invalid/",
        "https://attached.invalid/",
        "https://office.attached.invalid./",
        "https://notattached.invalid/",
    ] {
        assert_eq!(tunnel::name_of(&other.parse().unwrap()), None, "{other}");
    }
}

#[tokio::test]
async fn only_its_own_scope_reaches_an_attached_server() {
    let egress = egress();
    let _tunnel = open(&egress, OURS, "office", "one", "hello").await;
    let ours = egress.within(OURS);
    let mut request = EgressRequest::new(Method::POST, address("office"));
    request.body = vec![b'x'; 3_000_000].into();
    assert_eq!(
        said(&ours, request.clone()).await,
        "hello office.attached.invalid /mcp 3000000"
    );
    // Another scope has no such name, and a client without a scope no such address.
    let refused = egress.within(THEIRS).send(request.clone()).await;
    assert!(
        matches!(&refused, Err(EgressError::Away { name }) if name == "office"),
        "{refused:?}"
    );
    let refused = egress.send(request).await;
    assert!(matches!(refused, Err(EgressError::BlockedUrl { .. })));
    for crafted in [
        "https://office.attached.invalid./mcp",
        "https://x.office.attached.invalid/mcp",
        "https://attached.invalid/mcp",
        "https://attach.invalid/state",
    ] {
        let request = EgressRequest::get(crafted.parse().unwrap());
        let refused = ours.send(request).await;
        assert!(
            matches!(
                refused,
                Err(EgressError::BlockedUrl { .. } | EgressError::Dns { .. })
            ),
            "{crafted}: {refused:?}"
        );
        assert!(egress.check(&crafted.parse().unwrap()).is_err() || crafted.contains("//attach."));
    }
}

#[tokio::test]
async fn a_request_that_runs_when_its_tunnel_is_lost_fails_and_is_not_repeated() {
    let egress = egress();
    let (tunnel, served) = open(&egress, OURS, "office", "one", "hello").await;
    let (_other, _) = open(&egress, OURS, "office", "two", "other").await;
    let ours = egress.within(OURS);
    let mut url = address("office");
    url.set_path("/hang");
    let mut request = EgressRequest::get(url);
    // The session leads to the first program.
    request
        .headers
        .insert("mcp-session-id", HeaderValue::from_static("one.s"));
    let running = tokio::spawn(async move { ours.send(request).await });
    HANGS.notified().await;
    assert_eq!(tunnel.running(), 1);
    served.abort();
    let failed = running.await.unwrap();
    assert!(
        matches!(failed, Err(EgressError::Protocol { .. })),
        "{failed:?}"
    );
    assert_eq!(HANGING.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_session_goes_to_its_program_and_other_requests_to_all() {
    let egress = egress();
    let _one = open(&egress, OURS, "office", "one", "first").await;
    let _two = open(&egress, OURS, "office", "two", "second").await;
    let ours = egress.within(OURS);
    let mut words = Vec::new();
    for _ in 0..8 {
        let said = said(&ours, EgressRequest::get(address("office"))).await;
        words.push(said.starts_with("first"));
    }
    assert!(words.contains(&true) && words.contains(&false), "{words:?}");
    for (session, word) in [("one.abc", "first"), ("two.abc", "second")] {
        for _ in 0..4 {
            let mut request = EgressRequest::get(address("office"));
            request
                .headers
                .insert("mcp-session-id", HeaderValue::from_static(session));
            assert!(said(&ours, request).await.starts_with(word), "{session}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_program_is_expected_for_a_while_and_a_server_without_one_is_away_at_once() {
    let egress = egress();
    let ours = egress.within(OURS);
    // A node that has just begun expects programs.
    let begun = Instant::now();
    let away = ours.send(EgressRequest::get(address("office"))).await;
    assert!(matches!(away, Err(EgressError::Away { .. })));
    assert_eq!(begun.elapsed().as_secs(), 3);
    sleep(Duration::from_secs(30)).await;
    let begun = Instant::now();
    let away = ours.send(EgressRequest::get(address("office"))).await;
    let text = away.unwrap_err().to_string();
    assert!(text.starts_with("office is not attached"), "{text}");
    assert_eq!(begun.elapsed().as_millis(), 0);

    let (tunnel, served) = open(&egress, OURS, "office", "one", "hello").await;
    drop(tunnel);
    served.abort();
    let waiting = tokio::spawn({
        let ours = ours.clone();
        async move { said(&ours, EgressRequest::get(address("office"))).await }
    });
    sleep(Duration::from_secs(1)).await;
    let _back = open(&egress, OURS, "office", "one", "back").await;
    assert!(waiting.await.unwrap().starts_with("back"));
}

/// Also requests larger than the window of a stream, and beside requests that are given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_of_many_tasks_at_a_time_are_all_answered() {
    const TASKS: usize = 32;
    const REQUESTS: usize = 400;
    let egress = egress();
    let _tunnel = open(&egress, OURS, "office", "one", "hello").await;
    let tasks = (0..TASKS).map(|task| {
        let ours = egress.within(OURS);
        tokio::spawn(async move {
            for turn in 0..REQUESTS {
                let mut request = EgressRequest::new(Method::POST, address("office"));
                request.timeout = Duration::from_secs(8);
                // Now and then more than the window of a stream.
                let size = if turn % 50 == 0 { 100_000 } else { task * 10 };
                request.body = vec![b'x'; size].into();
                let expected = format!("hello office.attached.invalid /mcp {size}");
                if turn % 7 == 3 {
                    // Given up before it was polled twice.
                    let given_up = ours.send(request.clone());
                    tokio::select! {
                        biased;
                        answer = given_up => assert_eq!(answer.unwrap().body, expected),
                        () = std::future::ready(()) => {}
                    }
                }
                assert_eq!(said(&ours, request).await, expected);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_answers_no_ping_loses_its_connection() {
    let egress = egress();
    let (node, _silent) = tokio::io::duplex(64 * 1024);
    let begun = Instant::now();
    let io = TokioIo::new(node);
    let opened = egress.tunnels().open(OURS, "office", "one", io).await;
    let (_tunnel, end) = opened.unwrap();
    let ours = egress.within(OURS);
    let mut request = EgressRequest::get(address("office"));
    request.timeout = Duration::from_secs(60);
    let (ended, running) = tokio::join!(end, ours.send(request));
    assert!(matches!(ended, Err(TunnelError::Silent)), "{ended:?}");
    assert_eq!(begun.elapsed().as_secs(), 20);
    let running = running.unwrap_err();
    assert!(
        matches!(running, EgressError::Protocol { .. }),
        "{running:?}"
    );
    let away = ours.send(EgressRequest::get(address("office"))).await;
    let text = away.unwrap_err().to_string();
    assert!(text.starts_with("office is not attached"), "{text}");
}

/// A node stops waiting for the end of a connection when its key is replaced.
#[tokio::test]
async fn a_request_that_runs_outlives_the_wait_for_the_end_of_its_connection() {
    let egress = egress();
    let (node, program) = tokio::io::duplex(64 * 1024);
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (Arc::clone(&began), Arc::clone(&go));
    let served = tokio::spawn(async move {
        let service = service_fn(move |_: Request<Incoming>| {
            let (begins, goes) = (Arc::clone(&begins), Arc::clone(&goes));
            async move {
                begins.notify_one();
                goes.notified().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done"))))
            }
        });
        http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(program), service)
            .await
    });
    let io = TokioIo::new(node);
    let opened = egress.tunnels().open(OURS, "office", "one", io).await;
    let (tunnel, end) = opened.unwrap();
    let ours = egress.within(OURS);
    let running =
        tokio::spawn(async move { said(&ours, EgressRequest::get(address("office"))).await });
    began.notified().await;
    drop((tunnel, end));
    assert_eq!(egress.tunnels().count(), 0);
    go.notify_one();
    assert_eq!(running.await.unwrap(), "done");
    // Nothing is left to run, so the connection ends.
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_listener_gives_the_connection_of_an_upgrade_away_and_does_not_end_it() {
    let egress = egress();
    let node = egress.clone();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let upgrade = tunnel::upgrade_of(&mut request);
        let node = node.clone();
        tokio::spawn(async move {
            let io = upgrade.ready().await.unwrap();
            let opened = node.tunnels().open(OURS, "office", "one", io).await;
            let (tunnel, connection) = opened.unwrap();
            let _ = connection.await;
            drop(tunnel);
        });
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(tunnel::PROTOCOL));
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let bound = listen::bind("127.0.0.1:0".parse().unwrap(), "test").unwrap();
    let at = bound.local_addr().unwrap();
    let limits = ListenLimits {
        head_within: Duration::from_millis(200),
        idle: Duration::from_millis(200),
        ..ListenLimits::default()
    };
    let listener = bound.listen().unwrap();
    tokio::spawn(listen::serve(
        listener,
        service,
        limits,
        Shutdown::default(),
    ));

    let stream = TcpStream::connect(at).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::get("/")
        .header(header::HOST, "localhost")
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, tunnel::PROTOCOL)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let answered = sender.send_request(request).await.unwrap();
    assert_eq!(answered.status(), StatusCode::SWITCHING_PROTOCOLS);
    let io = hyper::upgrade::on(answered).await.unwrap();
    let service =
        service_fn(|request| async move { Ok::<_, Infallible>(answer("upgraded", request).await) });
    tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(io, service));

    let ours = egress.within(OURS);
    let first = timeout(
        Duration::from_secs(5),
        said(&ours, EgressRequest::get(address("office"))),
    );
    assert!(first.await.unwrap().starts_with("upgraded"));
    // Longer than the listener leaves a connection idle, or waits for a head.
    sleep(Duration::from_millis(700)).await;
    let second = said(&ours, EgressRequest::get(address("office"))).await;
    assert!(second.starts_with("upgraded"));
}
