//! The management API of a workspace as commands reach it: its address, the token, the way out.

use anyhow::{Context, Result};
use clap::Args;
use http::{HeaderMap, HeaderValue, Method, header};
use portolan_net::{
    egress::{Egress, EgressPolicy, EgressRequest},
    proxies::Proxies,
};
use url::Url;

use crate::connect::Environment;

const USER_AGENT: &str = concat!("portolan/", env!("CARGO_PKG_VERSION"));

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
    #[arg(
        long,
        env = "PORTOLAN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: String,
    /// Send the token over http:// to public hosts too.
    #[arg(long)]
    pub(crate) allow_http: bool,
}

/// The routes below a workspace.
pub(crate) struct WorkspaceApi {
    /// The client for them.
    pub(crate) egress: Egress,
    /// Ends with a slash.
    base: Url,
    headers: HeaderMap,
}

impl WorkspaceApi {
    /// A client, made within a runtime. Connects to nothing yet.
    pub(crate) fn new(options: &WorkspaceOptions, environment: &Environment) -> Result<Self> {
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
        let egress = Egress::on_own_machine(policy, &proxies, USER_AGENT)?;
        let mut base = options.url.clone();
        base.path_segments_mut()
            .ok()
            .context("--url is an address that begins with https://")?
            .pop_if_empty()
            .extend(["api", "v1", "workspaces", &options.workspace, ""]);
        Ok(Self {
            egress,
            base,
            headers,
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
