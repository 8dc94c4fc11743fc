//! References in a schema that lead out of it (MCP-JS-5, MCP-JS-6). They are not fetched, so such a
//! schema checks less than it seems to.

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

/// Meta-schemas are known to every validator.
const KNOWN: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
];
/// Longest part of a reference that is shown, in characters.
const SHOWN: usize = 200;

/// The first reference to what is not in the schema, as the words of a sentence.
pub(crate) fn foreign_reference(schema: &Value) -> Option<String> {
    let mut found = FoundReference::default();
    found.schema(schema, None);
    let FoundReference { ids, references } = found;
    let foreign = references.into_iter().find(|reference| {
        !ids.contains(reference.address.as_str()) && !KNOWN.contains(&reference.address.as_str())
    })?;
    let shown: String = foreign.written.chars().take(SHOWN).collect();
    Some(format!("refers to `{shown}`, which is not part of it"))
}

#[derive(Default)]
struct FoundReference {
    /// Addresses of the schema and of schemas within.
    ids: HashSet<String>,
    references: Vec<Reference>,
}

struct Reference {
    written: String,
    /// Without its fragment, seen from where it stands.
    address: String,
}

impl FoundReference {
    fn schema(&mut self, schema: &Value, base: Option<&Url>) {
        match schema {
            Value::Array(list) => list.iter().for_each(|one| self.schema(one, base)),
            Value::Object(members) => {
                let id = members.get("$id").and_then(Value::as_str);
                let own = id.map(|id| seen_from(base, id));
                let own_base = own.as_ref().and_then(|own| Url::parse(own).ok());
                self.ids.extend(own);
                let base = own_base.as_ref().or(base);
                for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
                    if let Some(written) = members.get(keyword).and_then(Value::as_str)
                        && !written.starts_with('#')
                    {
                        self.references.push(Reference {
                            written: written.to_owned(),
                            address: seen_from(base, written),
                        });
                    }
                }
                for (name, value) in members {
                    match (name.as_str(), value) {
                        // Values, not schemas.
                        ("const" | "enum" | "default" | "examples", _) => {}
                        // Names, not keywords.
                        (
                            "properties" | "patternProperties" | "$defs" | "definitions"
                            | "dependentSchemas",
                            Value::Object(named),
                        ) => named.values().for_each(|one| self.schema(one, base)),
                        _ => self.schema(value, base),
                    }
                }
            }
            _ => {}
        }
    }
}

fn seen_from(base: Option<&Url>, written: &str) -> String {
    let address = match base {
        Some(base) => base.join(written).map(String::from),
        None => Url::parse(written).map(String::from),
    };
    let address = address.unwrap_or_else(|_| written.to_owned());
    let address = address.split('#').next().unwrap_or_default();
    address.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn js_6_q7_a_reference_is_foreign_where_nothing_within_has_its_address() {
        for own in [
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"$id": "https://x.test/s", "$ref": "https://x.test/s#/$defs/a"}),
            json!({"$id": "https://x.test/s", "$ref": "a", "$defs": {"a": {"$id": "/a"}}}),
            json!({"$ref": "tree", "$defs": {"tree": {"$id": "tree"}}}),
            json!({"properties": {"$ref": {"type": "string"}}}),
            json!({"const": {"$ref": "http://elsewhere.test"}, "default": {"$ref": "x"}}),
            json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"$schema": "https://elsewhere.test/dialect", "type": "object"}),
        ] {
            assert_eq!(foreign_reference(&own), None, "{own}");
        }
        for foreign in [
            json!({"$ref": "http://127.0.0.1/x#/a"}),
            json!({"anyOf": [{"items": {"$ref": "other.json"}}]}),
            json!({"$id": "https://x.test/s", "$dynamicRef": "other#a"}),
            json!({"properties": {"default": {"$ref": "file:///etc/passwd"}}}),
            json!({"properties": {"properties": {"properties": {"a": {"$ref": "x"}}}}}),
        ] {
            assert!(foreign_reference(&foreign).is_some(), "{foreign}");
        }
    }
}
