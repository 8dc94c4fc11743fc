//! A client of any revision that sees a request through: it answers questions, and records
//! notifications meanwhile.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use url::Url;

use crate::{
    mcp::{MODERN, McpClient, Reply, modern_message},
    sse::SseStream,
};

/// All revisions, oldest first.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];

/// Longest time that a request may take, questions and all.
const LIMIT: Duration = Duration::from_secs(60);
/// Rounds after which it stops answering (MCP-X-24).
const ROUNDS: usize = 10;

/// How it speaks.
#[derive(Debug)]
enum Way {
    /// HTTP+SSE: everything comes on one stream.
    TwoEndpoints {
        post: McpClient,
        stream: Box<SseStream>,
    },
    /// A session of Streamable HTTP.
    Session(McpClient),
    /// Each request stands alone.
    Alone(McpClient),
}

/// A client.
#[derive(Debug)]
pub struct Speaker {
    /// Its revision.
    pub revision: &'static str,
    way: Way,
    next: u64,
}

/// The outcome of a request.
#[derive(Debug, Default)]
pub struct Heard {
    /// Notifications, in their order.
    pub notices: Vec<Value>,
    /// The questions to it, as `{method, params}`: in the order of the rounds, by method within
    /// one.
    pub questions: Vec<Value>,
    /// The response.
    pub answer: Value,
}

impl Heard {
    /// Text of the first block of a tool's result, or empty.
    #[must_use]
    pub fn said(&self) -> &str {
        self.answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
    }

    /// The parameters of its notifications of this method.
    #[must_use]
    pub fn told(&self, method: &str) -> Vec<&Value> {
        let of_method = self
            .notices
            .iter()
            .filter(|notice| notice["method"] == method);
        of_method.map(|notice| &notice["params"]).collect()
    }

    /// The methods of what it was asked.
    #[must_use]
    pub fn asked(&self) -> Vec<&str> {
        let methods = self.questions.iter();
        methods
            .map(|question| question["method"].as_str().unwrap_or_default())
            .collect()
    }
}

/// The capabilities of a client of this revision: all that the revision has.
fn able(revision: &str) -> Value {
    match revision {
        "2024-11-05" | "2025-03-26" => json!({"sampling": {}, "roots": {}}),
        "2025-06-18" => json!({"elicitation": {}, "sampling": {}, "roots": {}}),
        _ => json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
    }
}

/// Its answer: the same words for the same fields, from every server.
fn answer_to(question: &Value) -> Value {
    match question["method"].as_str() {
        Some("elicitation/create") => {
            let fields = question["params"]["requestedSchema"]["properties"].as_object();
            let content: Map<String, Value> = fields
                .into_iter()
                .flat_map(Map::keys)
                .map(|name| {
                    let value = match name.as_str() {
                        "name" | "username" => "Ada",
                        "email" => "ada@example.com",
                        "color" => "blue",
                        _ => "harbours",
                    };
                    (name.clone(), json!(value))
                })
                .collect();
            json!({"action": "accept", "content": content})
        }
        Some("sampling/createMessage") => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}})
        }
        _ => json!({"roots": [{"uri": "file:///a"}]}),
    }
}

fn by_method(questions: &mut [Value]) {
    questions.sort_by_key(|question| question["method"].as_str().map(str::to_owned));
}

impl Speaker {
    /// A client of `revision`, with all capabilities of that revision, and logs from `info` on.
    /// `mcp` has a token and the address `…/mcp`.
    pub async fn open(mcp: &McpClient, revision: &'static str) -> Result<Self> {
        if revision == MODERN {
            return Ok(Self {
                revision,
                way: Way::Alone(mcp.clone()),
                next: 1,
            });
        }
        let params = json!({"protocolVersion": revision, "capabilities": able(revision),
            "clientInfo": {"name": "harness", "version": "1"}});
        let way = if revision == "2024-11-05" {
            // MCP-O-1, MCP-O-2: the address of the stream, and the data of its first event.
            let base = mcp.url.strip_suffix("mcp").context("an endpoint")?;
            let mut stream = mcp.clone().at(&format!("{base}sse")).listen().await?;
            let first = stream.next().await?.context("an endpoint event")?;
            ensure!(first.kind == "endpoint", "MCP-O-2: {first:?}");
            let post: Url = mcp.url.parse::<Url>()?.join(&first.data)?;
            let post = mcp.clone().at(post.as_str());
            let stream = Box::new(stream);
            Way::TwoEndpoints { post, stream }
        } else {
            Way::Session(mcp.clone())
        };
        let mut this = Self {
            revision,
            way,
            next: 1,
        };
        let opened = this.open_session(params).await?;
        ensure!(
            opened["result"]["protocolVersion"] == revision,
            "MCP-L-2: {opened}"
        );
        this.notify("notifications/initialized").await?;
        let level = this
            .ask("logging/setLevel", json!({"level": "info"}))
            .await?;
        ensure!(level.answer["result"] == json!({}), "{}", level.answer);
        Ok(this)
    }

    async fn open_session(&mut self, params: Value) -> Result<Value> {
        let Way::Session(mcp) = &mut self.way else {
            return Ok(self.ask("initialize", params).await?.answer);
        };
        let answer = mcp.request("initialize", params).await?;
        let session = mcp
            .clone()
            .with("mcp-session-id", answer.header("mcp-session-id"))?
            .with("mcp-protocol-version", self.revision)?;
        *mcp = session;
        Ok(answer.json)
    }

    async fn notify(&self, method: &str) -> Result<()> {
        let (Way::Session(post) | Way::TwoEndpoints { post, .. } | Way::Alone(post)) = &self.way;
        say(post, &json!({"jsonrpc": "2.0", "method": method})).await
    }

    /// Makes a request, answers questions, and waits for the response. Calls request progress.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Heard> {
        let revision = self.revision;
        timeout(LIMIT, self.see_through(method, params))
            .await
            .with_context(|| format!("{revision}: no answer to {method} in {LIMIT:?}"))?
            .with_context(|| format!("{revision}: {method}"))
    }

    /// A call of a tool.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Heard> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Every page of a list: the entries in their order, and how many pages there were.
    pub async fn list(&mut self, method: &str, member: &str) -> Result<(Vec<Value>, usize)> {
        let (mut all, mut pages, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let page = self.ask(method, params).await?.answer;
            let entries = page["result"][member].as_array();
            all.extend(entries.with_context(|| page.to_string())?.iter().cloned());
            pages += 1;
            let Some(cursor) = page["result"]["nextCursor"].as_str() else {
                return Ok((all, pages));
            };
            ensure!(pages < 100, "MCP-PG-1: no end after {all:?}");
            params = json!({ "cursor": cursor });
        }
    }

    async fn see_through(&mut self, method: &str, mut params: Value) -> Result<Heard> {
        let id = json!(self.next);
        self.next += 1;
        if let Way::Alone(mcp) = &self.way {
            return alone(mcp, &id, method, params).await;
        }
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": token(&id)});
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut heard = Heard::default();
        match &mut self.way {
            Way::TwoEndpoints { post, stream } => {
                say(post, &message).await?;
                follow(stream, post, &id, &mut heard).await?;
            }
            Way::Session(mcp) | Way::Alone(mcp) => match mcp.start(&message).await? {
                Reply::Whole(answer) => heard.answer = answer.json,
                Reply::Stream(mut stream) => follow(&mut stream, mcp, &id, &mut heard).await?,
            },
        }
        by_method(&mut heard.questions);
        Ok(heard)
    }
}

/// The progress token of a request.
fn token(id: &Value) -> String {
    format!("progress-{id}")
}

/// Posts what gets no answer.
async fn say(post: &McpClient, message: &Value) -> Result<()> {
    let taken = post.message(message).await?;
    ensure!(
        taken.status == StatusCode::ACCEPTED,
        "{message}: {} {}",
        taken.status,
        taken.text
    );
    Ok(())
}

/// Reads a stream to the response, and answers each question on the way (MCP-X-20, MCP-X-28).
async fn follow(
    stream: &mut SseStream,
    back: &McpClient,
    id: &Value,
    heard: &mut Heard,
) -> Result<()> {
    loop {
        let message = stream.message().await?;
        let is_response = message.get("method").is_none();
        match message.get("id") {
            Some(own) if is_response && own == id => {
                heard.answer = message;
                return Ok(());
            }
            Some(question) if !is_response => {
                let answer =
                    json!({"jsonrpc": "2.0", "id": question, "result": answer_to(&message)});
                say(back, &answer).await?;
                let asked = json!({"method": message["method"], "params": message["params"]});
                heard.questions.push(asked);
            }
            None if !is_response => heard.notices.push(message),
            _ => bail!("an answer to nothing that was asked: {message}"),
        }
    }
}

/// A request of 2026-07-28, made again with the answers as long as its result asks (MCP-X-22,
/// MCP-X-29).
async fn alone(mcp: &McpClient, id: &Value, method: &str, params: Value) -> Result<Heard> {
    let (mut heard, mut brought) = (Heard::default(), Map::new());
    for round in 0..ROUNDS {
        let mut params = params.clone();
        for (name, value) in &brought {
            params[name] = value.clone();
        }
        let client = mcp.modern_client(method, &params)?;
        let mut message = modern_message(method, params);
        // An id of its own, as it is a request of its own.
        message["id"] = json!(format!("{id}.{round}"));
        let meta = &mut message["params"]["_meta"];
        meta["io.modelcontextprotocol/clientCapabilities"] = able(MODERN);
        meta["io.modelcontextprotocol/logLevel"] = json!("info");
        if method == "tools/call" {
            meta["progressToken"] = json!(token(id));
        }
        heard.answer = match client.start(&message).await? {
            Reply::Whole(answer) => answer.json,
            Reply::Stream(mut stream) => loop {
                let message = stream.message().await?;
                if message.get("method").is_none() {
                    break message;
                }
                heard.notices.push(message);
            },
        };
        let result = &heard.answer["result"];
        if result["resultType"] != "input_required" {
            return Ok(heard);
        }
        let requests = result["inputRequests"].as_object();
        let requests = requests.with_context(|| heard.answer.to_string())?;
        let responses: Map<String, Value> = requests
            .iter()
            .map(|(key, question)| (key.clone(), answer_to(question)))
            .collect();
        let mut questions: Vec<Value> = requests.values().cloned().collect();
        by_method(&mut questions);
        heard.questions.extend(questions);
        brought = Map::from_iter([
            ("inputResponses".to_owned(), Value::Object(responses)),
            ("requestState".to_owned(), result["requestState"].clone()),
        ]);
    }
    bail!("asked more than {ROUNDS} times: {heard:?}")
}
