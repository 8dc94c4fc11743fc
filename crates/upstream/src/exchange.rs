//! One running request: the server's notifications and requests, and finally its answer.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode};
use portolan_net::egress::{EgressError, EgressStream};
use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    method::Method,
    progress::Progress,
    revision::Era,
    sse::Decoder,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    endpoint::{is_events, is_json, refusal},
    error::UpstreamError,
    message::{self, Incoming},
    outgoing::LAST_EVENT_ID,
    peer::{self, Peer},
};

/// Message of a server while a request runs.
#[derive(Debug, Clone)]
pub enum ExchangeEvent {
    /// How far it has come (MCP-X-76).
    Progress(Progress),
    /// A log message: the parameters of `notifications/message`.
    Log(Raw),
    /// It wants something of the client: answer it by [`crate::Connection::answer`], or it waits.
    Request {
        /// Its id, for the answer.
        id: RequestId,
        /// The method.
        method: String,
        /// The parameters.
        params: Raw,
    },
    /// Any other notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Raw,
    },
    /// The answer. Nothing follows it. A result of a modern server is `complete`, `input_required`
    /// or `task`.
    Answer(Result<Raw, RpcError>),
}

/// Most attempts to resume a stream without a new event.
const TRIES: u32 = 5;
/// Pause before a stream is resumed, if the server names no time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time that a server may make us wait for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Reason for the refusal of a server's request where no client can answer it (MCP-X-23).
const OUTSIDE: &str = "Not available outside a request";

#[derive(Debug)]
enum AnswerSource {
    /// All that will come is in the queue.
    Whole,
    /// An event stream.
    Stream {
        body: Box<EgressStream>,
        decoder: Decoder,
    },
    /// An event stream that broke before the answer.
    Broken,
    /// Messages for this request from the event stream of a session.
    Link(mpsc::Receiver<Incoming>),
}

/// A request that is under way.
#[derive(Debug)]
pub struct Exchange {
    peer: Arc<dyn Peer>,
    id: RequestId,
    source: AnswerSource,
    queue: VecDeque<Incoming>,
    last_event: Option<String>,
    pause: Option<Duration>,
    tries: u32,
    until: Instant,
    over: bool,
    /// The answer is a list, whose entries are checked one by one.
    is_list: bool,
}

impl Exchange {
    /// The id of the request, for [`crate::Connection::cancel`].
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// From the head of the answer to a POST.
    pub(crate) async fn begin(
        peer: Arc<dyn Peer>,
        id: RequestId,
        answer: EgressStream,
        begun: Instant,
    ) -> Result<Self, UpstreamError> {
        let limits = peer.client().limits().clone();
        let mut this = Self {
            peer,
            id,
            source: AnswerSource::Whole,
            queue: VecDeque::new(),
            last_event: None,
            pause: None,
            tries: 0,
            until: begun + limits.total,
            over: false,
            is_list: false,
        };
        let status = answer.status;
        if status.is_success() && is_events(&answer.headers) {
            this.source = AnswerSource::Stream {
                body: Box::new(answer),
                decoder: Decoder::new(limits.answer_bytes),
            };
            return Ok(this);
        }
        let refused = refusal(status, &answer.headers);
        let speaks = is_json(&answer.headers);
        // These statuses say nothing about MCP, independent of their bodies (MCP-X-4).
        let is_about_http = status.is_server_error()
            || matches!(
                status,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
            );
        if is_about_http || (!status.is_success() && !speaks) {
            return Err(refused);
        }
        if !speaks {
            return Err(UpstreamError::violation(
                "it answered with neither JSON nor an event stream",
            ));
        }
        let body = timeout(limits.silence, answer.whole())
            .await
            .map_err(|_| UpstreamError::Timeout(limits.silence))??
            .body;
        match this.peer.client().read(body) {
            Ok(messages) => this.queue.extend(messages),
            Err(_) if !status.is_success() => return Err(refused),
            Err(error) => return Err(error),
        }
        // MCP-X-8: an HTTP error refuses this request, whatever id the error names: servers of
        // Python's SDK 1.x name `server-error`.
        if !status.is_success() {
            for message in &mut this.queue {
                if let Incoming::Response {
                    id,
                    outcome: Err(_),
                    ..
                } = message
                {
                    *id = None;
                }
            }
        }
        // An error body of something else than the protocol, such as a gateway's.
        let answers = |message: &Incoming| matches!(message, Incoming::Response { .. });
        if !status.is_success() && !this.queue.iter().any(answers) {
            return Err(refused);
        }
        Ok(this)
    }

    /// Of a session whose answers come by its own event stream.
    pub(crate) fn on_link(
        peer: Arc<dyn Peer>,
        id: RequestId,
        receiver: mpsc::Receiver<Incoming>,
        begun: Instant,
    ) -> Self {
        let until = begun + peer.client().limits().total;
        Self {
            peer,
            id,
            source: AnswerSource::Link(receiver),
            queue: VecDeque::new(),
            last_event: None,
            pause: None,
            tries: 0,
            until,
            over: false,
            is_list: false,
        }
    }

    /// Sets the method of the request: the answer to a list request may contain invalid entries
    /// (REVIEW-F6).
    pub(crate) fn of(mut self, method: &str) -> Self {
        self.is_list = method.ends_with("/list");
        self
    }

    /// The error that came at once instead of a stream, if it did.
    pub(crate) fn refused_at_once(&self) -> Option<&RpcError> {
        match self.queue.front() {
            Some(Incoming::Response {
                outcome: Err(error),
                ..
            }) => Some(error),
            _ => None,
        }
    }

    /// Waits for the next event. The future may be dropped and the call repeated without loss.
    ///
    /// # Errors
    /// [`UpstreamError`]: no event follows, and it is unknown whether the request was carried out.
    pub async fn next(&mut self) -> Result<ExchangeEvent, UpstreamError> {
        if self.over {
            return Err(UpstreamError::Interrupted);
        }
        loop {
            while let Some(message) = self.queue.pop_front() {
                if let Some(event) = self.sort(message).await? {
                    return Ok(event);
                }
            }
            self.more().await?;
        }
    }

    /// Waits for the answer; see [`crate::Connection::ask`].
    pub(crate) async fn only_answer(mut self) -> Result<Raw, UpstreamError> {
        loop {
            match self.next().await? {
                ExchangeEvent::Answer(Ok(result)) => return Ok(result),
                ExchangeEvent::Answer(Err(error)) => return Err(UpstreamError::Refused(error)),
                ExchangeEvent::Request { id, method, .. } => {
                    peer::answer(&*self.peer, &id, &Err(unavailable(&method))).await?;
                }
                ExchangeEvent::Progress(_)
                | ExchangeEvent::Log(_)
                | ExchangeEvent::Notification { .. } => {}
            }
        }
    }

    /// Maps a message to an event of this request; `None` if it is handled here or belongs to
    /// another request.
    async fn sort(&mut self, message: Incoming) -> Result<Option<ExchangeEvent>, UpstreamError> {
        Ok(Some(match message {
            Incoming::Response {
                id,
                outcome,
                is_odd,
            } => {
                if is_odd && !self.is_list {
                    return Err(message::unsound());
                }
                if id.is_some_and(|id| id != self.id) {
                    return Err(UpstreamError::violation(
                        "it answered a request that was not made",
                    ));
                }
                if let Ok(result) = &outcome {
                    self.check(result)?;
                }
                self.over = true;
                self.source = AnswerSource::Whole;
                ExchangeEvent::Answer(outcome)
            }
            Incoming::Request { id, method, params } => {
                if self.peer.revision().era() == Era::Modern {
                    return Err(UpstreamError::violation(
                        "it made a request on a stream, which this revision does not have",
                    ));
                }
                if method == Method::Ping.name() {
                    // MCP-X-71. If the answer cannot be sent, the next read of the server's
                    // messages fails.
                    let pong = Ok(Raw::empty_object());
                    let _ = peer::answer(&*self.peer, &id, &pong).await;
                    return Ok(None);
                }
                ExchangeEvent::Request { id, method, params }
            }
            Incoming::Notification { method, params } => match Method::from_name(&method) {
                Some(Method::Progress) => {
                    let token = params.get("progressToken");
                    if token.as_ref().and_then(RequestId::from_raw).as_ref() != Some(&self.id) {
                        return Ok(None);
                    }
                    match progress(&params) {
                        Some(progress) => ExchangeEvent::Progress(progress),
                        None => return Ok(None),
                    }
                }
                Some(Method::LogMessage) => ExchangeEvent::Log(params),
                _ => ExchangeEvent::Notification { method, params },
            },
        }))
    }

    /// MCP-X-8: a result without `resultType` is complete; one of an unknown type is not
    /// understood.
    fn check(&self, result: &Raw) -> Result<(), UpstreamError> {
        if self.peer.revision().era() == Era::Legacy {
            return Ok(());
        }
        match result.get("resultType") {
            None => Ok(()),
            Some(kind) => match kind.string().as_deref() {
                Some("complete" | "input_required" | "task") => Ok(()),
                _ => Err(UpstreamError::violation(
                    "its result is of a type that is not known",
                )),
            },
        }
    }

    /// Waits until the queue has something.
    async fn more(&mut self) -> Result<(), UpstreamError> {
        let silence = self.peer.client().limits().silence;
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.over = true;
            return Err(UpstreamError::Timeout(self.peer.client().limits().total));
        }
        let patience = silence.min(left);
        let silent = |_| UpstreamError::Timeout(patience);
        match &mut self.source {
            AnswerSource::Whole => {
                self.over = true;
                Err(UpstreamError::violation("its answer holds no answer"))
            }
            AnswerSource::Link(receiver) => {
                let next = timeout(patience, receiver.recv()).await.map_err(silent)?;
                self.queue
                    .push_back(next.ok_or(UpstreamError::Interrupted)?);
                Ok(())
            }
            AnswerSource::Stream { body, decoder } => {
                let piece = timeout(patience, body.piece()).await.map_err(silent)?;
                let client = self.peer.client();
                match piece {
                    Ok(Some(piece)) => {
                        let limit = client.limits().answer_bytes;
                        let events = decoder.push(&piece).map_err(|_| {
                            UpstreamError::TooMuch(format!("{limit} bytes in one event"))
                        })?;
                        if let Some(id) = decoder.last_id() {
                            self.last_event = Some(id.to_owned());
                        }
                        self.pause = decoder.retry().map(Duration::from_millis).or(self.pause);
                        for event in events {
                            // A priming event has no data (MCP-T-24); other types are not of the
                            // protocol.
                            if event.event == "message" && !event.data.is_empty() {
                                self.queue.extend(client.read(event.data)?);
                                self.tries = 0;
                            }
                        }
                        Ok(())
                    }
                    Ok(None) | Err(EgressError::Protocol { .. }) => {
                        self.source = AnswerSource::Broken;
                        Ok(())
                    }
                    Err(error) => Err(error.into()),
                }
            }
            AnswerSource::Broken => self.resume().await,
        }
    }

    /// Requests the rest of a stream that broke, or that the server closed to be polled (MCP-X-7E,
    /// MCP-T-25).
    async fn resume(&mut self) -> Result<(), UpstreamError> {
        let (Some(mut headers), Some(last)) = (self.peer.resumption(), &self.last_event) else {
            self.over = true;
            return Err(UpstreamError::Interrupted);
        };
        if self.tries >= TRIES || !self.peer.revision().facts().resumable {
            self.over = true;
            return Err(UpstreamError::Interrupted);
        }
        let doubled = PAUSE.saturating_mul(1 << self.tries.min(4));
        let pause = self.pause.unwrap_or(doubled).min(LONGEST_PAUSE);
        // What no header can carry comes back as nothing of ours.
        let last =
            HeaderValue::from_bytes(last.as_bytes()).map_err(|_| UpstreamError::Interrupted)?;
        headers.push((LAST_EVENT_ID, last));
        // Waits no longer than until the end of the call.
        sleep_until(self.until.min(Instant::now() + pause)).await;
        if Instant::now() >= self.until {
            return Ok(());
        }
        self.tries += 1;
        let client = self.peer.client();
        match client.get(client.url(), &headers).await {
            Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                self.source = AnswerSource::Stream {
                    body: Box::new(answer),
                    decoder: Decoder::new(client.limits().answer_bytes),
                };
                Ok(())
            }
            // It may come back; what it refuses is over.
            Ok(answer) if answer.status.is_server_error() => Ok(()),
            Err(error) if error.is_passing() => Ok(()),
            Ok(_) => {
                self.over = true;
                Err(UpstreamError::Interrupted)
            }
            Err(error) => Err(error),
        }
    }
}

/// Error that refuses a server's request where no client can answer it (MCP-X-23).
pub fn unavailable(method: &str) -> RpcError {
    RpcError {
        code: -32601,
        message: format!("{OUTSIDE}: {method}"),
        data: None,
    }
}

fn progress(params: &Raw) -> Option<Progress> {
    let number =
        |name: &str| -> Option<f64> { serde_json::from_slice(params.get(name)?.as_bytes()).ok() };
    Some(Progress {
        progress: number("progress")?,
        total: number("total"),
        message: params.get("message").and_then(|text| text.string()),
    })
}
