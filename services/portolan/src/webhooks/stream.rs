//! The stream of events, followed over cut connections: every retained event is read once (HOOK-28).

use std::time::Duration;

use anyhow::{Error, anyhow};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use portolan_net::egress::{Egress, EgressError, EgressStream};
use portolan_protocol::sse::{Decoder, MAX_EVENT_BYTES};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use crate::workspace_api::WorkspaceApi;

use super::pause::Pauses;

/// A stream without a byte for so long is cut: the service sends a comment every 17 s at the latest.
const SILENCE: Duration = Duration::from_secs(45);

/// A stream that ends earlier than this was not ended by the service's own clock.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longest wait that a refusal may ask for.
const LONGEST_WAIT: u64 = 60;

/// The events that are wanted.
pub(super) struct WantedEvents {
    /// Types, as the option has them.
    pub(super) events: Option<String>,
    /// From when on, RFC 3339.
    pub(super) since: Option<String>,
}

/// An event as it came.
#[derive(Debug, Deserialize)]
pub(super) struct Received {
    /// `evt_…`, the `webhook-id`.
    pub(super) id: String,
    /// The body of the delivery, byte for byte.
    pub(super) message: Box<RawValue>,
}

/// News of the stream.
pub(super) enum StreamNews {
    /// The first connection.
    Connected,
    /// Another one, after a cut.
    ConnectedAgain,
    /// The connection was cut, or could not be made.
    Lost { reason: String, pause: Duration },
    /// An event.
    Event(Received),
}

/// Why a connection was not made.
enum OpenFault {
    /// Another attempt would be refused too.
    Refused(Error),
    /// The service is away or busy.
    Away {
        reason: String,
        wait: Option<Duration>,
    },
}

/// How a connection ended.
enum StreamEnd {
    /// By the service: it reads rights anew.
    Proper,
    /// In the middle.
    Cut(String),
    /// The reader of the news is gone.
    Unread,
}

/// The stream.
pub(super) struct EventStream {
    egress: Egress,
    api: WorkspaceApi,
    wanted: WantedEvents,
    news: mpsc::Sender<StreamNews>,
    /// Id of the last event: where the next connection begins.
    last: Option<HeaderValue>,
}

impl EventStream {
    pub(super) fn new(
        (egress, api): (Egress, WorkspaceApi),
        wanted: WantedEvents,
        news: mpsc::Sender<StreamNews>,
    ) -> Self {
        Self {
            egress,
            api,
            wanted,
            news,
            last: None,
        }
    }

    /// Follows it until the service refuses, and returns the refusal. A service that is not reached
    /// at the first attempt is an error too: the address may be wrong.
    pub(super) async fn follow(mut self) -> Error {
        let mut pauses = Pauses::default();
        let (mut has_begun, mut is_cut) = (false, false);
        loop {
            let began = Instant::now();
            let (reason, wait) = match self.open().await {
                Ok(stream) => {
                    let news = match (has_begun, is_cut) {
                        (false, _) => Some(StreamNews::Connected),
                        (true, true) => Some(StreamNews::ConnectedAgain),
                        (true, false) => None,
                    };
                    if let Some(news) = news {
                        let _ = self.news.send(news).await;
                    }
                    (has_begun, is_cut) = (true, false);
                    match self.read(stream).await {
                        StreamEnd::Proper if began.elapsed() >= SHORTEST => {
                            pauses = Pauses::default();
                            continue;
                        }
                        StreamEnd::Proper => ("the stream ended at once".to_owned(), None),
                        StreamEnd::Cut(reason) => {
                            if began.elapsed() >= SHORTEST {
                                pauses = Pauses::default();
                            }
                            (reason, None)
                        }
                        StreamEnd::Unread => return anyhow!("the output is closed"),
                    }
                }
                Err(OpenFault::Refused(error)) => return error,
                Err(OpenFault::Away { reason, wait }) if has_begun || wait.is_some() => {
                    (reason, wait)
                }
                Err(OpenFault::Away { reason, .. }) => return anyhow!(reason),
            };
            is_cut = true;
            let pause = pauses.next_pause();
            let pause = wait.map_or(pause, |wait| pause.max(wait));
            let lost = StreamNews::Lost { reason, pause };
            if self.news.send(lost).await.is_err() {
                return anyhow!("the output is closed");
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn open(&self) -> Result<EgressStream, OpenFault> {
        let mut query = Vec::new();
        query.extend(self.wanted.events.as_deref().map(|one| ("events", one)));
        query.extend(self.wanted.since.as_deref().map(|one| ("since", one)));
        let request = self.api.request(Method::GET, "events/live", &query);
        let mut request = request.map_err(|error| OpenFault::Refused(error.into()))?;
        request.headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        if let Some(last) = &self.last {
            let name = HeaderName::from_static("last-event-id");
            request.headers.insert(name, last.clone());
        }
        let away = |error: EgressError| OpenFault::Away {
            reason: error.to_string(),
            wait: None,
        };
        let stream = self.egress.open(request).await.map_err(away)?;
        if stream.status == StatusCode::OK {
            return Ok(stream);
        }
        let (status, wait) = (stream.status, wait_of(&stream));
        let answer = timeout(SILENCE, stream.whole()).await;
        let body = answer.ok().and_then(Result::ok).map(|answer| answer.body);
        let problem: Value = body
            .and_then(|body| serde_json::from_slice(&body).ok())
            .unwrap_or_default();
        Err(refusal(status, &problem, wait))
    }

    /// Reads a connection to its end. `last` follows.
    async fn read(&mut self, mut stream: EgressStream) -> StreamEnd {
        let mut decoder = Decoder::new(MAX_EVENT_BYTES);
        loop {
            let piece = match timeout(SILENCE, stream.piece()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => return StreamEnd::Proper,
                Ok(Err(error)) => return StreamEnd::Cut(error.to_string()),
                Err(_) => return StreamEnd::Cut("the connection fell silent".to_owned()),
            };
            let Ok(events) = decoder.push(&piece) else {
                return StreamEnd::Cut("an event was too large".to_owned());
            };
            for event in events {
                if !event.data.is_empty() {
                    let Ok(received) = serde_json::from_str(&event.data) else {
                        return StreamEnd::Cut("an event did not read".to_owned());
                    };
                    if self.news.send(StreamNews::Event(received)).await.is_err() {
                        return StreamEnd::Unread;
                    }
                }
                // An event is behind only when it is whole: an id may come before its data.
                let last = event.id.and_then(|id| HeaderValue::try_from(id).ok());
                self.last = last.or(self.last.take());
            }
        }
    }
}

/// The wait that an answer asks for.
fn wait_of(stream: &EgressStream) -> Option<Duration> {
    let value = stream.headers.get(header::RETRY_AFTER)?;
    let seconds: u64 = value.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST_WAIT)))
}

/// The refusal as a sentence, with what to do.
fn refusal(status: StatusCode, problem: &Value, wait: Option<Duration>) -> OpenFault {
    let message = problem["error"]["message"].as_str();
    let message = message.map_or_else(|| format!("the service answered {status}"), str::to_owned);
    let remedy = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            return OpenFault::Away {
                reason: message,
                wait: Some(wait.unwrap_or_default()),
            };
        }
        status if status.is_server_error() => {
            return OpenFault::Away {
                reason: message,
                wait,
            };
        }
        StatusCode::UNAUTHORIZED => {
            "\nMake an access token with the scope workspace:read on the page Keys of the console, and \
             set it as PORTOLAN_TOKEN"
        }
        StatusCode::FORBIDDEN => {
            "\nEvents are for admins and owners: the token needs the scope workspace:read and the role \
             admin"
        }
        StatusCode::NOT_FOUND => "\nLook at --url and --workspace, and at what the token opens",
        _ => "",
    };
    OpenFault::Refused(anyhow!("{message}{remedy}"))
}
