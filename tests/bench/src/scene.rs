//! The product as a tenant would have it: signed up, the API imported and published, a client with a token and sessions.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use portolan_tests::mcp::{LEGACY, McpClient};
use portolan_tests::oauth::OAuthClient;
use portolan_tests::person::Person;
use portolan_tests::stack::Stack;
use serde_json::{Value, json};
use url::Url;

/// A running Portolan with one published server.
pub(crate) struct Scene {
    stack: Stack,
    process_id: u32,
    endpoint: Url,
    token: String,
}

/// A legacy session of its own.
pub(crate) struct Session {
    id: String,
}

impl Scene {
    /// Starts it and goes the whole way to a token, through the real pages.
    pub(crate) async fn new(api: SocketAddr) -> Result<Self> {
        // Limits are counted as in earnest, and wide enough never to refuse.
        let mut stack = Stack::builder()
            .allow_egress(api)
            .setting("calls_per_minute", 1_000_000)
            .start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("bench").await?;
        let base_url = format!("http://{api}");
        let source = console
            .post(
                "/workspaces/bench/sources",
                json!({ "name": "Harbour", "kind": "openapi", "base_url": base_url,
                        "input": { "kind": "text", "text": portolan_demo_api::document(&base_url) } }),
            )
            .await?;
        let source_id = source["id"].as_str().context("a source id")?;
        let credential = json!({ "kind": "api_key", "in": "header", "name": portolan_demo_api::API_KEY_HEADER,
                                 "value": portolan_demo_api::API_KEY });
        let path = format!("/workspaces/bench/sources/{source_id}/credential");
        console
            .expect(axum::http::Method::PUT, &path, Some(credential))
            .await?;
        let listed = console
            .get(&format!("/workspaces/bench/sources/{source_id}/tools"))
            .await?;
        let tools = listed["items"]
            .as_array()
            .context("tools")?
            .iter()
            .map(|tool| tool["id"].clone())
            .collect();
        let published = console
            .publish("bench", "harbour", source_id, tools)
            .await?;
        let client = OAuthClient::register(stack.url(), "Bench").await?;
        let token = client.authorize(&owner, &published.url).await?.access;
        Ok(Self {
            endpoint: published.url.parse()?,
            process_id: stack.process().id(),
            stack,
            token,
        })
    }

    /// Where the load goes.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        let addresses = self.endpoint.socket_addrs(|| None)?;
        addresses.first().copied().context("an address")
    }

    /// Process id of the product.
    pub(crate) fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Opens sessions.
    pub(crate) async fn sessions(&self, count: usize) -> Result<Vec<Session>> {
        let client = McpClient::new(self.endpoint.as_str())?.with_token(&self.token)?;
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
            let answer = client.request("initialize", params).await?;
            let id = answer.header("mcp-session-id").to_owned();
            ensure!(
                !id.is_empty(),
                "no session: {} {}",
                answer.status,
                answer.text
            );
            let session = client
                .clone()
                .with("mcp-session-id", &id)?
                .with("mcp-protocol-version", LEGACY)?;
            session
                .message(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .await?;
            sessions.push(Session { id });
        }
        Ok(sessions)
    }

    /// The body of one `tools/list`, to be served by the bare server.
    pub(crate) async fn tools_list_answer(&self) -> Result<String> {
        let sessions = self.sessions(1).await?;
        let client = McpClient::new(self.endpoint.as_str())?
            .with_token(&self.token)?
            .with("mcp-session-id", &sessions[0].id)?
            .with("mcp-protocol-version", LEGACY)?;
        let answer = client.request("tools/list", json!({})).await?;
        ensure!(
            answer.json["result"]["tools"].is_array(),
            "no list: {} {}",
            answer.status,
            answer.text
        );
        Ok(answer.text)
    }

    /// Writes a file beside the data of the run; it goes with it.
    pub(crate) fn keep(&self, name: &str, text: &str) -> Result<String> {
        let path = self.stack.data().join(name);
        std::fs::write(&path, text)?;
        path.to_str().map(str::to_owned).context("a path of text")
    }

    /// A `tools/call` as bytes.
    pub(crate) fn call_request(&self, session: &Session) -> Vec<u8> {
        self.request(
            session,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "getPort", "arguments": { "port_id": "NOBGO" } } }),
        )
    }

    /// A `tools/list` as bytes.
    pub(crate) fn list_request(&self, session: &Session) -> Vec<u8> {
        self.request(
            session,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }),
        )
    }

    fn request(&self, session: &Session, message: &Value) -> Vec<u8> {
        let body = message.to_string();
        let host = &self.endpoint[url::Position::BeforeHost..url::Position::AfterPort];
        format!(
            "POST {} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             authorization: Bearer {}\r\nmcp-session-id: {}\r\nmcp-protocol-version: {LEGACY}\r\ncontent-length: {}\r\n\r\n{body}",
            self.endpoint.path(),
            self.token,
            session.id,
            body.len()
        )
        .into_bytes()
    }
}
