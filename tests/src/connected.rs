//! `portolan connect` as a client sees it: lines in, lines out.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::stack::binary;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinSet,
    time::timeout,
};

/// Longest wait for a message, on a machine that builds at the same time.
pub const PATIENCE: Duration = Duration::from_secs(30);
const META: &str = "io.modelcontextprotocol";

/// A user's home: configuration folders of the program and of clients.
#[derive(Debug)]
pub struct Home(TempDir);

impl Home {
    /// A new one.
    pub fn new() -> Result<Self> {
        Ok(Self(TempDir::with_prefix("portolan-home-")?))
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The folder of the tokens.
    #[must_use]
    pub fn tokens(&self) -> PathBuf {
        self.path().join("config/portolan/connect")
    }

    /// The program with this home.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("connect")
            .args(arguments)
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("CODEX_HOME", self.path().join(".codex"))
            // A browser that does nothing; the tests read the address from standard error.
            .env("BROWSER", "true")
            .env_remove("PORTOLAN_API_KEY")
            .env_remove("PORTOLAN_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Starts the program with this home.
    pub fn start(&self, arguments: &[&str]) -> Result<Bridge> {
        Bridge::start(self.command(arguments))
    }
}

/// A running program.
#[derive(Debug)]
pub struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    notes: Arc<Mutex<String>>,
    _readers: JoinSet<()>,
    /// What came while an answer was awaited.
    pub others: Vec<Value>,
    next: i64,
}

impl Bridge {
    /// Starts it.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        let mut errors = BufReader::new(child.stderr.take().context("a pipe")?).lines();
        let notes = Arc::<Mutex<String>>::default();
        let written = Arc::clone(&notes);
        let mut readers = JoinSet::new();
        readers.spawn(async move {
            while let Ok(Some(line)) = errors.next_line().await {
                let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                written.push_str(&line);
                written.push('\n');
            }
        });
        Ok(Self {
            input: child.stdin.take(),
            child,
            output,
            notes,
            _readers: readers,
            others: Vec::new(),
            next: 1,
        })
    }

    /// Standard error so far.
    #[must_use]
    pub fn notes(&self) -> String {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until standard error holds what `find` finds.
    pub async fn noted<T>(&self, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        let wait = async {
            loop {
                if let Some(found) = find(&self.notes()) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, wait)
            .await
            .with_context(|| format!("standard error holds:\n{}", self.notes()))
    }

    /// The address of the sign-in.
    pub async fn sign_in_address(&self) -> Result<String> {
        self.noted(|notes| {
            let line = notes.lines().find(|line| line.contains("Sign in to "))?;
            Some(line.split_once("browser: ")?.1.to_owned())
        })
        .await
    }

    /// Writes a line as it is.
    pub async fn write(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("an open input")?;
        input.write_all(line.as_bytes()).await?;
        input.write_all(b"\n").await?;
        Ok(input.flush().await?)
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) -> Result<()> {
        self.write(&message.to_string()).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await
    }

    /// The next line, which is JSON or the test fails.
    pub async fn receive(&mut self) -> Result<Value> {
        let line = timeout(PATIENCE, self.output.next_line())
            .await
            .with_context(|| format!("nothing came; standard error:\n{}", self.notes()))??;
        let line = line.with_context(|| format!("it ended:\n{}", self.notes()))?;
        serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))
    }

    /// Sends a request and gives its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Result<i64> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(id)
    }

    /// Waits for the answer to a request. Earlier messages are in `others`.
    pub async fn answer(&mut self, id: i64) -> Result<Value> {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(at) = self.others.iter().position(is_it) {
            return Ok(self.others.remove(at));
        }
        loop {
            let message = self.receive().await?;
            if is_it(&message) {
                return Ok(message);
            }
            self.others.push(message);
        }
    }

    /// Sends a request and waits for the answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.begin(method, params).await?;
        self.answer(id).await
    }

    /// Waits for a message with this method.
    pub async fn until(&mut self, method: &str) -> Result<Value> {
        let is_it = |message: &Value| message["method"] == method;
        if let Some(at) = self.others.iter().position(is_it) {
            return Ok(self.others.remove(at));
        }
        loop {
            let message = self.receive().await?;
            if is_it(&message) {
                return Ok(message);
            }
            self.others.push(message);
        }
    }

    /// The handshake; gives the result.
    pub async fn initialize(&mut self, version: &str, can: Value) -> Result<Value> {
        let params = json!({
            "protocolVersion": version, "capabilities": can,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.request("initialize", params).await?;
        ensure!(answer["result"].is_object(), "{answer}\n{}", self.notes());
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(answer["result"].clone())
    }

    /// A tool call of a session.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// A request of 2026-07-28.
    pub async fn modern(&mut self, method: &str, params: Value) -> Result<Value> {
        self.request(method, modern(params)).await
    }

    /// Closes the input and waits for the end.
    pub async fn close(&mut self) -> Result<ExitStatus> {
        self.input = None;
        let Ok(ended) = timeout(PATIENCE, self.child.wait()).await else {
            bail!("it goes on:\n{}", self.notes());
        };
        Ok(ended?)
    }

    /// Its process id.
    pub fn process(&self) -> Result<u32> {
        self.child.id().context("it runs")
    }
}

/// Parameters with the envelope of 2026-07-28.
#[must_use]
pub fn modern(mut params: Value) -> Value {
    let meta = json!({
        (format!("{META}/protocolVersion")): "2026-07-28",
        (format!("{META}/clientInfo")): {"name": "test", "version": "1"},
        (format!("{META}/clientCapabilities")): {"elicitation": {"form": {}}},
    });
    for (name, value) in meta.as_object().into_iter().flatten() {
        params["_meta"][name] = value.clone();
    }
    params
}

/// The text of a tool's result.
#[must_use]
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}
