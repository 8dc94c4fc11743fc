//! `portolan test-calls`: runs saved calls of a server, and holds the answers against their
//! assertions (PLAY-7; `docs/playground.md`).

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use http::{HeaderMap, HeaderValue, header};
use portolan_model::saved_call::{Answer, Expectations, Finding};
use portolan_net::{
    egress::{Egress, EgressPolicy},
    proxies::Proxies,
    secrets::Secrets,
};
use portolan_upstream::{
    Client, Connection, Endpoint, Legacy, Limits, List, Raw, Request, Speaker, UpstreamError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::{connect::Environment, output::say};

/// Some assertion does not hold.
const FAILED: u8 = 2;

const USER_AGENT: &str = concat!("portolan-test-calls/", env!("CARGO_PKG_VERSION"));

/// Options of `test-calls`.
#[derive(Debug, Args)]
pub struct TestCallsArguments {
    /// The address of the MCP server.
    url: Url,
    /// The file of saved calls, as the playground downloads it.
    #[arg(long, value_name = "FILE")]
    calls: PathBuf,
    /// API key or access token, sent as `Authorization: Bearer`. Better in the environment than on
    /// the command line.
    #[arg(
        long,
        env = "PORTOLAN_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    api_key: Option<String>,
    /// Run only the calls of this name. May stand several times.
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Send the key over http:// to public hosts too.
    #[arg(long)]
    allow_http: bool,
}

/// The file of saved calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsFile {
    version: u32,
    calls: Vec<SavedCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCall {
    name: String,
    method: Method,
    params: Map<String, Value>,
    expect: Expectations,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Method {
    #[serde(rename = "tools/call")]
    ToolsCall,
    #[serde(rename = "prompts/get")]
    PromptsGet,
    #[serde(rename = "resources/read")]
    ResourcesRead,
}

impl Method {
    const fn name(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::PromptsGet => "prompts/get",
            Self::ResourcesRead => "resources/read",
        }
    }
}

/// One call and its findings, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    passed: bool,
    took_ms: u64,
    /// The JSON-RPC error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    findings: Vec<ReportedFinding>,
}

#[derive(Debug, Serialize)]
struct ReportedFinding {
    what: String,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// Runs the command. Exit codes: 0 all assertions hold, 1 the calls could not be made, 2 some
/// assertion does not hold.
pub(crate) fn run(arguments: &TestCallsArguments, environment: &Environment) -> Result<ExitCode> {
    if !matches!(arguments.url.scheme(), "http" | "https") {
        bail!("the address of an MCP server begins with https:// or http://");
    }
    let calls = read(arguments)?;
    let endpoint = Endpoint {
        url: arguments.url.clone(),
        headers: credential(arguments.api_key.as_deref())?,
        secrets: Secrets::default(),
        limits: Limits::default(),
    };
    let policy = EgressPolicy {
        allow_plain_http: arguments.allow_http || is_local(&arguments.url),
        ..EgressPolicy::default()
    };
    let proxies = Proxies::read(|name| environment.get(name).cloned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let within = runtime.enter();
    let egress = Egress::on_own_machine(policy, &proxies, USER_AGENT)?;
    drop(within);
    let reports = runtime.block_on(test(&Client::new(egress, endpoint), calls))?;
    print(&reports, arguments.json)?;
    Ok(if reports.iter().all(|report| report.passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

fn read(arguments: &TestCallsArguments) -> Result<Vec<SavedCall>> {
    let path = arguments.calls.display();
    let text = std::fs::read(&arguments.calls).with_context(|| format!("{path} cannot be read"))?;
    let file: CallsFile = serde_json::from_slice(&text)
        .with_context(|| format!("{path} is no file of saved calls"))?;
    if file.version != 1 {
        bail!(
            "{path} has version {}, which is not known here",
            file.version
        );
    }
    for call in &file.calls {
        if let Some(bad) = call.expect.bad_path() {
            bail!("{path}: call {:?}: {bad} is no path", call.name);
        }
    }
    let mut calls = file.calls;
    if !arguments.only.is_empty() {
        calls.retain(|call| arguments.only.contains(&call.name));
    }
    if calls.is_empty() {
        bail!("{path} has no such calls");
    }
    Ok(calls)
}

fn credential(key: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) {
        let value = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value = value
            .ok()
            .context("the API key has characters that no header carries")?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

async fn test(client: &Client, calls: Vec<SavedCall>) -> Result<Vec<Report>> {
    // In a session no header has to repeat annotated arguments.
    let (session, _) = Legacy::open(client, &Speaker::ourselves()).await?;
    let connection = Connection::Legacy(session);
    let wants_schemas = calls.iter().any(|call| call.expect.schema);
    let tools = if wants_schemas {
        connection.list(List::Tools).await?
    } else {
        Vec::new()
    };
    let mut reports = Vec::with_capacity(calls.len());
    for call in calls {
        reports.push(run_one(&connection, &tools, call).await?);
    }
    connection.end().await;
    Ok(reports)
}

async fn run_one(connection: &Connection, tools: &[Raw], call: SavedCall) -> Result<Report> {
    let params = Raw::of(&call.params).context("the parameters cannot be written")?;
    let begun = Instant::now();
    let answer = connection
        .ask(&Request::new(call.method.name(), params))
        .await;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (result, error) = match answer {
        Ok(result) => {
            let result: Value = serde_json::from_str(result.as_str())?;
            (Some(result), None)
        }
        Err(UpstreamError::Refused(error)) => {
            (None, Some(format!("{}: {}", error.code, error.message)))
        }
        Err(other) => return Err(other).with_context(|| format!("call {:?}", call.name)),
    };
    let fault = if call.expect.schema {
        schema_fault(tools, &call, result.as_ref())
    } else {
        None
    };
    let findings = call.expect.check(&Answer {
        result: result.as_ref(),
        took_ms,
        schema_fault: fault.as_deref(),
    });
    Ok(Report {
        name: call.name,
        passed: findings.iter().all(|finding| finding.holds),
        took_ms,
        error,
        findings: findings.into_iter().map(reported).collect(),
    })
}

fn reported(finding: Finding) -> ReportedFinding {
    ReportedFinding {
        what: finding.what,
        holds: finding.holds,
        found: finding.found,
    }
}

/// The fault of the structured content of a result.
fn schema_fault(tools: &[Raw], call: &SavedCall, result: Option<&Value>) -> Option<String> {
    let name = call.params.get("name").and_then(Value::as_str)?;
    let tool = tools
        .iter()
        .filter_map(|tool| serde_json::from_str::<Value>(tool.as_str()).ok())
        .find(|tool| tool["name"] == name);
    let Some(schema) = tool.as_ref().and_then(|tool| tool.get("outputSchema")) else {
        return Some("the tool has no output schema".to_owned());
    };
    let Some(content) = result.and_then(|result| result.get("structuredContent")) else {
        return Some("no structured content".to_owned());
    };
    match jsonschema::validator_for(schema) {
        Ok(validator) => validator
            .validate(content)
            .err()
            .map(|error| format!("{}: {error}", error.instance_path())),
        Err(_) => Some("the output schema cannot be read".to_owned()),
    }
}

fn print(reports: &[Report], json: bool) -> Result<()> {
    if json {
        say(&serde_json::to_string_pretty(reports)?);
        return Ok(());
    }
    for report in reports {
        let word = if report.passed { "ok" } else { "FAILED" };
        say(&format!("{word:6} {} ({} ms)", report.name, report.took_ms));
        if report.passed {
            continue;
        }
        if let Some(error) = &report.error {
            say(&format!("       error {error}"));
        }
        for finding in report.findings.iter().filter(|finding| !finding.holds) {
            let found = finding.found.as_deref().unwrap_or_default();
            say(&format!("       expected: {}; found {found}", finding.what));
        }
    }
    let failed = reports.iter().filter(|report| !report.passed).count();
    say(&format!("{} calls, {failed} failed", reports.len()));
    Ok(())
}
