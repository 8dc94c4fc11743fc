//! Tasks through Portolan, over two nodes that share Redis: of upstream servers of both eras, for
//! clients of both and of none (MCP-X-50…MCP-X-5C, MCP-XT-9, MCP-XT-10, MCP-XT-12).

use anyhow::{Context, Result, bail};
use portolan_tests::{
    behind::publish,
    cluster::Cluster,
    fixture::FixtureApi,
    fleet::sign_up,
    mcp::{Answer, LEGACY, McpClient, Reply, modern_message},
    oauth::OAuthClient,
    person::Person,
    upstream::{Fixture, Upstream},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Two nodes before one upstream.
struct Scene {
    cluster: Cluster,
    mcp: McpClient,
    upstream: Upstream,
    _owner: Person,
    _fixture: FixtureApi,
}

impl Scene {
    async fn of(fixture: Fixture) -> Result<Self> {
        let upstream = Upstream::start(fixture)?;
        let api = FixtureApi::start()?;
        let allowed = format!("{},{}", api.address(), upstream.address());
        let cluster = Cluster::builder()
            .nodes(2)
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
            upstream,
            _owner: owner,
            _fixture: api,
        })
    }

    fn on(&self, node: usize, client: &McpClient) -> Result<McpClient> {
        self.cluster.on(node, client)
    }

    async fn session(&self, version: &str) -> Result<McpClient> {
        let params = json!({"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "harness", "version": "1"}});
        let answer = self.mcp.request("initialize", params).await?;
        let session = self
            .mcp
            .clone()
            .with("mcp-session-id", answer.header("mcp-session-id"))?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.message(&ready).await?;
        Ok(session)
    }

    /// A request of 2026-07-28 on a node, by a client that takes tasks or not.
    async fn modern(
        &self,
        node: usize,
        takes: bool,
        method: &str,
        params: Value,
    ) -> Result<Answer> {
        let mut client = self.on(node, &self.mcp)?.modern_client(method, &params)?;
        if let Some(id) = params["taskId"].as_str() {
            client = client.with("mcp-name", id)?;
        }
        let mut message = modern_message(method, params);
        let mut able = json!({"elicitation": {"form": {}}});
        if takes {
            able["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able;
        client.message(&message).await
    }

    async fn seen_until(&self, id: &Value, status: &str) -> Result<Value> {
        for node in (0..2).cycle().take(200) {
            let seen = self
                .modern(node, true, "tasks/get", json!({"taskId": id}))
                .await?;
            if seen.json["result"]["status"] == status {
                return Ok(seen.json["result"].clone());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        bail!("the task never became {status}")
    }

    /// Until the upstream has seen more of these.
    async fn until_seen(&self, method: &str, before: usize) {
        while self.upstream.seen_of(method).len() <= before {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// MCP-XT-12: ids of upstream tasks stay there.
    fn assert_hidden(&self, answers: &str) {
        for seen in self.upstream.seen() {
            if let Some(id) = seen.json()["params"]["taskId"].as_str() {
                assert!(!answers.contains(id), "MCP-XT-12: {answers}");
            }
        }
    }
}

fn call(name: &str, more: Value) -> Value {
    let mut params = json!({"name": name, "arguments": {}});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}

fn said(message: &Value) -> &str {
    message["content"][0]["text"].as_str().unwrap_or_default()
}

/// Waits for a task on a session's stream, and answers what it asks: the questions, and the response.
async fn result_of(session: &McpClient, id: &Value) -> Result<(Vec<Value>, Value)> {
    let wait =
        json!({"jsonrpc": "2.0", "id": "wait", "method": "tasks/result", "params": {"taskId": id}});
    let mut stream = match session.start(&wait).await? {
        Reply::Whole(answer) => return Ok((Vec::new(), answer.json)),
        Reply::Stream(stream) => stream,
    };
    let mut questions = Vec::new();
    loop {
        let message = stream.message().await?;
        if message["id"] == "wait" {
            return Ok((questions, message));
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            let answer = json!({"action": "accept", "content": {"confirm": true}});
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
            assert_eq!(
                session.message(&response).await?.status,
                StatusCode::ACCEPTED
            );
            questions.push(message);
        }
    }
}

async fn status_of(session: &McpClient, id: &Value) -> Result<String> {
    let seen = session.request("tasks/get", json!({"taskId": id})).await?;
    let status = seen.json["result"]["status"].as_str();
    Ok(status.with_context(|| seen.text.clone())?.to_owned())
}

/// A client of 2025-11-25 calls a tool as a task, on the first node, and gets its result on the second.
async fn as_a_task(
    scene: &Scene,
    session: &McpClient,
    params: Value,
) -> Result<(Value, Vec<Value>, Value)> {
    let created = scene.on(0, session)?.request("tools/call", params).await?;
    let task = created.json["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{}", created.text);
    assert!(
        task["ttl"].is_u64() && task["pollInterval"].is_u64(),
        "MCP-X-55: {task}"
    );
    let (questions, result) = result_of(&scene.on(1, session)?, &task["taskId"]).await?;
    assert_eq!(
        result["result"]["_meta"][RELATED]["taskId"], task["taskId"],
        "MCP-TK-7: {result}"
    );
    for question in &questions {
        assert_eq!(
            question["params"]["_meta"][RELATED]["taskId"], task["taskId"],
            "MCP-TK-12"
        );
    }
    Ok((task["taskId"].clone(), questions, result))
}

#[tokio::test]
async fn tasks_of_an_upstream_of_2026_07_28_for_clients_of_every_era() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript2).await?;
    let session = scene.session(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    assert!(
        list.text
            .contains(r#""execution":{"taskSupport":"optional"}"#),
        "MCP-X-50"
    );

    // MCP-X-50: a plain result is a task of ours all the same.
    let greet = call("greet", json!({"arguments": {"name": "Ada"}, "task": {}}));
    let (_, _, result) = as_a_task(&scene, &session, greet).await?;
    assert_eq!(said(&result["result"]), "Hello, Ada!");
    // MCP-X-57, MCP-XT-9.
    let (id, _, result) =
        as_a_task(&scene, &session, call("failing_job", json!({"task": {}}))).await?;
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(status_of(&session, &id).await?, "failed");
    // MCP-X-58.
    let (id, questions, result) = as_a_task(
        &scene,
        &session,
        call("confirm_delete", json!({"task": {}})),
    )
    .await?;
    assert_eq!(questions.len(), 1, "pushed once");
    assert_eq!(said(&result["result"]), "Deleted.");
    assert_eq!(status_of(&session, &id).await?, "completed");
    // MCP-X-57: an error of the protocol.
    let created = session
        .request(
            "tools/call",
            call("protocol_error_job", json!({"task": {}})),
        )
        .await?;
    let id = &created.json["result"]["task"]["taskId"];
    let (_, failed) = result_of(&session, id).await?;
    assert_eq!(failed["error"]["message"], "The job broke.");
    assert_eq!(status_of(&session, id).await?, "failed");
    // MCP-X-5A: own record at once and finally, and the upstream receives the cancellation.
    let looks = scene.upstream.seen_of("tasks/get").len();
    let long = call(
        "slow_compute",
        json!({"arguments": {"seconds": 60}, "task": {}}),
    );
    let created = session.request("tools/call", long).await?;
    let id = &created.json["result"]["task"]["taskId"];
    scene.until_seen("tasks/get", looks).await;
    let cancelled = scene
        .on(1, &session)?
        .request("tasks/cancel", json!({"taskId": id}))
        .await?;
    assert_eq!(cancelled.json["result"]["status"], "cancelled");
    scene.until_seen("tasks/cancel", 0).await;
    // MCP-X-5C.
    let listed = scene
        .on(1, &session)?
        .request("tasks/list", json!({}))
        .await?;
    assert_eq!(
        listed.json["result"]["tasks"].as_array().map(Vec::len),
        Some(5),
        "{}",
        listed.text
    );
    scene.assert_hidden(&listed.text);

    // MCP-X-52: a legacy client that wants no task waits; one of 2026-07-28 can declare it.
    for version in [LEGACY, "2025-06-18"] {
        let session = scene.session(version).await?;
        let (_, result) = awaited(&session, "failing_job").await?;
        assert_eq!(result["result"]["isError"], true, "{version} {result}");
    }
    let refused = scene
        .modern(0, false, "tools/call", call("failing_job", json!({})))
        .await?;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::BAD_REQUEST, -32021)
    );
    let created = scene
        .modern(0, true, "tools/call", call("failing_job", json!({})))
        .await?;
    let id = &created.json["result"]["taskId"];
    let seen = scene.seen_until(id, "completed").await?;
    assert_eq!(seen["result"]["isError"], true, "MCP-TX-7: {seen}");
    scene.assert_hidden(&format!("{} {seen}", created.text));
    Ok(())
}

/// A plain call of a session, whose questions are answered.
async fn awaited(session: &McpClient, tool: &str) -> Result<(Vec<Value>, Value)> {
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let mut stream = match session.start(&call).await? {
        Reply::Whole(answer) => return Ok((Vec::new(), answer.json)),
        Reply::Stream(stream) => stream,
    };
    let mut questions = Vec::new();
    loop {
        let message = stream.message().await?;
        if message["id"] == "call" {
            return Ok((questions, message));
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            let answer = json!({"action": "accept", "content": {"confirm": true}});
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
            session.message(&response).await?;
            questions.push(message);
        }
    }
}

#[tokio::test]
async fn tasks_of_an_upstream_of_2025_11_25_for_clients_of_every_era() -> Result<()> {
    let scene = Scene::of(Fixture::TypeScript1).await?;
    let session = scene.session(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    assert!(
        list.text
            .contains(r#""execution":{"taskSupport":"required"}"#),
        "MCP-TL-21"
    );
    // MCP-TK-2, MCP-X-51.
    let refused = session
        .request("tools/call", call("task_required", json!({})))
        .await?;
    assert_eq!(refused.code(), -32601, "{}", refused.text);
    let refused = session
        .request("tools/call", call("test_simple_text", json!({"task": {}})))
        .await?;
    assert_eq!(refused.code(), -32601, "MCP-X-54");

    let (_, _, result) = as_a_task(
        &scene,
        &session,
        call("task_optional", json!({"task": {"ttl": 60_000}})),
    )
    .await?;
    assert_eq!(said(&result["result"]), "Computed.");
    let (id, _, result) =
        as_a_task(&scene, &session, call("task_required", json!({"task": {}}))).await?;
    assert_eq!(result["result"]["isError"], true, "MCP-TK-8");
    assert_eq!(status_of(&session, &id).await?, "failed");
    // MCP-TK-13, MCP-X-28.
    let (_, questions, result) =
        as_a_task(&scene, &session, call("task_asks", json!({"task": {}}))).await?;
    assert_eq!(questions.len(), 1, "pushed once");
    assert_eq!(said(&result["result"]), "Deleted.");

    // MCP-X-51: clients that know of no tasks wait.
    let older = scene.session("2025-06-18").await?;
    let (_, result) = awaited(&older, "task_required").await?;
    assert_eq!(said(&result["result"]), "The job failed.", "{result}");
    let (questions, result) = awaited(&older, "task_asks").await?;
    assert_eq!((questions.len(), said(&result["result"])), (1, "Deleted."));
    scene.assert_hidden(&questions[0].to_string());
    // MCP-XT-10.
    let plain = scene
        .modern(0, false, "tools/call", call("task_required", json!({})))
        .await?;
    assert_eq!(
        said(&plain.json["result"]),
        "The job failed.",
        "{}",
        plain.text
    );
    assert_eq!(plain.json["result"]["resultType"], "complete");

    // MCP-X-53: `required` is a task, `optional` is not.
    let plain = scene
        .modern(0, true, "tools/call", call("task_optional", json!({})))
        .await?;
    assert_eq!(said(&plain.json["result"]), "Computed.", "{}", plain.text);
    let created = scene
        .modern(0, true, "tools/call", call("task_required", json!({})))
        .await?;
    assert_eq!(
        created.json["result"]["resultType"], "task",
        "{}",
        created.text
    );
    let seen = scene
        .seen_until(&created.json["result"]["taskId"], "completed")
        .await?;
    assert_eq!(seen["result"]["isError"], true, "MCP-X-56: {seen}");
    // MCP-X-59.
    let created = scene
        .modern(0, true, "tools/call", call("task_asks", json!({})))
        .await?;
    let id = &created.json["result"]["taskId"];
    let seen = scene.seen_until(id, "input_required").await?;
    let requests = seen["inputRequests"].as_object().context("requests")?;
    let (key, request) = requests.iter().next().context("a request")?;
    assert_eq!(request["method"], "elicitation/create");
    scene.assert_hidden(&seen.to_string());
    let answers = json!({key: {"action": "accept", "content": {"confirm": true}}});
    let update = json!({"taskId": id, "inputResponses": answers});
    let updated = scene.modern(1, true, "tasks/update", update).await?;
    assert_eq!(
        updated.json["result"]["resultType"], "complete",
        "{}",
        updated.text
    );
    let seen = scene.seen_until(id, "completed").await?;
    assert_eq!(said(&seen["result"]), "Deleted.");
    // MCP-X-5B: a task that ended at the upstream too.
    let cancelled = scene
        .modern(1, true, "tasks/cancel", json!({"taskId": id}))
        .await?;
    assert_eq!(cancelled.json["result"]["resultType"], "complete");
    Ok(())
}
