//! Rules for every request: hosts, ids, panics, cross-site requests, CORS, security headers,
//! bounded bodies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::StringRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use portolan_net::client_ip::{ProxyHeader, TrustedProxies};
use portolan_net::layers::body::{BodyError, read};
use portolan_net::layers::{
    AllowedHosts, Arrival, BODY_RATE, Compress, Cors, Entrance, EntranceFault, FetchSite, Front,
    Origins, PageKind, Pause, SecurityHeaders,
};
use portolan_net::listen::Peer;
use tower::ServiceExt;

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

async fn answer(router: &Router, method: &str, headers: &[(&str, &str)]) -> Response {
    router
        .clone()
        .oneshot(request(method, "/", headers))
        .await
        .unwrap()
}

async fn text(answer: Response) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn fronted() -> Router {
    let proxies = TrustedProxies::new(
        vec!["10.0.0.0/8".parse().unwrap()],
        ProxyHeader::XForwardedFor,
    );
    Router::new()
        .route(
            "/",
            get(|arrival: Arrival| async move {
                format!("{} {}", arrival.request_id(), arrival.client_ip())
            }),
        )
        .route(
            "/boom",
            get(|| async { assert!(std::hint::black_box(false), "planted secret") }),
        )
        .layer(Front::new(
            AllowedHosts::new(["Portolan.example", "127.0.0.1:8080"]),
            proxies,
            None,
        ))
}

#[tokio::test]
async fn a_request_for_a_host_that_is_not_ours_is_refused_before_routing() {
    // AUTH-S10, CASE-26
    let router = fronted();
    for host in ["portolan.example", "PORTOLAN.EXAMPLE", "127.0.0.1:8080"] {
        assert_eq!(
            answer(&router, "GET", &[("host", host)]).await.status(),
            200,
            "{host}"
        );
    }
    for host in [
        "evil.example",
        "portolan.example:8080",
        "127.0.0.1",
        "portolan.example.evil.example",
        "",
        "localhost",
    ] {
        let refused = answer(&router, "GET", &[("host", host)]).await;
        assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
        assert!(refused.headers().contains_key("x-request-id"));
    }
    assert_eq!(answer(&router, "GET", &[]).await.status(), 400);
    let twice = [("host", "portolan.example"), ("host", "evil.example")];
    assert_eq!(answer(&router, "GET", &twice).await.status(), 400);
    let absolute = request(
        "GET",
        "http://evil.example/",
        &[("host", "portolan.example")],
    );
    assert_eq!(
        router.oneshot(absolute).await.unwrap().status(),
        StatusCode::MISDIRECTED_REQUEST
    );
}

#[tokio::test]
async fn a_node_that_pauses_answers_503_and_says_when_to_come_again() {
    let pause = Pause::default();
    let hosts = AllowedHosts::new(["portolan.example"]);
    let front = Front::new(hosts, TrustedProxies::default(), None).paused_by(pause.clone());
    let router = Router::new()
        .route("/", get(|| async { "served" }))
        .layer(front);
    let host = [("host", "portolan.example")];
    assert_eq!(answer(&router, "GET", &host).await.status(), 200);
    assert!(pause.set(true) && !pause.set(true), "once");
    for method in ["GET", "POST", "DELETE"] {
        let paused = answer(&router, method, &host).await;
        assert_eq!(paused.status(), 503);
        assert_eq!(paused.headers()["retry-after"], "2");
        assert!(paused.headers().contains_key("x-request-id"));
    }
    let elsewhere = answer(&router, "GET", &[("host", "evil.example")]).await;
    assert_eq!(elsewhere.status(), StatusCode::MISDIRECTED_REQUEST);
    assert!(pause.set(false));
    assert_eq!(text(answer(&router, "GET", &host).await).await, "served");
}

#[tokio::test]
async fn request_ids_are_ours_and_unique() {
    let router = fronted();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        let answer = answer(
            &router,
            "GET",
            &[
                ("host", "portolan.example"),
                ("x-request-id", "from-outside"),
            ],
        )
        .await;
        let id = answer.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(id.len(), 24);
        assert!(
            text(answer).await.starts_with(&id),
            "handlers see the same id"
        );
        assert!(seen.insert(id));
    }
}

#[tokio::test]
async fn the_client_address_is_believed_only_through_our_proxies() {
    let router = fronted();
    for (peer, expected) in [("10.0.0.1:1", "8.8.8.8"), ("9.9.9.9:1", "9.9.9.9")] {
        let mut request = request(
            "GET",
            "/",
            &[
                ("host", "portolan.example"),
                ("x-forwarded-for", "6.6.6.6, 8.8.8.8"),
            ],
        );
        request
            .extensions_mut()
            .insert(Peer::from(peer.parse::<SocketAddr>().unwrap()));
        let answer = router.clone().oneshot(request).await.unwrap();
        assert!(text(answer).await.ends_with(expected));
    }
}

#[tokio::test]
async fn a_panicking_handler_is_a_500_with_an_id_and_without_the_message() {
    let answer = fronted()
        .oneshot(request("GET", "/boom", &[("host", "portolan.example")]))
        .await
        .unwrap();
    assert_eq!(answer.status(), 500);
    assert!(answer.headers().contains_key("x-request-id"));
    let body: serde_json::Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(body["error"]["code"], "internal");
    assert!(!body.to_string().contains("planted"));
}

#[tokio::test]
async fn unsafe_requests_must_come_from_our_own_pages() {
    // AUTH-S5 (1), negative CASE-28 and CASE-29
    let router = Router::new()
        .route(
            "/",
            get(|| async {})
                .post(|| async {})
                .put(|| async {})
                .delete(|| async {})
                .patch(|| async {}),
        )
        .layer(FetchSite::new(["https://portolan.example"]).layer());
    let site = |value| ("sec-fetch-site", value);
    let origin = |value| ("origin", value);
    let passes: &[&[(&str, &str)]] = &[
        &[site("same-origin")],
        &[site("same-origin"), origin("null")],
        &[origin("https://portolan.example")],
    ];
    let refused: &[&[(&str, &str)]] = &[
        &[],
        &[site("cross-site")],
        &[site("same-site")],
        &[site("none")],
        &[site("")],
        &[site("Same-Origin")],
        &[site("same-origin"), site("cross-site")],
        &[site("cross-site"), origin("https://portolan.example")],
        &[origin("https://acme.portolan.example")],
        &[origin("http://portolan.example")],
        &[origin("https://portolan.example:8443")],
        &[origin("https://portolan.example.evil.example")],
        &[origin("null")],
        &[
            origin("https://portolan.example"),
            origin("https://evil.example"),
        ],
    ];
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for headers in passes {
            assert_eq!(
                answer(&router, method, headers).await.status(),
                200,
                "{method} {headers:?}"
            );
        }
        for headers in refused {
            assert_eq!(
                answer(&router, method, headers).await.status(),
                403,
                "{method} {headers:?}"
            );
        }
    }
    for headers in passes.iter().chain(refused) {
        assert_eq!(
            answer(&router, "GET", headers).await.status(),
            200,
            "{headers:?}"
        );
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn any_origin_may_read_the_authorization_server_without_credentials() {
    // AUTH-E10
    let router = Router::new()
        .route(
            "/",
            post(|| async { (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]) }),
        )
        .layer(Cors::authorization_server().layer());
    let preflight = answer(
        &router,
        "OPTIONS",
        &[
            ("origin", "https://inspector.example"),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "content-type, MCP-Protocol-Version,x-other, authorization",
            ),
        ],
    )
    .await;
    assert_eq!(preflight.status(), 204);
    assert_eq!(
        header(preflight.headers(), "access-control-allow-origin"),
        "*"
    );
    assert_eq!(
        header(preflight.headers(), "access-control-allow-headers"),
        "content-type, mcp-protocol-version, authorization"
    );
    assert!(
        !preflight
            .headers()
            .contains_key("access-control-allow-credentials")
    );
    // Errors must be readable too.
    let refused = answer(&router, "POST", &[("origin", "https://inspector.example")]).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(
        header(refused.headers(), "access-control-allow-origin"),
        "*"
    );
    assert_eq!(
        header(refused.headers(), "access-control-expose-headers"),
        "WWW-Authenticate"
    );
    // An OPTIONS that is no preflight stays the router's matter.
    assert_eq!(answer(&router, "OPTIONS", &[]).await.status(), 405);
}

#[tokio::test]
async fn listed_origins_are_echoed_and_others_get_nothing() {
    // MCP-T-11
    let listed = Origins::Listed(["https://app.example".to_owned()].into());
    let router = Router::new()
        .route("/", post(|| async {}))
        .layer(Cors::mcp(listed).layer());
    let ask = |origin: &'static str| {
        [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "mcp-session-id,mcp-param-region,mcp-other",
            ),
        ]
    };
    let allowed = answer(&router, "OPTIONS", &ask("https://app.example")).await;
    assert_eq!(
        header(allowed.headers(), "access-control-allow-origin"),
        "https://app.example"
    );
    assert_eq!(
        header(allowed.headers(), "access-control-allow-headers"),
        "mcp-session-id, mcp-param-region"
    );
    let other = answer(&router, "OPTIONS", &ask("https://evil.example")).await;
    assert!(!other.headers().contains_key("access-control-allow-origin"));
    let posted = answer(&router, "POST", &[("origin", "https://evil.example")]).await;
    assert!(!posted.headers().contains_key("access-control-allow-origin"));
    assert_eq!(header(posted.headers(), "vary"), "origin");
}

#[tokio::test]
async fn pages_and_machine_answers_get_their_headers_and_handlers_may_set_their_own() {
    let page = |page, https| {
        Router::new()
            .route("/", get(|| async {}))
            .layer(SecurityHeaders::new(page, https).no_store().layer())
    };
    let console = answer(&page(PageKind::Console, true), "GET", &[]).await;
    let authorization = answer(&page(PageKind::Authorization, true), "GET", &[]).await;
    let machine = answer(&page(PageKind::Machine, false), "GET", &[]).await;
    // AUTH-S6, AUTH-S7
    assert!(header(console.headers(), "content-security-policy").contains("form-action 'self'"));
    assert!(
        header(console.headers(), "content-security-policy")
            .starts_with("default-src 'none'; script-src 'self'")
    );
    assert_eq!(
        header(console.headers(), "cross-origin-opener-policy"),
        "same-origin"
    );
    assert_eq!(header(console.headers(), "cache-control"), "no-store");
    assert!(header(console.headers(), "strict-transport-security").starts_with("max-age=31536000"));
    // AUTH-N7, AUTH-N8
    assert!(!header(authorization.headers(), "content-security-policy").contains("form-action"));
    assert!(
        header(authorization.headers(), "content-security-policy")
            .contains("frame-ancestors 'none'")
    );
    assert_eq!(
        header(authorization.headers(), "cross-origin-opener-policy"),
        "unsafe-none"
    );
    assert_eq!(
        header(authorization.headers(), "referrer-policy"),
        "no-referrer"
    );
    // AUTH-S9
    assert_eq!(
        header(machine.headers(), "content-security-policy"),
        "default-src 'none'; sandbox; frame-ancestors 'none'"
    );
    assert_eq!(
        header(machine.headers(), "x-content-type-options"),
        "nosniff"
    );
    assert!(
        !machine.headers().contains_key("strict-transport-security"),
        "not on plain http"
    );

    let own = Router::new()
        .route(
            "/",
            get(|| async { [("cache-control", "public, max-age=60")] }),
        )
        .layer(
            SecurityHeaders::new(PageKind::Machine, false)
                .no_store()
                .layer(),
        );
    assert_eq!(
        header(answer(&own, "GET", &[]).await.headers(), "cache-control"),
        "public, max-age=60"
    );
}

fn pieces(pieces: Vec<&'static [u8]>) -> Body {
    Body::from_stream(futures_util::stream::iter(
        pieces
            .into_iter()
            .map(|p| Ok::<_, std::io::Error>(Bytes::from_static(p))),
    ))
}

#[tokio::test]
async fn bodies_are_read_up_to_the_limit_and_not_beyond() {
    // TEST-B2
    let within = Duration::from_secs(5);
    assert_eq!(read(Body::empty(), 0, within).await.unwrap(), "");
    assert_eq!(
        read(pieces(vec![b"ab", b"", b"cd", b"e"]), 5, within)
            .await
            .unwrap(),
        "abcde"
    );
    assert_eq!(read(Body::from("abcde"), 5, within).await.unwrap(), "abcde");
    assert!(matches!(
        read(Body::from("abcdef"), 5, within).await,
        Err(BodyError::TooLarge { limit: 5 })
    ));
    assert!(matches!(
        read(pieces(vec![b"abc", b"def"]), 5, within).await,
        Err(BodyError::TooLarge { limit: 5 })
    ));
    let endless = Body::from_stream(futures_util::stream::repeat_with(|| {
        Ok::<_, std::io::Error>(Bytes::from_static(&[0; 1024]))
    }));
    assert!(matches!(
        read(endless, 64 * 1024, within).await,
        Err(BodyError::TooLarge { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_cut() {
    // TEST-B1: a byte a second never lets a per-read timeout fire; the whole has a deadline.
    let drip = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
    });
    let begun = tokio::time::Instant::now();
    let error = read(Body::from_stream(drip), 1024, Duration::from_secs(30))
        .await
        .unwrap_err();
    assert!(matches!(error, BodyError::TooSlow { .. }), "{error:?}");
    assert_eq!(begun.elapsed().as_secs(), 30);
}

/// In the words of some routes.
fn words(fault: EntranceFault) -> Response {
    (fault.status(), format!("refused: {fault:?}")).into_response()
}

fn behind_the_entrance() -> Router {
    Router::new()
        .route("/{name}", get(|| async { "read" }))
        .route(
            "/",
            // A handler that makes the worst of a body that breaks off.
            post(|body: Result<String, StringRejection>| async move {
                body.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
            }),
        )
        .layer(Entrance::new(words).layer())
}

async fn send(kind: &str, body: Body) -> Response {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/")
        .header("content-type", kind)
        .body(body)
        .unwrap();
    behind_the_entrance().oneshot(request).await.unwrap()
}

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

#[tokio::test]
async fn s6_what_holds_control_characters_is_refused_in_the_words_of_the_route() {
    for (path, status) in [
        ("/a%00b", 400),
        ("/a%0Ab", 400),
        ("/a?b=%00", 400),
        ("/a?b=%1f", 400),
        ("/a?b=%0d%0a", 200),
        ("/a%20b?c=%E2%80%AE", 200),
    ] {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = behind_the_entrance().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        if status == 400 {
            assert_eq!(text(answer).await, "refused: Characters");
        }
    }
    for (kind, parts, status) in [
        (FORM, [&b"a=1&b=%"[..], b"00"], 400),
        (FORM, [b"a=1&b=%0", b"A"], 200),
        ("application/json", [b"{\"a\":\"\\u00", b"00\"}"], 400),
        ("application/json", [b"{\"a\":\"\\ud83d", b"\"}"], 400),
        ("application/json", [b"{\"a\":\"\\u00", b"e4\"}"], 200),
        ("application/octet-stream", [b"%00", b"%00"], 200),
    ] {
        let answer = send(kind, pieces(parts.to_vec())).await;
        assert_eq!(answer.status(), status, "{kind} {parts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s2_a_body_has_a_deadline_and_a_least_rate() {
    // Pieces of a size, one a second.
    let dripping = |size: usize, pieces: usize| {
        let stream = futures_util::stream::unfold(pieces, move |left| async move {
            let left = left.checked_sub(1)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; size])), left))
        });
        Body::from_stream(stream)
    };
    let begun = tokio::time::Instant::now();
    let answer = send("text/plain", dripping(1, 1_000)).await;
    assert_eq!(answer.status(), 408);
    assert_eq!(text(answer).await, "refused: Slow");
    assert_eq!(begun.elapsed().as_secs(), 20);
    // Above the rate a large body takes the time that it needs; below, it is cut in proportion.
    let rate = usize::try_from(BODY_RATE).unwrap();
    let answer = send("text/plain", dripping(rate, 120)).await;
    assert_eq!(answer.status(), 200);
    let begun = tokio::time::Instant::now();
    let answer = send("text/plain", dripping(rate / 2, 1_000)).await;
    assert_eq!(answer.status(), 408);
    assert_eq!(begun.elapsed().as_millis(), 39_500);
}

async fn planted() {
    panic!("planted");
}

#[tokio::test]
async fn s12_every_answer_says_that_it_is_no_page() {
    let router = Router::new()
        .route("/", get(|| async { "plain" }))
        .route(
            "/page",
            get(|| async { [("content-security-policy", "default-src 'self'")] }),
        )
        .route("/panic", get(planted))
        .layer(Front::new(
            AllowedHosts::new(["portolan.example"]),
            TrustedProxies::default(),
            None,
        ));
    for (host, path, status) in [
        ("portolan.example", "/", 200),
        ("portolan.example", "/page", 200),
        ("portolan.example", "/nowhere", 404),
        ("portolan.example", "/panic", 500),
        ("elsewhere.example", "/", 421),
    ] {
        let request = Request::builder()
            .uri(path)
            .header("host", host)
            .body(Body::empty())
            .unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{host} {path}");
        assert_eq!(
            header(answer.headers(), "x-content-type-options"),
            "nosniff"
        );
        let own = "default-src 'self'";
        let least = "default-src 'none'; sandbox; frame-ancestors 'none'";
        assert_eq!(
            header(answer.headers(), "content-security-policy"),
            if path == "/page" { own } else { least },
            "{host} {path}"
        );
    }
}

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[tokio::test]
async fn another_name_of_the_same_place_sends_pages_on_and_serves_the_rest() {
    let hosts = AllowedHosts::new(["localhost:7"]).also(["127.0.0.1:7"], "http://localhost:7");
    let router = Router::new()
        .route(
            "/{name}",
            get(|| async { "served" }).post(|| async { "served" }),
        )
        .layer(Front::new(hosts, TrustedProxies::default(), None));
    let ask = |method: &'static str, host: &'static str, accept: &'static str| {
        let request = Request::builder()
            .method(method)
            .uri("/a?b=c")
            .header("host", host)
            .header("accept", accept)
            .body(Body::empty())
            .unwrap();
        router.clone().oneshot(request)
    };
    let answer = ask("GET", "127.0.0.1:7", BROWSER).await.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(
        header(answer.headers(), "location"),
        "http://localhost:7/a?b=c"
    );
    for (method, host, accept, status) in [
        ("GET", "localhost:7", BROWSER, 200),
        ("GET", "127.0.0.1:7", "application/json", 200),
        ("POST", "127.0.0.1:7", BROWSER, 200),
        ("GET", "127.0.0.1:8", BROWSER, 421),
        ("GET", "localhost", BROWSER, 421),
    ] {
        let answer = ask(method, host, accept).await.unwrap();
        assert_eq!(answer.status(), status, "{method} {host} {accept}");
    }
}

const GZIP: (&str, &str) = ("accept-encoding", "gzip, br");

#[tokio::test]
async fn what_is_worth_it_goes_out_compressed_and_what_could_be_measured_does_not() {
    let long = "a list of many alike ".repeat(500);
    let of = |kind: &'static str| {
        let body = long.clone();
        get(move || async move { ([("content-type", kind)], body) })
    };
    let router = Router::new()
        .route("/json", of("application/json").post(|| async { "{}" }))
        .route("/css", of("text/css; charset=utf-8"))
        .route("/html", of("text/html; charset=utf-8"))
        .route("/events", of("text/event-stream"))
        .route("/png", of("image/png"))
        .route(
            "/short",
            get(|| async { ([("content-type", "application/json")], "{}") }),
        )
        .layer(Compress.layer());
    let ask = |path: &'static str, headers: &[(&'static str, &'static str)]| {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    for (path, headers, is_compressed) in [
        ("/json", &[GZIP][..], true),
        ("/css", &[GZIP, ("sec-fetch-site", "same-origin")], true),
        ("/json", &[], false),
        ("/json", &[GZIP, ("sec-fetch-site", "cross-site")], false),
        ("/json", &[GZIP, ("sec-fetch-site", "same-site")], false),
        ("/html", &[GZIP], false),
        ("/events", &[GZIP], false),
        ("/png", &[GZIP], false),
        ("/short", &[GZIP], false),
    ] {
        let answer = ask(path, headers).await.unwrap();
        let coding = answer.headers().get("content-encoding");
        assert_eq!(coding.is_some(), is_compressed, "{path} {headers:?}");
        let varies = header(answer.headers(), "vary").contains("accept-encoding");
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        if is_compressed {
            assert!(varies && bytes.len() < long.len() / 10, "{}", bytes.len());
            let mut text = String::new();
            flate2::read::GzDecoder::new(&bytes[..])
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, long);
        } else if path != "/short" {
            assert_eq!(bytes.len(), long.len());
        }
    }
}
