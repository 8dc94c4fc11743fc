//! `portolan webhooks listen` against a running service and receivers on this machine (HOOK-27 to
//! HOOK-30).

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::{Console, text},
    link::{Link, Weather},
    person::Person,
    process::{eventually, signal},
    program::needs,
    sql::Sql,
    stack::{Process, Stack, free_port, portolan},
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::webhooks::{Receiver, check, read};

const SOON: Duration = Duration::from_secs(40);

/// A workspace with a token that may listen to it.
struct Scene {
    stack: Stack,
    ann: Person,
    token: String,
    token_id: String,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Result<Self> {
        Self::of(Stack::start()?).await
    }

    async fn of(stack: Stack) -> Result<Self> {
        let ann = Person::sign_up(&stack, "ann").await?;
        let console = ann.console();
        console.create_workspace("harbour").await?;
        let (token_id, token) = token(&console, "admin").await?;
        Ok(Self {
            stack,
            ann,
            token,
            token_id,
            folder: TempDir::new()?,
        })
    }

    /// The command on the service itself.
    fn listen(&self, options: &[&str]) -> Result<Listener> {
        let url = self.stack.url().as_str().to_owned();
        Listener::start(self.folder.path(), &url, &self.token, options)
    }

    /// Runs the command, which ends by itself: exit code and standard error.
    async fn refused(&self, token: &str, options: &[&str]) -> Result<(Option<i32>, String)> {
        let url = self.stack.url().as_str();
        let mut listener = Listener::start(self.folder.path(), url, token, options)?;
        let code = listener.end().await?;
        Ok((code, listener.notes()))
    }
}

/// Id and secret of a token of the workspace.
async fn token(console: &Console<'_>, role: &str) -> Result<(String, String)> {
    let body = json!({"name": "Laptop", "role": role, "scopes": ["workspace:read"], "days": 1});
    let made = console
        .post("/workspaces/harbour/access-tokens", body)
        .await?;
    Ok((text(&made["token"], "id")?, text(&made, "secret")?))
}

async fn new_key(console: &Console<'_>, name: &str) -> Result<String> {
    let made = console
        .post("/workspaces/harbour/api-keys", json!({"name": name}))
        .await?;
    text(&made["key"], "id")
}

/// A running command.
struct Listener {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: PathBuf,
}

impl Listener {
    fn start(folder: &Path, url: &str, token: &str, options: &[&str]) -> Result<Self> {
        let errors = tempfile::NamedTempFile::new_in(folder)?
            .into_temp_path()
            .keep()?;
        let mut command = Command::from(portolan());
        command
            .args(["webhooks", "listen"])
            .args(options)
            .env("PORTOLAN_URL", url)
            .env("PORTOLAN_WORKSPACE", "harbour")
            .env("PORTOLAN_TOKEN", token)
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        Ok(Self {
            child,
            lines,
            errors,
        })
    }

    async fn line(&mut self) -> Result<String> {
        let line = timeout(SOON, self.lines.next_line()).await;
        let line = line.with_context(|| format!("no line; {}", self.notes()))??;
        let line = line.with_context(|| format!("it ended: {}", self.notes()))?;
        // Shown if the test fails.
        eprintln!("{line}");
        Ok(line)
    }

    async fn json(&mut self) -> Result<Value> {
        Ok(serde_json::from_str(&self.line().await?)?)
    }

    /// Its standard error so far.
    fn notes(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    async fn noted(&self, what: &str) -> Result<()> {
        eventually(what, SOON, async || self.notes().contains(what)).await
    }

    /// Its exit code, when it has ended.
    async fn end(&mut self) -> Result<Option<i32>> {
        Ok(timeout(SOON, self.child.wait()).await??.code())
    }

    /// Presses Ctrl-C.
    async fn interrupt(&mut self) -> Result<Option<i32>> {
        signal(self.child.id().context("it runs")?, "INT")?;
        self.end().await
    }
}

/// The whole way to a receiver that verifies by `file`.
async fn forward_to(interpreter: &Path, file: &str) -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.ann.console();
    let mut receiver = Receiver::start(interpreter, file).await?;
    let forward = format!("http://localhost:{}/hook", receiver.address.port());
    let mut listener = scene.listen(&["--forward", &forward, "--json", "--print"])?;
    let begun = listener.json().await?;
    ensure!(
        begun["listening"] == "harbour" && begun["forward"] == forward,
        "{begun}"
    );
    let secret = text(&begun, "secret")?;
    ensure!(secret.starts_with("whsec_"));
    ensure!(receiver.tell(&secret).await?.is_empty());
    let key = new_key(&console, "Läptop ✓").await?;
    let message = receiver.line().await?;
    check(&message, "key.created", 1, 1)?;
    ensure!(message["data"]["name"] == "Läptop ✓" && message["data"]["key"] == key);
    let line = listener.json().await?;
    ensure!(
        line["id"] == message["id"]
            && line["type"] == "key.created"
            && line["status"] == 204
            && line["accepted"] == true
            && line["attempt"] == 1
            && line["message"]["data"] == message["data"],
        "{line}"
    );
    ensure!(
        listener.interrupt().await? == Some(0),
        "{}",
        listener.notes()
    );
    // Another run has another secret.
    let mut other = scene.listen(&["--forward", &forward, "--json"])?;
    ensure!(text(&other.json().await?, "secret")? != secret);
    Ok(())
}

/// Rule: HOOK-30
#[tokio::test]
async fn javascript_library_verifies_what_is_forwarded() -> Result<()> {
    needs("tests/clients/webhooks/node_modules/standardwebhooks")?;
    forward_to("node".as_ref(), "tests/clients/webhooks/receiver.mjs").await
}

/// Rule: HOOK-30
#[tokio::test]
async fn python_library_verifies_what_is_forwarded() -> Result<()> {
    let python: PathBuf = needs(".portolan/tools/python-webhooks/bin/python")?;
    forward_to(&python, "tests/clients/webhooks/receiver.py").await
}

/// Takes one request and answers with this head; its `webhook-id` and type.
async fn answer(receiver: &TcpListener, head: &str) -> Result<(String, String)> {
    let (mut stream, _) = timeout(SOON, receiver.accept()).await??;
    let request = read(&mut stream).await?;
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    Ok(request)
}

/// Rule: HOOK-28
#[tokio::test]
async fn cut_connection_and_killed_node_lose_and_repeat_no_event() -> Result<()> {
    // The service answers to 127.0.0.1 at its port too: there stands what can be cut.
    let public = free_port()?;
    let listen = SocketAddr::from(([127, 0, 0, 2], public.port()));
    let mut scene = Scene::of(Stack::builder().at(listen).start()?).await?;
    let link = Link::start_at(public, listen)?;
    let receiver = TcpListener::bind("127.0.0.1:0").await?;
    let forward = format!("http://{}/", receiver.local_addr()?);
    let url = format!("http://{public}");
    let options = ["--forward", &forward, "--events", "key.*"];
    let mut listener = Listener::start(scene.folder.path(), &url, &scene.token, &options)?;
    let first = listener.line().await?;
    ensure!(
        first.starts_with("Listening to events of harbour"),
        "{first}"
    );
    let mut forwarded = Vec::new();
    new_key(&scene.ann.console(), "before").await?;
    forwarded.push(answer(&receiver, "204 No Content").await?.0);

    link.set(Weather::Cut);
    listener.noted("connecting again").await?;
    for name in ["meanwhile", "and another"] {
        new_key(&scene.ann.console(), name).await?;
    }
    link.set(Weather::Clear);
    for _ in 0..2 {
        forwarded.push(answer(&receiver, "204 No Content").await?.0);
    }
    listener.noted("connected again").await?;

    // Written, and perhaps not sent yet, when the node dies.
    new_key(&scene.ann.console(), "last words").await?;
    scene.stack.process().signal("KILL")?;
    scene.stack.process().wait(SOON)?;
    let environment = [("PORTOLAN_PASSWORD_COST".to_owned(), "test".to_owned())];
    let _second = Process::start_at(scene.stack.data(), listen, &environment)?;
    forwarded.push(answer(&receiver, "204 No Content").await?.0);
    new_key(&scene.ann.console(), "after").await?;
    forwarded.push(answer(&receiver, "204 No Content").await?.0);

    let socket = scene.stack.data().join("postgres/socket");
    let mut sql = Sql::connect(&socket, "portolan_dev", "portolan").await?;
    let written = sql
        .ask("select 'evt_' || replace(id::text, '-', '') from events where type = 'key.created' order by number")
        .await?
        .concat();
    ensure!(forwarded == written, "{forwarded:?} {written:?}");
    ensure!(
        listener.interrupt().await? == Some(0),
        "{}",
        listener.notes()
    );
    let mut shown = Vec::new();
    while let Some(line) = listener.lines.next_line().await? {
        shown.extend(
            line.split_whitespace()
                .find(|word| word.starts_with("evt_"))
                .map(str::to_owned),
        );
    }
    ensure!(shown == written, "a line for each, once: {shown:?}");
    Ok(())
}

/// Rule: HOOK-30
#[tokio::test]
async fn refused_forward_is_sent_again_as_often_as_wanted() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.ann.console();
    let receiver = TcpListener::bind("127.0.0.1:0").await?;
    let forward = format!("http://{}/hook", receiver.local_addr()?);
    let mut once = scene.listen(&["--forward", &forward])?;
    for _ in 0..3 {
        once.line().await?;
    }
    new_key(&console, "moved").await?;
    let (moved, _) = answer(&receiver, "302 Found\r\nlocation: /other").await?;
    let line = once.line().await?;
    ensure!(
        line.contains(&moved)
            && line.contains("302")
            && line.contains("not sent again (--retry N does)"),
        "{line}"
    );
    ensure!(!line.contains('\u{1b}'), "no colours on a pipe: {line:?}");
    // The next request is that of the next event: no redirect was followed, and nothing repeated.
    new_key(&console, "next").await?;
    let (next, _) = answer(&receiver, "204 No Content").await?;
    ensure!(next != moved);
    ensure!(once.line().await?.contains("204"));
    ensure!(once.interrupt().await? == Some(0));

    let mut again = scene.listen(&["--forward", &forward, "--retry", "2", "--json"])?;
    again.line().await?;
    new_key(&console, "again").await?;
    let (first, _) = answer(&receiver, "503 Busy").await?;
    let (second, _) = answer(&receiver, "204 No Content").await?;
    ensure!(first == second, "one id");
    let lines = [again.json().await?, again.json().await?];
    ensure!(
        lines[0]["status"] == 503
            && lines[0]["accepted"] == false
            && lines[0]["again_in_ms"].is_u64(),
        "{lines:?}"
    );
    ensure!(
        lines[1]["attempt"] == 2 && lines[1]["accepted"] == true,
        "{lines:?}"
    );
    ensure!(again.interrupt().await? == Some(0));

    // Without a receiver, retained events are printed.
    let mut since = scene.listen(&["--since", "1h", "--events", "key.created", "--json"])?;
    since.line().await?;
    for id in [&moved, &next, &first] {
        let line = since.json().await?;
        ensure!(line["id"] == *id && line["status"].is_null(), "{line}");
    }
    drop(receiver);
    let mut away = scene.listen(&["--forward", &forward, "--since", "1h", "--events", "key.*"])?;
    for _ in 0..3 {
        away.line().await?;
    }
    let line = away.line().await?;
    ensure!(line.contains("could not connect to 127.0.0.1"), "{line}");
    Ok(())
}

/// Rule: HOOK-30
#[tokio::test]
async fn wrong_option_and_weak_token_end_with_1_and_a_remedy() -> Result<()> {
    let scene = Scene::new().await?;
    let (_, weak) = token(&scene.ann.console(), "developer").await?;
    let good = scene.token.as_str();
    let cases: [(&str, &[&str], &str); 9] = [
        (
            good,
            &["--forward", "localhost:3000/hook"],
            "http://localhost:3000/hook",
        ),
        (
            good,
            &["--forward", "ftp://localhost/"],
            "http:// or https://",
        ),
        (
            good,
            &["--forward", "http://a:b@localhost/"],
            "without user name",
        ),
        (
            good,
            &["--forward", "https://hooks.example/x"],
            "--allow-remote",
        ),
        (good, &["--since", "yesterday"], "--since"),
        (good, &["--since", "40d"], "kept for 30 days"),
        (good, &["--events", "nothing.*"], "no event of the type"),
        (weak.as_str(), &[], "admins and owners"),
        ("ptlw_nothing", &[], "access token"),
    ];
    for (token, options, remedy) in cases {
        let (code, notes) = scene.refused(token, options).await?;
        ensure!(
            code == Some(1) && notes.contains(remedy),
            "{options:?} {code:?}: {notes}"
        );
        ensure!(!notes.contains(token), "the token is shown: {notes}");
    }
    let (code, notes) = scene.refused(good, &["--workspace", "elsewhere"]).await?;
    ensure!(code == Some(1) && notes.contains("--workspace"), "{notes}");
    let nothing = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", nothing.local_addr()?);
    drop(nothing);
    let (code, notes) = scene.refused(good, &["--url", &url]).await?;
    ensure!(
        code == Some(1) && notes.contains("could not connect"),
        "{notes}"
    );
    Ok(())
}

/// Rule: HOOK-30, HOOK-31
#[tokio::test]
async fn token_that_is_revoked_ends_the_command_with_1() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.ann.console();
    let mut listener = scene.listen(&["--json"])?;
    listener.line().await?;
    new_key(&console, "seen").await?;
    ensure!(listener.json().await?["type"] == "key.created");
    let path = format!("/workspaces/harbour/access-tokens/{}", scene.token_id);
    console.expect(Method::DELETE, &path, None).await?;
    new_key(&console, "unseen").await?;
    ensure!(listener.end().await? == Some(1));
    ensure!(
        listener.lines.next_line().await?.is_none(),
        "an event too much"
    );
    let notes = listener.notes();
    ensure!(notes.contains("PORTOLAN_TOKEN"), "{notes}");
    Ok(())
}
