//! Metadata documents and key sets from real hosts: over TLS, faulty, too large, too slow
//! (AUTH-C2, AUTH-C4, AUTH-C13; CASE-72, CASE-78 to CASE-80, CASE-84).

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration as StdDuration, Instant},
};

use futures_util::future::join_all;
use http::StatusCode;
use portolan_keys::ring::NewKeyPair;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    harness::{CALLBACK, Node, Scene, code_request, encode, request},
    https::{Answer, HttpsServer},
    internet::{Internet, PUBLIC},
    service::{VENDOR, jwks, with_proof},
};

/// A valid document at this address.
fn document(url: &str) -> Value {
    json!({"client_id": url, "client_name": "Vendor", "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none"})
}

/// The path of a request, and its URL.
fn asked(head: &str) -> (String, String) {
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let host = head
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let url = format!("https://{host}{path}");
    (path, url)
}

/// A node, and a simulated internet with this server.
async fn scene(server: &HttpsServer) -> (Scene, Arc<Internet>) {
    let internet = Internet::of(server);
    let scene = Scene::reaching(internet.egress(server)).await;
    (scene, internet)
}

#[tokio::test]
async fn case_79_c2_a_document_behind_a_redirect_is_a_page_and_asked_for_once() {
    let server = HttpsServer::start("DNS:app.example", |head, _| {
        let (path, url) = asked(head);
        match path.trim_start_matches('/').split_once('/') {
            Some((status, _)) => {
                let headers = "location: https://app.example/client.json\r\n";
                Answer::with(&format!("{status} Moved"), headers, b"")
            }
            None => Answer::json(&document(&url).to_string()),
        }
    })
    .unwrap();
    let (mut scene, _) = scene(&server).await;
    for status in ["301", "302", "303", "307", "308"] {
        let path = format!("/{status}/client.json");
        let client = format!("https://app.example{path}");
        scene.ann.authorize(&request(&client)).await.assert_page();
        assert_eq!(server.count(&path), 1);
    }
    assert_eq!(server.seen().len(), 5, "nobody went where it pointed");
    scene.ann.begin(&request(VENDOR)).await;
    assert_eq!(server.seen().len(), 6, "the document itself is good");
}

/// The head of a response that ends with its connection.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

/// 4 MiB of zeros, compressed with gzip.
fn bomb() -> Vec<u8> {
    let mut gzip = Command::new("gzip")
        .arg("-9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = gzip.stdin.take().unwrap();
    input.write_all(&vec![0; 4 * 1024 * 1024]).unwrap();
    drop(input);
    gzip.wait_with_output().unwrap().stdout
}

#[tokio::test]
async fn case_80_c2_a_document_too_large_too_slow_or_packed_is_a_page_in_time() {
    let bomb = bomb();
    assert!(
        bomb.len() < 5 * 1024,
        "small enough to be read: {}",
        bomb.len()
    );
    let server = HttpsServer::start(
        "DNS:app.example,DNS:six.example,DNS:untold.example,DNS:endless.example,DNS:slow.example,DNS:bomb.example,DNS:hidden.example",
        move |head, _| {
            let (_, url) = asked(head);
            let good = document(&url).to_string();
            let endless = |piece: &[u8], pause| Answer::Endless {
                head: format!("{HEAD}{}", &good[..good.len() - 1]).into_bytes(),
                piece: piece.to_vec(),
                pause,
            };
            let six = format!("{good:6144}");
            let host = url.trim_start_matches("https://").split('.').next().unwrap();
            match host {
                "six" => Answer::json(&six),
                "untold" => Answer::Whole(format!("{HEAD}{six}").into_bytes()),
                "endless" => endless(&[b' '; 16 * 1024], StdDuration::ZERO),
                "slow" => endless(b" ", StdDuration::from_secs(1)),
                "bomb" => Answer::with(
                    "200 OK",
                    "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                    &bomb,
                ),
                "hidden" => Answer::with("200 OK", "content-type: application/json\r\n", &bomb),
                _ => Answer::json(&format!("{good:5120}")),
            }
        },
    )
    .unwrap();
    let (mut scene, internet) = scene(&server).await;
    let hosts = ["six", "untold", "endless", "slow", "bomb", "hidden"];
    let began = Instant::now();
    let pages = join_all(hosts.map(|host| {
        let mut browser = scene.ann.clone();
        async move {
            let client = format!("https://{host}.example/client.json");
            (
                host,
                browser.authorize(&request(&client)).await,
                began.elapsed(),
            )
        }
    }))
    .await;
    for (host, page, after) in pages {
        page.assert_page();
        // The deadline is 5 s; the rest is time for the page on a busy machine.
        let limit = if host == "slow" { 10 } else { 4 };
        assert!(after < StdDuration::from_secs(limit), "{host}: {after:?}");
    }
    assert_eq!(server.count("/client.json"), hosts.len(), "each was asked");
    assert_eq!(internet.dialled().len(), hosts.len());
    for head in server.seen() {
        assert!(
            !head.to_ascii_lowercase().contains("accept-encoding"),
            "{head}"
        );
    }
    // During the slow response, reading an endless one would have taken gigabytes. The bytes taken
    // are the buffers of two sockets.
    let taken = server.sent();
    assert!(taken < 32 * 1024 * 1024, "{taken} bytes");

    scene.ann.begin(&request(VENDOR)).await;
}

#[tokio::test]
async fn case_84_c4_a_document_that_was_not_there_is_asked_for_again() {
    let server = HttpsServer::start("DNS:app.example", |head, before| {
        let (_, url) = asked(head);
        match before {
            0 => Answer::with("404 Not Found", "content-type: text/plain\r\n", b"not yet"),
            1 => Answer::with(
                "503 Service Unavailable",
                "cache-control: max-age=3600\r\n",
                b"",
            ),
            2 => Answer::json("{\"client_id\":"),
            _ => Answer::json(&document(&url).to_string()),
        }
    })
    .unwrap();
    let (mut scene, _) = scene(&server).await;
    for times in 1..=3 {
        scene.ann.authorize(&request(VENDOR)).await.assert_page();
        assert_eq!(server.count("/client.json"), times);
        scene.node.clock.advance(Duration::SECOND);
    }
    let path = scene.ann.begin(&request(VENDOR)).await;
    scene.ann.decide(&path, "approve").await.back();
    assert_eq!(
        server.count("/client.json"),
        4,
        "and kept, now that it is good"
    );
}

#[tokio::test]
async fn case_78_c2_a_name_that_turns_private_leads_nowhere_else() {
    let server = HttpsServer::start("DNS:app.example,DNS:both.example", |head, _| {
        let (_, url) = asked(head);
        let good = document(&url).to_string();
        let headers = "content-type: application/json\r\ncache-control: no-store\r\n";
        Answer::with("200 OK", headers, good.as_bytes())
    })
    .unwrap();
    let (mut scene, internet) = scene(&server).await;
    // Public at the check, and private at a second lookup.
    internet.tell("app.example", &[&[PUBLIC], &["10.0.0.1"]]);
    scene.ann.begin(&request(VENDOR)).await;
    let public = [format!("{PUBLIC}:443")];
    assert_eq!(internet.dialled(), public, "what was checked was dialled");

    // Later it is private permanently: another document of it is a page, the copy serves for a day,
    // and no address is dialled.
    scene.node.clock.advance(Duration::minutes(6));
    let other = "https://app.example/other.json";
    scene.ann.authorize(&request(other)).await.assert_page();
    scene.ann.begin(&request(VENDOR)).await;
    internet.tell("both.example", &[&[PUBLIC, "10.0.0.1"]]);
    let both = "https://both.example/client.json";
    scene.ann.authorize(&request(both)).await.assert_page();
    assert_eq!(internet.dialled(), public);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c2_of_a_hundred_requests_at_once_each_node_asks_for_the_document_once() {
    let server = HttpsServer::start("DNS:app.example", |head, _| {
        Answer::json(&document(&asked(head).1).to_string())
    })
    .unwrap();
    let (scene, internet) = scene(&server).await;
    let egress = internet.egress(&server);
    let second = Node::reaching(&scene.database, &scene.node.clock, egress).await;
    let path = format!("/oauth/authorize?{}", encode(&request(VENDOR)));
    let replies = join_all((0..100).map(|n| {
        let node = if n % 2 == 0 { &scene.node } else { &second };
        node.get(&path)
    }))
    .await;
    for reply in replies {
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
    }
    let asked = server.count("/client.json");
    assert!((1..=2).contains(&asked), "{asked} requests of two nodes");
    scene.node.get(&path).await;
    second.get(&path).await;
    assert_eq!(server.count("/client.json"), asked, "one copy for both");
}

#[tokio::test]
async fn case_72_c13_unknown_key_ids_make_one_fetch_a_minute_on_all_nodes_together() {
    let (key, next) = (
        NewKeyPair::generate().unwrap(),
        NewKeyPair::generate().unwrap(),
    );
    let published = Arc::new(Mutex::new(jwks(&key)));
    let shown = Arc::clone(&published);
    let server = HttpsServer::start("DNS:app.example,DNS:keys.example", move |head, _| {
        let (path, url) = asked(head);
        if path == "/jwks.json" {
            return Answer::json(&shown.lock().unwrap().to_string());
        }
        let mut document = document(&url);
        document["token_endpoint_auth_method"] = json!("private_key_jwt");
        document["jwks_uri"] = json!("https://keys.example/jwks.json");
        Answer::json(&document.to_string())
    })
    .unwrap();
    let (mut scene, internet) = scene(&server).await;
    let egress = internet.egress(&server);
    let second = Node::reaching(&scene.database, &scene.node.clock, egress).await;
    let fetches = || server.count("/jwks.json");

    let code = scene.ann.code(&request(VENDOR)).await;
    let node = scene.node.clone();
    let tokens = with_proof(&node, &key, &code_request(VENDOR, &code)).await;
    assert_eq!(tokens.status, StatusCode::OK, "{}", tokens.text);
    assert_eq!(fetches(), 1);
    let refresh = tokens.json()["refresh_token"].as_str().unwrap().to_owned();
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.as_str()),
    ];

    node.clock.advance(Duration::seconds(61));
    let strangers: Vec<_> = (0..10).map(|_| NewKeyPair::generate().unwrap()).collect();
    let unauthorized = (401, "invalid_client".to_owned());
    for n in 0..1000 {
        let asked = if n % 2 == 0 { &node } else { &second };
        let reply = with_proof(asked, &strangers[n % 10], &form).await;
        assert_eq!(reply.refusal(), unauthorized);
    }
    assert_eq!(fetches(), 2, "one more, for the first of a thousand");

    // A new key of the client is found after a minute, and the known keys serve meanwhile.
    *published.lock().unwrap() = jwks(&next);
    assert_eq!(
        with_proof(&node, &next, &form).await.refusal(),
        unauthorized
    );
    assert_eq!(
        with_proof(&second, &key, &form).await.status,
        StatusCode::OK
    );
    assert_eq!(fetches(), 2);
    node.clock.advance(Duration::seconds(61));
    assert_eq!(
        with_proof(&second, &next, &form).await.status,
        StatusCode::OK
    );
    assert_eq!(with_proof(&node, &next, &form).await.status, StatusCode::OK);
    assert_eq!(fetches(), 3);
    assert_eq!(with_proof(&node, &key, &form).await.refusal(), unauthorized);
}

#[tokio::test]
async fn case_85_c2_a_hundred_requests_for_one_document_on_two_nodes_fetch_it_once() {
    // The document is slow, so that all requests arrive before it does.
    let server = HttpsServer::start("DNS:app.example", |head, _| {
        let (_, url) = asked(head);
        std::thread::sleep(StdDuration::from_millis(300));
        Answer::json(&document(&url).to_string())
    })
    .unwrap();
    let (scene, internet) = scene(&server).await;
    let second = Node::reaching(&scene.database, &scene.node.clock, internet.egress(&server)).await;
    let path = format!("/oauth/authorize?{}", encode(&request(VENDOR)));
    let answers = join_all((0..100).map(|n| {
        let node = if n % 2 == 0 { &scene.node } else { &second };
        node.get(&path)
    }))
    .await;
    for answer in answers {
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    }
    assert_eq!(server.count("/client.json"), 1);
}

#[tokio::test]
async fn case_85_c2_a_fetch_that_failed_lets_the_next_one_try_on_any_node() {
    let server = HttpsServer::start("DNS:app.example", |head, before| {
        let (_, url) = asked(head);
        match before {
            0 => Answer::with("503 Service Unavailable", "", b""),
            _ => Answer::json(&document(&url).to_string()),
        }
    })
    .unwrap();
    let (mut scene, internet) = scene(&server).await;
    let second = Node::reaching(&scene.database, &scene.node.clock, internet.egress(&server)).await;
    scene.ann.authorize(&request(VENDOR)).await.assert_page();
    let path = format!("/oauth/authorize?{}", encode(&request(VENDOR)));
    let answer = second.get(&path).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(server.count("/client.json"), 2);
}

#[tokio::test]
async fn case_85_c2_who_goes_away_while_a_document_is_fetched_keeps_nobody_waiting() {
    let (asked_for, was_asked) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let server = HttpsServer::start("DNS:app.example", move |head, before| {
        let (_, url) = asked(head);
        if before == 0 {
            asked_for.send(()).unwrap();
            let _ = may_go_on
                .lock()
                .unwrap()
                .recv_timeout(StdDuration::from_secs(4));
        }
        Answer::json(&document(&url).to_string())
    })
    .unwrap();
    let (scene, internet) = scene(&server).await;
    let path = format!("/oauth/authorize?{}", encode(&request(VENDOR)));
    let (node, asked_path) = (scene.node.clone(), path.clone());
    #[expect(clippy::disallowed_methods, reason = "it is aborted below")]
    let gone = tokio::spawn(async move { node.get(&asked_path).await });
    tokio::task::spawn_blocking(move || was_asked.recv_timeout(StdDuration::from_secs(10)))
        .await
        .unwrap()
        .unwrap();
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    go_on.send(()).unwrap();
    let second = Node::reaching(&scene.database, &scene.node.clock, internet.egress(&server)).await;
    let began = Instant::now();
    let answer = second.get(&path).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert!(
        began.elapsed() < StdDuration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        server.count("/client.json"),
        1,
        "what was begun is of use to others"
    );
}
