//! Tasks of both eras over the wire: made on one node, read and ended on another
//! (MCP-TK-1…MCP-TK-16, MCP-TX-1…MCP-TX-17, MCP-X-54).

use portolan_protocol::{ask::AskMethod, jsonrpc::Raw, revision::Revision};

use crate::call::client_channel::{ClientChannel, Unanswered};
use crate::wire::{answers_wire::event, asking_wire::who, modern_wire::modern, *};

pub(crate) const R4: &str = "2025-11-25";
const ABLE: &str =
    r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

impl Node {
    /// Two nodes that serve these tools, whose calls may be tasks.
    pub(crate) async fn pair(names: &[&str]) -> [Self; 2] {
        let node = Self::with(McpConfig {
            list_page_size: 2,
            task_after_secs: 0,
            tasks_per_principal: 5,
            ..McpConfig::default()
        })
        .await;
        let twin = node.twin().await;
        for node in [&node, &twin] {
            node.publish_as_tasks(names);
        }
        [node, twin]
    }

    pub(crate) fn publish_as_tasks(&self, names: &[&str]) {
        let source = SourceId::generate();
        let tools = names.iter().map(|&name| {
            let path = match name {
                "held" | "slow" | "broken" => format!("/{name}"),
                _ => "/pets/1".to_owned(),
            };
            tool(source, name, &path, json!({"type": "object"}))
        });
        let mut row = self.row(tools.collect());
        let mut published = self.source();
        published.settings.tasks = true;
        row.sources = [(source, published)].into();
        self.serve(row, &LimitSet::default());
    }

    pub(crate) async fn begin(&self, session: &str, name: &str, task: Value) -> Value {
        let answer = self
            .call(session, "tools/call", json!({"name": name, "task": task}))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"]["task"].clone()
    }

    async fn about(&self, session: &str, method: &str, id: &Value) -> Answer {
        self.call(session, method, json!({"taskId": id})).await
    }

    pub(crate) async fn status(&self, session: &str, id: &Value) -> String {
        let body = self.about(session, "tasks/get", id).await.json();
        body["result"]["status"]
            .as_str()
            .unwrap_or_else(|| panic!("no status: {body}"))
            .to_owned()
    }

    pub(crate) async fn until(&self, session: &str, id: &Value, status: &str) {
        while self.status(session, id).await != status {
            tokio::task::yield_now().await;
        }
    }

    /// A request of 2026-07-28 by a client that accepts tasks.
    pub(crate) async fn extended(&self, method: &str, params: Value) -> Answer {
        let named = params["taskId"].as_str().or(params["name"].as_str());
        let name = named.unwrap_or_default().to_owned();
        let mut body = modern(method, params);
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            serde_json::from_str(ABLE).unwrap();
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        self.post(&headers, &body).await
    }

    pub(crate) async fn seen(&self, id: &Value) -> Value {
        let answer = self.extended("tasks/get", json!({"taskId": id})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"].clone()
    }

    /// A session whose client can answer questions.
    pub(crate) async fn asked_session(&self) -> String {
        let mut body = initialize(R4);
        body["params"]["capabilities"] = json!({"elicitation": {}});
        let answer = self.post(&[], &body).await;
        answer.header("mcp-session-id").to_owned()
    }
}

/// The response, alone or as the last event of a stream.
pub(super) fn last(answer: &Answer) -> Value {
    let text = std::str::from_utf8(&answer.body).unwrap();
    if text.starts_with('{') {
        return answer.json();
    }
    let events = text.split("\n\n");
    data(
        events
            .filter(|event| event.contains("data: {"))
            .last()
            .unwrap(),
    )
}

fn related(message: &Value, of: &str) -> Value {
    message[of]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"].clone()
}

#[tokio::test]
async fn tk_1_tx_1_ex_3_and_dp_8_each_era_is_told_of_its_own_tasks_and_no_other() {
    let node = Node::start().await;
    let initialized = |answer: Answer| answer.json()["result"]["capabilities"].clone();
    let capabilities = initialized(node.post(&[], &initialize(R4)).await);
    assert_eq!(
        capabilities["tasks"],
        json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    );
    assert!(capabilities.get("extensions").is_none(), "MCP-TX-1");
    for older in ["2025-03-26", "2025-06-18"] {
        let capabilities = initialized(node.post(&[], &initialize(older)).await);
        assert!(capabilities.get("tasks").is_none(), "{older}");
        let session = node.initialize(older).await;
        for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"] {
            let answer = node.about(&session, method, &json!("x")).await;
            assert_eq!(answer.code(), -32601, "{older} {method}");
        }
        // MCP-TK-1: the parameter is ignored.
        let params = json!({"name": "zebra", "task": {"ttl": 1}});
        let answer = node.call(&session, "tools/call", params).await;
        assert!(answer.json()["result"]["content"].is_array());
    }
    let discovered = node.ask("server/discover", json!({}), &[]).await.json();
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(
        capabilities["extensions"]["io.modelcontextprotocol/tasks"],
        json!({})
    );
    assert!(capabilities.get("tasks").is_none(), "MCP-L-23");
}

#[tokio::test]
async fn tk_2_and_tl_21_a_tool_that_takes_no_tasks_refuses_one_and_one_that_does_says_so() {
    let node = Node::start().await;
    let session = node.initialize(R4).await;
    let params = json!({"name": "zebra", "task": {}});
    let answer = node.call(&session, "tools/call", params.clone()).await;
    assert_eq!((answer.status, answer.code()), (200, -32601));
    let list = node.call(&session, "tools/list", json!({})).await.json();
    assert!(
        list["result"]["tools"][0].get("execution").is_none(),
        "MCP-X-54"
    );

    node.publish_as_tasks(&["zebra"]);
    let list = node.call(&session, "tools/list", json!({})).await.json();
    let execution = json!({"taskSupport": "optional"});
    assert_eq!(list["result"]["tools"][0]["execution"], execution);
    let older = node.initialize("2025-06-18").await;
    let list = node.call(&older, "tools/list", json!({})).await.json();
    assert!(list["result"]["tools"][0].get("execution").is_none());
    // MCP-TX-2: the parameter has no effect there, and a client without the extension gets no task.
    let answer = node
        .ask("tools/call", params, &[("mcp-name", "zebra")])
        .await;
    assert_eq!(answer.json()["result"]["resultType"], "complete");
}

#[tokio::test]
async fn tk_3_tk_7_and_tx_5_a_task_of_one_node_is_seen_and_its_result_got_on_another() {
    let [node, twin] = Node::pair(&["held"]).await;
    let session = node.initialize(R4).await;
    let task = node.begin(&session, "held", json!({"ttl": 120_000})).await;
    assert_eq!(task["status"], "working", "MCP-TK-5");
    assert_eq!(
        (&task["ttl"], &task["pollInterval"]),
        (&json!(120_000), &json!(1000))
    );
    assert_eq!(task["createdAt"], "2026-11-21T12:00:00Z", "ISO 8601");
    let id = &task["taskId"];
    assert!(id.as_str().unwrap().len() > 24, "MCP-TK-4");
    assert_eq!(twin.status(&session, id).await, "working", "MCP-TX-5");
    let elsewhere = twin.initialize(R4).await;
    assert_eq!(twin.status(&elsewhere, id).await, "working", "ADR 0007");

    let waiting = twin.about(&session, "tasks/result", id);
    node.release.notify_one();
    let result = last(&waiting.await);
    assert_eq!(
        result["result"]["structuredContent"],
        json!({"released": true})
    );
    assert_eq!(related(&result, "result"), *id, "MCP-TK-12");
    let seen = twin.about(&session, "tasks/get", id).await.json();
    assert_eq!(seen["result"]["status"], "completed");
    assert!(seen["result"].get("_meta").is_none(), "MCP-TK-12: not here");
    let again = node.about(&session, "tasks/result", id).await.json();
    assert_eq!(
        again["result"], result["result"],
        "MCP-TK-7: as often as one likes"
    );
    assert_eq!(node.state.tasks.count(), 0);

    // MCP-TX-17: in the form of the other era.
    let seen = twin.seen(id).await;
    assert_eq!(
        (&seen["resultType"], &seen["ttlMs"]),
        (&json!("complete"), &json!(120_000))
    );
    assert!(
        seen.get("ttl").is_none() && seen.get("task").is_none(),
        "MCP-X-55"
    );
    assert_eq!(
        seen["result"]["structuredContent"],
        json!({"released": true})
    );
    assert!(
        related(&seen, "result").is_null(),
        "a root has the id already"
    );
}

#[tokio::test]
async fn tk_8_and_tx_7_a_tool_that_fails_is_failed_here_and_completed_there() {
    let [node, twin] = Node::pair(&["broken"]).await;
    let session = node.initialize(R4).await;
    let id = node.begin(&session, "broken", json!({})).await["taskId"].clone();
    let result = twin.about(&session, "tasks/result", &id).await.json();
    assert_eq!(result["result"]["isError"], true);
    let seen = twin.about(&session, "tasks/get", &id).await.json();
    assert_eq!(seen["result"]["status"], "failed");
    assert!(seen["result"]["statusMessage"].is_string());
    let seen = twin.seen(&id).await;
    assert_eq!(seen["status"], "completed");
    assert_eq!(seen["result"]["isError"], true);
    assert!(seen.get("error").is_none());
}

#[tokio::test]
async fn tk_9_pg_1_and_tk_16_the_list_is_the_callers_and_complete_and_has_an_end() {
    let [node, twin] = Node::pair(&["slow"]).await;
    let session = node.initialize(R4).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        let task = node.begin(&session, "slow", json!({})).await;
        made.push(task["taskId"].clone());
        node.clock.advance(time::Duration::seconds(1));
    }
    let full = node
        .call(&session, "tools/call", json!({"name": "slow", "task": {}}))
        .await;
    assert_eq!((full.status, full.code()), (429, -32013), "MCP-TK-16");
    assert_eq!(full.json()["error"]["data"]["reason"], "tasks");
    assert_eq!(node.counted(), [(LimitName::Tasks, 1)], "REVIEW-F1");

    let mut listed = Vec::new();
    let mut params = json!({});
    loop {
        let page = twin.call(&session, "tasks/list", params).await.json();
        let tasks = page["result"]["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2, "MCP-PG-1");
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    made.reverse();
    assert_eq!(listed, made, "the newest first");
    let answer = twin
        .call(&session, "tasks/list", json!({"cursor": "x"}))
        .await;
    assert_eq!(answer.code(), -32602, "MCP-TK-11");

    // MCP-TK-11, MCP-TX-15: no other caller can use any part of it.
    let mut stranger = node.claims();
    "client-b".clone_into(&mut stranger.client_id);
    let token = node.sign(&stranger);
    let theirs = |session: Option<String>, body: Value| {
        let (token, twin) = (token.clone(), &twin);
        async move {
            let mut headers = vec![("authorization", token.as_str())];
            if let Some(session) = &session {
                headers.push(("mcp-session-id", session));
            }
            twin.post(&headers, &body).await
        }
    };
    let answer = theirs(None, initialize(R4)).await;
    let other = Some(answer.header("mcp-session-id").to_owned());
    let list = theirs(other.clone(), rpc("tasks/list", json!({}))).await;
    assert_eq!(list.json()["result"]["tasks"], json!([]));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for id in [&made[0], &json!("unknown"), &json!("A".repeat(400))] {
            let answer = theirs(other.clone(), rpc(method, json!({"taskId": id}))).await;
            assert_eq!(
                (answer.status, answer.code()),
                (200, -32602),
                "{method} {id}"
            );
        }
    }
    assert_eq!(twin.status(&session, &made[0]).await, "working");
    let gone = node.about(&session, "tasks/update", &made[0]).await;
    assert_eq!(gone.code(), -32601, "of the other era");
}

#[tokio::test]
async fn tk_10_x_5a_and_cn_2_a_cancelled_task_stays_so_and_its_call_ends() {
    let [node, twin] = Node::pair(&["held", "slow"]).await;
    let session = node.initialize(R4).await;
    let task = node.begin(&session, "slow", json!({})).await;
    let id = &task["taskId"];
    node.arrived.notified().await;
    // MCP-CN-2: the request that made it is over.
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    node.post(&[("mcp-session-id", &session)], &cancelled).await;
    assert_eq!(node.status(&session, id).await, "working");

    let waiting = node.about(&session, "tasks/result", id);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    let answer = twin.about(&session, "tasks/cancel", id).await.json();
    assert_eq!(answer["result"]["status"], "cancelled");
    assert_eq!(answer["result"]["taskId"], *id);
    let waited = waiting.await;
    assert!(String::from_utf8_lossy(&waited.body).contains("The task was cancelled."));
    while node.state.tasks.count() > 0 {
        tokio::task::yield_now().await;
    }
    let again = twin.about(&session, "tasks/cancel", id).await;
    assert_eq!(again.code(), -32602, "MCP-TK-10");
    assert_eq!(node.status(&session, id).await, "cancelled");

    // MCP-XT-9: a later outcome has no effect.
    let id = node.begin(&session, "held", json!({})).await["taskId"].clone();
    twin.about(&session, "tasks/cancel", &id).await;
    node.release.notify_one();
    while node.state.tasks.count() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(twin.status(&session, &id).await, "cancelled");
}

#[tokio::test]
async fn tk_13_a_task_asks_on_the_stream_of_who_waits_and_works_again_when_it_is_answered() {
    let [node, twin] = Node::pair(&["zebra"]).await;
    node.script(who);
    node.publish_as_tasks(&["zebra"]);
    let session = node.asked_session().await;
    let task = node.begin(&session, "zebra", json!({})).await;
    let id = &task["taskId"];
    node.until(&session, id, "input_required").await;
    let body = rpc("tasks/result", json!({"taskId": id}));
    let request = twin.request("POST", &[("mcp-session-id", &session)], body.to_string());
    let response = twin.router.clone().oneshot(request).await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream",
        "MCP-T-23"
    );
    let mut stream = response.into_body();
    let question = data(&event(&mut stream).await.unwrap());
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who?");
    assert_eq!(related(&question, "params"), *id, "MCP-TK-12");
    assert!(question["params"].get("task").is_none(), "MCP-TK-17");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(node.post(&headers, &answer).await.status, 202);
    let result = data(&event(&mut stream).await.unwrap());
    assert_eq!(result["result"]["content"][0]["text"], "Hello Ada");
    assert_eq!(related(&result, "result"), *id);
    assert_eq!(node.status(&session, id).await, "completed");
}

#[tokio::test]
async fn tk_15_a_task_is_kept_for_its_time_and_no_longer() {
    let [node, twin] = Node::pair(&["zebra"]).await;
    let session = node.initialize(R4).await;
    let mut made = Vec::new();
    for (wish, ttl) in [
        (json!({}), 3_600_000),
        (json!({"ttl": 1}), 10_000),
        (json!({"ttl": 60_000}), 60_000),
        (json!({"ttl": 1e15}), 3_600_000),
        (json!({"ttl": 900_000_000_u64}), 86_400_000),
    ] {
        let task = node.begin(&session, "zebra", wish).await;
        assert_eq!(task["ttl"], ttl);
        made.push(task["taskId"].clone());
    }
    node.clock.advance(time::Duration::seconds(61));
    for (index, id) in made.iter().enumerate() {
        let answer = twin.about(&session, "tasks/get", id).await.json();
        let is_gone = answer["error"]["code"] == -32602;
        assert_eq!(is_gone, index == 1 || index == 2, "MCP-TK-11: {answer}");
    }
    // MCP-TK-16: a finished task frees its permit.
    node.begin(&session, "zebra", json!({})).await;
}

#[tokio::test]
async fn x_5f_a_task_whose_node_stopped_failed_and_says_so() {
    let [node, twin] = Node::pair(&["slow"]).await;
    let session = node.initialize(R4).await;
    let id = node.begin(&session, "slow", json!({})).await["taskId"].clone();
    node.arrived.notified().await;
    node.state.drain().await;
    assert_eq!(twin.status(&session, &id).await, "failed");
    let answer = twin.about(&session, "tasks/result", &id).await;
    assert_eq!(answer.code(), -31004);
    let seen = twin.seen(&id).await;
    assert_eq!(seen["error"]["code"], -31004);
    assert_eq!(seen["status"], "failed", "MCP-TX-6");
}

#[tokio::test]
async fn tx_3_tl_22_x_54_and_tx_10_a_call_that_takes_long_becomes_a_task_of_a_client_that_takes_one()
 {
    let [node, twin] = Node::pair(&["held", "slow"]).await;
    let answer = node.extended("tools/call", json!({"name": "held"})).await;
    let created = answer.json()["result"].clone();
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!(created["status"], "working");
    assert_eq!(
        (&created["ttlMs"], &created["pollIntervalMs"]),
        (&json!(3_600_000), &json!(1000))
    );
    for absent in ["task", "result", "error", "inputRequests", "requestState"] {
        assert!(created.get(absent).is_none(), "{absent}");
    }
    let id = &created["taskId"];
    assert_eq!(twin.seen(id).await["status"], "working", "MCP-TX-5");
    node.release.notify_one();
    while twin.seen(id).await["status"] != "completed" {
        tokio::task::yield_now().await;
    }
    let seen = twin.seen(id).await;
    assert_eq!(seen["resultType"], "complete", "MCP-TX-6");
    assert_eq!(
        seen["result"]["structuredContent"],
        json!({"released": true})
    );

    // Both a finished and a running task get the same answer.
    let created = node
        .extended("tools/call", json!({"name": "slow"}))
        .await
        .json();
    let other = &created["result"]["taskId"];
    for (id, then) in [
        (id, "completed"),
        (other, "cancelled"),
        (other, "cancelled"),
    ] {
        let answer = twin.extended("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(
            answer.json()["result"]["resultType"],
            "complete",
            "MCP-TX-10"
        );
        assert!(answer.json()["result"].get("taskId").is_none());
        assert_eq!(twin.seen(id).await["status"], then);
    }
    while node.state.tasks.count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tx_4_ex_2_tx_11_tx_12_and_tx_16_who_declares_nothing_and_who_knows_nothing_is_refused() {
    let node = Node::start().await;
    let methods = ["tasks/get", "tasks/update", "tasks/cancel"];
    for method in methods {
        let params = json!({"taskId": "x", "inputResponses": {}});
        let answer = node.ask(method, params.clone(), &[("mcp-name", "x")]).await;
        assert_eq!((answer.status, answer.code()), (400, -32021), "{method}");
        assert_eq!(
            answer.json()["error"]["data"]["requiredCapabilities"],
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
        );
        let answer = node.extended(method, params.clone()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (200, -32602),
            "MCP-TX-11 {method}"
        );
        let answer = node.ask(method, params.clone(), &[("mcp-name", "y")]).await;
        assert_eq!((answer.status, answer.code()), (400, -32020), "MCP-TX-16");
        let answer = node.ask(method, params, &[]).await;
        assert_eq!((answer.status, answer.code()), (400, -32020), "MCP-H-3");
    }
    for method in ["tasks/list", "tasks/result"] {
        let answer = node.extended(method, json!({"taskId": "x"})).await;
        assert_eq!((answer.status, answer.code()), (404, -32601), "MCP-TX-12");
    }
}

/// The backend of a call that an upstream server made a task of.
async fn both(channel: ClientChannel) -> Result<String, Unanswered> {
    channel.becomes_task().await;
    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
    let form = Raw::of(&form).unwrap();
    let one = channel.request(Revision::V2025_11_25, AskMethod::Elicit, &form);
    let two = channel.request(Revision::V2025_11_25, AskMethod::Elicit, &form);
    let (one, two) = tokio::join!(one, two);
    let name = |answer: Raw| {
        answer
            .get("content")
            .and_then(|content| content.get("name")?.string())
    };
    Ok(format!("{:?} {:?}", name(one?), name(two?)))
}

#[tokio::test]
async fn tx_6_tx_8_and_tx_9_a_task_shows_what_it_asks_and_takes_the_answers_one_by_one_on_any_node()
{
    let [node, twin] = Node::pair(&["zebra"]).await;
    node.script(both);
    let created = node
        .extended("tools/call", json!({"name": "zebra"}))
        .await
        .json();
    let id = created["result"]["taskId"].clone();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let keys = |seen: &Value| -> Vec<String> {
        let asked = seen["inputRequests"].as_object();
        asked
            .map(|asked| asked.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut seen = twin.seen(&id).await;
    while keys(&seen).len() < 2 {
        seen = twin.seen(&id).await;
    }
    assert_eq!(seen["status"], "input_required");
    let (first, second) = (keys(&seen)[0].clone(), keys(&seen)[1].clone());
    assert_eq!(
        seen["inputRequests"][&first]["method"],
        "elicitation/create"
    );
    let update = |key: &str, answer: Value| {
        let params = json!({"taskId": id, "inputResponses": {key: answer, "unknown": {}}});
        twin.extended("tasks/update", params)
    };
    let named = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let answer = update(&first, named("Ada")).await.json();
    assert_eq!(answer["result"]["resultType"], "complete", "MCP-TX-8");
    assert!(answer["result"].get("status").is_none());
    let seen = twin.seen(&id).await;
    assert_eq!(
        (keys(&seen), &seen["status"]),
        (vec![second.clone()], &json!("input_required"))
    );
    // MCP-EL-8, MCP-TX-9: an answer that does not fit repeats the question, under another key.
    update(&second, json!({"action": "accept", "content": {"name": 7}})).await;
    let mut seen = twin.seen(&id).await;
    while keys(&seen).is_empty() {
        seen = twin.seen(&id).await;
    }
    let third = keys(&seen)[0].clone();
    assert!(third != second && third != first, "{third}");
    update(&third, named("Bob")).await;
    while twin.seen(&id).await["status"] != "completed" {
        tokio::task::yield_now().await;
    }
    let seen = twin.seen(&id).await;
    let text = seen["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Ada") && text.contains("Bob"), "{text}");
    let late = update(&third, named("Eve")).await.json();
    assert_eq!(
        late["result"]["resultType"], "complete",
        "MCP-TX-8: ignored"
    );
}
