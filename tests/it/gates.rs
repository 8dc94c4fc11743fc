//! Tools that a server lists to some clients alone: to those that can be asked something, or to those
//! of one era. All are found, and each client is offered what it can use (ADR 33).

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::{
    behind::publish,
    console::{Published, text},
    mcp::{Answer, LEGACY, McpClient, modern_message},
    oauth::OAuthClient,
    person::Person,
    process::eventually,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// The tools that a client with these capabilities is offered.
async fn offered(mcp: &McpClient, capabilities: Value) -> Result<(McpClient, Vec<String>)> {
    let (session, _) = mcp.initialize_able(LEGACY, capabilities).await?;
    let list = session.request("tools/list", json!({})).await?;
    let tools = list.json["result"]["tools"].as_array().context("tools")?;
    let names = tools.iter().map(|tool| text(tool, "name"));
    Ok((session, names.collect::<Result<_>>()?))
}

async fn modern_call(mcp: &McpClient, tool: &str, capabilities: Value) -> Result<Answer> {
    let params = json!({"name": tool, "arguments": {"prompt": "x"}});
    let client = mcp.modern_client("tools/call", &params)?;
    let mut message = modern_message("tools/call", params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    client.message(&message).await
}

/// The server is added, its gated tools are found, and clients with and without the features list
/// and call them.
async fn gated_tools_are_found(fixture: Fixture) -> Result<()> {
    const GATED: [(&str, &str); 3] = [
        ("test_sampling", "sampling"),
        ("test_elicitation", "elicitation"),
        ("test_input_required_result_list_roots", "roots"),
    ];
    const ALL_THREE: &str = "test_input_required_result_multiple_inputs";
    let Before {
        upstream,
        _stack: _,
        owner,
        published,
        mcp,
    } = &Before::of(fixture).await?;
    let console = owner.console();
    let all = fixture.tools();
    let everything = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let (_, names) = offered(mcp, everything).await?;
    assert_eq!(names, all, "all are found");
    let (session, names) = offered(mcp, json!({})).await?;
    let missing: Vec<&&str> = all
        .iter()
        .filter(|name| !names.iter().any(|own| own == **name))
        .collect();
    assert_eq!(missing.len(), 4, "{missing:?}");
    for (tool, feature) in GATED {
        let (_, names) = offered(mcp, json!({feature: {}})).await?;
        assert!(
            names.iter().any(|name| name == tool),
            "{feature}: {names:?}"
        );
        assert!(
            !names.iter().any(|name| name == ALL_THREE),
            "{feature}: {names:?}"
        );
        assert_eq!(names.len(), all.len() - 3, "{feature}");
        // Called all the same: MCP-V-1, and MCP-V-2 in 2026-07-28.
        let params = json!({"name": tool, "arguments": {"prompt": "x", "message": "x"}});
        let answer = session.request("tools/call", params).await?;
        let told = format!(
            "This tool needs the client feature \"{feature}\", which this client does not offer."
        );
        assert_eq!(
            answer.json["result"]["content"][0]["text"], told,
            "{}",
            answer.text
        );
        let refused = modern_call(mcp, tool, json!({})).await?;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::BAD_REQUEST, -32021),
            "{}",
            refused.text
        );
    }
    // MCP-L-21: a list of 2026-07-28 is the same for all clients.
    let list = mcp.modern("tools/list", json!({})).await?;
    let tools = list.json["result"]["tools"].as_array().map(Vec::len);
    assert_eq!(tools, Some(all.len()), "{}", list.text);
    // Another look finds the same.
    let sync = format!("/workspaces/harbour/sources/{}/sync", published.source_id);
    let same = console.post(&sync, json!({})).await?;
    assert_eq!(same["changes"], json!([]), "{same}");
    if fixture == Fixture::GatedSse {
        return Ok(());
    }
    eventually(
        "its sessions are taken leave of",
        Duration::from_secs(10),
        async || {
            upstream
                .seen()
                .iter()
                .filter(|one| one.verb == Method::DELETE)
                .count()
                > 5
        },
    )
    .await?;
    Ok(())
}

/// MCP-X-30, MCP-L-21: clients that can be asked are offered the tools; the others receive what
/// they lack (MCP-V-1, MCP-V-2).
#[tokio::test]
async fn x_30_tools_for_clients_that_can_be_asked_are_found_and_offered_to_those() -> Result<()> {
    gated_tools_are_found(Fixture::Gated).await
}

/// MCP-X-30: the same before a server whose sessions are streams.
#[tokio::test]
async fn x_30_so_are_those_of_a_server_of_http_sse() -> Result<()> {
    gated_tools_are_found(Fixture::GatedSse).await
}

/// ADR 33: sessions gate the tool, and 2026-07-28 does not: clients of each era see what the server
/// lists in it.
#[tokio::test]
async fn x_30_of_a_server_of_both_eras_clients_of_sessions_alone_meet_the_gates_of_sessions()
-> Result<()> {
    let before = Before::of(Fixture::GatedBoth).await?;
    let all = before.upstream.fixture().tools();
    let everything = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    assert_eq!(offered(&before.mcp, everything).await?.1, all);
    let (_, names) = offered(&before.mcp, json!({})).await?;
    assert_eq!(names.len(), all.len() - 4, "{names:?}");
    let answered = modern_call(&before.mcp, "test_sampling", json!({})).await?;
    let told = answered.json["result"]["content"][0]["text"].as_str();
    assert!(
        told.is_some_and(|text| text.contains("which 2026-07-28 does not have")),
        "in the server's own words: {}",
        answered.text
    );
    Ok(())
}

/// ADR 33: a server of both eras whose tools differ. Each is offered to all, and called in the era
/// that has it.
#[tokio::test]
async fn q4_a_tool_that_a_server_has_in_one_era_alone_is_called_in_that_by_clients_of_both()
-> Result<()> {
    const OF_SESSIONS: &str = "task_optional";
    const STATELESS: &str = "greet";
    let before = Before::of(Fixture::TypeScriptBoth).await?;
    let (session, names) = offered(&before.mcp, json!({})).await?;
    let list = before.mcp.modern("tools/list", json!({})).await?;
    for tool in [OF_SESSIONS, STATELESS] {
        assert!(names.iter().any(|name| name == tool), "{names:?}");
        assert!(list.text.contains(&format!("\"{tool}\"")), "{}", list.text);
    }
    let called = |tool: &str| {
        let calls = before.upstream.seen_of("tools/call");
        let of_tool = calls
            .iter()
            .filter(|call| call.json()["params"]["name"] == tool);
        let eras = of_tool.map(|call| call.header("mcp-session-id").is_some());
        eras.collect::<Vec<bool>>()
    };
    let params = json!({"name": STATELESS, "arguments": {"name": "Ada"}});
    let answers = [
        session.request("tools/call", params.clone()).await?,
        before.mcp.modern("tools/call", params).await?,
    ];
    for answer in answers {
        let said = &answer.json["result"]["content"][0]["text"];
        assert_eq!(said, "Hello, Ada!", "{}", answer.text);
    }
    assert_eq!(called(STATELESS), [false, false]);
    let params = json!({"name": OF_SESSIONS, "arguments": {}});
    let answers = [
        session.request("tools/call", params.clone()).await?,
        before.mcp.modern("tools/call", params).await?,
    ];
    for answer in answers {
        let said = &answer.json["result"]["content"][0]["text"];
        assert_eq!(said, "Computed.", "{}", answer.text);
    }
    assert_eq!(called(OF_SESSIONS), [true, true]);
    // A person who tries them in the console.
    let console = before.owner.console();
    let tools = console.get("/workspaces/harbour/tools?limit=100").await?;
    for (tool, arguments, told) in [
        (OF_SESSIONS, json!({}), "Computed."),
        (STATELESS, json!({"name": "Ada"}), "Hello, Ada!"),
    ] {
        let items = tools["items"].as_array().context("items")?;
        let found = items.iter().find(|one| one["name"] == tool);
        let id = text(found.with_context(|| tools.to_string())?, "id")?;
        let path = format!("/workspaces/harbour/tools/{id}/try");
        let tried = console.post(&path, json!({"arguments": arguments})).await?;
        assert_eq!(tried["content"][0]["text"], told, "{tried}");
    }
    // It does not say what it lists in sessions: what was known of that holds.
    let sync = format!(
        "/workspaces/harbour/sources/{}/sync",
        before.published.source_id
    );
    before.upstream.refuse_method(Some("initialize"));
    let unsaid = console.post(&sync, json!({})).await?;
    assert_eq!(unsaid["changes"], json!([]), "{unsaid}");
    before.upstream.refuse_method(None);
    let same = console.post(&sync, json!({})).await?;
    assert_eq!(same["changes"], json!([]), "{same}");
    Ok(())
}

/// A workspace before a fixture, with all that it offers published.
pub(crate) struct Before {
    pub(crate) upstream: Upstream,
    _stack: Stack,
    owner: Person,
    published: Published,
    pub(crate) mcp: McpClient,
}

impl Before {
    pub(crate) async fn of(fixture: Fixture) -> Result<Self> {
        let upstream = Upstream::start(fixture)?;
        let stack = Stack::builder().allow_egress(upstream.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let published = publish(&console, "harbour", &upstream, &json!({})).await?;
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
}
