//! Input and output schemas as older revisions may see them (MCP-JS-9, MCP-TL-10).

use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};
use crate::revision::Revision;

/// Appends `schema` without `$schema` where the revision does not name it. Boolean property schemas
/// are written as objects where the revision's schema file requires objects. The rest is unchanged.
pub(crate) fn schema(schema: &Raw, revision: Revision, out: &mut Vec<u8>) {
    let facts = revision.facts();
    if facts.schema_dialect && facts.boolean_properties || schema.kind() != Kind::Object {
        out.extend_from_slice(schema.as_bytes());
        return;
    }
    let mut object = Object::begin(out);
    for (name, value) in schema.members() {
        match name.as_str() {
            "$schema" if !facts.schema_dialect => {}
            "properties" if !facts.boolean_properties && value.kind() == Kind::Object => {
                object.key(&name);
                properties(&value, object.out());
            }
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
}

fn properties(properties: &Raw, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    for (name, value) in properties.members() {
        match value.boolean() {
            Some(true) => object.raw(&name, b"{}"),
            Some(false) => object.raw(&name, br#"{"not":{}}"#),
            None => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
}

/// True if the root has `type: "object"` and no other type.
pub(crate) fn has_object_root(schema: &Raw) -> bool {
    schema.get("type").and_then(|kind| kind.string()).as_deref() == Some("object")
}
