//! Prompts, resources and completion over the wire, in every revision.

use portolan_model::{
    prompt::{Argument, Block, Message, Speaker, Suggestion},
    registry::{ResourceBody, ResourceShape},
};
use portolan_storage::registry::{prompts, resources};

use crate::streams::list_changes::tell_tenant;
use crate::wire::*;

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

fn argument(name: &str, required: bool, values: &[&str]) -> Argument {
    Argument {
        name: name.to_owned(),
        title: Some(format!("The {name}")),
        required,
        values: values
            .iter()
            .map(|value| Suggestion {
                value: (*value).to_owned(),
                ..Suggestion::default()
            })
            .collect(),
        ..Argument::default()
    }
}

fn prompt(name: &str, arguments: Vec<Argument>, blocks: Vec<Block>) -> prompts::Published {
    let messages: Vec<Message> = blocks
        .into_iter()
        .map(|content| Message {
            role: Speaker::User,
            content,
        })
        .collect();
    prompts::Published {
        id: Id::generate(),
        source: None,
        upstream_name: None,
        upstream: None,
        name: name.to_owned(),
        title: "A prompt".to_owned(),
        description: "For tests".to_owned(),
        arguments,
        version: 1,
        messages: Some(json!(messages)),
    }
}

fn resource(uri: &str, body: ResourceBody, content: Option<&[u8]>) -> resources::Published {
    resources::Published {
        id: Id::generate(),
        source: None,
        upstream_uri: None,
        upstream: None,
        shape: if uri.contains('{') {
            ResourceShape::Template
        } else {
            ResourceShape::Resource
        },
        uri: uri.to_owned(),
        name: "one".to_owned(),
        title: "A resource".to_owned(),
        description: String::new(),
        mime_type: Some("application/json".to_owned()),
        annotations: json!({"audience": ["user"], "lastModified": "2026-01-01T00:00:00Z"}),
        variables: vec![argument("id", true, &["7", "77", "8"])],
        body,
        size: content.and_then(|bytes| i32::try_from(bytes.len()).ok()),
        content: content.map(<[u8]>::to_vec),
        plan: None,
        version: 1,
    }
}

fn offered_prompts() -> Vec<prompts::Published> {
    let text = |text: &str| Block::Text { text: text.into() };
    let everything = vec![
        text("Look at {{what}}, {{how}}."),
        Block::Image {
            data: "AA==".into(),
            mime_type: "image/png".into(),
        },
        Block::Audio {
            data: "AA==".into(),
            mime_type: "audio/wav".into(),
        },
        Block::Resource {
            uri: "x://{{what}}".into(),
            mime_type: Some("application/json".into()),
            text: Some(r#"{"what":"{{how}}"}"#.into()),
            blob: None,
        },
        Block::ResourceLink {
            uri: "x://link".into(),
            name: "link".into(),
            title: None,
            description: None,
            mime_type: None,
        },
    ];
    let arguments = vec![
        argument("what", true, &["cats", "dogs", "Catamarans"]),
        argument("how", false, &[]),
    ];
    vec![
        prompt("review", arguments, everything),
        prompt("about", Vec::new(), vec![text("Hello")]),
        prompt("zero", Vec::new(), vec![text("Bye")]),
    ]
}

impl Node {
    fn offer(&self, prompts: Vec<prompts::Published>, resources: Vec<resources::Published>) {
        let source = SourceId::generate();
        let resources = resources
            .into_iter()
            .map(|mut one| {
                if one.body == ResourceBody::Http {
                    one.source = Some(source);
                }
                one
            })
            .collect();
        let row = PublishedServer {
            prompts,
            resources,
            sources: [(source, self.source())].into(),
            ..self.row(Vec::new())
        };
        self.serve(row, &LimitSet::default());
    }

    async fn offering() -> Self {
        let node = Self::start().await;
        node.offer(offered_prompts(), held());
        node
    }

    /// The result of a request, in the era of `revision`.
    async fn result(&self, revision: &str, method: &str, params: Value) -> Value {
        let answer = self.answered(revision, method, params).await;
        let body = answer.json();
        assert!(body["result"].is_object(), "{revision} {method}: {body}");
        body["result"].clone()
    }

    async fn answered(&self, revision: &str, method: &str, params: Value) -> Answer {
        if revision == MODERN {
            let name = params["name"].as_str().or(params["uri"].as_str());
            let named = matches!(method, "prompts/get" | "resources/read");
            let header = name.filter(|_| named).map(|name| ("mcp-name", name));
            let header: Vec<_> = header.into_iter().collect();
            self.ask(method, params.clone(), &header).await
        } else {
            let session = self.initialize(revision).await;
            self.call(&session, method, params).await
        }
    }
}

fn held() -> Vec<resources::Published> {
    let plan = json!({"method": "GET", "path": "/pets/{id}", "parameters": [
        {"argument": "id", "name": "id", "in": "path", "encoding": {"by": "style", "style": "simple", "explode": false}}]});
    let asked = resources::Published {
        plan: Some(plan),
        mime_type: None,
        ..resource("pets://{id}", ResourceBody::Http, None)
    };
    let broken = resources::Published {
        plan: Some(json!({"method": "GET", "path": "/nowhere"})),
        ..resource("pets://none/at/all", ResourceBody::Http, None)
    };
    vec![
        resource("notes://a", ResourceBody::Text, Some(br#"{"a":"{{id}}"}"#)),
        resource("notes://b", ResourceBody::File, Some(&[0, 255, 1])),
        resource(
            "notes://{id}/data",
            ResourceBody::Text,
            Some(br#"{"id":"{{id}}"}"#),
        ),
        asked,
        broken,
    ]
}

#[tokio::test]
async fn pg_1_prompts_resources_and_templates_are_paged_and_cursors_fit_their_own_list_only() {
    let node = Node::offering().await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let first = node.result(revision, "prompts/list", json!({})).await;
        let names = |page: &Value| {
            let names = page["prompts"].as_array().unwrap().iter();
            names
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&first), ["about", "review"], "by name, byte order");
        assert_eq!(first["prompts"][1]["arguments"][0]["required"], json!(true));
        let titled = first["prompts"][0]["title"].is_string();
        assert_eq!(titled, revision >= "2025-06-18", "MCP-FA-4 {revision}");
        let cursor = first["nextCursor"].clone();
        let second = node
            .result(revision, "prompts/list", json!({"cursor": cursor}))
            .await;
        assert_eq!(names(&second), ["zero"]);
        assert!(second.get("nextCursor").is_none());
        let elsewhere = json!({"cursor": cursor});
        let refused = node.answered(revision, "resources/list", elsewhere).await;
        assert_eq!(refused.code(), -32602, "MCP-PG-2");

        let first = node.result(revision, "resources/list", json!({})).await;
        assert_eq!(first["resources"][0]["uri"], "notes://a");
        assert_eq!(first["resources"][0]["size"], 14);
        let dated = first["resources"][0]["annotations"]["lastModified"].is_string();
        assert_eq!(dated, revision >= "2025-06-18", "MCP-FA-3 {revision}");
        assert!(first["nextCursor"].is_string());
        let templates = node
            .result(revision, "resources/templates/list", json!({}))
            .await;
        assert_eq!(
            templates["resourceTemplates"][0]["uriTemplate"],
            "notes://{id}/data"
        );
        assert_eq!(
            first["ttlMs"].is_number(),
            revision == MODERN,
            "MCP-CA-1, MCP-CA-6"
        );
    }
}

#[tokio::test]
async fn pr_2_a_prompt_is_filled_and_shaped_for_every_revision() {
    let node = Node::offering().await;
    let params =
        json!({"name": "review", "arguments": {"what": "a{{how}}", "how": "\"x\"", "more": "no"}});
    // A value is text: its own placeholders are not filled, and a URI must stay a URI.
    let refused = node.answered(MODERN, "prompts/get", params).await;
    assert_eq!((refused.status, refused.code()), (200, -32602), "MCP-PR-7");
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let params = json!({"name": "review", "arguments": {"what": "cats", "how": "\"x\" {{what}}", "more": "no"}});
        let result = node.result(revision, "prompts/get", params).await;
        let content = |at: usize| &result["messages"][at]["content"];
        assert_eq!(result["description"], "For tests");
        assert_eq!(
            content(0),
            &json!({"type": "text", "text": "Look at cats, \"x\" {{what}}."})
        );
        assert_eq!(content(1)["mimeType"], "image/png");
        assert_eq!(content(2)["type"], "audio", "MCP-FA-3: from 2025-03-26");
        assert_eq!(content(3)["resource"]["uri"], "x://cats");
        let text = content(3)["resource"]["text"].as_str().unwrap();
        let json: Value = serde_json::from_str(text).expect("still JSON");
        assert_eq!(json["what"], "\"x\" {{what}}");
        let linked = revision >= "2025-06-18";
        assert_eq!(
            content(4)["type"],
            if linked { "resource_link" } else { "text" },
            "MCP-X-61 {revision}"
        );
        assert_eq!(result["messages"][0]["role"], "user");
        assert_eq!(result["resultType"].is_string(), revision == MODERN);
    }
}

#[tokio::test]
async fn pr_4_an_unknown_prompt_a_missing_argument_and_an_endless_one_are_invalid_params() {
    let node = Node::offering().await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        for params in [
            json!({"name": "nothing"}),
            json!({"name": "review"}),
            json!({"name": "review", "arguments": {"how": "x"}}),
            json!({"name": "review", "arguments": {"what": "x".repeat(40_000)}}),
            json!({"name": "review", "arguments": {"what": 7}}),
        ] {
            let refused = node.answered(revision, "prompts/get", params.clone()).await;
            assert_eq!(
                (refused.status, refused.code()),
                (200, -32602),
                "{revision} {params}"
            );
        }
    }
}

#[tokio::test]
async fn re_2_texts_files_templates_and_apis_are_read_in_every_revision() {
    let node = Node::offering().await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let read = async |uri: &str| {
            let result = node
                .result(revision, "resources/read", json!({"uri": uri}))
                .await;
            assert_eq!(result["ttlMs"].is_number(), revision == MODERN, "MCP-CA-4");
            assert_eq!(result["contents"][0]["uri"], *uri);
            result["contents"][0].clone()
        };
        let text = read("notes://a").await;
        assert_eq!(
            text["text"], r#"{"a":"{{id}}"}"#,
            "only templates are filled"
        );
        let file = read("notes://b").await;
        assert_eq!((&file["blob"], file.get("text")), (&json!("AP8B"), None));
        let filled = read("notes://a%22b/data").await;
        assert_eq!(filled["text"], r#"{"id":"a\"b"}"#, "a value stays a value");
        let asked = read("pets://9").await;
        let pet: Value = serde_json::from_str(asked["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&pet["id"], &asked["mimeType"]),
            (&json!("9"), &json!("application/json"))
        );
    }
}

#[tokio::test]
async fn re_4_and_re_5_what_is_not_there_has_the_code_of_its_revision_and_its_uri() {
    let node = Node::offering().await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let code = if revision == MODERN { -32602 } else { -32002 };
        for uri in [
            "notes://none",
            "notes://%00/data",
            "pets://none/at/all",
            "pets://..",
        ] {
            let refused = node
                .answered(revision, "resources/read", json!({"uri": uri}))
                .await;
            assert_eq!(refused.code(), code, "{revision} {uri}");
            assert_eq!(refused.json()["error"]["data"]["uri"], uri);
        }
    }
}

#[tokio::test]
async fn h_2_the_mirrored_name_of_a_prompt_and_of_a_resource_must_fit() {
    let node = Node::offering().await;
    for (method, params) in [
        ("prompts/get", json!({"name": "about"})),
        ("resources/read", json!({"uri": "notes://a"})),
    ] {
        for header in [&[][..], &[("mcp-name", "other")]] {
            let refused = node.ask(method, params.clone(), header).await;
            assert_eq!((refused.status, refused.code()), (400, -32020), "{method}");
        }
    }
}

#[tokio::test]
async fn cp_3_cp_4_and_cp_5_declared_values_complete_prompts_and_templates() {
    let node = Node::offering().await;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let complete = async |reference: Value, name: &str, value: &str| {
            let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
            node.answered(revision, "completion/complete", params).await
        };
        let prompt = json!({"type": "ref/prompt", "name": "review"});
        let found = complete(prompt.clone(), "what", "cat").await.json();
        assert_eq!(
            found["result"]["completion"],
            json!({"values": ["cats", "Catamarans"], "total": 2, "hasMore": false})
        );
        let template = json!({"type": "ref/resource", "uri": "notes://{id}/data"});
        let found = complete(template.clone(), "id", "7").await.json();
        assert_eq!(found["result"]["completion"]["values"], json!(["7", "77"]));
        for (reference, name) in [
            (prompt, "nothing"),
            (template, "nothing"),
            (json!({"type": "ref/prompt", "name": "none"}), "what"),
            (json!({"type": "ref/resource", "uri": "none://{x}"}), "x"),
            (json!({"type": "ref/other"}), "x"),
        ] {
            assert_eq!(
                complete(reference, name, "").await.code(),
                -32602,
                "MCP-CP-4"
            );
        }
    }
    // MCP-CP-5: completion is only for callers that may use the server.
    let mut stranger = node.claims();
    stranger.tid = TenantId::generate();
    let token = node.sign(&stranger);
    let params = json!({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "what", "value": "c"}});
    let refused = node
        .post(
            &[("authorization", &token)],
            &rpc("completion/complete", params),
        )
        .await;
    assert_ne!(refused.status, 200, "MCP-CP-5");
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(!said.contains("cats"), "MCP-CP-5: {said}");
}

#[tokio::test]
async fn cp_3_more_than_a_hundred_values_are_cut_and_said_so() {
    let node = Node::start().await;
    let many: Vec<String> = (0..150).map(|number| format!("v{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    node.offer(
        vec![prompt("p", vec![argument("a", false, &many)], Vec::new())],
        Vec::new(),
    );
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let found = node.result(MODERN, "completion/complete", params).await;
    let completion = &found["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!(
        (&completion["total"], &completion["hasMore"]),
        (&json!(150), &json!(true))
    );
}

fn raised(uri: &str) -> Vec<resources::Published> {
    let mut all = held();
    for one in all.iter_mut().filter(|one| one.uri == uri) {
        one.version += 1;
    }
    all
}

#[tokio::test]
async fn re_7_and_n_4_a_session_that_subscribed_is_told_of_an_update_on_another_node_too() {
    let node = Node::offering().await;
    let twin = node.twin().await;
    twin.offer(offered_prompts(), held());
    let session = node.ready_session("2025-06-18").await;
    let unknown = node
        .call(&session, "resources/subscribe", json!({"uri": "x://none"}))
        .await;
    assert_eq!(unknown.code(), -32002, "MCP-RE-7");
    let (_, _, mut stream) = twin.open(&[("mcp-session-id", &session)]).await;
    frame(&mut stream).await;
    for uri in ["notes://a", "notes://5/data", "notes://a"] {
        let subscribed = node
            .call(&session, "resources/subscribe", json!({"uri": uri}))
            .await;
        assert_eq!(subscribed.json()["result"], json!({}), "idempotent");
    }
    // It gets no notification without a subscription.
    twin.offer(offered_prompts(), raised("notes://b"));
    tell_tenant(&twin.state, twin.tenant).await;
    assert!(is_quiet(&mut stream).await);
    twin.offer(offered_prompts(), raised("notes://a"));
    tell_tenant(&twin.state, twin.tenant).await;
    let event = frame(&mut stream).await.unwrap();
    assert_eq!(
        data(&event),
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "notes://a"}})
    );
    let seen = event_id(&event).unwrap().to_owned();
    let gone = node
        .call(
            &session,
            "resources/unsubscribe",
            json!({"uri": "notes://a"}),
        )
        .await;
    assert_eq!(gone.json()["result"], json!({}));
    let never = node
        .call(
            &session,
            "resources/unsubscribe",
            json!({"uri": "notes://z"}),
        )
        .await;
    assert_eq!(never.json()["result"], json!({}), "MCP-RE-7");
    drop(stream);
    // A change of a template is one of every URI that fits it. A change without an open stream is
    // sent when the stream resumes.
    twin.offer(offered_prompts(), raised("notes://{id}/data"));
    let (_, _, mut stream) = twin
        .open(&[("mcp-session-id", &session), ("last-event-id", &seen)])
        .await;
    frame(&mut stream).await;
    let event = frame(&mut stream).await.unwrap();
    assert_eq!(data(&event)["params"], json!({"uri": "notes://5/data"}));
    assert!(is_quiet(&mut stream).await, "unsubscribed");
}

#[tokio::test]
async fn sb_3_a_listen_stream_is_told_of_its_resources_and_lists_and_of_nothing_else() {
    let node = Node::offering().await;
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": ["notes://a", "x://none", "notes://1/data"]});
    let body = modern_wire::modern("subscriptions/listen", json!({"notifications": wanted}));
    let request = node.request(
        "POST",
        &[
            ("mcp-protocol-version", MODERN),
            ("mcp-method", "subscriptions/listen"),
            ("accept", "application/json, text/event-stream"),
        ],
        body.to_string(),
    );
    let mut stream = node
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body();
    let acknowledged = data(&frame(&mut stream).await.unwrap());
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"promptsListChanged": true, "resourceSubscriptions": ["notes://a", "notes://1/data"]}),
        "MCP-SB-6"
    );
    // Resources change too, but their list was not requested (MCP-SB-4); a prompt goes, and one
    // resource is another.
    let mut prompts = offered_prompts();
    prompts.pop();
    let mut resources = raised("notes://a");
    resources.push(resource("notes://new", ResourceBody::Text, Some(b"x")));
    node.offer(prompts, resources);
    tell_tenant(&node.state, node.tenant).await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let event = data(&frame(&mut stream).await.unwrap());
        assert_eq!(
            event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "r-1",
            "MCP-SB-3"
        );
        told.push((event["method"].clone(), event["params"]["uri"].clone()));
    }
    assert_eq!(
        told,
        [
            (json!("notifications/prompts/list_changed"), Value::Null),
            (json!("notifications/resources/updated"), json!("notes://a")),
        ]
    );
    tell_tenant(&node.state, node.tenant).await;
    assert!(is_quiet(&mut stream).await, "told once");
}

#[tokio::test]
async fn pr_5_and_re_8_each_list_is_announced_by_its_own_notification() {
    let node = Node::offering().await;
    let session = node.ready_session("2025-11-25").await;
    let (_, _, mut stream) = node.open(&[("mcp-session-id", &session)]).await;
    for _ in 0..2 {
        frame(&mut stream).await;
    }
    node.offer(Vec::new(), Vec::new());
    tell_tenant(&node.state, node.tenant).await;
    let mut methods = Vec::new();
    for _ in 0..2 {
        methods.push(data(&frame(&mut stream).await.unwrap())["method"].clone());
    }
    assert_eq!(
        methods,
        [
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed"
        ]
    );
}
