//! Describes in sentences the changes that a re-import would make, before it is applied.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{import::Import, operation::ToolDraft, plan::RequestPlan};

/// A tool as it is stored now.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// `METHOD /path`.
    pub key: String,
    /// Its name for AI clients as imported.
    pub name: String,
    /// Title as imported.
    pub title: String,
    /// Description as imported.
    pub description: String,
    /// Schema of the arguments.
    pub input_schema: Value,
    /// Schema of the answer.
    pub output_schema: Option<Value>,
    /// How arguments become a request.
    pub plan: RequestPlan,
}

/// A tool whose operation is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// `METHOD /path`.
    pub key: String,
    /// Its name.
    pub tool_name: String,
    /// Why, if the operation is still in the document but cannot be a tool any more.
    pub reason: Option<String>,
}

/// A tool whose operation changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// `METHOD /path`.
    pub key: String,
    /// Its name.
    pub tool_name: String,
    /// Sentences.
    pub changes: Vec<String>,
}

/// All differences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Keys of new tools.
    pub added: Vec<String>,
    /// Tools that go.
    pub removed: Vec<Removed>,
    /// Tools that change.
    pub changed: Vec<Changed>,
    /// How many stay as they are.
    pub unchanged: usize,
}

/// Compares what is stored with what a document gives. Stored tools that were removed before count
/// as absent: pass the active ones.
pub fn diff(known: &[KnownTool], import: &Import) -> Diff {
    let stored: BTreeMap<&str, &KnownTool> =
        known.iter().map(|tool| (tool.key.as_str(), tool)).collect();
    let fresh: BTreeMap<&str, &ToolDraft> = import
        .tools()
        .map(|tool| (tool.key.as_str(), tool))
        .collect();
    let mut diff = Diff::default();
    for operation in &import.operations {
        let Some(tool) = fresh.get(operation.key.as_str()) else {
            continue;
        };
        match stored.get(operation.key.as_str()) {
            None => diff.added.push(operation.key.clone()),
            Some(known) => {
                let changes = changes(known, tool);
                if changes.is_empty() {
                    diff.unchanged += 1;
                } else {
                    diff.changed.push(Changed {
                        key: operation.key.clone(),
                        tool_name: known.name.clone(),
                        changes,
                    });
                }
            }
        }
    }
    for (key, known) in stored {
        if fresh.contains_key(key) {
            continue;
        }
        let reason = import
            .operations
            .iter()
            .find(|operation| operation.key == key)
            .and_then(|operation| operation.outcome.as_ref().err().cloned());
        diff.removed.push(Removed {
            key: key.to_owned(),
            tool_name: known.name.clone(),
            reason,
        });
    }
    diff
}

fn changes(old: &KnownTool, new: &ToolDraft) -> Vec<String> {
    let mut out = Vec::new();
    arguments(&old.input_schema, &new.input_schema, &mut out);
    if old.input_schema != new.input_schema && out.is_empty() {
        out.push("Details of the arguments changed.".to_owned());
    }
    match (&old.output_schema, &new.output_schema) {
        (None, Some(_)) => out.push("The answer is described now.".to_owned()),
        (Some(_), None) => out.push("The answer is no longer described.".to_owned()),
        (Some(old), Some(new)) if old != new => {
            out.push("The description of the answer changed.".to_owned());
        }
        _ => {}
    }
    if old.title != new.title {
        out.push(format!("The title changed to “{}”.", new.title));
    }
    if old.description != new.description {
        out.push("The description changed.".to_owned());
    }
    request(&old.plan, &new.plan, &mut out);
    out
}

fn arguments(old: &Value, new: &Value, out: &mut Vec<String>) {
    let empty = serde_json::Map::new();
    let properties = |schema: &'_ Value| {
        schema
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_else(|| empty.clone())
    };
    let required = |schema: &Value| -> BTreeSet<String> {
        let names = schema.get("required").and_then(Value::as_array);
        names
            .map(|names| {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default()
    };
    let (old_properties, new_properties) = (properties(old), properties(new));
    let (old_required, new_required) = (required(old), required(new));
    for (name, schema) in &new_properties {
        match old_properties.get(name) {
            None if new_required.contains(name) => {
                out.push(format!("New required argument `{name}`."));
            }
            None => out.push(format!("New optional argument `{name}`.")),
            Some(before) => {
                match (old_required.contains(name), new_required.contains(name)) {
                    (false, true) => out.push(format!("`{name}` is required now.")),
                    (true, false) => out.push(format!("`{name}` is optional now.")),
                    _ => {}
                }
                if before.get("type") != schema.get("type") {
                    out.push(format!(
                        "The type of `{name}` changed from {} to {}.",
                        type_of(before),
                        type_of(schema)
                    ));
                } else if before.get("enum") != schema.get("enum") {
                    out.push(format!("The choices of `{name}` changed."));
                } else if before != schema {
                    out.push(format!("The description or form of `{name}` changed."));
                }
            }
        }
    }
    for name in old_properties
        .keys()
        .filter(|name| !new_properties.contains_key(*name))
    {
        out.push(format!("The argument `{name}` is gone."));
    }
}

fn type_of(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "anything".to_owned(),
    }
}

fn request(old: &RequestPlan, new: &RequestPlan, out: &mut Vec<String>) {
    if old == new {
        return;
    }
    let before = out.len();
    match (&old.body, &new.body) {
        (Some(old), Some(new)) if old.media_type != new.media_type => {
            out.push(format!(
                "The body is sent as {} instead of {}.",
                new.media_type, old.media_type
            ));
        }
        (None, Some(_)) => out.push("A body is sent now.".to_owned()),
        (Some(_), None) => out.push("No body is sent any more.".to_owned()),
        _ => {}
    }
    for parameter in &new.parameters {
        let earlier = old
            .parameters
            .iter()
            .find(|earlier| earlier.argument == parameter.argument);
        if let Some(earlier) = earlier
            && earlier.location != parameter.location
        {
            let (from, to) = (earlier.location.as_str(), parameter.location.as_str());
            out.push(format!(
                "`{}` moved from {from} to {to}.",
                parameter.argument
            ));
        }
    }
    if out.len() == before && out.is_empty() {
        out.push("Details of the request changed.".to_owned());
    }
}
