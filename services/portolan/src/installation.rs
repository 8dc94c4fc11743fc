//! An installation as a client sees it: its API over HTTP, with readable refusals.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context, Result};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_net::{
    egress::{Egress, EgressPolicy, EgressRequest},
    proxies::Proxies,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use url::Url;

use crate::connect::Environment;

const USER_AGENT: &str = concat!("portolan/", env!("CARGO_PKG_VERSION"));

/// Plans fetch documents and look at MCP servers.
const TIMEOUT: Duration = Duration::from_secs(120);

const MOST_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A refusal of the service, with the place in the file if it has one.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// `None` if no answer came.
    pub(crate) status: Option<StatusCode>,
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
    pub(crate) fn other(error: impl fmt::Display) -> Self {
        Self {
            status: None,
            place: None,
            message: error.to_string(),
        }
    }

    fn of(status: StatusCode, answer: &Value) -> Self {
        let error = &answer["error"];
        let details = &error["details"];
        let place = details["line"].as_u64().zip(details["column"].as_u64());
        // The management API has an object with a message, OAuth a code with a description.
        let message = error["message"].as_str();
        let message = message.or_else(|| answer["error_description"].as_str());
        let message = message.or_else(|| error.as_str());
        let mut message =
            message.map_or_else(|| format!("the service answered {status}"), str::to_owned);
        for changed in details["changed"].as_array().into_iter().flatten() {
            let text = |name: &str| changed[name].as_str().unwrap_or_default();
            let line = [text("action"), text("what"), text("by")];
            message.push_str(&format!("\n  {} of {} by {}", line[0], line[1], line[2]));
        }
        Self {
            status: Some(status),
            place,
            message,
        }
    }

    /// The refusal with the file before its place.
    pub(crate) fn in_file(self, file: &Path) -> anyhow::Error {
        match self.place {
            Some((line, column)) => {
                anyhow::anyhow!("{}:{line}:{column} {}", file.display(), self.message)
            }
            None => anyhow::anyhow!("{}", self.message),
        }
    }
}

/// Whether secrets may go over `http://` to public hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// Only to this machine.
    Refused,
    /// To all hosts.
    Allowed,
}

impl PlainHttp {
    pub(crate) const fn of_option(allow_http: bool) -> Self {
        if allow_http {
            Self::Allowed
        } else {
            Self::Refused
        }
    }
}

/// An installation.
pub(crate) struct Installation {
    runtime: Runtime,
    egress: Egress,
    url: Url,
}

impl Installation {
    pub(crate) fn new(url: &Url, plain: PlainHttp, environment: &Environment) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let within = runtime.enter();
        let egress = egress(url, plain, environment)?;
        drop(within);
        Ok(Self {
            runtime,
            egress,
            url: url.clone(),
        })
    }

    /// An address of the installation.
    pub(crate) fn at(&self, segments: &[&str]) -> Result<Url> {
        let mut url = self.url.clone();
        url.set_query(None);
        url.path_segments_mut()
            .ok()
            .context("the address of an installation begins with https://")?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// Runs a future of this thread to its end.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Sends a request; the text of the answer.
    pub(crate) fn send(&self, mut request: EgressRequest) -> Result<String, Refusal> {
        request.timeout = TIMEOUT;
        request.max_response_bytes = MOST_ANSWER_BYTES;
        let answer = self.wait(self.egress.send(request));
        let answer = answer.map_err(Refusal::other)?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status.is_success() {
            return Ok(text);
        }
        let problem = serde_json::from_str(&text).unwrap_or_default();
        Err(Refusal::of(answer.status, &problem))
    }
}

/// A client for an installation, made within the runtime that it works in.
pub(crate) fn egress(url: &Url, plain: PlainHttp, environment: &Environment) -> Result<Egress> {
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let policy = EgressPolicy {
        allow_plain_http: plain == PlainHttp::Allowed || is_local,
        ..EgressPolicy::default()
    };
    let proxies = Proxies::read(|name| environment.get(name).cloned());
    Ok(Egress::on_own_machine(policy, &proxies, USER_AGENT)?)
}

/// Headers of JSON with a token.
pub(crate) fn bearer_headers(token: &str) -> Result<HeaderMap> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let mut value = value
        .ok()
        .context("the token has characters that no header carries")?;
    value.set_sensitive(true);
    let mut headers = json_headers();
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

/// Headers of JSON.
pub(crate) fn json_headers() -> HeaderMap {
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(header::CONTENT_TYPE, json)])
}
