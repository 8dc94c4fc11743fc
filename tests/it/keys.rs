//! API keys and service accounts at the MCP endpoint, and service accounts at the management API
//! (AUTH-C17, AUTH-T12, AUTH-4.8, API-24; CASE-95, CASE-97, CASE-163, CASE-164).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::text,
    mcp::{LEGACY, McpClient},
    scene::Scene,
    stack::portolan,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const KEYS: &str = "/workspaces/harbour/api-keys";
const ACCOUNTS: &str = "/workspaces/harbour/service-accounts";

async fn tools(client: &McpClient) -> Result<StatusCode> {
    Ok(client.modern("tools/list", json!({})).await?.status)
}

/// Until the endpoint answers 401, and how long that took.
async fn refused_after(client: &McpClient) -> Result<Duration> {
    let begun = Instant::now();
    while tools(client).await? != StatusCode::UNAUTHORIZED {
        ensure!(
            begun.elapsed() < Duration::from_secs(5),
            "it goes on being good"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(begun.elapsed())
}

#[tokio::test]
async fn case_163_a_key_opens_what_it_may_and_is_refused_within_a_second_of_its_end() -> Result<()>
{
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let made = console.post(KEYS, json!({"name": "Laptop"})).await?;
    let secret = text(&made, "secret")?;
    let with_key = McpClient::new(&scene.published.url)?.with_token(&secret)?;
    ensure!(tools(&with_key).await? == StatusCode::OK);

    // A session of its own, and the person's own token beside it.
    let (session, _) = with_key.initialize(LEGACY).await?;
    let list = session.request("tools/list", json!({})).await?;
    ensure!(list.status == StatusCode::OK, "{}", list.text);
    let stranger = session.clone().with_token(&scene.tokens.access)?;
    ensure!(
        stranger.request("tools/list", json!({})).await?.status == StatusCode::NOT_FOUND,
        "MCP-AB-25: the session is the key's"
    );

    // Wrong checksum, unknown key: 401 with the challenge of a bad token.
    let last = if secret.ends_with('A') { 'B' } else { 'A' };
    let broken = format!("{}{last}", &secret[..secret.len() - 1]);
    for bad in [broken.as_str(), "mcpk_", "mcpk_x"] {
        let client = McpClient::new(&scene.published.url)?.with_token(bad)?;
        let answer = client.modern("tools/list", json!({})).await?;
        ensure!(answer.status == StatusCode::UNAUTHORIZED, "{bad}");
        ensure!(
            answer
                .header("www-authenticate")
                .contains("error=\"invalid_token\"")
        );
    }
    // CASE-164: it opens the endpoint and nothing else.
    let response = reqwest::Client::builder()
        .build()?
        .get(scene.stack.url().join("/api/v1/me")?)
        .bearer_auth(&secret)
        .send()
        .await?;
    ensure!(response.status() == StatusCode::UNAUTHORIZED);

    let listed = console.get(KEYS).await?;
    ensure!(listed["items"][0]["last_used_at"].is_string(), "{listed}");
    let id = text(&made["key"], "id")?;
    console
        .expect(Method::DELETE, &format!("{KEYS}/{id}"), None)
        .await?;
    let took = refused_after(&with_key).await?;
    println!("a revoked key was refused after {took:?}");
    ensure!(took < Duration::from_secs(1), "AUTH-R9: {took:?}");
    ensure!(tools(&scene.mcp).await? == StatusCode::OK, "and no other");
    Ok(())
}

#[tokio::test]
async fn c17_a_key_is_good_for_its_server_and_its_networks_only() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let server = &scene.published.server_id;
    let narrow = console
        .post(KEYS, json!({"name": "One", "server_id": server}))
        .await?;
    let key = text(&narrow, "secret")?;
    ensure!(
        tools(&McpClient::new(&scene.published.url)?.with_token(&key)?).await? == StatusCode::OK
    );
    console
        .post(
            "/workspaces/harbour/servers",
            json!({"name": "Other", "slug": "other"}),
        )
        .await?;
    let url = scene.published.url.replace("/fixture/", "/other/");
    ensure!(url != scene.published.url, "{url}");
    ensure!(
        tools(&McpClient::new(&url)?.with_token(&key)?).await? == StatusCode::UNAUTHORIZED,
        "CASE-97"
    );
    for (networks, status) in [
        (json!(["127.0.0.0/8", "::1"]), StatusCode::OK),
        (json!(["192.0.2.0/24"]), StatusCode::UNAUTHORIZED),
    ] {
        let made = console
            .post(KEYS, json!({"name": "Placed", "networks": networks}))
            .await?;
        let client = McpClient::new(&scene.published.url)?.with_token(&text(&made, "secret")?)?;
        for _ in 0..2 {
            ensure!(tools(&client).await? == status, "{networks}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn t12_a_service_account_calls_tools_until_it_is_switched_off() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let made = console
        .post(
            ACCOUNTS,
            json!({"name": "Nightly", "auth": "client_secret"}),
        )
        .await?;
    let id = text(&made["account"], "id")?;
    let secret = text(&made, "client_secret")?;
    let token = async || -> Result<Value> {
        let response = reqwest::Client::builder()
            .build()?
            .post(text(&made, "token_endpoint")?)
            .basic_auth(&id, Some(&secret))
            .header("content-type", "application/x-www-form-urlencoded")
            .body("grant_type=client_credentials")
            .send()
            .await?;
        Ok(response.json().await?)
    };
    let access = text(&token().await?, "access_token")?;
    let client = McpClient::new(&scene.published.url)?.with_token(&access)?;
    ensure!(tools(&client).await? == StatusCode::OK);
    let call = client
        .modern(
            "tools/call",
            json!({"name": scene.mcp.modern("tools/list", json!({})).await?.json["result"]["tools"][0]["name"], "arguments": {}}),
        )
        .await?;
    ensure!(call.status == StatusCode::OK, "{}", call.text);
    // A key of the account goes with it.
    let key = console
        .post(
            KEYS,
            json!({"name": "Old client", "service_account_id": id}),
        )
        .await?;
    let by_key = McpClient::new(&scene.published.url)?.with_token(&text(&key, "secret")?)?;
    ensure!(tools(&by_key).await? == StatusCode::OK);

    let one = format!("{ACCOUNTS}/{id}");
    console
        .expect(Method::PATCH, &one, Some(json!({"enabled": false})))
        .await?;
    for client in [&client, &by_key] {
        let took = refused_after(client).await?;
        ensure!(took < Duration::from_secs(1), "AUTH-R9: {took:?}");
    }
    let refused = token().await?;
    ensure!(refused["error"] == "invalid_client", "{refused}");
    console
        .expect(Method::PATCH, &one, Some(json!({"enabled": true})))
        .await?;
    ensure!(
        tools(&client).await? == StatusCode::UNAUTHORIZED,
        "the old token stays dead"
    );
    let fresh = text(&token().await?, "access_token").context("a token again")?;
    let fresh = McpClient::new(&scene.published.url)?.with_token(&fresh)?;
    ensure!(tools(&fresh).await? == StatusCode::OK);
    Ok(())
}

/// Rule: API-24, API-25.
#[tokio::test]
async fn a_service_account_exports_the_workspace_until_its_end() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let body = json!({"name": "Backup", "auth": "client_secret"});
    let made = console.post(ACCOUNTS, body).await?;
    let id = text(&made["account"], "id")?;
    let secret = text(&made, "client_secret")?;
    let endpoint = text(&made, "token_endpoint")?;
    let issuer = endpoint
        .strip_suffix("/oauth/token")
        .context("the issuer")?;
    let resource = format!("{issuer}/api/v1/workspaces/harbour");
    let fields = [
        ("grant_type", "client_credentials"),
        ("resource", resource.as_str()),
        ("scope", "registry:read"),
    ];
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let token = async || -> Result<Value> {
        let request = reqwest::Client::builder()
            .build()?
            .post(&endpoint)
            .basic_auth(&id, Some(&secret))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.clone());
        Ok(request.send().await?.json().await?)
    };
    let refused = token().await?;
    ensure!(refused["error"] == "invalid_target", "{refused}");

    let access = format!("{ACCOUNTS}/{id}/api-access");
    let rights = json!({"role": "developer", "scopes": ["registry:write"]});
    console.expect(Method::PUT, &access, Some(rights)).await?;
    let key = text(&token().await?, "access_token")?;
    let export = || {
        portolan()
            .arg("export")
            .env("PORTOLAN_URL", issuer)
            .env("PORTOLAN_WORKSPACE", "harbour")
            .env("PORTOLAN_TOKEN", &key)
            .output()
    };
    let done = export()?;
    let file = String::from_utf8_lossy(&done.stdout);
    ensure!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    ensure!(file.contains("slug: fixture"), "{file}");

    console.expect(Method::DELETE, &access, None).await?;
    let ended = export()?;
    ensure!(!ended.status.success(), "the token goes on being good");
    Ok(())
}
