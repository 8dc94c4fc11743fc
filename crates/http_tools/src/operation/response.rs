//! The documented success answer: what we accept, and the output schema if it is an object.

use serde_json::{Map, Value};

use super::{SchemaChecks, Site};
use crate::{
    effort, refs,
    schema::{Direction, SchemaWriter},
};

#[derive(Default)]
pub(crate) struct DescribedAnswer {
    pub schema: Option<Value>,
    pub accept: Option<String>,
}

/// Never fails: an answer that cannot be described costs the output schema, not the tool.
pub(crate) fn plan(
    site: &Site<'_>,
    warnings: &mut Vec<String>,
    checks: &mut SchemaChecks,
) -> DescribedAnswer {
    let Some((status, response)) = success(site) else {
        return DescribedAnswer::default();
    };
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        return DescribedAnswer::default();
    };
    effort::spend(content.len().saturating_mul(2));
    let mut answer = DescribedAnswer {
        accept: accept(content),
        schema: None,
    };
    let Some((media_type, media)) = content.iter().find(|(media_type, _)| is_json(media_type))
    else {
        return answer;
    };
    let Some(schema) = media.get("schema") else {
        return answer;
    };
    // Several success answers with different shapes: one schema would refuse the others.
    if successes(site) > 1 {
        return answer;
    }
    let pointer = format!(
        "{}/responses/{}/content/{}/schema",
        site.pointer,
        status,
        refs::escape_step(media_type)
    );
    match object_schema(site, schema, &pointer, checks) {
        Ok(schema) => answer.schema = schema,
        Err(reason) => warnings.push(format!("the answer's schema was left out: {reason}")),
    }
    answer
}

fn object_schema(
    site: &Site<'_>,
    schema: &Value,
    pointer: &str,
    checks: &mut SchemaChecks,
) -> Result<Option<Value>, String> {
    let mut writer = SchemaWriter::new(site.document, Direction::Response);
    let target = writer
        .target(schema, pointer)
        .map_err(|error| error.to_string())?;
    if !is_object(target, &writer, 0) {
        return Ok(None);
    }
    // The root must be an object itself, not a reference to one (MCP-TL-10).
    let root = match writer
        .convert(target, pointer)
        .map_err(|error| error.to_string())?
    {
        Value::Object(mut root) => {
            let mut ordered = Map::new();
            ordered.insert("type".to_owned(), Value::from("object"));
            root.shift_remove("type");
            ordered.extend(root);
            ordered
        }
        _ => return Ok(None),
    };
    let (schema, _) = writer.finish(root).map_err(|error| error.to_string())?;
    checks.check(&schema).map_err(|error| error.to_string())?;
    Ok(Some(schema))
}

/// Whether every value of the schema is an object.
fn is_object(schema: &Value, writer: &SchemaWriter<'_>, depth: usize) -> bool {
    effort::spend(8);
    if depth > 8 || schema.get("nullable") == Some(&Value::Bool(true)) {
        return false;
    }
    match schema.get("type") {
        Some(Value::String(name)) => return name == "object",
        Some(_) => return false,
        None => {}
    }
    let each = |key: &str| {
        schema.get(key).and_then(Value::as_array).map(|parts| {
            parts
                .iter()
                .map(|part| {
                    writer
                        .target(part, "")
                        .is_ok_and(|part| is_object(part, writer, depth + 1))
                })
                .collect::<Vec<_>>()
        })
    };
    if let Some(parts) = each("allOf")
        && parts.contains(&true)
    {
        return true;
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(parts) = each(key) {
            return !parts.is_empty() && !parts.contains(&false);
        }
    }
    schema.get("properties").is_some_and(Value::is_object)
}

fn is_success(status: &str) -> bool {
    let status = status.trim();
    status.starts_with('2') && status.len() == 3
}

fn successes(site: &Site<'_>) -> usize {
    let Some(responses) = site.operation.get("responses").and_then(Value::as_object) else {
        return 0;
    };
    effort::spend(responses.len());
    responses
        .iter()
        .filter(|(status, response)| {
            is_success(status)
                && refs::resolve(&site.document.root, response).is_ok_and(|response| {
                    response
                        .get("content")
                        .and_then(Value::as_object)
                        .is_some_and(|c| !c.is_empty())
                })
        })
        .count()
}

/// The lowest success status that has content, else the lowest, else none. `default` documents
/// errors more often than not.
fn success<'d>(site: &Site<'d>) -> Option<(&'d str, &'d Value)> {
    let responses = site.operation.get("responses").and_then(Value::as_object)?;
    effort::spend(responses.len());
    let mut found: Vec<(&str, &Value)> = responses
        .iter()
        .filter(|(status, _)| is_success(status))
        .filter_map(|(status, response)| {
            refs::resolve(&site.document.root, response)
                .ok()
                .map(|response| (status.as_str(), response))
        })
        .collect();
    found.sort_by_key(|(status, response)| (response.get("content").is_none(), *status));
    found.first().copied()
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json") || essence.ends_with("/json")
}

/// The documented types, JSON first, and anything else as a last resort.
fn accept(content: &Map<String, Value>) -> Option<String> {
    let mut types: Vec<&str> = content
        .keys()
        .map(String::as_str)
        .filter(|kind| {
            kind.contains('/') && http::HeaderValue::try_from(*kind).is_ok() && kind.len() < 100
        })
        .take(5)
        .collect();
    if types.is_empty() {
        return None;
    }
    types.sort_by_key(|kind| !is_json(kind));
    if !types.contains(&"*/*") {
        types.push("*/*;q=0.1");
    }
    Some(types.join(", "))
}
