//! Questions of other people's servers to clients, over several nodes (issue of every revision;
//! MCP-XT-1…MCP-XT-5): asked on one node, answered on another, retried on a third. The servers are
//! written with the official SDKs, one of the session era and one of 2026-07-28.

use anyhow::{Context, Result};
use portolan_tests::{
    behind::publish,
    cluster::Cluster,
    fixture::FixtureApi,
    fleet::sign_up,
    mcp::{Answer, McpClient, modern_message},
    oauth::OAuthClient,
    person::Person,
    upstream::{Fixture, Upstream},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

const TWO_QUESTIONS: &str = "test_input_required_result_multi_round";
const ONE_QUESTION: &str = "test_input_required_result_elicitation";
const THREE_AT_ONCE: &str = "test_input_required_result_multiple_inputs";

/// Three nodes before one upstream.
struct Scene {
    cluster: Cluster,
    mcp: McpClient,
    owner: Person,
    url: String,
    _upstream: Upstream,
    _fixture: FixtureApi,
}

fn able() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})
}

impl Scene {
    async fn of(fixture: Fixture) -> Result<Self> {
        let upstream = Upstream::start(fixture)?;
        let api = FixtureApi::start()?;
        let allowed = format!("{},{}", api.address(), upstream.address());
        let cluster = Cluster::builder()
            .nodes(3)
            .setting("egress_allow", allowed)
            .start(&api)
            .await?;
        let owner = sign_up(&cluster, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let published = publish(&console, "harbour", &upstream, &json!({})).await?;
        let client = OAuthClient::register(cluster.url(), "Harness").await?;
        let tokens = client.authorize(&owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok(Self {
            cluster,
            mcp,
            owner,
            url: published.url,
            _upstream: upstream,
            _fixture: api,
        })
    }

    fn on(&self, node: usize, client: &McpClient) -> Result<McpClient> {
        self.cluster.on(node, client)
    }

    /// A session whose client can be asked.
    async fn session(&self, version: &str, capabilities: Value) -> Result<McpClient> {
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "harness", "version": "1"}});
        let answer = self.mcp.request("initialize", params).await?;
        let session = self
            .mcp
            .clone()
            .with("mcp-session-id", answer.header("mcp-session-id"))?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.message(&ready).await?;
        Ok(session)
    }

    /// A modern call on a node.
    async fn call(&self, node: usize, tool: &str, more: Value) -> Result<Answer> {
        modern_call(&self.on(node, &self.mcp)?, tool, more).await
    }
}

async fn modern_call(client: &McpClient, tool: &str, more: Value) -> Result<Answer> {
    let mut params = json!({"name": tool, "arguments": {}});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    let client = client.modern_client("tools/call", &params)?;
    let mut message = modern_message("tools/call", params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able();
    client.message(&message).await
}

fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// The answer of a client of this kind to a question.
fn answer_to(question: &Value) -> Value {
    match question["method"].as_str() {
        Some("elicitation/create") => {
            let properties = &question["params"]["requestedSchema"]["properties"];
            let content = if properties.get("color").is_some() {
                json!({"color": "blue"})
            } else {
                json!({"name": "Ada"})
            };
            json!({"action": "accept", "content": content})
        }
        Some("sampling/createMessage") => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}})
        }
        _ => json!({"roots": [{"uri": "file:///a"}]}),
    }
}

/// Calls a tool of a session on the first node and answers each question on another one.
async fn answered_elsewhere(scene: &Scene, session: &McpClient, tool: &str) -> Result<Value> {
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let mut stream = scene.on(0, session)?.start(&call).await?.stream()?;
    let mut node = 0;
    loop {
        let message = stream.message().await?;
        if message["id"] == "call" {
            return Ok(message);
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            node = 1 + node % 2;
            let response =
                json!({"jsonrpc": "2.0", "id": message["id"], "result": answer_to(&message)});
            let taken = scene.on(node, session)?.message(&response).await?;
            assert_eq!(
                taken.status,
                StatusCode::ACCEPTED,
                "MCP-T-21: {}",
                taken.text
            );
        }
    }
}

/// The keys, with the answers to them, and the state of a result that asks.
fn asked(answer: &Answer) -> Result<Value> {
    let result = &answer.json["result"];
    assert_eq!(result["resultType"], "input_required", "{}", answer.text);
    let requests = result["inputRequests"].as_object().context("questions")?;
    let responses: serde_json::Map<String, Value> = requests
        .iter()
        .map(|(key, question)| (key.clone(), answer_to(question)))
        .collect();
    Ok(json!({"inputResponses": responses, "requestState": result["requestState"]}))
}

fn refusal(answer: &Answer) -> (u16, &str) {
    let message = answer.json["error"]["message"].as_str();
    (answer.status.as_u16(), message.unwrap_or_default())
}

/// The words of the issue: asked on node A and answered on node B; retried on a third node; replayed, tampered and foreign refused.
async fn every_era_is_asked(fixture: Fixture) -> Result<()> {
    let scene = Scene::of(fixture).await?;

    // MCP-X-20, MCP-X-28: sessions of two revisions.
    for version in ["2025-06-18", "2025-11-25"] {
        let session = scene.session(version, able()).await?;
        let answer = answered_elsewhere(&scene, &session, TWO_QUESTIONS).await?;
        assert_eq!(
            said(&answer),
            "Ada likes blue.",
            "{fixture:?} {version}: {answer}"
        );
        let answer = answered_elsewhere(&scene, &session, THREE_AT_ONCE).await?;
        assert_eq!(said(&answer), "Hello Ada, 1 roots", "{fixture:?}: {answer}");
    }

    // MCP-X-22, MCP-X-29: begun on the first node, gone on with on the second, ended on the third.
    let first = scene.call(0, TWO_QUESTIONS, json!({})).await?;
    let retry = asked(&first)?;
    let second = scene.call(1, TWO_QUESTIONS, retry.clone()).await?;
    let last = asked(&second)?;
    let third = scene.call(2, TWO_QUESTIONS, last).await?;
    assert_eq!(
        said(&third.json),
        "Ada likes blue.",
        "{fixture:?}: {}",
        third.text
    );
    assert_eq!(third.json["result"]["resultType"], "complete");

    // MCP-MR-6, MCP-MR-7: tampered, foreign, of another request.
    let asks = scene.call(0, ONE_QUESTION, json!({})).await?;
    let retry = asked(&asks)?;
    let state = retry["requestState"].as_str().context("a state")?;
    let mut tampered = retry.clone();
    let changed = if state.as_bytes()[40] == b'A' {
        "B"
    } else {
        "A"
    };
    tampered["requestState"] = json!(format!("{}{changed}{}", &state[..40], &state[41..]));
    let answer = scene.call(1, ONE_QUESTION, tampered).await?;
    assert_eq!(refusal(&answer), (200, "Invalid requestState"));
    let answer = scene.call(1, TWO_QUESTIONS, retry.clone()).await?;
    let other = "requestState belongs to another request";
    assert_eq!(refusal(&answer), (200, other));
    let stranger = OAuthClient::register(scene.cluster.url(), "Stranger").await?;
    let tokens = stranger.authorize(&scene.owner, &scene.url).await?;
    let theirs = McpClient::new(&scene.url)?.with_token(&tokens.access)?;
    let theirs = scene.on(1, &theirs)?;
    let answer = modern_call(&theirs, ONE_QUESTION, retry.clone()).await?;
    assert_eq!(refusal(&answer), (200, "Invalid requestState"));
    let answer = scene.call(1, ONE_QUESTION, retry.clone()).await?;
    assert_eq!(said(&answer.json), "Hello, Ada!", "{}", answer.text);
    if fixture == Fixture::TypeScript1 {
        // MCP-X-27: a suspended call can be resumed once. A state that is passed on means the same
        // each time.
        let answer = scene.call(2, ONE_QUESTION, retry).await?;
        assert_eq!(refusal(&answer), (200, "requestState already used"));
    }

    // MCP-XT-4, MCP-V-1 and MCP-V-2: a client that cannot be asked gets an error that says so.
    let shy = scene.session("2025-03-26", json!({})).await?;
    let params = json!({"name": "test_missing_capability", "arguments": {}});
    let answer = shy.request("tools/call", params).await?;
    if fixture == Fixture::TypeScript2 {
        assert_eq!(
            said(&answer.json),
            "This tool needs the client feature \"sampling\", which this client does not offer."
        );
    }
    Ok(())
}

#[tokio::test]
async fn xt_1_and_x_28_a_server_of_the_session_era_asks_clients_of_every_era_over_three_nodes()
-> Result<()> {
    every_era_is_asked(Fixture::TypeScript1).await
}

#[tokio::test]
async fn xt_2_and_x_29_a_server_of_2026_07_28_asks_clients_of_every_era_over_three_nodes()
-> Result<()> {
    every_era_is_asked(Fixture::TypeScript2).await
}

#[tokio::test]
async fn xt_1_and_v_5_a_parked_call_whose_node_died_is_lost_and_says_so() -> Result<()> {
    let mut scene = Scene::of(Fixture::TypeScript1).await?;
    let retry = asked(&scene.call(0, ONE_QUESTION, json!({})).await?)?;
    scene.cluster.nodes[0].kill()?;
    let answer = scene.call(1, ONE_QUESTION, retry).await?;
    assert_eq!(
        said(&answer.json),
        "The pending operation was lost. Call the tool again.",
        "{}",
        answer.text
    );
    Ok(())
}
