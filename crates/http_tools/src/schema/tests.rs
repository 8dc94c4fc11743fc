use super::*;

fn document(version: &str, schemas: Value) -> Document {
    Document::from_value(
        json!({"openapi": version, "paths": {}, "components": {"schemas": schemas}}),
        vec![],
    )
    .unwrap()
}

fn convert(version: &str, direction: Direction, schema: Value) -> Value {
    let document = document(version, json!({}));
    SchemaWriter::new(&document, direction)
        .convert(&schema, "#")
        .unwrap()
}

#[test]
fn the_3_0_dialect_becomes_2020_12() {
    let out = convert(
        "3.0.3",
        Direction::Request,
        json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true, "nullable": true}),
    );
    assert_eq!(
        out,
        json!({"exclusiveMinimum": 1, "type": ["integer", "null"]})
    );
    let out = convert(
        "3.0.3",
        Direction::Request,
        json!({"enum": ["a", "a"], "type": "string", "nullable": true}),
    );
    assert_eq!(
        out,
        json!({"enum": ["a", null], "type": ["string", "null"]})
    );
    let out = convert(
        "3.0.3",
        Direction::Request,
        json!({"allOf": [{"type": "string"}], "nullable": true, "description": "d"}),
    );
    assert_eq!(
        out,
        json!({"description": "d", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]})
    );
}

#[test]
fn read_only_is_dropped_in_requests_and_write_only_in_responses() {
    let schema = json!({"type": "object", "required": ["id", "secret", "name"], "properties": {
        "id": {"type": "string", "readOnly": true}, "secret": {"type": "string", "writeOnly": true}, "name": {"type": "string"}}});
    let request = convert("3.0.3", Direction::Request, schema.clone());
    assert_eq!(request["required"], json!(["secret", "name"]));
    assert!(request["properties"].get("id").is_none());
    let response = convert("3.1.0", Direction::Response, schema);
    assert_eq!(response["required"], json!(["id", "name"]));
    assert!(response["properties"].get("secret").is_none());
}

#[test]
fn slips_of_real_documents_do_not_cost_the_tool() {
    let out = convert(
        "3.0.3",
        Direction::Request,
        json!({"type": "object", "required": true, "properties": {"a": {"type": "float", "minLength": "3", "pattern": "(?=x)", "enum": "x"},
            "b": null, "c": {"type": "array", "items": [{"type": "string"}], "maxItems": 2.0}}, "x-internal": {}}),
    );
    assert_eq!(
        out,
        json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {},
            "c": {"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 2}}})
    );
}

#[test]
fn a_cycle_stays_a_reference_into_defs_and_only_what_is_reachable_is_kept() {
    let document = document(
        "3.1.0",
        json!({"Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "kind": {"$ref": "#/components/schemas/Kind"}}},
            "Kind": {"type": "string", "enum": ["a"]}, "Unused": {"type": "object", "properties": {}}}),
    );
    let mut writer = SchemaWriter::new(&document, Direction::Request);
    let node = writer
        .convert(&json!({"$ref": "#/components/schemas/Node"}), "#")
        .unwrap();
    assert_eq!(node, json!({"$ref": "#/$defs/Node"}));
    let (root, _) = writer
        .finish(Map::from_iter([("items".to_owned(), node)]))
        .unwrap();
    assert_eq!(
        root["$defs"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["Node"]
    );
    assert_eq!(
        root["$defs"]["Node"]["properties"]["next"],
        json!({"$ref": "#/$defs/Node"})
    );
    assert_eq!(
        root["$defs"]["Node"]["properties"]["kind"],
        json!({"type": "string", "enum": ["a"]}),
        "leaves are inlined"
    );
}

#[test]
fn a_schema_made_only_of_itself_is_refused() {
    let document = document(
        "3.1.0",
        json!({"A": {"allOf": [{"$ref": "#/components/schemas/B"}]}, "B": {"anyOf": [{"$ref": "#/components/schemas/A"}]}}),
    );
    let mut writer = SchemaWriter::new(&document, Direction::Request);
    writer
        .convert(&json!({"$ref": "#/components/schemas/A"}), "#")
        .unwrap();
    assert!(matches!(
        writer.finish(Map::new()),
        Err(SchemaError::Endless { .. })
    ));
}

#[test]
fn schema_bombs_are_refused_js_7() {
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "array", "items": deep});
    }
    let document = document("3.1.0", json!({}));
    assert!(matches!(
        SchemaWriter::new(&document, Direction::Request).convert(&deep, "#"),
        Err(SchemaError::TooDeep { .. })
    ));
    let wide: Map<String, Value> = (0..2_100)
        .map(|n| (format!("p{n}"), json!({"type": "string"})))
        .collect();
    assert_eq!(
        SchemaWriter::new(&document, Direction::Request).convert(&json!({"properties": wide}), "#"),
        Err(SchemaError::TooMany)
    );
    let large = json!({"type": "object", "properties": {"x": {"enum": ["y".repeat(70_000)]}}});
    let writer = SchemaWriter::new(&document, Direction::Request);
    assert_eq!(
        writer
            .finish(large.as_object().unwrap().clone())
            .unwrap_err(),
        SchemaError::TooLarge
    );
}
