//! A third-party provider of accounts (oidc-provider) with which people sign in to Portolan:
//! `tests/oauth-provider/people.mjs`.

use std::{net::SocketAddr, process::Command};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use url::Url;

use crate::{
    browser::{Browser, Page},
    program::needs,
    upstream::{Process, listen},
};

/// Running. Stopped when dropped.
#[derive(Debug)]
pub struct People {
    address: SocketAddr,
    http: reqwest::Client,
    _process: Process,
}

impl People {
    /// Starts it. It has no redirect address yet.
    pub fn start() -> Result<Self> {
        needs("tests/oauth-provider/node_modules/oidc-provider")?;
        let mut command = Command::new("node");
        command
            .arg(needs("tests/oauth-provider/people.mjs")?)
            .stderr(std::process::Stdio::null());
        let (process, address) = listen(command)?;
        Ok(Self {
            address,
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

    /// The setting `login_providers` that names it `works`.
    #[must_use]
    pub fn setting(&self) -> String {
        format!(
            "[[login_providers]]\nname = \"works\"\nlabel = \"Works\"\nkind = \"oidc\"\nissuer = \"{}\"\nclient_id = \"portolan\"\n\
             client_secret = \"a secret of 32 characters or more than that\"\n",
            self.issuer()
        )
    }

    /// Sets its redirect address.
    pub async fn know(&self, stack: &Url) -> Result<()> {
        let back = stack.join("/login/callback/works")?;
        self.set(json!({ "client": [back] })).await
    }

    /// Changes how it behaves; see `people.mjs`.
    pub async fn set(&self, rules: Value) -> Result<()> {
        let url = format!("{}/control", self.issuer());
        let answer = self.http.post(url).json(&rules).send().await?;
        answer.error_for_status()?;
        Ok(())
    }

    /// How often something was done there.
    pub async fn count(&self, what: &str) -> Result<u64> {
        let url = format!("{}/seen", self.issuer());
        let seen: Value = self.http.get(url).send().await?.json().await?;
        seen[what]
            .as_u64()
            .with_context(|| format!("{what}: {seen}"))
    }

    /// From a page of Portolan, by the link to this provider, through its sign-in with this browser of its own, and back: what Portolan shows
    /// then.
    pub async fn sign_in(&self, at: &Browser, page: &str) -> Result<Page> {
        let back = self.go(at, page).await?;
        at.open(back.as_str()).await
    }

    /// The same, up to the address to which it sends the browser back.
    pub async fn go(&self, at: &Browser, page: &str) -> Result<Url> {
        let shown = at.open(page).await?;
        let link = shown
            .links()
            .into_iter()
            .find(|link| link.contains("/works?"))
            .with_context(|| format!("no link in: {}", shown.text()))?;
        let left = at.open(&link).await?;
        let address = left.leaves_to.clone();
        let address = address.with_context(|| format!("{} {}", left.status, left.text()))?;
        let theirs = Browser::new(&self.issuer().parse()?)?;
        let page = theirs.open(address.as_str()).await?;
        let back = page.leaves_to.clone();
        back.with_context(|| format!("{}: {} {}", page.url, page.status, page.text()))
    }
}
