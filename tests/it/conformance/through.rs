//! What the suite requires of a server, of Portolan with a server of somebody else behind it: whatever era that is of, and through the
//! endpoint that wants a token. Every scored scenario passes, and those of the unscored that this bridge is about.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
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

/// The worst that a check of each scenario came to, by its name.
fn outcomes(folder: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // server-<scenario>-<time>
        let Some((scenario, _)) = name
            .strip_prefix("server-")
            .and_then(|rest| rest.split_once("-202"))
        else {
            continue;
        };
        let checks: Value =
            serde_json::from_str(&fs::read_to_string(entry.path().join("checks.json"))?)?;
        let bad = checks
            .as_array()
            .into_iter()
            .flatten()
            .filter(|check| matches!(check["status"].as_str(), Some("FAILURE" | "WARNING")))
            .map(|check| format!("{}: {}", check["id"], check["errorMessage"]));
        found
            .entry(scenario.to_owned())
            .or_default()
            .extend(bad.collect::<Vec<_>>());
    }
    Ok(found)
}

async fn through(fixture: Fixture, version: &str, scored: usize, unscored: &[&str]) -> Result<()> {
    let upstream = Upstream::start(fixture)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    // What comes and goes is there when it is published, so that its going and coming is news.
    let more = json!({});
    let published = behind::publish(&console, "harbour", &upstream, &more).await?;
    let client = OAuthClient::register(stack.url(), "Conformance suite").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
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
    let bad: BTreeMap<_, _> = found.iter().filter(|(_, bad)| !bad.is_empty()).collect();
    assert!(finished.status.success(), "{bad:#?}\n{output}");
    assert!(
        found.len() >= scored,
        "{} scenarios ran\n{output}",
        found.len()
    );
    for scenario in unscored {
        let bad = found
            .get(*scenario)
            .with_context(|| format!("{scenario} did not run\n{output}"))?;
        assert!(bad.is_empty(), "{scenario}: {bad:#?}");
    }
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

const UNSCORED_2025: [&str; 3] = [
    "server-session-lifecycle",
    "server-sse-polling",
    "json-schema-2020-12",
];
const UNSCORED_2026: [&str; 3] = [
    "json-schema-2020-12",
    "http-header-validation",
    "http-custom-header-server-validation",
];

#[tokio::test]
async fn requirements_of_2025_11_25_before_a_server_of_the_session_era() -> Result<()> {
    through(Fixture::TypeScript1, "2025-11-25", 30, &UNSCORED_2025).await
}

#[tokio::test]
async fn requirements_of_2025_11_25_before_a_server_of_2026_07_28() -> Result<()> {
    through(Fixture::TypeScript2, "2025-11-25", 30, &UNSCORED_2025).await
}

#[tokio::test]
async fn requirements_of_2026_07_28_before_a_server_of_the_session_era() -> Result<()> {
    through(Fixture::TypeScript1, "2026-07-28", 37, &UNSCORED_2026).await
}

#[tokio::test]
async fn requirements_of_2026_07_28_before_a_server_of_2026_07_28() -> Result<()> {
    through(Fixture::TypeScript2, "2026-07-28", 37, &UNSCORED_2026).await
}
