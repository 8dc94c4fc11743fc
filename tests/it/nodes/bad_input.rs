//! Bytes that are meant to hurt: slow, endless, deep, packed and crowded ones (TEST-B1 to TEST-B7), and what looks like an event
//! (TEST-S9).

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portolan_tests::{
    fleet::{Fleet, call},
    mcp::{LEGACY, McpClient, modern_message},
    raw::{self, RawHttp},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::echo;

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1024 * 1024;

/// A node, and a session that knows only it.
async fn one_node(version: &str) -> Result<(Fleet, McpClient)> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.on(0, &fleet.session(version).await?)?;
    Ok((fleet, session))
}

/// Nothing that came before has hurt it.
async fn is_well(fleet: &Fleet, session: &McpClient) -> Result<()> {
    echo(session, "as before").await?;
    let output = fleet.cluster.nodes[0].output();
    ensure!(!output.contains("panicked"), "{output}");
    Ok(())
}

/// How long so many quick calls took, the shortest first.
async fn times(client: &McpClient, calls: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(calls);
    for number in 0..calls {
        let began = Instant::now();
        echo(client, &format!("call {number}")).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

/// Sends the beginning, then a letter each second until the other end stops it. Returns the time
/// until then, and the status.
async fn drip(client: McpClient, beginning: String) -> Result<(Duration, Option<StatusCode>)> {
    let mut connection = RawHttp::to(&client).await?;
    let began = Instant::now();
    connection.say(&beginning).await?;
    let said = connection.go_on(b"a", SECOND, usize::MAX).await?;
    Ok((began.elapsed(), said.answer.map(|answer| answer.status)))
}

/// Slow clients of each kind.
const SLOW: usize = 200;
/// The others are served for so long meanwhile.
const MEANWHILE: Duration = Duration::from_secs(5);

/// TEST-B1. That a body is cut after 30 s is held by `a_body_that_drips_is_cut`, which has a clock of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_slow_heads_are_cut_after_ten_seconds_and_nobody_waits_for_slow_clients() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    times(&session, 100).await?;
    let quiet = times(&session, 300).await?;
    let head = raw::head(&session, "POST")?;
    let (mut heads, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..SLOW {
        heads.spawn(drip(session.clone(), format!("{head}x-slow: ")));
        let slow_body = format!("{head}content-length: 1000\r\n\r\n");
        bodies.spawn(drip(session.clone(), slow_body));
    }
    let (mut busy, began) = (Vec::new(), Instant::now());
    while began.elapsed() < MEANWHILE {
        busy.extend(times(&session, 50).await?);
    }
    busy.sort_unstable();
    let (before, meanwhile) = (quiet[quiet.len() * 99 / 100], busy[busy.len() * 99 / 100]);
    println!(
        "p99 of {} calls {before:?}, of {} beside {SLOW} slow heads and {SLOW} slow bodies {meanwhile:?}",
        quiet.len(),
        busy.len()
    );
    assert!(
        meanwhile <= before * 2 + Duration::from_millis(100),
        "{before:?}, then {meanwhile:?}"
    );
    while let Some(cut) = heads.join_next().await {
        let (took, status) = cut??;
        // 408, or nothing.
        assert!(
            status.is_none_or(|status| status.is_client_error()),
            "{status:?}"
        );
        assert!((9..=30).contains(&took.as_secs()), "cut after {took:?}");
    }
    assert!(bodies.try_join_next().is_none(), "a body has 30 s");
    is_well(&fleet, &session).await
}

/// Most bytes that a sender sends before it is stopped: those that the node reads and discards so
/// that the sender can read the refusal (8 MiB), and those in the kernels of both ends.
const MOST_TAKEN: usize = 32 * MIB;
/// Endless bodies of each kind in one batch, one after the other.
const ENDLESS: usize = 20;
/// Batches that are measured, after a first one that is not: an allocator keeps pages for later, and
/// takes a new arena when a thread needs one. Memory that stays behind a body grows in each batch.
const BATCHES: usize = 3;

/// TEST-B2.
#[tokio::test]
async fn b2_endless_bodies_are_refused_413_and_leave_no_memory_behind() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    let head = raw::head(&session, "POST")?;
    let plain = vec![b' '; 64 * 1024];
    let chunk = [&b"10000\r\n"[..], &plain[..], &b"\r\n"[..]].concat();
    let length = format!("{head}content-length: {}\r\n\r\n", 64 * MIB);
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    let (mut before, mut refused, mut most) = (0, 0, 0);
    let mut grown = Vec::new();
    for batch in 0..=BATCHES {
        for _ in 0..ENDLESS {
            for (head, piece) in [(&length, &plain), (&chunked, &chunk)] {
                let mut connection = RawHttp::to(&session).await?;
                connection.say(head).await?;
                let said = connection.go_on(piece, Duration::ZERO, 64 * MIB).await?;
                most = most.max(said.bytes);
                // A sender that goes on may see the connection break before it reads the refusal.
                if let Some(answer) = said.answer {
                    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
                    refused += 1;
                }
            }
        }
        let memory = fleet.cluster.nodes[0].memory()?;
        if batch > 0 {
            grown.push(usize::try_from(memory.saturating_sub(before))?);
        }
        before = memory;
    }
    let sent = 2 * ENDLESS * (BATCHES + 1);
    println!("{refused} of {sent} were answered 413; at most {most} bytes were taken");
    println!(
        "the node grew by {grown:?} bytes in batches of {}",
        2 * ENDLESS
    );
    assert!(refused > sent / 2, "only {refused} were told why");
    assert!(most < MOST_TAKEN, "{most} bytes were taken");
    let least = grown.iter().min().copied().unwrap_or(usize::MAX);
    assert!(
        least < 2 * ENDLESS * MIB / 4,
        "each batch leaves bytes: {grown:?}"
    );
    is_well(&fleet, &session).await
}

/// TEST-B2.
#[tokio::test]
async fn b2_a_wrong_length_is_400_or_no_answer_and_never_a_second_request() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    let head = raw::head(&session, "POST")?;
    let body = call(1, "do_work", json!({"call": "wrong-length"}), None).to_string();
    let smuggled = raw::post(
        &session,
        &call(2, "do_work", json!({"call": "beside"}), None),
    )?;
    let (short, long) = (body.len() / 2, body.len() + 100);
    for lines in [
        format!("content-length: {short}\r\n"),
        format!("content-length: {long}\r\n"),
        format!(
            "content-length: {}\r\ncontent-length: {short}\r\n",
            body.len()
        ),
        format!("content-length: {}, {short}\r\n", body.len()),
        "content-length: -1\r\n".to_owned(),
        "content-length: 18446744073709551616\r\n".to_owned(),
        "content-length: 0x10\r\n".to_owned(),
    ] {
        let mut connection = RawHttp::to(&session).await?;
        connection
            .say(format!("{head}{lines}\r\n{body}{smuggled}"))
            .await?;
        for answer in connection.answers().await? {
            assert_eq!(
                answer.status,
                StatusCode::BAD_REQUEST,
                "{lines}: {answer:?}"
            );
        }
    }
    let arrivals = fleet.fixture.held.arrivals();
    assert!(arrivals.is_empty(), "something was done: {arrivals:?}");
    is_well(&fleet, &session).await
}

/// A message that means nothing, with these members in its parameters.
fn ping(members: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{{members}}}}}"#).into_bytes()
}

fn keys(count: usize) -> String {
    let keys: Vec<_> = (0..count)
        .map(|number| format!("\"k{number:06}\":0"))
        .collect();
    keys.join(",")
}

/// Longest time that a refusal may take here: a debug build reads four megabytes.
const READING: Duration = Duration::from_secs(2);

/// TEST-B3. The reader itself is held by `crates/protocol/tests/protocol/framing.rs`.
#[tokio::test]
async fn b3_json_that_is_deep_wide_or_broken_is_refused_in_time_and_uses_no_stack() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let utf_16: Vec<u8> = String::from_utf8(ping(""))?
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let cases: Vec<(&str, Vec<u8>, u16, i64)> = vec![
        ("deep lists", open.clone().into_bytes(), 400, -32600),
        (
            "deep objects",
            "{\"a\":".repeat(100_000).into_bytes(),
            400,
            -32600,
        ),
        (
            "deep parameters",
            ping(&format!("\"a\":{open}1{close}")),
            400,
            -32600,
        ),
        (
            "65 levels",
            ping(&format!("\"a\":{}1{}", &open[..63], &close[..63])),
            400,
            -32600,
        ),
        (
            "64 levels",
            ping(&format!("\"a\":{}1{}", &open[..62], &close[..62])),
            200,
            0,
        ),
        ("300,000 keys", ping(&keys(300_000)), 200, 0),
        ("more than 4 MiB of keys", ping(&keys(500_000)), 413, -32600),
        (
            "a string of a mebibyte",
            ping(&format!("\"a\":\"{}\"", "x".repeat(MIB))),
            200,
            0,
        ),
        (
            "a member twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#.to_vec(),
            400,
            -32600,
        ),
        (
            "half a surrogate pair",
            ping(r#""a":"\ud800""#),
            400,
            -32700,
        ),
        ("NaN", ping("\"a\":NaN"), 400, -32700),
        // RFC 8259 has numbers of every size.
        ("a number beyond a double", ping("\"a\":1e999"), 200, 0),
        ("NUL in a string", ping("\"a\":\"\0\""), 400, -32700),
        (
            "NUL behind",
            [&ping("")[..], &b"\0"[..]].concat(),
            400,
            -32700,
        ),
        (
            "a byte order mark",
            [&b"\xef\xbb\xbf"[..], &ping("")[..]].concat(),
            400,
            -32700,
        ),
        ("UTF-16", utf_16, 400, -32700),
        (
            "no UTF-8",
            ping("\"a\":1").iter().chain(b"\xff").copied().collect(),
            400,
            -32700,
        ),
        ("nothing", Vec::new(), 400, -32700),
    ];
    for (what, body, status, code) in cases {
        let began = Instant::now();
        let answer = session.post("application/json", body).await?;
        let took = began.elapsed();
        println!("{what}: {} {} in {took:?}", answer.status, answer.code());
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (status, code),
            "{what}: {:.300}",
            answer.text
        );
        assert!(took < READING, "{what} took {took:?}");
    }
    is_well(&fleet, &session).await
}

/// TEST-B4; a batch has 100 elements at most (MCP-J-15 of the protocol, which decides).
#[tokio::test]
async fn b4_batches_are_bounded_and_of_one_revision() -> Result<()> {
    let (fleet, session) = one_node("2025-03-26").await?;
    let one = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let many = |count: usize| Value::from((1..=count).map(one).collect::<Vec<_>>());
    let whole = session.message(&many(100)).await?;
    assert_eq!(whole.status, StatusCode::OK, "{:.300}", whole.text);
    assert_eq!(whole.json.as_array().map(Vec::len), Some(100));
    for (what, batch) in [
        ("101", many(101)),
        ("1,000", many(1_000)),
        ("none", json!([])),
        ("nested", json!([many(2)])),
        ("nested deeper", json!([[[one(1)]]])),
        ("no messages", json!([1, null, "x"])),
    ] {
        let answer = session.message(&batch).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::BAD_REQUEST, -32600),
            "{what}: {:.300}",
            answer.text
        );
    }
    let newer = fleet.on(0, &fleet.session(LEGACY).await?)?;
    let answer = newer.message(&many(2)).await?;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::BAD_REQUEST, -32600)
    );
    assert_eq!(session.message(&one(1)).await?.status, StatusCode::OK);
    is_well(&fleet, &newer).await
}

/// TEST-B5: requests to us. Answers of APIs are in `crates/http_tools/src/answer/tests.rs`.
#[tokio::test]
async fn b5_a_packed_body_is_415_and_is_not_unpacked() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    // The head of a gzip stream; what follows would be unpacked.
    let mut bomb = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03".to_vec();
    bomb.resize(100_000, 0);
    let before = fleet.cluster.nodes[0].memory()?;
    for coding in [
        "gzip",
        "br",
        "zstd",
        "deflate",
        "gzip, gzip",
        "identity, gzip",
        "GZIP",
    ] {
        let packed = session.clone().with("content-encoding", coding)?;
        let answer = packed.post("application/json", bomb.clone()).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, -32600),
            "{coding}: {}",
            answer.text
        );
        assert_eq!(answer.header("accept-encoding"), "identity", "{coding}");
    }
    let grown = fleet.cluster.nodes[0].memory()?.saturating_sub(before);
    assert!(usize::try_from(grown)? < 16 * MIB, "{grown} bytes");
    let plain = session.clone().with("content-encoding", "identity")?;
    let answer = plain.request("ping", json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    is_well(&fleet, &session).await
}

/// TEST-B7.
#[tokio::test]
async fn b7_heads_are_bounded_and_headers_that_lie_are_refused_without_an_echo() -> Result<()> {
    let (fleet, session) = one_node(LEGACY).await?;
    let head = raw::head(&session, "POST")?;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let id = session.header("mcp-session-id").unwrap_or_default();
    for (what, lines, status) in [
        ("nothing more", String::new(), 200),
        ("a thousand headers", "x-a: b\r\n".repeat(1_000), 431),
        ("64 KiB", format!("x-a: {}\r\n", "b".repeat(64 * 1024)), 431),
        ("a lone CR", "x-a: a\rb\r\n".to_owned(), 400),
        ("a NUL", "x-a: a\0b\r\n".to_owned(), 400),
        ("a folded line", "x-a: a\r\n b\r\n".to_owned(), 400),
        ("a name with a space", "x a: b\r\n".to_owned(), 400),
        (
            "the session twice",
            format!("mcp-session-id: {id}\r\n"),
            400,
        ),
        (
            "the version twice",
            format!("mcp-protocol-version: {LEGACY}\r\n"),
            400,
        ),
    ] {
        let request = format!("{head}{lines}content-length: {}\r\n\r\n{body}", body.len());
        let answer = raw::ask(&session, &request).await?;
        let got = answer.as_ref().map(|answer| answer.status.as_u16());
        assert_eq!(got, Some(status), "{what}: {answer:?}");
    }
    let params = json!({"name": "echo_message", "arguments": {"message": "x"}});
    let message = modern_message("tools/call", params.clone());
    let modern = fleet
        .on(0, &fleet.mcp)?
        .modern_client("tools/call", &params)?;
    let answer = modern.message(&message).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let script = "<script>alert(1)</script>";
    for (name, value) in [
        ("mcp-method", "tools/list"),
        ("mcp-method", script),
        ("mcp-name", "huge_answer"),
        ("mcp-name", script),
        ("mcp-name", "=?base64?%%%?="),
        ("mcp-name", "=?base64?ZWNobw?="),
        ("mcp-protocol-version", LEGACY),
    ] {
        let answer = modern.clone().with(name, value)?.message(&message).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::BAD_REQUEST, -32020),
            "{name}: {value}: {}",
            answer.text
        );
        assert_eq!(answer.header("content-type"), "application/json");
        assert!(!answer.text.contains(script), "{}", answer.text);
    }
    is_well(&fleet, &session).await
}

/// Text that imitates the end of an event and the beginning of the next one.
const FRAMES: &str = "a\n\nid: x\ndata: y\r\rretry: 1\r\n\r\n: \u{0}\u{2028}\u{2029}z";

/// TEST-S9: it stands in the progress token and in the result.
#[tokio::test]
async fn s9_what_looks_like_an_event_in_a_result_stays_inside_of_its_own() -> Result<()> {
    let (_fleet, session) = one_node(LEGACY).await?;
    let work = json!({"call": FRAMES, "millis": 2_500});
    let answer = session
        .message(&call(7, "do_work", work, Some(FRAMES)))
        .await?;
    let text = &answer.text;
    assert_eq!(answer.header("content-type"), "text/event-stream", "{text}");
    assert!(!text.contains(['\r', '\0']), "{text:?}");
    let mut messages = Vec::new();
    for line in text.split('\n') {
        if let Some(data) = line.strip_prefix("data: ") {
            messages.push(serde_json::from_str::<Value>(data)?);
            continue;
        }
        let is_ours = ["event: message", "id: ", "data:", "retry: ", ":"]
            .iter()
            .any(|start| line.starts_with(start));
        assert!(is_ours || line.is_empty(), "{line:?} in {text:?}");
    }
    let (last, others) = messages.split_last().expect("an answer");
    assert_eq!(last["id"], 7, "{last}");
    assert_eq!(
        last["result"]["structuredContent"]["call"], FRAMES,
        "{last}"
    );
    assert!(!others.is_empty(), "it told of its progress: {text}");
    for notice in others {
        assert_eq!(notice["params"]["progressToken"], FRAMES, "{notice}");
    }
    Ok(())
}
