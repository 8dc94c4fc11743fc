//! A stream of events in pieces of any size: the same events as in one piece, within the bounds.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::sse::{Decoder, MAX_EVENT_BYTES, MAX_LINE_BYTES};

const LIMIT: usize = 4096;

/// The last line goes on: of lines only data may be so long (STREAM-13).
fn goes_on(data: &[u8]) {
    let mut decoder = Decoder::new(MAX_EVENT_BYTES);
    if decoder.push(data).is_err() {
        return;
    }
    let mut lines = data.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
    let last = lines.next().unwrap_or_default();
    let is_first = lines.next().is_none();
    let line = last.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first);
    let is_data = line.unwrap_or(last).starts_with(b"data:");
    let more = decoder.push(&[b'a'; MAX_LINE_BYTES]);
    assert_eq!(more.is_ok(), is_data || last.is_empty());
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    goes_on(data);
    let mut whole = Decoder::new(LIMIT);
    let expected = whole.push(data);
    let mut pieces = Decoder::new(LIMIT);
    let mut cut = data.chunks(usize::from(size).max(1));
    let found = cut.try_fold(Vec::new(), |mut found, piece| {
        found.extend(pieces.push(piece)?);
        Ok(found)
    });
    assert_eq!(found, expected);
    if found.is_ok() {
        assert_eq!(
            (pieces.last_id(), pieces.retry()),
            (whole.last_id(), whole.retry())
        );
    }
});
