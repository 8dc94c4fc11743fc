//! Logs of the running service hold no secret (CASE-165; threat model, logs).
//!
//! Every secret that can occur in a run is planted, used and misused; then the logs of all
//! processes are searched, at the most detailed level.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use portolan_tests::{
    cluster::Cluster,
    console::text,
    fixture::TOKEN,
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    oauth::{self, REDIRECT_URI, tokens},
    person::Person,
    process::eventually,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The most detailed level.
const LEVEL: &str = "trace";

/// Everything that must not be written anywhere.
#[derive(Debug, Default)]
struct Planted(Vec<(String, String)>);

impl Planted {
    fn add(&mut self, name: &str, secret: &str) {
        assert!(secret.len() >= 10, "{name} is too short to be looked for");
        self.0.push((name.to_owned(), secret.to_owned()));
        // As it stands in a form, in a query, and in a header.
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        if encoded != secret {
            self.0.push((format!("{name}, encoded"), encoded));
        }
        // The rest after a cut: the random part, or the signature.
        let tail = secret.rsplit('.').next().unwrap_or_default();
        if let Some(cut) = tail.len().checked_sub(24) {
            self.0
                .push((format!("{name}, its end"), tail[cut..].to_owned()));
        }
    }

    fn tokens(&mut self, name: &str, tokens: &oauth::Tokens) {
        self.add(&format!("access token {name}"), &tokens.access);
        self.add(&format!("refresh token {name}"), &tokens.refresh);
    }
}

/// Sign-in, authorization, code, tokens, and what becomes of wrong ones.
async fn come_in(fleet: &Fleet, planted: &mut Planted) -> Result<oauth::Tokens> {
    planted.add("password", &fleet.owner.password);
    planted.tokens("of the start", &fleet.tokens);
    let (code, pkce) = fleet
        .client
        .code(&fleet.owner, Some(&fleet.published.url))
        .await?;
    planted.add("code", &code);
    planted.add("verifier", &pkce.verifier);
    let wrong = "planted-wrong-verifier-planted-wrong-verifier-43";
    planted.add("wrong verifier", wrong);
    let refused = fleet.client.redeem(&code, wrong).await?;
    ensure!(refused.status() == StatusCode::BAD_REQUEST);
    let redeemed = tokens(fleet.client.redeem(&code, &pkce.verifier).await?).await?;
    planted.tokens("of the code", &redeemed);
    let renewed = tokens(fleet.client.refresh(&redeemed.refresh).await?).await?;
    planted.tokens("that was renewed", &renewed);
    let broken = format!("{}X", renewed.refresh);
    planted.add("broken refresh token", &broken);
    ensure!(fleet.client.refresh(&broken).await?.status() == StatusCode::BAD_REQUEST);
    ensure!(fleet.client.revoke(&redeemed.access).await?.status() == StatusCode::OK);

    // Signing in anew, first with a wrong password.
    let mut guest = Person::new(fleet.cluster.url(), "guest")?;
    guest.email.clone_from(&fleet.owner.email);
    guest.password = "planted wrong password of a guest".to_owned();
    planted.add("wrong password", &guest.password);
    let page = guest.sign_in(guest.browser.open("/login").await?).await?;
    guest.password.clone_from(&fleet.owner.password);
    guest.sign_in(page).await?;
    for browser in [&fleet.owner.browser, &guest.browser] {
        let cookie = ["__Host-sid", "sid"]
            .iter()
            .find_map(|name| browser.cookie(name));
        planted.add("session", &cookie.context("a session")?);
    }
    Ok(renewed)
}

/// A client and a service account with secrets, and an API key.
async fn machines(fleet: &Fleet, planted: &mut Planted) -> Result<String> {
    let http = reqwest::Client::builder().build()?;
    let mut registration = oauth::registration("With a secret");
    registration["token_endpoint_auth_method"] = json!("client_secret_basic");
    registration["redirect_uris"] = json!([REDIRECT_URI]);
    let made: Value = http
        .post(fleet.cluster.url().join("/oauth/register")?)
        .json(&registration)
        .send()
        .await?
        .json()
        .await?;
    let console = fleet.owner.console();
    let account = console
        .post(
            "/workspaces/harbour/service-accounts",
            json!({"name": "Nightly", "auth": "client_secret"}),
        )
        .await?;
    for (id, secret) in [
        (text(&made, "client_id")?, text(&made, "client_secret")?),
        (
            text(&account["account"], "id")?,
            text(&account, "client_secret")?,
        ),
    ] {
        planted.add("client secret", &secret);
        planted.add("Basic", &STANDARD.encode(format!("{id}:{secret}")));
        let answer = http
            .post(fleet.cluster.url().join("/oauth/token")?)
            .basic_auth(&id, Some(&secret))
            .header("content-type", "application/x-www-form-urlencoded")
            .body("grant_type=client_credentials")
            .send()
            .await?;
        let answer: Value = answer.json().await?;
        if let Some(access) = answer["access_token"].as_str() {
            planted.add("access token of an account", access);
        }
    }
    let key = console
        .post("/workspaces/harbour/api-keys", json!({"name": "Laptop"}))
        .await?;
    let key = text(&key, "secret")?;
    planted.add("API key", &key);
    Ok(key)
}

/// Calls with credentials, good and bad, in the header and where they do not belong.
async fn call(fleet: &Fleet, planted: &mut Planted, good: &[&str]) -> Result<()> {
    planted.add("credential of the API", TOKEN);
    let said = "planted-argument-of-a-call-0123456789";
    planted.add("argument and result", said);
    let params = json!({"name": "echo_message", "arguments": {"message": said}});
    for (node, token) in good.iter().enumerate() {
        let node = node % fleet.cluster.nodes.len();
        let client = fleet.on(node, &fleet.mcp.clone().with_token(token)?)?;
        let answer = client.modern("tools/call", params.clone()).await?;
        ensure!(answer.text.contains(said), "{}", answer.text);
        let (session, _) = client.initialize(LEGACY).await?;
        planted.add(
            "session id",
            session.header("mcp-session-id").context("a session id")?,
        );
        let answer = session.request("tools/call", params.clone()).await?;
        ensure!(answer.text.contains(said), "{}", answer.text);
        // An API that answers with an error, and one that is garbage.
        for tool in ["broken_answer", "garbage_answer"] {
            let params = json!({"name": tool, "arguments": {}});
            session.request("tools/call", params).await?;
        }
    }
    let in_url = "planted-token-in-a-query-0123456789";
    planted.add("token in a query", in_url);
    let url = format!("{}?access_token={in_url}", fleet.published.url);
    let stranger = fleet.on(0, &McpClient::new(&url)?)?;
    let answer = stranger.modern("tools/list", json!({})).await?;
    ensure!(answer.status == StatusCode::UNAUTHORIZED);
    let bad = [
        "planted-bad-token-0123456789",
        "mcpk_planted-bad-key-0123456789",
    ];
    for bad in bad {
        planted.add("bad token", bad);
        let client = fleet.on(1, &fleet.mcp.clone().with_token(bad)?)?;
        let answer = client.modern("tools/list", json!({})).await?;
        ensure!(answer.status == StatusCode::UNAUTHORIZED);
    }
    // A body that cannot be read.
    let broken = "planted-body-that-is-broken-0123456789";
    planted.add("broken body", broken);
    let client = fleet.on(0, &fleet.mcp)?;
    let answer = client
        .post("application/json", format!("{{\"id\": \"{broken}\""))
        .await?;
    ensure!(answer.status.is_client_error());
    Ok(())
}

#[tokio::test]
async fn case_165_no_log_of_any_process_holds_a_planted_secret() -> Result<()> {
    let builder = Cluster::builder().nodes(2).setting("log_filter", LEVEL);
    let mut fleet = Fleet::with(builder).await?;
    let mut planted = Planted::default();
    planted.add("master secret", &fleet.cluster.postgres.master_secret()?);
    let renewed = come_in(&fleet, &mut planted).await?;
    let key = machines(&fleet, &mut planted).await?;
    call(&fleet, &mut planted, &[&renewed.access, &key]).await?;

    // Faults have the longest lines.
    fleet.cluster.redis.stop()?;
    let client = fleet.on(0, &fleet.mcp)?;
    let _ = client.initialize(LEGACY).await;
    fleet.cluster.redis.start_again().await?;
    fleet.cluster.postgres.stop()?;
    let refused = fleet.client.refresh(&renewed.refresh).await?;
    ensure!(refused.status() == StatusCode::SERVICE_UNAVAILABLE);
    fleet.cluster.postgres.start_again().await?;
    eventually("the console works", Duration::from_secs(30), async || {
        fleet.owner.console().get("/me").await.is_ok()
    })
    .await?;

    // Their last lines are written when they have ended.
    let cluster = &mut fleet.cluster;
    for node in cluster.nodes.iter_mut().chain([&mut cluster.auth]) {
        node.drain()?;
        node.end(Duration::from_secs(60)).await?;
    }
    let mut logs: Vec<(String, String)> = cluster
        .nodes
        .iter()
        .chain([&cluster.auth])
        .map(|node| (node.name.clone(), node.output()))
        .collect();
    for (name, log) in &logs {
        ensure!(
            log.contains("DEBUG") && log.contains("stopped") && log.lines().count() > 50,
            "{name} wrote too little to tell"
        );
    }
    ensure!(logs[0].1.contains("/t/{tenant}/{server}/mcp"));
    ensure!(logs[2].1.contains("/oauth/token") && logs[2].1.contains(&fleet.owner.email));
    logs.push(("redis".to_owned(), cluster.redis.log()));
    logs.push(("postgres".to_owned(), cluster.postgres.log()));
    logs.push(("balancer".to_owned(), cluster.proxy.log()));
    let mut found = Vec::new();
    for (log, lines) in &logs {
        for (name, secret) in &planted.0 {
            if let Some(line) = lines.lines().find(|line| line.contains(secret.as_str())) {
                found.push(format!("{log}: {name}: {line}"));
            }
        }
    }
    ensure!(found.is_empty(), "{}", found.join("\n"));
    println!(
        "{} planted forms, {} lines",
        planted.0.len(),
        logs.iter()
            .map(|(_, log)| log.lines().count())
            .sum::<usize>()
    );
    Ok(())
}
