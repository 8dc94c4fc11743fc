//! OpenAPI schemas as JSON Schema 2020-12: 3.0's own dialect converted, 3.1 cleaned, `$defs` with
//! only what is reachable.
//!
//! Real documents break the rules in many ways. A keyword whose value cannot mean anything is
//! dropped, so that one slip does not cost the tool; a reference that leads nowhere costs the
//! operation, because guessing would be worse.

mod endless;
pub(crate) mod keywords;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use self::keywords::nullable_form;
use crate::{
    arguments,
    document::{Document, SpecVersion},
    effort,
    refs::{self, RefError},
};

/// Nesting of one schema (MCP-JS-7).
const MAX_DEPTH: usize = 32;
/// Subschemas of one tool's schema (MCP-JS-7).
const MAX_SUBSCHEMAS: usize = 2_000;
/// Bytes of one tool's schema as JSON (MCP-JS-7).
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Which way the values travel: `readOnly` properties do not exist in requests, `writeOnly` ones
/// not in responses.
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
        /// Fault of the reference.
        fault: RefError,
    },
    /// Nested too deep (MCP-JS-7).
    #[error("a schema is nested more than {MAX_DEPTH} levels deep (at {pointer})")]
    TooDeep {
        /// Where.
        pointer: String,
    },
    /// Too many parts (MCP-JS-7).
    #[error("its schema has more than {MAX_SUBSCHEMAS} parts")]
    TooMany,
    /// An `enum` or `required` with too many values (MCP-JS-7).
    #[error("a schema lists more than 10,000 values (at {pointer})")]
    TooManyChoices {
        /// Where.
        pointer: String,
    },
    /// Too large as JSON (MCP-JS-7).
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
    used: HashSet<String>,
    /// The next number that tells definitions of the same name apart, by that name.
    numbers: HashMap<String, usize>,
    /// Patterns that are known to be good or bad.
    patterns: HashMap<String, bool>,
    queue: Vec<(String, String)>,
    defs: BTreeMap<String, Value>,
    count: usize,
    /// Repairs, for the person who imports.
    pub warnings: Vec<String>,
}

impl<'d> SchemaWriter<'d> {
    /// A writer for one tool and one direction.
    pub fn new(document: &'d Document, direction: Direction) -> Self {
        Self {
            document,
            direction,
            names: HashMap::new(),
            used: HashSet::new(),
            numbers: HashMap::new(),
            patterns: HashMap::new(),
            queue: Vec::new(),
            defs: BTreeMap::new(),
            count: 0,
            warnings: Vec::new(),
        }
    }

    /// Whether the engine takes a pattern.
    fn pattern_compiles(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let compiles = arguments::pattern_compiles(pattern);
        self.patterns.insert(pattern.to_owned(), compiles);
        compiles
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
        effort::spend(16);
        effort::spend_text(pointer);
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
        // A definition that is only a reference adds nothing; following it also finds rings of
        // references.
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
            let beside: Map<String, Value> = object
                .iter()
                .filter(|(key, _)| *key != "$ref")
                .inspect(|(_, value)| effort::spend_value(value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            for (key, value) in self.object(&beside, pointer, depth)? {
                out.insert(key, value);
            }
        } else {
            for key in ["title", "description"] {
                if let Some(Value::String(text)) = object.get(key) {
                    effort::spend_text(text);
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
        while !self.used.insert(name.clone()) {
            effort::spend(8);
            let number = self.numbers.entry(stem.clone()).or_insert(2);
            name = format!("{stem}_{number}");
            *number += 1;
        }
        self.names.insert(pointer.to_owned(), name.clone());
        self.queue.push((pointer.to_owned(), name.clone()));
        name
    }

    /// Converts everything that was referenced, then checks that no schema is endless, and adds
    /// `$defs` to `root`.
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

/// Bytes as compact JSON. Each is a step: what follows from a schema takes as long as it is.
fn byte_size(value: &Value) -> usize {
    let size = serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
    effort::spend(size / 2);
    size
}

/// Removes annotations below the first level of properties.
fn strip(value: &mut Value, depth: usize, keys: &[&str]) {
    match value {
        Value::Object(object) => {
            // Depth 0 is the root, 1 its `properties`, 2 one argument: its description is what a
            // model needs most.
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

/// A schema without subschemas: small enough to stand where it is used, which more clients
/// understand than `$ref`.
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
