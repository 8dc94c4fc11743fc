//! Ids that clients return, and records of a session (STREAM-3.1, STREAM-4; MCP-T-34, MCP-T-36,
//! MCP-T-43): only the key makes an id, and a value that was read is written the same.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use portolan_cluster::SessionKey;
use portolan_keys::{Keys, MasterSecret, Purpose};

#[path = "../../services/mcp/src/session/event_id.rs"]
mod event_id;
#[path = "../../services/mcp/src/catalog/marks.rs"]
pub(crate) mod marks;
#[path = "../../services/mcp/src/session/written.rs"]
mod written;

/// Where the files look for it, in a program of its own.
#[cfg(fuzzing)]
mod catalog {
    pub(crate) use super::marks;
}

use event_id::EventId;
use written::{SessionBody, SessionId};

const SESSION: SessionKey = SessionKey([3; 16]);
const OTHER: SessionKey = SessionKey([4; 16]);

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).expect("keys"))
}

fn of_this_session(payload: &[u8]) {
    let scope = [&b"event"[..], &SESSION.0[..]].concat();
    let stamped = keys().stamp(Purpose::McpSession, &scope, payload);
    assert_eq!(EventId::read(&stamped, keys(), OTHER), None, "MCP-T-36");
    let Some(read) = EventId::read(&stamped, keys(), SESSION) else {
        return;
    };
    let wire = read.to_wire(keys(), SESSION);
    assert!(wire.len() <= 144 && wire.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
    let again = EventId::read(&wire, keys(), SESSION).expect("it is ours");
    match (read, again) {
        // A request's id may be too long to be repeated.
        (
            EventId::Answer {
                nonce,
                cursor,
                request: Some(request),
                again,
            },
            EventId::Answer {
                nonce: same,
                cursor: there,
                request: None,
                again: salt,
            },
        ) => {
            assert_eq!((nonce, cursor, again), (same, there, salt));
            assert!(request.to_json().len() > 48);
        }
        (read, again) => assert_eq!(read, again),
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        assert_eq!(
            EventId::read(text, keys(), SESSION),
            None,
            "nobody else makes one"
        );
    }
    of_this_session(data);
    if let Some(id) = SessionId::from_bytes(data) {
        assert_eq!(id.to_bytes()[..], *data, "one way to write it");
    }
    if let Some(body) = SessionBody::read(data) {
        assert_eq!(SessionBody::read(&body.to_bytes()), Some(body));
    }
});
