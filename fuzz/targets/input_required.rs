//! What a client or an upstream sends in place of a result or of answers (MR-3, MR-12).
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_protocol::{
    input_required::{InputRequired, read_responses, write_responses},
    jsonrpc::Raw,
};

fuzz_target!(|data: &[u8]| {
    let Ok(raw) = Raw::parse(data.to_vec()) else {
        return;
    };
    if InputRequired::is(&raw) {
        let _ = InputRequired::read(&raw);
    }
    if let Ok(responses) = read_responses(&raw) {
        let written = write_responses(responses.iter().map(|(key, value)| (key.as_str(), value)));
        let again = read_responses(&written).expect("what is written can be read");
        assert_eq!(again.len(), responses.len());
    }
});
