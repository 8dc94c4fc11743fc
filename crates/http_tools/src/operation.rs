//! One operation of a document as a tool: schemas, annotations, and the plan of its request.

pub(crate) mod body;
pub(crate) mod parameters;
pub(crate) mod response;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    arguments,
    document::Document,
    effort, naming,
    plan::{Location, RequestPlan},
    schema::{Direction, SchemaError, SchemaWriter},
    security::SecurityHint,
};

/// Characters of a description that every model API accepts.
const MAX_DESCRIPTION: usize = 1_024;
/// Top-level arguments of one tool.
const MAX_ARGUMENTS: usize = 200;

/// Hints about what a tool does (MCP-TL-8), from the HTTP method.
#[expect(clippy::struct_excessive_bools, reason = "the four hints of MCP")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Changes nothing.
    pub read_only_hint: bool,
    /// May destroy or overwrite something.
    pub destructive_hint: bool,
    /// Calling twice with the same arguments is like calling once.
    pub idempotent_hint: bool,
    /// Talks to a world outside.
    pub open_world_hint: bool,
}

impl Annotations {
    /// From the method; for POST, which says nothing, from the words of the operation.
    pub fn from_method(method: &str, words: &str) -> Self {
        const DESTRUCTIVE: [&str; 9] = [
            "delete",
            "remove",
            "destroy",
            "purge",
            "revoke",
            "cancel",
            "reset",
            "terminate",
            "erase",
        ];
        let words = words.to_ascii_lowercase();
        let (read_only, destructive, idempotent) = match method {
            "GET" | "HEAD" | "OPTIONS" => (true, false, true),
            "PUT" | "DELETE" => (false, true, true),
            "PATCH" => (false, true, false),
            _ => (
                false,
                DESTRUCTIVE.iter().any(|word| words.contains(word)),
                false,
            ),
        };
        Self {
            read_only_hint: read_only,
            destructive_hint: destructive,
            idempotent_hint: idempotent,
            open_world_hint: true,
        }
    }
}

/// A tool as the importer or a person drafted it, before it has an id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDraft {
    /// `METHOD /path`: what the tool is known by at a re-import.
    pub key: String,
    /// Name for AI clients.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema 2020-12 of the arguments, root `type: object` (MCP-TL-5).
    pub input_schema: Value,
    /// JSON Schema 2020-12 of `structuredContent`, root object (MCP-TL-10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints from the method.
    pub annotations: Annotations,
    /// How arguments become a request.
    pub plan: RequestPlan,
    /// Repaired or omitted parts.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Everything about an operation that does not depend on others.
pub(crate) struct Site<'d> {
    pub document: &'d Document,
    pub hints: &'d [SecurityHint],
    pub method: String,
    /// Method and path as written.
    pub key: String,
    /// Without a fragment.
    pub path: String,
    /// The path item, resolved.
    pub path_item: &'d Value,
    pub operation: &'d Value,
    pub pointer: String,
}

impl Site<'_> {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let text = self.operation.get(key).and_then(Value::as_str)?;
        effort::spend(text.len() / 8);
        Some(text.trim()).filter(|text| !text.is_empty())
    }

    pub(crate) fn is_deprecated(&self) -> bool {
        self.operation.get("deprecated") == Some(&Value::Bool(true))
    }

    pub(crate) fn title(&self) -> String {
        let title = self.text("summary").map_or_else(
            || {
                self.text("operationId")
                    .map_or_else(|| format!("{} {}", self.method, self.path), words)
            },
            str::to_owned,
        );
        cut(
            title
                .lines()
                .next()
                .unwrap_or_default()
                .trim_end_matches('.'),
            120,
        )
    }

    pub(crate) fn description(&self) -> String {
        let text = self.text("description").or_else(|| self.text("summary"));
        let text = text.map_or_else(|| self.title(), str::to_owned);
        if self.is_deprecated() {
            cut(&format!("Deprecated. {text}"), MAX_DESCRIPTION)
        } else {
            cut(&text, MAX_DESCRIPTION)
        }
    }
}

/// `listPetsByTag` and `list_pets` as words.
fn words(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let mut previous_lower = false;
    for c in name.chars() {
        if c.is_alphanumeric() {
            if c.is_uppercase() && previous_lower {
                out.push(' ');
                out.extend(c.to_lowercase());
            } else {
                out.push(c);
            }
            previous_lower = c.is_lowercase() || c.is_numeric();
        } else {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
            previous_lower = false;
        }
    }
    let trimmed = out.trim_end();
    let mut chars = trimmed.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// Cuts at a word and marks it; control characters other than line ends and tabs never reach a
/// client (MCP-TL-23).
pub(crate) fn cut(text: &str, max: usize) -> String {
    let mut clean = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let mut short: String = clean.by_ref().take(max - 1).collect();
    let Some(last) = clean.next() else {
        return short;
    };
    if clean.next().is_none() {
        short.push(last);
        return short;
    }
    let end = short
        .rfind(char::is_whitespace)
        .filter(|at| *at > short.len() / 2)
        .unwrap_or(short.len());
    format!("{}…", short[..end].trim_end())
}

/// Assigns top-level argument names. Clashing names are distinguished by the location of the value,
/// deterministically.
#[derive(Default)]
pub(crate) struct ArgumentNames {
    used: HashSet<String>,
}

impl ArgumentNames {
    pub(crate) fn give(&mut self, wire_name: &str, location: Location) -> String {
        let plain = naming::argument(wire_name);
        if self.used.insert(plain.clone()) {
            return plain;
        }
        let told_apart = naming::argument(&format!("{}_{plain}", location.as_str()));
        if self.used.insert(told_apart.clone()) {
            return told_apart;
        }
        let mut number = 2;
        loop {
            let numbered = naming::argument(&format!("{told_apart}_{number}"));
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
            number += 1;
        }
    }

    pub(crate) fn is_free(&self, argument: &str) -> bool {
        !self.used.contains(argument)
    }

    pub(crate) fn reserve(&mut self, argument: &str) {
        self.used.insert(argument.to_owned());
    }

    pub(crate) fn body(&mut self) -> String {
        for name in [
            "body",
            "request_body",
            "body_content",
            "request_body_content",
        ] {
            if self.used.insert(name.to_owned()) {
                return name.to_owned();
            }
        }
        self.give("body_value", Location::Header)
    }
}

/// The hints that the method and the words of an operation give.
fn annotations(site: &Site<'_>) -> Annotations {
    let id = site.text("operationId").unwrap_or_default();
    Annotations::from_method(&site.method, &format!("{id} {}", site.path))
}

/// Makes the draft of an operation, with the name it wants, or says why it is left out.
pub(crate) fn draft(site: &Site<'_>, checks: &mut SchemaChecks) -> Result<ToolDraft, String> {
    let mut writer = SchemaWriter::new(site.document, Direction::Request);
    let mut names = ArgumentNames::default();
    let mut properties = Map::new();
    let mut required: Vec<Value> = Vec::new();
    let mut warnings = Vec::new();

    let found = parameters::collect(site, &mut writer, &mut names, &mut warnings)
        .map_err(|error| sentence(&error))?;
    let mut plan_parameters = Vec::with_capacity(found.len());
    for parameter in found {
        if parameter.required {
            required.push(Value::String(parameter.plan.argument.clone()));
        }
        properties.insert(parameter.plan.argument.clone(), parameter.schema);
        plan_parameters.push(parameter.plan);
    }
    let body = body::plan(site, &mut writer, &mut names, &mut warnings)
        .map_err(|error| sentence(&error))?;
    let plan_body = body.map(|body| {
        for argument in body.arguments {
            if argument.required {
                required.push(Value::String(argument.name.clone()));
            }
            properties.insert(argument.name, argument.schema);
        }
        body.plan
    });
    if properties.len() > MAX_ARGUMENTS {
        return Err(format!(
            "It takes {} arguments; up to {MAX_ARGUMENTS} can be offered to a model.",
            properties.len()
        ));
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), Value::from("object"));
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    // A model that invents an argument gets told; silently dropping it would look like success.
    root.insert("additionalProperties".to_owned(), Value::Bool(false));
    let (input_schema, schema_warnings) = writer.finish(root).map_err(|error| sentence(&error))?;
    warnings.extend(schema_warnings);
    checks
        .check(&input_schema)
        .map_err(|error| sentence(&error))?;

    let answer = response::plan(site, &mut warnings, checks);
    let plan = RequestPlan {
        method: site.method.clone(),
        path: site.path.clone(),
        parameters: plan_parameters,
        body: plan_body,
        accept: answer.accept,
    };
    if plan.body.is_some() && matches!(site.method.as_str(), "GET" | "HEAD" | "DELETE") {
        warnings.push(format!(
            "{} requests with a body are unusual; some APIs ignore it",
            site.method
        ));
    }
    Ok(ToolDraft {
        key: site.key.clone(),
        name: naming::wanted(site.text("operationId"), &site.method, &site.path),
        title: site.title(),
        description: site.description(),
        input_schema,
        output_schema: answer.schema,
        annotations: annotations(site),
        plan,
        warnings,
    })
}

/// A refusal as a sentence that starts large and ends with a stop.
fn sentence(error: &SchemaError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let text: String = chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    });
    format!("{text}.")
}

/// Compiles each schema once per import; large documents repeat many answers.
#[derive(Default)]
pub(crate) struct SchemaChecks {
    seen: HashMap<String, Result<(), SchemaError>>,
}

impl SchemaChecks {
    pub(crate) fn check(&mut self, schema: &Value) -> Result<(), SchemaError> {
        let text = schema.to_string();
        effort::spend(text.len() / 2);
        if let Some(known) = self.seen.get(&text) {
            return known.clone();
        }
        let result = arguments::compile::<jsonschema::json::SerdeJson>(schema)
            .map(|_| ())
            .map_err(SchemaError::Invalid);
        self.seen.insert(text, result.clone());
        result
    }
}
