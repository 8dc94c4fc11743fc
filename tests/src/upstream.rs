//! MCP servers to put behind Portolan, of every era, written with the official SDKs:
//! `tests/fixtures-upstream`. Requests to one pass through a recorder of ours, which keeps them,
//! can cut them, and changes nothing.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::Value;
use tokio::sync::watch;

use crate::{program::needs, rmcp_upstream, stack::repository};

/// Longest time a program may take to listen, on a machine that builds at the same time.
const START: Duration = Duration::from_secs(60);
/// Largest body of a request that is passed on.
const LARGEST: usize = 16 * 1024 * 1024;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixture {
    /// TypeScript SDK 1.x: 2025-03-26 to 2025-11-25, with sessions. It has everything that the
    /// conformance suite requires of a server.
    TypeScript1,
    /// The same, with tools that are there only for clients that can be asked what they ask.
    Gated,
    /// TypeScript SDK 2.x: 2026-07-28 and nothing else. The same content, multi round-trip requests, listen, the tasks extension.
    TypeScript2,
    /// Both of these on one URL. Tools that ask in a session ask clients of 2026-07-28 nothing.
    TypeScriptBoth,
    /// The same; its sessions are those of [`Fixture::Gated`].
    GatedBoth,
    /// TypeScript SDK 1.x on the two endpoints of 2024-11-05.
    HttpSse,
    /// The same with the gates of [`Fixture::Gated`].
    GatedSse,
    /// Python SDK 1.x: 2025-03-26 to 2025-11-25, with sessions. Most of the same content, as that SDK writes it.
    Python1,
    /// Python SDK 2.x: both eras on one URL, the content of [`Fixture::Python1`].
    Python2,
    /// rmcp: both eras on one URL, a smaller content.
    Rmcp,
}

impl Fixture {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::TypeScript1,
        Self::Gated,
        Self::TypeScript2,
        Self::TypeScriptBoth,
        Self::GatedBoth,
        Self::HttpSse,
        Self::GatedSse,
        Self::Python1,
        Self::Python2,
        Self::Rmcp,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::HttpSse | Self::GatedSse => "/sse",
            _ => "/mcp",
        }
    }

    /// `None` for the one that runs in this process.
    fn command(self) -> Result<Option<Command>> {
        let folder = PathBuf::from("tests/fixtures-upstream");
        let script = |name: &str| needs(&folder.join(name).to_string_lossy());
        let typescript = |name: &str| {
            needs("tests/fixtures-upstream/typescript/node_modules/@modelcontextprotocol")?;
            let mut command = Command::new("node");
            command.arg(script(&format!("typescript/{name}"))?);
            anyhow::Ok(command)
        };
        let python = |version: &str| {
            let interpreter = needs(&format!(".portolan/tools/python-{version}/bin/python"))?;
            let mut command = Command::new(interpreter);
            command.arg(script(&format!("python/{version}.py"))?);
            anyhow::Ok(command)
        };
        Ok(Some(match self {
            Self::TypeScript1 => typescript("legacy.mjs")?,
            Self::Gated => {
                let mut command = typescript("legacy.mjs")?;
                command.arg("gated");
                command
            }
            Self::TypeScript2 => typescript("modern.mjs")?,
            Self::TypeScriptBoth => typescript("both.mjs")?,
            Self::GatedBoth => {
                let mut command = typescript("both.mjs")?;
                command.arg("gated");
                command
            }
            Self::HttpSse => {
                let mut command = typescript("legacy.mjs")?;
                command.arg("sse");
                command
            }
            Self::GatedSse => {
                let mut command = typescript("legacy.mjs")?;
                command.args(["sse", "gated"]);
                command
            }
            Self::Python1 => python("v1")?,
            Self::Python2 => python("v2")?,
            Self::Rmcp => return Ok(None),
        }))
    }
}

/// A request that reached the upstream, as it was sent.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its verb.
    pub verb: Method,
    /// Path and query.
    pub path: String,
    /// Every header.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Of the answer; `None` while there is none.
    pub status: Option<StatusCode>,
}

impl Seen {
    /// A header's text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method, if it has one.
    #[must_use]
    pub fn method(&self) -> Option<String> {
        Some(self.json().get("method")?.as_str()?.to_owned())
    }
}

/// A running upstream. Stopped when dropped.
#[derive(Debug)]
pub struct Upstream {
    fixture: Fixture,
    address: SocketAddr,
    recorder: Recorder,
    process: Option<Process>,
}

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    // Its end is the program's.
    _stdin: ChildStdin,
}

#[derive(Debug, Clone)]
struct Recorder {
    http: reqwest::Client,
    behind: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    refusing: Arc<Mutex<Option<StatusCode>>>,
    /// Answered with 503 each.
    refused_method: Arc<Mutex<Option<String>>>,
    /// Counts the cuts.
    cut: Arc<watch::Sender<u64>>,
}

impl Upstream {
    /// Starts it without authentication.
    pub fn start(fixture: Fixture) -> Result<Self> {
        Self::start_with(fixture, None, false)
    }

    /// Starts it for the holder of a bearer token; others get 401 without more. [`Fixture::Rmcp`]
    /// checks no token.
    pub fn start_for_token(fixture: Fixture, token: &str) -> Result<Self> {
        Self::start_with(fixture, Some(token), false)
    }

    /// The same; each text and each blob that it sends begins with the `Authorization` of the
    /// request. Those of TypeScript alone.
    pub fn start_that_echoes(fixture: Fixture, token: &str) -> Result<Self> {
        Self::start_with(fixture, Some(token), true)
    }

    fn start_with(fixture: Fixture, token: Option<&str>, echoes: bool) -> Result<Self> {
        let (process, behind) = match fixture.command()? {
            Some(mut command) => {
                if let Some(token) = token {
                    command.env("FIXTURE_TOKEN", token);
                }
                if echoes {
                    command.env("FIXTURE_ECHO", "1");
                }
                let (process, address) = listen(command)?;
                (Some(process), address)
            }
            None => (None, on_a_thread(rmcp_upstream::router())?),
        };
        let recorder = Recorder {
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()?,
            behind,
            seen: Arc::default(),
            refusing: Arc::default(),
            refused_method: Arc::default(),
            cut: Arc::new(watch::Sender::new(0)),
        };
        let router = Router::new().fallback(pass).with_state(recorder.clone());
        Ok(Self {
            fixture,
            address: on_a_thread(router)?,
            recorder,
            process,
        })
    }

    /// Which it is.
    #[must_use]
    pub fn fixture(&self) -> Fixture {
        self.fixture
    }

    /// The address that Portolan must be allowed to call.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that a tenant enters.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.fixture.path())
    }

    /// Its own address, past the recorder: what goes there is not recorded, cut or refused.
    #[must_use]
    pub fn direct_url(&self) -> String {
        format!("http://{}{}", self.recorder.behind, self.fixture.path())
    }

    /// Everything that reached it so far, oldest first.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.recorder.seen).clone()
    }

    /// The requests that reached it with this JSON-RPC method, oldest first.
    #[must_use]
    pub fn seen_of(&self, method: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|request| request.method().as_deref() == Some(method));
        seen
    }

    /// Begins to record anew.
    pub fn forget(&self) {
        locked(&self.recorder.seen).clear();
    }

    /// Answers every request with this status and passes none on, until a call with `None`.
    pub fn refuse(&self, status: Option<StatusCode>) {
        *locked(&self.recorder.refusing) = status;
    }

    /// Answers requests of this JSON-RPC method with 503, until a call with `None`.
    pub fn refuse_method(&self, method: Option<&str>) {
        *locked(&self.recorder.refused_method) = method.map(str::to_owned);
    }

    /// Breaks every answer that is under way, in the middle. The server behind sees its clients go.
    pub fn cut(&self) {
        self.recorder.cut.send_modify(|count| *count += 1);
    }

    /// Ends the server behind at once; connections to it are refused from then on.
    pub fn kill(&mut self) -> Result<()> {
        let process = self.process.as_mut().context("it runs in this process")?;
        process.child.kill()?;
        process.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the program prints its port.
pub(crate) fn listen(mut command: Command) -> Result<(Process, SocketAddr)> {
    let mut child = command
        .current_dir(repository())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| {
            format!("cannot start {command:?}; `make test-tools` installs what it needs")
        })?;
    let process_stdin = child.stdin.take().context("a pipe")?;
    let stdout = child.stdout.take().context("a pipe")?;
    let process = Process {
        child,
        _stdin: process_stdin,
    };
    let (sender, lines) = mpsc::channel();
    // Reads until the end, so that the program never blocks on a full pipe.
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    loop {
        let Ok(line) = lines.recv_timeout(START) else {
            bail!("{command:?} did not listen");
        };
        if let Some(port) = line.strip_prefix("listening ") {
            return Ok((process, SocketAddr::from(([127, 0, 0, 1], port.parse()?))));
        }
    }
}

/// Serves on a free port, on a thread of its own: tests block theirs.
pub(crate) fn on_a_thread(router: Router) -> Result<SocketAddr> {
    let (sender, started) = mpsc::channel();
    thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            sender.send(listener.local_addr()?)?;
            axum::serve(listener, router).await?;
            Ok(())
        })
    });
    Ok(started.recv_timeout(START)?)
}

async fn pass(State(recorder): State<Recorder>, request: Request) -> Response {
    // Before a test can see the request and cut it.
    let cut = recorder.cut.subscribe();
    let (parts, body) = request.into_parts();
    let path = parts
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let Ok(body) = axum::body::to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let arrived = Seen {
        verb: parts.method.clone(),
        path: path.clone(),
        headers: parts.headers.clone(),
        body: body.clone(),
        status: None,
    };
    let method = arrived.method();
    let is_refused = method.is_some() && method == *locked(&recorder.refused_method);
    let place = {
        let mut seen = locked(&recorder.seen);
        seen.push(arrived);
        seen.len() - 1
    };
    let response = if is_refused {
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    } else {
        forward(&recorder, cut, parts.method, &path, parts.headers, body).await
    };
    if let Some(seen) = locked(&recorder.seen).get_mut(place) {
        seen.status = Some(response.status());
    }
    response
}

async fn forward(
    recorder: &Recorder,
    mut cut: watch::Receiver<u64>,
    verb: Method,
    path: &str,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refusing = *locked(&recorder.refusing);
    if let Some(status) = refusing {
        return status.into_response();
    }
    for name in [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
    ] {
        headers.remove(name);
    }
    let sent = recorder
        .http
        .request(verb, format!("http://{}{path}", recorder.behind))
        .headers(headers)
        .body(body)
        .send();
    let answer = tokio::select! {
        answer = sent => answer,
        _ = cut.changed() => return StatusCode::BAD_GATEWAY.into_response(),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != header::TRANSFER_ENCODING && name != header::CONNECTION {
            response = response.header(name, value);
        }
    }
    let broken = async move {
        let _ = cut.changed().await;
        Err(std::io::Error::other("cut"))
    };
    let whole = answer
        .bytes_stream()
        .map_err(std::io::Error::other)
        .map(Some);
    // The end of the answer ends the response, whether it is ever cut or not.
    let whole = whole.chain(futures_util::stream::once(async { None }));
    let frames = futures_util::stream::select(whole, futures_util::stream::once(broken).map(Some));
    let frames = frames.take_while(|frame| std::future::ready(frame.is_some()));
    response
        .body(Body::from_stream(frames.filter_map(std::future::ready)))
        .unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
}
