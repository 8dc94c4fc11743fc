//! Signing in with the system's browser, once for many copies, and signing out.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{fixture::FixtureApi, person::Person, scene::Scene, stack::Stack};
use serde_json::{Value, json};

use portolan_tests::connected::{Bridge, Home};

const LEGACY: &str = "2025-11-25";

/// The file of tokens in a home.
fn held(home: &Home) -> Result<(std::path::PathBuf, Value)> {
    let mut files = fs::read_dir(home.tokens())?.flatten();
    let file = files
        .find(|file| {
            file.path()
                .extension()
                .is_some_and(|ending| ending == "json")
        })
        .context("a file of tokens")?
        .path();
    let text = fs::read(&file)?;
    Ok((file, serde_json::from_slice(&text)?))
}

fn rewrite(home: &Home, change: impl Fn(&mut Value)) -> Result<()> {
    let (file, mut value) = held(home)?;
    change(&mut value);
    Ok(fs::write(file, value.to_string())?)
}

/// Initializes, signs in as the person, and lists.
async fn sign_in(bridge: &mut Bridge, person: &Person) -> Result<()> {
    let params = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let opening = bridge.begin("initialize", params).await?;
    let address = bridge.sign_in_address().await?;
    person.agree_and_return(&address).await?;
    let opened = bridge.answer(opening).await?;
    ensure!(opened["result"]["protocolVersion"] == LEGACY, "{opened}");
    bridge
        .notify("notifications/initialized", json!({}))
        .await?;
    lists(bridge).await
}

async fn lists(bridge: &mut Bridge) -> Result<()> {
    let listed = bridge.request("tools/list", json!({})).await?;
    ensure!(
        listed["result"]["tools"].is_array(),
        "{listed}\n{}",
        bridge.notes()
    );
    Ok(())
}

#[tokio::test]
async fn a_person_signs_in_once_and_the_next_copies_need_no_browser() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let url = scene.published.url.as_str();
    let mut first = home.start(&[url, "--verbose"])?;
    sign_in(&mut first, &scene.owner).await?;
    let (file, value) = held(&home)?;
    for (name, token) in [("access", &value["access"]), ("refresh", &value["refresh"])] {
        let token = token.as_str().with_context(|| name.to_owned())?;
        ensure!(!first.notes().contains(token), "no {name} token in a log");
    }
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &std::path::Path| {
            fs::metadata(path).map(|found| found.permissions().mode() & 0o777)
        };
        ensure!(mode(&file)? == 0o600 && mode(&home.tokens())? == 0o700);
    }
    let mut second = home.start(&[url, "--no-browser"])?;
    second.initialize(LEGACY, json!({})).await?;
    lists(&mut second).await?;
    ensure!(!second.notes().contains("Sign in to"));

    // Signed out: the token is dead, and the next copy asks.
    let out = home.command(&[url, "--sign-out"]).output().await?;
    ensure!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    ensure!(held(&home).is_err());
    let again = home.command(&[url, "--sign-out"]).output().await?;
    ensure!(String::from_utf8_lossy(&again.stdout).contains("not signed in"));
    let mut third = home.start(&[url])?;
    sign_in(&mut third, &scene.owner).await
}

#[tokio::test]
async fn the_command_of_the_environment_is_the_browser() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let mark = home.path().join("opened");
    let script = home.path().join("browser.sh");
    fs::write(
        &script,
        format!("#!/bin/sh\necho \"$1\" > {}\n", mark.display()),
    )?;
    let mut command = home.command(&[&scene.published.url]);
    command.env("BROWSER", format!("sh {} %s", script.display()));
    let mut bridge = Bridge::start(command)?;
    sign_in(&mut bridge, &scene.owner).await?;
    let opened = fs::read_to_string(mark)?;
    ensure!(opened.trim() == bridge.sign_in_address().await?, "{opened}");
    Ok(())
}

#[tokio::test]
async fn many_copies_at_once_sign_in_once() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let params = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let mut copies = Vec::new();
    for _ in 0..6 {
        let mut copy = home.start(&[&scene.published.url])?;
        let opening = copy.begin("initialize", params.clone()).await?;
        copies.push((copy, opening));
    }
    // One of them asks.
    let address = loop {
        let asking = copies.iter().find_map(|(copy, _)| {
            let notes = copy.notes();
            let line = notes.lines().find(|line| line.contains("Sign in to "))?;
            Some(line.split_once("browser: ")?.1.to_owned())
        });
        match asking {
            Some(address) => break address,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    scene.owner.agree_and_return(&address).await?;
    let mut asked = 0;
    for (copy, opening) in &mut copies {
        let opened = copy.answer(*opening).await?;
        ensure!(opened["result"].is_object(), "{opened}");
        asked += usize::from(copy.notes().contains("Sign in to"));
    }
    ensure!(asked == 1, "{asked} copies asked");
    Ok(())
}

#[tokio::test]
async fn many_copies_at_once_refresh_once() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let url = scene.published.url.as_str();
    let mut first = home.start(&[url])?;
    sign_in(&mut first, &scene.owner).await?;
    first.close().await?;
    let (_, before) = held(&home)?;
    rewrite(&home, |value| value["expires_at"] = json!(1))?;
    let mut copies = Vec::new();
    for _ in 0..8 {
        copies.push(home.start(&[url, "--verbose", "--no-browser"])?);
    }
    let mut refreshed = 0;
    for copy in &mut copies {
        copy.initialize(LEGACY, json!({})).await?;
        lists(copy).await?;
        refreshed += copy.notes().matches("The token was refreshed").count();
    }
    ensure!(refreshed == 1, "{refreshed} copies refreshed");
    let (_, after) = held(&home)?;
    ensure!(after["access"] != before["access"] && after["refresh"] != before["refresh"]);
    Ok(())
}

#[tokio::test]
async fn a_token_that_the_server_refuses_is_refreshed_and_a_dead_grant_asks_again() -> Result<()> {
    let scene = Scene::new().await?;
    let home = Home::new()?;
    let url = scene.published.url.as_str();
    let mut first = home.start(&[url])?;
    sign_in(&mut first, &scene.owner).await?;
    first.close().await?;
    rewrite(&home, |value| value["access"] = json!("stale"))?;
    let mut second = home.start(&[url, "--verbose"])?;
    second.initialize(LEGACY, json!({})).await?;
    lists(&mut second).await?;
    ensure!(
        second.notes().contains("The token was refreshed"),
        "{}",
        second.notes()
    );
    second.close().await?;
    rewrite(&home, |value| {
        value["access"] = json!("stale");
        value["refresh"] = json!("dead");
    })?;
    let mut third = home.start(&[url])?;
    sign_in(&mut third, &scene.owner).await
}

#[tokio::test]
async fn a_sign_in_that_nobody_finishes_is_an_error_and_a_wrong_state_is_refused() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let person = Person::sign_up(&stack, "ann").await?;
    let published = person
        .console()
        .publish_fixture("harbour", &fixture)
        .await?;
    let home = Home::new()?;
    let mut bridge = home.start(&[&published.url, "--sign-in-timeout", "4"])?;
    let params = json!({"protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let opening = bridge.begin("initialize", params).await?;
    let address = url::Url::parse(&bridge.sign_in_address().await?)?;
    let of = |name: &str| {
        let mut pairs = address.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    ensure!(of("code_challenge_method").as_deref() == Some("S256"));
    ensure!(
        of("resource").as_deref() == Some(published.url.as_str()),
        "{address}"
    );
    let back = of("redirect_uri").context("a redirect")?;
    ensure!(back.starts_with("http://127.0.0.1:"), "{back}");
    let forged = reqwest::get(format!("{back}?code=c&state=forged")).await?;
    ensure!(forged.status() == 400, "{}", forged.status());
    let answer = bridge.answer(opening).await?;
    ensure!(answer["error"]["code"] == -31007, "{answer}");
    ensure!(bridge.close().await?.code() == Some(6));
    Ok(())
}
