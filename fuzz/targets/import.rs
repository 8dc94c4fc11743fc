//! An uploaded document: refused with a sentence, or imported, never a panic. Its tools can be
//! stored.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use portolan_http_tools::{
    Document, ImportOptions, MAX_DOCUMENT_BYTES, Problem, Severity, ToolDraft, import,
};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let document = match Document::parse(data) {
        Ok(document) => document,
        Err(refused) => {
            let worst = refused.problems.first().expect("a reason");
            assert!(worst.severity == Severity::Error && !worst.message.is_empty());
            let stored = serde_json::to_vec(worst).expect("JSON");
            let read: Problem = serde_json::from_slice(&stored).expect("a problem");
            assert_eq!(read, *worst);
            return;
        }
    };
    // Written as strict JSON it is the same document, and nothing is left to be repaired. YAML may be too large or too deep for that.
    let written = serde_json::to_vec(&document.root).expect("JSON");
    if written.len() <= MAX_DOCUMENT_BYTES && serde_json::from_slice::<Value>(&written).is_ok() {
        let again = Document::parse(&written).expect("it is a document");
        assert_eq!(again.version, document.version);
        assert_eq!(again.version_text, document.version_text);
        assert!(again.problems.is_empty());
    }

    let imported = import(&document, &ImportOptions::default());
    let mut names = BTreeSet::new();
    for tool in imported.tools() {
        assert!(!tool.name.is_empty() && names.insert(&tool.name));
        assert_eq!(tool.input_schema["type"], "object", "MCP-TL-5");
        let stored = serde_json::to_value(tool).expect("JSON");
        let read: ToolDraft = serde_json::from_value(stored).expect("a draft");
        assert_eq!(read, *tool);
    }
    for operation in &imported.operations {
        assert!(
            operation
                .outcome
                .as_ref()
                .err()
                .is_none_or(|why| !why.is_empty())
        );
    }
});
