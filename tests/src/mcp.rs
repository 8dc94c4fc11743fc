//! Raw MCP over HTTP: every header and every byte in the test's hand.

use anyhow::{Context, Result, bail, ensure};
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};

use crate::sse::SseStream;

/// Latest legacy revision.
pub const LEGACY: &str = "2025-11-25";
/// The modern revision.
pub const MODERN: &str = "2026-07-28";

/// Sends messages to one endpoint.
#[derive(Debug, Clone)]
pub struct McpClient {
    http: reqwest::Client,
    /// The endpoint.
    pub url: String,
    headers: HeaderMap,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The one message of the body, out of an event stream too; `null` if there is none.
    pub json: Value,
}

/// The answer, before the end of its body.
#[derive(Debug)]
pub enum Reply {
    /// A whole body.
    Whole(Answer),
    /// An open event stream.
    Stream(SseStream),
}

impl Reply {
    /// The stream, or what came instead as an error.
    pub fn stream(self) -> Result<SseStream> {
        match self {
            Self::Stream(stream) => Ok(stream),
            Self::Whole(answer) => bail!("no stream but {} {}", answer.status, answer.text),
        }
    }

    /// The whole body, or an error if there is a stream.
    pub fn whole(self) -> Result<Answer> {
        match self {
            Self::Whole(answer) => Ok(answer),
            Self::Stream(_) => bail!("a stream"),
        }
    }
}

impl Answer {
    /// The JSON-RPC error code, or 0.
    pub fn code(&self) -> i64 {
        self.json["error"]["code"].as_i64().unwrap_or(0)
    }

    /// A header as text, empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }
}

impl McpClient {
    /// Without a token.
    pub fn new(url: &str) -> Result<Self> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        Ok(Self {
            http,
            url: url.to_owned(),
            headers,
        })
    }

    /// With a bearer token.
    pub fn with_token(self, token: &str) -> Result<Self> {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// With a header, in place of one of the same name. An empty value removes it.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self> {
        let name = HeaderName::try_from(name)?;
        if value.is_empty() {
            self.headers.remove(name);
        } else {
            self.headers.insert(name, HeaderValue::from_str(value)?);
        }
        Ok(self)
    }

    /// A header that it sends.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// At another address.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Posts bytes as they are.
    pub async fn post(&self, content_type: &str, body: impl Into<Vec<u8>>) -> Result<Answer> {
        let mut request = self
            .http
            .post(&self.url)
            .headers(self.headers.clone())
            .body(body.into());
        if !content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        read(request.send().await?).await
    }

    /// Posts one message.
    pub async fn message(&self, message: &Value) -> Result<Answer> {
        self.post("application/json", message.to_string()).await
    }

    /// Any method without a body.
    pub async fn send(&self, method: Method) -> Result<Answer> {
        read(
            self.http
                .request(method, &self.url)
                .headers(self.headers.clone())
                .send()
                .await?,
        )
        .await
    }

    /// GET, answered with an open stream: the response is given before its body ends.
    pub async fn open_stream(&self) -> Result<reqwest::Response> {
        Ok(self
            .http
            .get(&self.url)
            .headers(self.headers.clone())
            .send()
            .await?)
    }

    /// Posts one message. An event stream is given open.
    pub async fn start(&self, message: &Value) -> Result<Reply> {
        let request = self
            .http
            .post(&self.url)
            .headers(self.headers.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .body(message.to_string());
        reply(request.send().await?).await
    }

    /// Goes on reading a stream after this event.
    pub async fn resume(&self, last_event_id: &str) -> Result<Reply> {
        let request = self
            .http
            .get(&self.url)
            .headers(self.headers.clone())
            .header("last-event-id", last_event_id);
        Ok(match reply(request.send().await?).await? {
            Reply::Stream(stream) => Reply::Stream(stream.after(last_event_id)),
            whole @ Reply::Whole(_) => whole,
        })
    }

    /// GET, as an open event stream.
    pub async fn listen(&self) -> Result<SseStream> {
        self.hear().await?.stream()
    }

    /// GET, whatever comes of it.
    pub async fn hear(&self) -> Result<Reply> {
        reply(self.open_stream().await?).await
    }

    /// A request of a legacy session.
    pub async fn request(&self, method: &str, params: Value) -> Result<Answer> {
        self.message(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await
    }

    /// A request of the modern revision, with its `_meta` and mirrored headers.
    pub async fn modern(&self, method: &str, params: Value) -> Result<Answer> {
        self.modern_client(method, &params)?
            .message(&modern_message(method, params))
            .await
    }

    /// With the headers that a modern request mirrors.
    pub fn modern_client(&self, method: &str, params: &Value) -> Result<Self> {
        let mut client = self
            .clone()
            .with("mcp-protocol-version", MODERN)?
            .with("mcp-method", method)?;
        let named = ["name", "uri", "taskId"].map(|member| params[member].as_str());
        if let Some(name) = named.into_iter().flatten().next() {
            client = client.with("mcp-name", name)?;
        }
        Ok(client)
    }

    /// Opens a legacy session. Answers a client that sends its id and version.
    pub async fn initialize(&self, version: &str) -> Result<(Self, Value)> {
        self.initialize_able(version, json!({})).await
    }

    /// The same for a client that can do this.
    pub async fn initialize_able(
        &self,
        version: &str,
        capabilities: Value,
    ) -> Result<(Self, Value)> {
        let answer = self
            .request("initialize", json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "harness", "version": "1"}}))
            .await?;
        ensure!(
            answer.status == StatusCode::OK,
            "initialize: {} {}",
            answer.status,
            answer.text
        );
        let agreed = answer.json["result"]["protocolVersion"]
            .as_str()
            .context("a version")?;
        let session = self
            .clone()
            .with("mcp-session-id", answer.header("mcp-session-id"))?
            .with("mcp-protocol-version", agreed)?;
        let initialized = session
            .message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        ensure!(
            initialized.status == StatusCode::ACCEPTED,
            "initialized: {} {}",
            initialized.status,
            initialized.text
        );
        Ok((session, answer.json["result"].clone()))
    }
}

/// A modern request with its envelope.
pub fn modern_message(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "harness", "version": "1"}
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn reply(response: reqwest::Response) -> Result<Reply> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return Ok(Reply::Stream(SseStream::new(response)));
    }
    Ok(Reply::Whole(read(response).await?))
}

async fn read(response: reqwest::Response) -> Result<Answer> {
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await?;
    let is_stream = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let message = if is_stream {
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .find(|data| !data.trim().is_empty())
            .unwrap_or("")
    } else {
        &text
    };
    let json = serde_json::from_str(message).unwrap_or(Value::Null);
    Ok(Answer {
        status,
        headers,
        text,
        json,
    })
}
