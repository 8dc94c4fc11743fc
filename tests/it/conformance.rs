//! The official conformance suite, pinned. Checks that we cannot pass yet are listed in
//! tests/conformance/expected-failures-*.yaml; the suite itself fails when a listed check passes,
//! so the lists can only shrink.

mod through;

use std::{net::SocketAddr, path::PathBuf, sync::mpsc, thread, time::Duration};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::TryStreamExt;
use portolan_tests::{
    behind::publish,
    native,
    oauth::{OAuthClient, registration},
    person::Person,
    program::{self, OpensBrowser},
    scene::Scene,
    stack::{Stack, repository},
    upstream::{Fixture, Upstream},
};
use serde_json::{Value, json};
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(600);

/// The suite needs Node 22, which npm brings.
fn node() -> Result<PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    program::needs(&format!(
        "tests/conformance/node_modules/node-linux-{machine}/bin/node"
    ))
}

fn suite() -> Result<Command> {
    let mut command = Command::new(node()?);
    command.arg(program::needs(
        "tests/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js",
    )?);
    Ok(command)
}

/// The folder of the suite's findings, check by check, for the analysis of a failure.
fn findings(part: &str, version: &str) -> Result<PathBuf> {
    let folder = repository().join(format!("target/conformance/{part}-{version}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(folder)
}

async fn authorization_server(version: &str) -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    ann.console().create_workspace("harbour").await?;
    let port = portolan_tests::stack::free_port()?.port();
    let mut client = registration("Conformance suite");
    client["redirect_uris"] = json!([format!("http://127.0.0.1:{port}/callback")]);
    let registered: Value = reqwest::Client::builder()
        .build()?
        .post(stack.url().join("/oauth/register")?)
        .json(&client)
        .send()
        .await?
        .json()
        .await?;
    let out = findings("authorization", version)?;
    let mut command = suite()?;
    command
        .args([
            "authorization",
            "--url",
            &stack.url().origin().ascii_serialization(),
            "--client-id",
        ])
        .arg(registered["client_id"].as_str().context("a client id")?)
        .args(["-p", &port.to_string(), "--spec-version", version, "-o"])
        .arg(out);
    let finished = program::run(
        command,
        &ann,
        &OpensBrowser::with_authorize_address()?,
        LIMIT,
    )
    .await?;
    assert!(finished.success, "{}", finished.output);
    assert!(
        finished.output.contains("2 scenarios"),
        "the suite has grown: look at the new scenarios\n{}",
        finished.output
    );
    assert!(!finished.output.contains("WARNING"), "{}", finished.output);
    Ok(())
}

#[tokio::test]
async fn authorization_server_for_2025_03_26() -> Result<()> {
    authorization_server("2025-03-26").await
}

#[tokio::test]
async fn authorization_server_for_2025_06_18() -> Result<()> {
    authorization_server("2025-06-18").await
}

#[tokio::test]
async fn authorization_server_for_2025_11_25() -> Result<()> {
    authorization_server("2025-11-25").await
}

#[tokio::test]
async fn authorization_server_for_2026_07_28() -> Result<()> {
    authorization_server("2026-07-28").await
}

async fn server(version: &str) -> Result<()> {
    let scene = Scene::new().await?;
    native::offer(&scene.owner.console(), &scene.published).await?;
    let proxy = HeaderAddingProxy::start(&scene.published.url, &scene.tokens.access)?;
    let out = findings("server", version)?;
    let mut command = suite()?;
    command
        .args([
            "server",
            "--url",
            &proxy.url(),
            "--suite",
            "all",
            "--spec-version",
            version,
            "--timeout",
            "8000",
            "--expected-failures",
        ])
        .arg(program::needs(&format!(
            "tests/conformance/expected-failures-{version}.yaml"
        ))?)
        .arg("-o")
        .arg(out);
    let finished = program::run(command, &scene.owner, &OpensBrowser::with_open()?, LIMIT).await?;
    assert!(finished.success, "{}", finished.output);
    Ok(())
}

#[tokio::test]
async fn server_for_2025_03_26() -> Result<()> {
    server("2025-03-26").await
}

#[tokio::test]
async fn server_for_2025_06_18() -> Result<()> {
    server("2025-06-18").await
}

#[tokio::test]
async fn server_for_2025_11_25() -> Result<()> {
    server("2025-11-25").await
}

#[tokio::test]
async fn server_for_2026_07_28() -> Result<()> {
    server("2026-07-28").await
}

/// A fixture upstream by itself, against what the suite requires of a server of its era: what Portolan adds in front is not there, everything else is.
async fn fixture(fixture: Fixture, version: &str) -> Result<()> {
    let upstream = Upstream::start(fixture)?;
    let mut command = suite()?;
    command
        .args([
            "server",
            "--url",
            &upstream.url(),
            "--requirements",
            version,
        ])
        .arg("--expected-failures")
        .arg(program::needs(&format!(
            "tests/conformance/fixture-failures-{version}.yaml"
        ))?)
        .arg("-o")
        .arg(findings("fixture", version)?)
        .kill_on_drop(true);
    let finished = tokio::time::timeout(LIMIT, command.output()).await??;
    let output = String::from_utf8_lossy(&finished.stdout);
    assert!(finished.status.success(), "{output}");
    Ok(())
}

#[tokio::test]
async fn fixture_of_2025_11_25() -> Result<()> {
    fixture(Fixture::TypeScript1, "2025-11-25").await
}

#[tokio::test]
async fn fixture_of_2026_07_28() -> Result<()> {
    fixture(Fixture::TypeScript2, "2026-07-28").await
}

/// The scenarios of the tasks extension, which the suite runs for visibility only, through Portolan to an upstream that has it
/// (MCP-TX-14: one of them asks before the task exists).
#[tokio::test]
async fn tasks_of_2026_07_28_through_portolan() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript2)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let published = publish(&console, "harbour", &upstream, &json!({})).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let proxy = HeaderAddingProxy::start(&published.url, &tokens.access)?;
    let folder = findings("tasks", "2026-07-28")?;
    for scenario in [
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    ] {
        let mut command = suite()?;
        command
            .args(["server", "--url", &proxy.url(), "--scenario", scenario])
            .args(["--spec-version", "2026-07-28", "-o"])
            .arg(folder.join(scenario))
            .kill_on_drop(true);
        let finished = tokio::time::timeout(LIMIT, command.output()).await??;
        let output = String::from_utf8_lossy(&finished.stdout);
        assert!(finished.status.success(), "{scenario}: {output}");
        assert!(!output.contains("FAILURE"), "{scenario}: {output}");
        // A scenario that checks nothing passes.
        assert!(!output.contains("0 passed"), "{scenario}: {output}");
    }
    Ok(())
}

/// Our upstream client and its OAuth as the client under test: `crates/upstream/examples/conformance_client.rs`.
async fn client(version: &str) -> Result<()> {
    let under_test = needs_built("examples/conformance_client")?;
    let mut command = suite()?;
    command
        .args(["client", "--requirements", version, "--command"])
        .arg(under_test)
        .arg("--expected-failures")
        .arg(program::needs(&format!(
            "tests/conformance/client-failures-{version}.yaml"
        ))?)
        .arg("-o")
        .arg(findings("client", version)?)
        .kill_on_drop(true);
    let finished = tokio::time::timeout(LIMIT, command.output()).await??;
    let output = String::from_utf8_lossy(&finished.stdout);
    assert!(finished.status.success(), "{output}");
    Ok(())
}

/// A program beside the binary that the tests start.
fn needs_built(name: &str) -> Result<PathBuf> {
    let path = portolan_tests::stack::binary().with_file_name(name);
    anyhow::ensure!(
        path.exists(),
        "{} is missing: `cargo build -p portolan-upstream --examples` makes it",
        path.display()
    );
    Ok(path)
}

#[tokio::test]
async fn upstream_client_for_2025_11_25() -> Result<()> {
    client("2025-11-25").await
}

#[tokio::test]
async fn upstream_client_for_2026_07_28() -> Result<()> {
    client("2026-07-28").await
}

/// The suite sends no token: this stands in front, adds one, and changes nothing else. Host and Origin pass as they came, so that the
/// checks for DNS rebinding reach the product.
struct HeaderAddingProxy {
    address: SocketAddr,
    path: String,
}

#[derive(Clone)]
struct Behind {
    http: reqwest::Client,
    origin: String,
    token: HeaderValue,
}

impl HeaderAddingProxy {
    fn start(endpoint: &str, token: &str) -> Result<Self> {
        let endpoint: url::Url = endpoint.parse()?;
        let behind = Behind {
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()?,
            origin: endpoint.origin().ascii_serialization(),
            token: HeaderValue::from_str(&format!("Bearer {token}"))?,
        };
        let (sender, started) = mpsc::channel();
        thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                sender.send(listener.local_addr()?)?;
                axum::serve(listener, Router::new().fallback(forward).with_state(behind)).await?;
                Ok(())
            })
        });
        Ok(Self {
            address: started.recv_timeout(Duration::from_secs(10))?,
            path: endpoint.path().to_owned(),
        })
    }

    fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }
}

async fn forward(State(behind): State<Behind>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let target = format!(
        "{}{}",
        behind.origin,
        parts.uri.path_and_query().map_or("/", |path| path.as_str())
    );
    let mut headers = parts.headers;
    let own = headers.get(header::HOST).cloned();
    // A request to this proxy by its own name becomes one to the product by its own name; any other name is kept.
    if own.as_ref().is_some_and(|host| {
        host.to_str()
            .is_ok_and(|host| host.starts_with("127.0.0.1") || host.starts_with("localhost"))
    }) {
        let named = own
            .as_ref()
            .and_then(|host| host.to_str().ok())
            .map(|host| format!("http://{host}"));
        if headers
            .get(header::ORIGIN)
            .is_some_and(|origin| origin.to_str().ok() == named.as_deref())
            && let Ok(origin) = HeaderValue::from_str(&behind.origin)
        {
            headers.insert(header::ORIGIN, origin);
        }
        headers.remove(header::HOST);
    }
    headers.remove(header::TRANSFER_ENCODING);
    headers.insert(header::AUTHORIZATION, behind.token.clone());
    let Ok(body) = axum::body::to_bytes(body, 16 * 1024 * 1024).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    headers.remove(header::CONTENT_LENGTH);
    match behind
        .http
        .request(parts.method, target)
        .headers(headers)
        .body(body)
        .send()
        .await
    {
        Ok(answer) => {
            let mut response = Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                if name != header::TRANSFER_ENCODING && name != header::CONNECTION {
                    response = response.header(name, value);
                }
            }
            let stream = answer.bytes_stream().map_err(std::io::Error::other);
            response
                .body(Body::from_stream(stream))
                .unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
