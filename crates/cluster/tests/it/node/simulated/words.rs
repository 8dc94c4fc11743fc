//! Contents of events, in place of JSON: `cluster` carries bytes and never reads them.

use std::hash::{DefaultHasher, Hash, Hasher};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use portolan_cluster::{
    node::{Lost, PayloadPart, PayloadPlace, Payloads},
    store::{Cursor, Epoch, Nonce},
};

use crate::{
    checker::{NODE_LOST, STREAM_LOST},
    history::{Body, Outcome},
};

/// Error for a client whose SDK has cancelled the call.
pub(super) const CANCELLED: i64 = -32800;

/// Contents of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Progress(u64),
    Question(String),
    Result(String),
    Failure,
    Error(i64),
}

/// Padding of a call's result, with which a client checks that it is complete.
pub(super) fn padding(call: &str) -> String {
    format!("{call} is done, and this is all of it")
}

/// Encodes an event.
pub(super) fn say(call: &str, word: &Word) -> Bytes {
    let text = match word {
        Word::Progress(n) => format!("P|{call}|{n}"),
        Word::Question(question) => format!("Q|{call}|{question}"),
        Word::Result(padding) => format!("R|{call}|{padding}"),
        Word::Failure => format!("F|{call}|"),
        Word::Error(code) => format!("E|{call}|{code}"),
    };
    text.into()
}

/// Decodes an event: its call and contents.
pub(super) fn read(bytes: &[u8]) -> Option<(&str, Word)> {
    let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, '|');
    let (kind, call, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let word = match kind {
        "P" => Word::Progress(rest.parse().ok()?),
        "Q" => Word::Question(rest.to_owned()),
        "R" => Word::Result(rest.to_owned()),
        "F" => Word::Failure,
        "E" => Word::Error(rest.parse().ok()?),
        _ => return None,
    };
    Some((call, word))
}

/// The event as a line in the history of `own`.
pub(super) fn body(own: &str, bytes: &[u8]) -> Body {
    let Some((call, word)) = read(bytes) else {
        return Body::Other(String::from_utf8_lossy(bytes).into_owned());
    };
    let of = call.to_owned();
    match word {
        Word::Progress(n) => Body::Progress { of, n },
        Word::Result(text) => Body::Response(Outcome::Result {
            of,
            whole: text == padding(call),
            again: false,
        }),
        // The checker knows the owners of these two kinds (TEST-C1). All other kinds that name
        // another call are written as one of them.
        _ if call != own => Body::Progress { of, n: 0 },
        Word::Question(question) => Body::Other(question),
        Word::Failure => Body::Response(Outcome::ToolError(of)),
        Word::Error(code) => Body::Response(error(code)),
    }
}

/// Error with an unknown effect of the call.
pub(super) fn error(code: i64) -> Outcome {
    Outcome::Error {
        code,
        executed: Some("unknown".to_owned()),
    }
}

/// Outcome of a call for a client that cancelled it.
pub(super) const fn cancelled() -> Outcome {
    Outcome::Error {
        code: CANCELLED,
        executed: None,
    }
}

/// Event id in the format of the service, without its seal.
pub(super) fn id(nonce: Nonce, cursor: Cursor) -> String {
    let epoch = cursor.epoch.unwrap_or(Epoch { term: 0, nonce: 0 });
    let mut bytes = vec![b'A'];
    bytes.extend(nonce.0);
    bytes.extend(cursor.seq.to_be_bytes());
    bytes.extend(epoch.term.to_be_bytes());
    bytes.extend(epoch.nonce.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The same position under the id with which a resumed stream begins: another one each time.
pub(super) fn place(nonce: Nonce, cursor: Cursor, time: u32) -> String {
    let id = URL_SAFE_NO_PAD
        .decode(id(nonce, cursor))
        .unwrap_or_default();
    let rest = id.get(1..).unwrap_or_default();
    URL_SAFE_NO_PAD.encode([b"R", &time.to_be_bytes()[..], rest].concat())
}

/// Seals a payload by adding a number of its location, or not at all. Without a seal a moved
/// payload opens, and another check must find it.
#[derive(Debug)]
pub(super) struct Seals {
    pub(super) are_on: bool,
}

fn number(place: &PayloadPlace<'_>) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    place.session.hash(&mut hasher);
    match place.part {
        PayloadPart::Event { nonce, seq, class } => (nonce, seq, class).hash(&mut hasher),
        PayloadPart::Answer { question } => question.hash(&mut hasher),
        PayloadPart::RecordPut { nonce, is_head } => (nonce, is_head).hash(&mut hasher),
    }
    hasher.finish().to_be_bytes()
}

impl Payloads for Seals {
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes {
        if !self.are_on {
            return payload;
        }
        [&payload[..], &number(place)[..]].concat().into()
    }

    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes> {
        if !self.are_on {
            return Some(payload);
        }
        let plain = payload.strip_suffix(&number(place)[..])?.len();
        Some(payload.slice(..plain))
    }

    fn lost(&self, about: &Bytes, why: Lost) -> Bytes {
        // STREAM-B.
        let code = match why {
            Lost::Node | Lost::Draining | Lost::Revoked => NODE_LOST,
            Lost::Stream => STREAM_LOST,
            Lost::Stopped => -32603,
            Lost::Overflow => -32015,
            Lost::Deadline => -32016,
        };
        say(&String::from_utf8_lossy(about), &Word::Error(code))
    }
}
