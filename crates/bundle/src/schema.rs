//! The JSON Schema of the format, made of its types.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::format::Bundle;

/// The schema (JSON Schema 2020-12).
pub fn json_schema() -> Value {
    let mut schemas = Vec::new();
    Bundle::schemas(&mut schemas);
    let mut definitions: Vec<(String, Value)> = schemas
        .into_iter()
        .map(|(name, schema)| (name, in_schema(&schema)))
        .collect();
    definitions.sort_by(|a, b| a.0.cmp(&b.0));
    let mut root = Map::new();
    let mut add = |name: &str, value: Value| root.insert(name.to_owned(), value);
    add(
        "$schema",
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    add(
        "title",
        json!("Portolan configuration as code, portolan/v1"),
    );
    if let Value::Object(members) = in_schema(&Bundle::schema()) {
        for (name, value) in members {
            add(&name, value);
        }
    }
    add(
        "$defs",
        definitions.into_iter().collect::<Map<_, _>>().into(),
    );
    Value::Object(root)
}

/// A schema of an API description as JSON Schema: its references lead into `$defs`.
fn in_schema(schema: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(schema).unwrap_or_default();
    redirect(&mut value);
    value
}

fn redirect(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "$ref" => {
                        *text = text.replace("#/components/schemas/", "#/$defs/");
                    }
                    member => redirect(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redirect),
        _ => {}
    }
}
