//! Requests of a node, as the transport Streamable HTTP has them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use portolan_net::tunnel::ENDPOINT_PATH;
use tokio::time::{Instant, timeout};

use super::{
    Inner, PRIMED, Stdio,
    era::{Era, MODERN, first_answer},
    events::Events,
    processes::{PATIENCE, Unavailable},
    session::{Envelope, NotSent, Priming, Session},
};
use crate::answers::{AnswerBody, LARGEST_MESSAGE, empty, events as event_stream, json, text};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

impl Stdio {
    /// Answers a request of a node.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        if request.uri().path() != ENDPOINT_PATH {
            return text(StatusCode::NOT_FOUND, "There is only /mcp here.");
        }
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request),
            Method::DELETE => self.delete(&request),
            _ => return text(StatusCode::METHOD_NOT_ALLOWED, "POST, GET or DELETE."),
        };
        answered.unwrap_or_else(|refused| *refused)
    }

    fn session_of<B>(&self, request: &Request<B>) -> Result<Option<Arc<Session>>, Refused> {
        let Some(id) = request.headers().get(&SESSION) else {
            return Ok(None);
        };
        let state = self.0.state();
        let found = id.to_str().ok().and_then(|id| state.sessions.get(id));
        match found.filter(|session| !session.is_over()) {
            Some(session) => Ok(Some(Arc::clone(session))),
            None => Err(refused(StatusCode::NOT_FOUND, "This session has ended.")),
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        let session = self.session_of(&request)?;
        let version = request.headers().get(&VERSION);
        let version = version.and_then(|version| version.to_str().ok());
        let version = version.unwrap_or_default().to_owned();
        let body = Limited::new(request.into_body(), LARGEST_MESSAGE);
        let body = body.collect().await.map_err(|_| {
            refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The message is too large, or was cut off.",
            )
        })?;
        let line = one_line(body.to_bytes());
        let message = Envelope::read(&line)
            .ok_or_else(|| refused(StatusCode::BAD_REQUEST, "The body is not a message of MCP."))?;
        let id = message.id.map(|id| id.get().to_owned());
        match (session, id) {
            (Some(session), Some(id)) if message.method.is_some() => {
                let priming = if version.as_str() >= PRIMED {
                    Priming::Sent
                } else {
                    Priming::Absent
                };
                let sent = session.request(&message, &id, line.clone(), priming).await;
                Ok(stream(sent.map_err(not_sent)?))
            }
            (Some(session), _) => {
                session.send(line.clone()).await.map_err(not_sent)?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            (None, Some(id)) if message.method.as_deref() == Some("initialize") => {
                self.initialize(&message, &id, line.clone()).await
            }
            (None, Some(id)) if version == MODERN => self.modern(&message, &id, line.clone()).await,
            (None, None) if version == MODERN => {
                let session = self.modern_session().await?;
                session.send(line.clone()).await.map_err(not_sent)?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            // A client that sees this without a JSON-RPC body begins a session.
            _ => Err(refused(
                StatusCode::BAD_REQUEST,
                "This server has sessions: send `initialize` first.",
            )),
        }
    }

    /// A new session with a process of its own.
    async fn initialize(
        &self,
        message: &Envelope<'_>,
        id: &str,
        line: Bytes,
    ) -> Result<Response<AnswerBody>, Refused> {
        if self.era().await? == Era::Modern {
            let error = r#"{"code":-32601,"message":"This server has no sessions"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
            return Ok(json(StatusCode::BAD_REQUEST, body));
        }
        let process = self.0.process().await.map_err(unavailable)?;
        let session = self.0.session(process);
        let events = session
            .request(message, id, line, Priming::Absent)
            .await
            .map_err(|error| self.0.not_begun(error))?;
        let answer = first_answer(&events).await;
        let Some(answer) = answer else {
            session.dismiss();
            return Err(refused(
                StatusCode::GATEWAY_TIMEOUT,
                "The command did not answer `initialize` in time.",
            ));
        };
        let is_good = Envelope::read(&answer).is_some_and(|answer| answer.result.is_some());
        if !is_good && session.is_over() {
            return Err(self.0.not_begun(NotSent::Over));
        }
        let mut response = json(StatusCode::OK, answer);
        if is_good && let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION, value);
            self.0.admit(session);
        } else {
            session.dismiss();
        }
        Ok(response)
    }

    /// A request that stands alone.
    async fn modern(
        &self,
        message: &Envelope<'_>,
        id: &str,
        line: Bytes,
    ) -> Result<Response<AnswerBody>, Refused> {
        let session = self.modern_session().await?;
        let events = session
            .request(message, id, line, Priming::Absent)
            .await
            .map_err(|error| self.0.not_begun(error))?;
        let (weak, id) = (Arc::downgrade(&session), id.to_owned());
        let reader = events.read(0).or_else(Box::new(move || {
            if let Some(session) = weak.upgrade() {
                session.forget(&id);
            }
        }));
        Ok(event_stream(reader))
    }

    async fn modern_session(&self) -> Result<Arc<Session>, Refused> {
        if self.era().await? == Era::Sessions {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                "This server has sessions: send `initialize` first.",
            ));
        }
        let _one = self.0.starts.lock().await;
        let running = self.0.state().modern.clone();
        if let Some(session) = running.filter(|session| !session.is_over()) {
            return Ok(session);
        }
        let process = self.0.process().await.map_err(unavailable)?;
        let session = self.0.session(process);
        self.0.state().modern = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn era(&self) -> Result<Era, Refused> {
        let mut era = self.0.era.subscribe();
        let known = timeout(PATIENCE, era.wait_for(Option::is_some)).await;
        if let Ok(Ok(known)) = known
            && let Some(era) = *known
        {
            return Ok(era);
        }
        let message = self.0.state().error.clone();
        Err(unavailable(Unavailable {
            message: message.unwrap_or_else(|| "The command has not started yet.".to_owned()),
            retry_after: Duration::from_secs(5),
        }))
    }

    /// The stream of a session beside its requests, or the rest of a stream that broke.
    fn get(&self, request: &Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        let Some(session) = self.session_of(request)? else {
            return Err(refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "A stream belongs to a session.",
            ));
        };
        session.touch();
        let Some(last) = request.headers().get(&LAST_EVENT) else {
            return Ok(event_stream(session.beside.read_on()));
        };
        let found = last.to_str().ok().and_then(|last| session.stream(last));
        let (events, seq) = found
            .ok_or_else(|| refused(StatusCode::NOT_FOUND, "This stream is not kept any more."))?;
        Ok(event_stream(events.read(seq)))
    }

    fn delete(&self, request: &Request<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        if let Some(session) = self.session_of(request)? {
            self.0.state().sessions.remove(&session.id);
            session.dismiss();
        }
        Ok(empty(StatusCode::NO_CONTENT))
    }
}

impl Inner {
    /// The refusal of a request that needs no session: 404 would mean that the command has another
    /// era (MCP-X-3).
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "errors of a `Result` stay small"
    )]
    fn not_begun(&self, error: NotSent) -> Refused {
        if error == NotSent::Repeated {
            return not_sent(error);
        }
        let state = self.state();
        let message = state.error.clone();
        unavailable(Unavailable {
            message: message.unwrap_or_else(|| "The command has ended.".to_owned()),
            retry_after: state.restarts.pause(Instant::now()),
        })
    }
}

/// A JSON text on one line: a line break in it can only be white space.
fn one_line(body: Bytes) -> Bytes {
    if !body.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return body;
    }
    let mut body = body.to_vec();
    for byte in &mut body {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    body.into()
}

type Refused = Box<Response<AnswerBody>>;

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn refused(status: StatusCode, words: &str) -> Refused {
    Box::new(text(status, words))
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn unavailable(error: Unavailable) -> Refused {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, error.message);
    let seconds = HeaderValue::from(error.retry_after.as_secs().max(1));
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    Box::new(response)
}

#[expect(
    clippy::unnecessary_box_returns,
    reason = "errors of a `Result` stay small"
)]
fn not_sent(error: NotSent) -> Refused {
    match error {
        NotSent::Repeated => refused(
            StatusCode::BAD_REQUEST,
            "Another request with this id is running.",
        ),
        NotSent::Over => refused(StatusCode::NOT_FOUND, "This session has ended."),
    }
}

fn stream(events: Arc<Events>) -> Response<AnswerBody> {
    event_stream(events.read(0))
}
