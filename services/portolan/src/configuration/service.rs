//! The management API of a workspace, as a client.

use anyhow::{Context, Result};
use http::{HeaderMap, Method};
use portolan_net::egress::EgressRequest;
use serde_json::Value;
use url::Url;

use crate::{
    connect::Environment,
    installation::{Installation, PlainHttp, Refusal, bearer_headers},
    login,
    pipeline_token::Job,
};

use super::WorkspaceOptions;

/// A workspace of an installation.
pub(super) struct Service {
    installation: Installation,
    /// Ends with a slash.
    base: Url,
    headers: HeaderMap,
}

impl Service {
    pub(super) fn new(options: &WorkspaceOptions, environment: &Environment) -> Result<Self> {
        let plain = PlainHttp::of_option(options.allow_http);
        let installation = Installation::new(&options.url, plain, environment)?;
        let token = token(options, &installation, environment)?;
        let base = installation.at(&["api", "v1", "workspaces", &options.workspace, ""])?;
        Ok(Self {
            headers: bearer_headers(&token)?,
            installation,
            base,
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
        self.installation.send(request)
    }
}

/// The token that was given, that of a job of a pipeline, or that of the person who signed in.
fn token(
    options: &WorkspaceOptions,
    installation: &Installation,
    environment: &Environment,
) -> Result<String> {
    let given = options.token.as_deref().map(str::trim);
    if let Some(given) = given.filter(|token| !token.is_empty()) {
        return Ok(given.to_owned());
    }
    if let Some(job) = Job::of(environment) {
        return job.token(installation, (&options.url, &options.workspace));
    }
    let stored = login::stored_token(&options.url, environment)?;
    stored.with_context(|| {
        format!(
            "there is no token: set PORTOLAN_TOKEN, or run portolan login {}",
            options.url
        )
    })
}
