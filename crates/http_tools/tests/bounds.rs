//! Schemas and values that are meant to hurt (MCP-JS-5 to MCP-JS-7; TEST-B6): compiled or refused,
//! and checked, in bounded time and memory.

use std::time::{Duration, Instant};

use portolan_http_tools::{
    CompiledTool, Document, ImportOptions, OutputCheck, RequestPlan, import,
};
use serde_json::{Map, Value, json};

/// Longest time that anything may take here. This build is not optimised; what is not bounded takes
/// days.
const SOON: Duration = Duration::from_secs(10);

fn tool(schema: Value) -> CompiledTool {
    let plan = RequestPlan {
        method: "GET".into(),
        path: "/".into(),
        parameters: vec![],
        body: None,
        accept: None,
    };
    CompiledTool::new(schema, None, plan)
}

/// Makes a chain of `length` definitions. `make` turns a reference to the next definition into a
/// definition; the last one is `leaf`.
fn chain(length: usize, leaf: Value, make: impl Fn(Value) -> Value) -> Value {
    let next = |number: usize| json!({"$ref": format!("#/$defs/a{}", number + 1)});
    let mut defs: Map<String, Value> = (0..length)
        .map(|number| (format!("a{number}"), make(next(number))))
        .collect();
    defs.insert(format!("a{length}"), leaf);
    json!({"$defs": defs, "$ref": "#/$defs/a0"})
}

/// An object in an object, so often.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!({"x": inner}))
}

/// Checks arguments and an answer: whether either fits, and what is said of the arguments.
fn judged(what: &str, schema: &Value, value: &Value) -> (bool, bool, String) {
    let begun = Instant::now();
    let arguments = tool(schema.clone()).check_arguments(value);
    let output = OutputCheck::new(schema.clone()).fits(value);
    let took = begun.elapsed();
    eprintln!("{what}: {took:?}");
    assert!(took < SOON, "{what} took {took:?}");
    let said = arguments
        .as_ref()
        .err()
        .map_or_else(String::new, portolan_http_tools::ArgumentFaults::text);
    (arguments.is_ok(), output, said)
}

#[test]
fn b6_what_doubles_from_level_to_level_takes_no_longer_than_a_look_at_it() {
    let doubled = |next: Value| json!({"allOf": [next, next]});
    let below =
        |next: Value| json!({"allOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]});
    let object = json!({"type": "object"});
    // In one place: refused as a whole. Arguments are refused then (MCP-JS-6), answers are not.
    let schema = chain(40, object.clone(), doubled);
    let (fits, output, said) = judged("at one place", &schema, &json!({}));
    assert!(!fits && output && said.contains("cannot be used"), "{said}");
    // From place to place: given up, in time.
    let schema = chain(40, object.clone(), below);
    let (fits, output, said) = judged("downwards", &schema, &nested(40, json!({})));
    assert!(!fits && output && said.contains("too long"), "{said}");
    // It is soon known that this does not fit, and never why.
    let schema = chain(40, json!({"type": "string"}), below);
    let (fits, output, said) = judged("downwards, a fault", &schema, &nested(40, json!({})));
    assert!(!fits && !output && said.contains("does not fit"), "{said}");
    // Itself again, twice, one place further down.
    let again = json!({"$ref": "#/$defs/n"});
    let twice = json!([{"properties": {"x": again}}, {"properties": {"x": again}}]);
    let schema = json!({"$defs": {"n": {"type": ["object", "integer"], "allOf": twice}}, "$ref": "#/$defs/n"});
    let (fits, output, _) = judged("itself", &schema, &nested(60, json!(1)));
    assert!(fits && output);
    let (fits, output, said) = judged("itself, a fault", &schema, &nested(60, json!("x")));
    assert!(!fits && !output && said.contains("does not fit"), "{said}");
    // An ordinary value against the same schemas has its faults told.
    let (_, _, said) = judged("itself, near the top", &schema, &json!({"x": "text"}));
    assert!(said.contains("/x") && said.contains("string"), "{said}");
}

#[test]
fn b6_schemas_that_lead_to_themselves_or_elsewhere_are_refused_and_nothing_is_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let remote = format!("http://{}/schema.json", listener.local_addr().unwrap());
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"$ref": remote}),
        json!({"$id": remote, "$ref": "other.json"}),
        json!({"properties": {"a": {"$ref": remote}}}),
        json!({"$schema": remote, "$ref": remote}),
        json!({"$ref": "file:///etc/passwd"}),
    ] {
        let (fits, _, said) = judged("a reference", &schema, &json!({"a": 1}));
        assert!(!fits && said.contains("cannot be used"), "{schema}: {said}");
    }
    let asked = listener.accept();
    assert!(asked.is_err(), "somebody fetched: {asked:?}");
}

#[test]
fn b6_wide_schemas_and_patterns_that_run_away_elsewhere_are_linear() {
    let values: Vec<Value> = (0..10_000).map(|value| json!({"const": value})).collect();
    let (fits, _, said) = judged("10,000 alternatives", &json!({"anyOf": values}), &json!(7));
    assert!(!fits && said.contains("cannot be used"), "{said}");
    let values: Vec<Value> = (0..10_000).map(|value| json!(value)).collect();
    let (fits, output, _) = judged("10,000 values", &json!({"enum": values}), &json!(9_999));
    assert!(fits && output);
    let kinds: Vec<Value> = (0..500)
        .map(|kind| json!({"required": ["kind"], "properties": {"kind": {"const": kind}}}))
        .collect();
    let (fits, output, _) = judged("500 kinds", &json!({"oneOf": kinds}), &json!({"kind": 400}));
    assert!(fits && output);
    let text = format!("{}!", "a".repeat(1_000_000));
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$", "(x+x+)+y"] {
        let (fits, ..) = judged(pattern, &json!({"pattern": pattern}), &json!(text));
        assert!(!fits, "{pattern}");
    }
    // What such an engine cannot do in linear time is no pattern here.
    for pattern in ["(a)\\1", "^(?=a)b", "(?<!x)y"] {
        let (_, _, said) = judged(pattern, &json!({"pattern": pattern}), &json!("a"));
        assert!(said.contains("cannot be used"), "{pattern}: {said}");
    }
    let large = json!(vec!["x"; 200_000]);
    let (fits, output, _) = judged("a long list", &json!({"items": {"type": "string"}}), &large);
    assert!(
        fits && output,
        "an honest value that is large is checked to its end"
    );
    let (fits, ..) = judged("unique", &json!({"uniqueItems": true}), &large);
    assert!(!fits);
}

#[test]
fn b6_a_document_with_a_schema_of_five_mebibytes_is_refused_or_imported_without_it() {
    let members: Map<String, Value> = (0..60_000)
        .map(|number| {
            (
                format!("member-{number:06}"),
                json!({"type": "string", "description": "x".repeat(40)}),
            )
        })
        .collect();
    let document = json!({"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": {"/x": {"post": {
        "operationId": "large", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": members}}}},
        "responses": {"200": {"description": "Done"}}}, "get": {"operationId": "small", "responses": {"200": {"description": "Done"}}}}}});
    let text = document.to_string();
    assert!(text.len() > 5 * 1024 * 1024, "{} bytes", text.len());
    let begun = Instant::now();
    if let Ok(document) = Document::parse(text.as_bytes()) {
        let names: Vec<String> = import(&document, &ImportOptions::default())
            .operations
            .into_iter()
            .filter_map(|operation| operation.outcome.ok().map(|tool| tool.name))
            .collect();
        assert_eq!(names, ["small"]);
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}
