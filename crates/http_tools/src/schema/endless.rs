//! Definitions that are only made of each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::SchemaError;
use crate::effort;

/// Refuses definitions that reach themselves without going one level into the value: validating
/// them never ends.
pub(super) fn refuse(defs: &BTreeMap<String, Value>) -> Result<(), SchemaError> {
    fn edges<'v>(schema: &'v Value, out: &mut Vec<&'v str>) {
        let Value::Object(object) = schema else {
            return;
        };
        if let Some(name) = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|r| r.strip_prefix("#/$defs/"))
        {
            out.push(name);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(items)) = object.get(key) {
                items.iter().for_each(|item| edges(item, out));
            }
        }
        for key in ["not", "if", "then", "else"] {
            if let Some(inner) = object.get(key) {
                edges(inner, out);
            }
        }
        if let Some(Value::Object(schemas)) = object.get("dependentSchemas") {
            schemas.values().for_each(|inner| edges(inner, out));
        }
    }
    // Depth-first with an explicit stack: definitions can form long chains.
    let mut finished: BTreeSet<&str> = BTreeSet::new();
    for start in defs.keys() {
        let mut on_path: BTreeSet<&str> = BTreeSet::new();
        let mut stack: Vec<(&str, bool)> = vec![(start, false)];
        while let Some((name, leaving)) = stack.pop() {
            if leaving {
                on_path.remove(name);
                finished.insert(name);
                continue;
            }
            if finished.contains(name) {
                continue;
            }
            if on_path.contains(name) {
                return Err(SchemaError::Endless {
                    pointer: format!("#/components/schemas/{name}"),
                });
            }
            on_path.insert(name);
            stack.push((name, true));
            effort::spend(4);
            let mut next = Vec::new();
            if let Some(schema) = defs.get(name) {
                edges(schema, &mut next);
            }
            stack.extend(next.into_iter().map(|name| (name, false)));
        }
    }
    Ok(())
}
