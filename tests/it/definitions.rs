//! Definitions on their way from where they were written to a client: names, order, numbers and
//! characters that are not shown.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use portolan_tests::{
    behind::publish_at,
    console::{Published, text},
    fixture::FixtureApi,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    revision_upstream::RevisionUpstream,
    stack::Stack,
    upstream::Fixture,
    written_upstream::{CONTENTS, Lists, WrittenUpstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::gates::Before;

/// A workspace before a server whose definitions are text.
struct Scene {
    upstream: WrittenUpstream,
    _stack: Stack,
    owner: Person,
    published: Published,
    mcp: McpClient,
}

impl Scene {
    async fn of(tools: &[&str]) -> Result<Self> {
        Self::before(WrittenUpstream::start(tools)?).await
    }

    async fn before(upstream: WrittenUpstream) -> Result<Self> {
        let behind = (upstream.address(), upstream.url());
        let (stack, owner, published, mcp) = signed_in(behind).await?;
        Ok(Self {
            upstream,
            _stack: stack,
            owner,
            published,
            mcp,
        })
    }

    fn source(&self, rest: &str) -> String {
        format!(
            "/workspaces/harbour/sources/{}{rest}",
            self.published.source_id
        )
    }

    async fn skipped(&self) -> Result<String> {
        let known = self.owner.console().get(&self.source("/upstream")).await?;
        Ok(known["skipped"].to_string())
    }
}

/// A workspace before the server at this address and URL, and a client of its owner.
async fn signed_in(
    (address, url): (SocketAddr, String),
) -> Result<(Stack, Person, Published, McpClient)> {
    let stack = Stack::builder().allow_egress(address).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let published = publish_at(&console, "harbour", &url, &json!({})).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    Ok((stack, owner, published, mcp))
}

const PLAIN: &str = r#"{"name":"plain","inputSchema":{"type":"object"}}"#;

/// Every member of it is served as it stands here.
const WRITTEN: &str = r#"{"x-vendor":{"z":1.50,"a":12345678901234567890123456789},"name":"written","inputSchema":{"type":"object","required":["zebra"],"properties":{"zebra":{"type":"integer","maximum":1000000000000000000000000000001},"apple":{"type":"string","x-own":1e2},"mango":{"description":"c\td"}}},"annotations":{"readOnlyHint":true,"x-hint":"kept"},"_meta":{"org.example/z":1,"org.example/a":2}}"#;

#[tokio::test]
async fn q8_what_a_server_writes_is_served_as_it_is_written() -> Result<()> {
    let scene = Scene::of(&[WRITTEN]).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let lists = [
        session.request("tools/list", json!({})).await?.text,
        scene.mcp.modern("tools/list", json!({})).await?.text,
    ];
    for list in lists {
        for member in [
            r#""x-vendor":{"z":1.50,"a":12345678901234567890123456789}"#,
            r#""inputSchema":{"type":"object","required":["zebra"],"properties":{"zebra":{"type":"integer","maximum":1000000000000000000000000000001},"apple":{"type":"string","x-own":1e2},"mango":{"description":"c\td"}}}"#,
            r#""annotations":{"readOnlyHint":true,"x-hint":"kept"}"#,
            r#""_meta":{"org.example/z":1,"org.example/a":2}"#,
        ] {
            assert!(list.contains(member), "{member} in {list}");
        }
    }
    // A digit that no number of ours has, and a member that no column has, are changes all the same.
    let sync = scene.source("/sync");
    let console = scene.owner.console();
    let same = console.post(&sync, json!({})).await?;
    assert_eq!(same["changes"], json!([]), "{same}");
    for (from, to) in [("0000001}", "0000002}"), ("1.50", "1.51")] {
        scene.upstream.offer(&[&WRITTEN.replace(from, to)]);
        let changed = console.post(&sync, json!({})).await?;
        assert_eq!(changed["changes"][0]["change"], "changed", "{changed}");
    }
    // Another order has the same meaning.
    let turned = WRITTEN.replace(
        r#""z":1.50,"a":12345678901234567890123456789"#,
        r#""a":12345678901234567890123456789,"z":1.51"#,
    );
    scene.upstream.offer(&[&turned]);
    let same = console.post(&sync, json!({})).await?;
    assert_eq!(same["changes"], json!([]), "{same}");
    Ok(())
}

/// MCP-J-10: of prompts, resources and templates too, and of what they hold.
#[tokio::test]
async fn q8_j_10_what_a_server_writes_of_prompts_and_resources_is_served_as_it_is_written()
-> Result<()> {
    const MEMBERS: [&str; 2] = [
        r#""x-vendor":{"z":1.50,"a":12345678901234567890123456789}"#,
        r#""_meta":{"org.example/z":1.0,"org.example/a":2}"#,
    ];
    const ARGUMENT: &str = r#"{"name":"a","required":true,"x-argument":1e2}"#;
    const HINTS: &str = r#""annotations":{"priority":0.50,"x-hint":"kept"}"#;
    let [vendor, meta] = MEMBERS;
    let upstream = WrittenUpstream::start_with(Lists {
        tools: PLAIN.to_owned(),
        prompts: format!(r#"{{"name":"p",{vendor},"arguments":[{ARGUMENT}],{meta}}}"#),
        resources: format!(r#"{{"uri":"x://a","name":"r",{vendor},{HINTS},"size":7,{meta}}}"#),
        templates: format!(
            r#"{{"uriTemplate":"x://t/{{id}}","name":"t",{vendor},{HINTS},{meta}}}"#
        ),
    })?;
    let scene = Scene::before(upstream).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    for (method, own) in [
        ("prompts/list", ARGUMENT),
        ("resources/list", HINTS),
        ("resources/list", r#""size":7"#),
        ("resources/templates/list", HINTS),
    ] {
        for list in [
            session.request(method, json!({})).await?.text,
            scene.mcp.modern(method, json!({})).await?.text,
        ] {
            for member in MEMBERS.iter().chain([&own]) {
                assert!(list.contains(member), "{method}: {member} in {list}");
            }
        }
    }
    let inner = |result: &'static str| {
        let (_, rest) = result.split_once(":[").unwrap_or_default();
        rest.trim_end_matches("]}")
    };
    for (method, params, held) in [
        (
            "prompts/get",
            json!({"name": "p", "arguments": {"a": "b"}}),
            r#""content":{"type":"text","text":"a","x-block":2.50}"#,
        ),
        (
            "prompts/get",
            json!({"name": "p", "arguments": {"a": "b"}}),
            r#""x-message":1e2"#,
        ),
        ("resources/read", json!({"uri": "x://a"}), inner(CONTENTS)),
    ] {
        for result in [
            session.request(method, params.clone()).await?.text,
            scene.mcp.modern(method, params).await?.text,
        ] {
            assert!(result.contains(held), "{method}: {held} in {result}");
            assert!(result.contains(r#""x-result":1.50"#), "{method}: {result}");
        }
    }
    // A member that no column has is a change, and streams are notified of the list.
    let mut stream = session.listen().await?;
    let list = |lists: &mut Lists| lists.prompts = lists.prompts.replace("1.50", "1.51");
    scene.upstream.change(list);
    let sync = scene.source("/sync");
    let console = scene.owner.console();
    let changed = console.post(&sync, json!({})).await?;
    assert_eq!(changed["changes"][0]["kind"], "prompt", "{changed}");
    let told = stream.until(|event| event.data.contains("notifications/prompts/list_changed"));
    tokio::time::timeout(Duration::from_secs(10), told).await??;
    let list = session.request("prompts/list", json!({})).await?;
    assert!(list.text.contains("1.51"), "{}", list.text);
    Ok(())
}

#[tokio::test]
async fn f6_an_odd_tool_costs_that_tool_and_not_the_server() -> Result<()> {
    let deep = format!(
        "{}{{}}{}",
        r#"{"properties":{"a":"#.repeat(35),
        "}}".repeat(35)
    );
    let deep = format!(r#"{{"name":"deep","inputSchema":{{"type":"object","not":{deep}}}}}"#);
    let scene = Scene::of(&[
        r#"{"name":"huge","inputSchema":{"type":"object","maximum":1e400}}"#,
        r#"{"name":"half","inputSchema":{"type":"object","title":"\ud800"}}"#,
        &deep,
        r#"{"name":"elsewhere","inputSchema":{"type":"object","$ref":"http://127.0.0.1:1/schema"}}"#,
        PLAIN,
    ])
    .await?;
    let skipped = scene.skipped().await?;
    for (name, why) in [
        ("huge", "beyond the range of a double"),
        ("half", "half of a surrogate pair"),
        ("deep", "nested deeper than 64"),
        ("elsewhere", "refers to `http://127.0.0.1:1/schema`"),
    ] {
        assert!(
            skipped.contains(&format!("`{name}`")) && skipped.contains(why),
            "{skipped}"
        );
    }
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    assert_eq!(
        list.json["result"]["tools"].as_array().map(Vec::len),
        Some(1),
        "{}",
        list.text
    );
    Ok(())
}

/// REVIEW-F6: RFC 8259 has numbers of every size.
#[tokio::test]
async fn f6_a_number_beyond_a_double_is_json_in_arguments_and_results() -> Result<()> {
    let scene = Scene::of(&[PLAIN]).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plain","arguments":{"z":1,"a":1e400}}}"#;
    let answer = session.post("application/json", call).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    // Through to the server and back, as it was written.
    assert!(
        answer
            .text
            .contains(r#""structuredContent":{"z":1,"a":1e400}"#),
        "{}",
        answer.text
    );
    Ok(())
}

#[tokio::test]
async fn f6_an_argument_beyond_a_double_is_no_parse_error_before_an_api() -> Result<()> {
    let scene = portolan_tests::scene::Scene::new().await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    let name = text(&list.json["result"]["tools"][0], "name")?;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1e400}}}}}}"#
    );
    let answer = session.post("application/json", call).await?;
    assert_eq!(answer.json["id"], 7, "{}", answer.text);
    assert_eq!(answer.code(), -32602, "{}", answer.text);
    Ok(())
}

#[tokio::test]
async fn s_6_characters_that_nobody_sees_are_taken_out_of_texts_and_refused_in_names() -> Result<()>
{
    let scene = Scene::of(&[
        r#"{"name":"told","title":"T\u0000T","description":"a\u0000b\u202ec\u2066d\u0007e\tf","inputSchema":{"type":"object"}}"#,
        r#"{"name":"a\u0000b","inputSchema":{"type":"object"}}"#,
        r#"{"name":"a\u202eb","inputSchema":{"type":"object"}}"#,
    ])
    .await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    let tools = &list.json["result"]["tools"];
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{}", list.text);
    assert_eq!(
        (&tools[0]["title"], &tools[0]["description"]),
        (&json!("TT"), &json!("abcde\tf"))
    );
    let console = scene.owner.console();
    let ids = console
        .tool_ids("harbour", &scene.published.source_id)
        .await?;
    let id = ids[0].as_str().context("an id")?;
    let found = console
        .get(&format!("/workspaces/harbour/tools/{id}"))
        .await?;
    assert!(
        found["warnings"]
            .to_string()
            .contains("Control characters were taken out"),
        "{found}"
    );
    assert_eq!(
        scene.skipped().await?.matches("control characters").count(),
        2
    );
    Ok(())
}

/// REVIEW-S-6: texts of an OpenAPI document too. Order: properties stand in the list, in the
/// console and in a form as the document has them.
#[tokio::test]
async fn schemas_of_a_document_and_of_a_form_keep_their_order() -> Result<()> {
    const ORDER: [&str; 4] = ["zebra", "yak", "mongoose", "ant"];
    let api = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(api.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let properties: serde_json::Map<String, Value> = ORDER
        .into_iter()
        .map(|name| {
            (
                name.to_owned(),
                json!({"type": "string", "description": name}),
            )
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["yak", "ant"]});
    let content = json!({"application/json": {"schema": schema}});
    let document = json!({"openapi": "3.1.0", "info": {"title": "Zoo", "version": "1"},
        "paths": {"/animals": {"post": {"operationId": "addAnimal", "summary": "Adds\u{0} one\u{202e}.",
            "requestBody": {"required": true, "content": content}, "responses": {"200": {"description": "Yes", "content": content}}}}}});
    let source = console
        .post(
            "/workspaces/harbour/sources",
            json!({"name": "Zoo", "kind": "openapi", "base_url": api.base_url(), "input": {"kind": "text", "text": document.to_string()}}),
        )
        .await?;
    let source_id = text(&source, "id")?;
    let by_hand = json!({"name": "by_hand", "description": "Adds one.", "method": "POST", "path": "/by-hand",
        "body": {"content_type": "application/json", "required": true, "schema": schema}});
    let own = console
        .post(
            "/workspaces/harbour/sources",
            json!({"name": "By hand", "kind": "http", "base_url": api.base_url()}),
        )
        .await?;
    let own_id = text(&own, "id")?;
    console
        .post(
            &format!("/workspaces/harbour/sources/{own_id}/tools"),
            by_hand,
        )
        .await?;
    let mut ids = console.tool_ids("harbour", &source_id).await?;
    ids.extend(console.tool_ids("harbour", &own_id).await?);
    let is_ordered = |text: &str| {
        let places: Vec<Option<usize>> = ORDER
            .into_iter()
            .map(|name| text.find(&format!("\"{name}\":{{")))
            .collect();
        places.iter().all(Option::is_some) && places.is_sorted()
    };
    for id in &ids {
        let id = id.as_str().context("an id")?;
        let tool = console
            .get(&format!("/workspaces/harbour/tools/{id}"))
            .await?;
        assert!(is_ordered(&tool["input_schema"].to_string()), "{tool}");
    }
    let published = console.publish("harbour", "zoo", &source_id, ids).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    let tools = list.json["result"]["tools"].as_array().context("tools")?;
    assert_eq!(tools.len(), 2, "{}", list.text);
    for tool in tools {
        assert!(is_ordered(&tool["inputSchema"].to_string()), "{tool}");
    }
    let imported = tools
        .iter()
        .find(|tool| tool["name"] != "by_hand")
        .context("the import")?;
    assert!(
        is_ordered(&imported["outputSchema"].to_string()),
        "{imported}"
    );
    let words = imported["title"].to_string() + &imported["description"].to_string();
    assert!(words.contains("Adds one."), "REVIEW-S-6: {imported}");
    Ok(())
}

#[tokio::test]
async fn f5_a_prefix_that_makes_names_too_long_is_refused_for_that() -> Result<()> {
    let long = "c".repeat(125);
    let tool = format!(r#"{{"name":"{long}","inputSchema":{{"type":"object"}}}}"#);
    let scene = Scene::of(&[PLAIN, &tool]).await?;
    let console = scene.owner.console();
    let settings = scene.source("/upstream");
    // On a server, and not.
    for prefix in ["pppp_", "longprefix_"] {
        let patched = console
            .send(Method::PATCH, &settings, Some(json!({"prefix": prefix})))
            .await?;
        let body = json!({"url": scene.upstream.url(), "name": "Again", "prefix": prefix});
        let added = console
            .send(Method::POST, "/workspaces/harbour/upstreams", Some(body))
            .await?;
        for (status, refused) in [patched, added] {
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
            let told = refused.to_string();
            assert!(
                told.contains("name_too_long") && told.contains("up to 3 characters"),
                "{refused}"
            );
        }
    }
    console
        .expect(Method::PATCH, &settings, Some(json!({"prefix": "pp_"})))
        .await?;
    // A definition that becomes too long later is left out and reported.
    let longer = tool.replace(&long, &"d".repeat(126));
    scene.upstream.offer(&[PLAIN, &longer]);
    console.post(&scene.source("/sync"), json!({})).await?;
    let skipped = scene.skipped().await?;
    assert!(
        skipped.contains("more than 128 characters with the prefix `pp_`"),
        "{skipped}"
    );
    Ok(())
}

#[tokio::test]
async fn q9_an_answer_that_is_too_large_is_called_that_with_the_limit() -> Result<()> {
    let scene = Scene::of(&[r#"{"name":"large","inputSchema":{"type":"object"}}"#]).await?;
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let params = json!({"name": "large", "arguments": {"bytes": 20 * 1024 * 1024}});
    let answer = session.request("tools/call", params).await?;
    assert_eq!(answer.json["result"]["isError"], true, "{}", answer.text);
    let told = answer.json["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(
        told.contains("too large: the limit is ") && told.contains("MiB"),
        "{told}"
    );
    Ok(())
}

/// A session of a client that answers every question with this result, and the answer to its call.
async fn asked(session: &McpClient, call: &Value, result: &Value) -> Result<(Value, usize)> {
    let mut stream = session.start(call).await?.stream()?;
    let mut questions = 0;
    loop {
        let message = stream.message().await?;
        if message["id"] == call["id"] {
            return Ok((message, questions));
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            questions += 1;
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            session.message(&response).await?;
        }
    }
}

async fn before(fixture: Fixture) -> Result<(Before, McpClient)> {
    let before = Before::of(fixture).await?;
    let able = json!({"sampling": {}, "elicitation": {}});
    let (session, _) = before.mcp.initialize_able(LEGACY, able).await?;
    Ok((before, session))
}

/// MCP-X-24: ten rounds, between a client and a server of the session era too.
#[tokio::test]
async fn f7_x_24_a_server_of_the_session_era_asks_ten_times_at_most() -> Result<()> {
    let (_before, session) = before(Fixture::TypeScript1).await?;
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "test_ask_for_ever", "arguments": {}}});
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}});
    let (answer, questions) = asked(&session, &call, &said).await?;
    let told = "The upstream server asked for input too many times.";
    assert_eq!(answer["result"]["content"][0]["text"], told, "{answer}");
    assert_eq!(questions, 10, "{answer}");
    Ok(())
}

/// MCP-X-24: a server may ask again before it confirms that it received the answer. That begins a
/// round too.
#[tokio::test]
async fn x_24_a_question_before_the_answer_is_confirmed_begins_a_round() -> Result<()> {
    let upstream = RevisionUpstream::start(LEGACY)?;
    let behind = (upstream.address(), upstream.url());
    let (_stack, _owner, _published, mcp) = signed_in(behind).await?;
    let able = json!({"sampling": {}});
    let (session, _) = mcp.initialize_able(LEGACY, able).await?;
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "ask_on", "arguments": {}}});
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}});
    let (answer, questions) = asked(&session, &call, &said).await?;
    let told = "The upstream server asked for input too many times.";
    assert_eq!(answer["result"]["content"][0]["text"], told, "{answer}");
    assert_eq!(questions, 10, "{answer}");
    Ok(())
}

/// MCP-EL-8: an answer that does not fit is a failed elicitation, and not a wish to cancel.
#[tokio::test]
async fn q15_el_8_an_answer_that_does_not_fit_is_no_cancel() -> Result<()> {
    let (_before, session) = before(Fixture::TypeScript1).await?;
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "test_elicitation", "arguments": {"message": "Who?"}}});
    let unfit = json!({"action": "accept", "content": {"username": 7}});
    let (answer, questions) = asked(&session, &call, &unfit).await?;
    assert_eq!(questions, 1, "{answer}");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let told = answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(told.contains("does not fit"), "{answer}");
    Ok(())
}

/// REVIEW-Q13: a whole number stays one.
#[tokio::test]
async fn q13_progress_of_one_is_one() -> Result<()> {
    let (_before, session) = before(Fixture::TypeScript1).await?;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "p"}}});
    let mut stream = session.start(&call).await?.stream()?;
    let mut seen = Vec::new();
    loop {
        let message = stream.message().await?;
        if message["id"] == 1 {
            break;
        }
        if message["method"] == "notifications/progress" {
            seen.push(message["params"]["progress"].to_string());
        }
    }
    assert_eq!(seen, ["0", "50", "100"]);
    Ok(())
}
