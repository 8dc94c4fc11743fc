//! The MCP server over a workspace (OWN-1 to OWN-6), from outside: the official SDKs find calls that
//! clients made.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{console::text, program, scene::Scene};
use serde_json::json;
use tokio::{process::Command, time::timeout};

/// A tool of the fixture without arguments.
const TOOL: &str = "show_headers";

const LIMIT: Duration = Duration::from_secs(180);

async fn agent_token(scene: &Scene) -> Result<String> {
    let body = json!({"name": "Agent", "role": "developer", "days": 1,
        "scopes": ["calls:read", "registry:read"]});
    let console = scene.owner.console();
    let made = console
        .post("/workspaces/harbour/access-tokens", body)
        .await?;
    text(&made, "secret")
}

/// Rules: OWN-1, OWN-3, OWN-5.
#[tokio::test]
async fn official_sdks_find_the_calls_of_their_workspace() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/sdk")?;
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/client")?;
    let script = program::needs("tests/clients/typescript/own_server.mjs")?;
    let scene = Scene::new().await?;
    for name in [TOOL, TOOL, "broken_answer"] {
        let params = json!({"name": name, "arguments": {}});
        let answer = scene.mcp.modern("tools/call", params).await?;
        ensure!(answer.status == 200, "{name}: {}", answer.text);
    }
    let token = agent_token(&scene).await?;
    let mut command = Command::new("node");
    command
        .arg(script)
        .env("PORTOLAN_URL", scene.stack.url().as_str())
        .env("PORTOLAN_TOKEN", token)
        .env("PORTOLAN_TOOL", TOOL)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let done = timeout(LIMIT, command.output())
        .await
        .context("the client took too long")??;
    let said = String::from_utf8_lossy(&done.stdout);
    let wrong: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("ok - "))
        .collect();
    ensure!(
        done.status.success() && wrong == ["1..done"],
        "{}\n{}",
        wrong.join("\n"),
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}

/// Rule: OWN-11.
#[tokio::test]
async fn control_characters_in_arguments_are_refused() -> Result<()> {
    let scene = Scene::new().await?;
    let token = agent_token(&scene).await?;
    let url = scene.stack.url().join("/api/v1/workspaces/harbour/mcp")?;
    let send = async |tool: &str| -> Result<(u16, String)> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search_calls","arguments":{{"tool":"{tool}"}}}}}}"#
        );
        let request = reqwest::Client::builder()
            .build()?
            .post(url.clone())
            .bearer_auth(&token)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    };
    let (status, text) = send("show_headers").await?;
    ensure!(status == 200 && text.contains(r#""result""#), "{text}");
    for written in [r"a\u0000b", r"a\u0007b"] {
        let (status, text) = send(written).await?;
        ensure!(
            (400..500).contains(&status) && text.contains("control_characters"),
            "{written}: {status} {text}"
        );
    }
    Ok(())
}
