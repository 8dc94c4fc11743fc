//! Third-party clients, each through the whole OAuth flow with the real login and consent pages.
//! They list in pages, call, and see errors.

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::{
    console::Published,
    fixture::FixtureApi,
    native,
    person::Person,
    program::{self, OpensBrowser},
    stack::Stack,
};
use rmcp::{
    ServiceExt,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
        PaginatedRequestParams,
    },
    transport::{
        StreamableHttpClientTransport,
        auth::{AuthClient, AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::json;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(180);

/// A published server whose list has several pages. The parts must live as long as the test.
async fn published() -> Result<(FixtureApi, Stack, Person, Published)> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder()
        .allow_egress(fixture.address())
        .setting("page_size", 10)
        .start()?;
    let person = Person::sign_up(&stack, "ann").await?;
    let published = person
        .console()
        .publish_fixture("harbour", &fixture)
        .await?;
    native::offer(&person.console(), &published).await?;
    Ok((fixture, stack, person, published))
}

async fn drive(interpreter: &std::path::Path, file: &str) -> Result<()> {
    drive_at(interpreter, file, "mcp").await
}

/// At another address of the server.
async fn drive_at(interpreter: &std::path::Path, file: &str, door: &str) -> Result<()> {
    let (_fixture, _stack, person, published) = published().await?;
    let base = published.url.strip_suffix("mcp").context("an endpoint")?;
    let mut command = Command::new(interpreter);
    command
        .arg(program::needs(file)?)
        .env("PORTOLAN_MCP_URL", format!("{base}{door}"));
    every_check_holds(command, &person).await
}

/// Runs a client's program to its end. The error holds the failed checks, without the hundred lines
/// that passed.
pub(crate) async fn every_check_holds(command: Command, person: &Person) -> Result<()> {
    let finished = program::run(command, person, &OpensBrowser::with_open()?, LIMIT).await?;
    let told: Vec<&str> = finished
        .output
        .lines()
        .filter(|line| !line.starts_with("ok - "))
        .collect();
    assert!(
        finished.success
            && told.contains(&"1..done")
            && !told.iter().any(|line| line.contains("not ok")),
        "{} checks held, and its end was {}:\n{}",
        finished.output.lines().count() - told.len(),
        if finished.success { "good" } else { "an error" },
        told.join("\n")
    );
    Ok(())
}

#[tokio::test]
async fn typescript_sdk_1_finds_its_way() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/sdk")?;
    drive("node".as_ref(), "tests/clients/typescript/v1.mjs").await
}

#[tokio::test]
async fn o_1_o_7_typescript_sdk_1_finds_its_way_on_two_endpoints() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/sdk")?;
    drive_at(
        "node".as_ref(),
        "tests/clients/typescript/v1_sse.mjs",
        "sse",
    )
    .await
}

#[tokio::test]
async fn o_1_o_7_python_sdk_1_finds_its_way_on_two_endpoints() -> Result<()> {
    let python = program::needs(".portolan/tools/python-v1/bin/python")?;
    drive_at(&python, "tests/clients/python/v1_sse.py", "sse").await
}

#[tokio::test]
async fn typescript_sdk_2_finds_its_way_in_both_eras() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/client")?;
    drive("node".as_ref(), "tests/clients/typescript/v2.mjs").await
}

#[tokio::test]
async fn python_sdk_1_finds_its_way() -> Result<()> {
    drive(
        &program::needs(".portolan/tools/python-v1/bin/python")?,
        "tests/clients/python/v1.py",
    )
    .await
}

#[tokio::test]
async fn python_sdk_2_finds_its_way_in_both_eras() -> Result<()> {
    drive(
        &program::needs(".portolan/tools/python-v2/bin/python")?,
        "tests/clients/python/v2.py",
    )
    .await
}

/// The HTTP client of the Rust SDK, with the tokens of this person for this server.
pub(crate) async fn authorized_by_the_rust_sdk(
    person: &Person,
    url: &str,
) -> Result<AuthClient<reqwest::Client>> {
    // No server listens on the callback: the test passes on the redirect address instead.
    let mut state = OAuthState::new(url, None).await?;
    state
        .start_authorization(
            AuthorizationRequest::new("http://127.0.0.1:41998/callback")
                .with_client_name("Rust SDK"),
        )
        .await?;
    let callback = person.agree(&state.get_authorization_url().await?).await?;
    state.handle_callback_url(callback.as_str()).await?;
    let manager = state
        .into_authorization_manager()
        .context("the flow has ended")?;
    Ok(AuthClient::new(
        reqwest::Client::builder().build()?,
        manager,
    ))
}

#[tokio::test]
async fn rust_sdk_finds_its_way() -> Result<()> {
    let (_fixture, _stack, person, published) = published().await?;
    let http = authorized_by_the_rust_sdk(&person, &published.url).await?;
    let transport = StreamableHttpClientTransport::with_client(
        http,
        StreamableHttpClientTransportConfig::with_uri(published.url.clone()),
    );
    let about = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new("rust-sdk", "3.9.0"),
    );
    let client = about.serve(transport).await?;
    let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = client
            .list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor)))
            .await?;
        names.extend(page.tools.iter().map(|tool| tool.name.to_string()));
        pages += 1;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert!(
        pages > 1 && names.contains(&"echo_message".to_owned()),
        "{pages} pages: {names:?}"
    );

    let call = |name: &'static str, arguments: serde_json::Value| {
        client.call_tool(
            CallToolRequestParams::new(name)
                .with_arguments(arguments.as_object().cloned().unwrap_or_default()),
        )
    };
    let echo = call("echo_message", json!({"message": "Grüße, 海图"})).await?;
    assert_eq!(
        echo.structured_content.context("structured content")?["message"],
        "Grüße, 海图"
    );
    let missing = call("get_thing", json!({"id": 404})).await?;
    assert_eq!(missing.is_error, Some(true));
    assert!(
        format!("{:?}", missing.content).contains("404"),
        "{missing:?}"
    );
    assert!(call("no_such_tool", json!({})).await.is_err());
    client.cancel().await?;
    Ok(())
}
