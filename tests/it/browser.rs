//! The newcomer's path in a real Chromium, and the pages that must work without script. The steps are in tests/browser.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    behind,
    console::text,
    fixture::FixtureApi,
    mcp::{LEGACY, McpClient},
    oauth::{OAuthClient, Pkce, REDIRECT_URI},
    person::Person,
    process::eventually,
    program::{self, OpensBrowser},
    stack::{Stack, free_port, portolan, repository},
    upstream::{Fixture, Upstream},
};
use serde_json::json;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(420);

fn script(name: &str, stack: &Stack) -> Result<Command> {
    program::needs("tests/browser/node_modules/playwright-core")?;
    let artifacts = repository().join("artifacts");
    std::fs::create_dir_all(&artifacts)?;
    let mut command = Command::new("node");
    command
        .arg(program::needs(&format!("tests/browser/{name}"))?)
        .env("PORTOLAN_URL", stack.url().origin().ascii_serialization())
        .env("PORTOLAN_PROGRAM", portolan().get_program())
        .env("PORTOLAN_ARTIFACTS", artifacts);
    Ok(command)
}

async fn finish(command: Command, person: &Person) -> Result<()> {
    let finished = program::run(command, person, &OpensBrowser::with_open()?, LIMIT).await?;
    assert!(
        finished.success
            && finished.output.contains("1..done")
            && !finished.output.contains("not ok"),
        "{}",
        finished.output
    );
    Ok(())
}

#[tokio::test]
async fn a_newcomer_gets_from_sign_up_to_a_published_server() -> Result<()> {
    let stack = Stack::start()?;
    let nobody = Person::new(stack.url(), "nobody")?;
    finish(script("newcomer.mjs", &stack)?, &nobody).await
}

/// Rule: REVIEW-UX-1. The first look counted fourteen clicks to a published server.
#[tokio::test]
async fn twelve_clicks_lead_from_sign_up_to_the_first_call_of_an_sdk() -> Result<()> {
    let stack = Stack::start()?;
    let nobody = Person::new(stack.url(), "nobody")?;
    let mut command = script("first_call.mjs", &stack)?;
    command.env(
        "CLIENT",
        program::needs("tests/clients/typescript/first_call.mjs")?,
    );
    finish(command, &nobody).await
}

#[tokio::test]
async fn the_overview_is_small_on_its_way_to_a_browser_that_was_never_here() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.publish_fixture("harbour", &fixture).await?;
    let base = "/workspaces/harbour";
    let found = console
        .get(&format!("{base}/tools?query=echo_message"))
        .await?;
    let tool = found["items"][0]["id"].as_str().context("an id")?;
    let arguments = json!({"arguments": {"message": "a first call"}});
    console
        .post(&format!("{base}/tools/{tool}/try"), arguments)
        .await?;
    let mut command = script("cold_load.mjs", &stack)?;
    command
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

#[tokio::test]
async fn login_and_consent_work_in_a_browser_without_script() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let authorize =
        client.authorize_url(&client.parameters(Some(&published.url), &Pkce::new()?))?;
    let mut command = script("without_script.mjs", &stack)?;
    command
        .env("AUTHORIZE_URL", authorize)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

#[tokio::test]
async fn case_38_a_popup_still_has_its_opener_at_the_callback() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let authorize =
        client.authorize_url(&client.parameters(Some(&published.url), &Pkce::new()?))?;
    let mut command = script("popup.mjs", &stack)?;
    command
        .env("AUTHORIZE_URL", authorize)
        .env("CALLBACK", REDIRECT_URI)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

#[tokio::test]
async fn l13_passkeys_are_added_sign_in_stand_in_for_a_code_and_are_removed() -> Result<()> {
    let stack = Stack::builder()
        .setting("public_url", "http://localhost")
        .start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let mut command = script("passkeys.mjs", &stack)?;
    command
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

#[tokio::test]
async fn an_api_is_signed_in_to_by_keyboard_in_the_dark_and_on_a_phone() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    ann.console().create_workspace("harbour").await?;
    let flow = json!({
        "authorizationUrl": "https://login.example.org/auth", "tokenUrl": "https://login.example.org/token",
        "scopes": {"read": "Reads"},
    });
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Notes", "version": "1"}, "servers": [{"url": "https://api.example.org"}],
        "components": {"securitySchemes": {"account": {"type": "oauth2", "flows": {"authorizationCode": flow}}}},
        "paths": {"/me": {"get": {"operationId": "whoami", "responses": {"200": {"description": "You"}}}}},
    });
    let body = json!({"kind": "openapi", "name": "Notes", "input": {"kind": "text", "text": document.to_string()}});
    let source = ann
        .console()
        .post("/workspaces/harbour/sources", body)
        .await?;
    let mut command = script("api_sign_in.mjs", &stack)?;
    command
        .env("SOURCE", text(&source, "id")?)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Another person becomes a member of harbour.
async fn member(owner: &Person, stack: &Stack, name: &str) -> Result<Person> {
    let person = Person::sign_up(stack, name).await?;
    let body = json!({"email": person.email, "role": "member"});
    let invitations = "/workspaces/harbour/invitations";
    let invitation = owner.console().post(invitations, body).await?;
    let page = format!("/invitations/{}", text(&invitation, "id")?);
    let form = person.browser.open(&page).await?.form_with("form_token")?;
    let joined = person.browser.submit(form).await?;
    ensure!(joined.status.is_success(), "{}", joined.text());
    Ok(person)
}

/// Rule: PLAY-1, PLAY-3, PLAY-4, PLAY-5.
#[tokio::test]
async fn the_playground_calls_tools_in_both_eras() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let bob = member(&ann, &stack, "bob").await?;
    let mut command = script("playground.mjs", &stack)?;
    command
        .env("SERVER", &published.server_id)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password)
        .env("OTHER_EMAIL", &bob.email)
        .env("OTHER_PASSWORD", &bob.password);
    finish(command, &ann).await
}

/// Rule: MCP-N-3, MCP-MR-5. A server that asks, reports progress, logs and changes its resources.
#[tokio::test]
async fn the_playground_answers_what_a_server_asks() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript1)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let published = behind::publish(&console, "harbour", &upstream, &json!({})).await?;
    let mut command = script("playground_questions.mjs", &stack)?;
    command
        .env("SERVER", &published.server_id)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Rule: CAPTURE-8, CAPTURE-9, CAPTURE-10.
#[tokio::test]
async fn captured_content_is_revealed_replayed_and_audited() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let mut command = script("captured_content.mjs", &stack)?;
    command
        .env("SERVER", &published.server_id)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Rule: PLAY-8, PLAY-9.
#[tokio::test]
async fn sessions_are_listed_followed_and_ended() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let mut command = script("sessions.mjs", &stack)?;
    command
        .env("SERVER", &published.server_id)
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Rule: METER-1, METER-13. Calls of a client, good, failed and rejected.
#[tokio::test]
async fn insights_lead_to_the_calls_behind_them() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let published = ann.console().publish_fixture("harbour", &fixture).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let token = client.authorize(&ann, &published.url).await?.access;
    let mcp = McpClient::new(&published.url)?.with_token(&token)?;
    let (session, _) = mcp.initialize(LEGACY).await?;
    let calls = [
        ("echo_message", json!({"message": "a call"}), 12),
        ("broken_answer", json!({}), 4),
        ("flaky_order", json!({}), 2),
        ("echo_message", json!({"message": 7}), 3),
    ];
    let mut made = 0;
    for (tool, arguments, times) in calls {
        for _ in 0..times {
            let params = json!({"name": tool, "arguments": arguments});
            session.request("tools/call", params).await?;
            made += 1;
        }
    }
    let path = "/workspaces/harbour/insights?period=1h";
    eventually(
        "all calls are counted",
        Duration::from_secs(40),
        async || {
            let shown = ann.console().get(path).await;
            shown.is_ok_and(|shown| shown["total"]["calls"] == made)
        },
    )
    .await?;
    let mut command = script("insights.mjs", &stack)?;
    command
        .env("WORKSPACE", "harbour")
        .env("PERIOD", "1h")
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Runs a program that makes its own data, in the workspace harbour. Its own server listens on
/// `PORT`, an address that the service may call.
async fn with_own_data(name: &str) -> Result<()> {
    let address = free_port()?;
    let stack = Stack::builder().allow_egress(address).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let workspace = json!({"name": "Harbour Works", "slug": "harbour"});
    ann.console().post("/workspaces", workspace).await?;
    let mut command = script(name, &stack)?;
    command
        .env("PORT", address.port().to_string())
        .env("EMAIL", &ann.email)
        .env("PASSWORD", &ann.password);
    finish(command, &ann).await
}

/// Rule: HOOK-3, HOOK-5, HOOK-6, HOOK-8, HOOK-9, HOOK-13.
#[tokio::test]
async fn webhooks_are_added_retried_rotated_and_replayed() -> Result<()> {
    with_own_data("webhooks.mjs").await
}

/// Rule: HOOK-20, HOOK-22.
#[tokio::test]
async fn alerts_reach_the_menu_the_page_and_the_mailbox() -> Result<()> {
    needs_sdk()?;
    with_own_data("alerts.mjs").await
}

/// Rule: API-1, API-3, API-5, API-9, API-23, API-24, API-25.
#[tokio::test]
async fn access_tokens_are_made_used_and_revoked() -> Result<()> {
    with_own_data("access_tokens.mjs").await
}

/// Rule: CONF-15.
#[tokio::test]
async fn commands_are_signed_in_by_their_page() -> Result<()> {
    with_own_data("command_login.mjs").await
}

/// Rule: API-16, API-20, API-21, CONF-17.
#[tokio::test]
async fn trusted_pipelines_are_made_used_and_deleted() -> Result<()> {
    with_own_data("pipelines.mjs").await
}

/// Rule: CONF-6, CONF-13.
#[tokio::test]
async fn configuration_is_shown_applied_and_owned() -> Result<()> {
    with_own_data("configuration.mjs").await
}

/// Rule: METER-10.
#[tokio::test]
async fn calls_are_filtered_followed_and_shown() -> Result<()> {
    needs_sdk()?;
    with_own_data("calls.mjs").await
}

/// The SDK that the programs call tools with.
fn needs_sdk() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/client")?;
    Ok(())
}
