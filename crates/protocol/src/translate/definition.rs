//! Tools, prompts, resources and templates as lists have them (MCP-FA-1, MCP-FA-4; MCP-X-60,
//! MCP-X-64, MCP-X-6C, MCP-X-6D; MCP-JS-9).

use crate::header;
use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};
use crate::revision::{Revision, StructuredOutput};
use crate::shaped::{Loss, Losses, Shaped, Violation, block};
use crate::tool::shape;

/// Kind of a listed definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// An entry of `tools/list`.
    Tool,
    /// An entry of `prompts/list`.
    Prompt,
    /// An entry of `resources/list`.
    Resource,
    /// An entry of `resources/templates/list`.
    Template,
}

/// The draft that `definitions` and lists of `items` belong to.
const DRAFT_07: &[u8] = br#""http://json-schema.org/draft-07/schema#""#;

/// A definition as the client's revision knows it.
pub fn definition(
    listed: Listed,
    definition: &Raw,
    from: Revision,
    to: Revision,
) -> Result<Shaped, Violation> {
    if definition.kind() != Kind::Object {
        return Err(Violation::NotAnObject);
    }
    let has = |name: &str, kind: Kind| {
        definition
            .get(name)
            .is_some_and(|value| value.kind() == kind)
    };
    let sound = has("name", Kind::String)
        && match listed {
            Listed::Tool => definition
                .get("inputSchema")
                .is_some_and(|schema| shape::has_object_root(&schema)),
            Listed::Prompt => true,
            Listed::Resource => has("uri", Kind::String),
            Listed::Template => has("uriTemplate", Kind::String),
        };
    if !sound {
        return Err(Violation::Definition);
    }
    let (mut out, mut losses) = (
        Vec::with_capacity(definition.as_bytes().len() + 64),
        Losses::NONE,
    );
    let mut object = Object::begin(&mut out);
    for (name, value) in definition.members() {
        member(listed, &name, &value, (from, to), &mut object, &mut losses);
    }
    object.end();
    Ok(Shaped { json: out, losses })
}

fn member(
    listed: Listed,
    name: &str,
    value: &Raw,
    (from, to): (Revision, Revision),
    object: &mut Object<'_>,
    losses: &mut Losses,
) {
    let facts = to.facts();
    let is_object = value.kind() == Kind::Object;
    match name {
        "title" | "description" | "mimeType" if value.kind() != Kind::String => {
            losses.add(Loss::Malformed);
        }
        "title" if !facts.titles => losses.add(Loss::Title),
        "_meta" => block::meta(value, to, object, losses),
        "icons" => block::icons(value, to, object, losses),
        "inputSchema" if listed == Listed::Tool => {
            object.key(name);
            schema(value, from, to, object.out(), losses);
        }
        "outputSchema" if listed == Listed::Tool => match facts.structured_output {
            _ if !is_object => losses.add(Loss::Malformed),
            StructuredOutput::Absent => losses.add(Loss::OutputSchema),
            StructuredOutput::Object if !shape::has_object_root(value) => {
                losses.add(Loss::OutputShape);
            }
            StructuredOutput::Object | StructuredOutput::Any => {
                object.key(name);
                schema(value, from, to, object.out(), losses);
            }
        },
        "annotations" | "execution" if listed == Listed::Tool && !is_object => {
            losses.add(Loss::Malformed);
        }
        "annotations" if listed == Listed::Tool && !facts.tool_annotations => {
            losses.add(Loss::Annotations);
        }
        "execution" if listed == Listed::Tool && !facts.tool_execution => {
            losses.add(Loss::Execution);
        }
        "annotations" if matches!(listed, Listed::Resource | Listed::Template) => {
            block::annotations(value, to, object, losses);
        }
        "size" if listed == Listed::Resource && value.as_str().parse::<i64>().is_err() => {
            losses.add(Loss::Malformed);
        }
        "arguments" if listed == Listed::Prompt => arguments(value, to, object, losses),
        _ => object.raw(name, value.as_bytes()),
    }
}

/// Translates the arguments of a prompt: `title` from 2025-06-18 on. Entries without a name are
/// dropped.
fn arguments(value: &Raw, to: Revision, object: &mut Object<'_>, losses: &mut Losses) {
    if value.kind() != Kind::Array {
        losses.add(Loss::Malformed);
        return;
    }
    object.key("arguments");
    let list = object.out();
    list.push(b'[');
    let mut count = 0;
    for argument in value.elements() {
        let named = argument
            .get("name")
            .is_some_and(|name| name.kind() == Kind::String);
        if !named {
            losses.add(Loss::Malformed);
            continue;
        }
        if count > 0 {
            list.push(b',');
        }
        count += 1;
        let mut entry = Object::begin(list);
        for (name, value) in argument.members() {
            match name.as_str() {
                "title" | "description" if value.kind() != Kind::String => {
                    losses.add(Loss::Malformed);
                }
                "required" if value.boolean().is_none() => losses.add(Loss::Malformed),
                "title" if !to.facts().titles => losses.add(Loss::Title),
                _ => entry.raw(&name, value.as_bytes()),
            }
        }
        entry.end();
    }
    list.push(b']');
}

/// A schema of input or output: MCP-X-6C, MCP-X-6D, MCP-JS-9.
fn schema(schema: &Raw, from: Revision, to: Revision, out: &mut Vec<u8>, losses: &mut Losses) {
    let facts = to.facts();
    let dialect = schema.get("$schema");
    if dialect.is_some() && !facts.schema_dialect {
        losses.add(Loss::SchemaDialect);
    }
    if !facts.boolean_properties
        && schema.get("properties").is_some_and(|properties| {
            properties
                .members()
                .any(|(_, property)| property.boolean().is_some())
        })
    {
        losses.add(Loss::BooleanSchema);
    }
    let is_older = !from.facts().schema_dialect && facts.schema_dialect;
    let begins_with_dialect = is_older && dialect.is_none() && speaks_draft_07(schema);
    let mut shaped = Vec::with_capacity(schema.as_bytes().len() + 64);
    shape::schema(schema, to, &mut shaped);
    let shaped = without_broken_headers(Raw::trusted(shaped.into()), losses);
    if !begins_with_dialect {
        out.extend_from_slice(shaped.as_bytes());
        return;
    }
    let mut object = Object::begin(out);
    object.raw("$schema", DRAFT_07);
    for (name, value) in shaped.members() {
        object.raw(&name, value.as_bytes());
    }
    object.end();
}

/// MCP-X-6D: keywords that mean something else, or nothing, in 2020-12.
fn speaks_draft_07(schema: &Raw) -> bool {
    match schema.kind() {
        Kind::Object => schema.members().any(|(name, value)| match name.as_str() {
            "definitions" => value.kind() == Kind::Object,
            "items" => value.kind() == Kind::Array || speaks_draft_07(&value),
            // Values, not schemas.
            "const" | "enum" | "default" | "examples" => false,
            _ => speaks_draft_07(&value),
        }),
        Kind::Array => schema.elements().any(|element| speaks_draft_07(&element)),
        _ => false,
    }
}

/// MCP-X-6C: removes `x-mcp-header` annotations that no client can mirror, so that clients do not
/// refuse the tool for them.
fn without_broken_headers(schema: Raw, losses: &mut Losses) -> Raw {
    if !schema.as_str().contains("x-mcp-header") {
        return schema;
    }
    let Ok(mut tree) = schema.read::<serde_json::Value>("schema") else {
        return schema;
    };
    let (_, faults) = header::annotations(&tree);
    if faults.is_empty() {
        return schema;
    }
    let mut gone = false;
    for fault in faults {
        let place = tree
            .pointer_mut(fault.pointer())
            .and_then(|at| at.as_object_mut());
        gone |= place.is_some_and(|at| at.remove("x-mcp-header").is_some());
    }
    if !gone {
        return schema;
    }
    losses.add(Loss::MirroredHeader);
    Raw::of(&tree).unwrap_or(schema)
}
