//! The management API from outside: a client that a generator of others made of the document, a
//! fuzzer of others with the tokens of each role, and the endpoints that a token must not open
//! (API-5, API-7, API-13 to API-15).

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{console::text, mcp::McpClient, program, scale::sized, scene::Scene};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

const TOOLS: &str = ".portolan/tools/python-management/bin";

/// Longest run of one program.
const LIMIT: Duration = Duration::from_secs(120);

/// Seeds of the fuzzer for one role: another for each role in `make test`, all in `make full`.
///
/// Each run has a token of its own, so that the token's budget (API-10) admits all its requests.
fn seeds(role: usize) -> Vec<String> {
    let first = 48 + role;
    (first..first + sized(1, 3))
        .map(|seed| seed.to_string())
        .collect()
}

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

const SCOPES: [&str; 10] = [
    "workspace:read",
    "workspace:write",
    "registry:read",
    "registry:write",
    "credentials:write",
    "access:read",
    "access:write",
    "calls:read",
    "tools:call",
    "audit:read",
];

async fn token(scene: &Scene, role: &str) -> Result<String> {
    let console = scene.owner.console();
    let body = json!({"name": role, "role": role, "scopes": SCOPES, "days": 1});
    let made = console
        .post("/workspaces/harbour/access-tokens", body)
        .await?;
    text(&made, "secret")
}

async fn personal(scene: &Scene) -> Result<String> {
    let console = scene.owner.console();
    let body = json!({"name": "Own", "scopes": SCOPES, "days": 1});
    let made = console.post("/me/access-tokens", body).await?;
    text(&made, "secret")
}

async fn run(program: &Path, arguments: &[&str], folder: &Path) -> Result<(bool, String)> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let done = timeout(LIMIT, command.output())
        .await
        .with_context(|| format!("{} took too long", program.display()))??;
    let said = [done.stdout, done.stderr].concat();
    Ok((
        done.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

/// A client that a generator of others makes of the document.
struct GeneratedClient {
    python: PathBuf,
    url: String,
    folder: TempDir,
}

impl GeneratedClient {
    async fn of(scene: &Scene) -> Result<Self> {
        let generator = program::needs(&format!("{TOOLS}/openapi-python-client"))?;
        let url = scene.stack.url().as_str().trim_end_matches('/').to_owned();
        let folder = tempfile::tempdir()?;
        let to = folder.path().join("portolan_api");
        let document = format!("{url}/api/v1/openapi.json");
        let to = to.to_string_lossy();
        let arguments = [
            "generate",
            "--url",
            document.as_str(),
            "--meta",
            "none",
            "--output-path",
            &*to,
        ];
        let (done, said) = run(&generator, &arguments, folder.path()).await?;
        ensure!(done, "{said}");
        Ok(Self {
            python: program::needs(&format!("{TOOLS}/python"))?,
            url,
            folder,
        })
    }

    /// Runs a program of `tests/clients/python` with the client. Whether it ended well, and its
    /// output.
    async fn run(&self, script: &str, token: &str, workspace: &str) -> Result<(bool, String)> {
        let script = program::needs(&format!("tests/clients/python/{script}"))?;
        let at = self.folder.path();
        let (script, folder) = (script.to_string_lossy(), at.to_string_lossy());
        let arguments = [&*script, &*folder, self.url.as_str(), token, workspace];
        let (succeeded, output) = run(&self.python, &arguments, at).await?;
        Ok((succeeded && output.trim_end().ends_with("done"), output))
    }
}

/// A workspace, and a token for it with these scopes.
async fn workspace_token(scene: &Scene, slug: &str, scopes: &[&str]) -> Result<String> {
    let console = scene.owner.console();
    console.create_workspace(slug).await?;
    let body = json!({"name": "CI", "role": "developer", "scopes": scopes, "days": 1});
    let made = console
        .post(&format!("/workspaces/{slug}/access-tokens"), body)
        .await?;
    text(&made, "secret")
}

/// Rules: API-13, API-14, API-15.
#[tokio::test]
async fn a_generated_client_manages_a_server() -> Result<()> {
    let scene = Scene::new().await?;
    let client = GeneratedClient::of(&scene).await?;
    let own = workspace_token(&scene, "managed", &["registry:write"]).await?;
    let (done, output) = client.run("management_api.py", &own, "managed").await?;
    ensure!(done, "{output}");

    let other = token(&scene, "developer").await?;
    let (done, output) = client.run("management_api.py", &other, "managed").await?;
    ensure!(
        !done && output.contains("404"),
        "another workspace's token: {output}"
    );
    Ok(())
}

/// Rules: CONF-5, CONF-7, CONF-8, CONF-9.
#[tokio::test]
async fn a_generated_client_plans_and_applies_a_file() -> Result<()> {
    let scene = Scene::new().await?;
    let client = GeneratedClient::of(&scene).await?;
    let scopes = ["registry:write", "credentials:write"];
    let own = workspace_token(&scene, "written", &scopes).await?;
    let (done, output) = client.run("configuration.py", &own, "written").await?;
    ensure!(done, "{output}");
    Ok(())
}

/// The document, with the workspace of the scene in every path, without the route that would end
/// the fuzzer's own token.
fn bound_document(mut document: Value) -> Result<Value> {
    let paths = document["paths"].as_object_mut().context("paths")?;
    for item in paths.values_mut() {
        for operation in item.as_object_mut().context("item")?.values_mut() {
            let Some(parameters) = operation
                .get_mut("parameters")
                .and_then(Value::as_array_mut)
            else {
                continue;
            };
            for parameter in parameters {
                if parameter["name"] == "ws" {
                    parameter["schema"] = json!({"type": "string", "enum": ["harbour"]});
                }
            }
        }
    }
    let token = paths.get_mut("/api/v1/token").context("token")?;
    token.as_object_mut().context("token")?.remove("delete");
    Ok(document)
}

/// Rule: API-15.
#[tokio::test]
async fn a_fuzzer_finds_no_fault_with_any_role() -> Result<()> {
    let schemathesis = program::needs(&format!("{TOOLS}/schemathesis"))?;
    let scene = Scene::new().await?;
    let url = scene.stack.url().as_str().trim_end_matches('/').to_owned();
    let document = reqwest::get(format!("{url}/api/v1/openapi.json"))
        .await?
        .json()
        .await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, bound_document(document)?.to_string())?;
    let file = file.to_string_lossy();
    let roles = ["viewer", "member", "developer", "admin", "owner"];
    for (number, role) in roles.into_iter().enumerate() {
        for seed in seeds(number) {
            let token = match role {
                "owner" => personal(&scene).await?,
                role => token(&scene, role).await?,
            };
            let header = format!("Authorization: Bearer {token}");
            let arguments = [
                "run",
                &*file,
                "--url",
                url.as_str(),
                "--header",
                header.as_str(),
                "--checks",
                CHECKS,
                "--phases",
                "fuzzing",
                "--max-examples",
                "2",
                "--seed",
                seed.as_str(),
                "--no-color",
            ];
            let (done, said) = run(&schemathesis, &arguments, folder.path()).await?;
            ensure!(done, "as {role} with seed {seed}: {said}");
        }
    }
    let log = scene.stack.log();
    ensure!(!log.contains("panicked"), "{log}");
    Ok(())
}

/// Rule: API-7.
#[tokio::test]
async fn a_token_opens_no_mcp_endpoint() -> Result<()> {
    let scene = Scene::new().await?;
    let token = token(&scene, "admin").await?;
    let mcp = McpClient::new(&scene.published.url)?.with_token(&token)?;
    let refused = mcp.modern("tools/list", json!({})).await;
    let is_refused = match refused {
        Ok(answer) => answer.status == reqwest::StatusCode::UNAUTHORIZED,
        Err(error) => error.to_string().contains("401"),
    };
    ensure!(is_refused, "an access token opened an MCP endpoint");
    Ok(())
}
