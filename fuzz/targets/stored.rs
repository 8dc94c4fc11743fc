//! Data from Redis, which an attacker may have written (STREAM-3, STREAM-7, STREAM-8): messages,
//! answers of scripts with entries of a log, and records of a stream. They are read or refused.
#![cfg_attr(fuzzing, no_main)]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use portolan_cluster::{SessionKey, store::NodeMessage};

#[path = "../../crates/cluster/src/redis/answers.rs"]
#[allow(dead_code, reason = "one answer has all forms")]
mod answers;
#[path = "../../crates/cluster/src/node/envelope.rs"]
mod envelope;
#[path = "../../crates/cluster/src/redis/keys.rs"]
#[allow(dead_code, reason = "names of keys are not read")]
pub(crate) mod keys;
#[path = "../../crates/cluster/src/redis/messages/text.rs"]
pub(crate) mod text;

// Where the files look for them; at the root, in a program of its own.
#[cfg(fuzzing)]
use portolan_cluster::store;
mod messages {
    pub(crate) use super::text;
}
#[cfg(fuzzing)]
mod redis {
    pub(crate) use super::keys;
}

/// As Redis would give it: a number where it is one.
fn value(part: &[u8]) -> ::redis::Value {
    let number = std::str::from_utf8(part)
        .ok()
        .and_then(|text| text.parse().ok());
    number.map_or_else(|| bulk(part), ::redis::Value::Int)
}

fn bulk(part: &[u8]) -> ::redis::Value {
    ::redis::Value::BulkString(part.to_vec())
}

/// The answer of `read`: lines. The eighth is the log, with tabs between its entries.
fn answer(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').enumerate();
    let values = lines.map(|(at, line)| match at {
        7 => ::redis::Value::Array(line.split(|byte| *byte == b'\t').map(bulk).collect()),
        _ => value(line),
    });
    let whole = ::redis::Value::Array(values.collect());
    assert!(answers::int("read", &whole).is_err());
    let mut answer = answers::ScriptReply::list("read", whole).expect("a list");
    if let Ok(view) = answer.view() {
        let bytes: usize = view.events.iter().map(|event| event.payload.len()).sum();
        assert!(bytes < data.len());
    }
}

/// The answer of a script with one value.
fn one(data: &[u8]) {
    let number = std::str::from_utf8(data)
        .ok()
        .and_then(|text| text.parse().ok());
    assert_eq!(answers::int("beat", &value(data)).ok(), number);
    assert!(answers::ScriptReply::list("beat", value(data)).is_err());
    let version = |text: &[u8]| {
        let one = ::redis::Value::Array(vec![bulk(text)]);
        let mut answer = answers::ScriptReply::list("beat", one).expect("a list");
        answer.version().ok()
    };
    if let Some(read) = version(data) {
        assert_eq!(version(format!("{:08x}", read.0).as_bytes()), Some(read));
    }
}

fuzz_target!(|data: &[u8]| {
    let session = SessionKey([3; 16]);
    if let Some(NodeMessage::Appended {
        tail,
        event: Some(event),
        ..
    }) = text::parse(data)
    {
        assert_eq!(event.seq, tail);
    }
    let message = NodeMessage::Session {
        session,
        body: Bytes::copy_from_slice(data),
    };
    assert_eq!(
        text::parse(&text::session_message(session, data)),
        Some(message)
    );
    if let Some(epoch) = text::parse_attempt(data) {
        let written = text::attempt_text(epoch);
        assert_eq!(text::parse_attempt(written.as_bytes()), Some(epoch));
    }
    if let Some(stream) = keys::parse_member(data) {
        let written = keys::member(stream);
        assert_eq!(keys::parse_member(written.as_bytes()), Some(stream));
    }
    answer(data);
    one(data);
    let read = envelope::open(&Bytes::copy_from_slice(data));
    let written = envelope::seal(&read.rpc, read.tenant, read.trace.as_ref(), &read.about);
    assert_eq!(envelope::open(&written), read);
});
