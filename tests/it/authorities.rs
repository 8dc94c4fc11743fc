//! APIs and MCP servers with certificates by an authority that this machine does not know.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use portolan_tests::{
    console::text,
    https::{Answer, HttpsServer},
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    stack::{ANY_PORT, Stack, command, run_to_end},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

/// An API of a company, at an address inside of it.
fn api() -> Result<HttpsServer> {
    Ok(HttpsServer::start("IP:127.0.0.1", |_, _| {
        Answer::json(r#"{"depth": 12}"#)
    })?)
}

fn document(api: &HttpsServer) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Depths", "version": "1.0.0"},
        "servers": [{"url": format!("https://{}", api.address())}],
        "paths": {"/depth": {"get": {"operationId": "get_depth", "summary": "How deep it is",
            "responses": {"200": {"description": "The depth", "content": {"application/json": {}}}}}}}
    })
}

/// The result of a call of the one tool of this API.
async fn called(stack: &Stack, api: &HttpsServer) -> Result<Value> {
    let owner = Person::sign_up(stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let source = console
        .post(
            "/workspaces/harbour/sources",
            json!({"name": "Depths", "kind": "openapi", "base_url": format!("https://{}", api.address()),
                   "input": {"kind": "text", "text": document(api).to_string()}}),
        )
        .await?;
    let source_id = text(&source, "id")?;
    let tools = console.tool_ids("harbour", &source_id).await?;
    let published = console
        .publish("harbour", "depths", &source_id, tools)
        .await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    let answer = session
        .request("tools/call", json!({"name": "get_depth", "arguments": {}}))
        .await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    Ok(answer.json["result"].clone())
}

#[tokio::test]
async fn c2_an_api_with_a_certificate_of_the_company_is_called_when_its_authority_is_named()
-> Result<()> {
    let api = api()?;
    let folder = TempDir::with_prefix("portolan-authority-")?;
    let file = folder.path().join("company.pem");
    fs::write(&file, api.authority())?;
    let stack = Stack::builder()
        .allow_egress(api.address())
        .setting("egress_ca_file", file.display())
        .start()?;
    let result = called(&stack, &api).await?;
    assert_ne!(result["isError"], true, "{result}");
    let said = result["content"][0]["text"].as_str().context("a text")?;
    assert_eq!(serde_json::from_str::<Value>(said)?, json!({"depth": 12}));
    assert_eq!(api.count("/depth"), 1);
    Ok(())
}

#[tokio::test]
async fn c2_an_api_whose_authority_nobody_named_is_not_spoken_to() -> Result<()> {
    let api = api()?;
    let stack = Stack::builder().allow_egress(api.address()).start()?;
    let result = called(&stack, &api).await?;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(api.seen(), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_file_without_an_authority_refuses_to_start() -> Result<()> {
    let data = TempDir::with_prefix("portolan-dev-")?;
    let file = data.path().join("company.pem");
    fs::write(&file, "CN=Our authority\n")?;
    for path in [file, data.path().join("missing.pem")] {
        let mut start = command(data.path(), ANY_PORT, ANY_PORT);
        start.env("PORTOLAN_EGRESS_CA_FILE", &path);
        let (status, output) = run_to_end(start, Duration::from_secs(60))?;
        assert!(!status.success());
        let path = path.display().to_string();
        assert!(
            output.contains("egress_ca_file") && output.contains(&path),
            "{output}"
        );
    }
    Ok(())
}
