//! The official SDKs over stdio, through `portolan connect`, in front of the product.

use std::time::Duration;

use anyhow::Result;
use portolan_tests::{
    console::text,
    fixture::FixtureApi,
    native,
    person::Person,
    program,
    stack::{Stack, binary},
};
use serde_json::json;
use tokio::process::Command;

use crate::clients::every_check_holds;
use portolan_tests::connected::Home;

async fn drive(interpreter: &std::path::Path, file: &str) -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder()
        .allow_egress(fixture.address())
        .setting("page_size", 10)
        .start()?;
    let person = Person::sign_up(&stack, "ann").await?;
    let console = person.console();
    let published = console.publish_fixture("harbour", &fixture).await?;
    native::offer(&console, &published).await?;
    let key = console
        .post("/workspaces/harbour/api-keys", json!({"name": "Laptop"}))
        .await?;
    let home = Home::new()?;
    let mut command = Command::new(interpreter);
    command
        .arg(program::needs(file)?)
        .env("HOME", home.path())
        .env("PORTOLAN_BINARY", binary())
        .env("PORTOLAN_MCP_URL", &published.url)
        .env("PORTOLAN_API_KEY", text(&key, "secret")?);
    tokio::time::timeout(
        Duration::from_secs(200),
        every_check_holds(command, &person),
    )
    .await?
}

#[tokio::test]
async fn typescript_sdks_1_and_2_work_over_stdio() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/client")?;
    drive("node".as_ref(), "tests/clients/typescript/stdio.mjs").await
}

#[tokio::test]
async fn python_sdk_1_works_over_stdio() -> Result<()> {
    let python = program::needs(".portolan/tools/python-v1/bin/python")?;
    drive(&python, "tests/clients/python/stdio_v1.py").await
}

#[tokio::test]
async fn python_sdk_2_works_over_stdio_in_both_eras() -> Result<()> {
    let python = program::needs(".portolan/tools/python-v2/bin/python")?;
    drive(&python, "tests/clients/python/stdio_v2.py").await
}
