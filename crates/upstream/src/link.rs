//! 2024-11-05: a session is one open event stream, by which every message of the server comes; ours
//! are POSTed beside it. It lives and dies with the connection, so that only the node that holds it
//! can use it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use portolan_net::egress::EgressStream;
use portolan_protocol::{
    jsonrpc::RequestId,
    method::Method,
    revision::Revision,
    sse::{Decoder, SseEvent as Frame},
};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use url::Url;

use crate::{
    endpoint::{Client, Speaker, is_events, refusal},
    error::UpstreamError,
    exchange::{Exchange, unavailable},
    legacy::handshake,
    message::Incoming,
    outgoing::{self, Request},
    peer::{self, Headers, Peer},
    server_facts::ServerFacts,
};

/// Messages for one request that wait to be taken; the stream waits beyond that.
const WAITING: usize = 256;

/// Requests that wait for an answer from the stream.
#[derive(Debug, Default)]
struct WaitingCalls {
    by_id: HashMap<RequestId, (u64, mpsc::Sender<Incoming>)>,
    made: u64,
    /// Receiver of messages that belong to no request.
    standing: Option<mpsc::Sender<Incoming>>,
    /// The stream is over: no more messages are delivered.
    is_over: bool,
}

/// A session of HTTP+SSE. Dropping the last of it closes the stream, and with it the session
/// (MCP-O-6).
#[derive(Debug)]
pub struct Link {
    pub(crate) client: Client,
    /// Address to which messages are posted.
    pub(crate) post: Url,
    revision: OnceLock<Revision>,
    waiting: Arc<Mutex<WaitingCalls>>,
    _stop: DropGuard,
}

fn lock(waiting: &Mutex<WaitingCalls>) -> MutexGuard<'_, WaitingCalls> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Opens the stream, waits for its `endpoint` event (MCP-O-2) and shakes hands. The stream is
    /// read by a task of `tracker`.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn open(
        client: &Client,
        speaker: &Speaker,
        tracker: &TaskTracker,
    ) -> Result<(Arc<Self>, ServerFacts), UpstreamError> {
        let silence = client.limits().silence;
        let mut body = client.get(client.url(), &[]).await?;
        if !body.status.is_success() {
            return Err(refusal(body.status, &body.headers));
        }
        if !is_events(&body.headers) {
            return Err(UpstreamError::violation(
                "neither its POST nor its GET speaks MCP",
            ));
        }
        let mut decoder = Decoder::new(client.limits().answer_bytes);
        let first = timeout(silence, endpoint_event(&mut body, &mut decoder))
            .await
            .map_err(|_| UpstreamError::Timeout(silence))??;
        let post = client.url().join(first.endpoint.trim());
        let post =
            post.map_err(|_| UpstreamError::violation("its endpoint event is no address"))?;
        // Our credential goes there.
        if post.origin() != client.url().origin() {
            return Err(UpstreamError::violation(
                "its endpoint event leads to another origin",
            ));
        }
        let stop = CancellationToken::new();
        let waiting = Arc::<Mutex<WaitingCalls>>::default();
        let link = Arc::new(Self {
            client: client.clone(),
            post,
            revision: OnceLock::new(),
            waiting: Arc::clone(&waiting),
            _stop: stop.clone().drop_guard(),
        });
        let reader = LinkReader {
            client: client.clone(),
            link: Arc::downgrade(&link),
            waiting,
        };
        tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = reader.read(body, decoder, first.rest) => {}
            }
            // All waiting requests end, because no answer can arrive.
            let mut waiting = lock(&reader.waiting);
            waiting.is_over = true;
            waiting.by_id.clear();
            waiting.standing = None;
        });
        let opening = handshake(speaker);
        let opening = link.call(outgoing::new_id(), &opening).await?;
        let result = opening.only_answer().await?;
        let facts = ServerFacts::of_handshake(&result)?;
        let _ = link.revision.set(facts.revision);
        peer::notify(&*link, Method::Initialized.name(), None).await?;
        Ok((link, facts))
    }

    /// True once the stream is over.
    pub fn is_over(&self) -> bool {
        lock(&self.waiting).is_over
    }

    /// Routes messages that belong to no request to the returned receiver from now on.
    pub(crate) fn stand(&self) -> mpsc::Receiver<Incoming> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut waiting = lock(&self.waiting);
        if !waiting.is_over {
            waiting.standing = Some(sender);
        }
        receiver
    }

    /// See [`crate::Connection::call_as`].
    pub(crate) async fn call(
        self: &Arc<Self>,
        id: RequestId,
        request: &Request<'_>,
    ) -> Result<Exchange, UpstreamError> {
        let begun = Instant::now();
        let (sender, receiver) = mpsc::channel(WAITING);
        {
            let mut waiting = lock(&self.waiting);
            if waiting.is_over {
                return Err(UpstreamError::SessionGone);
            }
            waiting.made += 1;
            let made = waiting.made;
            waiting.by_id.retain(|_, (_, sender)| !sender.is_closed());
            waiting.by_id.insert(id.clone(), (made, sender));
        }
        let body = outgoing::request(&id, request, None);
        let answer = self.client.post(&self.post, &[], body.into()).await?;
        if answer.status == http::StatusCode::NOT_FOUND {
            return Err(UpstreamError::SessionGone);
        }
        if !answer.status.is_success() {
            return Err(refusal(answer.status, &answer.headers));
        }
        Ok(Exchange::on_link(Arc::clone(self) as _, id, receiver, begun).of(request.method))
    }
}

impl Peer for Link {
    fn client(&self) -> &Client {
        &self.client
    }

    /// The revision agreed on; any legacy one may be (MCP-O-5).
    fn revision(&self) -> Revision {
        self.revision
            .get()
            .copied()
            .unwrap_or(Revision::V2024_11_05)
    }

    fn post(&self) -> Option<(&Url, Headers)> {
        Some((&self.post, Headers::new()))
    }

    fn resumption(&self) -> Option<Headers> {
        None
    }
}

struct First {
    endpoint: String,
    /// Events that came in the same piece.
    rest: Vec<Frame>,
}

async fn endpoint_event(
    body: &mut EgressStream,
    decoder: &mut Decoder,
) -> Result<First, UpstreamError> {
    loop {
        let Some(piece) = body.piece().await? else {
            return Err(UpstreamError::violation(
                "its event stream ended without an endpoint event",
            ));
        };
        let events = decoder
            .push(&piece)
            .map_err(|_| UpstreamError::TooMuch("one event may hold".into()))?;
        let mut events = events.into_iter();
        if let Some(first) = events.find(|event| event.event == "endpoint") {
            return Ok(First {
                endpoint: first.data,
                rest: events.collect(),
            });
        }
    }
}

struct LinkReader {
    client: Client,
    link: std::sync::Weak<Link>,
    waiting: Arc<Mutex<WaitingCalls>>,
}

impl LinkReader {
    async fn read(&self, mut body: EgressStream, mut decoder: Decoder, first: Vec<Frame>) {
        let mut frames = first;
        loop {
            for frame in std::mem::take(&mut frames) {
                if frame.event != "message" || frame.data.is_empty() {
                    continue;
                }
                match self.client.read(frame.data) {
                    Ok(messages) => {
                        for message in messages {
                            self.hand(message).await;
                        }
                    }
                    Err(error) => {
                        tracing::debug!(reason = %error, "an event stream upstream is given up");
                        return;
                    }
                }
            }
            let Ok(Some(piece)) = body.piece().await else {
                return;
            };
            let Ok(next) = decoder.push(&piece) else {
                return;
            };
            frames = next;
        }
    }

    /// Gives a message to the request that it belongs to (MCP-X-23).
    async fn hand(&self, message: Incoming) {
        let receiver = {
            let mut waiting = lock(&self.waiting);
            let own = match &message {
                Incoming::Response { id: Some(id), .. } => {
                    Some(waiting.by_id.remove(id).map(|(_, sender)| sender))
                }
                Incoming::Notification { method, params } if method == Method::Progress.name() => {
                    let token = params.get("progressToken");
                    let token = token.as_ref().and_then(RequestId::from_raw);
                    let known = token.and_then(|token| waiting.by_id.get(&token));
                    Some(known.map(|(_, sender)| sender.clone()))
                }
                Incoming::Notification { .. } => waiting.standing.clone().map(Some),
                _ => None,
            };
            // A message that names no request belongs to the newest one.
            own.unwrap_or_else(|| {
                let open = waiting.by_id.values().filter(|(_, to)| !to.is_closed());
                let newest = open.max_by_key(|(made, _)| *made);
                let newest = newest.map(|(_, sender)| sender.clone());
                newest.or_else(|| waiting.standing.clone())
            })
        };
        if let Some(receiver) = receiver {
            // The receiver may be gone.
            let _ = receiver.send(message).await;
        } else if let Incoming::Request { id, method, .. } = message
            && let Some(link) = self.link.upgrade()
        {
            let outcome = if method == Method::Ping.name() {
                Ok(portolan_protocol::jsonrpc::Raw::empty_object())
            } else {
                Err(unavailable(&method))
            };
            let _ = peer::answer(&*link, &id, &outcome).await;
        }
    }
}
