//! Notifications of running tasks and questions (MCP-TK-14, MCP-TK-18, MCP-TX-13, MCP-X-5D,
//! MCP-X-58, MCP-X-7J).
//!
//! They go to streams on any node, in the form of each era, and to upstream servers that want them.

use axum::{
    response::{IntoResponse, sse},
    routing::{get, post},
};
use futures_util::stream;

use crate::nodes::notify;
use crate::wire::{
    answers_wire::event,
    modern_wire::modern,
    tasks_wire::{R4, last},
    upstream_tasks_wire::with,
    upstream_tasks_wire::{Heard, heard_of},
    *,
};

const AT: &str = "2026-11-21T12:00:00Z";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn theirs(status: &str, more: Value) -> Value {
    let task = json!({"taskId": "theirs", "status": status, "createdAt": AT, "lastUpdatedAt": AT});
    with(task, more)
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn answered(request: &Value, result: Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    ([("mcp-session-id", "theirs")], Json(body)).into_response()
}

fn notice(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Waits until the server received this number of requests.
async fn until(heard: &Heard, method: &str, count: usize) {
    while heard_of(heard, method).len() < count {
        tokio::task::yield_now().await;
    }
}

/// A server of 2026-07-28 with a long poll interval that sends a notification when its task moved.
fn telling(heard: &Heard, request: &Value) -> Response {
    let complete = |more| answered(request, with(json!({"resultType": "complete"}), more));
    match request["method"].as_str().unwrap() {
        "server/discover" => {
            complete(json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}))
        }
        "tools/call" => {
            let more = json!({"resultType": "task", "ttlMs": null, "pollIntervalMs": 1});
            answered(request, theirs("working", more))
        }
        "subscriptions/listen" => {
            let named = request["params"]["notifications"].clone();
            let method = "notifications/subscriptions/acknowledged";
            let acknowledged = notice(method, json!({"notifications": named}));
            let moved = notice("notifications/tasks", theirs("working", json!({})));
            let events = [acknowledged, moved]
                .map(|data| Ok::<_, std::convert::Infallible>(sse::Event::default().data(data)));
            sse::Sse::new(stream::iter(events)).into_response()
        }
        _ if heard_of(heard, "tasks/get").len() < 2 => {
            complete(theirs("working", json!({"pollIntervalMs": 60_000})))
        }
        _ => complete(theirs("completed", json!({"result": text("at once")}))),
    }
}

/// The same of 2025-11-25, which sends it on the stream of the session.
fn stating(heard: &Heard, request: &Value) -> Response {
    let params = &request["params"];
    match request["method"].as_str().unwrap() {
        "initialize" => answered(
            request,
            json!({"protocolVersion": R4, "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}),
        ),
        "server/discover" => StatusCode::BAD_REQUEST.into_response(),
        "tools/call" if params.get("task").is_some() => {
            let more = json!({"ttl": null, "pollInterval": 1});
            answered(request, json!({"task": theirs("working", more)}))
        }
        "tasks/get" if heard_of(heard, "tasks/get").len() < 2 => answered(
            request,
            theirs("working", json!({"ttl": null, "pollInterval": 60_000})),
        ),
        "tasks/get" => answered(request, theirs("completed", json!({"ttl": null}))),
        "tasks/result" => answered(request, text("at once")),
        // It asks, and wants its client's progress.
        "tools/call" => {
            let heard = Arc::clone(heard);
            let id = request["id"].clone();
            let asked = json!({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": {
                "message": "Who?", "requestedSchema": {"type": "object", "properties": {}},
                "_meta": {"progressToken": "theirs-7", "kept": true}}});
            let first = stream::iter([asked.to_string()]);
            let then = stream::once(async move {
                loop {
                    let said = heard.lock().unwrap().clone();
                    if said.iter().any(|message| message["id"] == "ask") {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                json!({"jsonrpc": "2.0", "id": id, "result": text("thanks")}).to_string()
            });
            let events = futures_util::StreamExt::chain(first, then);
            let events = futures_util::StreamExt::map(events, |data| {
                Ok::<_, std::convert::Infallible>(sse::Event::default().data(data))
            });
            sse::Sse::new(events).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// The stream of a session: it sends the notification once the task was read.
fn statement(heard: Heard) -> Response {
    let moved = stream::once(async move {
        until(&heard, "tasks/get", 1).await;
        let more = json!({"ttl": null});
        let data = notice("notifications/tasks/status", theirs("working", more));
        Ok::<_, std::convert::Infallible>(sse::Event::default().data(data))
    });
    let open = futures_util::StreamExt::chain(moved, stream::pending());
    sse::Sse::new(open).into_response()
}

pub(crate) fn servers(heard: &Heard) -> Router {
    let hears = |heard: &Heard, answer: fn(&Heard, &Value) -> Response| {
        let heard = Arc::clone(heard);
        move |Json(request): Json<Value>| {
            let heard = Arc::clone(&heard);
            async move {
                heard.lock().unwrap().push(request.clone());
                if request.get("method").is_none() {
                    return StatusCode::ACCEPTED.into_response();
                }
                answer(&heard, &request)
            }
        }
    };
    let (stands, leaves) = (Arc::clone(heard), Arc::clone(heard));
    Router::new()
        .route("/telling", post(hears(heard, telling)))
        .route("/stating", post(hears(heard, stating)))
        .route(
            "/stating",
            get(move || {
                let heard = Arc::clone(&stands);
                async move { statement(heard) }
            })
            .delete(move |head: HeaderMap| {
                let session = head["mcp-session-id"]
                    .to_str()
                    .unwrap_or_default()
                    .to_owned();
                leaves
                    .lock()
                    .unwrap()
                    .push(json!({"method": "DELETE", "session": session}));
                async { StatusCode::OK }
            }),
        )
}

impl Node {
    /// Receives messages of other nodes, once they know this node.
    pub(crate) async fn among(&self, other: &Self) {
        let state: &crate::nodes::context::NodeContext = &self.state;
        TaskTracker::new().spawn(notify::listen(state.clone()));
        let mut members = other.state.node.members();
        let me = self.state.node.id();
        let known = members.wait_for(|members| members.live.contains(&me));
        known.await.expect("the nodes find each other");
        tokio::task::yield_now().await;
    }

    pub(crate) async fn listen_to(&self, id: Value, tasks: &[&Value]) -> Body {
        let mut body = modern(
            "subscriptions/listen",
            json!({"notifications": {"taskIds": tasks}}),
        );
        body["id"] = id;
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "subscriptions/listen"),
        ];
        let request = self.request("POST", &headers, body.to_string());
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    }
}

async fn next(body: &mut Body) -> Value {
    data(&event(body).await.expect("an event"))
}

#[tokio::test]
async fn tk_14_tk_18_and_pp_2_a_session_hears_of_its_task_on_a_stream_of_another_node() {
    let [node, twin] = Node::pair(&["held", "zebra"]).await;
    twin.among(&node).await;
    let session = twin.ready_session(R4).await;
    let other = twin.ready_session(R4).await;
    let (_, _, mut older) = twin.open(&[("mcp-session-id", &session)]).await;
    let (_, _, mut stream) = twin.open(&[("mcp-session-id", &session)]).await;
    let (_, _, mut others) = twin.open(&[("mcp-session-id", &other)]).await;
    for stream in [&mut older, &mut stream, &mut others] {
        frame(stream).await;
        frame(stream).await;
    }
    let params = json!({"name": "held", "task": {}, "_meta": {"progressToken": "p"}});
    let begun = node.call(&session, "tools/call", params).await.json();
    let id = &begun["result"]["task"]["taskId"];
    let progress = next(&mut stream).await;
    assert_eq!(progress["method"], "notifications/progress", "MCP-TK-18");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert_eq!(
        progress["params"]["_meta"][RELATED]["taskId"], *id,
        "MCP-TK-12"
    );
    node.release.notify_one();
    let mut last_progress = progress["params"]["progress"].as_f64().unwrap();
    let told = loop {
        let told = next(&mut stream).await;
        if told["method"] != "notifications/progress" {
            break told;
        }
        let now = told["params"]["progress"].as_f64().unwrap();
        assert!(now > last_progress, "MCP-PP-1");
        last_progress = now;
    };
    assert_eq!(told["method"], "notifications/tasks/status", "MCP-TK-14");
    let seen = node
        .call(&session, "tasks/get", json!({"taskId": id}))
        .await
        .json();
    assert_eq!(told["params"], seen["result"], "the full task, and no more");
    assert_eq!(told["params"]["status"], "completed");
    assert!(told["params"].get("_meta").is_none(), "MCP-TK-12: not here");
    // MCP-T-33: on one stream of this node; and no client is notified of others' tasks.
    assert!(is_quiet(&mut older).await && is_quiet(&mut others).await);
    // MCP-PP-2: none after the end.
    assert!(is_quiet(&mut stream).await);
}

#[tokio::test]
async fn lg_4_and_n_4_a_session_hears_of_its_task_what_it_wants_to_hear_now_whichever_node_it_told()
{
    let [node, twin] = Node::pair(&["zebra"]).await;
    twin.among(&node).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let waits = Arc::clone(&gate);
    node.script(move |channel| {
        let gate = Arc::clone(&waits);
        async move {
            while let Ok(permit) = gate.acquire().await {
                permit.forget();
                for level in ["info", "warning", "error"] {
                    let params = json!({"level": level, "data": 1});
                    let said = notice("notifications/message", params);
                    channel.notify(said.into()).await;
                }
            }
            Ok(String::new())
        }
    });
    node.publish_as_tasks(&["zebra"]);
    let session = twin.ready_session(R4).await;
    let (_, _, mut stream) = twin.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    frame(&mut stream).await;
    let id = node.begin(&session, "zebra", json!({})).await["taskId"].clone();
    for (who, wanted, heard) in [
        (&node, None, &["warning", "error"][..]),
        (&node, Some("info"), &["info", "warning", "error"][..]),
        (&twin, Some("error"), &["error"][..]),
    ] {
        if let Some(level) = wanted {
            let level = json!({"level": level});
            let set = who.call(&session, "logging/setLevel", level).await;
            assert_eq!(set.status, 200);
        }
        gate.add_permits(1);
        for level in heard {
            let told = next(&mut stream).await;
            assert_eq!(told["params"]["level"], *level, "MCP-LG-4: {wanted:?}");
            assert_eq!(told["params"]["_meta"][RELATED]["taskId"], id, "MCP-TK-12");
        }
    }
    node.call(&session, "tasks/cancel", json!({"taskId": id}))
        .await;
    assert_eq!(next(&mut stream).await["params"]["status"], "cancelled");
}

#[tokio::test]
async fn a_task_that_says_too_much_is_heard_ten_times_a_second() {
    let [node, _twin] = Node::pair(&["zebra"]).await;
    node.script(|channel| async move {
        for number in 0..500 {
            let params = json!({"level": "error", "data": number});
            let said = notice("notifications/message", params);
            channel.notify(said.into()).await;
        }
        std::future::pending().await
    });
    node.publish_as_tasks(&["zebra"]);
    let session = node.ready_session(R4).await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    frame(&mut stream).await;
    let id = node.begin(&session, "zebra", json!({})).await["taskId"].clone();
    let mut told = 0;
    while !is_quiet(&mut stream).await {
        told += 1;
    }
    assert!((1..=50).contains(&told), "{told} of 500");
    node.call(&session, "tasks/cancel", json!({"taskId": id}))
        .await;
}

#[tokio::test]
async fn sb_10_nothing_of_a_task_is_told_to_who_may_not_hear_it_any_more() {
    let [node, _twin] = Node::pair(&["held"]).await;
    let session = node.initialize(R4).await;
    let made = node.begin(&session, "held", json!({})).await["taskId"].clone();
    let mut stream = node.listen_to(json!(1), &[&made]).await;
    next(&mut stream).await;
    // The task changed, the change was not read yet, and the token is revoked.
    node.call(&session, "tasks/cancel", json!({"taskId": made}))
        .await;
    node.revocations.insert(
        portolan_cluster::Revocation::User {
            user: node.user,
            epoch: 2,
        },
        NOW + time::Duration::HOUR,
    );
    let revoked =
        |tag: &crate::streams::tag::Tag| node.state.revocations.is_revoked(&tag.caller.facts());
    let ended = node
        .state
        .streams
        .end(portolan_cluster::End::Revoked, revoked);
    assert_eq!(ended, 1);
    let last = next(&mut stream).await;
    assert_eq!(
        last["id"], 1,
        "MCP-SB-8: the answer to the request, and nothing else"
    );
    assert!(frame(&mut stream).await.is_none());
}

#[tokio::test]
async fn tx_13_a_bell_that_was_lost_costs_no_truth() {
    let [node, twin] = Node::pair(&["held"]).await;
    let session = node.initialize(R4).await;
    let made = node.begin(&session, "held", json!({})).await["taskId"].clone();
    // This node does not receive messages of other nodes.
    let mut stream = twin.listen_to(json!(1), &[&made]).await;
    next(&mut stream).await;
    assert!(is_quiet(&mut stream).await, "it works, which is no news");
    node.call(&session, "tasks/cancel", json!({"taskId": made}))
        .await;
    assert!(is_quiet(&mut stream).await, "it was not told");
    crate::streams::tasks::look_again(&twin.state, None);
    let told = next(&mut stream).await;
    assert_eq!(told["params"]["status"], "cancelled");
    crate::streams::tasks::look_again(&twin.state, None);
    assert!(is_quiet(&mut stream).await, "once");
}

#[tokio::test]
async fn tx_13_sb_3_sb_6_and_x_5d_a_listen_stream_hears_of_the_tasks_it_named_whoever_made_them() {
    let [node, twin] = Node::pair(&["held", "slow"]).await;
    twin.among(&node).await;
    node.among(&twin).await;
    let session = node.initialize(R4).await;
    let made = node.begin(&session, "held", json!({})).await["taskId"].clone();
    let created = node.extended("tools/call", json!({"name": "slow"})).await;
    let modern = created.json()["result"]["taskId"].clone();
    let unnamed = node.begin(&session, "slow", json!({})).await["taskId"].clone();
    let foreign = json!("not-a-task");
    let mut stream = twin.listen_to(json!(9), &[&made, &foreign, &modern]).await;
    let subscription = json!({"io.modelcontextprotocol/subscriptionId": 9});
    let first = next(&mut stream).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"],
        json!({"_meta": subscription, "notifications": {"taskIds": [made, modern]}}),
        "MCP-SB-6"
    );
    node.release.notify_one();
    let told = next(&mut stream).await;
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(told["params"]["_meta"], subscription, "MCP-SB-3");
    assert_eq!(told["params"]["taskId"], made);
    assert_eq!(told["params"]["status"], "completed", "MCP-X-5D");
    assert_eq!(
        told["params"]["result"]["structuredContent"],
        json!({"released": true}),
        "MCP-TX-6"
    );
    assert!(told["params"].get("ttl").is_none(), "MCP-X-55");
    node.call(&session, "tasks/cancel", json!({"taskId": unnamed}))
        .await;
    node.extended("tasks/cancel", json!({"taskId": modern}))
        .await;
    let told = next(&mut stream).await;
    assert_eq!(
        told["params"]["taskId"], modern,
        "MCP-SB-4: only what was named"
    );
    assert_eq!(told["params"]["status"], "cancelled");

    // A late client receives the outcome.
    let mut late = node.listen_to(json!("late"), &[&made]).await;
    next(&mut late).await;
    let told = next(&mut late).await;
    assert_eq!(told["params"]["status"], "completed");
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "late"
    );
}

#[tokio::test]
async fn tx_13_nobody_hears_of_a_task_of_somebody_else() {
    let [node, _twin] = Node::pair(&["slow"]).await;
    let session = node.initialize(R4).await;
    let made = node.begin(&session, "slow", json!({})).await["taskId"].clone();
    let mut stranger = node.claims();
    "client-b".clone_into(&mut stranger.client_id);
    let token = node.sign(&stranger);
    let mut body = modern(
        "subscriptions/listen",
        json!({"notifications": {"taskIds": [made]}}),
    );
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let request = node.request("POST", &headers, body.to_string());
    let mut theirs = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    let first = next(&mut theirs).await;
    assert_eq!(
        first["params"]["notifications"],
        json!({}),
        "MCP-TX-15, MCP-SB-6"
    );
    node.call(&session, "tasks/cancel", json!({"taskId": made}))
        .await;
    assert!(is_quiet(&mut theirs).await);
}

#[tokio::test]
async fn x_58_the_word_of_a_server_that_its_task_moved_is_a_reason_to_look() {
    for server in ["telling", "stating"] {
        let node = Node::start().await;
        node.publish_theirs(server, "required", &["job"]);
        let session = node.asked_session().await;
        let id = node.begin(&session, "job", json!({})).await["taskId"].clone();
        // Its poll interval is a minute, which is five seconds here.
        let waits = node.call(&session, "tasks/result", json!({"taskId": id}));
        let answer = tokio::time::timeout(Duration::from_secs(4), waits).await;
        let answer = answer.unwrap_or_else(|_| panic!("{server} was not looked at"));
        assert_eq!(
            last(&answer)["result"]["content"][0]["text"],
            "at once",
            "{server}"
        );
    }
}

#[tokio::test]
async fn x_7j_a_server_hears_how_far_the_client_is_with_its_question_from_any_node() {
    let node = Node::start().await;
    node.publish_theirs("stating", "optional", &["job"]);
    let twin = node.twin().await;
    node.among(&twin).await;
    let session = node.asked_session().await;
    let body = rpc("tools/call", json!({"name": "job"}));
    let request = node.request("POST", &[("mcp-session-id", &session)], body.to_string());
    let mut stream = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    let question = next(&mut stream).await;
    let token = &question["params"]["_meta"]["progressToken"];
    assert_eq!(question["params"]["_meta"]["kept"], true);
    assert!(!question.to_string().contains("theirs-7"), "MCP-X-19");
    let headers = [("mcp-session-id", session.as_str())];
    let says = |token: Value, progress: f64| {
        json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": progress, "total": 10, "message": "reading"}})
    };
    for (token, progress) in [
        (json!("theirs-7"), 9.0),
        (json!(7), 9.0),
        (json!("00ff"), 9.0),
        (token.clone(), 1.0),
        (token.clone(), 1.0),
        (token.clone(), 2.5),
    ] {
        let answer = twin.post(&headers, &says(token, progress)).await;
        assert_eq!(answer.status, 202);
    }
    until(&node.heard, "notifications/progress", 2).await;
    // The token is not valid in another session.
    let other = twin.asked_session().await;
    let elsewhere = [("mcp-session-id", other.as_str())];
    twin.post(&elsewhere, &says(token.clone(), 9.0)).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
    assert_eq!(twin.post(&headers, &answer).await.status, 202);
    let result = next(&mut stream).await;
    assert_eq!(result["result"]["content"][0]["text"], "thanks");
    let told = heard_of(&node.heard, "notifications/progress");
    let told: Vec<&Value> = told.iter().map(|told| &told["params"]).collect();
    assert_eq!(
        told,
        [
            &json!({"progressToken": "theirs-7", "progress": 1.0, "total": 10, "message": "reading"}),
            &json!({"progressToken": "theirs-7", "progress": 2.5, "total": 10, "message": "reading"}),
        ],
        "once each, growing, and as it was said"
    );
}

#[tokio::test]
async fn streams_13_a_server_hears_that_a_session_is_over_whoever_ended_it_and_only_if_it_had_one()
{
    let node = Node::start().await;
    node.publish_theirs("stating", "optional", &["job"]);
    // Its task is done at the first poll.
    let looked = json!({"method": "tasks/get"});
    node.heard.lock().unwrap().extend([looked.clone(), looked]);
    let silent = node.initialize(R4).await;
    let spoke = node.initialize(R4).await;
    let left = node.initialize(R4).await;
    for session in [&spoke, &left] {
        let params = json!({"name": "job", "task": {}});
        let begun = node.call(session, "tools/call", params).await.json();
        let id = &begun["result"]["task"]["taskId"];
        let waits = node.call(session, "tasks/result", json!({"taskId": id}));
        assert_eq!(
            last(&waits.await)["result"]["content"][0]["text"],
            "at once"
        );
    }
    let settled = async || {
        while !node.state.tracker.is_empty() {
            tokio::task::yield_now().await;
        }
        let count = |method| heard_of(&node.heard, method).len();
        (count("initialize"), count("DELETE"))
    };
    // The detection of the server's era had a session, too.
    let (opened, ended) = settled().await;
    for session in [&silent, &spoke] {
        let headers = [("mcp-session-id", session.as_str())];
        let over = node.request("DELETE", &headers, String::new());
        assert_eq!(node.send(over).await.status, 200);
    }
    assert_eq!(
        settled().await,
        (opened, ended + 1),
        "nobody is spoken to in order to take leave"
    );
    // The other client disconnected without a DELETE.
    for hours in [0, 12] {
        node.clock.advance(time::Duration::hours(hours));
        node.state.upstreams.give_back(&node.state);
        assert_eq!(settled().await, (opened, ended + 1), "it may come back");
    }
    node.clock.advance(time::Duration::hours(13));
    node.state.upstreams.give_back(&node.state);
    assert_eq!(settled().await, (opened, ended + 2));
    node.state.upstreams.give_back(&node.state);
    assert_eq!(settled().await, (opened, ended + 2), "once");
    let left = heard_of(&node.heard, "DELETE");
    assert!(left.iter().all(|left| left["session"] == "theirs"));
}

#[tokio::test]
async fn streams_13_of_a_server_that_is_not_published_as_it_was_nobody_takes_leave() {
    let node = Node::start().await;
    node.publish_theirs("stating", "optional", &["job"]);
    let looked = json!({"method": "tasks/get"});
    node.heard.lock().unwrap().extend([looked.clone(), looked]);
    let session = node.initialize(R4).await;
    let params = json!({"name": "job", "task": {}});
    let begun = node.call(&session, "tools/call", params).await.json();
    let id = &begun["result"]["task"]["taskId"];
    node.call(&session, "tasks/result", json!({"taskId": id}))
        .await;
    let left = async || {
        while !node.state.tracker.is_empty() {
            tokio::task::yield_now().await;
        }
        heard_of(&node.heard, "DELETE").len()
    };
    let before = left().await;
    // The source was deleted and replaced by another one.
    node.publish_theirs("stating", "optional", &["job"]);
    node.clock.advance(time::Duration::hours(25));
    node.state.upstreams.give_back(&node.state);
    assert_eq!(left().await, before);
}
