//! Messages between a stdio client and servers of every era: unchanged where both speak the same
//! revision, and answered honestly where the way breaks.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use portolan_tests::upstream::{Fixture, Upstream};
use serde_json::{Value, json};

use portolan_tests::connected::{Bridge, Home, PATIENCE, modern, text};

const LEGACY: &str = "2025-11-25";

fn pair(fixture: Fixture) -> Result<(Upstream, Home, Bridge)> {
    let upstream = Upstream::start(fixture)?;
    let home = Home::new()?;
    let bridge = home.start(&[&upstream.url(), "--verbose"])?;
    Ok((upstream, home, bridge))
}

/// Waits until the fixture has seen what `find` finds.
async fn seen(upstream: &Upstream, find: impl Fn(&Upstream) -> bool) -> Result<()> {
    let wait = async {
        while !find(upstream) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .context("the server never saw it")
}

fn session_of(upstream: &Upstream) -> Result<String> {
    let seen = upstream.seen();
    let id = seen
        .iter()
        .rev()
        .find_map(|request| request.header("mcp-session-id"));
    Ok(id.context("a session")?.to_owned())
}

#[tokio::test]
async fn every_session_revision_passes_as_the_client_and_the_server_agree_on_it() -> Result<()> {
    for (fixture, versions) in [
        (
            Fixture::TypeScript1,
            &["2024-11-05", "2025-03-26", "2025-06-18", LEGACY][..],
        ),
        (Fixture::Python1, &["2025-06-18", LEGACY]),
        (Fixture::Rmcp, &[LEGACY]),
        (Fixture::HttpSse, &["2024-11-05", LEGACY]),
        (Fixture::TypeScriptBoth, &[LEGACY]),
    ] {
        let upstream = Upstream::start(fixture)?;
        for version in versions {
            let home = Home::new()?;
            let mut bridge = home.start(&[&upstream.url()])?;
            let opened = bridge.initialize(version, json!({})).await?;
            ensure!(
                opened["protocolVersion"] == *version,
                "{fixture:?}: {opened}"
            );
            let listed = bridge.request("tools/list", json!({})).await?;
            ensure!(
                listed["result"]["tools"].is_array(),
                "{fixture:?}: {listed}"
            );
            let called = bridge.call("test_simple_text", json!({})).await?;
            ensure!(
                called["result"]["content"][0]["type"] == "text",
                "{fixture:?}: {called}"
            );
            let pong = bridge.request("ping", json!({})).await?;
            ensure!(pong["result"].is_object(), "{fixture:?}: {pong}");
            ensure!(bridge.close().await?.success(), "{fixture:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_message_reaches_the_server_byte_for_byte_and_the_session_is_deleted_in_the_end()
-> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({})).await?;
    let line = r#"{ "jsonrpc":"2.0","method":"tools/call","id":"Ä-1","params":{"name":"test_simple_text","arguments":{"x":1.0e2},"_meta":{"a.b/c":[1]}}}"#;
    bridge.write(line).await?;
    let answer = bridge.receive().await?;
    ensure!(
        answer["id"] == "Ä-1" && !text(&answer).is_empty(),
        "{answer}"
    );
    let calls = upstream.seen_of("tools/call");
    ensure!(
        calls.len() == 1 && calls[0].body == line.as_bytes(),
        "unchanged"
    );
    ensure!(calls[0].header("mcp-protocol-version") == Some(LEGACY));
    ensure!(bridge.close().await?.success());
    let seen = upstream.seen();
    let last = seen.last().context("a request")?;
    ensure!(
        last.verb == "DELETE" && last.header("mcp-session-id").is_some(),
        "{last:?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_server_asks_logs_reports_and_announces_through_it() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::HttpSse] {
        let (_upstream, _home, mut bridge) = pair(fixture)?;
        let can = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
        bridge.initialize(LEGACY, can).await?;

        let call = bridge
            .begin(
                "tools/call",
                json!({"name": "test_sampling", "arguments": {"prompt": "Hm?"}}),
            )
            .await?;
        let asked = bridge.until("sampling/createMessage").await?;
        let said =
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Ah."}});
        bridge
            .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}))
            .await?;
        let answer = bridge.answer(call).await?;
        ensure!(text(&answer).contains("Ah."), "{fixture:?}: {answer}");

        let call = bridge
            .begin(
                "tools/call",
                json!({"name": "test_ask_beside", "arguments": {}}),
            )
            .await?;
        let asked = bridge.until("elicitation/create").await?;
        let said = json!({"action": "accept", "content": {"name": "Ann"}});
        bridge
            .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}))
            .await?;
        let answer = bridge.answer(call).await?;
        ensure!(text(&answer) == "Hello, Ann!", "{fixture:?}: {answer}");

        let params = json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "p"}});
        bridge.request("tools/call", params).await?;
        let progress = bridge.until("notifications/progress").await?;
        ensure!(progress["params"]["progressToken"] == "p", "{progress}");

        bridge
            .request("logging/setLevel", json!({"level": "debug"}))
            .await?;
        bridge.call("test_logging_tool", json!({})).await?;
        bridge.until("notifications/message").await?;

        let uri = json!({"uri": "test://watched-resource"});
        bridge.request("resources/subscribe", uri.clone()).await?;
        bridge.call("test_touch_resource", json!({})).await?;
        let updated = bridge.until("notifications/resources/updated").await?;
        ensure!(updated["params"]["uri"] == uri["uri"], "{updated}");
        bridge.call("test_trigger_tool_change", json!({})).await?;
        bridge.until("notifications/tools/list_changed").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_cancelled_call_reaches_the_server_and_has_no_answer() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({})).await?;
    let call = bridge
        .begin(
            "tools/call",
            json!({"name": "test_slow", "arguments": {"milliseconds": 60_000}}),
        )
        .await?;
    seen(&upstream, |upstream| {
        upstream.seen_of("tools/call").len() == 1
    })
    .await?;
    bridge
        .notify(
            "notifications/cancelled",
            json!({"requestId": call, "reason": "enough"}),
        )
        .await?;
    seen(&upstream, |upstream| {
        upstream.seen_of("notifications/cancelled").len() == 1
    })
    .await?;
    let answer = bridge.call("test_cancelled", json!({})).await?;
    ensure!(text(&answer) == "1", "{answer}");
    ensure!(bridge.others.iter().all(|message| message["id"] != call));
    ensure!(bridge.close().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_broken_stream_is_resumed_and_the_call_is_not_made_twice() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({})).await?;
    // The server hangs up by itself.
    let answer = bridge.call("test_reconnection", json!({})).await?;
    ensure!(text(&answer) == "You came back.", "{answer}");
    // The connection breaks.
    let call = bridge
        .begin(
            "tools/call",
            json!({"name": "test_slow", "arguments": {"milliseconds": 1_500}}),
        )
        .await?;
    seen(&upstream, |upstream| {
        upstream.seen_of("tools/call").last().is_some_and(|call| {
            call.status.is_some() && call.json()["params"]["name"] == "test_slow"
        })
    })
    .await?;
    upstream.cut();
    let answer = bridge.answer(call).await?;
    ensure!(text(&answer) == "Waited 1500 ms.", "{answer}");
    ensure!(upstream.seen_of("tools/call").len() == 2, "one call each");
    let resumed = upstream.seen();
    ensure!(
        resumed
            .iter()
            .any(|seen| seen.header("last-event-id").is_some())
    );
    Ok(())
}

#[tokio::test]
async fn a_call_whose_stream_cannot_be_resumed_has_an_honest_error_and_is_not_made_twice()
-> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript2)?;
    let params = modern(json!({"name": "test_slow", "arguments": {"milliseconds": 60_000}}));
    bridge.modern("tools/list", json!({})).await?;
    let call = bridge.begin("tools/call", params).await?;
    seen(&upstream, |upstream| {
        upstream
            .seen_of("tools/call")
            .iter()
            .any(|call| call.status.is_some())
    })
    .await
    .ok();
    upstream.cut();
    let answer = bridge.answer(call).await?;
    ensure!(
        answer["error"]["code"]
            .as_i64()
            .is_some_and(|code| code < -30_999),
        "{answer}"
    );
    ensure!(upstream.seen_of("tools/call").len() == 1);
    Ok(())
}

#[tokio::test]
async fn an_expired_session_is_opened_again_without_the_client() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({"roots": {}})).await?;
    bridge
        .request("logging/setLevel", json!({"level": "debug"}))
        .await?;
    bridge
        .request(
            "resources/subscribe",
            json!({"uri": "test://watched-resource"}),
        )
        .await?;
    bridge.call("test_count", json!({})).await?;
    let old = session_of(&upstream)?;
    let ended = reqwest::Client::builder()
        .build()?
        .delete(upstream.direct_url())
        .header("mcp-session-id", &old)
        .header("mcp-protocol-version", LEGACY)
        .send()
        .await?;
    ensure!(ended.status().is_success());
    let answer = bridge.call("test_count", json!({})).await?;
    ensure!(
        text(&answer) == "1",
        "a new session counts from one: {answer}"
    );
    ensure!(session_of(&upstream)? != old);
    let opened = upstream.seen_of("initialize");
    ensure!(opened.len() == 2 && opened[1].json()["params"] == opened[0].json()["params"]);
    ensure!(opened[1].header("mcp-session-id").is_none());
    // The new session knows what the client told the old one.
    bridge.call("test_touch_resource", json!({})).await?;
    bridge.until("notifications/resources/updated").await?;
    ensure!(
        bridge
            .others
            .iter()
            .all(|message| message["error"].is_null()),
        "{:?}",
        bridge.others
    );
    ensure!(bridge.close().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_session_of_one_stream_that_breaks_is_opened_again() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::HttpSse)?;
    bridge.initialize("2024-11-05", json!({})).await?;
    let call = bridge
        .begin(
            "tools/call",
            json!({"name": "test_slow", "arguments": {"milliseconds": 60_000}}),
        )
        .await?;
    seen(&upstream, |upstream| {
        upstream
            .seen_of("tools/call")
            .iter()
            .any(|call| call.status.is_some())
    })
    .await?;
    upstream.cut();
    let answer = bridge.answer(call).await?;
    ensure!(answer["error"]["code"] == -31004, "{answer}");
    bridge.until("notifications/tools/list_changed").await?;
    let answer = bridge.call("test_simple_text", json!({})).await?;
    ensure!(!text(&answer).is_empty(), "{answer}");
    // The first of all was a POST to the address of the stream, which refused it.
    let opened = upstream.seen_of("initialize");
    ensure!(opened.iter().filter(|one| one.path != "/sse").count() == 2);
    Ok(())
}

#[tokio::test]
async fn a_client_of_2026_07_28_passes_with_its_headers_and_its_questions() -> Result<()> {
    for fixture in [Fixture::TypeScript2, Fixture::Python2] {
        let (upstream, _home, mut bridge) = pair(fixture)?;
        let found = bridge.modern("server/discover", json!({})).await?;
        ensure!(
            found["result"]["supportedVersions"].is_array(),
            "{fixture:?}: {found}"
        );
        let listed = bridge.modern("tools/list", json!({})).await?;
        ensure!(
            listed["result"]["resultType"] == "complete",
            "{fixture:?}: {listed}"
        );
        let name = "test_input_required_result_elicitation";
        let params = json!({"name": name, "arguments": {}});
        let asked = bridge.modern("tools/call", params.clone()).await?;
        ensure!(
            asked["result"]["resultType"] == "input_required",
            "{fixture:?}: {asked}"
        );
        let mut again = params;
        again["inputResponses"] =
            json!({"user_name": {"action": "accept", "content": {"name": "Ann"}}});
        if asked["result"]["requestState"].is_string() {
            again["requestState"] = asked["result"]["requestState"].clone();
        }
        let answer = bridge.modern("tools/call", again).await?;
        ensure!(text(&answer) == "Hello, Ann!", "{fixture:?}: {answer}");
        let calls = upstream.seen_of("tools/call");
        ensure!(calls[0].header("mcp-name") == Some(name));
        ensure!(calls[0].header("mcp-method") == Some("tools/call"));
        ensure!(bridge.close().await?.success());
    }
    Ok(())
}

#[tokio::test]
async fn h_12_arguments_are_mirrored_even_by_a_client_that_never_listed() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript2)?;
    let params = json!({"name": "test_headers", "arguments": {"region": "eu", "priority": 3}});
    let answer = bridge.modern("tools/call", params).await?;
    ensure!(text(&answer).contains("eu"), "{answer}");
    let calls = upstream.seen_of("tools/call");
    let last = calls.last().context("a call")?;
    ensure!(
        last.header("mcp-param-region") == Some("eu"),
        "{:?}",
        last.headers
    );
    ensure!(
        last.header("mcp-param-priority") == Some("3"),
        "{:?}",
        last.headers
    );
    Ok(())
}

#[tokio::test]
async fn a_subscription_of_2026_07_28_survives_a_broken_stream() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript2)?;
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]}});
    let listen = bridge.begin("subscriptions/listen", modern(wanted)).await?;
    let ready = bridge
        .until("notifications/subscriptions/acknowledged")
        .await?;
    let of = "io.modelcontextprotocol/subscriptionId";
    ensure!(ready["params"]["_meta"][of] == listen, "{ready}");
    bridge
        .modern(
            "tools/call",
            json!({"name": "test_touch_resource", "arguments": {}}),
        )
        .await?;
    bridge.until("notifications/resources/updated").await?;
    upstream.cut();
    // Changes that may have been missed are announced, under the same id.
    let updated = bridge.until("notifications/resources/updated").await?;
    ensure!(updated["params"]["_meta"][of] == listen, "{updated}");
    bridge.until("notifications/tools/list_changed").await?;
    bridge
        .modern(
            "tools/call",
            json!({"name": "test_touch_resource", "arguments": {}}),
        )
        .await?;
    bridge.until("notifications/resources/updated").await?;
    ensure!(
        bridge
            .others
            .iter()
            .all(|message| message["method"] != "notifications/subscriptions/acknowledged"),
        "one acknowledgement"
    );
    bridge
        .notify("notifications/cancelled", json!({"requestId": listen}))
        .await?;
    ensure!(bridge.close().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_probe_of_2026_07_28_at_a_server_with_sessions_leads_the_client_to_the_handshake()
-> Result<()> {
    let (_upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    let probed = bridge.modern("server/discover", json!({})).await?;
    ensure!(probed["error"]["code"] == -32601, "{probed}");
    let opened = bridge.initialize(LEGACY, json!({})).await?;
    ensure!(opened["protocolVersion"] == LEGACY, "{opened}");
    let answer = bridge.call("test_simple_text", json!({})).await?;
    ensure!(!text(&answer).is_empty(), "{answer}");
    Ok(())
}

#[tokio::test]
async fn j_15_a_batch_of_2025_03_26_passes_and_another_revision_refuses_it() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize("2025-03-26", json!({})).await?;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "test_simple_text"}},
    ]);
    bridge.send(&batch).await?;
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let received = bridge.receive().await?;
        match received {
            Value::Array(all) => answered.extend(all),
            one => answered.push(one),
        }
    }
    ensure!(
        answered.iter().all(|one| one["result"].is_object()),
        "{answered:?}"
    );
    let sent = upstream.seen();
    ensure!(sent.iter().any(|seen| seen.json() == batch), "one POST");

    let (_upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({})).await?;
    bridge.send(&batch).await?;
    let refused = bridge.receive().await?;
    ensure!(refused["error"]["code"] == -32600, "{refused}");
    Ok(())
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered_and_the_conversation_goes_on() -> Result<()> {
    let (_upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.write("{").await?;
    ensure!(bridge.receive().await?["error"]["code"] == -32700);
    bridge.write("7").await?;
    ensure!(bridge.receive().await?["error"]["code"] == -32600);
    let early = bridge.request("tools/list", json!({})).await?;
    ensure!(early["error"]["code"] == -32600, "{early}");
    bridge.initialize(LEGACY, json!({})).await?;
    ensure!(!text(&bridge.call("test_simple_text", json!({})).await?).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_wrong_address_is_an_error_of_the_handshake_and_an_exit_code() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript1)?;
    let home = Home::new()?;
    let hello = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let nowhere = upstream.url().replace("/mcp", "/nothing");
    for (url, code) in [
        ("http://127.0.0.1:9/mcp", -31000),
        (nowhere.as_str(), -32600),
    ] {
        let mut bridge = home.start(&[url])?;
        let answer = bridge.request("initialize", hello.clone()).await?;
        ensure!(answer["error"]["code"] == code, "{url}: {answer}");
        let ended = bridge.close().await?;
        ensure!(ended.code() == Some(5), "{url}: {ended}");
    }
    for wrong in ["ftp://127.0.0.1/mcp", "no address"] {
        let mut bridge = home.start(&[wrong])?;
        let ended = bridge.close().await?;
        ensure!(matches!(ended.code(), Some(1 | 2)), "{wrong}: {ended}");
    }
    Ok(())
}

#[tokio::test]
async fn a_signal_ends_it_and_the_session() -> Result<()> {
    let (upstream, _home, mut bridge) = pair(Fixture::TypeScript1)?;
    bridge.initialize(LEGACY, json!({})).await?;
    bridge.call("test_simple_text", json!({})).await?;
    let killed = tokio::process::Command::new("kill")
        .args(["-TERM", &bridge.process()?.to_string()])
        .status()
        .await?;
    ensure!(killed.success());
    seen(&upstream, |upstream| {
        upstream
            .seen()
            .iter()
            .any(|request| request.verb == "DELETE")
    })
    .await?;
    ensure!(bridge.close().await?.success());
    Ok(())
}
