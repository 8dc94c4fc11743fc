//! Properties: whatever a document says, the importer answers; whatever a model says, the request
//! stays in its place.

use portolan_http_tools::{Document, ImportOptions, import, prepared::PreparedPlan};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PETSTORE: &str = include_str!("corpus/petstore-3.1.yaml");

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("$ref"),
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("allOf"),
        Just("required"),
        Just("nullable"),
        Just("schema"),
        Just("content"),
        Just("parameters"),
        Just("in"),
        Just("name"),
        Just("enum"),
        Just("pattern"),
        Just("get"),
        Just("post"),
        Just("requestBody"),
        Just("responses"),
        Just("200"),
        Just("application/json"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("#/components/schemas/A"),
            Just("#/components/schemas/B"),
            Just("#"),
            Just("#/paths"),
            Just("object"),
            Just("array"),
            Just("string"),
            Just("path"),
            Just("query"),
            Just("header"),
            Just("https://x/y"),
            Just("(?=a)"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

/// Replaces the value at the n-th place of a walk.
fn replace(value: &mut Value, place: &mut usize, with: &Value) -> bool {
    if *place == 0 {
        *value = with.clone();
        return true;
    }
    *place -= 1;
    match value {
        Value::Object(object) => object.values_mut().any(|value| replace(value, place, with)),
        Value::Array(items) => items.iter_mut().any(|value| replace(value, place, with)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Document::parse(&bytes);
    }

    #[test]
    fn a_document_cut_or_changed_anywhere_is_answered(at in 0..PETSTORE.len(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = PETSTORE.as_bytes().to_vec();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(document) = Document::parse(&bytes) {
            let _ = import(&document, &ImportOptions::default());
        }
    }

    #[test]
    fn a_document_with_any_value_anywhere_is_answered(place in 0_usize..700, with in any_json()) {
        let mut root = Document::parse(PETSTORE.as_bytes()).unwrap().root;
        let mut place = place;
        replace(&mut root, &mut place, &with);
        if let Ok(document) = Document::from_value(root, vec![]) {
            for tool in import(&document, &ImportOptions::default()).tools() {
                prop_assert_eq!(&tool.input_schema["type"], "object");
            }
        }
    }

    #[test]
    fn any_schemas_are_answered(a in any_json(), b in any_json(), operation in any_json()) {
        let root = json!({"openapi": "3.0.0", "paths": {"/x/{id}": {"post": operation, "get": {
            "parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/A"}}],
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/B"}}}}}}}},
            "components": {"schemas": {"A": a, "B": b}}});
        let document = Document::from_value(root, vec![]).unwrap();
        let _ = import(&document, &ImportOptions::default());
    }

    #[test]
    fn no_argument_leaves_its_place_ab_44(id in "\\PC{0,20}|\\.{1,2}|[/\\\\%.]{1,8}", q in "\\PC{0,20}", h in any::<String>()) {
        let document = Document::from_value(json!({"openapi": "3.0.0", "paths": {"/a/{id}/b": {"get": {"parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "q", "in": "query", "schema": {"type": "string"}},
            {"name": "X-H", "in": "header", "schema": {"type": "string"}}]}}}}), vec![]).unwrap();
        let imported = import(&document, &ImportOptions::default());
        let plan = PreparedPlan::new(imported.tools().next().unwrap().plan.clone());
        let arguments: Map<String, Value> = Map::from_iter([
            ("id".to_owned(), json!(id)), ("q".to_owned(), json!(q)), ("X-H".to_owned(), json!(h))]);
        let base = url::Url::parse("https://api.example.com/v1").unwrap();
        if let Ok(built) = portolan_http_tools::request::build(&plan, &base, &arguments) {
            let segments: Vec<_> = built.url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4, "{}", built.url);
            prop_assert_eq!((segments[0], segments[1], segments[3]), ("v1", "a", "b"));
            let pairs: Vec<_> = built.url.query_pairs().collect();
            prop_assert_eq!(pairs.len(), 1);
            prop_assert_eq!(&pairs[0].1, &q);
            let header = built.headers["x-h"].as_bytes();
            prop_assert!(!header.iter().any(|b| *b == b'\r' || *b == b'\n' || *b == 0));
        }
    }
}
