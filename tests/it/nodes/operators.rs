//! Commands of `portolan admin`, as clients at two nodes see them (AUTH-F6, AUTH-F7, AUTH-J3,
//! AUTH-J5, AUTH-K16, AUTH-M6, AUTH-R7, AUTH-R9).

use std::{
    process::Output,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    fleet::{Fleet, sign_up},
    mcp::{LEGACY, McpClient},
    oauth::tokens,
    person::Person,
    process::eventually,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Longest time of a revocation to every node (AUTH-R9).
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

/// The answer of each node to a token.
async fn answers(fleet: &Fleet, mcp: &McpClient) -> Result<Vec<StatusCode>> {
    let mut all = Vec::new();
    for node in 0..fleet.cluster.nodes.len() {
        let answer = fleet.on(node, mcp)?.modern("tools/list", json!({})).await?;
        all.push(answer.status);
    }
    Ok(all)
}

/// Waits until every node refuses the token, and returns the time since the end of the command.
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

/// CASE-141: the tokens of a removed key are refused at every node within a second, the next
/// refresh gives good ones. CASE-126: a person who was locked out or whose tenant was suspended
/// does not return with an old refresh token. AUTH-R9: a stream that is open ends with its grant.
/// The log has it all, in chains that are whole.
#[tokio::test(flavor = "multi_thread")]
async fn j3_cases_126_and_141_an_operators_command_reaches_every_node_within_a_second() -> Result<()>
{
    let fleet = Fleet::of(2).await?;
    let good = [StatusCode::OK; 2];
    ensure!(answers(&fleet, &fleet.mcp).await? == good);

    // A key that an attacker may know.
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
        "CASE-141: tokens of a removed key are refused at both nodes {took:?} after the command"
    );
    ensure!(took < REACH, "{took:?}");
    // Each process publishes its keys anew when it learns of the change.
    let deadline = Instant::now() + REACH;
    loop {
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
        if published.contains(&removed["signs"]) && !published.contains(&json!(signing)) {
            break;
        }
        ensure!(Instant::now() < deadline, "{jwks}");
    }
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
    ensure!(answers(&fleet, &mcp).await? == good, "AUTH-K16: back again");
    done(&fleet, &["tenants", "disable", "harbour", "--yes"])?;
    let refused = fleet.client.refresh(&renewed.refresh).await?;
    ensure!(refused.status() == StatusCode::BAD_REQUEST);
    done(&fleet, &["tenants", "enable", "harbour"])?;
    let refused: Value = fleet.client.refresh(&renewed.refresh).await?.json().await?;
    ensure!(refused["error"] == "invalid_grant", "CASE-126: {refused}");

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
    ensure!(refused["error"] == "invalid_grant", "AUTH-R7: {refused}");

    // The log names the operator.
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

/// AUTH-J5: everything is sealed again under another master secret, and what does not open is
/// counted and left as it is.
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

/// As if the workspace had a provider of its own that is the only way in and does not work: Ann's app was connected by it, Bob is here on its
/// word alone, and the owner's password opens nothing.
async fn locked_out(fleet: &Fleet, bob: &Person) -> Result<()> {
    let workspace = "(select tenant_id from tenant_slugs where slug = 'harbour')";
    let provider = "'5f0c9a51-d2e8-4b77-88aa-01c2d3e4f5a6'";
    let bobs = format!(
        "(select s.id from browser_sessions s join user_emails e on e.user_id = s.user_id where e.address_norm = '{}')",
        bob.email
    );
    let mut sql = fleet.cluster.postgres.sql().await?;
    sql.ask(&format!(
        "insert into identity_providers (tenant_id, id, name, issuer, client_id, enforced_at, created_at, updated_at)
           values ({workspace}, {provider}, 'Acme Works', 'https://id.acme.example', 'us', now(), now(), now());
         update grants set sso_provider = {provider} where tenant_id = {workspace};
         update browser_sessions set only_tenant = {workspace} where id in {bobs};
         insert into session_steps (session_id, tenant_id, provider_id, at) select id, {workspace}, {provider}, now() from {bobs} as b(id)"
    ))
    .await?;
    Ok(())
}

async fn is_signed_in(person: &Person) -> Result<bool> {
    let (status, _) = person.console().send(Method::GET, "/me", None).await?;
    Ok(status == StatusCode::OK)
}

/// Entries of the log: operator and action.
async fn logged(fleet: &Fleet, action: &str) -> Result<Vec<Vec<String>>> {
    let mut sql = fleet.cluster.postgres.sql().await?;
    sql.ask(&format!(
        "select detail->>'operator', coalesce(detail->>'reason', ''), tenant_id is not null from audit_events where action = '{action}'"
    ))
    .await
}

/// AUTH-F7: the provider is off and kept, what stood on its word alone ends everywhere, and the
/// other ways lead in again.
#[tokio::test(flavor = "multi_thread")]
async fn f7_a_workspace_that_its_own_provider_locks_out_is_opened_again() -> Result<()> {
    const SSO: &str = "/workspaces/harbour/single-sign-on";
    let fleet = Fleet::of(2).await?;
    let bob = sign_up(&fleet.cluster, "bob").await?;
    locked_out(&fleet, &bob).await?;
    let console = fleet.owner.console();
    let (status, _) = console
        .send(Method::GET, "/workspaces/harbour", None)
        .await?;
    ensure!(status == StatusCode::FORBIDDEN, "locked out: {status}");
    let good = [StatusCode::OK; 2];
    ensure!(answers(&fleet, &fleet.mcp).await? == good);
    let off = ["tenants", "sso-off", "harbour"];
    let output = admin(&fleet, &off)?;
    ensure!(output.status.code() == Some(4), "asks first: {output:?}");
    ensure!(is_signed_in(&bob).await?, "nothing was done");

    let confirmed = [&off[..], &["--yes", "--reason", "idp is down"][..]].concat();
    let ended = done(&fleet, &confirmed)?;
    let took = refused_everywhere(&fleet, &fleet.mcp).await?;
    ensure!(took < REACH, "{took:?}");
    ensure!(
        ended["sessions"] == 1 && ended["apps"] == 1,
        "as the console's own switch: {ended}"
    );
    ensure!(!is_signed_in(&bob).await? && is_signed_in(&fleet.owner).await?);
    let refused: Value = fleet
        .client
        .refresh(&fleet.tokens.refresh)
        .await?
        .json()
        .await?;
    ensure!(refused["error"] == "invalid_grant", "{refused}");
    let seen = console.get(SSO).await?;
    ensure!(
        seen["provider"]["issuer"] == "https://id.acme.example"
            && seen["provider"]["turned_off"] == true
            && seen["provider"]["enforced"] == false,
        "{seen}"
    );
    let fresh = fleet
        .client
        .authorize(&fleet.owner, &fleet.published.url)
        .await?;
    ensure!(answers(&fleet, &token(&fleet, &fresh.access)?).await? == good);
    let again = admin(&fleet, &confirmed)?;
    ensure!(again.status.code() == Some(1), "it is off: {again:?}");
    let entry = ["olga", "idp is down", "t"].map(str::to_owned).to_vec();
    ensure!(logged(&fleet, "sso.turned_off").await? == [entry]);
    Ok(())
}

/// AUTH-F6, for an operator: no external account opens the account any more, and no session is
/// open.
#[tokio::test(flavor = "multi_thread")]
async fn f6_accounts_elsewhere_that_somebody_lost_are_removed() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let email = fleet.owner.email.as_str();
    let mut sql = fleet.cluster.postgres.sql().await?;
    sql.ask(&format!(
        "insert into identity_links (id, user_id, provider, issuer, subject, label, created_at)
         select gen_random_uuid(), e.user_id, p.name, 'https://' || p.name, '7', 'ann', now()
         from user_emails e cross join (values ('github'), ('google')) as p(name) where e.address_norm = '{email}'"
    ))
    .await?;
    let shown = done(&fleet, &["users", "show", email])?;
    ensure!(
        shown["identities"]
            .as_array()
            .is_some_and(|all| all.len() == 2),
        "{shown}"
    );
    let remove = ["users", "remove-identities", email];
    let output = admin(&fleet, &remove)?;
    ensure!(output.status.code() == Some(4), "asks first: {output:?}");
    ensure!(is_signed_in(&fleet.owner).await?, "nothing was done");
    let confirmed = [&remove[..], &["--yes"][..]].concat();
    let removed = done(&fleet, &confirmed)?;
    ensure!(removed["removed"] == 2, "{removed}");
    ensure!(!is_signed_in(&fleet.owner).await?);
    let left = sql.ask("select count(*) from identity_links").await?;
    ensure!(left[0][0] == "0", "{left:?}");
    let again = admin(&fleet, &confirmed)?;
    ensure!(again.status.code() == Some(1), "there are none: {again:?}");
    let entry = ["olga", "", "f"].map(str::to_owned).to_vec();
    ensure!(logged(&fleet, "identity.removed").await? == [entry]);
    Ok(())
}
