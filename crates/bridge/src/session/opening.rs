//! Opens a session: the first one in the client's words, later ones in its place.

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use http::StatusCode;
use portolan_net::egress::EgressStream;
use portolan_protocol::{
    jsonrpc::{Raw, RequestId},
    method::Method,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::{
    Agreed, NO_STREAM, OWN, OpenRequests, PAUSE, RemoteSession, Seat, Transport, lock, session_id,
};
use crate::{
    account::For,
    fault::BridgeFault,
    lines::Out,
    message::{self, LineMessage, MessageBody, Sort},
    note::Notes,
    stream::{Events, StreamPosition, is_events, is_json},
    wire::Wire,
};

/// Whether a renewal waits for the GET stream, so that no change is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GetStream {
    /// It does.
    Awaited,
    /// It does not: the reader of that stream asks for it.
    NotAwaited,
}

/// Time for the `endpoint` event of HTTP+SSE.
const ENDPOINT: Duration = Duration::from_secs(30);
/// The longest pause between two tries to open a lost session again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What became of a client's `initialize`.
#[derive(Debug)]
pub(crate) enum SessionOpening {
    /// The session, and the server's answer to be passed on.
    RemoteSession(RemoteSession, Raw),
    /// The server refused the handshake: it may be one of 2026-07-28, or of 2024-11-05. Holds the
    /// error that the server sent, if it sent one.
    Refused(Option<Raw>),
}

/// Sends the client's `initialize` as it is.
pub(crate) async fn open(
    wire: &Arc<Wire>,
    out: &Out,
    notes: Notes,
    hello: &LineMessage,
) -> Result<SessionOpening, BridgeFault> {
    let Sort::Request { id, .. } = &hello.sort else {
        return Err(BridgeFault::Invalid("the handshake is no request"));
    };
    let body = hello.raw.bytes().clone();
    let answer = wire.ask(&wire.url, &Vec::new(), body).await?;
    let status = answer.status;
    if !status.is_success() {
        // 401, 403 and 429 were handled before; a server error says nothing of the era.
        if !status.is_client_error() {
            return Err(BridgeFault::Status(status.as_u16()));
        }
        return Ok(SessionOpening::Refused(refusal(answer).await));
    }
    let session = session_id(&answer.headers)?;
    let answered = first_answer(answer, id, out).await?;
    let Some(result) = answered.get("result") else {
        return Ok(SessionOpening::Refused(Some(answered)));
    };
    let seat = Seat {
        generation: 0,
        id: session,
        post: wire.url.clone(),
    };
    let agreed = Agreed::read(&result)?;
    let made = RemoteSession::new(
        Arc::clone(wire),
        out.clone(),
        notes,
        Transport::Streamable,
        hello.params(),
        agreed,
        seat,
    );
    Ok(SessionOpening::RemoteSession(made, answered))
}

/// The error of a refusal, if it is one of the protocol.
async fn refusal(answer: EgressStream) -> Option<Raw> {
    if !is_json(&answer.headers) {
        return None;
    }
    match MessageBody::read(answer.whole().await.ok()?.body) {
        Ok(MessageBody::One(message)) if message.raw.get("error").is_some() => Some(message.raw),
        _ => None,
    }
}

/// Reads an answer to `id`; other messages before it are passed on.
async fn first_answer(answer: EgressStream, id: &RequestId, out: &Out) -> Result<Raw, BridgeFault> {
    let is_answer = |message: &LineMessage| message.answers(id);
    if is_json(&answer.headers) {
        let read = MessageBody::read(answer.whole().await?.body);
        let read = read.map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
        let mut messages = read.into_messages().into_iter();
        let found = messages.find(is_answer);
        return found
            .map(|message| message.raw)
            .ok_or(BridgeFault::Invalid("it answered another request"));
    }
    if !is_events(&answer.headers) {
        return Err(BridgeFault::Invalid("neither JSON nor an event stream"));
    }
    let (mut events, mut place) = (Events::new(answer), StreamPosition::default());
    while let Some(event) = events.next(&mut place).await {
        let read = MessageBody::read(event.data);
        let read = read.map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
        for message in read.into_messages() {
            if is_answer(&message) {
                return Ok(message.raw);
            }
            if matches!(message.sort, Sort::Notification { .. }) {
                out.write(message.raw.bytes().clone()).await;
            }
        }
    }
    Err(BridgeFault::Lost)
}

/// Opens the one stream of HTTP+SSE. `None` if the server has none.
pub(crate) async fn open_one_stream(
    wire: &Arc<Wire>,
    out: &Out,
    notes: Notes,
    hello: &LineMessage,
) -> Result<Option<(RemoteSession, Raw)>, BridgeFault> {
    let Some((events, post)) = one_stream(wire, For::Client).await? else {
        return Ok(None);
    };
    let Sort::Request { id, .. } = &hello.sort else {
        return Err(BridgeFault::Invalid("the handshake is no request"));
    };
    let seat = Seat {
        generation: 0,
        id: None,
        post,
    };
    // The answer holds the agreement; until then nothing else is sent.
    let (reader, ours) = (OneStream { events }, id.clone());
    let (answered, rest) = reader.first(wire, &seat, hello, &ours, out).await?;
    let Some(result) = answered.get("result") else {
        return Err(BridgeFault::Invalid("it refused the handshake"));
    };
    let session = RemoteSession::new(
        Arc::clone(wire),
        out.clone(),
        notes,
        Transport::OneStream,
        hello.params(),
        Agreed::read(&result)?,
        seat,
    );
    session.read_one_stream(rest.events, 0);
    Ok(Some((session, answered)))
}

struct OneStream {
    events: Events,
}

impl OneStream {
    /// Sends the handshake and reads its answer.
    async fn first(
        mut self,
        wire: &Wire,
        seat: &Seat,
        hello: &LineMessage,
        id: &RequestId,
        out: &Out,
    ) -> Result<(Raw, Self), BridgeFault> {
        let body = hello.raw.bytes().clone();
        let posted = wire.ask(&seat.post, &Vec::new(), body).await?;
        if !posted.status.is_success() {
            return Err(BridgeFault::Status(posted.status.as_u16()));
        }
        let mut place = StreamPosition::default();
        while let Some(event) = self.events.next(&mut place).await {
            if event.event != "message" {
                continue;
            }
            let read = MessageBody::read(event.data);
            let read = read.map_err(|_| BridgeFault::Invalid("what it sent is no message"))?;
            for message in read.into_messages() {
                match &message.sort {
                    Sort::Response { id: Some(own) } if own == id => {
                        return Ok((message.raw, self));
                    }
                    Sort::Notification { .. } => out.write(message.raw.bytes().clone()).await,
                    _ => {}
                }
            }
        }
        Err(BridgeFault::Lost)
    }
}

/// Opens the stream and waits for its `endpoint` event.
async fn one_stream(wire: &Wire, purpose: For) -> Result<Option<(Events, Url)>, BridgeFault> {
    let none = Vec::new();
    let opening = wire.listen(&wire.url, &none, purpose);
    let answer = tokio::time::timeout(ENDPOINT, opening)
        .await
        .map_err(|_| BridgeFault::Unreachable("it opens no stream in time".into()))??;
    if !answer.status.is_success() || !is_events(&answer.headers) {
        return Ok(None);
    }
    let (mut events, mut place) = (Events::new(answer), StreamPosition::default());
    let first = tokio::time::timeout(ENDPOINT, events.next(&mut place)).await;
    let event = match first {
        Ok(Some(event)) if event.event == "endpoint" => event,
        _ => return Ok(None),
    };
    let post = wire.url.join(event.data.trim());
    let post = post.map_err(|_| BridgeFault::Invalid("its endpoint event is no address"))?;
    // The credential goes there.
    if post.origin() != wire.url.origin() {
        return Err(BridgeFault::Invalid(
            "its endpoint event leads to another origin",
        ));
    }
    Ok(Some((events, post)))
}

impl RemoteSession {
    fn new(
        wire: Arc<Wire>,
        out: Out,
        notes: Notes,
        transport: Transport,
        hello: Raw,
        agreed: Agreed,
        seat: Seat,
    ) -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        notes.detail(&format!("the session speaks {}", agreed.version));
        let this = Self(Arc::new(super::SessionInner {
            wire,
            out,
            notes,
            transport,
            hello,
            agreed,
            seat: Mutex::new(seat),
            waiting: Mutex::new(OpenRequests::default()),
            renewing: tokio::sync::Mutex::default(),
            count: AtomicU64::new(1),
            is_ready: watch::Sender::new(false),
            standing: watch::Sender::new(NO_STREAM),
            renewed: watch::Sender::new(0),
            queue,
            unsent: Arc::default(),
            reader: Mutex::default(),
            sender: Mutex::default(),
        }));
        this.start_sender(queued);
        this
    }

    /// Opens the session again, if it is still that of `generation`. The client does not notice:
    /// the same capabilities, the same log level, the same subscriptions.
    pub(super) async fn renew(
        &self,
        generation: u64,
        stream: GetStream,
    ) -> Result<(), BridgeFault> {
        let _one = self.0.renewing.lock().await;
        if self.seat().generation != generation {
            return Ok(());
        }
        self.0
            .notes
            .say("The server has ended the session; it is opened again.");
        let opened = match self.0.transport {
            Transport::Streamable => self.open_again(generation).await,
            Transport::OneStream => self.open_stream_again(generation).await,
        };
        let agreed = opened.map_err(|fault| match fault {
            BridgeFault::Refused(_) | BridgeFault::NotSignedIn(_) | BridgeFault::Unreachable(_) => {
                fault
            }
            other => BridgeFault::SessionGone(other.to_string()),
        })?;
        if agreed.version != self.0.agreed.version {
            return Err(BridgeFault::SessionGone(
                "the server speaks another revision now; start the client again".into(),
            ));
        }
        let ready = message::notification(Method::Initialized.name(), None);
        let seat = self.seat();
        let headers = self.headers(&seat);
        self.0.wire.tell(&seat.post, &headers, ready).await?;
        self.0.renewed.send_replace(seat.generation);
        if stream == GetStream::Awaited {
            let mut standing = self.0.standing.subscribe();
            let is_open = |open: &u64| [seat.generation, NO_STREAM].contains(open);
            let _ = tokio::time::timeout(PAUSE, standing.wait_for(is_open)).await;
        }
        self.restore().await;
        self.announce().await;
        Ok(())
    }

    async fn open_again(&self, generation: u64) -> Result<Agreed, BridgeFault> {
        let id = self.new_id();
        let body = message::request(&id, Method::Initialize.name(), &self.0.hello);
        let wire = &self.0.wire;
        let answer = wire.ask(&wire.url, &Vec::new(), body).await?;
        if !answer.status.is_success() {
            return Err(BridgeFault::Status(answer.status.as_u16()));
        }
        let session = session_id(&answer.headers)?;
        let answered = first_answer(answer, &id, &self.0.out).await?;
        let result = answered.get("result");
        let agreed =
            Agreed::read(&result.ok_or(BridgeFault::Invalid("it refused the handshake"))?)?;
        *lock(&self.0.seat) = Seat {
            generation: generation + 1,
            id: session,
            post: wire.url.clone(),
        };
        Ok(agreed)
    }

    async fn open_stream_again(&self, generation: u64) -> Result<Agreed, BridgeFault> {
        let opened = one_stream(&self.0.wire, For::Ourselves).await?;
        let (events, post) = opened.ok_or(BridgeFault::Invalid("it opens no stream"))?;
        *lock(&self.0.seat) = Seat {
            generation: generation + 1,
            id: None,
            post,
        };
        self.read_one_stream(events, generation + 1);
        let result = self
            .ask_ourselves(Method::Initialize, &self.0.hello.clone())
            .await?;
        Agreed::read(&result)
    }

    /// Reads the one stream until it ends; then opens the session again.
    pub(super) fn read_one_stream(&self, mut events: Events, generation: u64) {
        let weak = Arc::downgrade(&self.0);
        let reader = self.0.wire.tasks.spawn(async move {
            let mut place = StreamPosition::default();
            while let Some(event) = events.next(&mut place).await {
                let Some(inner) = weak.upgrade() else { return };
                let this = Self(inner);
                let handed = this.hand_event(&event.event, event.data, generation, None);
                if handed.await.is_err() {
                    break;
                }
            }
            drop(events);
            let Some(inner) = weak.upgrade() else { return };
            let this = Self(inner);
            let open: Vec<RequestId> = this.waiting().client.keys().cloned().collect();
            this.fail(&open, &BridgeFault::Lost).await;
            // In a task of its own: this one is replaced by the new reader.
            let tasks = this.0.wire.tasks.clone();
            tasks.spawn(async move { this.reopen(generation).await });
        });
        *lock(&self.0.reader) = Some(AbortOnDropHandle::new(reader));
    }

    async fn reopen(&self, generation: u64) {
        let mut pause = PAUSE;
        while self.seat().generation == generation {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if let Err(fault) = self.renew(generation, GetStream::NotAwaited).await {
                self.0.notes.detail(&fault.to_string());
            }
        }
    }

    /// Gives the new session what the client told the old one.
    async fn restore(&self) {
        let (level, uris) = {
            let waiting = self.waiting();
            let uris: Vec<Raw> = waiting.uris.values().cloned().collect();
            (waiting.level.clone(), uris)
        };
        if let Some(level) = level {
            let _ = self.ask_ourselves(Method::SetLevel, &level).await;
        }
        for uri in uris {
            let _ = self.ask_ourselves(Method::ResourcesSubscribe, &uri).await;
        }
    }

    /// Changes may have been missed: the client reads the lists again.
    async fn announce(&self) {
        let lists = [
            ("tools", Method::ToolsListChanged),
            ("prompts", Method::PromptsListChanged),
            ("resources", Method::ResourcesListChanged),
        ];
        for (capability, method) in lists {
            let declared = self.0.agreed.capabilities.get(capability);
            let changes = declared.and_then(|raw| raw.get("listChanged")?.boolean());
            if changes == Some(true) {
                let changed = message::notification(method.name(), None);
                self.0.out.write(changed).await;
            }
        }
    }

    /// A request of the bridge itself.
    async fn ask_ourselves(&self, method: Method, params: &Raw) -> Result<Raw, BridgeFault> {
        let id = self.new_id();
        let body = message::request(&id, method.name(), params);
        let seat = self.seat();
        let headers = self.headers(&seat);
        if self.0.transport == Transport::Streamable {
            let answer = self.0.wire.ask(&seat.post, &headers, body).await?;
            if answer.status == StatusCode::NOT_FOUND || !answer.status.is_success() {
                return Err(BridgeFault::Status(answer.status.as_u16()));
            }
            let read = first_answer(answer, &id, &self.0.out);
            let answered = tokio::time::timeout(OWN, read)
                .await
                .map_err(|_| BridgeFault::Lost)??;
            return answered
                .get("result")
                .ok_or(BridgeFault::Invalid("it refused its session"));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting().own.insert(id.clone(), sender);
        let posted = self.0.wire.ask(&seat.post, &headers, body).await?;
        if !posted.status.is_success() {
            self.waiting().own.remove(&id);
            return Err(BridgeFault::Status(posted.status.as_u16()));
        }
        match tokio::time::timeout(OWN, receiver).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(BridgeFault::Lost),
        }
    }
}
