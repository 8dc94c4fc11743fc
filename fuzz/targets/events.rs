//! A stream of events in pieces of any size: the same events as in one piece, within the bound.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::sse::Decoder;

const LIMIT: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    let mut whole = Decoder::new(LIMIT);
    let Ok(expected) = whole.push(data) else {
        return;
    };
    let mut pieces = Decoder::new(LIMIT);
    let mut found = Vec::new();
    for piece in data.chunks(usize::from(size).max(1)) {
        match pieces.push(piece) {
            Ok(events) => found.extend(events),
            Err(_) => return,
        }
    }
    assert_eq!(found, expected);
    assert_eq!(
        (pieces.last_id(), pieces.retry()),
        (whole.last_id(), whole.retry())
    );
});
