//! In front of the product: a key, a sign-in, and everything that a person and a machine would do.

use anyhow::{Result, ensure};
use portolan_tests::{console::text, scene::Scene};
use serde_json::{Value, json};

use portolan_tests::connected::{Bridge, Home};

const KEYS: &str = "/workspaces/harbour/api-keys";

async fn with_key(scene: &Scene, home: &Home) -> Result<(String, Bridge)> {
    let made = scene
        .owner
        .console()
        .post(KEYS, json!({"name": "Laptop"}))
        .await?;
    let secret = text(&made, "secret")?;
    let mut command = home.command(&[&scene.published.url, "--verbose"]);
    command.env("PORTOLAN_API_KEY", &secret);
    Ok((secret, Bridge::start(command)?))
}

fn first_tool(listed: &Value) -> &str {
    listed["result"]["tools"][0]["name"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_key_opens_the_product_in_every_revision() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (secret, mut bridge) = with_key(&scene, &home).await?;
        let opened = bridge.initialize(version, json!({})).await?;
        ensure!(opened["protocolVersion"] == version, "{opened}");
        let listed = bridge.request("tools/list", json!({})).await?;
        ensure!(!first_tool(&listed).is_empty(), "{listed}");
        ensure!(bridge.close().await?.success());
        ensure!(!bridge.notes().contains(&secret), "no secret in a log");
    }
    let (_, mut bridge) = with_key(&scene, &home).await?;
    let found = bridge.modern("server/discover", json!({})).await?;
    ensure!(
        found["result"]["supportedVersions"][0] == "2026-07-28",
        "{found}"
    );
    let listed = bridge.modern("tools/list", json!({})).await?;
    ensure!(!first_tool(&listed).is_empty(), "{listed}");
    ensure!(bridge.close().await?.success());
    ensure!(!home.tokens().exists(), "a key leaves no file");
    Ok(())
}

#[tokio::test]
async fn a_wrong_key_is_an_error_and_an_exit_code_and_opens_no_browser() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let mut command = home.command(&[&scene.published.url]);
    command.env("PORTOLAN_API_KEY", "mcpk_wrong");
    let mut bridge = Bridge::start(command)?;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = bridge.request("initialize", hello).await?;
    ensure!(answer["error"]["code"] == -31007, "{answer}");
    let ended = bridge.close().await?;
    ensure!(ended.code() == Some(6), "{ended}");
    ensure!(!bridge.notes().contains("Sign in to") && !bridge.notes().contains("mcpk_wrong"));
    Ok(())
}

#[tokio::test]
async fn a_header_stands_for_a_key_and_is_filled_from_the_environment() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let mut command = home.command(&[
        &scene.published.url,
        "--header",
        "Authorization: Bearer ${TOKEN}",
    ]);
    command.env("TOKEN", &scene.tokens.access);
    let mut bridge = Bridge::start(command)?;
    bridge.initialize("2025-11-25", json!({})).await?;
    let listed = bridge.request("tools/list", json!({})).await?;
    ensure!(!first_tool(&listed).is_empty(), "{listed}");
    Ok(())
}
