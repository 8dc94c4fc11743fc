//! OpenAPI schemas as JSON Schema 2020-12: 3.0's own dialect converted, 3.1 cleaned, `$defs` with only what is reachable.
//!
//! Real documents break the rules in many ways. A keyword whose value cannot mean anything is dropped, so that one
//! slip does not cost the tool; a reference that leads nowhere costs the operation, because guessing would be worse.

mod endless;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use crate::{
    arguments::pattern_compiles,
    document::{Document, SpecVersion},
    refs::{self, RefError},
};

/// Nesting of one schema (JS-7).
const MAX_DEPTH: usize = 32;
/// Subschemas of one tool's schema (JS-7).
const MAX_SUBSCHEMAS: usize = 2_000;
/// Bytes of one tool's schema as JSON (JS-7).
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Bytes of an example that is worth showing to a model.
const MAX_EXAMPLE_BYTES: usize = 200;

/// Which way the values travel: `readOnly` properties do not exist in requests, `writeOnly` ones not in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the API.
    Request,
    /// From the API.
    Response,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A reference cannot be followed.
    #[error("{fault} (at {pointer})")]
    Ref {
        /// Where the reference stands.
        pointer: String,
        /// What is wrong with it.
        fault: RefError,
    },
    /// Nested too deep (JS-7).
    #[error("a schema is nested more than {MAX_DEPTH} levels deep (at {pointer})")]
    TooDeep {
        /// Where.
        pointer: String,
    },
    /// Too many parts (JS-7).
    #[error("its schema has more than {MAX_SUBSCHEMAS} parts")]
    TooMany,
    /// Too large as JSON (JS-7).
    #[error("its schema is larger than {} KiB", MAX_SCHEMA_BYTES / 1024)]
    TooLarge,
    /// A schema that is only made of itself.
    #[error("a schema contains itself without end (at {pointer})")]
    Endless {
        /// Where.
        pointer: String,
    },
    /// The validator refuses it.
    #[error("its schema is not valid: {0}")]
    Invalid(String),
}

/// Converts the schemas of one tool and collects the definitions that they need.
pub struct SchemaWriter<'d> {
    document: &'d Document,
    direction: Direction,
    /// Pointer of a referenced schema → its name in `$defs`.
    names: HashMap<String, String>,
    used: BTreeSet<String>,
    queue: Vec<(String, String)>,
    defs: BTreeMap<String, Value>,
    count: usize,
    /// What was repaired, for the person who imports.
    pub warnings: Vec<String>,
}

impl<'d> SchemaWriter<'d> {
    /// A writer for one tool and one direction.
    pub fn new(document: &'d Document, direction: Direction) -> Self {
        Self {
            document,
            direction,
            names: HashMap::new(),
            used: BTreeSet::new(),
            queue: Vec::new(),
            defs: BTreeMap::new(),
            count: 0,
            warnings: Vec::new(),
        }
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < 20 && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Follows `$ref`s to the schema object itself.
    pub fn target<'s>(&self, schema: &'s Value, pointer: &str) -> Result<&'s Value, SchemaError>
    where
        'd: 's,
    {
        refs::resolve(&self.document.root, schema).map_err(|fault| SchemaError::Ref {
            pointer: pointer.to_owned(),
            fault,
        })
    }

    /// Whether a property is left out in this direction.
    pub fn is_hidden(&self, schema: &Value) -> bool {
        let keyword = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let set = |value: &Value| value.get(keyword) == Some(&Value::Bool(true));
        set(schema) || refs::resolve(&self.document.root, schema).is_ok_and(set)
    }

    /// Converts one schema. `pointer` says where it stands, for messages.
    pub fn convert(&mut self, schema: &Value, pointer: &str) -> Result<Value, SchemaError> {
        self.schema(schema, pointer, 0)
    }

    fn schema(
        &mut self,
        schema: &Value,
        pointer: &str,
        depth: usize,
    ) -> Result<Value, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep {
                pointer: pointer.to_owned(),
            });
        }
        self.count += 1;
        if self.count > MAX_SUBSCHEMAS {
            return Err(SchemaError::TooMany);
        }
        match schema {
            Value::Bool(flag) => Ok(Value::Bool(*flag)),
            Value::Object(object) if object.get("$ref").is_some_and(Value::is_string) => {
                self.reference(object, pointer, depth)
            }
            Value::Object(object) => self.object(object, pointer, depth).map(Value::Object),
            _ => {
                self.warn(format!(
                    "a schema that is not an object was ignored (at {pointer})"
                ));
                Ok(json!({}))
            }
        }
    }

    fn reference(
        &mut self,
        object: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Value, SchemaError> {
        let fault = |fault| SchemaError::Ref {
            pointer: pointer.to_owned(),
            fault,
        };
        let written = object
            .get("$ref")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut target_pointer = refs::local_pointer(written).map_err(fault)?;
        let mut target = self.document.root.pointer(&target_pointer).ok_or_else(|| {
            fault(RefError::Missing {
                target: written.to_owned(),
            })
        })?;
        // A definition that is only a reference adds nothing; following it also finds rings of references.
        let mut hops = 0;
        while let Some(next) = target.get("$ref").and_then(Value::as_str) {
            hops += 1;
            if hops > MAX_DEPTH {
                return Err(fault(RefError::Circular {
                    target: written.to_owned(),
                }));
            }
            target_pointer = refs::local_pointer(next).map_err(fault)?;
            target = self.document.root.pointer(&target_pointer).ok_or_else(|| {
                fault(RefError::Missing {
                    target: next.to_owned(),
                })
            })?;
        }
        let nullable = object.get("nullable") == Some(&Value::Bool(true));
        let mut out = if is_leaf(target) {
            match self.schema(target, &target_pointer, depth + 1)? {
                Value::Object(converted) => converted,
                other => return Ok(other),
            }
        } else {
            let name = self.definition(&target_pointer);
            Map::from_iter([("$ref".to_owned(), Value::String(format!("#/$defs/{name}")))])
        };
        if self.document.version == SpecVersion::V3_1 && object.len() > 1 {
            // 2020-12 lets keywords stand beside `$ref`; 3.0 says they are ignored.
            let mut beside = object.clone();
            beside.shift_remove("$ref");
            for (key, value) in self.object(&beside, pointer, depth)? {
                out.insert(key, value);
            }
        } else {
            for key in ["title", "description"] {
                if let Some(Value::String(text)) = object.get(key) {
                    out.insert(key.to_owned(), Value::String(text.clone()));
                }
            }
        }
        Ok(if nullable {
            nullable_form(out)
        } else {
            Value::Object(out)
        })
    }

    /// The name of a referenced schema in `$defs`, asked for once.
    fn definition(&mut self, pointer: &str) -> String {
        if let Some(name) = self.names.get(pointer) {
            return name.clone();
        }
        let last = pointer
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .replace("~1", "_")
            .replace("~0", "_");
        let stem: String = last
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let stem = if stem.is_empty() {
            "schema".to_owned()
        } else {
            stem
        };
        let mut name = stem.clone();
        let mut number = 2;
        while !self.used.insert(name.clone()) {
            name = format!("{stem}_{number}");
            number += 1;
        }
        self.names.insert(pointer.to_owned(), name.clone());
        self.queue.push((pointer.to_owned(), name.clone()));
        name
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm a keyword, like the table in the specification"
    )]
    fn object(
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

    /// Converts everything that was referenced, then checks that no schema is endless, and adds `$defs` to `root`.
    pub fn finish(
        mut self,
        mut root: Map<String, Value>,
    ) -> Result<(Value, Vec<String>), SchemaError> {
        while let Some((pointer, name)) = self.queue.pop() {
            let document = self.document;
            let target = document.root.pointer(&pointer).unwrap_or(&Value::Null);
            let converted = self.schema(target, &pointer, 0)?;
            self.defs.insert(name, converted);
        }
        endless::refuse(&self.defs)?;
        if !self.defs.is_empty() {
            let defs: Map<String, Value> = std::mem::take(&mut self.defs).into_iter().collect();
            root.insert("$defs".to_owned(), Value::Object(defs));
        }
        let mut schema = Value::Object(root);
        if byte_size(&schema) > MAX_SCHEMA_BYTES {
            strip(&mut schema, 0, &["examples", "title"]);
            if byte_size(&schema) > MAX_SCHEMA_BYTES {
                strip(&mut schema, 0, &["description"]);
                self.warn(
                    "nested descriptions were left out because the schema is very large".to_owned(),
                );
            }
            if byte_size(&schema) > MAX_SCHEMA_BYTES {
                return Err(SchemaError::TooLarge);
            }
        }
        Ok((schema, self.warnings))
    }
}

/// Bytes as compact JSON.
fn byte_size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// Removes annotations below the first level of properties.
fn strip(value: &mut Value, depth: usize, keys: &[&str]) {
    match value {
        Value::Object(object) => {
            // Depth 0 is the root, 1 its `properties`, 2 one argument: its description is what a model needs most.
            if depth > 2 {
                // A property may itself be called "description": only texts are annotations.
                object.retain(|key, value| {
                    !(keys.contains(&key.as_str()) && (value.is_string() || value.is_array()))
                });
            }
            object
                .values_mut()
                .for_each(|value| strip(value, depth + 1, keys));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|value| strip(value, depth + 1, keys)),
        _ => {}
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
fn nullable_form(mut schema: Map<String, Value>) -> Value {
    let mut out = Map::new();
    for key in ["title", "description", "default"] {
        if let Some(value) = schema.shift_remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    out.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
    Value::Object(out)
}

/// A schema without subschemas: small enough to stand where it is used, which more clients understand than `$ref`.
fn is_leaf(schema: &Value) -> bool {
    const NESTING: [&str; 19] = [
        "$ref",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
    ];
    match schema {
        Value::Object(object) => {
            !NESTING.iter().any(|key| object.contains_key(*key))
                && object
                    .get("enum")
                    .and_then(Value::as_array)
                    .is_none_or(|values| values.len() <= 50)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
