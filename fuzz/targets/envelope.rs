//! A POST's body and what follows from it: never a panic, and what is read is written back the same.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::{
    header::Headers,
    jsonrpc::{BatchContent, Body},
    negotiate,
    revision::Revision,
};

fuzz_target!(|data: &[u8]| {
    let Ok(body) = Body::parse(data.to_vec().into()) else {
        return;
    };
    if let Body::Batch(batch) = &body
        && let Ok(BatchContent::Calls(calls)) = negotiate::open_batch(batch, Revision::V2025_03_26)
    {
        assert!(!calls.is_empty() && calls.len() <= 100, "J-15");
    }
    if let Body::Single(message) = &body
        && let Some(id) = message.request_id()
    {
        let text = id.to_json();
        assert!(!text.is_empty() && text != "null", "J-2");
    }
    let headers = Headers::collect([
        ("mcp-session-id", &b"x"[..]),
        ("mcp-protocol-version", b"2025-11-25"),
    ]);
    if let Err(refusal) = negotiate::admit(body, &headers) {
        assert!((400..500).contains(&refusal.status));
    }
});
