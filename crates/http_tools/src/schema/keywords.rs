//! What each keyword of a schema becomes: 3.0's own dialect and the slips of real documents, one by one.

use serde_json::{Map, Value, json};

use super::{Direction, SchemaError, SchemaWriter};
use crate::{arguments::pattern_compiles, refs};

/// Bytes of an example that is worth showing to a model.
const MAX_EXAMPLE_BYTES: usize = 200;

impl SchemaWriter<'_> {
    /// Every keyword of a schema object that means something in this direction.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm a keyword, like the table in the specification"
    )]
    pub(super) fn object(
        &mut self,
        object: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaError> {
        let mut out = Map::new();
        let mut hidden: Vec<&str> = Vec::new();
        for (key, value) in object {
            let here = || format!("{pointer}/{}", refs::escape_step(key));
            match key.as_str() {
                "type" => {
                    if let Some(types) = self.types(value, pointer) {
                        out.insert(key.clone(), types);
                    }
                }
                "properties" => {
                    let Value::Object(properties) = value else {
                        continue;
                    };
                    let mut kept = Map::new();
                    for (name, property) in properties {
                        if self.is_hidden(property) {
                            hidden.push(name);
                            continue;
                        }
                        let place = format!("{}/{}", here(), refs::escape_step(name));
                        kept.insert(name.clone(), self.schema(property, &place, depth + 1)?);
                    }
                    out.insert(key.clone(), Value::Object(kept));
                }
                "items" => match value {
                    Value::Array(items) => {
                        let items = self.list(items, &here(), depth)?;
                        if !items.is_empty() {
                            out.insert("prefixItems".to_owned(), Value::Array(items));
                        }
                    }
                    Value::Object(_) | Value::Bool(_) => {
                        out.insert(key.clone(), self.schema(value, &here(), depth + 1)?);
                    }
                    _ => {}
                },
                "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems"
                    if *value == Value::Bool(false) && self.direction == Direction::Response =>
                {
                    // APIs grow fields before their documents do; an answer with more than promised is no fault.
                }
                "additionalProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                    if (value.is_object() || value.is_boolean()) =>
                {
                    out.insert(key.clone(), self.schema(value, &here(), depth + 1)?);
                }
                "patternProperties" | "dependentSchemas" => {
                    let Value::Object(schemas) = value else {
                        continue;
                    };
                    let mut kept = Map::new();
                    for (name, schema) in schemas {
                        if key == "patternProperties" && !pattern_compiles(name) {
                            self.warn(format!(
                                "a pattern that is not supported was left out (at {})",
                                here()
                            ));
                            continue;
                        }
                        let place = format!("{}/{}", here(), refs::escape_step(name));
                        kept.insert(name.clone(), self.schema(schema, &place, depth + 1)?);
                    }
                    out.insert(key.clone(), Value::Object(kept));
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let Value::Array(items) = value else { continue };
                    let items = self.list(items, &here(), depth)?;
                    if items.is_empty() {
                        continue;
                    }
                    // Answers that fit two alternatives are common and harmless; `oneOf` would refuse them.
                    let name = if key == "oneOf" && self.direction == Direction::Response {
                        "anyOf"
                    } else {
                        key
                    };
                    if let Some(Value::Array(present)) = out.get_mut(name) {
                        present.extend(items);
                    } else {
                        out.insert(name.to_owned(), Value::Array(items));
                    }
                }
                "enum" => {
                    let Value::Array(values) = value else {
                        continue;
                    };
                    let mut kept: Vec<Value> = Vec::with_capacity(values.len());
                    for value in values {
                        if !kept.contains(value) {
                            kept.push(value.clone());
                        }
                    }
                    if !kept.is_empty() {
                        out.insert(key.clone(), Value::Array(kept));
                    }
                }
                "minimum" | "maximum" if value.is_number() => {
                    out.entry(key.clone()).or_insert_with(|| value.clone());
                }
                "exclusiveMinimum" | "exclusiveMaximum" => match value {
                    Value::Number(_) => {
                        out.insert(key.clone(), value.clone());
                    }
                    // 3.0 and draft 4: a flag on the inclusive limit.
                    Value::Bool(true) => {
                        let limit = if key == "exclusiveMinimum" {
                            "minimum"
                        } else {
                            "maximum"
                        };
                        if let Some(number @ Value::Number(_)) = object.get(limit) {
                            out.insert(key.clone(), number.clone());
                        }
                    }
                    _ => {}
                },
                "multipleOf" if value.as_f64().is_some_and(|step| step > 0.0) => {
                    out.insert(key.clone(), value.clone());
                }
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" => {
                    if let Some(count) = whole_number(value) {
                        out.insert(key.clone(), Value::from(count));
                    }
                }
                "pattern" => {
                    let Value::String(pattern) = value else {
                        continue;
                    };
                    if pattern_compiles(pattern) {
                        out.insert(key.clone(), value.clone());
                    } else {
                        self.warn(format!(
                            "the pattern at {} is not supported (look-around and back-references are not) and was left out",
                            here()
                        ));
                    }
                }
                "uniqueItems" | "deprecated" if value.is_boolean() => {
                    out.insert(key.clone(), value.clone());
                }
                "title" | "description" | "format" | "contentEncoding" | "contentMediaType"
                    if value.is_string() =>
                {
                    out.insert(key.clone(), value.clone());
                }
                "const" | "default" => {
                    out.insert(key.clone(), value.clone());
                }
                "examples" if value.is_array() && is_worth_showing(value) => {
                    out.insert(key.clone(), value.clone());
                }
                "example" if !object.contains_key("examples") && is_worth_showing(value) => {
                    out.insert("examples".to_owned(), json!([value]));
                }
                "dependentRequired" => {
                    let Value::Object(map) = value else { continue };
                    let sound = map.values().all(|names| {
                        names
                            .as_array()
                            .is_some_and(|names| names.iter().all(Value::is_string))
                    });
                    if sound {
                        out.insert(key.clone(), value.clone());
                    }
                }
                "$dynamicRef" | "$recursiveRef" => {
                    self.warn(format!(
                        "a dynamic reference is not supported and was left out (at {pointer})"
                    ));
                }
                _ => {}
            }
        }
        self.required(object, &hidden, &mut out);
        self.nullable(object, &mut out);
        // The exclusive limit replaced the inclusive one.
        for (exclusive, inclusive) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            if object.get(exclusive) == Some(&Value::Bool(true)) && out.contains_key(exclusive) {
                out.shift_remove(inclusive);
            }
        }
        Ok(out)
    }

    fn list(
        &mut self,
        items: &[Value],
        pointer: &str,
        depth: usize,
    ) -> Result<Vec<Value>, SchemaError> {
        items
            .iter()
            .enumerate()
            .map(|(index, item)| self.schema(item, &format!("{pointer}/{index}"), depth + 1))
            .collect()
    }

    /// `required` without what this direction hides, and without draft 3's boolean form.
    fn required(&self, object: &Map<String, Value>, hidden: &[&str], out: &mut Map<String, Value>) {
        let Some(Value::Array(names)) = object.get("required") else {
            return;
        };
        let mut kept: Vec<Value> = Vec::with_capacity(names.len());
        for name in names {
            let is_hidden = name.as_str().is_none_or(|name| hidden.contains(&name));
            if !is_hidden && !kept.contains(name) {
                kept.push(name.clone());
            }
        }
        if !kept.is_empty() {
            out.insert("required".to_owned(), Value::Array(kept));
        }
    }

    /// 3.0's `nullable`, honoured in 3.1 documents too: many were renamed without being converted.
    fn nullable(&self, object: &Map<String, Value>, out: &mut Map<String, Value>) {
        if object.get("nullable") != Some(&Value::Bool(true)) {
            return;
        }
        if let Some(Value::Array(values)) = out.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        match out.get_mut("type") {
            Some(Value::String(single)) => {
                let single = std::mem::take(single);
                out.insert("type".to_owned(), json!([single, "null"]));
            }
            Some(Value::Array(types)) => {
                if !types.contains(&Value::from("null")) {
                    types.push(Value::from("null"));
                }
            }
            _ => {
                if ["allOf", "anyOf", "oneOf", "not"]
                    .iter()
                    .any(|key| out.contains_key(*key))
                {
                    let inner = std::mem::take(out);
                    if let Value::Object(wrapped) = nullable_form(inner) {
                        *out = wrapped;
                    }
                }
            }
        }
    }

    fn types(&mut self, value: &Value, pointer: &str) -> Option<Value> {
        const KNOWN: [&str; 7] = [
            "null", "boolean", "object", "array", "number", "string", "integer",
        ];
        let known = |name: &str| {
            let name = match name {
                "file" | "str" | "date" | "datetime" => "string",
                "int" | "long" => "integer",
                "float" | "double" => "number",
                "bool" => "boolean",
                "dict" | "map" => "object",
                "list" => "array",
                other => other,
            };
            KNOWN.contains(&name).then(|| name.to_owned())
        };
        match value {
            Value::String(name) => {
                let found = known(&name.to_ascii_lowercase());
                if found.is_none() && name != "any" {
                    self.warn(format!(
                        "the type `{name}` does not exist and was left out (at {pointer})"
                    ));
                }
                found.map(Value::String)
            }
            Value::Array(names) => {
                let mut kept: Vec<Value> = Vec::new();
                for name in names
                    .iter()
                    .filter_map(Value::as_str)
                    .filter_map(|name| known(&name.to_ascii_lowercase()))
                {
                    let name = Value::String(name);
                    if !kept.contains(&name) {
                        kept.push(name);
                    }
                }
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            _ => None,
        }
    }
}

/// Short, and without a `$ref`, which careless readers would follow out of the schema.
fn is_worth_showing(example: &Value) -> bool {
    let text = example.to_string();
    text.len() <= MAX_EXAMPLE_BYTES && !text.contains("\"$ref\"")
}

fn whole_number(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "range and fraction are checked"
    )]
    value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n < 9e15)
            .map(|n| n as u64)
    })
}

/// `schema` or null, with its texts outside where a model sees them.
pub(super) fn nullable_form(mut schema: Map<String, Value>) -> Value {
    let mut out = Map::new();
    for key in ["title", "description", "default"] {
        if let Some(value) = schema.shift_remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    out.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
    Value::Object(out)
}
