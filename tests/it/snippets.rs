//! The snippets of the console: the programs run as they stand, and the demo MCP server can be
//! added.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::text,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    process::eventually,
    program::{self, OpensBrowser},
    scene::Scene,
    stack::Stack,
};
use serde_json::{Value, json};
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_secs(30);

fn snippet<'a>(connection: &'a Value, client: &str) -> Result<&'a str> {
    let clients = connection["clients"].as_array().context("clients")?;
    let found = clients.iter().find(|one| one["client"] == client);
    let found = found.with_context(|| format!("{client} in {connection}"))?;
    found["snippet"].as_str().context("a snippet")
}

/// A file of this text in the folder of the TypeScript clients, from where Node finds the SDK.
fn module(text: &str) -> Result<(tempfile::TempDir, PathBuf)> {
    let folder =
        tempfile::TempDir::with_prefix_in("snippet-", program::needs("tests/clients/typescript")?)?;
    let file = folder.path().join("snippet.mjs");
    std::fs::write(&file, text)?;
    Ok((folder, file))
}

/// REVIEW-UX-FRICTION-8: SDKs and curl, each with an API key.
#[tokio::test]
async fn snippets_for_sdks_and_curl_run_as_they_stand() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let path = format!(
        "/workspaces/harbour/servers/{}/connection",
        scene.published.server_id
    );
    let connection = console.get(&path).await?;
    let key = console
        .post("/workspaces/harbour/api-keys", json!({"name": "Snippets"}))
        .await?;
    let secret = text(&key, "secret")?;

    let (_folder, file) = module(snippet(&connection, "typescript_sdk")?)?;
    let mut typescript = Command::new("node");
    typescript.arg(file);
    let mut curl = Command::new("sh");
    curl.args(["-c", &format!("{} --silent", snippet(&connection, "curl")?)]);
    let mut runs = vec![("TypeScript", typescript), ("curl", curl)];
    for version in ["v1", "v2"] {
        let interpreter = format!(".portolan/tools/python-{version}/bin/python");
        let mut python = Command::new(program::needs(&interpreter)?);
        python.args(["-c", snippet(&connection, "python_sdk")?]);
        runs.push((version, python));
    }
    let opens = OpensBrowser::with_open()?;
    for (name, mut command) in runs {
        command.env("PORTOLAN_KEY", &secret);
        let finished = program::run(command, &scene.owner, &opens, LIMIT).await?;
        ensure!(finished.success, "{name}: {}", finished.output);
        ensure!(
            finished.output.contains("echo"),
            "{name}: {}",
            finished.output
        );
    }
    Ok(())
}

/// REVIEW-UX-FRICTION-9: an MCP server that can be added without the internet.
#[tokio::test]
async fn the_demo_mcp_server_is_added_published_and_called() -> Result<()> {
    let stack = Stack::start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let me = console.get("/me").await?;
    let url = text(&me["demo_api"], "mcp_url")?;
    let source = console
        .post(
            "/workspaces/harbour/upstreams",
            json!({"name": "Harbour", "url": url}),
        )
        .await?;
    let source = text(&source, "id")?;
    let tools = console.tool_ids("harbour", &source).await?;
    ensure!(tools.len() == 2, "{tools:?}");
    let published = console.publish("harbour", "desk", &source, tools).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    // REVIEW-UX-FRICTION-6: a call that fails is no first call.
    let call = json!({"name": "ships_that_fit", "arguments": {"port_id": "XXXXX"}});
    let answer = session.request("tools/call", call).await?;
    ensure!(answer.json["result"]["isError"] == true, "{}", answer.text);
    let calls = async || -> Result<usize> {
        let calls = console.get("/workspaces/harbour/calls").await?;
        Ok(calls["items"].as_array().context("calls")?.len())
    };
    let has_call = async || -> Result<bool> {
        let overview = console.get("/workspaces/harbour/overview").await?;
        overview["setup"]["has_call"].as_bool().context("has_call")
    };
    eventually("the failed call is logged", SOON, async || {
        calls().await.is_ok_and(|calls| calls == 1)
    })
    .await?;
    ensure!(!has_call().await?, "a failed call counts");

    let call = json!({"name": "find_port", "arguments": {"name": "ham"}});
    let answer = session.request("tools/call", call).await?;
    let text = &answer.json["result"]["content"][0]["text"];
    ensure!(
        text.as_str().is_some_and(|text| text.contains("DEHAM")),
        "{text}"
    );
    eventually("the first call counts", SOON, async || {
        has_call().await.unwrap_or_default()
    })
    .await
}
