//! Questions to clients of the session era: asked on one node, answered on another
//! (STREAM-14, MCP-X-20…MCP-X-2C, MCP-X-28).

use portolan_protocol::{
    RequestId,
    ask::AskMethod,
    content::ContentBlock,
    input_required::InputRequired,
    jsonrpc::{self, Raw},
    progress::Progress,
    revision::Revision,
    tool::CallResult,
    visible::Visible,
};

use crate::wire::{answers_wire::event, *};
use crate::{
    call::Running,
    call::client_channel::{ClientChannel, Round, Unanswered},
};

pub(crate) const R5: Revision = Revision::V2026_07_28;

impl Node {
    /// Publishes the tool `zebra` with this backend.
    pub(crate) fn script<F>(&self, script: impl Fn(ClientChannel) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<String, Unanswered>> + Send + 'static,
    {
        let server = self.server;
        let run = move |id: RequestId, channel: ClientChannel| -> Running {
            let (revision, work) = (channel.revision(), script(channel));
            Box::pin(async move {
                let identity = portolan_protocol::Identity::new(
                    &portolan_protocol::initialize::Implementation::new("zebra", "1"),
                );
                let said = work.await;
                let result = match said {
                    // A whole answer, built by the script.
                    Ok(text) if text.starts_with('{') => return Ok(text.into_bytes()),
                    Ok(text) => CallResult {
                        content: vec![ContentBlock::text(text)],
                        ..CallResult::default()
                    },
                    Err(why) => {
                        let method = portolan_protocol::Method::ToolsCall;
                        let (_, body) = Visible::from(why).answer(method, &id, revision, &identity);
                        return Ok(body);
                    }
                };
                let _ = server;
                Ok(jsonrpc::response_with(&id, 64, |out| {
                    result.write(revision, &identity, out);
                }))
            })
        };
        let run: crate::call::Script = Arc::new(run);
        self.state
            .scripts
            .lock()
            .unwrap()
            .insert("zebra".to_owned(), run);
        self.publish(&["zebra"]);
    }

    /// A session whose client has these capabilities.
    async fn able_session(&self, revision: &str, capabilities: Value) -> String {
        let mut body = initialize(revision);
        body["params"]["capabilities"] = capabilities;
        let answer = self.post(&[], &body).await;
        answer.header("mcp-session-id").to_owned()
    }

    /// Calls the scripted tool and returns the stream of its answer.
    async fn call_zebra(&self, session: &str) -> Body {
        let body = rpc(
            "tools/call",
            json!({"name": "zebra", "_meta": {"progressToken": "p"}}),
        );
        let request = self.request("POST", &[("mcp-session-id", session)], body.to_string());
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response.into_body()
    }

    async fn respond(&self, session: &str, response: Value) -> u16 {
        self.post(&[("mcp-session-id", session)], &response)
            .await
            .status
    }
}

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

fn form() -> Raw {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    Raw::of(&json!({"mode": "form", "message": "Who?", "requestedSchema": schema})).unwrap()
}

pub(crate) async fn who(channel: ClientChannel) -> Result<String, Unanswered> {
    let answer = channel
        .request(Revision::V2025_11_25, AskMethod::Elicit, &form())
        .await?;
    let name = answer
        .get("content")
        .and_then(|content| content.get("name")?.string());
    Ok(format!("Hello {}", name.unwrap_or_default()))
}

/// The next event with a JSON-RPC message.
async fn next(body: &mut Body) -> Value {
    data(&event(body).await.expect("an event"))
}

#[tokio::test]
async fn x_28_and_n_3_a_question_of_one_node_is_answered_on_another_and_the_first_answer_counts() {
    let node = Node::start().await;
    node.script(who);
    let other = node.twin().await;
    let session = node.able_session("2025-11-25", everything()).await;
    let mut stream = node.call_zebra(&session).await;
    let question = next(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who?");
    let id = question["id"].as_str().unwrap();
    assert!(id.len() > 32, "unguessable");
    let answer = |name: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": name}}});
    let unknown = json!({"jsonrpc": "2.0", "id": "q0", "result": {}});
    assert_eq!(other.respond(&session, unknown).await, 202, "MCP-N-3");
    assert_eq!(other.respond(&session, answer("Ada")).await, 202);
    assert_eq!(
        other.respond(&session, answer("Eve")).await,
        202,
        "MCP-CN-6"
    );
    let result = next(&mut stream).await;
    assert_eq!(result["id"], 1);
    assert_eq!(result["result"]["content"][0]["text"], "Hello Ada");
    assert_eq!(frame(&mut stream).await, None, "MCP-T-28");
}

#[tokio::test]
async fn t_44_nobody_else_can_answer_for_a_session() {
    let node = Node::start().await;
    node.script(who);
    let session = node.able_session("2025-11-25", everything()).await;
    let mut stream = node.call_zebra(&session).await;
    let id = next(&mut stream).await["id"].clone();
    let mut stranger = node.claims();
    stranger.sub = UserId::generate().into();
    let token = node.sign(&stranger);
    let response = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": "Eve"}}});
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-session-id", session.as_str()),
    ];
    assert_eq!(node.post(&headers, &response).await.status, 404);
    assert!(is_quiet(&mut stream).await);
}

#[tokio::test]
async fn x_30_v_1_and_l_7_a_client_that_cannot_be_asked_is_told_what_it_lacks() {
    let node = Node::start().await;
    node.script(who);
    let expected =
        "This tool needs the client feature \"elicitation\", which this client does not offer.";
    for (revision, capabilities) in [
        ("2025-11-25", json!({})),
        ("2025-03-26", everything()),
        ("2025-11-25", json!({"elicitation": {"url": {}}})),
    ] {
        let session = node.able_session(revision, capabilities).await;
        let answer = node
            .call(&session, "tools/call", json!({"name": "zebra"}))
            .await;
        let result = &answer.json()["result"];
        assert_eq!(result["content"][0]["text"], expected);
        assert_eq!(result["isError"], true);
    }
    // A client that reads no stream counts as lacking it (`docs/translation-rules.md`, *Lifecycle,
    // sessions, capabilities*).
    let session = node.able_session("2025-11-25", everything()).await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "application/json"),
    ];
    let answer = node
        .post(&headers, &rpc("tools/call", json!({"name": "zebra"})))
        .await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], expected);
    // MCP-L-7, the other way: a feature that the server did not offer to this revision cannot be
    // used.
    for revision in ["2024-11-05", "2025-06-18"] {
        let session = node.able_session(revision, everything()).await;
        let refused = node.call(&session, "tasks/list", json!({})).await;
        assert_eq!(refused.code(), -32601, "MCP-L-7: {revision}");
    }
}

#[tokio::test]
async fn x_34_and_el_8_a_form_is_shaped_for_its_client_and_its_answer_checked() {
    let node = Node::start().await;
    node.script(who);
    let session = node
        .able_session("2025-06-18", json!({"elicitation": {}}))
        .await;
    let mut stream = node.call_zebra(&session).await;
    let question = next(&mut stream).await;
    assert!(question["params"].get("mode").is_none(), "MCP-EL-2");
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": 7}}});
    node.respond(&session, response).await;
    let result = next(&mut stream).await["result"].clone();
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["content"][0]["text"],
        "The client's answer does not fit what the upstream server asked for."
    );
}

#[tokio::test]
async fn x_24_and_cn_3_who_does_not_answer_in_time_is_told_that_nobody_waits() {
    let node = Node::with(McpConfig {
        ask_person_secs: 0,
        ..McpConfig::default()
    })
    .await;
    node.script(who);
    let session = node.able_session("2025-11-25", everything()).await;
    let mut stream = node.call_zebra(&session).await;
    let question = next(&mut stream).await;
    let cancelled = next(&mut stream).await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let result = next(&mut stream).await["result"].clone();
    assert_eq!(
        result["content"][0]["text"],
        "Timed out waiting for client input."
    );
}

#[tokio::test]
async fn x_7b_a_question_that_is_no_longer_of_use_is_withdrawn() {
    let node = Node::start().await;
    node.script(|channel| async move {
        let asking = who(channel.clone());
        tokio::select! {
            answer = asking => answer,
            () = tokio::time::sleep(Duration::from_millis(50)) => {
                // The upstream cancelled its question and continued.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok("without you".to_owned())
            }
        }
    });
    let session = node.able_session("2025-11-25", everything()).await;
    let mut stream = node.call_zebra(&session).await;
    let question = next(&mut stream).await;
    let cancelled = next(&mut stream).await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let result = next(&mut stream).await;
    assert_eq!(result["result"]["content"][0]["text"], "without you");
}

/// An upstream of 2026-07-28: asks, and is called again.
pub(crate) async fn modern_upstream(
    channel: ClientChannel,
    asked: Value,
) -> Result<String, Unanswered> {
    let asked = InputRequired::read(&Raw::of(&asked).unwrap()).unwrap();
    match channel.round(asked).await? {
        Round::Again(responses) => {
            channel.settle().await;
            Ok(responses.map_or("none".to_owned(), |raw| format!("got {}", raw.as_str())))
        }
        Round::Answer(body) => Ok(String::from_utf8(body).unwrap()),
    }
}

#[tokio::test]
async fn x_20_and_xt_2_entries_become_requests_at_once_and_progress_only_grows() {
    let node = Node::start().await;
    node.script(|channel| async move {
        for value in [1.0, 0.5, 2.0] {
            let progress = Progress {
                progress: value,
                total: None,
                message: None,
            };
            channel.progress(progress).await;
        }
        let asked = json!({"requestState": "s", "inputRequests": {
            "roots": {"method": "roots/list"},
            "words": {"method": "sampling/createMessage", "params": {"maxTokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}},
        }});
        modern_upstream(channel, asked).await
    });
    let session = node.able_session("2025-06-18", everything()).await;
    let mut stream = node.call_zebra(&session).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next(&mut stream).await);
    }
    let progress: Vec<&Value> = seen
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"]["progress"])
        .collect();
    assert_eq!(progress, [&json!(1), &json!(2)], "MCP-X-76");
    let question = |method: &str| seen.iter().find(|message| message["method"] == method);
    let roots = question("roots/list").unwrap();
    let words = question("sampling/createMessage").unwrap();
    assert_eq!(
        words["params"]["messages"][0]["content"]["type"], "text",
        "MCP-X-3C"
    );
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}});
    for (id, result) in [
        (&words["id"], said.clone()),
        (&roots["id"], json!({"roots": []})),
    ] {
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        node.respond(&session, response).await;
    }
    let result = next(&mut stream).await;
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    let responses: Value = serde_json::from_str(text.strip_prefix("got ").unwrap()).unwrap();
    assert_eq!(responses, json!({"roots": {"roots": []}, "words": said}));
}

#[tokio::test]
async fn x_2a_to_x_2c_el_17_el_18_and_er_12_a_clients_errors_have_their_stand_ins() {
    let node = Node::start().await;
    for (method, params, expected) in [
        (
            "elicitation/create",
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}}),
            r#"got {"k":{"action":"cancel"}}"#,
        ),
        ("roots/list", json!({}), r#"got {"k":{"roots":[]}}"#),
        (
            "sampling/createMessage",
            json!({"maxTokens": 1, "messages": []}),
            "The client declined the request of the upstream server.",
        ),
    ] {
        let asked = json!({"inputRequests": {"k": {"method": method, "params": params}}});
        node.script(move |channel| modern_upstream(channel, asked.clone()));
        let session = node.able_session("2025-11-25", everything()).await;
        // MCP-ER-12: a person declined; MCP-EL-18: a mode that the client did not declare.
        for code in [-1, -32602] {
            let mut stream = node.call_zebra(&session).await;
            let id = next(&mut stream).await["id"].clone();
            let error = json!({"code": code, "message": "no"});
            node.respond(
                &session,
                json!({"jsonrpc": "2.0", "id": id, "error": error}),
            )
            .await;
            let result = next(&mut stream).await;
            assert_eq!(
                result["result"]["content"][0]["text"], expected,
                "MCP-EL-17: asked once, and not again"
            );
            assert_eq!(frame(&mut stream).await, None);
        }
    }
}

#[tokio::test]
async fn xt_3_x_35_el_13_and_el_14_a_question_by_url_gets_an_id_and_the_word_that_it_is_done() {
    let node = Node::start().await;
    node.script(|channel| {
        let params = json!({"mode": "url", "message": "Sign in.", "url": "https://up.example/x"});
        modern_upstream(
            channel,
            json!({"inputRequests": {"k": {"method": "elicitation/create", "params": params}}}),
        )
    });
    let session = node.able_session("2025-11-25", everything()).await;
    let other = node.able_session("2025-11-25", everything()).await;
    let (_, _, mut beside) = node.open(&[("mcp-session-id", &other)]).await;
    frame(&mut beside).await;
    frame(&mut beside).await;
    let mut stream = node.call_zebra(&session).await;
    let question = next(&mut stream).await;
    let made_up = question["params"]["elicitationId"].clone();
    assert!(made_up.as_str().unwrap().len() > 32);
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    node.respond(&session, response).await;
    // MCP-EL-13: an accepted page is not complete yet; the upstream's next message completes it.
    let done = next(&mut stream).await;
    assert_eq!(done["method"], "notifications/elicitation/complete");
    assert!(
        is_quiet(&mut beside).await,
        "MCP-EL-14: only to who was asked"
    );
    assert_eq!(done["params"]["elicitationId"], made_up);
    assert_eq!(
        next(&mut stream).await["result"]["content"][0]["text"],
        r#"got {"k":{"action":"accept"}}"#
    );
}

#[tokio::test]
async fn sd_22_d_6_and_t_32_a_question_of_a_draft_session_goes_on_the_stream_of_its_call() {
    let node = Node::start().await;
    node.script(who);
    let mut body = initialize("2025-06-18");
    body["params"]["capabilities"] = everything();
    let opened = node.post(&[("mcp-method", "initialize")], &body).await;
    let session = opened.header("mcp-session-id").to_owned();
    let (_, _, mut beside) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut beside).await;
    frame(&mut beside).await;
    let call = rpc("tools/call", json!({"name": "zebra"}));
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-method", "tools/call"),
        ("mcp-name", "zebra"),
    ];
    let request = node.request("POST", &headers, call.to_string());
    let mut stream = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    let question = next(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create");
    assert!(
        is_quiet(&mut beside).await,
        "MCP-SD-22: no request stands there"
    );
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    assert_eq!(node.respond(&session, response).await, 202);
    assert_eq!(next(&mut stream).await["id"], 1);
}

#[tokio::test]
async fn xt_5_and_x_7d_an_element_of_a_batch_that_must_ask_says_so_and_the_others_are_served() {
    let node = Node::start().await;
    node.script(|channel| {
        modern_upstream(
            channel,
            json!({"inputRequests": {"k": {"method": "roots/list"}}}),
        )
    });
    node.publish(&["get_pet", "zebra"]);
    let session = node.able_session("2025-03-26", everything()).await;
    let call = |id: i32, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {"id": "1"}}});
    let batch = json!([call(1, "get_pet"), call(2, "zebra"), call(3, "get_pet")]);
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "application/json"),
    ];
    let answers = node.post(&headers, &batch).await.json();
    let of = |id: i32| {
        let mut all = answers.as_array().unwrap().iter();
        all.find(|answer| answer["id"] == id).unwrap()["result"].clone()
    };
    assert_eq!(answers.as_array().unwrap().len(), 3);
    for id in [1, 3] {
        assert!(
            of(id)["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("Rex")
        );
    }
    assert_eq!(
        of(2)["content"][0]["text"],
        "This tool needs the client feature \"roots\", which this client does not offer."
    );
}
