//! A file of configuration (CONF-2, CONF-4): refused with a sentence, or read. Its canonical text
//! reads back the same, and is no change.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_bundle::{MOST_BYTES, canonical::canonical, changes::changes, parse, written::yaml};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let bundle = match parse(text) {
        Ok(parsed) => canonical(parsed.bundle),
        Err(fault) => {
            assert!(!fault.message.is_empty());
            assert!(
                fault
                    .place
                    .is_none_or(|place| place.line > 0 && place.column > 0)
            );
            return;
        }
    };
    let written = yaml(&bundle).expect("JSON");
    // A file in JSON or with aliases may be shorter than its canonical text.
    if written.len() > MOST_BYTES {
        return;
    }
    let again = parse(&written).expect("a canonical file is a file").bundle;
    assert_eq!(canonical(again.clone()), bundle);
    assert_eq!(yaml(&again).expect("JSON"), written);
    assert!(changes(&bundle, &again).is_empty());
});
