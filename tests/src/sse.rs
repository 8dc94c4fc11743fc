//! Event streams, read byte by byte as a careful client reads them, so that a test can cut one
//! anywhere and check every id.

mod position;

use std::{collections::VecDeque, time::Duration};

use anyhow::{Context, Result, bail};
use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

pub use self::position::{Position, tools_mark};

/// Longest silence that a test sits through: comments come every 15 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// One event as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its id, if it had one.
    pub id: Option<String>,
    /// Its type, empty if it named none.
    pub kind: String,
    /// Its data, lines joined. Empty for a priming event and for a block that only sets `retry`.
    pub data: String,
}

impl Event {
    /// The message that it carries, `null` if there is none.
    pub fn message(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }

    /// Is it the answer to a request?
    pub fn is_response(&self) -> bool {
        let message = self.message();
        message.get("result").is_some() || message.get("error").is_some()
    }
}

/// Reads the format of the WHATWG, any cut of bytes.
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    event: Event,
    has_fields: bool,
    has_data: bool,
    /// The newest `retry`.
    pub retry: Option<Duration>,
    /// Comments so far.
    pub comments: usize,
    /// Lines that the format does not know. Clients skip them; we never send any.
    pub strange: Vec<String>,
}

impl Parser {
    /// Takes bytes in and gives the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() {
                if std::mem::take(&mut self.has_fields) {
                    events.push(std::mem::take(&mut self.event));
                    self.has_data = false;
                }
            } else {
                self.line(line);
            }
        }
        events
    }

    fn line(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" => self.comments += 1,
            "id" => {
                self.event.id = Some(value.to_owned());
                self.has_fields = true;
            }
            "event" => {
                value.clone_into(&mut self.event.kind);
                self.has_fields = true;
            }
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                (self.has_data, self.has_fields) = (true, true);
            }
            "retry" => {
                self.retry = value.parse().ok().map(Duration::from_millis);
            }
            _ => self.strange.push(line.to_owned()),
        }
    }
}

fn is_same_place(id: Option<&str>, place: Option<&str>) -> bool {
    let position = |id: Option<&str>| id.and_then(Position::read);
    position(id).is_some() && position(id) == position(place)
}

/// An open stream. Dropping it cuts the connection.
#[derive(Debug)]
pub struct SseStream {
    response: Response,
    parser: Parser,
    ready: VecDeque<Event>,
    last_id: Option<String>,
    /// The id that the first event may repeat; then that event is not new.
    place: Option<String>,
}

impl SseStream {
    /// Out of an answer whose body is an event stream.
    pub fn new(response: Response) -> Self {
        Self {
            response,
            parser: Parser::default(),
            ready: VecDeque::new(),
            last_id: None,
            place: None,
        }
    }

    /// The same, for a client that came back with this id. A priming event that names the same place is left out.
    #[must_use]
    pub fn after(mut self, last_event_id: &str) -> Self {
        self.place = Some(last_event_id.to_owned());
        self
    }

    /// The next event; `None` after a clean end; an error if the connection broke or stayed silent.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if event.id.is_some() {
                    self.last_id.clone_from(&event.id);
                }
                let place = self.place.take();
                if event.data.is_empty() && is_same_place(event.id.as_deref(), place.as_deref()) {
                    continue;
                }
                return Ok(Some(event));
            }
            let chunk = timeout(PATIENCE, self.response.chunk())
                .await
                .context("the stream is silent, without a comment")??;
            match chunk {
                Some(bytes) => self.ready.extend(self.parser.push(&bytes)),
                None => return Ok(None),
            }
        }
    }

    /// The next event with data.
    pub async fn message(&mut self) -> Result<Value> {
        loop {
            match self.next().await? {
                Some(event) if event.data.is_empty() => {}
                Some(event) => return Ok(event.message()),
                None => bail!("the stream ended"),
            }
        }
    }

    /// Everything up to its clean end.
    pub async fn rest(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }

    /// Everything up to the event that `wanted` likes, and that one.
    pub async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let Some(event) = self.next().await? else {
                bail!("the stream ended after {events:?}");
            };
            let is_it = wanted(&event);
            events.push(event);
            if is_it {
                return Ok(events);
            }
        }
    }

    /// The `Last-Event-ID` that a client sends: the id of the last event that it received.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The wait that the server requested (`retry`).
    pub fn retry(&self) -> Option<Duration> {
        self.parser.retry
    }

    /// Comments so far.
    pub fn comments(&self) -> usize {
        self.parser.comments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_events() {
        let text = ": hello\nretry: 2500\nid: 1\ndata:\n\nevent: message\r\nid: 2\r\ndata: {\"a\":\ndata: 1}\r\n\r\n: x\n\ndata: z\n\n";
        let whole = Parser::default().push(text.as_bytes());
        assert_eq!(whole.len(), 3, "{whole:?}");
        assert_eq!(
            (whole[0].id.as_deref(), whole[0].data.as_str()),
            (Some("1"), "")
        );
        assert_eq!(whole[1].data, "{\"a\":\n1}");
        assert_eq!(whole[2].id, None);
        for cut in 1..text.len() {
            let mut parser = Parser::default();
            let mut events = parser.push(&text.as_bytes()[..cut]);
            events.extend(parser.push(&text.as_bytes()[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
            assert_eq!(
                (parser.comments, parser.retry),
                (2, Some(Duration::from_millis(2500)))
            );
        }
    }
}
