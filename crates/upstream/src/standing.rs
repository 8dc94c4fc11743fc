//! Messages of a server outside of any request of ours: the GET stream of a session, the
//! `subscriptions/listen` of 2026-07-28, the one stream of a 2024-11-05 session (MCP-X-23,
//! MCP-X-41, MCP-X-42, MCP-X-44).

use std::{collections::VecDeque, time::Duration};

use http::{HeaderValue, StatusCode};
use portolan_net::egress::{EgressError, EgressStream};
use portolan_protocol::{
    jsonrpc::Raw, method::Method, result::write_string, revision::Era, sse::Decoder,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    connection::Connection,
    endpoint::{is_events, refusal},
    error::UpstreamError,
    exchange::{Exchange, ExchangeEvent},
    legacy::Legacy,
    message::Incoming,
    outgoing::{LAST_EVENT_ID, Request},
};

/// Most attempts to resume a stream without a new event.
const TRIES: u32 = 5;
/// Pause before a stream is resumed, if the server names no time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time that a server may make us wait for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A stream that stands beside the requests. Dropping it closes it.
#[derive(Debug)]
pub struct Standing {
    connection: Connection,
    source: StreamSource,
    queue: VecDeque<Incoming>,
}

#[derive(Debug)]
enum StreamSource {
    /// The GET stream of a session.
    Get(Box<Get>),
    /// A listen request.
    Listen(Box<Exchange>),
    /// Messages of a 2024-11-05 session's stream that belong to no request.
    Link(mpsc::Receiver<Incoming>),
}

#[derive(Debug)]
struct Get {
    /// `None` while it is broken.
    body: Option<EgressStream>,
    decoder: Decoder,
    last_event: Option<String>,
    pause: Option<Duration>,
    tries: u32,
}

impl Connection {
    /// Opens the stream on which the server speaks by itself: about its lists and, of a modern
    /// server, about the resources `uris`. Those of an older one are subscribed to by requests.
    /// `None` if it has no such stream (MCP-X-43).
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn stand(&self, uris: &[String]) -> Result<Option<Standing>, UpstreamError> {
        let source = match self {
            Self::Modern(_) => {
                let listen = Request::new(Method::SubscriptionsListen.name(), wanted(uris));
                StreamSource::Listen(Box::new(self.call(&listen).await?))
            }
            Self::Legacy(legacy) => match legacy.stand().await? {
                Some(get) => StreamSource::Get(Box::new(get)),
                None => return Ok(None),
            },
            Self::Link(link) => StreamSource::Link(link.stand()),
        };
        Ok(Some(Standing {
            connection: self.clone(),
            source,
            queue: VecDeque::new(),
        }))
    }
}

impl Connection {
    /// Opens the stream on which a modern server sends the notifications of one task (MCP-TX-13),
    /// and nothing else.
    ///
    /// # Errors
    /// [`UpstreamError`]; also where the server is of an era that has no such stream.
    pub async fn stand_for_task(&self, task: &str) -> Result<Standing, UpstreamError> {
        let Self::Modern(_) = self else {
            return Err(UpstreamError::Interrupted);
        };
        let mut params = br#"{"notifications":{"taskIds":["#.to_vec();
        write_string(task, &mut params);
        params.extend_from_slice(b"]}}");
        let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
        let listen = Request::new(Method::SubscriptionsListen.name(), params);
        Ok(Standing {
            connection: self.clone(),
            source: StreamSource::Listen(Box::new(self.call(&listen).await?)),
            queue: VecDeque::new(),
        })
    }
}

/// The parameters of a listen request for everything.
fn wanted(uris: &[String]) -> Raw {
    let mut out = br#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true"#.to_vec();
    if !uris.is_empty() {
        out.extend_from_slice(br#","resourceSubscriptions":["#);
        for (at, uri) in uris.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(uri, &mut out);
        }
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

impl Legacy {
    async fn stand(&self) -> Result<Option<Get>, UpstreamError> {
        let answer = self.client.get(self.client.url(), &self.headers()).await?;
        if answer.status.is_success() && is_events(&answer.headers) {
            return Ok(Some(Get {
                body: Some(answer),
                decoder: Decoder::new(self.client.limits().answer_bytes),
                last_event: None,
                pause: None,
                tries: 0,
            }));
        }
        match answer.status {
            StatusCode::NOT_FOUND if self.ticket.session.is_some() => {
                Err(UpstreamError::SessionGone)
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
                Err(refusal(answer.status, &answer.headers))
            }
            // The revision demands 405. Some servers answer with another status, or have a single
            // stream that another reader holds.
            status if status.is_client_error() || status.is_success() => Ok(None),
            status => Err(refusal(status, &answer.headers)),
        }
    }
}

impl Standing {
    /// Waits for the server's next message; never an [`ExchangeEvent::Answer`]. The future may be
    /// dropped and the call repeated without loss.
    ///
    /// # Errors
    /// [`UpstreamError`]: the stream is over, and later messages may be lost.
    pub async fn next(&mut self) -> Result<ExchangeEvent, UpstreamError> {
        loop {
            while let Some(message) = self.queue.pop_front() {
                if let Some(event) = self.sort(message).await {
                    return Ok(event);
                }
            }
            match &mut self.source {
                StreamSource::Listen(exchange) => match exchange.next().await? {
                    // The server ends the stream. A caller that needs more messages opens another
                    // one.
                    ExchangeEvent::Answer(Ok(_)) => return Err(UpstreamError::Interrupted),
                    ExchangeEvent::Answer(Err(error)) => return Err(UpstreamError::Refused(error)),
                    event => return Ok(event),
                },
                StreamSource::Link(receiver) => {
                    let next = receiver.recv().await;
                    self.queue
                        .push_back(next.ok_or(UpstreamError::Interrupted)?);
                }
                StreamSource::Get(get) => {
                    let Connection::Legacy(legacy) = &self.connection else {
                        return Err(UpstreamError::Interrupted);
                    };
                    self.queue.extend(get.more(legacy).await?);
                }
            }
        }
    }

    /// Maps a message to an event; `None` if it is handled here or belongs to no reader.
    async fn sort(&self, message: Incoming) -> Option<ExchangeEvent> {
        match message {
            Incoming::Request { id, method, .. } if method == Method::Ping.name() => {
                // MCP-X-71. If the answer cannot be sent, the next read of the server's messages
                // fails.
                let pong = Ok(Raw::empty_object());
                let _ = self.connection.answer(&id, &pong).await;
                None
            }
            Incoming::Request { id, method, params }
                if self.connection.revision().era() == Era::Legacy =>
            {
                Some(ExchangeEvent::Request { id, method, params })
            }
            Incoming::Notification { method, params } if method == Method::LogMessage.name() => {
                Some(ExchangeEvent::Log(params))
            }
            Incoming::Notification { method, params } => {
                Some(ExchangeEvent::Notification { method, params })
            }
            // Answers come on the stream of their request.
            Incoming::Request { .. } | Incoming::Response { .. } => None,
        }
    }
}

impl Get {
    /// Reads the messages of the next piece; resumes the stream where that is possible.
    async fn more(&mut self, legacy: &Legacy) -> Result<Vec<Incoming>, UpstreamError> {
        let limits = legacy.client.limits();
        let Some(body) = &mut self.body else {
            return self.resume(legacy).await.map(|()| Vec::new());
        };
        let piece = timeout(limits.silence, body.piece())
            .await
            .map_err(|_| UpstreamError::Timeout(limits.silence))?;
        match piece {
            Ok(Some(piece)) => {
                let events = self.decoder.push(&piece).map_err(|_| {
                    UpstreamError::TooMuch(format!("{} bytes in one event", limits.answer_bytes))
                })?;
                if let Some(id) = self.decoder.last_id() {
                    self.last_event = Some(id.to_owned());
                }
                self.pause = self
                    .decoder
                    .retry()
                    .map(Duration::from_millis)
                    .or(self.pause);
                let mut messages = Vec::new();
                for event in events {
                    if event.event == "message" && !event.data.is_empty() {
                        messages.extend(legacy.client.read(event.data)?);
                        self.tries = 0;
                    }
                }
                Ok(messages)
            }
            Ok(None) | Err(EgressError::Protocol { .. }) => {
                self.body = None;
                Ok(Vec::new())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// MCP-X-7E, as of the stream of a request.
    async fn resume(&mut self, legacy: &Legacy) -> Result<(), UpstreamError> {
        let Some(last) = self.last_event.clone() else {
            return Err(UpstreamError::Interrupted);
        };
        if self.tries >= TRIES || !legacy.ticket.revision.facts().resumable {
            return Err(UpstreamError::Interrupted);
        }
        let doubled = PAUSE.saturating_mul(1 << self.tries.min(4));
        sleep(self.pause.unwrap_or(doubled).min(LONGEST_PAUSE)).await;
        self.tries += 1;
        let mut headers = legacy.headers();
        let last = HeaderValue::try_from(last).map_err(|_| UpstreamError::Interrupted)?;
        headers.push((LAST_EVENT_ID, last));
        match legacy.client.get(legacy.client.url(), &headers).await {
            Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                self.decoder = Decoder::new(legacy.client.limits().answer_bytes);
                self.body = Some(answer);
                Ok(())
            }
            // It may come back; what it refuses is over.
            Ok(answer) if answer.status.is_server_error() => Ok(()),
            Err(error) if error.is_passing() => Ok(()),
            Ok(_) => Err(UpstreamError::Interrupted),
            Err(error) => Err(error),
        }
    }
}
