//! The place in a stream that an event id names.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The content of an event id of an answer. Clients take it as opaque; a checker sees whether an
/// event is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The stream.
    pub stream: [u8; 8],
    /// Number of the execution or of its replacement, and its mark.
    pub attempt: (u32, u16),
    /// Number of the event; 0 is the priming event.
    pub number: u64,
}

impl Position {
    /// Reads an id; `None` for ids of other streams.
    pub fn read(id: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let rest = match bytes.split_first()? {
            (b'A', rest) => rest,
            // The event at the start of a resumed stream: another number each time.
            (b'R', rest) => rest.get(4..)?,
            _ => return None,
        };
        let (stream, rest) = rest.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (attempt, rest) = rest.split_first_chunk::<4>()?;
        let mark = rest.first_chunk::<2>()?;
        Some(Self {
            stream: *stream,
            attempt: (u32::from_be_bytes(*attempt), u16::from_be_bytes(*mark)),
            number: u64::from_be_bytes(*number),
        })
    }
}

/// The mark of the list of tools in an event id of a session's own stream: another number for
/// another list.
pub fn tools_mark(id: &str) -> Option<u64> {
    let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
    // Stream and number of the event.
    let rest = bytes.strip_prefix(b"N")?.get(12..)?;
    rest.first_chunk::<8>()
        .map(|mark| u64::from_be_bytes(*mark))
}
