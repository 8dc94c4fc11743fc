//! Rates of notifications (MCP-PP-3, MCP-LG-6, REVIEW-F2), admission of clients that come back for
//! a stream (REVIEW-F1), and refusals that wait for nothing (REVIEW-Q16).

use portolan_protocol::{pace, progress::Progress};
use tokio::time::{Instant, sleep};

use crate::call::client_channel::ClientChannel;
use crate::wire::{answers_wire::event, modern_wire::modern, tasks_wire::R4, *};

/// The notifications of a call: this many of each kind, a thousand a second.
const SAID: u32 = 3_000;
/// Time for a log and its messages between nodes.
const MOMENT: Duration = Duration::from_millis(20);

fn logged(logger: &str, number: u32) -> String {
    let params = json!({"level": "error", "logger": logger, "data": number});
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string()
}

async fn chatter(
    channel: ClientChannel,
) -> Result<String, crate::call::client_channel::Unanswered> {
    for number in 1..=SAID {
        let progress = Progress {
            progress: number.into(),
            total: None,
            message: None,
        };
        channel.progress(progress).await;
        channel.notify(logged("one", number).into()).await;
        channel.notify(logged("other", number).into()).await;
        sleep(Duration::from_millis(1)).await;
    }
    Ok("done".to_owned())
}

/// The notifications of one queue: time and number of each.
type Heard = Vec<(Instant, u32)>;

/// Reads a call's stream to its answer: progress, and the messages of each logger.
async fn hear(body: &mut Body) -> [Heard; 3] {
    let mut heard = [Heard::new(), Heard::new(), Heard::new()];
    while let Some(event) = event(body).await {
        let (message, at) = (data(&event), Instant::now());
        let params = &message["params"];
        let (lane, number) = match message["method"].as_str() {
            Some("notifications/progress") => (0, params["progress"].as_f64().unwrap()),
            Some(_) if params["logger"] == "one" => (1, params["data"].as_f64().unwrap()),
            Some(_) => (2, params["data"].as_f64().unwrap()),
            None => {
                assert_eq!(message["result"]["content"][0]["text"], "done");
                continue;
            }
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count"
        )]
        heard[lane].push((at, number as u32));
    }
    heard
}

/// Ten in any second, except the last one before the answer. All are in order, and the newest is
/// among them.
fn holds(heard: &Heard, name: &str) {
    let (count, last) = (heard.len(), heard.last().unwrap());
    assert_eq!(last.1, SAID, "{name}: the last one is delivered");
    assert!(heard.is_sorted_by(|a, b| a.1 < b.1), "{name}: {heard:?}");
    assert!(count > 2 * pace::MOST, "{name}: {count} are too few");
    let told = &heard[..count - 1];
    for pair in told.windows(pace::MOST + 1) {
        let took = pair[pace::MOST].0 - pair[0].0;
        assert!(took + MOMENT >= pace::WINDOW, "{name}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn f2_pp_3_lg_6_a_legacy_client_is_told_ten_times_a_second_and_the_last_word_in_any_case() {
    let node = Node::start().await;
    node.script(chatter);
    let session = node.initialize("2025-11-25").await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "zebra", "_meta": {"progressToken": "p"}}});
    let request = node.request("POST", &[("mcp-session-id", &session)], body.to_string());
    let answer = node.router.clone().oneshot(request).await.unwrap();
    let [progress, one, other] = hear(&mut answer.into_body()).await;
    holds(&progress, "progress");
    holds(&one, "a logger");
    holds(&other, "another logger");
}

#[tokio::test(start_paused = true)]
async fn f2_pp_3_lg_6_a_modern_client_is_told_ten_times_a_second_and_the_last_word_in_any_case() {
    let node = Node::start().await;
    node.script(chatter);
    let mut body = modern("tools/call", json!({"name": "zebra"}));
    body["params"]["_meta"]["progressToken"] = json!("p");
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "zebra"),
    ];
    let request = node.request("POST", &headers, body.to_string());
    let answer = node.router.clone().oneshot(request).await.unwrap();
    let [progress, one, other] = hear(&mut answer.into_body()).await;
    holds(&progress, "progress");
    holds(&one, "a logger");
    holds(&other, "another logger");
}

/// The notifications of a task go to every node, so their rate is lower.
#[tokio::test]
async fn f2_pp_3_a_task_is_heard_once_a_second_and_its_last_word_before_its_end() {
    let [node, _twin] = Node::pair(&["zebra"]).await;
    node.script(|channel| async move {
        for number in 1..=500 {
            let progress = Progress {
                progress: number.into(),
                total: None,
                message: None,
            };
            channel.progress(progress).await;
            channel.notify(logged("one", number).into()).await;
        }
        Ok("done".to_owned())
    });
    node.publish_as_tasks(&["zebra"]);
    let session = node.ready_session(R4).await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
        {"name": "zebra", "task": {}, "_meta": {"progressToken": "p"}}});
    let made = node.post(&[("mcp-session-id", &session)], &body).await;
    assert!(made.json()["result"]["task"].is_object(), "{made:?}");
    let (mut progress, mut words) = (Vec::new(), Vec::new());
    loop {
        let told = data(&event(&mut stream).await.unwrap());
        match told["method"].as_str() {
            Some("notifications/progress") => progress.push(told["params"]["progress"].clone()),
            Some("notifications/message") => words.push(told["params"]["data"].clone()),
            _ if told["params"]["status"] == "completed" => break,
            _ => {}
        }
    }
    assert_eq!(progress.last(), Some(&json!(500)), "{progress:?}");
    assert_eq!(words.last(), Some(&json!(500)), "{words:?}");
    assert!(
        progress.len() <= 3 && words.len() <= 21,
        "{progress:?} {words:?}"
    );
}

/// A new stream is refused, and a client that comes back for one waits for it.
///
/// The tenant's permits are used up, the client opens too many streams a minute, and its session
/// has all its streams.
#[tokio::test(start_paused = true)]
async fn f1_who_comes_back_for_a_stream_waits_and_is_never_refused() {
    let node = Node::with(McpConfig {
        stream_opens_per_minute: 1,
        streams_per_session: 1,
        open_streams: 1,
        ..McpConfig::default()
    })
    .await;
    node.publish(&["held"]);
    let session = node.ready_session("2025-11-25").await;
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "held"}});
    let request = node.request("POST", &[("mcp-session-id", &session)], body.to_string());
    let mut call = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    frame(&mut call).await;
    let priming = frame(&mut call).await.unwrap();
    let place = event_id(&priming).unwrap();
    drop(call);
    let session_id = ("mcp-session-id", session.as_str());
    let (_, _, mut news) = node.open(&[session_id]).await;
    frame(&mut news).await;
    let priming_of_news = frame(&mut news).await.unwrap();
    let place_of_news = event_id(&priming_of_news).unwrap();
    // New streams are refused.
    let (status, _, _) = node.open(&[session_id]).await;
    assert_eq!(status.as_u16(), 429);

    // A client that comes back for the answer has a connection at once. It gets no event before
    // there is a permit.
    let headers = [session_id, ("last-event-id", place)];
    for _ in 0..5 {
        let (status, _, _) = node.open(&headers).await;
        assert_eq!(status.as_u16(), 200);
    }
    let (status, head, mut rest) = node.open(&headers).await;
    assert_eq!(
        (status.as_u16(), &head["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    node.release.notify_one();
    let first = frame(&mut rest).await.unwrap();
    assert!(first.starts_with("retry: "), "{first}");
    let again = frame(&mut rest).await.unwrap();
    assert!(
        event_id(&again).is_some_and(|id| id != place),
        "REVIEW-Q11: ids are unique"
    );
    let more = tokio::time::timeout(Duration::from_secs(2), rest.frame());
    assert!(more.await.is_err(), "there is no room yet");

    // A client that comes back for notifications gets the permit of its former stream, whether that
    // stream is known to be broken or not.
    let headers = [session_id, ("last-event-id", place_of_news)];
    let (status, _, mut back) = node.open(&headers).await;
    assert_eq!(status.as_u16(), 200);
    assert_eq!(frame(&mut news).await, None, "it was left");
    drop(news);
    frame(&mut back).await.unwrap();
    drop(back);

    let answer = data(&event(&mut rest).await.unwrap());
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"released": true})
    );
    // Only the client with a new stream was refused, and the owner sees the count.
    assert_eq!(node.counted(), [(LimitName::StreamOpens, 1)]);
}

#[tokio::test]
async fn f1_a_client_listens_as_often_as_it_may_and_its_owner_sees_what_was_refused() {
    let node = Node::with(McpConfig {
        listens_per_principal: 1,
        ..McpConfig::default()
    })
    .await;
    let mut first = node.listen_to(json!(1), &[]).await;
    event(&mut first).await.unwrap();
    let listen = modern("subscriptions/listen", json!({"notifications": {}}));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let refused = node.post(&headers, &listen).await;
    assert_eq!((refused.status, refused.code()), (429, -31002));
    assert_eq!(node.counted(), [(LimitName::Listens, 1)]);
}

/// REVIEW-Q16: a body that is declared as too large, and does not arrive.
#[tokio::test(start_paused = true)]
async fn q16_a_body_that_is_too_large_is_refused_before_it_is_read() {
    let node = Node::start().await;
    let never = Body::from_stream(futures_util::stream::pending::<
        Result<Vec<u8>, std::io::Error>,
    >());
    let (mut parts, _) = node
        .request("POST", &[("content-type", "text/plain")], String::new())
        .into_parts();
    parts
        .headers
        .insert("content-length", "104857600".parse().unwrap());
    let begun = Instant::now();
    let answer = node.send(Request::from_parts(parts, never)).await;
    assert_eq!(answer.status, 415);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// The `Accept` header of a browser.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The page for a person who opens the address: the 401 of every request without a token.
///
/// It is the same for an address without a server.
#[tokio::test]
async fn a_browser_gets_a_page_that_says_how_to_connect_and_nothing_of_what_there_is() {
    let node = Node::start().await;
    let open = async |path: &str, accept: &str| {
        let request = Request::get(path).header("accept", accept);
        node.send(request.body(Body::empty()).unwrap()).await
    };
    let page = open(PATH, BROWSER).await;
    assert_eq!(page.status, 401);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let html = String::from_utf8(page.body.clone()).unwrap();
    let address = format!("{ISSUER}{PATH}");
    assert!(html.contains("This is an MCP server address. Connect your AI client"));
    for client in [
        "claude mcp add",
        "ChatGPT",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=",
        "vscode:mcp/install?",
        "mcp-remote",
        "@modelcontextprotocol/inspector",
        "curl ",
        "StreamableHTTPClientTransport",
        "streamable_http_client",
        "codex mcp add",
        "gemini mcp add",
        "mcp_config.json",
        "context_servers",
    ] {
        assert!(html.contains(client), "{client}");
    }
    assert!(html.matches(&address).count() > 10 && !html.contains("{{"));
    // No script runs, no resource is loaded, and the policy allows the style of the page.
    assert!(!html.contains("<script") && !html.contains("src="));
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");

    // The challenge is the one that clients get.
    let plain = open(PATH, "text/event-stream").await;
    assert_eq!(plain.header("content-type"), "application/json");
    assert_eq!(
        page.header("www-authenticate"),
        plain.header("www-authenticate")
    );
    // An address without a server.
    let nowhere = "/t/nobody/nothing/mcp";
    let other = open(nowhere, BROWSER).await;
    let other_html = String::from_utf8(other.body).unwrap();
    assert_eq!(
        (
            other.status,
            other_html.matches(&format!("{ISSUER}{nowhere}")).count()
        ),
        (401, html.matches(&address).count())
    );
    // An invalid token and other verbs get the same answers as before.
    let request = Request::get(PATH)
        .header("accept", BROWSER)
        .header("authorization", "Bearer x");
    let refused = node.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(
        (refused.status, refused.header("content-type")),
        (401, "application/json")
    );
}
