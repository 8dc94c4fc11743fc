//! Mirrored header values: what is written is read back (H-7, H-10), what comes is read or refused.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::header::{Dialect, Headers, decode, encode};

fuzz_target!(|data: &[u8]| {
    for dialect in [Dialect::Modern, Dialect::Draft] {
        if let Ok(text) = decode(data, dialect) {
            let written = encode(&text);
            assert!(
                written
                    .bytes()
                    .all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t')
            );
            assert_eq!(
                decode(written.as_bytes(), Dialect::Modern).as_deref(),
                Ok(&*text)
            );
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let written = encode(text);
        assert_eq!(
            decode(written.as_bytes(), Dialect::Modern).as_deref(),
            Ok(text)
        );
    }
    let headers = Headers::collect([
        ("Last-Event-ID", data),
        ("mcp-param-x", data),
        ("mcp-name", data),
    ]);
    let _ = (headers.event_id(), headers.param("X"), headers.repeated());
});
