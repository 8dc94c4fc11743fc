//! Event streams of the server, and the place in them from which they are resumed.

use std::{collections::VecDeque, time::Duration};

use http::{HeaderMap, HeaderValue, header};
use portolan_net::egress::EgressStream;
use portolan_protocol::sse::{Decoder, SseEvent};

use crate::lines::LONGEST;

/// The longest pause that a server may prescribe.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where a stream is, for its continuation.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamPosition {
    /// Id of the last event.
    pub(crate) last: Option<String>,
    /// Pause that the server wants before a reconnect.
    pub(crate) pause: Option<Duration>,
}

impl StreamPosition {
    /// `Last-Event-ID`, if there is one that a header can carry.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let last = self.last.as_ref().filter(|last| !last.is_empty())?;
        HeaderValue::from_bytes(last.as_bytes()).ok()
    }
}

/// A stream that is read.
#[derive(Debug)]
pub(crate) struct Events {
    body: EgressStream,
    decoder: Decoder,
    queue: VecDeque<SseEvent>,
}

impl Events {
    pub(crate) fn new(body: EgressStream) -> Self {
        Self {
            body,
            decoder: Decoder::new(LONGEST),
            queue: VecDeque::new(),
        }
    }

    /// The next event that carries something. `None` when the stream is over, properly or not.
    /// `place` follows.
    pub(crate) async fn next(&mut self, place: &mut StreamPosition) -> Option<SseEvent> {
        loop {
            while let Some(event) = self.queue.pop_front() {
                if event.id.is_some() {
                    place.last.clone_from(&event.id);
                }
                // A priming event has no data.
                if !event.data.is_empty() {
                    return Some(event);
                }
            }
            let piece = self.body.piece().await.ok()??;
            self.queue.extend(self.decoder.push(&piece).ok()?);
            if let Some(id) = self.decoder.last_id()
                && self.queue.is_empty()
            {
                place.last = Some(id.to_owned());
            }
            let pause = self.decoder.retry().map(Duration::from_millis);
            place.pause = pause.map(|pause| pause.min(LONGEST_PAUSE)).or(place.pause);
        }
    }
}

/// True if the answer is an event stream.
pub(crate) fn is_events(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"))
}

/// True if the answer is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|name| name.eq_ignore_ascii_case("application/json"))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}
