//! The server requirements of the suite, for Portolan with a third-party server of either era
//! behind it, through the endpoint with a token. Every scored scenario passes, and the unscored
//! ones about this bridge.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Result;
use portolan_tests::{
    behind,
    console::text,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use serde_json::{Value, json};

use super::{HeaderAddingProxy, LIMIT, findings, suite};

/// The scenarios that ran, each with the checks that failed.
fn outcomes(folder: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // server-<scenario>-<time>, with a time of 24 characters.
        let Some(scenario) = name.strip_prefix("server-").and_then(|rest| {
            let end = rest.len().checked_sub("-2026-11-22T18-20-37-169Z".len())?;
            rest.get(..end)
        }) else {
            continue;
        };
        let checks: Value =
            serde_json::from_str(&fs::read_to_string(entry.path().join("checks.json"))?)?;
        let failed = checks
            .as_array()
            .into_iter()
            .flatten()
            .filter(|check| check["status"] == "FAILURE")
            .filter_map(|check| check["id"].as_str().map(str::to_owned));
        found
            .entry(scenario.to_owned())
            .or_default()
            .extend(failed.collect::<Vec<_>>());
    }
    Ok(found)
}

/// So many scenarios run; `impossible` are the checks that cannot pass, because this server has no words for them. Strict both ways.
async fn through(
    fixture: Fixture,
    version: &str,
    scenarios: usize,
    impossible: &[&str],
) -> Result<()> {
    let upstream = Upstream::start(fixture)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let published = behind::publish(&console, "harbour", &upstream, &json!({})).await?;
    let client = OAuthClient::register(stack.url(), "Conformance suite").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    // Temporary items are there when they are published, so that later changes are notified.
    come_and_go(&console, &published, &tokens.access).await?;
    let proxy = HeaderAddingProxy::start(&published.url, &tokens.access)?;
    let out = findings(&format!("through-{fixture:?}"), version)?;
    let mut command = suite()?;
    command
        .args(["server", "--url", &proxy.url(), "--requirements", version])
        .arg("-o")
        .arg(&out)
        .kill_on_drop(true);
    let finished = tokio::time::timeout(LIMIT, command.output()).await??;
    let output = String::from_utf8_lossy(&finished.stdout);
    let found = outcomes(&out)?;
    assert_eq!(found.len(), scenarios, "{output}");
    // Other tests hold the rules of tasks.
    let failed: BTreeSet<&str> = found
        .iter()
        .filter(|(scenario, _)| !scenario.starts_with("tasks-"))
        .flat_map(|(_, failed)| failed)
        .map(String::as_str)
        .collect();
    let expected: BTreeSet<&str> = impossible.iter().copied().collect();
    assert_eq!(failed, expected, "{output}");
    assert_eq!(
        finished.status.success(),
        impossible.is_empty(),
        "the scored scenarios\n{output}"
    );
    Ok(())
}

/// Has the tool and the prompt that come and go come, and publishes them too.
async fn come_and_go(
    console: &portolan_tests::console::Console<'_>,
    published: &portolan_tests::console::Published,
    token: &str,
) -> Result<()> {
    let mcp = McpClient::new(&published.url)?.with_token(token)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    for tool in ["test_trigger_tool_change", "test_trigger_prompt_change"] {
        let params = json!({"name": tool, "arguments": {}});
        session.request("tools/call", params).await?;
    }
    let source = format!("/workspaces/harbour/sources/{}", published.source_id);
    console.post(&format!("{source}/sync"), json!({})).await?;
    let server = format!("/workspaces/harbour/servers/{}", published.server_id);
    let all: Vec<Value> = console.tool_ids("harbour", &published.source_id).await?;
    let tools: Vec<Value> = all.iter().map(|id| json!({"tool_id": id})).collect();
    let tools_path = format!("{server}/tools");
    console
        .expect(
            reqwest::Method::PUT,
            &tools_path,
            Some(json!({"tools": tools})),
        )
        .await?;
    let prompts = console.get("/workspaces/harbour/prompts").await?;
    let prompts: Result<Vec<Value>> = prompts["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| Ok(json!({"prompt_id": text(one, "id")?})))
        .collect();
    let prompts_path = format!("{server}/prompts");
    console
        .expect(
            reqwest::Method::PUT,
            &prompts_path,
            Some(json!({"prompts": prompts?})),
        )
        .await?;
    Ok(())
}

/// Scenarios that a server of the session era cannot pass for a client of 2026-07-28, through any
/// bridge. It asks by a request, which has an id and no key (MCP-X-22). It does not name a missing
/// capability, but answers without it.
const NO_WORDS: [&str; 3] = [
    "sep-2322-elicitation-incomplete",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
];

#[tokio::test]
async fn requirements_of_2025_11_25_before_a_server_of_the_session_era() -> Result<()> {
    through(Fixture::TypeScript1, "2025-11-25", 33, &[]).await
}

#[tokio::test]
async fn requirements_of_2025_11_25_before_a_server_of_2026_07_28() -> Result<()> {
    through(Fixture::TypeScript2, "2025-11-25", 33, &[]).await
}

/// MCP-X-5 (REVIEW-Q4): what asks its client in a session does so only in one. A server of both
/// eras is spoken to in that of the client.
#[tokio::test]
async fn q4_requirements_of_2025_11_25_before_a_server_of_both_eras() -> Result<()> {
    through(Fixture::TypeScriptBoth, "2025-11-25", 33, &[]).await
}

#[tokio::test]
async fn q4_requirements_of_2026_07_28_before_a_server_of_both_eras() -> Result<()> {
    through(Fixture::TypeScriptBoth, "2026-07-28", 50, &[]).await
}

#[tokio::test]
async fn requirements_of_2026_07_28_before_a_server_of_the_session_era() -> Result<()> {
    through(Fixture::TypeScript1, "2026-07-28", 50, &NO_WORDS).await
}

#[tokio::test]
async fn requirements_of_2026_07_28_before_a_server_of_2026_07_28() -> Result<()> {
    through(Fixture::TypeScript2, "2026-07-28", 50, &[]).await
}
