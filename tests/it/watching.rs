//! Notifications of upstream servers reach the clients that subscribed (MCP-X-23,
//! MCP-X-40…MCP-X-45), on any node.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use portolan_tests::{
    behind,
    cluster::Cluster,
    console::Published,
    fixture::FixtureApi,
    fleet,
    mcp::{LEGACY, McpClient, modern_message},
    oauth::OAuthClient,
    person::Person,
    process::eventually,
    sse::SseStream,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use reqwest::Method;
use serde_json::{Value, json};

const WATCHED: &str = "test://watched-resource";
const UPDATED: &str = "notifications/resources/updated";
const SOON: Duration = Duration::from_secs(30);

struct Scene {
    upstream: Upstream,
    _stack: Stack,
    owner: Person,
    published: Published,
    mcp: McpClient,
}

impl Scene {
    async fn of(fixture: Fixture) -> Result<Self> {
        let upstream = Upstream::start(fixture)?;
        let stack = Stack::builder().allow_egress(upstream.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let published = behind::publish(&console, "harbour", &upstream, &json!({})).await?;
        let client = OAuthClient::register(stack.url(), "Harness").await?;
        let tokens = client.authorize(&owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok(Self {
            upstream,
            _stack: stack,
            owner,
            published,
            mcp,
        })
    }

    async fn call(&self, tool: &str) -> Result<()> {
        let (session, _) = self.mcp.initialize(LEGACY).await?;
        call(&session, tool).await
    }

    /// The tool that comes and goes is there, and published.
    async fn with_what_goes(&self) -> Result<()> {
        self.call("test_trigger_tool_change").await?;
        let console = self.owner.console();
        let source = &self.published.source_id;
        console
            .post(
                &format!("/workspaces/harbour/sources/{source}/sync"),
                json!({}),
            )
            .await?;
        let all = console.tool_ids("harbour", source).await?;
        let tools: Vec<Value> = all.iter().map(|id| json!({"tool_id": id})).collect();
        let server = &self.published.server_id;
        let path = format!("/workspaces/harbour/servers/{server}/tools");
        console
            .expect(Method::PUT, &path, Some(json!({"tools": tools})))
            .await?;
        Ok(())
    }
}

async fn call(session: &McpClient, tool: &str) -> Result<()> {
    let params = json!({"name": tool, "arguments": {}});
    let answer = session.request("tools/call", params).await?;
    assert_ne!(answer.json["result"]["isError"], true, "{}", answer.text);
    Ok(())
}

async fn listen(mcp: &McpClient, wanted: Value) -> Result<(SseStream, Value)> {
    let params = json!({"notifications": wanted});
    let client = mcp.modern_client("subscriptions/listen", &params)?;
    let message = modern_message("subscriptions/listen", params);
    let mut stream = client.start(&message).await?.stream()?;
    let acknowledged = stream.message().await?;
    Ok((stream, acknowledged))
}

async fn told(stream: &mut SseStream, method: &str) -> Result<Value> {
    let wanted =
        stream.until(|event| !event.data.is_empty() && event.message()["method"] == method);
    let events = tokio::time::timeout(SOON, wanted)
        .await
        .with_context(|| format!("no {method} came"))??;
    Ok(events.last().context("an event")?.message())
}

async fn lists_change(fixture: Fixture) -> Result<()> {
    let scene = Scene::of(fixture).await?;
    scene.with_what_goes().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let mut old = session.listen().await?;
    let (mut new, acknowledged) = listen(&scene.mcp, json!({"toolsListChanged": true})).await?;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true}),
        "{acknowledged}"
    );
    scene.call("test_trigger_tool_change").await?;
    for stream in [&mut old, &mut new] {
        told(stream, "notifications/tools/list_changed").await?;
    }
    let list = session.request("tools/list", json!({})).await?;
    assert!(!list.text.contains("test_added_tool"), "{}", list.text);
    Ok(())
}

#[tokio::test]
async fn x_42_a_list_that_changes_at_a_server_of_sessions_is_told_to_open_streams_of_both_eras()
-> Result<()> {
    lists_change(Fixture::TypeScript1).await
}

#[tokio::test]
async fn x_41_x_44_a_list_that_changes_at_a_server_of_2026_07_28_is_told_to_streams_of_both_eras()
-> Result<()> {
    lists_change(Fixture::TypeScript2).await
}

async fn resources_change(fixture: Fixture) -> Result<Scene> {
    let scene = Scene::of(fixture).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let mut old = session.listen().await?;
    let subscribed = session
        .request("resources/subscribe", json!({"uri": WATCHED}))
        .await?;
    assert_eq!(subscribed.json["result"], json!({}), "{}", subscribed.text);
    let wanted = json!({"resourceSubscriptions": [WATCHED]});
    let (mut new, acknowledged) = listen(&scene.mcp, wanted.clone()).await?;
    assert_eq!(
        acknowledged["params"]["notifications"], wanted,
        "MCP-SB-2: {acknowledged}"
    );
    call(&session, "test_touch_resource").await?;
    let notice = told(&mut old, UPDATED).await?;
    assert_eq!(notice["params"], json!({"uri": WATCHED}));
    let notice = told(&mut new, UPDATED).await?;
    assert_eq!(notice["params"]["uri"], WATCHED, "MCP-SB-3: {notice}");
    // Another URI beside it: the first subscription goes on, and no notification comes twice
    // (MCP-XT-8).
    let more = json!({"resourceSubscriptions": [WATCHED, "test://static-text"]});
    let (_third, acknowledged) = listen(&scene.mcp, more.clone()).await?;
    assert_eq!(
        acknowledged["params"]["notifications"], more,
        "{acknowledged}"
    );
    call(&session, "test_touch_resource").await?;
    told(&mut old, UPDATED).await?;
    told(&mut new, UPDATED).await?;
    Ok(scene)
}

#[tokio::test]
async fn x_42_xt_7_a_resource_of_a_server_of_sessions_is_subscribed_to_while_somebody_listens()
-> Result<()> {
    let scene = resources_change(Fixture::TypeScript1).await?;
    let of = |method: &str| -> Vec<Value> {
        let seen = scene.upstream.seen_of(method);
        seen.iter()
            .map(|one| one.json()["params"]["uri"].clone())
            .collect()
    };
    let watched = |all: &[Value]| all.iter().filter(|uri| **uri == WATCHED).count();
    assert_eq!(
        watched(&of("resources/subscribe")),
        1,
        "two clients, one subscription"
    );
    // The streams were dropped: no client is subscribed any more.
    eventually("the subscriptions end", SOON, async || {
        watched(&of("resources/unsubscribe")) == 1
    })
    .await
}

#[tokio::test]
async fn x_40_x_44_xt_8_resources_of_a_server_of_2026_07_28_are_listened_to_in_one_request()
-> Result<()> {
    let scene = resources_change(Fixture::TypeScript2).await?;
    let listens = scene.upstream.seen_of("subscriptions/listen");
    assert!(listens.len() >= 2, "{}", listens.len());
    assert!(
        scene.upstream.seen_of("resources/subscribe").is_empty(),
        "it has no such method"
    );
    Ok(())
}

#[tokio::test]
async fn x_18_a_resource_of_which_its_server_does_not_tell_cannot_be_subscribed_to() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    // It has one stream for a session and no second, and refuses what it does not know.
    scene
        .upstream
        .refuse(Some(reqwest::StatusCode::SERVICE_UNAVAILABLE));
    let refused = session
        .request("resources/subscribe", json!({"uri": WATCHED}))
        .await?;
    assert_eq!(refused.code(), -32002, "MCP-X-40: {}", refused.text);
    scene.upstream.refuse(None);
    eventually("it can be, when the server is back", SOON, async || {
        let again = session.request("resources/subscribe", json!({"uri": WATCHED}));
        again
            .await
            .is_ok_and(|answer| answer.json["result"] == json!({}))
    })
    .await
}

/// Streams on one node, the subscription on another: one of the nodes subscribes, and both are
/// notified.
#[tokio::test]
async fn x_42_of_two_nodes_one_watches_a_server_and_clients_of_both_hear() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript1)?;
    let api = FixtureApi::start()?;
    let allowed = format!("{},{}", api.address(), upstream.address());
    let cluster = Cluster::builder()
        .nodes(2)
        .setting("egress_allow", allowed)
        .start(&api)
        .await?;
    let owner = fleet::sign_up(&cluster, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let published = behind::publish(&console, "harbour", &upstream, &json!({})).await?;
    let client = OAuthClient::register(cluster.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    let mut streams = Vec::new();
    for node in [0, 1] {
        streams.push(cluster.on(node, &session)?.listen().await?);
    }
    // MCP-RE-7: to whichever node, for the streams of the session on any.
    let subscribed = cluster
        .on(0, &session)?
        .request("resources/subscribe", json!({"uri": WATCHED}))
        .await?;
    assert_eq!(subscribed.json["result"], json!({}), "{}", subscribed.text);
    let (mut new, _) = listen(
        &cluster.on(1, &mcp)?,
        json!({"resourceSubscriptions": [WATCHED]}),
    )
    .await?;
    call(&session, "test_touch_resource").await?;
    for stream in &mut streams {
        told(stream, UPDATED).await?;
    }
    told(&mut new, UPDATED).await?;
    let own: Vec<_> = upstream.seen_of("resources/subscribe");
    assert_eq!(own.len(), 1, "one node watches");
    // A stream opens on one node, and the subscription comes through another. In any order, and for
    // any leader, one change is enough.
    for round in 0..40 {
        let (session, _) = mcp.initialize(LEGACY).await?;
        let (here, there) = (
            cluster.on(round % 2, &session)?,
            cluster.on((round + 1) % 2, &session)?,
        );
        let (stream, subscribed) = tokio::join!(
            there.listen(),
            here.request("resources/subscribe", json!({"uri": WATCHED})),
        );
        let (mut stream, subscribed) = (stream?, subscribed?);
        assert_eq!(subscribed.json["result"], json!({}), "{}", subscribed.text);
        call(&here, "test_touch_resource").await?;
        let heard = told(&mut stream, UPDATED).await;
        heard.with_context(|| format!("round {round}"))?;
        let gone = here
            .request("resources/unsubscribe", json!({"uri": WATCHED}))
            .await?;
        assert_eq!(gone.json["result"], json!({}), "{}", gone.text);
    }
    Ok(())
}

/// REVIEW-Q14: the node that listens dies, and the server changes its list before another node
/// listens.
#[tokio::test]
async fn q14_the_node_that_listens_dies_and_others_hear_of_a_change_within_five_seconds()
-> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript1)?;
    let api = FixtureApi::start()?;
    let allowed = format!("{},{}", api.address(), upstream.address());
    let mut cluster = Cluster::builder()
        .nodes(2)
        .setting("egress_allow", allowed)
        .start(&api)
        .await?;
    let owner = fleet::sign_up(&cluster, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let published = behind::publish(&console, "harbour", &upstream, &json!({})).await?;
    let client = OAuthClient::register(cluster.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = cluster.on(0, &mcp)?.initialize(LEGACY).await?;
    // The node of the first stream listens.
    let _first = cluster.on(0, &session)?.listen().await?;
    let listens = |upstream: &Upstream| upstream.seen_of("resources/subscribe").len();
    let subscribed = session.request("resources/subscribe", json!({"uri": WATCHED}));
    assert_eq!(subscribed.await?.json["result"], json!({}));
    assert_eq!(listens(&upstream), 1);
    let survivor = cluster.on(1, &session)?;
    let mut stream = survivor.listen().await?;
    call(&survivor, "test_touch_resource").await?;
    told(&mut stream, UPDATED).await?;

    cluster.nodes[0].kill()?;
    let died = Instant::now();
    call(&survivor, "test_touch_resource").await?;
    told(&mut stream, UPDATED).await?;
    let took = died.elapsed();
    println!("told after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    // A node that takes over sends the update before it subscribes.
    while listens(&upstream) != 2 {
        let took = died.elapsed();
        assert!(took < Duration::from_secs(5), "the other node listens");
        call(&survivor, "test_touch_resource").await?;
    }
    Ok(())
}

/// MCP-X-45: two servers behind one. The acknowledgement is the union of both. A lost server ends
/// no stream; when it is back, each changed list is notified once.
#[tokio::test]
async fn x_45_a_lost_server_ends_no_stream_and_what_changed_meanwhile_is_told_once_by_type()
-> Result<()> {
    // Neither tool nor prompt goes on being there: both lists change while the server is away.
    let lost = Upstream::start(Fixture::TypeScript1)?;
    let (direct, _) = McpClient::new(&lost.direct_url())?
        .initialize(LEGACY)
        .await?;
    call(&direct, "test_trigger_tool_change").await?;
    call(&direct, "test_trigger_prompt_change").await?;
    let stays = Upstream::start(Fixture::TypeScript2)?;
    // It sends no updates of resources (MCP-X-18).
    let mute = Upstream::start(Fixture::Rmcp)?;
    let addresses = [&lost, &stays, &mute].map(|one| one.address().to_string());
    let stack = Stack::builder()
        .setting("egress_allow", addresses.join(","))
        .start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let parts = [("lost", &lost), ("stays", &stays), ("mute", &mute)];
    let published = behind::compose(&console, "harbour", &parts).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;

    let of_lost = "lost://watched-resource";
    let of_both = [of_lost, "stays://watched-resource"];
    let mut wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": [of_both[0], of_both[1], "mute://static-text"]});
    let (mut stream, acknowledged) = listen(&mcp, wanted.clone()).await?;
    wanted["resourceSubscriptions"] = json!(of_both);
    assert_eq!(
        acknowledged["params"]["notifications"], wanted,
        "{acknowledged}"
    );
    let (session, _) = mcp.initialize(LEGACY).await?;
    for (tool, uri) in [
        ("lost_test_touch_resource", of_both[0]),
        ("stays_test_touch_resource", of_both[1]),
    ] {
        call(&session, tool).await?;
        assert_eq!(told(&mut stream, UPDATED).await?["params"]["uri"], uri);
    }

    let opened = lost.seen_of("initialize").len();
    // As one that forgot its sessions.
    lost.refuse(Some(reqwest::StatusCode::NOT_FOUND));
    lost.cut();
    // Its stream is not resumed: later messages on it are lost.
    eventually("another session is tried", SOON, async || {
        lost.seen_of("initialize").len() > opened
    })
    .await?;
    // The others go on.
    call(&session, "stays_test_touch_resource").await?;
    assert_eq!(
        told(&mut stream, UPDATED).await?["params"]["uri"],
        of_both[1]
    );
    call(&direct, "test_trigger_tool_change").await?;
    call(&direct, "test_trigger_prompt_change").await?;
    lost.refuse(None);

    // Its resource may have changed, and two of its lists have. The last notification is of a new
    // change.
    let mut heard = Vec::new();
    while heard.len() < 3 {
        let event = tokio::time::timeout(SOON, stream.message()).await;
        let event = event.with_context(|| format!("{heard:?}"))??;
        heard.push((event["method"].clone(), event["params"]["uri"].clone()));
    }
    let (session, _) = mcp.initialize(LEGACY).await?;
    call(&session, "lost_test_touch_resource").await?;
    let event = tokio::time::timeout(SOON, stream.message()).await??;
    heard.push((event["method"].clone(), event["params"]["uri"].clone()));
    let count = |method: &str, uri: Value| {
        let one = (json!(method), uri);
        heard.iter().filter(|other| **other == one).count()
    };
    assert_eq!(count(UPDATED, json!(of_lost)), 2, "{heard:?}");
    for method in [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ] {
        assert_eq!(count(method, Value::Null), 1, "{heard:?}");
    }
    Ok(())
}

/// A server that asks on the stream of its session, as SDKs do that do not know the request of a
/// question.
#[tokio::test]
async fn x_23_a_question_beside_the_stream_of_a_call_reaches_the_client_of_that_call() -> Result<()>
{
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let params = json!({"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "harness", "version": "1"}});
    let answer = scene.mcp.request("initialize", params).await?;
    let session = scene
        .mcp
        .clone()
        .with("mcp-session-id", answer.header("mcp-session-id"))?
        .with("mcp-protocol-version", LEGACY)?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    session.message(&ready).await?;
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "test_ask_beside", "arguments": {}}});
    let mut stream = session.start(&call).await?.stream()?;
    let question = loop {
        let message = tokio::time::timeout(SOON, stream.message()).await??;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let result = json!({"action": "accept", "content": {"name": "Ada"}});
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    session.message(&response).await?;
    let answer = loop {
        let message = stream.message().await?;
        if message["id"] == "call" {
            break message;
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    Ok(())
}

/// MCP-RE-11, MCP-PR-6, MCP-X-22, MCP-X-29: a prompt may ask, whatever the eras are.
#[tokio::test]
async fn pr_6_a_prompt_of_a_server_asks_its_client_and_is_got_in_the_next_round() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::TypeScript2] {
        let scene = Scene::of(fixture).await?;
        let name = "test_input_required_result_prompt";
        let get = async |more: Value| -> Result<Value> {
            let mut params = json!({"name": name});
            for (member, value) in more.as_object().into_iter().flatten() {
                params[member] = value.clone();
            }
            let client = scene.mcp.modern_client("prompts/get", &params)?;
            let mut message = modern_message("prompts/get", params);
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                json!({"elicitation": {"form": {}}});
            Ok(client.message(&message).await?.json)
        };
        let asked = get(json!({})).await?;
        assert_eq!(
            asked["result"]["resultType"], "input_required",
            "{fixture:?}: {asked}"
        );
        let requests = asked["result"]["inputRequests"]
            .as_object()
            .context("requests")?;
        let responses: serde_json::Map<String, Value> = requests
            .keys()
            .map(|key| {
                (
                    key.clone(),
                    json!({"action": "accept", "content": {"context": "harbours"}}),
                )
            })
            .collect();
        let state = asked["result"]["requestState"].clone();
        let again = json!({"inputResponses": responses, "requestState": state});
        let got = get(again.clone()).await?;
        assert_eq!(
            got["result"]["messages"][0]["content"]["text"], "Context: harbours",
            "{fixture:?}: {got}"
        );
        if fixture == Fixture::TypeScript1 {
            // MCP-X-27: the call that waited is over.
            let refused = get(again).await?;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
    }
    Ok(())
}

/// A request that stands alone, of a client that can do this, with more members of its `_meta`.
async fn alone(
    mcp: &McpClient,
    params: &Value,
    capabilities: &Value,
    more: &Value,
) -> Result<portolan_tests::mcp::Reply> {
    let client = mcp.modern_client("tools/call", params)?;
    let mut message = modern_message("tools/call", params.clone());
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    for (name, value) in more.as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    client.start(&message).await
}

/// MCP-LG-5: a client that did not request logs gets none.
#[tokio::test]
async fn x_74_xt_14_a_request_that_wants_logs_makes_a_server_of_sessions_talk_and_only_it_hears()
-> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let params = json!({"name": "test_tool_with_logging", "arguments": {}});
    let wanted = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let nothing = json!({});
    let (loud, quiet) = tokio::join!(
        alone(&scene.mcp, &params, &nothing, &wanted),
        alone(&scene.mcp, &params, &nothing, &nothing)
    );
    let heard = loud?.stream()?.rest().await?;
    let notices = heard
        .iter()
        .filter(|event| !event.data.is_empty())
        .filter(|event| event.message()["method"] == "notifications/message")
        .count();
    assert_eq!(notices, 3, "{heard:?}");
    assert_eq!(
        quiet?.whole()?.json["result"]["content"][0]["text"],
        "Logged three lines."
    );
    let levels: Vec<Value> = scene
        .upstream
        .seen_of("logging/setLevel")
        .iter()
        .map(|seen| seen.json()["params"]["level"].clone())
        .collect();
    assert_eq!(levels, [json!("debug")], "once, and for both");
    Ok(())
}

#[tokio::test]
async fn x_3g_rt_2_other_roots_of_a_session_are_told_to_the_servers_that_it_spoke_to() -> Result<()>
{
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    call(&session, "test_simple_text").await?;
    let own = scene.upstream.seen_of("tools/call")[0]
        .header("mcp-session-id")
        .map(str::to_owned);
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    session.message(&notice).await?;
    eventually("the server hears of it", SOON, async || {
        scene
            .upstream
            .seen_of("notifications/roots/list_changed")
            .iter()
            .any(|seen| seen.header("mcp-session-id").map(str::to_owned) == own)
    })
    .await
}

#[tokio::test]
async fn x_3i_a_shared_session_whose_server_was_told_other_roots_gets_no_more_calls() -> Result<()>
{
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let able = json!({"roots": {}});
    for root in ["file:///a", "file:///a", "file:///b", "file:///b"] {
        let mut params = json!({"name": "test_input_required_result_list_roots", "arguments": {}});
        let asked = alone(&scene.mcp, &params, &able, &json!({}))
            .await?
            .whole()?
            .json;
        let requests = asked["result"]["inputRequests"]
            .as_object()
            .with_context(|| asked.to_string())?;
        let responses: serde_json::Map<String, Value> = requests
            .keys()
            .map(|key| (key.clone(), json!({"roots": [{"uri": root}]})))
            .collect();
        params["inputResponses"] = Value::Object(responses);
        params["requestState"] = asked["result"]["requestState"].clone();
        let answer = alone(&scene.mcp, &params, &able, &json!({}))
            .await?
            .whole()?
            .json;
        assert_eq!(
            answer["result"]["content"][0]["text"],
            format!("Roots: {root}"),
            "{answer}"
        );
    }
    let mut sessions: Vec<Option<String>> = scene
        .upstream
        .seen_of("tools/call")
        .iter()
        .map(|seen| seen.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(sessions.len(), 4);
    assert_eq!(sessions[0], sessions[2], "until other roots were told");
    assert_ne!(sessions[2], sessions[3]);
    sessions.dedup();
    assert_eq!(sessions.len(), 2);
    Ok(())
}
