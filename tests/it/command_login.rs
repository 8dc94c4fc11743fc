//! `portolan login` and `logout`: a person confirms in the console, and the commands use the token
//! (CONF-15). The tests stand for the console's page, whose own tests are with the console.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::text,
    person::Person,
    stack::{Stack, portolan},
};
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use url::Url;

/// A person with the workspace `harbour`, and a home folder on a machine.
struct Scene {
    stack: Stack,
    owner: Person,
    home: TempDir,
}

impl Scene {
    async fn new() -> Result<Self> {
        let stack = Stack::builder().start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        owner.console().create_workspace("harbour").await?;
        Ok(Self {
            stack,
            owner,
            home: TempDir::new()?,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = portolan();
        command
            .args(arguments)
            .env("HOME", self.home.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("PORTOLAN_URL", self.stack.url().as_str())
            .env("PORTOLAN_WORKSPACE", "harbour");
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = self.command(arguments).output()?;
        let shown = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&shown).into_owned(),
        ))
    }

    /// The file of the token, if there is one.
    fn file(&self) -> Result<Option<PathBuf>> {
        let folder = self.home.path().join(".config/portolan/login");
        if !folder.exists() {
            return Ok(None);
        }
        let files = std::fs::read_dir(folder)?;
        let mut paths = files.map(|file| Ok(file?.path()));
        paths
            .find(|path: &Result<PathBuf>| {
                path.as_ref()
                    .is_ok_and(|path| path.extension().is_some_and(|end| end == "json"))
            })
            .transpose()
    }

    /// Starts a sign-in: the process, and the address of its page.
    fn begin(&self) -> Result<(Child, Url)> {
        let mut command = self.command(&["login", "--no-browser"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let errors = child.stderr.as_mut().context("standard error")?;
        let mut line = String::new();
        BufReader::new(errors).read_line(&mut line)?;
        let (_, address) = line
            .trim()
            .split_once("browser: ")
            .with_context(|| line.clone())?;
        Ok((child, address.parse()?))
    }

    /// Confirms as the console's page does; the address that the browser is sent to.
    async fn confirm(&self, page: &Url, challenge: &str) -> Result<Url> {
        let port = parameter(page, "port")?;
        let body = json!({"name": format!("portolan on {}", parameter(page, "name")?),
            "scopes": ["registry:write"], "days": 30, "workspace": parameter(page, "workspace")?,
            "code_challenge": challenge, "page": page.path()});
        let made = self
            .owner
            .console()
            .post("/me/command-tokens", body)
            .await?;
        let mut back = Url::parse(&format!("http://127.0.0.1:{port}/callback"))?;
        back.query_pairs_mut()
            .append_pair("code", &text(&made, "code")?)
            .append_pair("state", &parameter(page, "state")?);
        Ok(back)
    }
}

fn parameter(page: &Url, name: &str) -> Result<String> {
    let mut pairs = page.query_pairs();
    let found = pairs.find(|(own, _)| own == name);
    let (_, value) = found.with_context(|| format!("{page} without {name}"))?;
    Ok(value.into_owned())
}

fn output_of(child: Child) -> Result<(Option<i32>, String)> {
    let output = child.wait_with_output()?;
    let shown = [output.stdout, output.stderr].concat();
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&shown).into_owned(),
    ))
}

/// Rule: CONF-15
#[tokio::test]
async fn a_confirmed_sign_in_serves_the_commands_until_logout() -> Result<()> {
    let scene = Scene::new().await?;
    let (code, shown) = scene.run(&["export"])?;
    ensure!(
        code == Some(1) && shown.contains("portolan login"),
        "{shown}"
    );
    let (code, shown) = scene.run(&["login", "--status"])?;
    ensure!(code == Some(1), "{shown}");

    let (child, page) = scene.begin()?;
    ensure!(page.path() == "/account/command", "{page}");
    let back = scene
        .confirm(&page, &parameter(&page, "challenge")?)
        .await?;
    let answer = reqwest::get(back).await?;
    ensure!(answer.status() == StatusCode::OK);
    ensure!(answer.text().await?.contains("You are signed in"));
    let (code, shown) = output_of(child)?;
    ensure!(code == Some(0) && !shown.contains("ptlp_"), "{shown}");

    let file = scene.file()?.context("a file")?;
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file)?.permissions().mode() & 0o777;
        ensure!(mode == 0o600, "{mode:o}");
    }
    let (code, shown) = scene.run(&["export", "--name", "acme"])?;
    ensure!(code == Some(0) && shown.contains("name: acme"), "{shown}");
    let (code, shown) = scene.run(&["login", "--status"])?;
    ensure!(code == Some(0) && shown.contains("harbour"), "{shown}");
    ensure!(
        shown.contains("registry:write") && !shown.contains("ptlp_"),
        "{shown}"
    );
    // The variable wins.
    let mut command = scene.command(&["export"]);
    let refused = command.env("PORTOLAN_TOKEN", "ptlp_wrong").output()?;
    ensure!(refused.status.code() == Some(1));

    let held: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let token = text(&held, "token")?;
    let (code, shown) = scene.run(&["logout"])?;
    ensure!(code == Some(0) && shown.contains("signed out"), "{shown}");
    ensure!(scene.file()?.is_none());
    let url = scene.stack.url().join("/api/v1/token")?;
    let client = reqwest::Client::builder().build()?;
    let dead = client.get(url).bearer_auth(token).send().await?;
    ensure!(dead.status() == StatusCode::UNAUTHORIZED, "it is revoked");
    let (code, shown) = scene.run(&["logout"])?;
    ensure!(
        code == Some(0) && shown.contains("not signed in"),
        "{shown}"
    );
    Ok(())
}

/// Rule: CONF-15
#[tokio::test]
async fn a_code_of_another_command_or_a_refusal_is_no_sign_in() -> Result<()> {
    let scene = Scene::new().await?;
    // A code that was made for another secret.
    let (child, page) = scene.begin()?;
    let back = scene.confirm(&page, &"A".repeat(43)).await?;
    let answer = reqwest::get(back).await?;
    ensure!(answer.status() == StatusCode::BAD_REQUEST);
    let (code, shown) = output_of(child)?;
    ensure!(
        code == Some(1) && shown.contains("another command"),
        "{shown}"
    );

    // An answer with another state is none, and the wait goes on.
    let (child, page) = scene.begin()?;
    let mut back = scene
        .confirm(&page, &parameter(&page, "challenge")?)
        .await?;
    let good = back.clone();
    back.set_query(Some("error=access_denied&state=another"));
    ensure!(reqwest::get(back.clone()).await?.status() == StatusCode::BAD_REQUEST);
    let state = parameter(&good, "state")?;
    back.set_query(Some(&format!("error=access_denied&state={state}")));
    let answer = reqwest::get(back).await?;
    ensure!(answer.status() == StatusCode::BAD_REQUEST);
    ensure!(answer.text().await?.contains("The sign-in was cancelled"));
    let (code, shown) = output_of(child)?;
    ensure!(code == Some(1) && shown.contains("cancelled"), "{shown}");
    ensure!(scene.file()?.is_none());
    Ok(())
}

/// Rule: CONF-15
#[tokio::test]
async fn a_token_of_standard_input_is_checked_and_kept() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let body = json!({"name": "Server", "scopes": ["registry:read"], "days": 1});
    let token = text(&console.post("/me/access-tokens", body).await?, "secret")?;
    for (given, expected) in [("ptlp_wrong", 1), ("", 1), (token.as_str(), 0)] {
        let mut command = scene.command(&["login", "--token-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("standard input")?;
        writeln!(input, "{given}")?;
        drop(input);
        let (code, shown) = output_of(child)?;
        ensure!(code == Some(expected), "{given}: {shown}");
        ensure!(!shown.contains("ptlp_"), "{shown}");
    }
    let (code, shown) = scene.run(&["export"])?;
    ensure!(code == Some(0) && shown.contains("portolan/v1"), "{shown}");
    Ok(())
}
