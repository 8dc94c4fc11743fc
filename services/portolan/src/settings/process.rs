//! Settings of the process as a whole.

use std::{error::Error, time::Duration};

use portolan_config::{Form, Value};
use url::{Host, Url};

use crate::lifecycle::DrainTimes;

portolan_config::config! {
    /// Service
    pub struct ProcessConfig {
        /// Origin under which people and clients reach the service, such as
        /// `https://mcp.example.com`. It is the OAuth issuer, byte for byte. Plain http only for
        /// loopback addresses.
        public_url: PublicUrl;
        /// Seconds after SIGTERM until calls that still run are ended. The process is gone at most
        /// 5 s later.
        drain_secs: u64 = 25, in 0..=300;
        /// Seconds after SIGTERM during which new connections are still taken, because a balancer
        /// needs a while to see that the node is not ready: twice its check interval and 1 s more,
        /// never longer than drain_secs.
        drain_accept_secs: u64 = 5, in 0..=60;
    }
}

impl ProcessConfig {
    /// The steps of the drain. New connections are never taken longer than calls may run.
    pub(crate) fn drain(&self) -> DrainTimes {
        let seconds = Duration::from_secs;
        DrainTimes {
            accept: seconds(self.drain_accept_secs.min(self.drain_secs)),
            calls: seconds(self.drain_secs),
        }
    }
}

/// The public origin: https, or plain http on this machine.
#[derive(Debug, Clone)]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// The address.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// The origin as text, no slash at the end: issuer and prefix of every absolute URL.
    pub fn origin(&self) -> String {
        self.0.as_str().trim_end_matches('/').to_owned()
    }

    /// The host.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The `Host` header of requests to this origin.
    pub fn authority(&self) -> String {
        match self.0.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }
}

impl Value for PublicUrl {
    const FORM: Form = Form::Text("an origin such as https://mcp.example.com, without a path");
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let url: Url = text.parse().map_err(|_| "is not an address")?;
        if url.path() != "/"
            || url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
        {
            return Err("is more than an origin".into());
        }
        let is_loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if !(url.scheme() == "https" || url.scheme() == "http" && is_loopback) {
            return Err(
                "is not https; plain http is only for 127.0.0.1, [::1] and localhost".into(),
            );
        }
        Ok(Self(url))
    }
    fn text(&self) -> String {
        self.origin()
    }
}
