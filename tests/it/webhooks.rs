//! Webhooks of a running service: the reference libraries of Standard Webhooks verify deliveries, and
//! a process that is killed between commit and send loses nothing.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::{Console, text},
    person::Person,
    process::eventually,
    program::needs,
    sql::Sql,
    stack::{Process, Stack},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

const SOON: Duration = Duration::from_secs(30);
const PATH: &str = "/workspaces/harbour/webhooks";

/// A receiver of others.
pub(crate) struct Receiver {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

impl Receiver {
    pub(crate) async fn start(interpreter: &Path, file: &str) -> Result<Self> {
        let mut child = Command::new(interpreter)
            .arg(needs(file)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {file}; `make test-tools` installs it"))?;
        let stdin = child.stdin.take().context("a pipe")?;
        let mut lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        let first = timeout(SOON, lines.next_line()).await??.context("a line")?;
        let port = first
            .strip_prefix("listening ")
            .context("a port")?
            .parse()?;
        Ok(Self {
            _child: child,
            stdin,
            lines,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        })
    }

    pub(crate) async fn line(&mut self) -> Result<Value> {
        let line = timeout(SOON, self.lines.next_line()).await??;
        Ok(serde_json::from_str(&line.context("a line")?)?)
    }

    /// Gives it a secret; returns what it had kept until then.
    pub(crate) async fn tell(&mut self, secret: &str) -> Result<Vec<Value>> {
        self.stdin
            .write_all(format!("{secret}\n").as_bytes())
            .await?;
        self.stdin.flush().await?;
        let mut kept = Vec::new();
        loop {
            let line = self.line().await?;
            if line["knows"] == true {
                return Ok(kept);
            }
            kept.push(line);
        }
    }
}

pub(crate) fn check(message: &Value, kind: &str, verified: u64, signatures: u64) -> Result<()> {
    ensure!(
        message["type"] == kind
            && message["verified"] == verified
            && message["signatures"] == signatures
            && message["forged"] == false,
        "{kind} {verified} {signatures}: {message}"
    );
    Ok(())
}

async fn test(console: &Console<'_>, id: &str) -> Result<String> {
    let queued = console
        .post(&format!("{PATH}/{id}/test"), json!({}))
        .await?;
    text(&queued, "event")
}

/// The whole life of an endpoint whose receiver verifies by `file`.
async fn verify_by(interpreter: &Path, file: &str) -> Result<()> {
    let mut receiver = Receiver::start(interpreter, file).await?;
    let stack = Stack::builder().allow_egress(receiver.address).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let new = json!({
        "url": format!("http://{}/hook", receiver.address),
        "events": ["key.created", "key.revoked"],
    });
    let made = console.post(PATH, new).await?;
    let id = text(&made["endpoint"], "id")?;
    let challenge = receiver.tell(&text(&made, "secret")?).await?;
    check(&challenge[0], "endpoint.verify", 1, 1)?;

    let event = test(&console, &id).await?;
    let message = receiver.line().await?;
    check(&message, "endpoint.test", 1, 1)?;
    ensure!(message["id"] == event, "{message}");

    // A change in the console is an event of the same transaction.
    let key = json!({"name": "Läptop ✓"});
    console.post("/workspaces/harbour/api-keys", key).await?;
    let message = receiver.line().await?;
    check(&message, "key.created", 1, 1)?;
    ensure!(message["data"]["name"] == "Läptop ✓", "{message}");

    // Two secrets during a rotation: the old one and the new one both verify.
    let rotated = console
        .post(&format!("{PATH}/{id}/rotate"), json!({}))
        .await?;
    receiver.tell(&text(&rotated, "secret")?).await?;
    test(&console, &id).await?;
    check(&receiver.line().await?, "endpoint.test", 2, 2)?;

    // A replay has the id of before.
    let replay = format!("{PATH}/{id}/deliveries/{event}/replay");
    console
        .expect(Method::POST, &replay, Some(json!({})))
        .await?;
    let again = receiver.line().await?;
    check(&again, "endpoint.test", 2, 2)?;
    ensure!(again["id"] == event, "{again}");
    Ok(())
}

/// Rule: HOOK-6
#[tokio::test]
async fn reference_library_of_javascript_verifies() -> Result<()> {
    needs("tests/clients/webhooks/node_modules/standardwebhooks")?;
    verify_by("node".as_ref(), "tests/clients/webhooks/receiver.mjs").await
}

/// Rule: HOOK-6
#[tokio::test]
async fn reference_library_of_python_verifies() -> Result<()> {
    let python: PathBuf = needs(".portolan/tools/python-webhooks/bin/python")?;
    verify_by(&python, "tests/clients/webhooks/receiver.py").await
}

/// Reads a request; answers its `webhook-id` and type.
pub(crate) async fn read(stream: &mut TcpStream) -> Result<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = timeout(SOON, stream.read(&mut part)).await??;
        ensure!(count > 0, "the request ended early");
        bytes.extend_from_slice(&part[..count]);
        let all = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = all.split_once("\r\n\r\n") else {
            continue;
        };
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
                .context("a header")
        };
        if body.len() < header("content-length:")?.parse()? {
            continue;
        }
        let message: Value = serde_json::from_str(body)?;
        return Ok((header("webhook-id:")?, text(&message, "type")?));
    }
}

pub(crate) async fn accept(stream: &mut TcpStream) -> Result<(String, String)> {
    let read = read(stream).await?;
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        .await?;
    Ok(read)
}

/// Rule: HOOK-7
#[tokio::test]
async fn killed_node_sends_again_under_the_same_id() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut stack = Stack::builder().allow_egress(address).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let new = json!({"url": format!("http://{address}/"), "events": ["key.created"]});
    let accepts = async {
        let (mut stream, _) = listener.accept().await?;
        accept(&mut stream).await
    };
    let (made, challenge) = tokio::join!(console.post(PATH, new), accepts);
    let id = text(&made?["endpoint"], "id")?;
    ensure!(challenge?.1 == "endpoint.verify");
    let key = json!({"name": "CI"});
    console.post("/workspaces/harbour/api-keys", key).await?;
    // The commit stands, the request is on its way, and its answer never comes.
    let (mut stream, _) = timeout(SOON, listener.accept()).await??;
    let (sent, kind) = read(&mut stream).await?;
    ensure!(kind == "key.created");
    stack.process().signal("KILL")?;
    stack.process().wait(SOON)?;
    drop(stream);

    let environment = [
        ("PORTOLAN_PASSWORD_COST".to_owned(), "test".to_owned()),
        ("PORTOLAN_EGRESS_ALLOW".to_owned(), address.to_string()),
    ];
    let second = Process::start(stack.data(), &environment)?;
    let socket = stack.data().join("postgres/socket");
    let mut sql = Sql::connect(&socket, "portolan_dev", "portolan").await?;
    // The hold of the process that died is over.
    sql.ask(
        "update webhook_deliveries set held_until = now(), next_at = now() where state = 'pending'",
    )
    .await?;
    let (mut stream, _) = timeout(SOON, listener.accept()).await??;
    let (again, kind) = accept(&mut stream).await?;
    ensure!((again.as_str(), kind.as_str()) == (sent.as_str(), "key.created"));
    eventually("delivered", SOON, async || {
        sql.ask("select state, attempts from webhook_deliveries")
            .await
            .is_ok_and(|rows| rows == [["delivered", "2"]])
    })
    .await?;
    let events = sql
        .ask("select count(*) from events where type = 'key.created'")
        .await?;
    ensure!(events == [["1"]], "one id: {events:?}");
    let after = Person {
        email: ann.email.clone(),
        password: ann.password.clone(),
        ..Person::new(second.url(), "x")?
    };
    let page = after.browser.open("/login").await?;
    after.sign_in(page).await?;
    let path = format!("{PATH}/{id}/deliveries/{sent}");
    let (status, shown) = after.console().send(Method::GET, &path, None).await?;
    ensure!(status == StatusCode::OK, "{shown}");
    ensure!(shown["delivery"]["state"] == "delivered", "{shown}");
    Ok(())
}
