//! Requests of a client with a token to a published server, as bytes.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use portolan_tests::mcp::{LEGACY, MODERN, modern_message};
use serde_json::{Value, json};
use url::{Position, Url};

use crate::load::Connection;

/// Connections that open sessions.
const OPENERS: usize = 16;

/// A published server at one address, and a token for it.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    /// Where requests go: past the balancer, if there is one.
    pub(crate) address: SocketAddr,
    host: String,
    path: String,
    token: String,
}

impl Access {
    /// At the address that `at` names, under the public name.
    pub(crate) fn new(public: &str, at: &str, token: &str) -> Result<Self> {
        let (public, at): (Url, Url) = (public.parse()?, at.parse()?);
        Ok(Self {
            address: at
                .socket_addrs(|| None)?
                .first()
                .copied()
                .context("an address")?,
            host: public[Position::BeforeHost..Position::AfterPort].to_owned(),
            path: public.path().to_owned(),
            token: token.to_owned(),
        })
    }

    /// The same somewhere else.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    fn post(&self, headers: &str, message: &Value) -> Vec<u8> {
        let Self {
            host, path, token, ..
        } = self;
        let body = message.to_string();
        format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             authorization: Bearer {token}\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// A message in a session.
    pub(crate) fn message(&self, session: &str, message: &Value) -> Vec<u8> {
        let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: {LEGACY}\r\n");
        self.post(&headers, message)
    }

    /// A `tools/call` in a session.
    pub(crate) fn call(&self, session: &str) -> Vec<u8> {
        self.message(
            session,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": port_call() }),
        )
    }

    /// A `tools/list` in a session.
    pub(crate) fn list(&self, session: &str) -> Vec<u8> {
        self.message(
            session,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }),
        )
    }

    /// A `tools/call` of the stateless era.
    pub(crate) fn stateless_call(&self) -> Vec<u8> {
        self.stateless("getPort", port_call())
    }

    /// One of this tool.
    pub(crate) fn stateless(&self, tool: &str, params: Value) -> Vec<u8> {
        let headers = format!(
            "mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        );
        self.post(&headers, &modern_message("tools/call", params))
    }

    /// The stream of the stateless era, with notifications of changed tools.
    pub(crate) fn listen(&self) -> Vec<u8> {
        let method = "subscriptions/listen";
        let headers = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n");
        let params = json!({ "notifications": { "toolsListChanged": true } });
        self.post(&headers, &modern_message(method, params))
    }

    /// GET: the stream of a session, or the rest of one that broke.
    pub(crate) fn get(&self, session: &str, last_event_id: Option<&str>) -> Vec<u8> {
        let last = last_event_id.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        self.bare("GET", session, &last)
    }

    /// DELETE: the session's end.
    pub(crate) fn delete(&self, session: &str) -> Vec<u8> {
        self.bare("DELETE", session, "")
    }

    /// Without a body.
    fn bare(&self, method: &str, session: &str, headers: &str) -> Vec<u8> {
        let Self {
            host, path, token, ..
        } = self;
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\nauthorization: Bearer {token}\r\n\
             mcp-session-id: {session}\r\nmcp-protocol-version: {LEGACY}\r\n{headers}\r\n"
        )
        .into_bytes()
    }

    /// Opens sessions, as clients do: `initialize` and `notifications/initialized`.
    pub(crate) async fn sessions(&self, count: usize) -> Result<Vec<String>> {
        let initialize = self.post("", &json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } }
        }));
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let (initialize, initialized) = (&initialize, &initialized);
        let openers = (0..OPENERS.min(count)).map(|number| async move {
            let mut connection = Connection::open(self.address).await?;
            let mut opened = Vec::new();
            for _ in (number..count).step_by(OPENERS) {
                let answer = connection.call(initialize).await?;
                answer.check("protocolVersion")?;
                let session = answer
                    .header("mcp-session-id")
                    .context("a session")?
                    .to_owned();
                let ready = self.message(&session, initialized);
                connection.call(&ready).await?.check("")?;
                opened.push(session);
            }
            anyhow::Ok(opened)
        });
        Ok(try_join_all(openers).await?.concat())
    }
}

/// The request of every tool call of the comparisons; see [`crate::bare::API_PATH`].
pub(crate) fn port_call() -> Value {
    json!({ "name": "getPort", "arguments": { "port_id": "NOBGO" } })
}
