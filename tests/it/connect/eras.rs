//! Clients and servers of different eras (MCP-X-14, MCP-X-20…MCP-X-27, MCP-X-40, MCP-X-42,
//! MCP-X-65…MCP-X-79, MCP-V-1).

use anyhow::{Context, Result, ensure};
use portolan_tests::upstream::{Fixture, Upstream};
use serde_json::{Value, json};

use portolan_tests::connected::{Bridge, Home, text};

const LEGACY: &str = "2025-11-25";

fn pair() -> Result<(Upstream, Home, Bridge)> {
    let upstream = Upstream::start(Fixture::TypeScript2)?;
    let home = Home::new()?;
    let bridge = home.start(&[&upstream.url(), "--verbose"])?;
    Ok((upstream, home, bridge))
}

async fn say(bridge: &mut Bridge, asked: &Value, result: Value) -> Result<()> {
    bridge
        .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
        .await
}

#[tokio::test]
async fn x_60_every_session_revision_lists_and_calls_in_its_own_shapes() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript2)?;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let home = Home::new()?;
        let mut bridge = home.start(&[&upstream.url()])?;
        let opened = bridge.initialize(version, json!({})).await?;
        ensure!(opened["protocolVersion"] == version, "{opened}");
        ensure!(
            opened["serverInfo"]["name"] == "fixture-upstream",
            "{opened}"
        );
        let listed = bridge.request("tools/list", json!({})).await?;
        let tools = listed["result"]["tools"].as_array().context("tools")?;
        ensure!(!tools.is_empty() && listed["result"].get("resultType").is_none());
        let has_output = tools.iter().any(|tool| tool.get("outputSchema").is_some());
        ensure!(has_output == (version >= "2025-06-18"), "{version}");
        let answer = bridge
            .call("test_structured_content", json!({"city": "Kiel"}))
            .await?;
        let has_structure = answer["result"].get("structuredContent").is_some();
        ensure!(
            has_structure == (version >= "2025-06-18"),
            "{version}: {answer}"
        );
        let missing = bridge
            .request("resources/read", json!({"uri": "test://nothing"}))
            .await?;
        ensure!(missing["error"]["code"] == -32002, "X-67: {missing}");
        ensure!(bridge.request("ping", json!({})).await?["result"].is_object());
        ensure!(bridge.close().await?.success());
    }
    Ok(())
}

#[tokio::test]
async fn x_20_questions_of_several_rounds_become_requests_to_the_client() -> Result<()> {
    let (upstream, _home, mut bridge) = pair()?;
    let can = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
    bridge.initialize(LEGACY, can).await?;
    let name = "test_input_required_result_multi_round";
    let call = bridge
        .begin("tools/call", json!({"name": name, "arguments": {}}))
        .await?;
    for content in [json!({"name": "Ann"}), json!({"color": "blue"})] {
        let asked = bridge.until("elicitation/create").await?;
        say(
            &mut bridge,
            &asked,
            json!({"action": "accept", "content": content}),
        )
        .await?;
    }
    let answer = bridge.answer(call).await?;
    ensure!(text(&answer) == "Ann likes blue.", "{answer}");
    ensure!(upstream.seen_of("tools/call").len() == 3);

    let name = "test_input_required_result_multiple_inputs";
    let call = bridge
        .begin("tools/call", json!({"name": name, "arguments": {}}))
        .await?;
    let form = bridge.until("elicitation/create").await?;
    let sample = bridge.until("sampling/createMessage").await?;
    let roots = bridge.until("roots/list").await?;
    say(
        &mut bridge,
        &roots,
        json!({"roots": [{"uri": "file:///a"}]}),
    )
    .await?;
    say(
        &mut bridge,
        &form,
        json!({"action": "accept", "content": {"name": "Ann"}}),
    )
    .await?;
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}});
    say(&mut bridge, &sample, said).await?;
    let answer = bridge.answer(call).await?;
    ensure!(text(&answer) == "Hi Ann, 1 roots", "{answer}");
    Ok(())
}

#[tokio::test]
async fn v_1_v_9_a_client_that_cannot_or_will_not_answer_sees_why() -> Result<()> {
    let (_upstream, _home, mut bridge) = pair()?;
    bridge.initialize(LEGACY, json!({"sampling": {}})).await?;
    let name = "test_input_required_result_elicitation";
    let answer = bridge.call(name, json!({})).await?;
    ensure!(answer["result"]["isError"] == true, "{answer}");
    ensure!(text(&answer).contains("elicitation"), "{answer}");
    let call = bridge
        .begin(
            "tools/call",
            json!({"name": "test_sampling", "arguments": {"prompt": "Hm?"}}),
        )
        .await?;
    let asked = bridge.until("sampling/createMessage").await?;
    bridge
        .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}))
        .await?;
    let answer = bridge.answer(call).await?;
    ensure!(text(&answer).contains("declined"), "V-9: {answer}");
    Ok(())
}

#[tokio::test]
async fn x_40_x_73_x_76_x_78_changes_logs_progress_and_cancellation_pass() -> Result<()> {
    let (upstream, _home, mut bridge) = pair()?;
    let opened = bridge.initialize(LEGACY, json!({})).await?;
    ensure!(
        opened["capabilities"]["resources"]["subscribe"] == true,
        "{opened}"
    );
    let params =
        json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 7}});
    bridge.request("tools/call", params).await?;
    let progress = bridge.until("notifications/progress").await?;
    ensure!(progress["params"]["progressToken"] == 7, "{progress}");

    bridge
        .request("logging/setLevel", json!({"level": "debug"}))
        .await?;
    bridge.call("test_logging_tool", json!({})).await?;
    bridge.until("notifications/message").await?;

    let uri = json!({"uri": "test://watched-resource"});
    let subscribed = bridge.request("resources/subscribe", uri.clone()).await?;
    ensure!(subscribed["result"].is_object(), "{subscribed}");
    // The server acknowledges the new subscription before the next change.
    let wait = async {
        while upstream.seen_of("subscriptions/listen").len() < 2
            || upstream
                .seen_of("subscriptions/listen")
                .iter()
                .any(|one| one.status.is_none())
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(portolan_tests::connected::PATIENCE, wait).await?;
    bridge.call("test_touch_resource", json!({})).await?;
    let updated = bridge.until("notifications/resources/updated").await?;
    ensure!(updated["params"] == uri, "{updated}");
    bridge.call("test_trigger_tool_change", json!({})).await?;
    let changed = bridge.until("notifications/tools/list_changed").await?;
    ensure!(changed.get("params").is_none(), "{changed}");

    let call = bridge
        .begin(
            "tools/call",
            json!({"name": "test_slow", "arguments": {"milliseconds": 60_000}}),
        )
        .await?;
    bridge
        .notify("notifications/cancelled", json!({"requestId": call}))
        .await?;
    ensure!(!text(&bridge.call("test_simple_text", json!({})).await?).is_empty());
    ensure!(bridge.others.iter().all(|message| message["id"] != call));
    ensure!(bridge.close().await?.success());
    Ok(())
}

fn sessions(fixture: Fixture) -> Result<(Upstream, Home, Bridge)> {
    let upstream = Upstream::start(fixture)?;
    let home = Home::new()?;
    let bridge = home.start(&[&upstream.url(), "--verbose"])?;
    Ok((upstream, home, bridge))
}

#[tokio::test]
async fn x_65_x_66_a_client_of_2026_07_28_alone_uses_a_server_with_sessions() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::HttpSse, Fixture::Python1] {
        let (upstream, _home, mut bridge) = sessions(fixture)?;
        let listed = bridge.modern("tools/list", json!({})).await?;
        ensure!(
            listed["result"]["resultType"] == "complete",
            "{fixture:?}: {listed}"
        );
        ensure!(
            listed["result"]["tools"]
                .as_array()
                .is_some_and(|tools| tools.len() > 3)
        );
        let found = bridge.modern("server/discover", json!({})).await?;
        ensure!(
            found["result"]["supportedVersions"][0] == "2026-07-28",
            "{found}"
        );
        let params = json!({"name": "test_simple_text", "arguments": {}});
        let answer = bridge.modern("tools/call", params).await?;
        ensure!(
            answer["result"]["resultType"] == "complete",
            "{fixture:?}: {answer}"
        );
        ensure!(!text(&answer).is_empty(), "{fixture:?}: {answer}");
        if fixture == Fixture::TypeScript1 {
            let missing = bridge
                .modern("resources/read", json!({"uri": "test://nothing"}))
                .await?;
            ensure!(missing["error"]["code"] == -32602, "{missing}");
            let sent = &upstream.seen_of("tools/call")[0].json();
            ensure!(
                !sent.to_string().contains("io.modelcontextprotocol"),
                "{sent}"
            );
        }
        let params = json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "p"}});
        bridge.modern("tools/call", params).await?;
        if fixture != Fixture::Python1 {
            let progress = bridge.until("notifications/progress").await?;
            ensure!(progress["params"]["progressToken"] == "p", "{progress}");
        }
        ensure!(bridge.close().await?.success(), "{fixture:?}");
    }
    Ok(())
}

#[tokio::test]
async fn x_22_x_27_a_question_of_a_session_parks_the_call_until_the_client_comes_back() -> Result<()>
{
    for fixture in [Fixture::TypeScript1, Fixture::HttpSse] {
        let (upstream, _home, mut bridge) = sessions(fixture)?;
        for (tool, expected) in [
            ("test_input_required_result_elicitation", "Hello, Ann!"),
            ("test_ask_beside", "Hello, Ann!"),
        ] {
            let params = json!({"name": tool, "arguments": {}});
            let asked = bridge.modern("tools/call", params.clone()).await?;
            ensure!(
                asked["result"]["resultType"] == "input_required",
                "{fixture:?}: {asked}"
            );
            let questions = asked["result"]["inputRequests"]
                .as_object()
                .context("questions")?;
            let (key, question) = questions.iter().next().context("a question")?;
            ensure!(question["method"] == "elicitation/create", "{question}");
            let mut again = params.clone();
            again["requestState"] = asked["result"]["requestState"].clone();
            again["inputResponses"] =
                json!({(key): {"action": "accept", "content": {"name": "Ann"}}});
            let answer = bridge.modern("tools/call", again.clone()).await?;
            ensure!(text(&answer) == expected, "{fixture:?}: {answer}");
            let twice = bridge.modern("tools/call", again).await?;
            ensure!(twice["error"]["code"] == -32602, "{twice}");
        }
        ensure!(
            upstream.seen_of("tools/call").len() == 2,
            "each call was made once"
        );
    }
    Ok(())
}

#[tokio::test]
async fn x_23_x_30_what_the_client_cannot_answer_is_refused_toward_the_server() -> Result<()> {
    let (_upstream, _home, mut bridge) = sessions(Fixture::TypeScript1)?;
    // The client of these tests declares elicitation by form and nothing else.
    let params = json!({"name": "test_sampling", "arguments": {"prompt": "Hm?"}});
    let answer = bridge.modern("tools/call", params).await?;
    ensure!(
        answer["result"]["isError"] == true || answer["error"].is_object(),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn x_42_x_74_x_79_subscriptions_logs_and_cancellation_reach_the_session() -> Result<()> {
    let (upstream, _home, mut bridge) = sessions(Fixture::TypeScript1)?;
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]}});
    let listen = bridge
        .begin(
            "subscriptions/listen",
            portolan_tests::connected::modern(wanted),
        )
        .await?;
    let ready = bridge
        .until("notifications/subscriptions/acknowledged")
        .await?;
    ensure!(
        ready["params"]["notifications"]["toolsListChanged"] == true,
        "{ready}"
    );
    let wait = async {
        while upstream
            .seen_of("resources/subscribe")
            .iter()
            .all(|one| one.status.is_none())
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(portolan_tests::connected::PATIENCE, wait).await?;
    let touch = json!({"name": "test_touch_resource", "arguments": {}});
    bridge.modern("tools/call", touch.clone()).await?;
    let updated = bridge.until("notifications/resources/updated").await?;
    let of = "io.modelcontextprotocol/subscriptionId";
    ensure!(updated["params"]["_meta"][of] == listen, "{updated}");

    let quiet = json!({"name": "test_logging_tool", "arguments": {}});
    bridge.modern("tools/call", quiet.clone()).await?;
    ensure!(
        bridge
            .others
            .iter()
            .all(|one| one["method"] != "notifications/message")
    );
    let mut loud = quiet;
    loud["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
    bridge.modern("tools/call", loud).await?;
    bridge.until("notifications/message").await?;

    let slow = json!({"name": "test_slow", "arguments": {"milliseconds": 60_000}});
    let call = bridge
        .begin("tools/call", portolan_tests::connected::modern(slow))
        .await?;
    let wait = async {
        while upstream.seen_of("tools/call").len() < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(portolan_tests::connected::PATIENCE, wait).await?;
    bridge
        .notify("notifications/cancelled", json!({"requestId": call}))
        .await?;
    bridge
        .notify("notifications/cancelled", json!({"requestId": listen}))
        .await?;
    let wait = async {
        while upstream.seen_of("notifications/cancelled").is_empty()
            || upstream.seen_of("resources/unsubscribe").is_empty()
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(portolan_tests::connected::PATIENCE, wait).await?;
    ensure!(bridge.close().await?.success());
    ensure!(
        upstream
            .seen()
            .iter()
            .any(|request| request.verb == "DELETE")
    );
    Ok(())
}
