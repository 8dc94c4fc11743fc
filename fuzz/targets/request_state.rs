//! A `requestState` that a client presents (MCP-MR-6): what was not sealed here does not open, and
//! what is inside is read or refused, never a panic.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use portolan_keys::{Keys, MasterSecret, Purpose};
use portolan_model::Timestamp;

#[path = "../../services/mcp/src/call/request_state/plain.rs"]
mod plain;

use plain::Plain;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).expect("keys"))
}

fuzz_target!(|data: &[u8]| {
    let purpose = Purpose::RequestState;
    assert!(
        keys().open(purpose, data, b"scope", NOW).is_err(),
        "nobody else seals"
    );
    let Some(read) = Plain::read(data) else {
        return;
    };
    assert_eq!(read.to_bytes(), data, "one way to write it");
    let mut sealed = keys()
        .seal_until(
            purpose,
            data,
            b"scope",
            NOW + std::time::Duration::from_secs(60),
        )
        .expect("it can be sealed");
    let opened = keys()
        .open(purpose, &sealed, b"scope", NOW)
        .expect("it opens");
    assert_eq!(opened.expose().as_slice(), data);
    assert!(keys().open(purpose, &sealed, b"other", NOW).is_err());
    // A change of any byte makes it invalid.
    let at = usize::from(read.round) * 257 % sealed.len();
    sealed[at] ^= read.method | 1;
    assert!(keys().open(purpose, &sealed, b"scope", NOW).is_err());
});
