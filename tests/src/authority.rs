//! A third-party authorization server (oidc-provider) and the guard before an upstream that
//! requires its tokens: `tests/oauth-provider`.

use std::{net::SocketAddr, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;
use url::Url;

use crate::{
    browser::Browser,
    program::needs,
    upstream::{Process, Upstream, listen},
};

/// Running. Stopped when dropped.
#[derive(Debug)]
pub struct Authority {
    address: SocketAddr,
    path: String,
    http: reqwest::Client,
    _process: Process,
}

impl Authority {
    /// Starts both before an upstream that is open by itself.
    pub fn before(upstream: &Upstream) -> Result<Self> {
        let url = upstream.url();
        let path = url.parse::<Url>()?.path().to_owned();
        Self::run("serve.mjs", &[&url], path)
    }

    /// Runs a program of `tests/oauth-provider`.
    pub(crate) fn run(script: &str, arguments: &[&str], path: String) -> Result<Self> {
        needs("tests/oauth-provider/node_modules/oidc-provider")?;
        let mut command = Command::new("node");
        command
            .arg(needs(&format!("tests/oauth-provider/{script}"))?)
            .args(arguments)
            .stderr(std::process::Stdio::null());
        let (process, address) = listen(command)?;
        Ok(Self {
            address,
            path,
            http: reqwest::Client::builder().build()?,
            _process: process,
        })
    }

    /// The address that Portolan must be allowed to call.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL that a tenant enters.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.issuer(), self.path)
    }

    /// Changes how it behaves; see `serve.mjs`.
    pub async fn set(&self, rules: Value) -> Result<()> {
        let url = format!("{}/control", self.issuer());
        let answer = self.http.post(url).json(&rules).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// All that was done there.
    pub async fn seen(&self) -> Result<Value> {
        let url = format!("{}/seen", self.issuer());
        Ok(self.http.get(url).send().await?.json().await?)
    }

    /// How often something was done there.
    pub async fn count(&self, what: &str) -> Result<u64> {
        let seen = self.seen().await?;
        seen[what]
            .as_u64()
            .with_context(|| format!("{what}: {seen}"))
    }

    /// A person goes there, signs in and allows what is asked. Answers where the browser is sent then.
    pub async fn consent(&self, address: &str) -> Result<Url> {
        let browser = Browser::new(&self.issuer().parse()?)?;
        let page = browser.open(address).await?;
        let leaves_to = page.leaves_to.clone();
        leaves_to.with_context(|| format!("{}: {} {}", page.url, page.status, page.text()))
    }
}
