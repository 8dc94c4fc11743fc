//! The management API of a workspace as commands reach it: its address, and the token.

use anyhow::{Context, Result};
use clap::Args;
use http::{HeaderMap, Method};
use portolan_net::egress::EgressRequest;
use url::Url;

use crate::{
    connect::Environment,
    installation::{Installation, PlainHttp, bearer_headers},
    login,
    pipeline_token::Job,
};

/// The workspace of a verb.
#[derive(Debug, Args)]
pub struct WorkspaceOptions {
    /// Address of the installation: https://HOST.
    #[arg(long, env = "PORTOLAN_URL", value_name = "URL")]
    pub(crate) url: Url,
    /// Slug of the workspace.
    #[arg(long, env = "PORTOLAN_WORKSPACE", value_name = "SLUG")]
    pub(crate) workspace: String,
    /// Access token of the management API. Better in the environment than on the command line.
    /// Without one, that of a job of GitHub Actions, or of `portolan login`.
    #[arg(
        long,
        env = "PORTOLAN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    token: Option<String>,
    /// Send the token over http:// to public hosts too.
    #[arg(long)]
    allow_http: bool,
}

impl WorkspaceOptions {
    /// Whether the token may go over `http://` to public hosts.
    pub(crate) const fn plain_http(&self) -> PlainHttp {
        PlainHttp::of_option(self.allow_http)
    }

    /// The installation of the workspace.
    pub(crate) fn installation(&self, environment: &Environment) -> Result<Installation> {
        Installation::new(&self.url, self.plain_http(), environment)
    }

    /// The token that was given, that of a job of a pipeline, or that of the person who signed in.
    fn token(&self, installation: &Installation, environment: &Environment) -> Result<String> {
        let given = self.token.as_deref().map(str::trim);
        if let Some(given) = given.filter(|token| !token.is_empty()) {
            return Ok(given.to_owned());
        }
        if let Some(job) = Job::of(environment) {
            return job.token(installation, (&self.url, &self.workspace));
        }
        let stored = login::stored_token(&self.url, environment)?;
        stored.with_context(|| {
            format!(
                "there is no token: set PORTOLAN_TOKEN, or run portolan login {}",
                self.url
            )
        })
    }
}

/// Requests with a token to the routes below a workspace.
pub(crate) struct WorkspaceApi {
    /// Ends with a slash.
    base: Url,
    headers: HeaderMap,
}

impl WorkspaceApi {
    /// Finds the token, or lets the installation give a job one. Not for asynchronous code: it waits
    /// for the answer.
    pub(crate) fn new(
        options: &WorkspaceOptions,
        installation: &Installation,
        environment: &Environment,
    ) -> Result<Self> {
        let token = options.token(installation, environment)?;
        Ok(Self {
            base: installation.at(&["api", "v1", "workspaces", &options.workspace, ""])?,
            headers: bearer_headers(&token)?,
        })
    }

    /// A request with the token, to a path below the workspace.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<EgressRequest, url::ParseError> {
        let mut url = self.base.join(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = EgressRequest::new(method, url);
        request.headers = self.headers.clone();
        Ok(request)
    }
}
