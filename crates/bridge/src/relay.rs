//! A client and a server of 2026-07-28: every request stands alone. Messages pass unchanged, beside
//! the headers that HTTP repeats of them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use portolan_net::egress::EgressStream;
use portolan_protocol::{
    header::{self, ParamHeader},
    jsonrpc::{Raw, RequestId},
    meta,
    method::Method,
    result::write_string,
    revision::Revision,
};
use portolan_upstream::{Request, mirrored};
use tokio::task::AbortHandle;

use crate::{
    fault::BridgeFault,
    lines::Out,
    message::{self, LineMessage, MessageBody, Sort},
    note::Notes,
    stream::{Events, StreamPosition, is_events, is_json},
    wire::{Headers, Wire},
};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const HEADER_MISMATCH: i64 = -32020;
/// Codes that only a server of this era gives (MCP-X-2).
const MODERN: [i64; 3] = [HEADER_MISMATCH, -32021, -32022];
/// Most tools whose headers are remembered, and most pages that are read for them.
const MOST_TOOLS: usize = 10_000;
const MOST_PAGES: usize = 100;
/// Tries to open a subscription again, without a message in between.
const TRIES: u32 = 8;
/// The first pause between them.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between them.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Relay(Arc<RelayInner>);

#[derive(Debug)]
struct RelayInner {
    wire: Arc<Wire>,
    out: Out,
    notes: Notes,
    /// Arguments that headers repeat, by tool, as the server's last lists have them.
    tools: Mutex<HashMap<String, Vec<ParamHeader>>>,
    running: Mutex<HashMap<RequestId, RelayedCall>>,
    /// A list of tools was read.
    has_listed: AtomicBool,
}

#[derive(Debug)]
struct RelayedCall {
    /// A subscription: it does not keep the program from its end.
    is_listen: bool,
    task: Option<AbortHandle>,
}

/// Era of the server, as its answer to the first request shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// It is of this era. The answer was passed on.
    Modern,
    /// It is of an earlier era, or no server of the protocol. Nothing was passed on.
    Earlier,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    pub(crate) fn new(wire: Arc<Wire>, out: Out, notes: Notes) -> Self {
        Self(Arc::new(RelayInner {
            wire,
            out,
            notes,
            tools: Mutex::default(),
            running: Mutex::default(),
            has_listed: AtomicBool::new(false),
        }))
    }

    /// Takes a message of the client.
    pub(crate) fn take(&self, message: LineMessage) {
        match &message.sort {
            Sort::Request { id, .. } => {
                let (this, id) = (self.clone(), id.clone());
                let running = RelayedCall {
                    is_listen: message.is(Method::SubscriptionsListen),
                    task: None,
                };
                lock(&self.0.running).insert(id.clone(), running);
                let key = id.clone();
                let task = self
                    .0
                    .wire
                    .tasks
                    .spawn(async move { this.run(id, message).await });
                if let Some(running) = lock(&self.0.running).get_mut(&key) {
                    running.task = Some(task.abort_handle());
                }
            }
            Sort::Notification { .. } => {
                // Over HTTP a request is cancelled by the end of its stream (MCP-X-78).
                if let Some(id) = message.cancels() {
                    let cancelled = lock(&self.0.running).remove(&id);
                    if let Some(task) = cancelled.and_then(|running| running.task) {
                        task.abort();
                    }
                    return;
                }
                let this = self.clone();
                self.0
                    .wire
                    .tasks
                    .spawn(async move { this.tell(message).await });
            }
            // Servers of this era make no requests.
            Sort::Response { .. } => self.0.notes.detail("an answer to no request was dropped"),
        }
    }

    /// Shows the era of the server to a client that does not probe: asks in its name.
    pub(crate) async fn probe(&self, message: &LineMessage) -> Result<Era, BridgeFault> {
        let params = [br#"{"_meta":"#, envelope(message).as_bytes(), b"}"].concat();
        let params = Raw::parse(params).unwrap_or(Raw::empty_object());
        let id = RequestId::from("portolan-connect-discover");
        let text = message::request(&id, Method::Discover.name(), &params);
        let Ok(MessageBody::One(discover)) = MessageBody::read(text) else {
            return Ok(Era::Modern);
        };
        let (aside, mut answers) = Out::channel();
        let relay = Self::new(Arc::clone(&self.0.wire), aside, self.0.notes);
        let era = relay.first(discover).await;
        answers.close();
        era
    }

    /// Sends a client's `server/discover`. The answer shows the era of the server.
    pub(crate) async fn first(&self, message: LineMessage) -> Result<Era, BridgeFault> {
        let Sort::Request { id, .. } = &message.sort else {
            return Ok(Era::Modern);
        };
        let answer = self.send(&message, &[]).await?;
        if answer.status.is_success() && is_events(&answer.headers) {
            return self.follow(answer, id).await.map(|_| Era::Modern);
        }
        let status = answer.status;
        if status.is_server_error() {
            return Err(BridgeFault::Status(status.as_u16()));
        }
        let Some(messages) = whole(answer).await? else {
            return Ok(Era::Earlier);
        };
        let error = messages.iter().find_map(|message| message.raw.get("error"));
        if let Some(error) = error
            && !MODERN.contains(&code(&error))
        {
            return Ok(Era::Earlier);
        }
        if !status.is_success() && messages.is_empty() {
            return Ok(Era::Earlier);
        }
        self.hand_all(messages, id).await;
        Ok(Era::Modern)
    }

    async fn run(&self, id: RequestId, message: LineMessage) {
        let outcome = if message.is(Method::SubscriptionsListen) {
            self.subscribe(&id, &message).await
        } else {
            self.ask(&id, &message).await
        };
        let was_running = lock(&self.0.running).remove(&id).is_some();
        if let Err(fault) = outcome
            && was_running
        {
            self.0.notes.say(&fault.to_string());
            self.0
                .out
                .write(message::error(Some(&id), &fault.to_rpc()))
                .await;
        }
    }

    async fn tell(&self, message: LineMessage) {
        let headers = self.headers(&message, &[]);
        let body = message.raw.bytes().clone();
        let sent = self.0.wire.tell(&self.0.wire.url, &headers, body).await;
        if let Err(fault) = sent {
            self.0.notes.say(&fault.to_string());
        }
    }

    /// One request and its answer.
    async fn ask(&self, id: &RequestId, message: &LineMessage) -> Result<(), BridgeFault> {
        let mut mirrors = self.mirrors(message);
        // A client that remembers the list from another day does not read it again.
        if message.is(Method::ToolsCall) && !self.0.has_listed.swap(true, Ordering::Relaxed) {
            mirrors = self.fresh_mirrors(message).await?.unwrap_or_default();
        }
        let answer = self.send(message, &mirrors).await?;
        if answer.status.is_success() && is_events(&answer.headers) {
            return if self.follow(answer, id).await? {
                Ok(())
            } else {
                Err(BridgeFault::Lost)
            };
        }
        let status = answer.status;
        let Some(messages) = whole(answer).await? else {
            return Err(no_message(status));
        };
        let error = messages.iter().find_map(|message| message.raw.get("error"));
        // MCP-X-6: the schema is not the one that was remembered. The tool was not called.
        if message.is(Method::ToolsCall)
            && error.as_ref().map(code) == Some(HEADER_MISMATCH)
            && let Some(fresh) = self.fresh_mirrors(message).await?
            && fresh != mirrors
        {
            let again = self.send(message, &fresh).await?;
            if again.status.is_success() && is_events(&again.headers) {
                return if self.follow(again, id).await? {
                    Ok(())
                } else {
                    Err(BridgeFault::Lost)
                };
            }
            let status = again.status;
            let messages = whole(again).await?.ok_or_else(|| no_message(status))?;
            return self.hand_last(messages, id).await;
        }
        self.hand_last(messages, id).await
    }

    async fn hand_last(
        &self,
        messages: Vec<LineMessage>,
        id: &RequestId,
    ) -> Result<(), BridgeFault> {
        if self.hand_all(messages, id).await {
            Ok(())
        } else {
            Err(BridgeFault::Invalid("its answer holds no answer"))
        }
    }

    async fn send(
        &self,
        message: &LineMessage,
        mirrors: &[ParamHeader],
    ) -> Result<EgressStream, BridgeFault> {
        let headers = self.headers(message, mirrors);
        let body = message.raw.bytes().clone();
        self.0.wire.ask(&self.0.wire.url, &headers, body).await
    }

    /// The headers that repeat the message (MCP-H-1, MCP-H-2, MCP-H-12).
    fn headers(&self, message: &LineMessage, mirrors: &[ParamHeader]) -> Headers {
        let mut request = Request::new(message.method().unwrap_or_default(), message.params());
        request.mirrored = mirrors;
        let mut headers = mirrored(&request);
        // Of a later revision the header repeats what the message says.
        if let Some(version) = message.version()
            && let Ok(version) = HeaderValue::from_str(&version)
        {
            headers.retain(|(name, _)| *name != PROTOCOL_VERSION);
            headers.push((PROTOCOL_VERSION, version));
        }
        headers
    }

    fn mirrors(&self, message: &LineMessage) -> Vec<ParamHeader> {
        if !message.is(Method::ToolsCall) {
            return Vec::new();
        }
        let name = message.params().get("name").and_then(|name| name.string());
        let tools = lock(&self.0.tools);
        let known = name.and_then(|name| tools.get(&name).cloned());
        known.unwrap_or_default()
    }

    /// Reads the list of tools for the headers of one.
    async fn fresh_mirrors(
        &self,
        message: &LineMessage,
    ) -> Result<Option<Vec<ParamHeader>>, BridgeFault> {
        let meta = envelope(message);
        let mut cursor: Option<Raw> = None;
        for page in 0..MOST_PAGES {
            let mut params = br#"{"_meta":"#.to_vec();
            params.extend_from_slice(meta.as_bytes());
            if let Some(cursor) = &cursor {
                params.extend_from_slice(br#","cursor":"#);
                params.extend_from_slice(cursor.as_bytes());
            }
            params.push(b'}');
            let id = RequestId::from(format!("portolan-connect-tools-{page}"));
            let params = Raw::parse(params).unwrap_or(Raw::empty_object());
            let text = message::request(&id, Method::ToolsList.name(), &params);
            let Ok(MessageBody::One(list)) = MessageBody::read(text) else {
                return Ok(None);
            };
            let answer = self.send(&list, &[]).await?;
            let Some(result) = only_result(answer, &id).await? else {
                return Ok(None);
            };
            self.learn(&result);
            cursor = result.get("nextCursor").filter(|raw| !raw.is_null());
            if cursor.is_none() {
                break;
            }
        }
        Ok(Some(self.mirrors(message)))
    }

    /// Remembers the headers of the tools in a list.
    fn learn(&self, result: &Raw) {
        let Some(list) = result.get("tools") else {
            return;
        };
        self.0.has_listed.store(true, Ordering::Relaxed);
        let mut tools = lock(&self.0.tools);
        for tool in list.elements() {
            let Some(name) = tool.get("name").and_then(|name| name.string()) else {
                continue;
            };
            let schema = tool.get("inputSchema");
            let schema = schema.filter(|schema| schema.as_str().contains("x-mcp-header"));
            let schema = schema.and_then(|schema| serde_json::from_slice(schema.as_bytes()).ok());
            match schema.map(|schema| header::annotations(&schema).0) {
                Some(found) if !found.is_empty() && tools.len() < MOST_TOOLS => {
                    tools.insert(name, found);
                }
                _ => {
                    tools.remove(&name);
                }
            }
        }
    }

    /// Passes on a stream. True if it held the answer.
    async fn follow(&self, answer: EgressStream, id: &RequestId) -> Result<bool, BridgeFault> {
        let (mut events, mut place) = (Events::new(answer), StreamPosition::default());
        let mut is_answered = false;
        while let Some(event) = events.next(&mut place).await {
            if event.event != "message" {
                continue;
            }
            let read = MessageBody::read(event.data);
            let read = read.map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
            is_answered |= self.hand_all(read.into_messages(), id).await;
        }
        Ok(is_answered)
    }

    /// Passes on messages. True if the answer was among them.
    async fn hand_all(&self, messages: Vec<LineMessage>, id: &RequestId) -> bool {
        let mut is_answered = false;
        for message in messages {
            match &message.sort {
                Sort::Notification { .. } => {
                    self.0.out.write(message.raw.bytes().clone()).await;
                }
                Sort::Request { .. } => {
                    self.0.notes.detail("a request of the server was dropped");
                }
                Sort::Response { id: Some(own) } if own == id => {
                    if let Some(result) = message.raw.get("result") {
                        self.learn(&result);
                    }
                    is_answered = true;
                    self.0.out.write(message.raw.bytes().clone()).await;
                }
                // An error body without the id, or with another, refuses this request.
                Sort::Response { .. } => {
                    if let Some(error) = message.raw.get("error") {
                        is_answered = true;
                        self.0.out.write(refused(id, &error)).await;
                    }
                }
            }
        }
        is_answered
    }

    /// Keeps a subscription: a stream that breaks is opened again under the same id. Messages may
    /// have been missed then, so that one notification of each kind follows.
    async fn subscribe(&self, id: &RequestId, message: &LineMessage) -> Result<(), BridgeFault> {
        let mut is_first = true;
        let mut tries = 0;
        loop {
            match self.send(message, &[]).await {
                Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                    let end = self.listen(answer, id, &mut is_first).await?;
                    if end.is_answered {
                        return Ok(());
                    }
                    if end.messages > 0 {
                        tries = 0;
                    }
                }
                Ok(answer) if is_first || !answer.status.is_server_error() => {
                    let status = answer.status;
                    let messages = whole(answer).await?.ok_or_else(|| no_message(status))?;
                    return self.hand_last(messages, id).await;
                }
                Err(fault) if is_first || fault.is_about_sign_in() => return Err(fault),
                Ok(_) | Err(_) => {}
            }
            if is_first || tries >= TRIES {
                return Err(BridgeFault::Lost);
            }
            self.0.notes.detail("a subscription is opened again");
            tokio::time::sleep(PAUSE.saturating_mul(1 << tries).min(LONGEST_PAUSE)).await;
            tries += 1;
        }
    }

    async fn listen(
        &self,
        answer: EgressStream,
        id: &RequestId,
        is_first: &mut bool,
    ) -> Result<SubscriptionEnd, BridgeFault> {
        let (mut events, mut place) = (Events::new(answer), StreamPosition::default());
        let mut end = SubscriptionEnd::default();
        while let Some(event) = events.next(&mut place).await {
            let read = MessageBody::read(event.data);
            let read = read.map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
            for received in read.into_messages() {
                end.messages += 1;
                if received.is(Method::SubscriptionsAcknowledged) && !*is_first {
                    for missed in missed(&received, id) {
                        self.0.out.write(missed).await;
                    }
                    continue;
                }
                *is_first = false;
                end.is_answered |= self.hand_all(vec![received], id).await;
            }
        }
        Ok(end)
    }

    /// How many requests wait, subscriptions left out.
    pub(crate) fn count_open(&self) -> usize {
        let running = lock(&self.0.running);
        running.values().filter(|one| !one.is_listen).count()
    }
}

#[derive(Debug, Default)]
struct SubscriptionEnd {
    messages: usize,
    is_answered: bool,
}

/// One notification for everything that a new subscription acknowledges.
fn missed(acknowledged: &LineMessage, id: &RequestId) -> Vec<Bytes> {
    let Some(honoured) = acknowledged.params().get("notifications") else {
        return Vec::new();
    };
    let notification = |method: Method, uri: Option<&Raw>| {
        let mut params = br#"{"_meta":{""#.to_vec();
        params.extend_from_slice(meta::SUBSCRIPTION_ID.as_bytes());
        params.extend_from_slice(br#"":"#);
        id.write(&mut params);
        params.push(b'}');
        if let Some(uri) = uri {
            params.extend_from_slice(br#","uri":"#);
            params.extend_from_slice(uri.as_bytes());
        }
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or(Raw::empty_object());
        message::notification(method.name(), Some(&params))
    };
    let lists = [
        ("toolsListChanged", Method::ToolsListChanged),
        ("promptsListChanged", Method::PromptsListChanged),
        ("resourcesListChanged", Method::ResourcesListChanged),
    ];
    let mut missed = Vec::new();
    for (flag, method) in lists {
        if honoured.get(flag).and_then(|flag| flag.boolean()) == Some(true) {
            missed.push(notification(method, None));
        }
    }
    let uris = honoured.get("resourceSubscriptions");
    for uri in uris.iter().flat_map(Raw::elements) {
        missed.push(notification(Method::ResourceUpdated, Some(&uri)));
    }
    missed
}

/// The `_meta` of a request, for another request in its client's name.
fn envelope(message: &LineMessage) -> Raw {
    let own = message.params().get("_meta").unwrap_or(Raw::empty_object());
    let mut meta = b"{".to_vec();
    for (name, value) in own.members().filter(|(name, _)| name != "progressToken") {
        if meta.len() > 1 {
            meta.push(b',');
        }
        write_string(&name, &mut meta);
        meta.push(b':');
        meta.extend_from_slice(value.as_bytes());
    }
    meta.push(b'}');
    Raw::parse(meta).unwrap_or(Raw::empty_object())
}

fn refused(id: &RequestId, error: &Raw) -> Bytes {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    id.write(&mut out);
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error.as_bytes());
    out.push(b'}');
    out.into()
}

fn no_message(status: StatusCode) -> BridgeFault {
    if status.is_success() {
        BridgeFault::Invalid("neither JSON nor an event stream")
    } else {
        BridgeFault::Status(status.as_u16())
    }
}

/// The messages of a JSON body; `None` if it is no message.
async fn whole(answer: EgressStream) -> Result<Option<Vec<LineMessage>>, BridgeFault> {
    if !is_json(&answer.headers) {
        return Ok(None);
    }
    let body = answer.whole().await?.body;
    let read = MessageBody::read(body).ok();
    let has_answer = |messages: &Vec<LineMessage>| {
        let mut sorts = messages.iter().map(|message| &message.sort);
        sorts.any(|sort| matches!(sort, Sort::Response { .. }))
    };
    Ok(read.map(MessageBody::into_messages).filter(has_answer))
}

/// The result of a request of the bridge.
async fn only_result(answer: EgressStream, id: &RequestId) -> Result<Option<Raw>, BridgeFault> {
    let is_own = |message: &LineMessage| message.answers(id);
    if answer.status.is_success() && is_events(&answer.headers) {
        let (mut events, mut place) = (Events::new(answer), StreamPosition::default());
        while let Some(event) = events.next(&mut place).await {
            let messages = MessageBody::read(event.data).map(MessageBody::into_messages);
            let found = messages.unwrap_or_default().into_iter().find(is_own);
            if let Some(message) = found {
                return Ok(message.raw.get("result"));
            }
        }
        return Ok(None);
    }
    let messages = whole(answer).await?.unwrap_or_default();
    Ok(messages
        .into_iter()
        .find(is_own)
        .and_then(|message| message.raw.get("result")))
}

fn code(error: &Raw) -> i64 {
    let code = error.get("code");
    code.and_then(|code| code.as_str().parse().ok())
        .unwrap_or_default()
}

/// The newest revision of this era that is known here.
pub(crate) const NEWEST: Revision = Revision::V2026_07_28;
