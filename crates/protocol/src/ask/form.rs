//! Elicitation: forms and pages (MCP-EL-1…MCP-EL-8; MCP-X-31…MCP-X-39).

use serde_json::Value;

use super::{Asked, Need, Unaskable, meta};
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Raw};
use crate::revision::Revision;
use crate::shaped::{Loss, Losses, Shaped};

/// Parameters of `elicitation/create` as the client's revision knows them.
pub(super) fn question(params: &Raw, need: Need, asked: &Asked<'_>) -> Result<Shaped, Unaskable> {
    let string = |name: &str| {
        let value = params
            .get(name)
            .filter(|value| value.kind() == Kind::String);
        value.ok_or_else(|| Misfit::new(format!("params.{name}"), "expected a string"))
    };
    if params.get("mode").is_some() {
        let mode = string("mode")?.string().unwrap_or_default();
        if mode != "form" && mode != "url" {
            return Err(Misfit::new("params.mode", "expected \"form\" or \"url\"").into());
        }
    }
    string("message")?;
    if need == Need::Url {
        string("url")?;
    }
    let later = asked.to.facts().later_questions;
    let (mut out, mut losses) = (Vec::with_capacity(params.as_bytes().len()), Losses::NONE);
    let mut object = Object::begin(&mut out);
    let mut has_id = false;
    let mut metadata = None;
    for (name, value) in params.members() {
        match name.as_str() {
            "mode" if !later => {}
            "requestedSchema" if need == Need::Form => {
                object.key("requestedSchema");
                schema(&value, asked.to, object.out(), &mut losses)?;
            }
            "requestedSchema" => {}
            // Only R4 has this member; R5 has no notification that the elicitation is complete
            // (MCP-X-32).
            "elicitationId" if need == Need::Url && asked.to.facts().elicitation_ids => {
                if value.kind() == Kind::String {
                    has_id = true;
                    object.raw(&name, value.as_bytes());
                }
            }
            "elicitationId" => losses.add(Loss::ElicitationId),
            // MCP-TK-17: clients never receive a task request.
            "task" => losses.add(Loss::QuestionTask),
            "_meta" => metadata = Some(value),
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    if need == Need::Form && params.get("requestedSchema").is_none() {
        return Err(Misfit::new("params.requestedSchema", "required").into());
    }
    if need == Need::Url && asked.to.facts().elicitation_ids && !has_id {
        object.value("elicitationId", asked.made_up_id);
    }
    if let Some(value) = metadata {
        meta(&value, &mut object, &mut losses);
    }
    object.end();
    Ok(Shaped { json: out, losses })
}

/// MCP-EL-4: a flat object of primitives. MCP-X-34 for a client of 2025-06-18.
fn schema(
    schema: &Raw,
    to: Revision,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Unaskable> {
    let fault = |what: &str| Misfit::new("params.requestedSchema", what);
    if schema.get("type").and_then(|kind| kind.string()).as_deref() != Some("object") {
        return Err(fault("expected a schema of type \"object\"").into());
    }
    let properties = schema
        .get("properties")
        .filter(|properties| properties.kind() == Kind::Object)
        .ok_or_else(|| fault("expected \"properties\""))?;
    let later = to.facts().later_questions;
    let mut object = Object::begin(out);
    for (name, value) in schema.members() {
        match name.as_str() {
            "properties" => {}
            "$schema" if !later => losses.add(Loss::SchemaDialect),
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.key("properties");
    let mut list = Object::begin(object.out());
    for (name, property_schema) in properties.members() {
        if property_schema.kind() != Kind::Object {
            return Err(Misfit::new(
                format!("params.requestedSchema.properties.{name}"),
                "expected an object",
            )
            .into());
        }
        if !is_flat(&property_schema) {
            return Err(Misfit::new(
                format!("params.requestedSchema.properties.{name}"),
                "expected a string, a number, a boolean or a choice",
            )
            .into());
        }
        list.key(&name);
        property(&property_schema, later, list.out(), losses)?;
    }
    list.end();
    object.end();
    Ok(())
}

/// MCP-EL-4: nothing within something, but for a choice of several texts.
fn is_flat(schema: &Raw) -> bool {
    let kind = |schema: &Raw| schema.get("type").and_then(|kind| kind.string());
    match kind(schema).as_deref() {
        Some("object" | "null") => false,
        Some("array") => {
            let items = schema
                .get("items")
                .filter(|items| items.kind() == Kind::Object);
            items.is_some_and(|items| kind(&items).is_none_or(|kind| kind == "string"))
        }
        _ => schema.get("properties").is_none(),
    }
}

fn property(
    schema: &Raw,
    later: bool,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Unaskable> {
    let kind = schema.get("type").and_then(|kind| kind.string());
    if !later && kind.as_deref() == Some("array") {
        return Err(Unaskable::MultipleChoice);
    }
    let mut object = Object::begin(out);
    for (name, value) in schema.members() {
        match name.as_str() {
            // MCP-EL-6: in no schema file.
            "pattern" => losses.add(Loss::FormPattern),
            "default" if !later && kind.as_deref() != Some("boolean") => {
                losses.add(Loss::FormDefault);
            }
            "oneOf" if !later => {
                let choices = |member: &str| -> Vec<String> {
                    let choices = value.elements();
                    choices
                        .filter_map(|choice| choice.get(member)?.string())
                        .collect()
                };
                let (values, titles) = (choices("const"), choices("title"));
                object.value("enum", &values);
                if titles.len() == values.len() {
                    object.value("enumNames", &titles);
                }
            }
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
    Ok(())
}

/// MCP-EL-7, MCP-EL-8, MCP-X-39: checks the client's answer against the form.
pub(super) fn answer(params: &Raw, result: &Raw) -> Result<Shaped, Misfit> {
    let action = result.get("action").and_then(|action| action.string());
    let accepted = match action.as_deref() {
        Some("accept") => true,
        Some("decline" | "cancel") => false,
        _ => {
            return Err(Misfit::new(
                "result.action",
                "expected \"accept\", \"decline\" or \"cancel\"",
            ));
        }
    };
    let is_form = Need::of(super::AskMethod::Elicit, params) == Need::Form;
    let mut out = Vec::with_capacity(result.as_bytes().len());
    let mut object = Object::begin(&mut out);
    for (name, value) in result.members() {
        match name.as_str() {
            "content" if accepted && is_form => {
                let schema = params.get("requestedSchema").unwrap_or(Raw::empty_object());
                check(&value, &schema)?;
                object.raw("content", value.as_bytes());
            }
            // The content of an answer that was not accepted is dropped, whatever its value.
            "content" | "resultType" => {}
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
    if accepted && is_form && result.get("content").is_none() {
        let schema = params.get("requestedSchema").unwrap_or(Raw::empty_object());
        check(&Raw::empty_object(), &schema)?;
    }
    Ok(Shaped {
        json: out,
        losses: Losses::NONE,
    })
}

fn check(content: &Raw, schema: &Raw) -> Result<(), Misfit> {
    let content: Value = content.read("result.content")?;
    let schema: Value = schema.read("requestedSchema")?;
    let Value::Object(content) = content else {
        return Err(Misfit::new("result.content", "expected an object"));
    };
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if content.get(name).is_none_or(Value::is_null) {
            return Err(Misfit::new(format!("result.content.{name}"), "required"));
        }
    }
    for (name, value) in &content {
        let fault = |expected: &str| Err(Misfit::new(format!("result.content.{name}"), expected));
        let Some(asked) = schema["properties"].get(name) else {
            // MCP-EL-7: of an unrequested member only the type is checked.
            let flat = match value {
                Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
                Value::Array(items) => items.iter().all(Value::is_string),
                _ => false,
            };
            if flat {
                continue;
            }
            return fault("expected a string, a number, a boolean or a list of strings");
        };
        if let Some(expected) = misfit(value, asked) {
            return fault(&expected);
        }
    }
    Ok(())
}

/// Describes the expected value if `value` does not match the schema. A `format` is a hint for the
/// person who fills in the form, and is not checked.
fn misfit(value: &Value, schema: &Value) -> Option<String> {
    let bound = |name: &str| schema[name].as_u64();
    match schema["type"].as_str() {
        Some("string") => {
            let Some(text) = value.as_str() else {
                return Some("expected a string".to_owned());
            };
            let length = text.chars().count() as u64;
            if bound("minLength").is_some_and(|least| length < least)
                || bound("maxLength").is_some_and(|most| length > most)
            {
                return Some("has the wrong length".to_owned());
            }
            let known = choices(schema);
            (known.as_ref().is_some_and(|known| !known.contains(&text)))
                .then(|| "expected one of the choices".to_owned())
        }
        Some(kind @ ("number" | "integer")) => {
            let Some(number) = value.as_f64() else {
                return Some("expected a number".to_owned());
            };
            // JSON has one kind of number: 3.0 is an integer.
            if kind == "integer" && number.fract() != 0.0 {
                return Some("expected an integer".to_owned());
            }
            let below = schema["minimum"]
                .as_f64()
                .is_some_and(|least| number < least);
            let above = schema["maximum"].as_f64().is_some_and(|most| number > most);
            (below || above).then(|| "is out of range".to_owned())
        }
        Some("boolean") => (!value.is_boolean()).then(|| "expected a boolean".to_owned()),
        Some("array") => {
            let items = value
                .as_array()
                .and_then(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
            let Some(items) = items else {
                return Some("expected a list of strings".to_owned());
            };
            let count = items.len() as u64;
            if bound("minItems").is_some_and(|least| count < least)
                || bound("maxItems").is_some_and(|most| count > most)
            {
                return Some("has the wrong number of choices".to_owned());
            }
            let known = choices(&schema["items"]);
            known
                .is_some_and(|known| items.iter().any(|item| !known.contains(item)))
                .then(|| "expected some of the choices".to_owned())
        }
        _ => None,
    }
}

/// MCP-EL-5, MCP-EL-6: `enum`, or the constants of `oneOf` or `anyOf`.
fn choices(schema: &Value) -> Option<Vec<&str>> {
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().filter_map(Value::as_str).collect());
    }
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array())?;
    Some(
        titled
            .iter()
            .filter_map(|choice| choice["const"].as_str())
            .collect(),
    )
}
