//! Facts about a request before authentication: address, browser, request id.

use std::net::IpAddr;

use axum::{extract::FromRequestParts, response::Response};
use http::{HeaderMap, header, request::Parts};
use portolan_net::{client_ip, layers::Arrival};
use portolan_storage::platform::audit::{Origin, OriginToken};

use crate::presented_token::PresentedToken;

/// Facts of the request for throttles, session rows and the audit log.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// Address of the client, without our own proxies.
    pub ip: IpAddr,
    /// Request id, as in the log.
    pub request_id: String,
    /// The browser in words: `Firefox on Linux`. It is shown in lists of sessions, and never
    /// contains a whole user agent.
    pub ua_label: Option<String>,
    /// The program's `User-Agent`, cut: for connection diagnostics alone (AUTH-X2).
    pub agent: Option<String>,
    /// The token of the management API, if the request has one.
    pub token: Option<OriginToken>,
    /// The versions of `If-Match`; `None` without the header, or for `*`. Another text is no
    /// version of anything.
    pub if_match: Option<Vec<String>>,
}

impl RequestContext {
    /// The network block that is stored: /24 of IPv4, /48 of IPv6.
    pub fn ip_block(&self) -> String {
        client_ip::block(self.ip).to_string()
    }

    /// The origin for an audit entry.
    pub fn origin(&self) -> Origin {
        Origin {
            request_id: Some(self.request_id.clone()),
            ip_block: Some(self.ip_block()),
            token: self.token.clone(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let arrival = Arrival::from_request_parts(parts, state).await?;
        let agent = parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        Ok(Self {
            ip: arrival.client_ip(),
            request_id: arrival.request_id().to_owned(),
            ua_label: agent.and_then(label),
            agent: agent.and_then(portolan_storage::platform::recorder::kept),
            token: parts
                .extensions
                .get::<PresentedToken>()
                .map(PresentedToken::origin),
            if_match: if_match(&parts.headers),
        })
    }
}

/// The entity tags of `If-Match` (RFC 9110 §13.1.1), as they are written.
fn if_match(headers: &HeaderMap) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    let mut lines = headers.get_all(header::IF_MATCH).iter().peekable();
    lines.peek()?;
    for line in lines {
        let text = line.to_str().unwrap_or_default();
        tags.extend(text.split(',').map(|tag| tag.trim().to_owned()));
    }
    (!tags.iter().any(|tag| tag == "*")).then_some(tags)
}

/// Browser and system of a user agent, from fixed lists. No text of the request is stored.
fn label(agent: &str) -> Option<String> {
    // The order matters: every Chromium names Safari too, and Edge names Chrome.
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |list: &[(&str, &'static str)]| {
        list.iter()
            .find(|(mark, _)| agent.contains(mark))
            .map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => Some(format!("{browser} on {system}")),
        (Some(browser), None) => Some(browser.to_owned()),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_becomes_two_words() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";
        assert_eq!(label(chrome).as_deref(), Some("Chrome on Linux"));
        assert_eq!(label("<script>"), None);
    }
}
