//! A client of any revision that sees a request through: it answers questions, and records
//! notifications meanwhile.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use tokio::{task::JoinSet, time::timeout};
use url::Url;

use crate::{
    connected::Bridge,
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
    /// The standard input and output of a program: a session, or requests that stand alone.
    Lines(Box<Bridge>),
}

/// A client.
#[derive(Debug)]
pub struct Speaker {
    /// Its revision.
    pub revision: &'static str,
    /// Its capabilities. In a session, those at its opening count.
    pub able: Value,
    /// The result of `initialize`; null for one of 2026-07-28.
    pub opened: Value,
    way: Way,
    next: u64,
    /// Notifications of changes that were not read yet.
    news: Vec<Value>,
    /// The stream of changes, if they have one of their own.
    changes: Option<SseStream>,
    /// A call under way: its id, and its stream if it has one of its own.
    begun: Option<(Value, Option<SseStream>)>,
    /// The request of a call under way whose answer has not begun.
    silent: JoinSet<()>,
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
        Some("elicitation/create") if question["params"]["mode"] == "url" => {
            json!({"action": "accept"})
        }
        Some("elicitation/create") => {
            let fields = question["params"]["requestedSchema"]["properties"].as_object();
            let content: Map<String, Value> = fields
                .into_iter()
                .flatten()
                .map(|(name, schema)| {
                    let value = match name.as_str() {
                        "name" | "username" => json!("Ada"),
                        "email" => json!("ada@example.com"),
                        "color" => json!("blue"),
                        _ if schema["type"] == "array" => json!(["harbours"]),
                        _ => json!("harbours"),
                    };
                    (name.clone(), value)
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
        Self::open_able(mcp, revision, able(revision)).await
    }

    /// The same for a client that can do this.
    pub async fn open_able(mcp: &McpClient, revision: &'static str, able: Value) -> Result<Self> {
        let way = if revision == MODERN {
            Way::Alone(mcp.clone())
        } else if revision == "2024-11-05" {
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
        Self::start(way, revision, able).await
    }

    /// A client of `revision` that started this program.
    pub async fn over(program: Bridge, revision: &'static str, able: Value) -> Result<Self> {
        Self::start(Way::Lines(Box::new(program)), revision, able).await
    }

    async fn start(way: Way, revision: &'static str, able: Value) -> Result<Self> {
        let mut this = Self {
            revision,
            able,
            opened: Value::Null,
            way,
            next: 1,
            news: Vec::new(),
            changes: None,
            begun: None,
            silent: JoinSet::new(),
        };
        if revision == MODERN {
            return Ok(this);
        }
        let params = json!({"protocolVersion": revision, "capabilities": this.able,
            "clientInfo": {"name": "harness", "version": "1"}});
        let opened = this.open_session(params).await?;
        this.opened = opened["result"].clone();
        if this.opened["protocolVersion"] != revision {
            // Lines may lead to a server that speaks another revision than the client.
            let is_lines = matches!(this.way, Way::Lines(_));
            ensure!(is_lines && this.opened.is_object(), "MCP-L-2: {opened}");
            return Ok(this);
        }
        this.notify("notifications/initialized", json!({})).await?;
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

    async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if params != json!({}) {
            message["params"] = params;
        }
        match &mut self.way {
            Way::Session(post) | Way::TwoEndpoints { post, .. } | Way::Alone(post) => {
                say(post, &message).await
            }
            Way::Lines(program) => program.send(&message).await,
        }
    }

    /// Subscribes to changes of the list of tools and of a resource; gives the server's answer.
    pub async fn watch(&mut self, uri: &str) -> Result<Value> {
        if let Way::Session(mcp) = &self.way {
            self.changes = Some(mcp.listen().await?);
        }
        if self.revision != MODERN {
            let subscribed = self.ask("resources/subscribe", json!({"uri": uri})).await?;
            return Ok(subscribed.answer);
        }
        let method = "subscriptions/listen";
        let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
        let params = json!({ "notifications": wanted });
        let message = self.modern(&json!("listen"), method, params.clone());
        match &mut self.way {
            Way::Alone(mcp) => {
                let client = mcp.modern_client(method, &params)?;
                let mut stream = client.start(&message).await?.stream()?;
                let acknowledged = stream.message().await?;
                self.changes = Some(stream);
                Ok(acknowledged)
            }
            Way::Lines(program) => {
                program.send(&message).await?;
                program.receive().await
            }
            _ => bail!("2026-07-28 has no sessions"),
        }
    }

    /// The next notification of a change with this method.
    pub async fn until(&mut self, method: &str) -> Result<Value> {
        let revision = self.revision;
        let wait = async {
            loop {
                let found = self.news.iter().position(|one| one["method"] == method);
                if let Some(at) = found {
                    return Ok(self.news.remove(at));
                }
                let message = match (&mut self.changes, &mut self.way) {
                    (Some(stream), _) => stream.message().await?,
                    (None, Way::TwoEndpoints { stream, .. }) => stream.message().await?,
                    (None, Way::Lines(program)) => program.receive().await?,
                    (None, _) => bail!("it watches nothing"),
                };
                self.news.push(message);
            }
        };
        timeout(LIMIT, wait)
            .await
            .with_context(|| format!("{revision}: no {method} in {LIMIT:?}"))?
    }

    /// Begins a call whose server reports progress first.
    pub async fn begin(&mut self, tool: &str, arguments: Value) -> Result<()> {
        let id = json!(self.next);
        self.next += 1;
        let method = "tools/call";
        let mut params = json!({"name": tool, "arguments": arguments});
        let message = if self.revision == MODERN {
            self.modern(&id, method, params.clone())
        } else {
            params["_meta"] = json!({"progressToken": token(&id)});
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        };
        let stream = match &mut self.way {
            Way::TwoEndpoints { post, .. } => {
                say(post, &message).await?;
                None
            }
            Way::Lines(program) => {
                program.send(&message).await?;
                None
            }
            Way::Session(mcp) => Some(mcp.start(&message).await?.stream()?),
            Way::Alone(mcp) => {
                let client = mcp.modern_client(method, &params)?;
                Some(client.start(&message).await?.stream()?)
            }
        };
        self.begun = Some((id, stream));
        Ok(())
    }

    /// Begins a call whose server sends nothing before its answer. Nothing is awaited.
    pub async fn begin_silent(&mut self, tool: &str, arguments: Value) -> Result<()> {
        let (post, params) = match &self.way {
            Way::Session(post) => (post.clone(), None),
            Way::Alone(post) => {
                let params = json!({"name": tool, "arguments": arguments});
                (post.modern_client("tools/call", &params)?, Some(params))
            }
            Way::TwoEndpoints { .. } | Way::Lines(_) => return self.begin(tool, arguments).await,
        };
        let id = json!(self.next);
        self.next += 1;
        let message = match params {
            Some(params) => self.modern(&id, "tools/call", params),
            None => json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}}),
        };
        self.begun = Some((id, None));
        self.silent.spawn(async move {
            let _ = post.start(&message).await;
        });
        Ok(())
    }

    /// Cancels the call that was begun.
    pub async fn cancel(&mut self) -> Result<()> {
        let (id, stream) = self.begun.take().context("a call")?;
        if let Way::Alone(_) = self.way {
            drop(stream);
            self.silent.shutdown().await;
            return Ok(());
        }
        self.notify("notifications/cancelled", json!({"requestId": id}))
            .await?;
        self.silent.shutdown().await;
        Ok(())
    }

    /// The connection of the call that was begun breaks. Gives the id of its last event; `None`
    /// where events have none.
    pub async fn lose_connection(&mut self) -> Result<Option<String>> {
        let (_, stream) = self.begun.take().context("a call")?;
        if let Some(mut stream) = stream {
            stream.message().await?;
            return Ok(stream.last_id().map(str::to_owned));
        }
        ensure!(
            matches!(self.way, Way::TwoEndpoints { .. }),
            "a program's lines do not break"
        );
        let nowhere = McpClient::new("http://127.0.0.1:9/mcp")?;
        self.way = Way::Alone(nowhere);
        Ok(None)
    }

    /// The response to the call that was begun, after `last`.
    pub async fn come_back(&mut self, last: &str) -> Result<Value> {
        let Way::Session(mcp) = &self.way else {
            bail!("only a session can be continued");
        };
        let mut stream = mcp.resume(last).await?.stream()?;
        loop {
            let message = stream.message().await?;
            if message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    /// A request that stands alone.
    fn modern(&self, id: &Value, method: &str, params: Value) -> Value {
        let mut message = modern_message(method, params);
        message["id"] = id.clone();
        let meta = &mut message["params"]["_meta"];
        meta["io.modelcontextprotocol/clientCapabilities"] = self.able.clone();
        meta["io.modelcontextprotocol/logLevel"] = json!("info");
        if method == "tools/call" {
            meta["progressToken"] = json!(token(id));
        }
        message
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

    async fn see_through(&mut self, method: &str, params: Value) -> Result<Heard> {
        let id = json!(self.next);
        self.next += 1;
        let mut heard = if self.revision == MODERN {
            self.alone(&id, method, params).await?
        } else {
            self.in_session(&id, method, params).await?
        };
        let is_news = |notice: &&Value| {
            let method = notice["method"].as_str().unwrap_or_default();
            method.ends_with("/list_changed") || method.ends_with("/updated")
        };
        self.news
            .extend(heard.notices.iter().filter(is_news).cloned());
        by_method(&mut heard.questions);
        Ok(heard)
    }

    async fn in_session(&mut self, id: &Value, method: &str, mut params: Value) -> Result<Heard> {
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": token(id)});
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut heard = Heard::default();
        match &mut self.way {
            Way::TwoEndpoints { post, stream } => {
                say(post, &message).await?;
                let mut pipe = Pipe::Http { stream, post };
                pipe.follow(id, &mut heard).await?;
            }
            Way::Lines(program) => {
                program.send(&message).await?;
                Pipe::Lines(program).follow(id, &mut heard).await?;
            }
            Way::Session(post) | Way::Alone(post) => match post.start(&message).await? {
                Reply::Whole(answer) => heard.answer = answer.json,
                Reply::Stream(mut stream) => {
                    let stream = &mut stream;
                    let mut pipe = Pipe::Http { stream, post };
                    pipe.follow(id, &mut heard).await?;
                }
            },
        }
        Ok(heard)
    }

    /// A request of 2026-07-28, made again with the answers as long as its result asks
    /// (MCP-X-22, MCP-X-29).
    async fn alone(&mut self, id: &Value, method: &str, params: Value) -> Result<Heard> {
        let (mut heard, mut brought) = (Heard::default(), Map::new());
        for round in 0..ROUNDS {
            let mut params = params.clone();
            for (name, value) in &brought {
                params[name] = value.clone();
            }
            // An id of its own, as it is a request of its own.
            let own = json!(format!("{id}.{round}"));
            let message = self.modern(&own, method, params.clone());
            match &mut self.way {
                Way::Lines(program) => {
                    program.send(&message).await?;
                    Pipe::Lines(program).follow(&own, &mut heard).await?;
                }
                Way::Alone(post) | Way::Session(post) | Way::TwoEndpoints { post, .. } => {
                    let client = post.modern_client(method, &params)?;
                    match client.start(&message).await? {
                        Reply::Whole(answer) => heard.answer = answer.json,
                        Reply::Stream(mut stream) => {
                            let stream = &mut stream;
                            let mut pipe = Pipe::Http { stream, post };
                            pipe.follow(&own, &mut heard).await?;
                        }
                    }
                }
            }
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
            brought = Map::from_iter([
                ("inputResponses".to_owned(), Value::Object(responses)),
                ("requestState".to_owned(), result["requestState"].clone()),
            ]);
            heard.questions.extend(questions);
        }
        bail!("asked more than {ROUNDS} times: {heard:?}")
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

/// Where messages come from, and where answers go.
enum Pipe<'a> {
    Http {
        stream: &'a mut SseStream,
        post: &'a McpClient,
    },
    Lines(&'a mut Bridge),
}

impl Pipe<'_> {
    async fn receive(&mut self) -> Result<Value> {
        match self {
            Self::Http { stream, .. } => stream.message().await,
            Self::Lines(program) => program.receive().await,
        }
    }

    async fn send(&mut self, message: &Value) -> Result<()> {
        match self {
            Self::Http { post, .. } => say(post, message).await,
            Self::Lines(program) => program.send(message).await,
        }
    }

    /// Reads to the response, and answers each question on the way (MCP-X-20, MCP-X-28).
    async fn follow(&mut self, id: &Value, heard: &mut Heard) -> Result<()> {
        loop {
            let message = self.receive().await?;
            let is_response = message.get("method").is_none();
            match message.get("id") {
                Some(own) if is_response && own == id => {
                    heard.answer = message;
                    return Ok(());
                }
                Some(question) if !is_response => {
                    let answer =
                        json!({"jsonrpc": "2.0", "id": question, "result": answer_to(&message)});
                    self.send(&answer).await?;
                    let asked = json!({"method": message["method"], "params": message["params"]});
                    heard.questions.push(asked);
                }
                None if !is_response => heard.notices.push(message),
                _ => bail!("an answer to nothing that was asked: {message}"),
            }
        }
    }
}
