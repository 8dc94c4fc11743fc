//! A written event reads back as that one event, for any content (MCP-T-10, MCP-T-24, MCP-T-25,
//! MCP-T-34; TEST-S9).
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::sse::{self, Decoder, SseEvent};

/// Longest id: ours are far shorter.
const LONGEST_ID: usize = 1024;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (id, json) = text
        .split_once('\n')
        .map_or((None, text), |(id, json)| (Some(id), json));
    if id.is_some_and(|id| id.len() > LONGEST_ID) {
        return;
    }
    let first = id.unwrap_or("0");
    let mut stream = sse::priming(first);
    stream.extend(sse::message(id, json.as_bytes()));
    stream.extend_from_slice(sse::KEEP_ALIVE);
    stream.extend(sse::retry(json.len() as u64));
    let mut decoder = Decoder::new(1 << 20);
    let events = decoder.push(&stream).expect("far below the limit");
    // What would break the frame is left out.
    let is_visible = first.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    let id = is_visible.then(|| first.to_owned());
    let event = |data: String| SseEvent {
        event: "message".to_owned(),
        data,
        id: id.clone(),
    };
    let expected = [event(String::new()), event(json.replace(['\n', '\r'], " "))];
    assert_eq!(events, expected);
    assert_eq!(decoder.retry(), Some(json.len() as u64));
});
