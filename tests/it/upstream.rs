//! Servers of other people behind Portolan: added by URL, chosen, published, called, by clients of every revision.

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::{
    console::{Published, text},
    mcp::{LEGACY, McpClient, Reply},
    oauth::{OAuthClient, Tokens},
    person::Person,
    process::eventually,
    stack::Stack,
    upstream::{Fixture, Seen, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The token of the upstream, and of nothing else.
const SECRET: &str = "upstream-canary-secret";

/// A workspace whose server is made of the tools of one upstream.
struct Scene {
    upstream: Upstream,
    stack: Stack,
    owner: Person,
    published: Published,
    tokens: Tokens,
    mcp: McpClient,
}

fn credential() -> Value {
    json!({"kind": "bearer", "token": SECRET})
}

impl Scene {
    async fn of(fixture: Fixture) -> Result<Self> {
        Self::with(fixture, json!({})).await
    }

    /// With more members of the request that adds the upstream.
    async fn with(fixture: Fixture, more: Value) -> Result<Self> {
        let upstream = Upstream::start_for_token(fixture, SECRET)?;
        let stack = Stack::builder().allow_egress(upstream.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let mut body = json!({"url": upstream.url(), "name": "Theirs", "credential": credential()});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let source = console.post("/workspaces/harbour/upstreams", body).await?;
        assert_eq!(source["kind"], "mcp");
        let source_id = text(&source, "id")?;
        let tools = console.tool_ids("harbour", &source_id).await?;
        let published = console
            .publish("harbour", "theirs", &source_id, tools)
            .await?;
        let client = OAuthClient::register(stack.url(), "Harness").await?;
        let tokens = client.authorize(&owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok(Self {
            upstream,
            stack,
            owner,
            published,
            tokens,
            mcp,
        })
    }

    fn path(&self, rest: &str) -> String {
        format!(
            "/workspaces/harbour/sources/{}{rest}",
            self.published.source_id
        )
    }

    async fn sync(&self, body: Value) -> Result<(StatusCode, Value)> {
        let path = self.path("/sync");
        self.owner
            .console()
            .send(Method::POST, &path, Some(body))
            .await
    }

    async fn legacy(&self, tool: &str, arguments: Value) -> Result<Value> {
        let (session, _) = self.mcp.initialize(LEGACY).await?;
        called(&session, tool, arguments).await
    }

    async fn modern(&self, tool: &str, arguments: Value) -> Result<Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.mcp.modern("tools/call", params).await?;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        Ok(answer.json)
    }
}

async fn called(session: &McpClient, tool: &str, arguments: Value) -> Result<Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = session.request("tools/call", params).await?;
    assert_eq!(answer.status, StatusCode::OK, "{tool}: {}", answer.text);
    Ok(answer.json)
}

fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn all_of(seen: &Seen) -> String {
    let body = String::from_utf8_lossy(&seen.body);
    format!("{} {:?} {body}", seen.path, seen.headers)
}

const SIMPLE: &str = "This is a simple text response for testing.";

/// Every pair of client and upstream revision, and MCP-XT-12 on each: the client's token never
/// reaches the upstream, the upstream's secret and session never reach the client.
async fn every_client_reaches(fixture: Fixture) -> Result<()> {
    let scene = Scene::of(fixture).await?;
    let mut answers = String::new();
    let mut sessions = Vec::new();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (session, _) = scene.mcp.initialize(version).await?;
        let list = session.request("tools/list", json!({})).await?;
        assert!(
            list.text.contains("test_simple_text"),
            "{fixture:?}: {}",
            list.text
        );
        let answer = called(&session, "test_simple_text", json!({})).await?;
        assert_eq!(said(&answer), SIMPLE, "{fixture:?} {version}: {answer}");
        // MCP-J-17: what 2026-07-28 adds is not for older clients.
        assert_eq!(answer["result"].get("resultType"), None, "{answer}");
        answers += &answer.to_string();
        sessions.push(
            session
                .header("mcp-session-id")
                .context("a session")?
                .to_owned(),
        );
    }
    let answer = scene.modern("test_simple_text", json!({})).await?;
    assert_eq!(said(&answer), SIMPLE, "{fixture:?}: {answer}");
    // MCP-X-65: what an older server lacks is ours to add.
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let card = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(card["name"], "theirs", "{answer}");
    answers += &answer.to_string();

    let seen = scene.upstream.seen();
    assert!(seen.len() > 4);
    let mut of_upstream = vec![SECRET.to_owned()];
    for one in &seen {
        let all = all_of(one);
        assert!(
            !all.contains(&scene.tokens.access),
            "the client's token went upstream"
        );
        for session in &sessions {
            assert!(
                !all.contains(session.as_str()),
                "the client's session went upstream"
            );
        }
        assert!(
            one.header("authorization")
                .is_some_and(|own| own.ends_with(SECRET)),
            "{all}"
        );
        of_upstream.extend(one.header("mcp-session-id").map(str::to_owned));
    }
    for secret in of_upstream {
        assert!(!answers.contains(&secret), "{answers}");
    }
    Ok(())
}

#[tokio::test]
async fn xt_12_a_server_of_the_session_era_is_reached_by_every_client() -> Result<()> {
    every_client_reaches(Fixture::TypeScript1).await
}

#[tokio::test]
async fn xt_12_a_server_of_2026_07_28_is_reached_by_every_client() -> Result<()> {
    every_client_reaches(Fixture::TypeScript2).await
}

#[tokio::test]
async fn xt_12_a_server_of_2024_11_05_is_reached_by_every_client() -> Result<()> {
    every_client_reaches(Fixture::HttpSse).await
}

#[tokio::test]
async fn xt_12_servers_of_both_eras_are_reached_by_every_client() -> Result<()> {
    every_client_reaches(Fixture::Rmcp).await
}

#[tokio::test]
async fn x_12_a_session_of_a_client_has_one_of_its_own_upstream_which_ends_with_it() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let (one, _) = scene.mcp.initialize(LEGACY).await?;
    let (other, _) = scene.mcp.initialize("2025-06-18").await?;
    for expected in ["1", "2", "3"] {
        assert_eq!(
            said(&called(&one, "test_count", json!({})).await?),
            expected
        );
    }
    assert_eq!(said(&called(&other, "test_count", json!({})).await?), "1");
    let upstream_of = |seen: &[Seen]| -> Vec<String> {
        let ids = seen.iter().filter_map(|one| one.header("mcp-session-id"));
        let mut ids: Vec<String> = ids.map(str::to_owned).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let calls = scene.upstream.seen_of("tools/call");
    assert_eq!(upstream_of(&calls).len(), 2);
    let mine = calls[0]
        .header("mcp-session-id")
        .context("a session")?
        .to_owned();
    assert_eq!(one.send(Method::DELETE).await?.status, StatusCode::OK);
    eventually(
        "the session upstream is ended",
        Duration::from_secs(10),
        async || {
            scene.upstream.seen().iter().any(|seen| {
                seen.verb == Method::DELETE && seen.header("mcp-session-id") == Some(mine.as_str())
            })
        },
    )
    .await
}

#[tokio::test]
async fn x_10_a_client_without_sessions_shares_one_upstream_with_itself() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    assert_eq!(said(&scene.modern("test_count", json!({})).await?), "1");
    assert_eq!(said(&scene.modern("test_count", json!({})).await?), "2");
    Ok(())
}

/// A call with progress, and all messages before its answer.
async fn told(session: &McpClient, message: &Value) -> Result<(Vec<Value>, Value)> {
    match session.start(message).await? {
        Reply::Stream(mut stream) => {
            let events = stream.rest().await?;
            let mut messages: Vec<Value> = events
                .iter()
                .filter(|event| !event.data.is_empty())
                .map(portolan_tests::sse::Event::message)
                .collect();
            let answer = messages.pop().context("an answer")?;
            Ok((messages, answer))
        }
        Reply::Whole(answer) => Ok((Vec::new(), answer.json)),
    }
}

#[tokio::test]
async fn x_76_progress_comes_under_the_clients_token_and_only_grows() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::TypeScript2] {
        let scene = Scene::of(fixture).await?;
        let (session, _) = scene.mcp.initialize(LEGACY).await?;
        let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {
            "name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "mine"}}});
        let (messages, answer) = told(&session, &call).await?;
        assert_eq!(answer["id"], "c", "{answer}");
        let steps: Vec<f64> = messages
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .map(|message| {
                assert_eq!(message["params"]["progressToken"], "mine");
                message["params"]["progress"].as_f64().unwrap_or(-1.0)
            })
            .collect();
        assert_eq!(steps.len(), 3, "{fixture:?}: {messages:?}");
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
        for seen in scene.upstream.seen_of("tools/call") {
            assert_ne!(seen.json()["params"]["_meta"]["progressToken"], "mine");
        }
    }
    Ok(())
}

/// MCP-LG-4: about a running request, on its stream. MCP-DP-3: served, though deprecated.
#[tokio::test]
async fn x_72_and_x_73_log_messages_come_from_the_level_that_the_client_set() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::TypeScript2] {
        let scene = Scene::of(fixture).await?;
        let (session, _) = scene.mcp.initialize(LEGACY).await?;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "test_tool_with_logging", "arguments": {}}});
        let logs = |messages: &[Value]| {
            let is_log = |message: &&Value| message["method"] == "notifications/message";
            messages.iter().filter(is_log).count()
        };
        // MCP-LG-3: before the first setLevel only warnings are wanted, and these are no warnings.
        let (before, _) = told(&session, &call).await?;
        assert_eq!(logs(&before), 0, "{fixture:?}: {before:?}");
        session
            .request("logging/setLevel", json!({"level": "info"}))
            .await?;
        eventually(
            "the level reached the server",
            Duration::from_secs(10),
            async || {
                told(&session, &call)
                    .await
                    .is_ok_and(|(messages, _)| logs(&messages) == 3)
            },
        )
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn x_77_and_x_79_a_cancelled_call_is_cancelled_upstream() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let slow = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "test_slow", "arguments": {"milliseconds": 60_000}}});
    let mut stream = session.start(&slow).await?.stream()?;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(session.message(&cancel).await?.status, StatusCode::ACCEPTED);
    let rest = stream.rest().await?;
    assert!(
        !rest.iter().any(portolan_tests::sse::Event::is_response),
        "MCP-CN-4"
    );
    eventually(
        "the server heard of it",
        Duration::from_secs(10),
        async || {
            let heard = scene.upstream.seen_of("notifications/cancelled");
            let call = scene.upstream.seen_of("tools/call");
            heard.len() == 1 && heard[0].json()["params"]["requestId"] == call[0].json()["id"]
        },
    )
    .await
}

#[tokio::test]
async fn v_8_v_4_and_v_10_what_is_wrong_with_a_server_is_said_in_fixed_words() -> Result<()> {
    let mut scene = Scene::of(Fixture::TypeScript1).await?;
    let unreachable = "The upstream server could not be reached.";
    scene.upstream.refuse(Some(StatusCode::SERVICE_UNAVAILABLE));
    for answer in [
        scene.legacy("test_simple_text", json!({})).await?,
        scene.modern("test_simple_text", json!({})).await?,
    ] {
        assert_eq!(said(&answer), unreachable, "{answer}");
        assert_eq!(answer["result"]["isError"], true);
    }
    // MCP-X-86, MCP-X-88: never a 401 of ours.
    scene.upstream.refuse(Some(StatusCode::UNAUTHORIZED));
    let answer = scene.legacy("test_simple_text", json!({})).await?;
    let words = said(&answer);
    assert!(
        words.starts_with("Connect your account first: http"),
        "{answer}"
    );
    assert!(words.contains("/w/harbour/sources/"), "{answer}");
    scene.upstream.refuse(None);
    assert_eq!(
        said(&scene.legacy("test_simple_text", json!({})).await?),
        SIMPLE
    );
    scene.upstream.kill()?;
    assert_eq!(
        said(&scene.legacy("test_simple_text", json!({})).await?),
        unreachable
    );
    // Lists are served from the registry, whatever the server does (`docs/translation-rules.md`,
    // *Errors and authorization across legs*).
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    assert!(list.text.contains("test_simple_text"), "{}", list.text);
    // The console shows the changes.
    let (status, refused) = scene.sync(json!({})).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let known = scene.owner.console().get(&scene.path("/upstream")).await?;
    assert!(known["last_error"].is_string(), "{known}");
    assert!(
        !scene.stack.log().contains(SECRET),
        "no log shows the secret"
    );
    Ok(())
}

#[tokio::test]
async fn x_7_a_server_that_forgets_its_sessions_gets_new_ones() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    assert_eq!(said(&called(&session, "test_count", json!({})).await?), "1");
    let theirs = scene.upstream.seen_of("tools/call")[0].clone();
    // Another client ends the session at the server itself.
    let ended = reqwest::Client::builder()
        .build()?
        .delete(scene.upstream.url())
        .bearer_auth(SECRET)
        .header(
            "mcp-session-id",
            theirs.header("mcp-session-id").context("a session")?,
        )
        .header("mcp-protocol-version", "2025-11-25")
        .send()
        .await?;
    assert!(ended.status().is_success(), "{}", ended.status());
    // One answer, and the count begins again: the session is another one.
    assert_eq!(said(&called(&session, "test_count", json!({})).await?), "1");
    assert_eq!(said(&called(&session, "test_count", json!({})).await?), "2");
    Ok(())
}

#[tokio::test]
async fn h_12_arguments_are_mirrored_by_the_servers_own_schema() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript2).await?;
    let arguments = json!({"region": "größer", "priority": 3, "query": "x"});
    let answer = scene.legacy("test_headers", arguments).await?;
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let seen = scene.upstream.seen_of("tools/call");
    assert_eq!(
        seen[0].header("mcp-param-region"),
        Some("=?base64?Z3LDtsOfZXI=?=")
    );
    assert_eq!(seen[0].header("mcp-param-priority"), Some("3"));
    assert_eq!(seen[0].header("mcp-name"), Some("test_headers"));
    assert_eq!(seen[0].header("mcp-session-id"), None);
    Ok(())
}

#[tokio::test]
async fn changes_at_a_server_are_noticed_and_taken_over_or_held_until_somebody_agrees() -> Result<()>
{
    // Held by default.
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let console = scene.owner.console();
    let before = console
        .tool_ids("harbour", &scene.published.source_id)
        .await?
        .len();
    scene.legacy("test_trigger_tool_change", json!({})).await?;
    let (status, found) = scene.sync(json!({})).await?;
    assert_eq!(status, StatusCode::OK, "{found}");
    assert_eq!(found["held"], true, "{found}");
    assert_eq!(found["changes"][0]["change"], "added", "{found}");
    let now = console
        .tool_ids("harbour", &scene.published.source_id)
        .await?
        .len();
    assert_eq!(now, before, "held is held");
    let (status, refused) = scene.sync(json!({"agreed": "another"})).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    let digest = found["upstream"]["pending"]["digest"].clone();
    let (status, taken) = scene.sync(json!({"agreed": digest})).await?;
    assert_eq!(status, StatusCode::OK, "{taken}");
    assert_eq!(taken["upstream"]["pending"], Value::Null, "{taken}");
    let now = console
        .tool_ids("harbour", &scene.published.source_id)
        .await?
        .len();
    assert_eq!(now, before + 1);
    // Without holding, what goes is gone at once.
    let settings = json!({"hold_changes": false});
    console
        .expect(Method::PATCH, &scene.path("/upstream"), Some(settings))
        .await?;
    scene.legacy("test_trigger_tool_change", json!({})).await?;
    let (_, taken) = scene.sync(json!({})).await?;
    assert_eq!(taken["held"], false, "{taken}");
    assert_eq!(taken["changes"][0]["change"], "removed", "{taken}");
    Ok(())
}

#[tokio::test]
async fn a_member_tries_a_tool_of_a_server_in_the_console() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::TypeScript2] {
        let scene = Scene::of(fixture).await?;
        let console = scene.owner.console();
        let path = "/workspaces/harbour/tools?query=test_simple_text";
        let found = console.get(path).await?;
        let id = text(&found["items"][0], "id")?;
        let path = format!("/workspaces/harbour/tools/{id}/try");
        let tried = console.post(&path, json!({"arguments": {}})).await?;
        assert_eq!(tried["ok"], true, "{tried}");
        assert_eq!(tried["content"][0]["text"], SIMPLE, "{tried}");
        scene.upstream.refuse(Some(StatusCode::SERVICE_UNAVAILABLE));
        let tried = console.post(&path, json!({"arguments": {}})).await?;
        assert_eq!(tried["is_error"], true, "{tried}");
    }
    Ok(())
}

#[tokio::test]
async fn tl_7_names_are_published_as_they_are_and_a_prefix_moves_them_together() -> Result<()> {
    let scene = Scene::with(Fixture::Rmcp, json!({"prefix": "far_"})).await?;
    let answer = scene.legacy("far_test_simple_text", json!({})).await?;
    assert_eq!(said(&answer), SIMPLE);
    let console = scene.owner.console();
    let settings = json!({"prefix": ""});
    console
        .expect(Method::PATCH, &scene.path("/upstream"), Some(settings))
        .await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    eventually(
        "the name is the server's own",
        Duration::from_secs(10),
        async || {
            let list = session.request("tools/list", json!({})).await;
            list.is_ok_and(|list| list.text.contains("\"test_simple_text\""))
        },
    )
    .await?;
    assert_eq!(
        said(&called(&session, "test_simple_text", json!({})).await?),
        SIMPLE
    );
    // A second source with the same names: a clash is refused with the names.
    let body = json!({"url": scene.upstream.url(), "name": "Again", "credential": credential()});
    let again = console.post("/workspaces/harbour/upstreams", body).await?;
    let mut both = console
        .tool_ids("harbour", &scene.published.source_id)
        .await?;
    both.extend(console.tool_ids("harbour", &text(&again, "id")?).await?);
    let (status, refused) = console
        .send(
            Method::POST,
            "/workspaces/harbour/servers",
            Some(json!({"name": "both", "slug": "both", "tool_ids": both})),
        )
        .await?;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert!(
        refused.to_string().contains("test_simple_text"),
        "{refused}"
    );
    Ok(())
}

#[tokio::test]
async fn ab_15_an_address_inside_is_refused_when_a_server_is_added() -> Result<()> {
    let scene = Scene::of(Fixture::Rmcp).await?;
    let console = scene.owner.console();
    for url in [
        "http://169.254.169.254/mcp",
        "http://127.0.0.1:1/mcp",
        "http://[::1]/mcp",
        "http://localhost:1/mcp",
        "file:///etc/passwd",
        "https://user:pass@mcp.example.com/mcp",
    ] {
        for path in [
            "/workspaces/harbour/upstreams/preview",
            "/workspaces/harbour/upstreams",
        ] {
            let (status, refused) = console
                .send(Method::POST, path, Some(json!({"url": url})))
                .await?;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{url}: {refused}");
        }
    }
    Ok(())
}
