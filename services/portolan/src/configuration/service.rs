//! The management API of an installation, as a client.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context, Result};
use http::{HeaderMap, HeaderValue, Method, header};
use portolan_net::{
    egress::{Egress, EgressPolicy, EgressRequest},
    proxies::Proxies,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use url::Url;

use crate::connect::Environment;

use super::WorkspaceOptions;

const USER_AGENT: &str = concat!("portolan/", env!("CARGO_PKG_VERSION"));

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
    egress: Egress,
    /// Ends with a slash.
    base: Url,
    headers: HeaderMap,
}

impl Service {
    pub(super) fn new(options: &WorkspaceOptions, environment: &Environment) -> Result<Self> {
        let value = HeaderValue::try_from(format!("Bearer {}", options.token.trim()));
        let mut value = value
            .ok()
            .context("the token has characters that no header carries")?;
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let host = options.url.host_str();
        let is_local = matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"));
        let policy = EgressPolicy {
            allow_plain_http: options.allow_http || is_local,
            ..EgressPolicy::default()
        };
        let proxies = Proxies::read(|name| environment.get(name).cloned());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let within = runtime.enter();
        let egress = Egress::on_own_machine(policy, &proxies, USER_AGENT)?;
        drop(within);
        let mut base = options.url.clone();
        base.path_segments_mut()
            .ok()
            .context("--url is an address that begins with https://")?
            .pop_if_empty()
            .extend(["api", "v1", "workspaces", &options.workspace, ""]);
        Ok(Self {
            runtime,
            egress,
            base,
            headers,
        })
    }

    /// A POST of JSON, and the JSON of the answer.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let url = self.base.join(path).map_err(Refusal::other)?;
        let mut request = EgressRequest::new(Method::POST, url);
        request.body = body.to_string().into();
        let text = self.send(request)?;
        serde_json::from_str(&text).map_err(Refusal::other)
    }

    /// A GET, and the text of the answer.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Refusal> {
        let mut url = self.base.join(path).map_err(Refusal::other)?;
        url.query_pairs_mut().extend_pairs(query);
        self.send(EgressRequest::get(url))
    }

    fn send(&self, mut request: EgressRequest) -> Result<String, Refusal> {
        request.headers = self.headers.clone();
        request.timeout = TIMEOUT;
        request.max_response_bytes = MOST_ANSWER_BYTES;
        let answer = self.runtime.block_on(self.egress.send(request));
        let answer = answer.map_err(Refusal::other)?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status.is_success() {
            return Ok(text);
        }
        let problem = serde_json::from_str(&text).unwrap_or_default();
        Err(Refusal::of(answer.status, &problem))
    }
}
