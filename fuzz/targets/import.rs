//! A document that somebody uploads: refused or imported, never a panic.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_http_tools::{Document, ImportOptions, import};

fuzz_target!(|data: &[u8]| {
    if let Ok(document) = Document::parse(data) {
        let imported = import(&document, &ImportOptions::default());
        for tool in imported.tools() {
            assert!(!tool.name.is_empty());
        }
    }
});
