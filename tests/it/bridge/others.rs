//! Programs of others that open remote servers: `mcp-remote`, a bridge to standard input and
//! output, and the command line of the MCP Inspector. Each signs in as it does, and with a key.

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    connected::{Bridge, Home},
    console::text,
    program::needs,
    scene::Scene,
    stack::free_port,
};
use serde_json::{Value, json};
use tokio::process::Command;

const LEGACY: &str = "2025-11-25";
const PROGRAMS: &str = "tests/clients/remote/node_modules/.bin";

/// Node with a program of the tests, in a home of its own. Its browser does nothing: the person
/// opens the address that the program prints.
fn program(home: &Home, name: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("node");
    command
        .arg(needs(&format!("{PROGRAMS}/{name}"))?)
        .args(arguments)
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path().join("config"))
        .env("MCP_REMOTE_CONFIG_DIR", home.path().join("mcp-remote"))
        .env("BROWSER", "true")
        // The Inspector has no terminal here.
        .env("MCP_AUTO_OPEN_ENABLED", "true")
        // The machine of a test has no keychain: tokens are kept in a file of `home`.
        .env("MCP_INSPECTOR_SECRET_STORE", "file")
        .env_remove("DISPLAY")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// The person opens the address of the sign-in and agrees.
async fn sign_in(program: &Bridge, scene: &Scene) -> Result<()> {
    let address = program.noted(|notes| {
        let begin = notes.find("/oauth/authorize?")?;
        let begin = notes[..begin].rfind("http")?;
        let end = notes[begin..].find(char::is_whitespace)?;
        Some(notes[begin..begin + end].to_owned())
    });
    let address = address.await?;
    scene.owner.agree_and_return(&address).await.map(drop)
}

async fn key_of(scene: &Scene) -> Result<String> {
    let console = scene.owner.console();
    let key = console.post("/workspaces/harbour/api-keys", json!({"name": "Laptop"}));
    text(&key.await?, "secret")
}

/// Lists tools and calls one.
async fn use_tools(bridge: &mut Bridge) -> Result<()> {
    let listed = bridge.request("tools/list", json!({})).await?;
    let tools = listed["result"]["tools"].as_array().context("tools")?;
    ensure!(
        tools.iter().any(|tool| tool["name"] == "echo_message"),
        "{listed}"
    );
    let said = bridge
        .call("echo_message", json!({"message": "ahoy"}))
        .await?;
    let structured = &said["result"]["structuredContent"];
    ensure!(
        *structured == json!({"message": "ahoy", "length": 4}),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn mcp_remote_signs_in_or_takes_a_key_and_calls_a_tool() -> Result<()> {
    let scene = Scene::new().await?;
    let (home, url) = (Home::new()?, scene.published.url.as_str());
    let port = free_port()?.port().to_string();
    let mut bridge = Bridge::start(program(&home, "mcp-remote", &[url, &port])?)?;
    let params = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let opening = bridge.begin("initialize", params).await?;
    sign_in(&bridge, &scene).await?;
    let opened = bridge.answer(opening).await?;
    ensure!(
        opened["result"]["serverInfo"]["name"] == "fixture",
        "{opened}"
    );
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    bridge.send(&ready).await?;
    use_tools(&mut bridge)
        .await
        .with_context(|| bridge.notes())?;

    let header = format!("Authorization:Bearer {}", key_of(&scene).await?);
    let home = Home::new()?;
    let arguments = [url, "--header", &header];
    let mut bridge = Bridge::start(program(&home, "mcp-remote", &arguments)?)?;
    bridge.initialize(LEGACY, json!({})).await?;
    use_tools(&mut bridge)
        .await
        .with_context(|| bridge.notes())?;
    ensure!(
        !bridge.notes().contains("/oauth/authorize?"),
        "a key needs no browser"
    );
    Ok(())
}

/// Runs the Inspector's command line once, and gives the result that it prints.
async fn inspect(home: &Home, scene: &Scene, arguments: &[&str], signs_in: bool) -> Result<Value> {
    let mut all = vec![
        "--cli",
        &scene.published.url,
        "--transport",
        "http",
        "--format",
        "json",
    ];
    all.extend(arguments);
    let mut inspector = Bridge::start(program(home, "mcp-inspector", &all)?)?;
    if signs_in {
        sign_in(&inspector, scene).await?;
    }
    let printed = inspector.receive().await?;
    let ended = inspector.close().await?;
    ensure!(ended.success(), "{ended}: {}", inspector.notes());
    Ok(printed)
}

#[tokio::test]
async fn the_inspectors_command_line_signs_in_or_takes_a_key_in_both_eras() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let callback = format!("http://{}/oauth/callback", free_port()?);
    let list = ["--method", "tools/list", "--callback-url", &callback];
    let listed = inspect(&home, &scene, &list, true).await?;
    ensure!(listed.to_string().contains("echo_message"), "{listed}");
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "echo_message",
        "--tool-arg",
        "message=ahoy",
    ];
    // The tokens are stored.
    let said = inspect(&home, &scene, &call, false).await?;
    ensure!(said.to_string().contains("ahoy"), "{said}");

    let header = format!("Authorization: Bearer {}", key_of(&scene).await?);
    for era in ["legacy", "modern"] {
        let home = Home::new()?;
        let mut with_key = call.to_vec();
        with_key.extend(["--header", &header, "--protocol-era", era]);
        let said = inspect(&home, &scene, &with_key, false).await?;
        ensure!(said.to_string().contains("ahoy"), "{era}: {said}");
    }
    Ok(())
}
