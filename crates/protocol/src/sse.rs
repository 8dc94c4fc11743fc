//! Server-sent events: encoder, and incremental decoder over bytes (WHATWG HTML §9.2; MCP-T-9,
//! MCP-T-10, MCP-T-24, MCP-T-34, MCP-J-19).

/// The largest event that is read, in bytes (MCP-J-19).
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// The longest line of anything but data that is read, in bytes (STREAM-13).
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// The comment that keeps an idle stream alive (MCP-T-9).
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// One message: `event: message`, an id where streams can be resumed, one `data` line (MCP-T-10).
///
/// `json` is one JSON text. A line break in it can only be white space between tokens, so it is
/// written as a space.
pub fn message(id: Option<&str>, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 48);
    out.extend_from_slice(b"event: message\n");
    write_id(id, &mut out);
    out.extend_from_slice(b"data: ");
    let start = out.len();
    out.extend_from_slice(json);
    for byte in &mut out[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\n\n");
    out
}

/// The first event of a stream where the revision has it: an id and empty data (MCP-T-24).
pub fn priming(id: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(id.len() + 16);
    write_id(Some(id), &mut out);
    out.extend_from_slice(b"data:\n\n");
    out
}

/// How long the client waits before it reconnects (MCP-T-25).
pub fn retry(millis: u64) -> Vec<u8> {
    format!("retry: {millis}\n\n").into_bytes()
}

/// Event ids are ours: visible ASCII (MCP-T-34). Anything else would break the frame and is left
/// out.
fn write_id(id: Option<&str>, out: &mut Vec<u8>) {
    if let Some(id) = id.filter(|id| id.bytes().all(|byte| (0x21..=0x7e).contains(&byte))) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
}

/// One event as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The type; `message` if none was named.
    pub event: String,
    /// The data, lines joined by `\n`. Empty in a priming event.
    pub data: String,
    /// The last id seen on the stream up to here.
    pub id: Option<String>,
}

/// An event is larger than the limit, or a line beside its data than any is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event larger than the limit")]
pub struct EventTooLarge;

/// Reads a stream piece by piece. The events do not depend on where the pieces are cut.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// No line has ended yet: a byte order mark may stand here.
    at_start: bool,
    event: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    /// The id of the last whole event: an id whose data has not come yet is no place to resume from.
    last_id: Option<String>,
    retry: Option<u64>,
}

impl Decoder {
    /// A decoder that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            event: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Takes the next piece; gives the events that it completes.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut events = Vec::new();
        let mut rest = piece;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&rest[..end])?;
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            events.extend(self.end_line()?);
        }
        self.extend(rest)?;
        Ok(events)
    }

    /// The id of the last event that was read to its end, with data or without: the value of
    /// `Last-Event-ID` for a resume.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The last `retry` seen, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + part.len() + self.data.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(part);
        if self.line.len() > MAX_LINE_BYTES && !self.is_data() {
            return Err(EventTooLarge);
        }
        Ok(())
    }

    /// Whether the line that is being read is data.
    fn is_data(&self) -> bool {
        let line = self.line.as_slice();
        let mark: &[u8] = if self.at_start { b"\xef\xbb\xbf" } else { b"" };
        line.strip_prefix(mark)
            .unwrap_or(line)
            .starts_with(b"data:")
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        let bytes = std::mem::take(&mut self.line);
        let mut bytes = bytes.as_slice();
        if std::mem::take(&mut self.at_start) {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.is_empty() {
            return Ok(self.dispatch());
        }
        let line = String::from_utf8_lossy(bytes);
        let (field, value) = match line.split_once(':') {
            // A comment.
            Some(("", _)) => return Ok(None),
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line.as_ref(), ""),
        };
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                // Replacement characters can make text longer than its bytes.
                if self.data.len() > self.limit {
                    return Err(EventTooLarge);
                }
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry);
            }
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        self.last_id.clone_from(&self.id);
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then(|| SseEvent {
            event: if event.is_empty() {
                "message".to_owned()
            } else {
                event
            },
            data,
            id: self.id.clone(),
        })
    }
}
