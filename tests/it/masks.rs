//! REVIEW-S-5: a server behind us that echoes the credential of its requests gives it to no client,
//! in any message.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_tests::{
    behind,
    console::Published,
    mcp::{LEGACY, McpClient, Reply, modern_message},
    oauth::OAuthClient,
    person::Person,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use serde_json::{Value, json};

const TOKEN: &str = "sk-echo/secret+0123456789";
const MASK: &str = "••••";
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
        let upstream = Upstream::start_that_echoes(fixture, TOKEN)?;
        let stack = Stack::builder().allow_egress(upstream.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let more = json!({"credential": {"kind": "bearer", "token": TOKEN}});
        let published = behind::publish(&console, "harbour", &upstream, &more).await?;
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

    async fn session(&self) -> Result<McpClient> {
        let able = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let (session, _) = self.mcp.initialize_able(LEGACY, able).await?;
        let level = session.request("logging/setLevel", json!({"level": "debug"}));
        assert_eq!(level.await?.json["result"], json!({}));
        Ok(session)
    }

    /// A request of 2026-07-28, of a client that can be asked and takes tasks.
    async fn alone(&self, method: &str, params: Value) -> Result<Value> {
        let mut client = self.mcp.modern_client(method, &params)?;
        if let Some(task) = params["taskId"].as_str() {
            client = client.with("mcp-name", task)?;
        }
        let mut message = modern_message(method, params);
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {"form": {}},
            "sampling": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        Ok(client.message(&message).await?.json)
    }
}

/// The server's echo is in there, and the token is not: as it is, or inside Base64.
fn assert_masked(what: &str, said: &Value) {
    let text = said.to_string();
    assert_hidden(what, &text);
    assert!(text.contains(MASK), "{what} has no echo: {text}");
}

fn assert_hidden(what: &str, text: &str) {
    assert!(!text.contains("sk-echo"), "{what}: {text}");
    for before in ["", "Bearer ", "x", "xx"] {
        let whole = STANDARD.encode(format!("{before}{TOKEN}"));
        let from = (before.len() * 8).div_ceil(6);
        let inside = &whole[from..from + 16];
        assert!(!text.contains(inside), "{what}, in Base64: {text}");
    }
}

/// A call with all that comes before its answer. Questions are answered.
async fn call(session: &McpClient, tool: &str, arguments: Value) -> Result<Vec<Value>> {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params});
    let mut stream = match session.start(&call).await? {
        Reply::Whole(answer) => return Ok(vec![answer.json]),
        Reply::Stream(stream) => stream,
    };
    let mut heard = Vec::new();
    loop {
        let message = tokio::time::timeout(SOON, stream.message())
            .await
            .with_context(|| format!("{tool}: {heard:?}"))??;
        let result = match message["method"].as_str() {
            Some("elicitation/create") => json!({"action": "decline"}),
            Some("sampling/createMessage") => json!({"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "Paris"}}),
            _ => Value::Null,
        };
        if !result.is_null() {
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            session.message(&response).await?;
        }
        let is_over = message["id"] == tool;
        heard.push(message);
        if is_over {
            return Ok(heard);
        }
    }
}

/// All messages of a server of this kind to a client of the session era.
async fn in_a_session(scene: &Scene) -> Result<()> {
    let session = scene.session().await?;
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        (
            "tools/call",
            json!({"name": "test_error_handling", "arguments": {}}),
        ),
    ] {
        let answer = session.request(method, params).await?;
        assert_masked(method, &answer.json);
    }
    let blob = session
        .request("resources/read", json!({"uri": "test://static-binary"}))
        .await?;
    assert_hidden("a blob", &blob.text);
    let blob = blob.json["result"]["contents"][0]["blob"].clone();
    let bytes = STANDARD.decode(blob.as_str().context("a blob")?)?;
    let begin = String::from_utf8_lossy(&bytes[..MASK.len()]).into_owned();
    assert_eq!(begin, MASK, "the rest of the blob is what it was");
    assert!(bytes.windows(4).any(|four| four == b"\x89PNG"));

    let heard = call(
        &session,
        "test_structured_content",
        json!({"city": "Paris"}),
    )
    .await?;
    let result = &heard.last().context("an answer")?["result"];
    assert_masked("a text", &result["content"][0]);
    assert_masked("structured content", &result["structuredContent"]);
    for (tool, method) in [
        ("test_tool_with_progress", "notifications/progress"),
        ("test_tool_with_logging", "notifications/message"),
        ("test_elicitation", "elicitation/create"),
        ("test_sampling", "sampling/createMessage"),
    ] {
        let arguments = match tool {
            "test_elicitation" => json!({"message": "Who?"}),
            "test_sampling" => json!({"prompt": "Which?"}),
            _ => json!({}),
        };
        let heard = call(&session, tool, arguments).await?;
        let of_kind: Vec<&Value> = heard.iter().filter(|one| one["method"] == method).collect();
        assert!(!of_kind.is_empty(), "{tool}: {heard:?}");
        for one in of_kind {
            assert_masked(method, one);
        }
        assert_masked(tool, heard.last().context("an answer")?);
    }
    // An error of the server, in its own words.
    let params = json!({"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}});
    let refused = session.request("prompts/get", params).await?;
    assert_ne!(refused.code(), 0);
    assert_masked("an error", &refused.json);
    Ok(())
}

async fn alone(scene: &Scene) -> Result<()> {
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        (
            "tools/call",
            json!({"name": "test_structured_content", "arguments": {"city": "Paris"}}),
        ),
    ] {
        let answer = scene.alone(method, params).await?;
        assert_masked(method, &answer["result"]);
    }
    let asks = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    let asked = scene.alone("tools/call", asks).await?;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_masked("a question", &asked["result"]["inputRequests"]);
    Ok(())
}

/// The console as a person of the workspace sees it.
async fn in_the_console(scene: &Scene) -> Result<()> {
    let console = scene.owner.console();
    let source = &scene.published.source_id;
    for path in ["", "/tools", "/prompts", "/resources"] {
        let path = match path {
            "" => format!("/workspaces/harbour/sources/{source}"),
            rest => format!("/workspaces/harbour{rest}"),
        };
        let shown = console.get(&path).await?.to_string();
        assert_hidden(&path, &shown);
    }
    let tools = console.get("/workspaces/harbour/tools").await?;
    let items = tools["items"].as_array().context("items")?;
    let tool = items
        .iter()
        .find(|tool| {
            tool["original_name"] == "test_simple_text" || tool["name"] == "test_simple_text"
        })
        .context("the tool")?;
    let path = format!(
        "/workspaces/harbour/tools/{}/try",
        tool["id"].as_str().context("id")?
    );
    let tried = console.post(&path, json!({"arguments": {}})).await?;
    assert_masked("a try", &tried);
    Ok(())
}

async fn ended(scene: &Scene, task: &Value) -> Result<Value> {
    for _ in 0..200 {
        let seen = scene.alone("tasks/get", json!({"taskId": task})).await?;
        let status = seen["result"]["status"].as_str().unwrap_or_default();
        if !matches!(status, "working" | "input_required") {
            return Ok(seen);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the task does not end")
}

#[tokio::test]
async fn s5_a_server_of_sessions_that_echoes_its_credential_gives_it_to_no_client() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    in_a_session(&scene).await?;
    alone(&scene).await?;
    in_the_console(&scene).await?;
    // A task of 2025-11-25: its record and its result.
    let session = scene.session().await?;
    let params = json!({"name": "task_required", "arguments": {}, "task": {"ttl": 60_000}});
    let created = session.request("tools/call", params).await?;
    assert_hidden("a task", &created.text);
    let id = created.json["result"]["task"]["taskId"].clone();
    let result = session
        .request("tasks/result", json!({"taskId": id}))
        .await?;
    assert_masked("the result of a task", &result.json);
    let seen = session.request("tasks/get", json!({"taskId": id})).await?;
    assert_eq!(seen.json["result"]["status"], "failed");
    assert_hidden("the status of a task", &seen.text);
    // The server was given the token all the time.
    let given = format!("Bearer {TOKEN}");
    let seen = scene.upstream.seen();
    assert!(
        seen.iter()
            .all(|one| one.header("authorization") == Some(&given))
    );
    Ok(())
}

#[tokio::test]
async fn s5_a_server_of_2026_07_28_that_echoes_its_credential_gives_it_to_no_client() -> Result<()>
{
    let scene = Scene::of(Fixture::TypeScript2).await?;
    in_a_session(&scene).await?;
    alone(&scene).await?;
    in_the_console(&scene).await?;
    for (tool, arguments) in [
        ("slow_compute", json!({"seconds": 0.2})),
        ("protocol_error_job", json!({})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let created = scene.alone("tools/call", params).await?;
        assert_hidden("a task", &created.to_string());
        let task = created["result"]["taskId"].clone();
        assert!(task.is_string(), "{created}");
        assert_masked("a task that ended", &ended(&scene, &task).await?);
    }
    Ok(())
}

#[tokio::test]
async fn s5_a_server_of_http_sse_that_echoes_its_credential_gives_it_to_no_client() -> Result<()> {
    let scene = Scene::of(Fixture::HttpSse).await?;
    in_a_session(&scene).await?;
    alone(&scene).await?;
    in_the_console(&scene).await
}
