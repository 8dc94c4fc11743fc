//! The management API of an installation, as a client.

use std::{fmt, path::Path, time::Duration};

use anyhow::Result;
use http::Method;
use portolan_net::egress::EgressRequest;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{
    connect::Environment,
    workspace_api::{WorkspaceApi, WorkspaceOptions},
};

/// Plans fetch documents and look at MCP servers.
const TIMEOUT: Duration = Duration::from_secs(120);

const MOST_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A refusal of the service, with the place in the file if it has one.
#[derive(Debug)]
pub(super) struct Refusal {
    place: Option<(u64, u64)>,
    message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    fn other(error: impl fmt::Display) -> Self {
        Self {
            place: None,
            message: error.to_string(),
        }
    }

    fn of(status: http::StatusCode, answer: &Value) -> Self {
        let error = &answer["error"];
        let details = &error["details"];
        let place = details["line"].as_u64().zip(details["column"].as_u64());
        let message = error["message"].as_str();
        let mut message =
            message.map_or_else(|| format!("the service answered {status}"), str::to_owned);
        for changed in details["changed"].as_array().into_iter().flatten() {
            let text = |name: &str| changed[name].as_str().unwrap_or_default();
            let line = [text("action"), text("what"), text("by")];
            message.push_str(&format!("\n  {} of {} by {}", line[0], line[1], line[2]));
        }
        Self { place, message }
    }

    /// The refusal with the file before its place.
    pub(super) fn in_file(self, file: &Path) -> anyhow::Error {
        match self.place {
            Some((line, column)) => {
                anyhow::anyhow!("{}:{line}:{column} {}", file.display(), self.message)
            }
            None => anyhow::anyhow!("{}", self.message),
        }
    }
}

/// A workspace of an installation.
pub(super) struct Service {
    runtime: Runtime,
    api: WorkspaceApi,
}

impl Service {
    pub(super) fn new(options: &WorkspaceOptions, environment: &Environment) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let within = runtime.enter();
        let api = WorkspaceApi::new(options, environment)?;
        drop(within);
        Ok(Self { runtime, api })
    }

    /// A POST of JSON, and the JSON of the answer.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let request = self.api.request(Method::POST, path, &[]);
        let mut request = request.map_err(Refusal::other)?;
        request.body = body.to_string().into();
        let text = self.send(request)?;
        serde_json::from_str(&text).map_err(Refusal::other)
    }

    /// A GET, and the text of the answer.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Refusal> {
        let request = self.api.request(Method::GET, path, query);
        self.send(request.map_err(Refusal::other)?)
    }

    fn send(&self, mut request: EgressRequest) -> Result<String, Refusal> {
        request.timeout = TIMEOUT;
        request.max_response_bytes = MOST_ANSWER_BYTES;
        let answer = self.runtime.block_on(self.api.egress.send(request));
        let answer = answer.map_err(Refusal::other)?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status.is_success() {
            return Ok(text);
        }
        let problem = serde_json::from_str(&text).unwrap_or_default();
        Err(Refusal::of(answer.status, &problem))
    }
}
