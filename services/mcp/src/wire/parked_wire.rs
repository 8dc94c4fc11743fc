//! Multi round-trip requests of 2026-07-28: suspended on one node, retried on any
//! (MCP-X-22…MCP-X-29, MCP-MR-5…MCP-MR-12).

use portolan_protocol::{input_required::InputRequired, jsonrpc::Raw};

use crate::call::client_channel::{ClientChannel, Round, Unanswered};
use crate::wire::{
    asking_wire::{R5, who},
    modern_wire::modern,
    *,
};

const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
const HEADERS: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "zebra"),
];

fn call(id: &str, more: Value) -> Value {
    let mut params = json!({"name": "zebra", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}});
    let members = params.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    let mut body = modern("tools/call", params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        serde_json::from_str(ABLE).unwrap();
    body["id"] = json!(id);
    body
}

impl Node {
    async fn zebra(&self, id: &str, more: Value) -> Answer {
        self.post(&HEADERS, &call(id, more)).await
    }

    /// Calls the tool, which asks, and returns keys and state.
    async fn asked(&self, id: &str) -> (Vec<String>, String) {
        let answer = self.zebra(id, json!({})).await;
        assert_eq!(answer.status, 200);
        required(&answer.json())
    }

    async fn party(&self) -> [Self; 2] {
        let twins = [self.twin().await, self.twin().await];
        for twin in &twins {
            twin.publish(&["zebra"]);
        }
        twins
    }
}

fn required(body: &Value) -> (Vec<String>, String) {
    let result = &body["result"];
    assert_eq!(result["resultType"], "input_required", "{body}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert!(result.get("ttlMs").is_none(), "MCP-MR-14");
    let state = result["requestState"].as_str().unwrap().to_owned();
    assert!(state.len() <= 8 * 1024, "MCP-MR-7");
    (requests.keys().cloned().collect(), state)
}

fn named(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Answers to these keys, with the state.
fn retry(keys: &[String], state: &str, answer: &Value) -> Value {
    let responses: serde_json::Map<String, Value> = keys
        .iter()
        .map(|key| (key.clone(), answer.clone()))
        .collect();
    json!({"inputResponses": responses, "requestState": state})
}

fn text(body: &Value) -> &str {
    body["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {body}"))
}

fn refusal(answer: &Answer) -> (u16, i64, String) {
    let error = answer.json()["error"].clone();
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    (answer.status, error["code"].as_i64().unwrap_or(0), message)
}

/// Asks twice, one after the other.
async fn twice(channel: ClientChannel) -> Result<String, Unanswered> {
    let first = who(channel.clone()).await?;
    let second = who(channel).await?;
    Ok(format!("{first}, {second}"))
}

#[tokio::test]
async fn x_22_xt_1_and_n_7_a_call_of_one_node_goes_on_by_retries_on_two_others() {
    let node = Node::start().await;
    node.script(twice);
    let [second, third] = node.party().await;
    let (keys, state) = node.asked("one").await;
    assert_eq!(keys.len(), 1);
    let answer = second
        .zebra("two", retry(&keys, &state, &named("Ada")))
        .await;
    let (more, state) = required(&answer.json());
    assert_eq!(answer.json()["id"], "two", "MCP-MR-5: a new id");
    assert_ne!(more, keys, "MCP-TX-9, MCP-MR-3: a key names one question");
    let answer = third
        .zebra("three", retry(&more, &state, &named("Bob")))
        .await;
    let body = answer.json();
    assert_eq!(body["id"], "three");
    assert_eq!(text(&body), "Hello Ada, Hello Bob");
    assert_eq!(body["result"]["resultType"], "complete");
    while node.state.suspended_calls.waiting() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn x_27_and_mr_8_a_state_is_used_once_among_all_nodes() {
    let node = Node::start().await;
    node.script(twice);
    let [second, third] = node.party().await;
    let (keys, state) = node.asked("one").await;
    let again = retry(&keys, &state, &named("Ada"));
    let (one, two, three) = tokio::join!(
        node.zebra("a", again.clone()),
        second.zebra("b", again.clone()),
        third.zebra("c", again.clone()),
    );
    let answers = [one, two, three];
    let served = answers
        .iter()
        .filter(|answer| answer.json().get("result").is_some());
    assert_eq!(served.count(), 1, "{answers:?}");
    let used = (200, -32602, "requestState already used".to_owned());
    let refused = answers.iter().map(refusal).filter(|face| *face == used);
    assert_eq!(refused.count(), 2);
    assert_eq!(refusal(&second.zebra("d", again).await), used);
}

#[tokio::test]
async fn mr_6_and_mr_7_tampered_foreign_expired_and_changed_are_refused() {
    let node = Node::start().await;
    node.script(who);
    let [second, _] = node.party().await;
    let (keys, state) = node.asked("one").await;
    let invalid = (200, -32602, "Invalid requestState".to_owned());

    let mut tampered = state.clone().into_bytes();
    let at = tampered.len() / 2;
    tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).unwrap();
    for nonsense in [tampered.as_str(), "", "no state", &"A".repeat(9_000)] {
        let answer = second
            .zebra("t", retry(&keys, nonsense, &named("Eve")))
            .await;
        assert_eq!(refusal(&answer), invalid, "tampered");
    }

    for change in [0, 1] {
        let mut stranger = node.claims();
        if change == 0 {
            stranger.sub = UserId::generate().into();
        } else {
            "client-b".clone_into(&mut stranger.client_id);
        }
        let token = node.sign(&stranger);
        let mut headers = HEADERS.to_vec();
        headers.push(("authorization", &token));
        let body = call("f", retry(&keys, &state, &named("Eve")));
        let answer = second.post(&headers, &body).await;
        assert_eq!(refusal(&answer), invalid, "foreign");
    }

    let mut changed = call("c", retry(&keys, &state, &named("Eve")));
    changed["params"]["arguments"]["a"] = json!(2);
    let answer = second.post(&HEADERS, &changed).await;
    let other = "requestState belongs to another request".to_owned();
    assert_eq!(refusal(&answer), (200, -32602, other));

    // The same parameters in another order are the same request.
    let mut reordered = call("r", retry(&keys, &state, &named("Ada")));
    reordered["params"]["arguments"] = json!({"b": {"d": 3, "c": 2}, "a": 1});
    node.clock.advance(time::Duration::minutes(14));
    let answer = second.post(&HEADERS, &reordered).await;
    assert_eq!(text(&answer.json()), "Hello Ada");

    let (keys, state) = node.asked("two").await;
    node.clock.advance(time::Duration::minutes(16));
    let answer = second.zebra("e", retry(&keys, &state, &named("Ada"))).await;
    let expired = "requestState expired".to_owned();
    assert_eq!(refusal(&answer), (200, -32602, expired));
}

#[tokio::test]
async fn v_5_a_parked_call_whose_node_stopped_is_lost_and_says_so() {
    let node = Node::start().await;
    node.script(who);
    let [second, _] = node.party().await;
    let (keys, state) = node.asked("one").await;
    node.state.drain().await;
    let answer = second
        .zebra("two", retry(&keys, &state, &named("Ada")))
        .await;
    assert_eq!(
        text(&answer.json()),
        "The pending operation was lost. Call the tool again."
    );
    assert_eq!(answer.json()["result"]["isError"], true);

    let node = Node::start().await;
    node.script(who);
    let (keys, state) = node.asked("one").await;
    let elsewhere = node.twin_after_a_loss().await;
    elsewhere.publish(&["zebra"]);
    for _ in 0..2 {
        let again = retry(&keys, &state, &named("Ada"));
        let answer = elsewhere.zebra("two", again).await;
        assert_eq!(
            text(&answer.json()),
            "The pending operation was lost. Call the tool again."
        );
    }
}

#[tokio::test]
async fn x_25_mr_11_and_mr_12_what_is_missing_is_asked_again_under_its_key_and_then_refused() {
    let node = Node::start().await;
    node.script(who);
    let (keys, mut state) = node.asked("one").await;
    for answer in [
        json!({}),
        json!({"action": "accept", "content": {"name": 7}}),
    ] {
        let mut again = retry(&keys, &state, &answer);
        again["inputResponses"]["nobody asked"] = json!({"action": "accept"});
        let answer = node.zebra("again", again).await;
        let (same, next) = required(&answer.json());
        assert_eq!(same, keys);
        state = next;
    }
    let answer = node.zebra("last", json!({"requestState": state})).await;
    assert_eq!(
        text(&answer.json()),
        "Hello ",
        "the elicitation was cancelled"
    );
}

#[tokio::test]
async fn mr_12_and_mr_15_answers_are_objects_and_without_a_question_they_are_nothing() {
    let node = Node::start().await;
    node.script(who);
    for responses in [json!([]), json!({"k": null}), json!({"k": 3})] {
        let answer = node
            .zebra("one", json!({"inputResponses": responses}))
            .await;
        assert_eq!(refusal(&answer).1, -32602);
    }
    let answer = node
        .zebra(
            "two",
            json!({"inputResponses": {"k": {"action": "accept"}}}),
        )
        .await;
    required(&answer.json());
}

#[tokio::test]
async fn x_22_questions_that_come_together_are_one_round() {
    let node = Node::start().await;
    node.script(|channel| async move {
        let (one, two) = tokio::join!(who(channel.clone()), who(channel));
        Ok(format!("{}, {}", one?, two?))
    });
    let (keys, state) = node.asked("one").await;
    assert_eq!(keys.len(), 2);
    let answer = node.zebra("two", retry(&keys, &state, &named("Ada"))).await;
    assert_eq!(text(&answer.json()), "Hello Ada, Hello Ada");
}

#[tokio::test]
async fn x_26_a_client_that_does_not_come_back_ends_its_call() {
    let node = Node::with(McpConfig {
        park_secs: 1,
        ..McpConfig::default()
    })
    .await;
    let told = Arc::new(Notify::new());
    let refused = Arc::clone(&told);
    node.script(move |channel| {
        let refused = Arc::clone(&refused);
        async move {
            let answer = who(channel).await;
            assert_eq!(answer, Err(Unanswered::TimedOut));
            refused.notify_one();
            std::future::pending().await
        }
    });
    let (keys, state) = node.asked("one").await;
    told.notified().await;
    let answer = node
        .zebra("late", retry(&keys, &state, &named("Ada")))
        .await;
    assert_eq!(text(&answer.json()), "Timed out waiting for client input.");
}

#[tokio::test]
async fn mr_9_as_many_calls_wait_as_may_and_not_one_more() {
    let node = Node::with(McpConfig {
        parked_per_principal: 1,
        ..McpConfig::default()
    })
    .await;
    node.script(who);
    let (keys, state) = node.asked("one").await;
    let refused = node.zebra("two", json!({})).await;
    assert_eq!((refused.status, refused.code()), (429, -31002));
    assert_eq!(node.counted(), [(LimitName::ParkedCalls, 1)], "REVIEW-F1");
    node.zebra("three", retry(&keys, &state, &named("Ada")))
        .await;
    while node.state.suspended_calls.waiting() > 0 {
        tokio::task::yield_now().await;
    }
    node.asked("four").await;
}

#[tokio::test]
async fn v_3_mr_10_and_sm_7_ten_rounds_are_enough() {
    let node = Node::start().await;
    node.script(|channel| async move {
        loop {
            who(channel.clone()).await?;
        }
    });
    let (mut keys, mut state) = node.asked("0").await;
    for round in 1..10 {
        let answer = node.zebra("n", retry(&keys, &state, &named("Ada"))).await;
        (keys, state) = required(&answer.json());
        assert_eq!(keys, [format!("q{}", round + 1)]);
    }
    let answer = node.zebra("end", retry(&keys, &state, &named("Ada"))).await;
    assert_eq!(
        text(&answer.json()),
        "The upstream server asked for input too many times."
    );
}

#[tokio::test]
async fn v_2_and_mr_4_a_modern_client_is_not_asked_what_it_did_not_declare() {
    let node = Node::start().await;
    node.script(|channel| {
        assert!(
            channel.capabilities().roots,
            "MCP-X-15: what may be declared upstream"
        );
        assert!(!channel.capabilities().sampling);
        who(channel)
    });
    let mut body = call("one", json!({}));
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
    let answer = node.post(&HEADERS, &body).await;
    assert_eq!(answer.code(), -32021);
    assert_eq!(
        answer.json()["error"]["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
}

/// An upstream of 2026-07-28, which keeps its own state with the client.
async fn stateless(channel: ClientChannel) -> Result<String, Unanswered> {
    let state = match channel.continued() {
        Some(earlier) => {
            let count = earlier.state.clone().unwrap_or_default();
            if let Some(responses) = &earlier.responses
                && responses.get("stop").is_some()
            {
                return Ok(format!("{count} {}", responses.as_str().len()));
            }
            format!("{count}+")
        }
        None => "secret \u{e9}".to_owned(),
    };
    let asked = json!({"requestState": state, "inputRequests": {"k": {"method": "roots/list", "params": {}}}});
    let asked = InputRequired::read(&Raw::of(&asked).unwrap()).unwrap();
    match channel.round(asked).await? {
        Round::Answer(body) => Ok(String::from_utf8(body).unwrap()),
        Round::Again(_) => Ok("asked again".to_owned()),
    }
}

#[tokio::test]
async fn x_29_an_upstreams_state_goes_sealed_through_the_client_and_comes_back_byte_for_byte() {
    let node = Node::start().await;
    node.script(stateless);
    let [second, third] = node.party().await;
    second.script(stateless);
    third.script(stateless);
    let (keys, state) = node.asked("one").await;
    assert_eq!(keys, ["k"], "unchanged");
    assert!(!state.contains("secret"));
    assert_eq!(node.state.suspended_calls.waiting(), 0, "nothing waits");
    let answer = second
        .zebra("two", retry(&keys, &state, &json!({"roots": []})))
        .await;
    let (_, next) = required(&answer.json());
    let stop = retry(&["stop".to_owned()], &next, &json!({"roots": []}));
    let answer = third.zebra("three", stop).await;
    assert_eq!(text(&answer.json()), "secret \u{e9}+ 21");
    assert_eq!(R5.as_str(), HEADERS[0].1);

    let (mut keys, mut state) = node.asked("again").await;
    for _ in 1..10 {
        let answer = node.zebra("n", retry(&keys, &state, &json!({}))).await;
        (keys, state) = required(&answer.json());
    }
    let answer = node.zebra("end", retry(&keys, &state, &json!({}))).await;
    assert_eq!(
        text(&answer.json()),
        "The upstream server asked for input too many times.",
        "MCP-V-3"
    );
}

#[tokio::test]
async fn x_76_a_retry_hears_of_progress_under_its_own_token() {
    let node = Node::start().await;
    node.script(|channel| async move {
        let name = who(channel.clone()).await?;
        let progress = portolan_protocol::progress::Progress {
            progress: 3.0,
            total: Some(4.0),
            message: None,
        };
        channel.progress(progress).await;
        Ok(name)
    });
    let [second, _] = node.party().await;
    let (keys, state) = node.asked("one").await;
    let mut body = call("two", retry(&keys, &state, &named("Ada")));
    body["params"]["_meta"]["progressToken"] = json!("mine");
    let answer = second.post(&HEADERS, &body).await;
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let stream = String::from_utf8(answer.body).unwrap();
    let events: Vec<Value> = stream
        .split("\n\n")
        .filter(|event| event.contains("data: "))
        .map(data)
        .collect();
    assert_eq!(
        events[0]["params"],
        json!({"progressToken": "mine", "progress": 3, "total": 4})
    );
    assert_eq!(text(&events[1]), "Hello Ada");
    assert!(!stream.contains("id: "), "MCP-T-64");
}
