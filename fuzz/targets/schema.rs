//! A schema of a tenant's tool, and arguments against it (MCP-JS-5 to MCP-JS-7, MCP-TL-18;
//! TEST-B6): refused with its field, or a tool whose arguments are judged, twice the same, with
//! words for every fault.
#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use portolan_http_tools::{CompiledTool, HandMade};
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let Ok(schema) = serde_json::from_slice::<Value>(parts.next().unwrap_or_default()) else {
        return;
    };
    let definition = json!({"name": "x", "description": "x", "method": "POST", "path": "/x", "body": {"schema": schema, "required": true},
        "parameters": [{"name": "q", "in": "query", "schema": schema}]});
    let definition: HandMade = serde_json::from_value(definition).expect("its form is good");
    let Ok(tool) = definition.draft() else {
        return;
    };
    assert_eq!(tool.input_schema["type"], "object", "MCP-TL-5");
    let tool = CompiledTool::new(tool.input_schema, tool.output_schema, tool.plan);
    let Ok(arguments) = serde_json::from_slice::<Value>(parts.next().unwrap_or_default()) else {
        return;
    };
    let judged = tool.check_arguments(&arguments);
    if let Err(faults) = &judged {
        assert!(!faults.faults.is_empty() && !faults.text().is_empty());
    }
    assert_eq!(tool.check_arguments(&arguments), judged);
});
