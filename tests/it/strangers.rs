//! The listener and its answers to unknown clients: a share of the connections, an end to slow
//! bodies, headers that no browser misreads, and compressed assets.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use portolan_tests::{
    fixture::FixtureApi,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    raw::RawHttp,
    scene::Scene,
    stack::Stack,
};
use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, HOST},
};
use serde_json::json;
use tokio::{net::TcpSocket, task::JoinSet};

/// Connections that the listener serves.
const PLACES: usize = 100;

fn address(stack: &Stack) -> Result<SocketAddr> {
    stack
        .url()
        .socket_addrs(|| None)?
        .pop()
        .context("an address")
}

/// A POST whose body has begun.
fn slow(stack: &Stack, path: &str, kind: &str) -> Result<String> {
    let host = address(stack)?;
    Ok(format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nsec-fetch-site: same-origin\r\ncontent-type: {kind}\r\n\
         content-length: 60000\r\n\r\n"
    ))
}

#[tokio::test]
async fn s2_one_address_that_holds_all_it_can_leaves_another_its_answers() -> Result<()> {
    // `portolan dev` has no bound, since all clients there have one address.
    let stack = Stack::builder()
        .setting("listen_max_connections", PLACES)
        .setting("listen_max_connections_per_address", PLACES / 2)
        .start()?;
    let to = address(&stack)?;
    let head = slow(&stack, "/oauth/token", "application/x-www-form-urlencoded")?;
    let mut held = Vec::new();
    for _ in 0..PLACES {
        let socket = TcpSocket::new_v4()?;
        socket.bind("127.0.0.2:0".parse()?)?;
        let stream = socket.connect(to).await?;
        // One that is refused may be closed by now.
        let _ = stream.try_write(head.as_bytes());
        held.push(stream);
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let elsewhere = reqwest::Client::builder()
            .local_address("127.0.0.3".parse().ok())
            .build()?;
        let began = Instant::now();
        let answer = elsewhere
            .get(
                stack
                    .url()
                    .join("/.well-known/oauth-authorization-server")?,
            )
            .send()
            .await?;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.bytes().await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    println!(
        "beside {} connections of one address: {times:?}",
        held.len()
    );
    assert!(
        times[times.len() / 2] < Duration::from_millis(100),
        "{times:?}"
    );
    let metrics = reqwest::get(stack.admin_url().join("/metrics")?)
        .await?
        .text()
        .await?;
    let refused = metrics
        .lines()
        .find(|line| line.starts_with("connections_refused_total") && line.contains("address"))
        .context("refusals are counted")?;
    assert!(refused.ends_with(&format!(" {}", PLACES / 2)), "{refused}");
    Ok(())
}

#[tokio::test]
async fn s2_slow_bodies_end_with_408_on_every_kind_of_route() -> Result<()> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let stack = Stack::start()?;
    let mut asked = JoinSet::new();
    for (path, kind, form) in [
        ("/oauth/token", FORM, "application/json"),
        ("/oauth/register", "application/json", "application/json"),
        ("/oauth/revoke", FORM, "application/json"),
        ("/login", FORM, "text/html"),
        ("/signup", FORM, "text/html"),
        ("/login/passkey", FORM, "text/html"),
        ("/oauth/consent/x", FORM, "text/html"),
    ] {
        let (to, head) = (address(&stack)?, slow(&stack, path, kind)?);
        asked.spawn(async move {
            let mut connection = RawHttp::open(to).await?;
            connection.say(head).await?;
            let began = Instant::now();
            let said = connection
                .go_on(b"a", Duration::from_secs(1), usize::MAX)
                .await?;
            anyhow::Ok((path, form, said.answer, began.elapsed()))
        });
    }
    while let Some(one) = asked.join_next().await {
        let (path, form, answer, took) = one??;
        let answer = answer.with_context(|| format!("{path}: no answer"))?;
        assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT, "{path}");
        let kind = answer.header("content-type").unwrap_or_default();
        assert!(kind.starts_with(form), "{path}: {kind}");
        assert!((19..=60).contains(&took.as_secs()), "{path}: {took:?}");
    }
    Ok(())
}

#[tokio::test]
async fn s12_every_kind_of_answer_says_nosniff_and_has_a_policy() -> Result<()> {
    let scene = Scene::new().await?;
    let stack = &scene.stack;
    let endpoint = url::Url::parse(&scene.published.url)?;
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let metadata = format!("/.well-known/oauth-protected-resource{}", endpoint.path());
    let public = |path: &str| stack.url().join(path);
    let admin = |path: &str| stack.admin_url().join(path);
    for (method, url) in [
        (Method::POST, endpoint.clone()),
        (Method::GET, endpoint.clone()),
        (Method::PUT, endpoint.clone()),
        (Method::OPTIONS, endpoint.clone()),
        (Method::GET, public(&metadata)?),
        (
            Method::GET,
            public("/.well-known/oauth-protected-resource")?,
        ),
        (
            Method::GET,
            public("/.well-known/oauth-authorization-server")?,
        ),
        (Method::GET, public("/.well-known/nothing")?),
        (Method::GET, public("/oauth/jwks.json")?),
        (Method::POST, public("/oauth/token")?),
        (Method::GET, public("/oauth/authorize")?),
        (Method::GET, public("/login")?),
        (Method::POST, public("/login")?),
        (Method::GET, public("/auth-assets/pages.css")?),
        (Method::GET, public("/api/v1/me")?),
        (Method::GET, public("/api/v1/nothing")?),
        (Method::GET, public("/connect/clients/nothing")?),
        (Method::GET, public("/nothing")?),
        (Method::POST, public("/nothing")?),
        (Method::GET, public("/assets/nothing.js")?),
        (Method::GET, public("/")?),
        (Method::GET, admin("/healthz")?),
        (Method::GET, admin("/readyz")?),
        (Method::GET, admin("/metrics")?),
        (Method::GET, admin("/nothing")?),
    ] {
        let answer = http.request(method.clone(), url.clone()).send().await?;
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let what = format!("{method} {url} {}", answer.status());
        assert_eq!(header("x-content-type-options"), "nosniff", "{what}");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{what}: {policy}");
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{what}: {policy}"
        );
        let is_page =
            header("content-type").starts_with("text/html") || url.path().contains("assets/");
        let is_api = url.path().starts_with("/api/") || answer.status() == StatusCode::FORBIDDEN;
        if !is_page && !is_api {
            assert!(policy.contains("sandbox"), "{what}: {policy}");
        }
        assert_eq!(
            answer
                .headers()
                .get_all("content-security-policy")
                .iter()
                .count(),
            1
        );
    }
    // An answer of a call, and a host that is not ours.
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let answer = session.request("tools/list", json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.header("content-security-policy").contains("sandbox"));
    let answer = McpClient::new(&scene.published.url)?
        .with("host", "elsewhere.example")?
        .message(&json!({}))
        .await?;
    assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST);
    assert!(answer.header("content-security-policy").contains("sandbox"));
    Ok(())
}

#[tokio::test]
async fn both_names_of_this_machine_lead_to_the_console_and_metadata_name_one() -> Result<()> {
    let stack = Stack::builder()
        .setting("public_url", "http://localhost")
        .start()?;
    let origin = stack.url().origin().ascii_serialization();
    assert!(origin.starts_with("http://localhost:"), "{origin}");
    let port = stack.url().port().context("a port")?;
    let to = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    for name in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let answer = http
            .get(to("/.well-known/oauth-authorization-server"))
            .header(HOST, &name)
            .send()
            .await?;
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        let metadata: serde_json::Value = answer.json().await?;
        assert_eq!(metadata["issuer"], origin, "{name}");
    }
    let answer = http
        .get(to("/login?next=%2F"))
        .header(ACCEPT, "text/html,*/*;q=0.8")
        .send()
        .await?;
    assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(
        answer.headers()["location"],
        format!("{origin}/login?next=%2F")
    );
    Ok(())
}

#[tokio::test]
async fn icons_that_browsers_ask_for_by_themselves_are_there() -> Result<()> {
    let stack = Stack::start()?;
    for (path, kind, start) in [
        ("/favicon.ico", "image/x-icon", &[0, 0, 1, 0][..]),
        ("/apple-touch-icon.png", "image/png", b"\x89PNG"),
        ("/favicon.svg", "image/svg+xml", b"<svg"),
    ] {
        let answer = reqwest::get(stack.url().join(path)?).await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["content-type"], kind, "{path}");
        assert!(answer.bytes().await?.starts_with(start), "{path}");
    }
    for path in ["/favicon.png", "/apple-touch-icon.gif", "/favicon.svg.br"] {
        let answer = reqwest::get(stack.url().join(path)?).await?;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn texts_are_compressed_as_they_are_asked_for_and_streams_never() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let page = reqwest::get(stack.url().clone()).await?.text().await?;
    let script = regex::Regex::new(r#"src="(/assets/index-[^"]+\.js)""#)?
        .captures(&page)
        .context("the script of the console")?[1]
        .to_owned();
    let http = reqwest::Client::builder().build()?;
    let ask = async |path: &str, coding: &str, tag: &str| {
        let request = http
            .get(stack.url().join(path)?)
            .header(ACCEPT_ENCODING, coding)
            .header("if-none-match", tag);
        anyhow::Ok(request.send().await?)
    };
    let plain = ask(&script, "identity", "").await?;
    assert!(plain.headers().get("content-encoding").is_none());
    let whole = plain.bytes().await?.len();
    for coding in ["br", "gzip"] {
        let answer = ask(&script, "gzip, deflate, br, zstd", "").await?;
        assert_eq!(answer.headers()["content-encoding"], "br");
        let answer = ask(&script, coding, "").await?;
        assert_eq!(answer.headers()["content-encoding"], coding);
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        assert!(
            answer.headers()["cache-control"]
                .to_str()?
                .contains("immutable")
        );
        let tag = answer.headers()["etag"].to_str()?.to_owned();
        let packed = answer.bytes().await?.len();
        println!("{script}: {whole} bytes, {packed} with {coding}");
        assert!(packed * 2 < whole, "{packed} of {whole}");
        let again = ask(&script, coding, &tag).await?;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(again.bytes().await?.is_empty());
    }
    // Lists of the API where our own page asks; what shows a secret once, and pages with forms,
    // never.
    let owner = Person::sign_up(&stack, "ann").await?;
    let published = owner.console().publish_fixture("harbour", &fixture).await?;
    let tools = format!(
        "/api/v1/workspaces/harbour/sources/{}/tools",
        published.source_id
    );
    let answer = owner
        .browser
        .fetch(Method::GET, &tools)?
        .header(ACCEPT_ENCODING, "gzip, br")
        .send()
        .await?;
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let answer = owner
        .browser
        .fetch(Method::GET, "/login?again=1")?
        .header(ACCEPT_ENCODING, "gzip, br")
        .send()
        .await?;
    assert!(answer.headers().get("content-encoding").is_none());
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let answer = http
        .post(&published.url)
        .bearer_auth(&tokens.access)
        .header(ACCEPT_ENCODING, "gzip, br")
        .header(ACCEPT, "application/json, text/event-stream")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}))
        .send()
        .await?;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().get("content-encoding").is_none());
    Ok(())
}
