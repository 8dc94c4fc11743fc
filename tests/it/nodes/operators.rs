//! What an operator does with `portolan admin`, as clients at two nodes see it (`auth.md` J3, J5, K16, M6, R7, R9).

use std::{
    process::Output,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    oauth::tokens,
    process::eventually,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// What a revocation may take to every node (R9).
const REACH: Duration = Duration::from_secs(1);

fn admin(fleet: &Fleet, arguments: &[&str]) -> Result<Output> {
    let mut all = vec!["admin", "--json"];
    all.extend_from_slice(arguments);
    Ok(fleet
        .cluster
        .auth
        .command(&all)
        .env("USER", "olga")
        .env_remove("SUDO_USER")
        .output()?)
}

fn done(fleet: &Fleet, arguments: &[&str]) -> Result<Value> {
    let output = admin(fleet, arguments)?;
    ensure!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What each node answers to a token.
async fn answers(fleet: &Fleet, mcp: &McpClient) -> Result<Vec<StatusCode>> {
    let mut all = Vec::new();
    for node in 0..fleet.cluster.nodes.len() {
        let answer = fleet.on(node, mcp)?.modern("tools/list", json!({})).await?;
        all.push(answer.status);
    }
    Ok(all)
}

/// Waits until every node refuses the token, and says how long that took after the command had ended.
async fn refused_everywhere(fleet: &Fleet, mcp: &McpClient) -> Result<Duration> {
    let began = Instant::now();
    eventually(
        "every node refuses the token",
        Duration::from_secs(10),
        async || {
            answers(fleet, mcp)
                .await
                .is_ok_and(|all| all.iter().all(|status| *status == StatusCode::UNAUTHORIZED))
        },
    )
    .await?;
    Ok(began.elapsed())
}

fn token(fleet: &Fleet, access: &str) -> Result<McpClient> {
    McpClient::new(&fleet.published.url)?.with_token(access)
}

/// Case 141: the tokens of a removed key are refused at every node within a second, the next refresh gives good ones. Case 126:
/// who was locked out or whose tenant was suspended does not come back with an old refresh token. R9: a stream that is open
/// ends with its grant. The log has it all, in chains that are whole.
#[tokio::test(flavor = "multi_thread")]
async fn j3_cases_126_and_141_an_operators_command_reaches_every_node_within_a_second() -> Result<()>
{
    let fleet = Fleet::of(2).await?;
    let good = [StatusCode::OK; 2];
    ensure!(answers(&fleet, &fleet.mcp).await? == good);

    // A key that somebody may know.
    let keys = done(&fleet, &["keys", "list"])?;
    let signing = keys
        .as_array()
        .context("a list")?
        .iter()
        .find(|key| key["state"] == "signs")
        .context("a key that signs")?["kid"]
        .as_str()
        .context("its id")?
        .to_owned();
    let output = admin(&fleet, &["keys", "revoke", &signing])?;
    ensure!(output.status.code() == Some(4), "asks first: {output:?}");
    ensure!(
        answers(&fleet, &fleet.mcp).await? == good,
        "nothing was done"
    );
    let removed = done(
        &fleet,
        &[
            "keys",
            "revoke",
            &signing,
            "--yes",
            "--reason",
            "laptop lost",
        ],
    )?;
    let took = refused_everywhere(&fleet, &fleet.mcp).await?;
    eprintln!(
        "case 141: tokens of a removed key are refused at both nodes {took:?} after the command"
    );
    ensure!(took < REACH, "{took:?}");
    let jwks: Value = reqwest::get(fleet.cluster.url().join("/oauth/jwks.json")?)
        .await?
        .json()
        .await?;
    let published: Vec<_> = jwks["keys"]
        .as_array()
        .context("keys")?
        .iter()
        .map(|key| key["kid"].clone())
        .collect();
    ensure!(
        published.contains(&removed["signs"]) && !published.contains(&json!(signing)),
        "{jwks}"
    );
    let renewed = tokens(fleet.client.refresh(&fleet.tokens.refresh).await?).await?;
    let mcp = token(&fleet, &renewed.access)?;
    ensure!(
        answers(&fleet, &mcp).await? == good,
        "nobody signs in again"
    );

    // A workspace that does not pay.
    done(
        &fleet,
        &[
            "tenants",
            "disable",
            "harbour",
            "--yes",
            "--message",
            "unpaid",
        ],
    )?;
    let took = refused_everywhere(&fleet, &mcp).await?;
    eprintln!("M6: tokens of a suspended workspace are refused {took:?} after the command");
    ensure!(took < REACH, "{took:?}");
    done(&fleet, &["tenants", "enable", "harbour"])?;
    let renewed = tokens(fleet.client.refresh(&renewed.refresh).await?).await?;
    let mcp = token(&fleet, &renewed.access)?;
    ensure!(answers(&fleet, &mcp).await? == good, "K16: back again");
    done(&fleet, &["tenants", "disable", "harbour", "--yes"])?;
    let refused = fleet.client.refresh(&renewed.refresh).await?;
    ensure!(refused.status() == StatusCode::BAD_REQUEST);
    done(&fleet, &["tenants", "enable", "harbour"])?;
    let refused: Value = fleet.client.refresh(&renewed.refresh).await?.json().await?;
    ensure!(refused["error"] == "invalid_grant", "case 126: {refused}");

    // A person who left, with a stream open.
    let fresh = fleet
        .client
        .authorize(&fleet.owner, &fleet.published.url)
        .await?;
    let mcp = token(&fleet, &fresh.access)?;
    let (session, _) = fleet.on(0, &mcp)?.initialize(LEGACY).await?;
    let mut stream = session.listen().await?;
    let person = done(&fleet, &["users", "list", "--search", &fleet.owner.email])?[0]["id"]
        .as_str()
        .context("an id")?
        .to_owned();
    done(&fleet, &["users", "disable", &person, "--yes"])?;
    let began = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(10), async {
        while stream.next().await?.is_some() {}
        anyhow::Ok(())
    })
    .await;
    eprintln!(
        "R9: an open stream ended {:?} after the command ({ended:?})",
        began.elapsed()
    );
    ensure!(
        ended.is_ok() && began.elapsed() < REACH,
        "{ended:?} {:?}",
        began.elapsed()
    );
    let took = refused_everywhere(&fleet, &mcp).await?;
    ensure!(took < REACH, "{took:?}");
    done(&fleet, &["users", "enable", &person])?;
    let refused: Value = fleet.client.refresh(&fresh.refresh).await?.json().await?;
    ensure!(refused["error"] == "invalid_grant", "R7: {refused}");

    // Who did it stands in the log.
    let ends = done(&fleet, &["audit", "verify"])?;
    let chains = ends.as_array().context("chains")?;
    ensure!(
        chains.len() == 2 && chains.iter().all(|chain| chain["faults"] == json!([])),
        "{chains:?}"
    );
    // It still leads through the ends that were written down; through others it never led.
    let file = fleet.cluster.postgres.folder().join("ends.json");
    let path = file.to_str().context("a path")?;
    let code = |ends: &Value| -> Result<Option<i32>> {
        std::fs::write(&file, ends.to_string())?;
        let output = admin(&fleet, &["audit", "verify", "--since", path])?;
        Ok(output.status.code())
    };
    ensure!(code(&ends)? == Some(0), "whole");
    let mut other = ends.clone();
    other[0]["head"] = json!("A".repeat(43));
    ensure!(code(&other)? == Some(3), "made anew");
    let mut longer = ends.clone();
    longer[1]["entries"] = json!(1_000_000);
    ensure!(code(&longer)? == Some(3), "cut off");
    Ok(())
}

/// J5: everything is sealed again under another master secret, and what does not open is counted and left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn j5_what_was_sealed_under_a_former_master_secret_is_sealed_again_and_opens_without_it()
-> Result<()> {
    let fleet = Fleet::of(1).await?;
    let (new, former) = ("5f".repeat(32), fleet.cluster.postgres.master_secret()?);
    let vault = |command: &str, former: Option<&str>| -> Result<(Option<i32>, Value)> {
        let mut process = fleet
            .cluster
            .auth
            .command(&["admin", "--json", "vault", command]);
        process.env("PORTOLAN_MASTER_SECRET", &new);
        if let Some(former) = former {
            process.env("PORTOLAN_MASTER_SECRET_PREVIOUS", former);
        }
        let output = process.output()?;
        let kinds = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        Ok((output.status.code(), kinds))
    };
    let sum = |kinds: &Value, what: &str| -> i64 {
        kinds
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|kind| kind[what].as_i64())
            .sum()
    };
    let (code, kinds) = vault("rewrap", None)?;
    let failed = sum(&kinds, "failed");
    ensure!(
        code == Some(1) && failed > 0 && sum(&kinds, "current") == 0,
        "{code:?} {kinds}"
    );
    let (code, kinds) = vault("status", Some(&former))?;
    ensure!(
        code == Some(0) && sum(&kinds, "former") == failed,
        "nothing was changed: {code:?} {kinds}"
    );
    let (code, kinds) = vault("rewrap", Some(&former))?;
    ensure!(
        code == Some(0) && sum(&kinds, "rewrapped") == failed && sum(&kinds, "former") == 0,
        "{code:?} {kinds}"
    );
    let (code, kinds) = vault("status", None)?;
    ensure!(
        code == Some(0) && sum(&kinds, "current") == failed && sum(&kinds, "failed") == 0,
        "{code:?} {kinds}"
    );
    Ok(())
}
