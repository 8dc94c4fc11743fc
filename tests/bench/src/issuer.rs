//! Requests of programs and browsers to the authorization server, as bytes.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use url::{Position, Url, form_urlencoded::Serializer};

/// The authorization server at its address.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// As browsers name it.
    pub(crate) origin: String,
    host: String,
}

impl Issuer {
    /// At the address that its own name leads to.
    pub(crate) fn new(url: &Url) -> Result<Self> {
        Ok(Self {
            address: url
                .socket_addrs(|| None)?
                .first()
                .copied()
                .context("an address")?,
            origin: url.origin().ascii_serialization(),
            host: url[Position::BeforeHost..Position::AfterPort].to_owned(),
        })
    }

    /// A form. Each of `headers` ends with its line break.
    pub(crate) fn form<K: AsRef<str>, V: AsRef<str>>(
        &self,
        path: &str,
        headers: &str,
        fields: &[(K, V)],
    ) -> Vec<u8> {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\n{headers}content-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )
        .into_bytes()
    }

    /// A refresh by a public client (RFC 6749 §6).
    pub(crate) fn refresh(&self, client_id: &str, token: &str) -> Vec<u8> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", client_id),
            ("refresh_token", token),
        ];
        self.form("/oauth/token", "", &fields)
    }
}
