//! Posts events to a receiver as deliveries are posted: the same body and headers, signed with a
//! secret of this listening (HOOK-30).

use std::time::Duration;

use anyhow::{Context, Result, bail};
use portolan_keys::WebhookSecret;
use portolan_model::{Timestamp, clock::Clock};
use portolan_net::{
    egress::{Egress, EgressPolicy},
    proxies::Proxies,
};
use portolan_webhooks::{message::WebhookMessage, send::WebhookSender};
use url::{Host, Url};

use crate::connect::Environment;

use super::stream::Received;

/// Longest exchange with the receiver.
const TIMEOUT: Duration = Duration::from_secs(10);

/// As of deliveries, so that receivers see no difference.
const USER_AGENT: &str = concat!("Portolan/", env!("CARGO_PKG_VERSION"));

/// Machines that may get events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receivers {
    /// This one.
    OnThisMachine,
    /// Others too.
    Everywhere,
}

/// Reads the address of the receiver. No error repeats a password.
pub(super) fn checked(text: &str, receivers: Receivers) -> Result<Url> {
    let url = Url::parse(text)
        .ok()
        .filter(Url::has_host)
        .context("--forward takes an address such as http://localhost:3000/hook")?;
    if !matches!(url.scheme(), "http" | "https") {
        bail!("--forward takes an address that begins with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        bail!("--forward takes an address without user name and password");
    }
    if !is_here(&url) && receivers == Receivers::OnThisMachine {
        let host = url.host_str().unwrap_or_default();
        bail!(
            "--forward: {host} is another machine, and events have names and ids of the workspace. \
             Say --allow-remote if they are meant for it"
        );
    }
    Ok(url)
}

/// Returns true for the loopback addresses and names of this machine (RFC 6761 §6.3).
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The receiver.
pub(super) struct Forwarding {
    sender: WebhookSender,
    /// Where it is.
    pub(super) url: Url,
    secret: WebhookSecret,
    /// How often a failed forward is sent again.
    pub(super) retries: u32,
}

/// One exchange with the receiver.
pub(super) struct Forwarded {
    /// When it began.
    pub(super) at: Timestamp,
    /// How long it took.
    pub(super) millis: i32,
    /// HTTP status, or why there is none.
    pub(super) answer: Result<u16, String>,
}

impl Forwarded {
    /// True for an answer of success.
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.answer, Ok(200..=299))
    }
}

impl Forwarding {
    /// With a new secret, made within a runtime.
    pub(super) fn new(url: Url, retries: u32, environment: &Environment) -> Result<Self> {
        let policy = EgressPolicy {
            allow_plain_http: true,
            ..EgressPolicy::default()
        };
        // A proxy has another loopback.
        let proxies = if is_here(&url) {
            Proxies::default()
        } else {
            Proxies::read(|name| environment.get(name).cloned())
        };
        let egress = Egress::on_own_machine(policy, &proxies, USER_AGENT)?;
        egress
            .check(&url)
            .map_err(|error| anyhow::anyhow!("--forward: {error}"))?;
        Ok(Self {
            sender: WebhookSender {
                egress,
                clock: Clock::system(),
                timeout: TIMEOUT,
            },
            url,
            secret: WebhookSecret::generate()?,
            retries,
        })
    }

    /// The secret by which the receiver verifies: `whsec_…`.
    pub(super) fn secret(&self) -> String {
        self.secret.text().expose().clone()
    }

    /// Posts an event once. Redirects are answers, and are not followed.
    pub(super) async fn send(&self, event: &Received) -> Forwarded {
        let message = WebhookMessage {
            id: event.id.clone(),
            body: event.message.get().as_bytes().to_vec(),
        };
        let signing = std::slice::from_ref(&self.secret);
        let headers = message.headers(&[], signing, self.sender.clock.now());
        let exchange = self
            .sender
            .post(self.url.as_str(), headers, message.body)
            .await;
        let result = exchange.result;
        let fault = || {
            result
                .fault
                .unwrap_or_else(|| "there was no answer".to_owned())
        };
        Forwarded {
            at: result.at,
            millis: result.millis,
            answer: result.status.ok_or_else(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: HOOK-30
    #[test]
    fn forward_goes_to_this_machine_unless_others_are_allowed() {
        for here in [
            "http://localhost:3000/hook",
            "https://localhost/",
            "http://app.localhost:8080",
            "http://127.0.0.1:1/",
            "http://127.9.9.9/",
            "http://[::1]:3000/",
            "http://0x7f.1/",
        ] {
            assert!(checked(here, Receivers::OnThisMachine).is_ok(), "{here}");
        }
        for elsewhere in [
            "http://192.168.1.2/",
            "https://hooks.example/x",
            "http://localhost.example/",
            "http://0.0.0.0/",
            "http://[fe80::1]/",
        ] {
            let refused = checked(elsewhere, Receivers::OnThisMachine).unwrap_err();
            assert!(
                refused.to_string().contains("--allow-remote"),
                "{elsewhere}"
            );
            assert!(checked(elsewhere, Receivers::Everywhere).is_ok());
        }
        for wrong in [
            "",
            "localhost:3000/hook",
            "3000",
            "/hook",
            "ftp://localhost/",
            "http://ann:geheim@localhost/",
        ] {
            let error = checked(wrong, Receivers::Everywhere).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("--forward takes an address"), "{error}");
            assert!(!error.contains("geheim"));
        }
    }
}
