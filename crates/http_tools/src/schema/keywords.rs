//! What each keyword of a schema becomes: 3.0's own dialect and the slips of real documents, one by
//! one.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Direction, MAX_SCHEMA_BYTES, SchemaError, SchemaWriter};
use crate::{effort, refs};

/// Bytes of an example that is worth showing to a model.
const MAX_EXAMPLE_BYTES: usize = 200;
/// Values of one `enum`, and names of one `required`, as written (JS-7). More would not fit into a
/// schema.
const MAX_CHOICES: usize = 10_000;

/// One keyword of a schema object.
#[derive(Clone, Copy)]
struct Keyword<'v, 'p> {
    name: &'v str,
    value: &'v Value,
    /// The object that has it.
    object: &'v Map<String, Value>,
    /// The place of the object in the document.
    pointer: &'p str,
    /// The depth of the object.
    depth: usize,
}

impl Keyword<'_, '_> {
    /// The place of the keyword in the document.
    fn place(self) -> String {
        format!("{}/{}", self.pointer, refs::escape_step(self.name))
    }

    /// Takes it as written.
    fn keep(self, out: &mut Map<String, Value>) {
        out.insert(self.name.to_owned(), self.value.clone());
    }

    /// Takes it as written, unless it would be too large for a schema.
    fn keep_small(self, out: &mut Map<String, Value>) -> Result<(), SchemaError> {
        if !fits(self.value, MAX_SCHEMA_BYTES) {
            return Err(SchemaError::TooLarge);
        }
        self.keep(out);
        Ok(())
    }
}

impl SchemaWriter<'_> {
    /// Every keyword of a schema object that means something in this direction.
    pub(super) fn object(
        &mut self,
        object: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaError> {
        let mut out = Map::new();
        let mut hidden: HashSet<&str> = HashSet::new();
        for (name, value) in object {
            effort::spend(4);
            effort::spend_text(name);
            let keyword = Keyword {
                name,
                value,
                object,
                pointer,
                depth,
            };
            match name.as_str() {
                "properties" => self.properties(keyword, &mut hidden, &mut out)?,
                "items"
                | "additionalProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "unevaluatedProperties"
                | "unevaluatedItems" => self.one_schema(keyword, &mut out)?,
                "patternProperties" | "dependentSchemas" => {
                    self.named_schemas(keyword, &mut out)?;
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    self.listed_schemas(keyword, &mut out)?;
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" => limit(keyword, &mut out),
                "title" | "description" | "format" | "contentEncoding" | "contentMediaType"
                | "deprecated" | "default" | "examples" | "example" => {
                    annotation(keyword, &mut out)?;
                }
                _ => self.constraint(keyword, &mut out)?,
            }
        }
        self.required(object, &hidden, pointer, &mut out)?;
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

    /// `properties`, without those that this direction hides; their names go to `hidden`.
    fn properties<'v>(
        &mut self,
        keyword: Keyword<'v, '_>,
        hidden: &mut HashSet<&'v str>,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let Value::Object(properties) = keyword.value else {
            return Ok(());
        };
        let mut kept = Map::new();
        for (name, property) in properties {
            if self.is_hidden(property) {
                hidden.insert(name);
                continue;
            }
            let place = format!("{}/{}", keyword.place(), refs::escape_step(name));
            let written = self.schema(property, &place, keyword.depth + 1)?;
            kept.insert(name.clone(), written);
        }
        out.insert(keyword.name.to_owned(), Value::Object(kept));
        Ok(())
    }

    /// A keyword whose value is a schema; `items` may be a list of them.
    fn one_schema(
        &mut self,
        keyword: Keyword<'_, '_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let closes = matches!(
            keyword.name,
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems"
        );
        if closes && *keyword.value == Value::Bool(false) && self.direction == Direction::Response {
            // APIs grow fields before their documents do; an answer with more than promised is no
            // fault.
            return Ok(());
        }
        match keyword.value {
            Value::Array(items) if keyword.name == "items" => {
                let items = self.list(items, &keyword.place(), keyword.depth)?;
                if !items.is_empty() {
                    out.insert("prefixItems".to_owned(), Value::Array(items));
                }
            }
            Value::Object(_) | Value::Bool(_) => {
                let written = self.schema(keyword.value, &keyword.place(), keyword.depth + 1)?;
                out.insert(keyword.name.to_owned(), written);
            }
            _ => {}
        }
        Ok(())
    }

    /// `patternProperties` and `dependentSchemas`: schemas by name.
    fn named_schemas(
        &mut self,
        keyword: Keyword<'_, '_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let Value::Object(schemas) = keyword.value else {
            return Ok(());
        };
        let mut kept = Map::new();
        for (name, schema) in schemas {
            if keyword.name == "patternProperties" && !self.pattern_compiles(name) {
                self.warn(format!(
                    "a pattern that is not supported was left out (at {})",
                    keyword.place()
                ));
                continue;
            }
            let place = format!("{}/{}", keyword.place(), refs::escape_step(name));
            kept.insert(
                name.clone(),
                self.schema(schema, &place, keyword.depth + 1)?,
            );
        }
        out.insert(keyword.name.to_owned(), Value::Object(kept));
        Ok(())
    }

    /// `allOf`, `anyOf`, `oneOf` and `prefixItems`: schemas in a list.
    fn listed_schemas(
        &mut self,
        keyword: Keyword<'_, '_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let Value::Array(items) = keyword.value else {
            return Ok(());
        };
        let items = self.list(items, &keyword.place(), keyword.depth)?;
        if items.is_empty() {
            return Ok(());
        }
        // Answers that fit two alternatives are common and harmless; `oneOf` would refuse them.
        let name = if keyword.name == "oneOf" && self.direction == Direction::Response {
            "anyOf"
        } else {
            keyword.name
        };
        if let Some(Value::Array(present)) = out.get_mut(name) {
            present.extend(items);
        } else {
            out.insert(name.to_owned(), Value::Array(items));
        }
        Ok(())
    }

    /// Types, values, patterns, and what is left out with a warning. Other keywords mean nothing.
    fn constraint(
        &mut self,
        keyword: Keyword<'_, '_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        match (keyword.name, keyword.value) {
            ("type", types) => {
                if let Some(types) = self.types(types, keyword.pointer) {
                    out.insert(keyword.name.to_owned(), types);
                }
            }
            ("enum", Value::Array(values)) => {
                let kept = choices(values, keyword.pointer)?;
                if !kept.is_empty() {
                    out.insert(keyword.name.to_owned(), Value::Array(kept));
                }
            }
            ("const", _) => keyword.keep_small(out)?,
            ("uniqueItems", Value::Bool(_)) => keyword.keep(out),
            ("pattern", Value::String(pattern)) => {
                if self.pattern_compiles(pattern) {
                    keyword.keep(out);
                } else {
                    self.warn(format!(
                        "the pattern at {} is not supported (look-around and back-references are not) and was left out",
                        keyword.place()
                    ));
                }
            }
            ("dependentRequired", Value::Object(map)) => {
                if !fits(keyword.value, MAX_SCHEMA_BYTES) {
                    return Err(SchemaError::TooLarge);
                }
                let is_names = |names: &Value| {
                    let names = names.as_array();
                    names.is_some_and(|names| names.iter().all(Value::is_string))
                };
                if map.values().all(is_names) {
                    keyword.keep(out);
                }
            }
            ("$dynamicRef" | "$recursiveRef", _) => {
                self.warn(format!(
                    "a dynamic reference is not supported and was left out (at {})",
                    keyword.pointer
                ));
            }
            _ => {}
        }
        Ok(())
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
    fn required(
        &self,
        object: &Map<String, Value>,
        hidden: &HashSet<&str>,
        pointer: &str,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let Some(Value::Array(names)) = object.get("required") else {
            return Ok(());
        };
        let names = choices(names, pointer)?;
        let is_visible = |name: &Value| name.as_str().is_some_and(|name| !hidden.contains(name));
        let kept: Vec<Value> = names.into_iter().filter(is_visible).collect();
        if !kept.is_empty() {
            out.insert("required".to_owned(), Value::Array(kept));
        }
        Ok(())
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
                effort::spend_text(name);
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
                    .take(100)
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

/// Bounds of numbers, lengths and counts.
fn limit(keyword: Keyword<'_, '_>, out: &mut Map<String, Value>) {
    let Keyword { name, value, .. } = keyword;
    match (name, value) {
        ("minimum" | "maximum", Value::Number(_)) => {
            out.entry(name.to_owned()).or_insert_with(|| value.clone());
        }
        ("minimum" | "maximum", _) => {}
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => keyword.keep(out),
        // 3.0 and draft 4: a flag on the inclusive limit.
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(true)) => {
            let inclusive = if name == "exclusiveMinimum" {
                "minimum"
            } else {
                "maximum"
            };
            if let Some(number @ Value::Number(_)) = keyword.object.get(inclusive) {
                out.insert(name.to_owned(), number.clone());
            }
        }
        ("exclusiveMinimum" | "exclusiveMaximum", _) => {}
        ("multipleOf", step) => {
            if step.as_f64().is_some_and(|step| step > 0.0) {
                keyword.keep(out);
            }
        }
        (_, count) => {
            if let Some(count) = whole_number(count) {
                out.insert(name.to_owned(), Value::from(count));
            }
        }
    }
}

/// Texts, examples and other keywords that people and models read.
fn annotation(keyword: Keyword<'_, '_>, out: &mut Map<String, Value>) -> Result<(), SchemaError> {
    let Keyword { name, value, .. } = keyword;
    match name {
        "default" => keyword.keep_small(out)?,
        "deprecated" if value.is_boolean() => keyword.keep(out),
        "examples" if value.is_array() && is_worth_showing(value) => keyword.keep(out),
        "example" if !keyword.object.contains_key("examples") && is_worth_showing(value) => {
            out.insert("examples".to_owned(), json!([value]));
        }
        "title" | "description" | "format" | "contentEncoding" | "contentMediaType"
            if value.is_string() =>
        {
            effort::spend_value(value);
            keyword.keep(out);
        }
        _ => {}
    }
    Ok(())
}

/// Each of the values once, in their order.
fn choices(values: &[Value], pointer: &str) -> Result<Vec<Value>, SchemaError> {
    if values.len() > MAX_CHOICES {
        return Err(SchemaError::TooManyChoices {
            pointer: pointer.to_owned(),
        });
    }
    let mut seen: HashSet<String> = HashSet::with_capacity(values.len());
    let mut kept = Vec::with_capacity(values.len());
    let mut room = MAX_SCHEMA_BYTES;
    for value in values {
        effort::spend(4);
        let size = size_within(value, room).ok_or(SchemaError::TooLarge)?;
        if seen.insert(value.to_string()) {
            room -= size;
            kept.push(value.clone());
        }
    }
    Ok(kept)
}

/// Bytes of a value as JSON, roughly and never more than it has, unless they are more than `most`.
/// Takes steps for what it looks at.
fn size_within(value: &Value, most: usize) -> Option<usize> {
    fn add(value: &Value, most: usize, size: &mut usize) -> bool {
        effort::spend(1);
        *size += match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.len() + 1,
            Value::Object(members) => members.len() * 4 + 1,
            _ => 1,
        };
        if *size > most {
            return false;
        }
        match value {
            Value::Array(items) => items.iter().all(|item| add(item, most, size)),
            Value::Object(members) => members.iter().all(|(name, value)| {
                *size += name.len();
                add(value, most, size)
            }),
            _ => true,
        }
    }
    let mut size = 0;
    add(value, most, &mut size).then_some(size)
}

/// Whether a value has no more bytes than `most` as JSON, roughly.
fn fits(value: &Value, most: usize) -> bool {
    size_within(value, most).is_some()
}

/// Short, and without a `$ref`, which careless readers would follow out of the schema.
pub(crate) fn is_worth_showing(example: &Value) -> bool {
    if !fits(example, MAX_EXAMPLE_BYTES) {
        return false;
    }
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
