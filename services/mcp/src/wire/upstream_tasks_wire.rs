//! Tasks of upstream servers, over the wire: awaited, asked for their clients, cancelled and lost
//! (MCP-X-50…MCP-X-5F).
//!
//! The servers use the freedom of the specification; those with the official SDKs are in
//! `tests/it/tasks.rs`.

use std::sync::Mutex;

use axum::{response::IntoResponse, routing::post};

use crate::wire::{
    answers_wire::event,
    tasks_wire::{R4, last},
    *,
};

/// Requests that the servers received.
pub(crate) type Heard = Arc<Mutex<Vec<Value>>>;

pub(crate) fn heard_of(heard: &Heard, method: &str) -> Vec<Value> {
    let heard = heard.lock().unwrap();
    let of = heard.iter().filter(|request| request["method"] == method);
    of.cloned().collect()
}

fn task(id: &str, status: &str) -> Value {
    let at = "2026-11-21T12:00:00Z";
    json!({"taskId": id, "status": status, "createdAt": at, "lastUpdatedAt": at})
}

pub(crate) fn with(mut task: Value, more: Value) -> Value {
    let members = more.as_object().unwrap().clone();
    task.as_object_mut().unwrap().extend(members);
    task
}

fn content(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

const FORM: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

/// The answers of a server of 2026-07-28: its tools are named for their behaviour.
fn modern_answer(heard: &Heard, request: &Value) -> Result<Value, (i64, Value)> {
    let params = &request["params"];
    let id = params["taskId"].as_str().unwrap_or_default();
    let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    let takes = declared.get("io.modelcontextprotocol/tasks").is_some();
    let method = request["method"].as_str().unwrap();
    if method != "server/discover" && !takes {
        let required =
            json!({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
        return Err((-32021, required));
    }
    let complete = |more: Value| Ok(with(json!({"resultType": "complete"}), more));
    match method {
        "server/discover" => {
            complete(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}))
        }
        "tools/call" => {
            let name = params["name"].as_str().unwrap();
            let more = json!({"resultType": "task", "ttlMs": null, "pollIntervalMs": 1});
            Ok(with(task(&format!("secret-{name}"), "working"), more))
        }
        "tasks/get" if id == "secret-asks" => {
            let answered = heard_of(heard, "tasks/update");
            let answer = answered
                .last()
                .map(|update| update["params"]["inputResponses"]["k"].clone());
            match answer {
                Some(answer) => {
                    let name = answer["content"]["name"]
                        .as_str()
                        .unwrap_or("nobody")
                        .to_owned();
                    let result = json!({"result": content(&format!("Hello {name}"), false)});
                    complete(with(task(id, "completed"), result))
                }
                None => {
                    let schema: Value = serde_json::from_str(FORM).unwrap();
                    let asked = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}});
                    complete(with(
                        task(id, "input_required"),
                        json!({"inputRequests": {"k": asked}}),
                    ))
                }
            }
        }
        "tasks/get" if id == "secret-fails" => complete(with(
            task(id, "completed"),
            json!({"result": content("no", true)}),
        )),
        "tasks/get" if id == "secret-lost" => Err((-32602, Value::Null)),
        "tasks/get" => complete(with(task(id, "working"), json!({"pollIntervalMs": 1}))),
        _ => complete(json!({})),
    }
}

/// The answers of a server of 2025-11-25.
fn legacy_answer(request: &Value) -> Result<Value, (i64, Value)> {
    let params = &request["params"];
    let id = params["taskId"].as_str().unwrap_or_default();
    match request["method"].as_str().unwrap() {
        "initialize" => Ok(
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}),
        ),
        "server/discover" => Err((-32600, Value::Null)),
        "tools/call" if params.get("task").is_some() => {
            let more = json!({"ttl": null, "pollInterval": 1});
            Ok(json!({"task": with(task("secret-old", "working"), more)}))
        }
        "tools/call" => Ok(content("plain", false)),
        "tasks/get" => Ok(with(task(id, "completed"), json!({"ttl": null}))),
        "tasks/result" => {
            let related =
                json!({"_meta": {"io.modelcontextprotocol/related-task": {"taskId": id}}});
            Ok(with(content("done", false), related))
        }
        _ => Err((-32601, Value::Null)),
    }
}

/// Both servers.
pub(crate) fn servers(heard: &Heard) -> Router {
    let answered = |request: &Value, outcome: Result<Value, (i64, Value)>| {
        if request.get("id").is_none() {
            return StatusCode::ACCEPTED.into_response();
        }
        let body = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            Err((code, data)) => {
                json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no", "data": data}})
            }
        };
        ([("mcp-session-id", "theirs")], Json(body)).into_response()
    };
    let (old, new) = (Arc::clone(heard), Arc::clone(heard));
    let modern = move |Json(request): Json<Value>| {
        let heard = Arc::clone(&new);
        async move {
            heard.lock().unwrap().push(request.clone());
            let outcome = modern_answer(&heard, &request);
            answered(&request, outcome)
        }
    };
    let legacy = move |Json(request): Json<Value>| {
        let heard = Arc::clone(&old);
        async move {
            heard.lock().unwrap().push(request.clone());
            let is_notice = request.get("id").is_none();
            let outcome = if is_notice {
                Ok(json!({}))
            } else {
                legacy_answer(&request)
            };
            let mut answer = answered(&request, outcome);
            // A request without a session is refused in its own way (MCP-X-3).
            if request["method"] == "server/discover" {
                *answer.status_mut() = StatusCode::BAD_REQUEST;
            }
            answer
        }
    };
    Router::new()
        .route("/new", post(modern))
        .route("/old", post(legacy))
}

impl Node {
    /// Publishes tools of one of the upstream servers.
    pub(crate) fn publish_theirs(&self, server: &str, support: &str, names: &[&str]) {
        let source = SourceId::generate();
        let tools = names.iter().map(|&name| PublishedTool {
            plan: json!({"upstream": {"name": name, "execution": {"taskSupport": support}}}),
            ..tool(source, name, "/", json!({"type": "object"}))
        });
        let mut row = self.row(tools.collect());
        let mut published = self.source();
        published.kind = SourceKind::Mcp;
        published.base_url = format!("http://{}/{server}", self.upstream);
        row.sources = [(source, published)].into();
        self.serve(row, &LimitSet::default());
    }

    async fn heard(&self, method: &str) -> Vec<Value> {
        loop {
            let heard = heard_of(&self.heard, method);
            if !heard.is_empty() {
                return heard;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn waits_for(&self, session: &str, id: &Value) -> Value {
        let answer = self
            .call(session, "tasks/result", json!({"taskId": id}))
            .await;
        last(&answer)
    }
}

#[tokio::test]
async fn x_50_x_55_and_x_58_a_task_of_a_modern_server_is_a_task_of_the_session_era() {
    let node = Node::start().await;
    node.publish_theirs("new", "optional", &["asks", "fails"]);
    let session = node.asked_session().await;
    let created = node.begin(&session, "asks", json!({})).await;
    assert_eq!(
        (&created["ttl"], &created["pollInterval"]),
        (&json!(3_600_000), &json!(1000))
    );
    let id = &created["taskId"];
    node.until(&session, id, "input_required").await;
    let body = rpc("tasks/result", json!({"taskId": id}));
    let request = node.request("POST", &[("mcp-session-id", &session)], body.to_string());
    let mut stream = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    let question = data(&event(&mut stream).await.unwrap());
    assert_eq!(question["params"]["message"], "Who?");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    node.post(&[("mcp-session-id", &session)], &answer).await;
    let result = data(&event(&mut stream).await.unwrap());
    assert_eq!(result["result"]["content"][0]["text"], "Hello Ada");
    assert_eq!(node.heard("tasks/update").await.len(), 1, "MCP-X-58: once");
    let told = format!("{created} {question} {result}");
    assert!(!told.contains("secret-"), "MCP-XT-12: {told}");

    // MCP-X-57, MCP-XT-9.
    let id = node.begin(&session, "fails", json!({})).await["taskId"].clone();
    let result = node.waits_for(&session, &id).await;
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(node.status(&session, &id).await, "failed");
}

#[tokio::test]
async fn x_52_and_tx_4_who_knows_of_no_tasks_waits_and_who_could_declare_them_is_told() {
    let node = Node::start().await;
    node.publish_theirs("new", "optional", &["fails"]);
    for revision in [R4, "2025-06-18"] {
        let session = node.initialize(revision).await;
        let answer = node
            .call(&session, "tools/call", json!({"name": "fails"}))
            .await;
        let result = last(&answer);
        assert_eq!(result["result"]["isError"], true, "{revision} {result}");
    }
    let refused = node
        .ask(
            "tools/call",
            json!({"name": "fails"}),
            &[("mcp-name", "fails")],
        )
        .await;
    assert_eq!((refused.status, refused.code()), (400, -32021));
    let created = node
        .extended("tools/call", json!({"name": "fails"}))
        .await
        .json();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = &created["result"]["taskId"];
    while node.seen(id).await["status"] != "completed" {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.seen(id).await["result"]["isError"], true, "MCP-TX-7");
}

#[tokio::test]
async fn x_5a_and_x_5f_a_cancelled_task_is_cancelled_there_too_and_a_lost_one_failed() {
    let node = Node::start().await;
    node.publish_theirs("new", "optional", &["long", "lost"]);
    let session = node.initialize(R4).await;
    let id = node.begin(&session, "long", json!({})).await["taskId"].clone();
    node.heard("tasks/get").await;
    let answer = node
        .call(&session, "tasks/cancel", json!({"taskId": id}))
        .await
        .json();
    assert_eq!(answer["result"]["status"], "cancelled");
    let cancelled = node.heard("tasks/cancel").await;
    assert_eq!(cancelled[0]["params"]["taskId"], "secret-long");
    assert_eq!(node.status(&session, &id).await, "cancelled");

    let id = node.begin(&session, "lost", json!({})).await["taskId"].clone();
    let result = node.waits_for(&session, &id).await;
    assert_eq!(result["error"]["code"], -31004, "{result}");
    assert_eq!(node.status(&session, &id).await, "failed");
}

#[tokio::test]
async fn x_51_x_53_x_56_and_xt_10_a_server_of_2025_11_25_makes_tasks_for_clients_of_every_era() {
    let node = Node::start().await;
    node.publish_theirs("old", "required", &["job"]);
    let session = node.initialize(R4).await;
    let refused = node
        .call(&session, "tools/call", json!({"name": "job"}))
        .await;
    assert_eq!(refused.code(), -32601, "MCP-TK-2");
    let id = node.begin(&session, "job", json!({})).await["taskId"].clone();
    let result = node.waits_for(&session, &id).await;
    assert_eq!(result["result"]["content"][0]["text"], "done");
    assert_eq!(
        result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        id
    );
    assert!(!result.to_string().contains("secret-"), "MCP-XT-12");

    let older = node.initialize("2025-06-18").await;
    let answer = node
        .call(&older, "tools/call", json!({"name": "job"}))
        .await;
    let result = last(&answer);
    assert_eq!(
        result["result"]["content"][0]["text"], "done",
        "MCP-X-51: {result}"
    );
    assert!(!result.to_string().contains("secret-"), "{result}");
    let plain = node
        .ask("tools/call", json!({"name": "job"}), &[("mcp-name", "job")])
        .await;
    assert_eq!(
        plain.json()["result"]["content"][0]["text"],
        "done",
        "MCP-XT-10"
    );
    let created = node
        .extended("tools/call", json!({"name": "job"}))
        .await
        .json();
    assert_eq!(
        created["result"]["resultType"], "task",
        "MCP-X-53: {created}"
    );
    let id = &created["result"]["taskId"];
    while node.seen(id).await["status"] != "completed" {
        tokio::task::yield_now().await;
    }

    node.publish_theirs("old", "optional", &["job"]);
    let plain = node
        .extended("tools/call", json!({"name": "job"}))
        .await
        .json();
    assert_eq!(
        plain["result"]["content"][0]["text"], "plain",
        "MCP-X-53: {plain}"
    );
    let id = node.begin(&session, "job", json!({})).await["taskId"].clone();
    let result = node.waits_for(&session, &id).await;
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
}
