//! A client and a server that both have sessions: 2024-11-05 to 2025-11-25. Messages pass
//! unchanged; the session at the server is opened again when the server has forgotten it.

mod opening;
mod passing;
mod standing;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use portolan_net::egress::EgressStream;
use portolan_protocol::{
    jsonrpc::{Raw, RequestId},
    method::Method,
    revision::Revision,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use self::opening::GetStream;
pub(crate) use self::opening::{SessionOpening, open, open_one_stream};
use crate::{
    fault::BridgeFault,
    lines::Out,
    message::{self, LineMessage, MessageBody, Sort},
    note::Notes,
    stream::is_events,
    wire::{Headers, Wire},
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Most attempts to resume a stream without a new event.
const TRIES: u32 = 5;
/// Pause before a stream is resumed, if the server names none.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for an answer to a request of the bridge itself.
const OWN: Duration = Duration::from_secs(60);
/// [`SessionInner::standing`] of a server without a GET stream.
const NO_STREAM: u64 = u64::MAX;
/// Prefix of the ids of such requests; no client uses it.
const OWN_ID: &str = "portolan-connect-";

/// What both sides agreed on.
#[derive(Debug, Clone)]
pub(crate) struct Agreed {
    version: String,
    /// Capabilities that the server declared.
    capabilities: Raw,
}

impl Agreed {
    /// Reads the result of `initialize`.
    pub(crate) fn read(result: &Raw) -> Result<Self, BridgeFault> {
        let version = result.get("protocolVersion").and_then(|raw| raw.string());
        Ok(Self {
            version: version.ok_or(BridgeFault::Invalid("its handshake names no version"))?,
            capabilities: result.get("capabilities").unwrap_or(Raw::empty_object()),
        })
    }

    fn revision(&self) -> Option<Revision> {
        self.version.parse().ok()
    }

    /// A revision that is not known here is newer than those without the header.
    fn has_header(&self) -> bool {
        self.revision()
            .is_none_or(|revision| revision >= Revision::V2025_06_18)
    }

    fn is_resumable(&self) -> bool {
        self.revision()
            .is_none_or(|revision| revision.facts().resumable)
    }

    fn has_batches(&self) -> bool {
        self.revision()
            .is_some_and(|revision| revision.facts().batches || revision == Revision::V2024_11_05)
    }
}

/// The session at the server that is used now.
#[derive(Debug, Clone)]
struct Seat {
    /// Counts the sessions.
    generation: u64,
    id: Option<HeaderValue>,
    /// Where messages are posted.
    post: Url,
}

/// How the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE of 2024-11-05: all messages of the server come by one stream.
    OneStream,
}

/// A request of the server.
#[derive(Debug, Clone)]
struct ServerRequest {
    /// The session that it belongs to.
    generation: u64,
    /// The request on whose stream it came.
    during: Option<RequestId>,
}

/// A request of the client.
#[derive(Debug, Default)]
struct ClientRequest {
    is_cancelled: bool,
    /// Ends the task that sends it. The task gets the cancellation, and sends it after the request.
    stop: Option<oneshot::Sender<Unsent>>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    /// Requests of the client.
    client: HashMap<RequestId, ClientRequest>,
    /// Requests of the server.
    server: HashMap<RequestId, ServerRequest>,
    /// Requests of the bridge.
    own: HashMap<RequestId, oneshot::Sender<Result<Raw, BridgeFault>>>,
    /// State of the client that a new session needs: the log level and subscriptions.
    level: Option<Raw>,
    uris: BTreeMap<String, Raw>,
}

/// A message without an answer on its way to the server. It is counted until it is dropped.
#[derive(Debug)]
struct Unsent {
    body: Bytes,
    count: Arc<AtomicUsize>,
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A conversation. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RemoteSession(Arc<SessionInner>);

#[derive(Debug)]
struct SessionInner {
    wire: Arc<Wire>,
    out: Out,
    notes: Notes,
    transport: Transport,
    /// Parameters of the client's `initialize`.
    hello: Raw,
    agreed: Agreed,
    seat: Mutex<Seat>,
    waiting: Mutex<OpenRequests>,
    renewing: tokio::sync::Mutex<()>,
    count: AtomicU64,
    /// True once the server has `notifications/initialized`.
    is_ready: watch::Sender<bool>,
    /// The session whose GET stream is open; [`NO_STREAM`] if the server has none.
    standing: watch::Sender<u64>,
    /// Counts the sessions, for the reader of the GET stream.
    renewed: watch::Sender<u64>,
    /// Messages without an answer, in order.
    queue: mpsc::UnboundedSender<Unsent>,
    /// Messages without an answer that are not sent yet. The program waits for them before it ends.
    unsent: Arc<AtomicUsize>,
    /// Reads what the server sends by itself.
    reader: Mutex<Option<AbortOnDropHandle<()>>>,
    /// Sends the queue.
    sender: Mutex<Option<AbortOnDropHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RemoteSession {
    fn seat(&self) -> Seat {
        lock(&self.0.seat).clone()
    }

    fn waiting(&self) -> MutexGuard<'_, OpenRequests> {
        lock(&self.0.waiting)
    }

    fn headers(&self, seat: &Seat) -> Headers {
        let mut headers = Vec::with_capacity(3);
        if self.0.transport == Transport::OneStream {
            return headers;
        }
        if self.0.agreed.has_header()
            && let Ok(version) = HeaderValue::from_str(&self.0.agreed.version)
        {
            headers.push((PROTOCOL_VERSION, version));
        }
        if let Some(id) = &seat.id {
            headers.push((SESSION_ID, id.clone()));
        }
        headers
    }

    fn new_id(&self) -> RequestId {
        let number = self.0.count.fetch_add(1, Ordering::Relaxed);
        RequestId::from(format!("{OWN_ID}{number}"))
    }

    /// Takes a line of the client.
    pub(crate) fn take(&self, body: MessageBody) {
        match body {
            MessageBody::One(message) => self.take_one(message),
            MessageBody::Batch(messages) if self.0.agreed.has_batches() => {
                self.take_batch(messages)
            }
            MessageBody::Batch(_) => {
                let error = message::own_error(-32600, "This revision has no batches");
                self.answer(message::error(None, &error));
            }
        }
    }

    fn take_one(&self, message: LineMessage) {
        match &message.sort {
            Sort::Request { id, method } => {
                self.remember(method, &message);
                let (stop, stopped) = oneshot::channel();
                let request = ClientRequest {
                    is_cancelled: false,
                    stop: Some(stop),
                };
                self.waiting().client.insert(id.clone(), request);
                let (this, id) = (self.clone(), id.clone());
                self.0.wire.tasks.spawn(async move {
                    let body = message.raw.bytes().clone();
                    this.ask_until(id, body, stopped).await;
                });
            }
            Sort::Notification { method } => {
                if let Some(id) = message.cancels()
                    && self.cancel(&id, message.raw.bytes())
                {
                    return;
                }
                if method == Method::Initialized.name() {
                    let this = self.clone();
                    self.0
                        .wire
                        .tasks
                        .spawn(async move { this.begin(message).await });
                } else {
                    self.tell(message.raw.bytes().clone());
                }
            }
            Sort::Response { id } => {
                let generation = self.seat().generation;
                let asked = id.as_ref().and_then(|id| self.waiting().server.remove(id));
                // An answer to a session that is over concerns the new one not at all.
                if asked.is_none_or(|asked| asked.generation == generation) {
                    self.tell(message.raw.bytes().clone());
                }
            }
        }
    }

    fn take_batch(&self, messages: Vec<LineMessage>) {
        let mut body = b"[".to_vec();
        let mut ids = Vec::new();
        for message in &messages {
            if body.len() > 1 {
                body.push(b',');
            }
            body.extend_from_slice(message.raw.as_bytes());
            match &message.sort {
                Sort::Request { id, .. } => ids.push(id.clone()),
                Sort::Response { id: Some(id) } => {
                    self.waiting().server.remove(id);
                }
                _ => {}
            }
        }
        body.push(b']');
        if ids.is_empty() {
            self.tell(body.into());
            return;
        }
        for id in &ids {
            let request = ClientRequest::default();
            self.waiting().client.insert(id.clone(), request);
        }
        let this = self.clone();
        self.0
            .wire
            .tasks
            .spawn(async move { this.ask(ids, body.into()).await });
    }

    /// Marks a request as cancelled. True if the task that sends it takes over the cancellation, so
    /// that the server never receives it before the request.
    fn cancel(&self, id: &RequestId, cancellation: &Bytes) -> bool {
        let mut waiting = self.waiting();
        let Some(request) = waiting.client.get_mut(id) else {
            return false;
        };
        request.is_cancelled = true;
        let stop = request.stop.take();
        stop.is_some_and(|stop| stop.send(self.unsent(cancellation.clone())).is_ok())
    }

    fn unsent(&self, body: Bytes) -> Unsent {
        let count = Arc::clone(&self.0.unsent);
        count.fetch_add(1, Ordering::Relaxed);
        Unsent { body, count }
    }

    /// Keeps what a new session must be given again.
    fn remember(&self, method: &str, message: &LineMessage) {
        let params = message.params();
        let uri = || params.get("uri").and_then(|uri| uri.string());
        match Method::from_name(method) {
            Some(Method::SetLevel) => self.waiting().level = Some(params),
            Some(Method::ResourcesSubscribe) => {
                if let Some(uri) = uri() {
                    self.waiting().uris.insert(uri, params);
                }
            }
            Some(Method::ResourcesUnsubscribe) => {
                if let Some(uri) = uri() {
                    self.waiting().uris.remove(&uri);
                }
            }
            _ => {}
        }
    }

    fn answer(&self, json: Bytes) {
        let out = self.0.out.clone();
        self.0
            .wire
            .tasks
            .spawn(async move { out.write(json).await });
    }

    fn tell(&self, body: Bytes) {
        // The sender lives as long as the session.
        let _ = self.0.queue.send(self.unsent(body));
    }

    /// Sends `notifications/initialized`, then lets the other messages pass.
    async fn begin(&self, message: LineMessage) {
        self.post(message.raw.bytes().clone()).await;
        self.0.is_ready.send_replace(true);
        if self.0.transport == Transport::Streamable {
            let this = self.clone();
            let reader = self.0.wire.tasks.spawn(async move { this.stand().await });
            *lock(&self.0.reader) = Some(AbortOnDropHandle::new(reader));
        }
    }

    /// Sends the queue in its order.
    fn start_sender(&self, mut queue: mpsc::UnboundedReceiver<Unsent>) {
        let weak = Arc::downgrade(&self.0);
        let sender = self.0.wire.tasks.spawn(async move {
            while let Some(message) = queue.recv().await {
                let Some(inner) = weak.upgrade() else { return };
                let this = Self(inner);
                this.ready().await;
                this.post(message.body.clone()).await;
            }
        });
        *lock(&self.0.sender) = Some(AbortOnDropHandle::new(sender));
    }

    /// POSTs what has no answer.
    async fn post(&self, body: Bytes) {
        for _ in 0..2 {
            let seat = self.seat();
            let headers = self.headers(&seat);
            match self.0.wire.tell(&seat.post, &headers, body.clone()).await {
                Ok(answer) if self.is_gone(&answer, &seat) => {
                    if self
                        .renew(seat.generation, GetStream::Awaited)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
                Ok(answer) if answer.status.is_success() => {
                    // Read to its end, so that the connection serves the next message.
                    if !is_events(&answer.headers) {
                        let _ = tokio::time::timeout(PAUSE, answer.whole()).await;
                    }
                    return;
                }
                Ok(answer) => {
                    let status = answer.status.as_u16();
                    self.0
                        .notes
                        .detail(&format!("a message was refused with HTTP status {status}"));
                    return;
                }
                Err(fault) => {
                    self.0.notes.say(&fault.to_string());
                    return;
                }
            }
        }
    }

    /// Waits for `notifications/initialized`.
    async fn ready(&self) {
        let mut ready = self.0.is_ready.subscribe();
        // A client that never sends it is served all the same.
        let _ = tokio::time::timeout(PAUSE, ready.wait_for(|is_ready| *is_ready)).await;
    }

    /// True if the server does not know the session: it processed nothing.
    fn is_gone(&self, answer: &EgressStream, seat: &Seat) -> bool {
        answer.status == StatusCode::NOT_FOUND
            && (seat.id.is_some() || self.0.transport == Transport::OneStream)
    }

    /// Sends a request until the client cancels it. A request that was not sent by then is never
    /// sent (MCP-X-77).
    async fn ask_until(&self, id: RequestId, body: Bytes, stopped: oneshot::Receiver<Unsent>) {
        let is_sent = AtomicBool::new(false);
        let asking = async {
            self.ready().await;
            is_sent.store(true, Ordering::Relaxed);
            self.ask(vec![id.clone()], body).await;
        };
        let cancellation = tokio::select! {
            biased;
            Ok(cancellation) = stopped => cancellation,
            () = asking => return,
        };
        self.waiting().client.remove(&id);
        if is_sent.into_inner() {
            // The sender lives as long as the session.
            let _ = self.0.queue.send(cancellation);
        }
    }

    /// Sends requests of the client and passes on what comes back. Each of them has an answer in
    /// the end.
    async fn ask(&self, ids: Vec<RequestId>, body: Bytes) {
        self.ready().await;
        let fault = match self.exchange(&ids, body).await {
            // The answer comes by the one stream.
            Ok(()) if self.0.transport == Transport::OneStream => return,
            Ok(()) => BridgeFault::Lost,
            Err(fault) => fault,
        };
        self.fail(&ids, &fault).await;
    }

    /// Answers those of the requests that still wait.
    async fn fail(&self, ids: &[RequestId], fault: &BridgeFault) {
        for id in ids {
            if self.settle(id) {
                self.0.notes.say(&fault.to_string());
                self.0
                    .out
                    .write(message::error(Some(id), &fault.to_rpc()))
                    .await;
            }
        }
    }

    /// Opens the session again in a task of its own: a request that is cancelled meanwhile does not
    /// leave it half open.
    async fn renew_apart(&self, generation: u64) -> Result<(), BridgeFault> {
        let this = self.clone();
        let tasks = &self.0.wire.tasks;
        let renewal = tasks.spawn(async move { this.renew(generation, GetStream::Awaited).await });
        renewal.await.unwrap_or(Err(BridgeFault::Lost))
    }

    /// Removes a request of the client; true if the client waits for its answer.
    fn settle(&self, id: &RequestId) -> bool {
        let request = self.waiting().client.remove(id);
        request.is_some_and(|request| !request.is_cancelled)
    }

    async fn exchange(&self, ids: &[RequestId], body: Bytes) -> Result<(), BridgeFault> {
        let mut has_renewed = false;
        loop {
            let seat = self.seat();
            let headers = self.headers(&seat);
            let answer = self.0.wire.ask(&seat.post, &headers, body.clone()).await?;
            if self.is_gone(&answer, &seat) && !has_renewed {
                has_renewed = true;
                self.renew_apart(seat.generation).await?;
                continue;
            }
            return self.pass(answer, ids, &seat).await;
        }
    }

    /// The request on whose stream a request of the server came, if it came on one.
    pub(crate) fn during(&self, id: &RequestId) -> Option<RequestId> {
        self.waiting().server.get(id)?.during.clone()
    }

    /// The revision on which both sides agreed, if it is one that is known here.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.0.agreed.revision()
    }

    /// How many requests of the client wait.
    pub(crate) fn count_open(&self) -> usize {
        self.waiting()
            .client
            .values()
            .filter(|request| !request.is_cancelled)
            .count()
    }

    /// How many messages without an answer are on their way to the server.
    pub(crate) fn count_unsent(&self) -> usize {
        self.0.unsent.load(Ordering::Relaxed)
    }

    /// Ends the session at the server.
    pub(crate) async fn end(&self) {
        drop(lock(&self.0.reader).take());
        let seat = self.seat();
        if self.0.transport == Transport::Streamable && seat.id.is_some() {
            self.0.wire.end(&seat.post, &self.headers(&seat)).await;
        }
    }
}

/// The id that a server gave to the session, if it can be sent back.
fn session_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, BridgeFault> {
    let Some(value) = headers.get(SESSION_ID) else {
        return Ok(None);
    };
    let is_visible = value
        .as_bytes()
        .iter()
        .all(|byte| (0x21..=0x7e).contains(byte));
    if value.is_empty() || !is_visible {
        return Err(BridgeFault::Invalid(
            "the id of its session is no visible ASCII",
        ));
    }
    let mut value = value.clone();
    value.set_sensitive(true);
    Ok(Some(value))
}
