//! Limits, deadlines, redirects and broken peers of the egress client (MCP-AB-19, MCP-AB-20),
//! against scripted servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of a test end with its runtime"
)]

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use portolan_net::egress::{
    AllowedDestination, Authorities, Egress, EgressError, EgressPolicy, EgressRequest, Phase,
    RedirectFault, Redirects, parse_url,
};
use portolan_net::proxies::Proxies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reads one request up to the end of its head and its announced body.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let n = stream.read(&mut buffer).await.ok()?;
        if n == 0 {
            return None;
        }
        text.extend_from_slice(&buffer[..n]);
        let whole = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some(end) = whole.find("\r\n\r\n") {
            let length = whole
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |n| n.trim().parse::<usize>().unwrap());
            if text.len() >= end + 4 + length {
                return Some(String::from_utf8(text).unwrap());
            }
        }
    }
}

/// A server whose answers are decided from the request and its number; `None` closes the connection
/// without a word.
async fn scripted(
    answer: impl Fn(usize, &str) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let requests = Arc::clone(&count);
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
            tokio::spawn(async move {
                while let Some(request) = read_request(&mut stream).await {
                    let n = requests.fetch_add(1, Ordering::SeqCst);
                    match answer(n, &request) {
                        Some(bytes) => stream.write_all(&bytes).await.unwrap(),
                        None => return,
                    }
                }
            });
        }
    });
    (address, count)
}

fn egress(address: SocketAddr) -> Egress {
    let allow = vec![AllowedDestination::address(address.ip(), address.port())];
    Egress::new(EgressPolicy {
        allow,
        connect_timeout_ms: 300,
        ..EgressPolicy::default()
    })
    .unwrap()
}

fn get(address: SocketAddr, path: &str) -> EgressRequest {
    EgressRequest::get(parse_url(&format!("http://{address}{path}")).unwrap())
}

#[tokio::test]
async fn an_announced_length_beyond_the_limit_ends_the_exchange_before_the_body() {
    // MCP-AB-20: the server announces a gigabyte and never sends it; without the early check this
    // would end by time.
    let (address, _) =
        scripted(|_, _| Some(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec()))
            .await;
    let error = egress(address).send(get(address, "/")).await.unwrap_err();
    assert!(
        matches!(error, EgressError::TooLarge { limit: 1_048_576 }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_body_without_an_announced_length_is_cut_at_the_limit() {
    let chunk = format!("{:x}\r\n{}\r\n", 1000, "a".repeat(1000));
    let body = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(100)
    );
    let (address, _) = scripted(move |_, _| Some(body.clone().into_bytes())).await;
    let client = egress(address);
    for (limit, fits) in [(100_000, true), (99_999, false), (0, false)] {
        let mut request = get(address, "/");
        request.max_response_bytes = limit;
        match client.send(request).await {
            Ok(answer) => assert!(fits && answer.body.len() == 100_000, "{limit}"),
            Err(error) => assert!(
                !fits && matches!(error, EgressError::TooLarge { .. }),
                "{limit}: {error:?}"
            ),
        }
    }
}

#[tokio::test]
async fn the_deadline_covers_head_and_body() {
    let (address, _) = scripted(|_, request| {
        Some(if request.starts_with("GET /head") {
            Vec::new()
        } else {
            b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec()
        })
    })
    .await;
    let client = egress(address);
    for (path, expected) in [("/head", Phase::Answer), ("/body", Phase::Body)] {
        let mut request = get(address, path);
        request.timeout = Duration::from_millis(120);
        let begun = Instant::now();
        let error = client.send(request).await.unwrap_err();
        assert!(
            matches!(error, EgressError::Timeout { phase, .. } if phase == expected),
            "{path}: {error:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error_and_garbage_is_a_protocol_error_with_their_sources() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = socket.local_addr().unwrap();
    drop(socket);
    let error = egress(closed).send(get(closed, "/")).await.unwrap_err();
    assert!(
        matches!(error, EgressError::Connect { .. }) && error.source().is_some(),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "could not connect to 127.0.0.1");

    let (address, _) = scripted(|_, _| Some(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec())).await;
    let error = egress(address).send(get(address, "/")).await.unwrap_err();
    assert!(
        matches!(error, EgressError::Protocol { .. }) && error.source().is_some(),
        "{error:?}"
    );
    assert!(
        !error.to_string().contains("SSH"),
        "answers are never echoed (AB-20): {error}"
    );
}

#[tokio::test]
async fn a_peer_without_tls_is_a_tls_error_and_one_that_says_nothing_a_connect_timeout() {
    let (address, _) = scripted(|_, _| Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())).await;
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let talks_plain = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        let mut buffer = [0_u8; 512];
        let _ = stream.read(&mut buffer).await;
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
    });
    let url = |address: SocketAddr| parse_url(&format!("https://{address}/")).unwrap();
    let error = egress(talks_plain)
        .send(EgressRequest::get(url(talks_plain)))
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Tls { .. }), "{error:?}");
    // The scripted server waits for a head that a TLS client hello never is.
    let error = egress(address)
        .send(EgressRequest::get(url(address)))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            EgressError::Timeout {
                phase: Phase::Connect,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn redirects_are_handed_back_unless_asked_for() {
    let (address, count) = scripted(|_, _| {
        Some(b"HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n".to_vec())
    })
    .await;
    let answer = egress(address).send(get(address, "/")).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), count.load(Ordering::SeqCst)),
        (302, 1)
    );
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_with_the_method_that_browsers_use() {
    // MCP-AB-19, Fetch standard
    for (status, expected) in [
        (301, "GET"),
        (302, "GET"),
        (303, "GET"),
        (307, "POST"),
        (308, "POST"),
    ] {
        let (address, count) = scripted(move |n, request| {
            Some(if n == 0 {
                format!("HTTP/1.1 {status} x\r\nlocation: ../b?c=d\r\ncontent-length: 0\r\n\r\n")
                    .into_bytes()
            } else {
                let method = request.split(' ').next().unwrap();
                let path = request.split(' ').nth(1).unwrap();
                let with_key = request.to_ascii_lowercase().contains("x-api-key: k");
                let with_body = request.ends_with("payload");
                let body = format!("{method} {path} {with_key} {with_body}");
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes()
            })
        })
        .await;
        let mut request = EgressRequest::new(
            Method::POST,
            parse_url(&format!("http://{address}/a/x")).unwrap(),
        );
        request.headers.insert("x-api-key", "k".parse().unwrap());
        request
            .headers
            .insert("content-type", "text/plain".parse().unwrap());
        request.body = "payload".into();
        request.redirects = Redirects::SameOrigin;
        let answer = egress(address).send(request).await.unwrap();
        assert_eq!(
            answer.body,
            format!("{expected} /b?c=d true {}", expected == "POST")
        );
        assert_eq!(answer.final_url.path(), "/b");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let (address, count) = scripted(|_, _| {
        Some(b"HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n".to_vec())
    })
    .await;
    let mut request = get(address, "/");
    request.redirects = Redirects::SameOrigin;
    let error = egress(address).send(request).await.unwrap_err();
    assert!(
        matches!(
            error,
            EgressError::Redirect {
                fault: RedirectFault::TooMany
            }
        ),
        "{error:?}"
    );
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_never_sent_twice() {
    // The second request on the kept connection is read and then dropped without an answer.
    for (method, expected) in [
        (Method::POST, 2),
        (Method::DELETE, 2),
        (Method::PUT, 2),
        (Method::GET, 3),
    ] {
        let (address, count) = scripted(|n, _| {
            (n != 1).then(|| b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())
        })
        .await;
        let client = egress(address);
        client.send(get(address, "/")).await.unwrap();
        let outcome = client
            .send(EgressRequest::new(
                method.clone(),
                parse_url(&format!("http://{address}/")).unwrap(),
            ))
            .await;
        assert_eq!(
            outcome.is_ok(),
            method == Method::GET,
            "{method}: {outcome:?}"
        );
        assert_eq!(count.load(Ordering::SeqCst), expected, "{method}");
    }
}

#[tokio::test]
async fn c6_a_get_that_broke_after_it_had_been_worked_on_is_not_sent_again() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = socket.accept().await.unwrap();
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut head = [0; 1024];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    if seen.fetch_add(1, Ordering::SeqCst) == 1 {
                        // An API that works on the second request for a while, and dies.
                        tokio::time::sleep(Duration::from_millis(400)).await;
                        return;
                    }
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    let client = egress(address);
    client.send(get(address, "/")).await.unwrap();
    let error = client.send(get(address, "/")).await.unwrap_err();
    assert!(matches!(error, EgressError::Protocol { .. }), "{error:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_endless_head_is_cut() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        let line = format!("x-filler: {}\r\n", "a".repeat(1000));
        while stream.write_all(line.as_bytes()).await.is_ok() {}
    });
    let error = egress(address).send(get(address, "/")).await.unwrap_err();
    assert!(matches!(error, EgressError::Protocol { .. }), "{error:?}");
}

/// A server that answers every request with the number of its connection and what it read.
async fn echo() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut stream, _) = socket.accept().await.unwrap();
            tokio::spawn(async move {
                while let Some(request) = read_request(&mut stream).await {
                    let body = format!("{connection}\n{request}");
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn a_kept_connection_serves_the_next_request_to_its_origin_and_no_other() {
    let (one, other) = (echo().await, echo().await);
    let allow = [one, other].map(|to| AllowedDestination::address(to.ip(), to.port()));
    let client = Egress::new(EgressPolicy {
        allow: allow.to_vec(),
        ..EgressPolicy::default()
    })
    .unwrap();
    for at in [one, other, one, other] {
        let answer = client.send(get(at, "/a%20b?q=1&r#part")).await.unwrap();
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("0"), "one connection each");
        // RFC 9112 §3.2: the path in the request line, the authority in `Host`, the fragment
        // nowhere.
        assert_eq!(lines.next(), Some("GET /a%20b?q=1&r HTTP/1.1"));
        assert!(text.contains(&format!("host: {at}\r\n")), "{text}");
    }
}

#[tokio::test]
async fn a_connection_whose_answer_was_not_read_to_its_end_is_not_used_again() {
    let address = echo().await;
    let client = egress(address);
    let mut short = get(address, "/");
    short.max_response_bytes = 4;
    let error = client.send(short).await.unwrap_err();
    assert!(matches!(error, EgressError::TooLarge { .. }), "{error:?}");
    let answer = client.send(get(address, "/")).await.unwrap();
    assert!(answer.body.starts_with(b"1\n"), "a second connection");
}

/// An answer with this body.
fn whole(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The head of an answer of unknown length.
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn post(address: SocketAddr, path: &str, body: impl Into<bytes::Bytes>) -> EgressRequest {
    let mut request = get(address, path);
    request.method = Method::POST;
    request.body = body.into();
    request
}

/// Waits until what the network has already told this process is known to the runtime.
async fn hear_of_the_network() {
    let other = echo().await;
    egress(other).send(get(other, "/")).await.unwrap();
}

#[tokio::test]
async fn c6_a_request_finds_out_that_its_kept_connection_was_closed_before_it_is_sent() {
    // One answer for each connection, which is closed after it: also what must not be repeated goes
    // out again, because it did not go out.
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (tell, mut closed) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut stream, _) = socket.accept().await.unwrap();
            read_request(&mut stream).await.unwrap();
            let answer = whole(&connection.to_string());
            stream.write_all(&answer).await.unwrap();
            drop(stream);
            tell.send(()).unwrap();
        }
    });
    let client = egress(address);
    for n in 0..5 {
        let answer = client.send(post(address, "/", "x")).await.unwrap();
        assert_eq!(answer.body, n.to_string());
        closed.recv().await.unwrap();
        hear_of_the_network().await;
    }
}

#[tokio::test]
async fn an_idle_connection_that_the_other_end_closed_is_given_up_soon() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(&whole("")).await.unwrap();
        stream.shutdown().await.unwrap();
        // Nothing more comes but the end.
        stream.read(&mut [0]).await.unwrap()
    });
    let client = egress(address);
    client.send(get(address, "/")).await.unwrap();
    hear_of_the_network().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(16)).await;
    assert_eq!(server.await.unwrap(), 0);
    drop(client);
}

#[tokio::test]
async fn whoever_stops_waiting_closes_the_connection() {
    // Before the head and in the middle of the body, by the deadline, by dropping the exchange, by
    // dropping the answer.
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (tell, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let (told, mut asked) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = socket.accept().await.unwrap();
            let (tell, told) = (tell.clone(), told.clone());
            tokio::spawn(async move {
                let request = read_request(&mut stream).await.unwrap();
                if request.starts_with("GET /body") {
                    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
                    stream.write_all(half).await.unwrap();
                }
                told.send(()).unwrap();
                tell.send(stream.read(&mut [0]).await.unwrap_or(0)).unwrap();
            });
        }
    });
    let client = egress(address);
    for path in ["/head", "/body"] {
        let mut request = get(address, path);
        request.timeout = Duration::from_millis(50);
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, EgressError::Timeout { .. }), "{error:?}");
        assert_eq!(ended.recv().await, Some(0), "{path}");
        asked.recv().await.unwrap();

        tokio::select! {
            biased;
            outcome = client.send(get(address, path)) => panic!("{outcome:?}"),
            _ = asked.recv() => {}
        }
        assert_eq!(ended.recv().await, Some(0), "{path}");
    }
    let mut answer = client.open(get(address, "/body")).await.unwrap();
    assert_eq!(answer.piece().await.unwrap().unwrap(), "half");
    drop(answer);
    assert_eq!(ended.recv().await, Some(0));
}

#[tokio::test]
async fn a_body_is_read_piece_by_piece_and_its_connection_serves_again() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel::<&'static [u8]>();
    tokio::spawn(async move {
        // One connection, and no other.
        let (mut stream, _) = socket.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED).await.unwrap();
        while let Some(bytes) = said.recv().await {
            stream.write_all(bytes).await.unwrap();
        }
        read_request(&mut stream).await.unwrap();
        stream.write_all(&whole("again")).await.unwrap();
    });
    let client = egress(address);
    let mut answer = client.open(get(address, "/")).await.unwrap();
    // No event has arrived yet: a read that is dropped loses nothing.
    for _ in 0..3 {
        tokio::select! {
            biased;
            piece = answer.piece() => panic!("{piece:?}"),
            () = std::future::ready(()) => {}
        }
    }
    for bytes in [&b"3\r\none\r\n"[..], b"3\r\ntwo\r\n"] {
        say.send(bytes).unwrap();
        let piece = answer.piece().await.unwrap().unwrap();
        assert_eq!(piece, bytes[3..6]);
    }
    // Two at once come one after the other.
    say.send(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n").unwrap();
    drop(say);
    assert_eq!(answer.piece().await.unwrap().unwrap(), "a");
    assert_eq!(answer.piece().await.unwrap().unwrap(), "b");
    assert!(answer.piece().await.unwrap().is_none());
    assert!(answer.piece().await.unwrap().is_none(), "and stays so");
    let again = client.send(get(address, "/")).await.unwrap();
    assert_eq!(again.body, "again");
}

#[tokio::test]
async fn a_body_of_known_length_ends_with_its_last_frame_and_its_connection_serves_again() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        // One connection, and no other.
        let (mut stream, _) = socket.accept().await.unwrap();
        for text in ["first", "again"] {
            read_request(&mut stream).await.unwrap();
            stream.write_all(&whole(text)).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let client = egress(address);
    let mut answer = client.open(get(address, "/")).await.unwrap();
    assert!(!answer.is_end_stream());
    assert_eq!(answer.size_hint().exact(), Some(5));
    let frame = answer.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "first");
    assert!(answer.is_end_stream(), "without one more read");
    let again = client.send(get(address, "/")).await.unwrap();
    assert_eq!(again.body, "again", "while the first answer is still there");
    assert!(answer.frame().await.is_none());
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_of_a_body_is_an_error() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = socket.accept().await.unwrap();
            read_request(&mut stream).await.unwrap();
            let half = [CHUNKED, b"3\r\none\r\n"].concat();
            stream.write_all(&half).await.unwrap();
        }
    });
    let client = egress(address);
    let mut answer = client.open(get(address, "/")).await.unwrap();
    assert_eq!(answer.piece().await.unwrap().unwrap(), "one");
    let error = answer.piece().await.unwrap_err();
    assert!(matches!(error, EgressError::Protocol { .. }), "{error:?}");
    let error = client.send(get(address, "/")).await.unwrap_err();
    assert!(matches!(error, EgressError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn a_task_that_has_used_up_what_it_may_do_at_a_stretch_still_hears_its_answer() {
    let address = echo().await;
    let client = egress(address);
    for spent in 0..140 {
        let exchange = async {
            for _ in 0..spent {
                tokio::task::coop::consume_budget().await;
            }
            client.send(get(address, "/")).await
        };
        let answer = exchange.await.unwrap();
        assert!(answer.body.starts_with(b"0\n"), "{spent}: one connection");
    }
}

#[tokio::test]
async fn a_large_request_goes_out_while_its_answer_is_awaited() {
    // More than sockets take at once.
    const BODY: usize = 16 * 1024 * 1024;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..2 {
            // Up to the last byte.
            loop {
                let read = stream.read(&mut buffer).await.unwrap();
                if buffer[..read].ends_with(b"$") {
                    break;
                }
            }
            stream.write_all(&whole("all of it")).await.unwrap();
        }
    });
    let client = egress(address);
    for _ in 0..2 {
        let mut body = vec![b'a'; BODY];
        body.push(b'$');
        let request = post(address, "/", body);
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.body, "all of it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_have_each_their_own_answer() {
    let address = echo().await;
    let client = Egress::new(EgressPolicy {
        allow: vec![AllowedDestination::address(address.ip(), address.port())],
        ..EgressPolicy::default()
    })
    .unwrap();
    for _ in 0..3 {
        let asked: Vec<_> = (0..100)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(async move {
                    for turn in 0..5 {
                        let path = format!("/{n}/{turn}");
                        let answer = client.send(get(address, &path)).await.unwrap();
                        let text = String::from_utf8(answer.body.to_vec()).unwrap();
                        assert!(text.contains(&format!("GET {path} HTTP/1.1\r\n")), "{text}");
                    }
                })
            })
            .collect();
        for one in asked {
            one.await.unwrap();
        }
    }
}

/// A program on a person's machine reaches `https` addresses through the proxy of its network; a
/// node never does.
#[tokio::test]
async fn a_proxy_is_sent_the_name_and_then_tls_and_only_by_a_program_of_a_person() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let proxies =
        Proxies::read(|name| (name == "HTTPS_PROXY").then(|| format!("http://me:secret@{proxy}")));
    let node = Egress::new(EgressPolicy::default()).unwrap();
    let program = Egress::on_own_machine(EgressPolicy::default(), &proxies, "test").unwrap();
    let request = || EgressRequest::get("https://mcp.example.invalid/mcp".parse().unwrap());
    let refused = node.send(get(proxy, "/")).await.unwrap_err();
    assert_eq!(refused.kind(), "blocked_address", "{refused:?}");

    let answers: [(&[u8], _); 2] = [
        (b"HTTP/1.1 200 OK\r\n\r\n", "tls"),
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "connect",
        ),
    ];
    for (answer, kind) in answers {
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_request(&mut stream).await.unwrap();
            stream.write_all(answer).await.unwrap();
            let mut first = [0];
            let more = stream.read(&mut first).await.unwrap();
            (head, (more == 1).then_some(first[0]))
        };
        let (failed, (head, next)) = tokio::join!(program.send(request()), served);
        let mut lines = head.lines();
        assert_eq!(
            lines.next(),
            Some("CONNECT mcp.example.invalid:443 HTTP/1.1")
        );
        // me:secret
        let login = "proxy-authorization: basic bwu6c2vjcmv0";
        assert!(
            lines.any(|line| line.to_ascii_lowercase() == login),
            "{head}"
        );
        let failed = failed.unwrap_err();
        assert_eq!(failed.kind(), kind, "{failed:?}");
        // The record of a handshake (RFC 8446 §5.1) follows an opened way.
        assert_eq!(next, (kind == "tls").then_some(0x16), "{failed:?}");
    }
}

const KEY_ALONE: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
const NO_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const BROKEN: &str = "-----BEGIN CERTIFICATE-----\n=!=\n-----END CERTIFICATE-----\n";

#[test]
fn a_file_that_names_no_authority_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let path = path.to_str().unwrap();
    let refusal = || {
        <Authorities as portolan_config::Value>::parse(path)
            .unwrap_err()
            .to_string()
    };
    let missing = refusal();
    assert!(missing.starts_with("cannot be read: "), "{missing}");
    for (text, why) in [
        ("", "there is no certificate in it"),
        (KEY_ALONE, "there is no certificate in it"),
        (NO_CERTIFICATE, "certificate 1 in it cannot be read"),
        (BROKEN, "it is not PEM"),
    ] {
        std::fs::write(path, text).unwrap();
        let error = refusal();
        assert!(error.contains(why), "{error}");
    }
}
