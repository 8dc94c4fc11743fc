//! How many parts of a schema apply to one place of a value.

use std::{collections::HashMap, ptr};

use serde_json::Value;

use crate::{
    effort::{pattern, spend, spend_text},
    refs,
};

/// Steps of compiling one part of a schema.
const A_PART: usize = 40;

/// As many parts may apply to the place that a part applies to, itself included. Real schemas have
/// some dozens: the kinds of a union.
const MOST: usize = 2_500;
/// As many may lead to one another at one place: each is a few frames of the stack while a value is
/// checked.
const LONGEST: usize = 100;

/// Keywords by which a part refers to another one, which then applies where it does.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether every part of `schema` applies no more than so many parts to one place, and none leads
/// to itself there. A schema with an id inside, or a reference that leads elsewhere, is not
/// surveyed and not bounded.
pub(crate) fn is_bounded(schema: &Value) -> bool {
    let mut survey = Survey {
        root: schema,
        anchors: HashMap::new(),
        costs: HashMap::new(),
    };
    let mut all = vec![schema];
    let mut next = 0;
    while let Some(part) = all.get(next).copied() {
        next += 1;
        spend_compiling(part);
        if next > 1 && part.get("$id").is_some_and(Value::is_string) {
            return false;
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = part.get(keyword).and_then(Value::as_str) {
                survey.anchors.insert(name, part);
            }
        }
        all.extend(inside(part).map(|(_, inner)| inner));
    }
    all.into_iter().all(|part| survey.cost(part, 0).is_some())
}

/// Counts the steps of compiling one part, without those inside.
fn spend_compiling(part: &Value) {
    spend(A_PART);
    let Some(keywords) = part.as_object() else {
        return;
    };
    if let Some(written) = keywords.get("pattern").and_then(Value::as_str) {
        pattern::spend_compiling(written);
    }
    let of_names = keywords.get("patternProperties").and_then(Value::as_object);
    for written in of_names.into_iter().flat_map(serde_json::Map::keys) {
        pattern::spend_compiling(written);
    }
    for keyword in ["enum", "required"] {
        spend(
            keywords
                .get(keyword)
                .and_then(Value::as_array)
                .map_or(0, Vec::len),
        );
    }
    for written in REFERENCES
        .iter()
        .filter_map(|keyword| keywords.get(*keyword)?.as_str())
    {
        spend_text(written);
    }
}

/// Highest cost of a byte of a member's name that this schema checks: the weight of all patterns
/// for names.
pub(crate) fn weight_of_names(schema: &Value) -> usize {
    let mut all = vec![schema];
    let mut weight = 0_usize;
    while let Some(part) = all.pop() {
        if let Some(keywords) = part.as_object() {
            weight = weight.saturating_add(pattern::weight_of_names(keywords));
        }
        all.extend(inside(part).map(|(_, inner)| inner));
    }
    weight
}

/// Where the schemas of a keyword apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaPlace {
    /// Where the keyword stands.
    Here,
    /// Further down, or nowhere unless something refers to them.
    Below,
}

/// Where the schemas of a keyword apply, and whether they have names.
fn known(keyword: &str) -> Option<(SchemaPlace, bool)> {
    Some(match keyword {
        "not" | "if" | "then" | "else" | "allOf" | "anyOf" | "oneOf" => (SchemaPlace::Here, false),
        "dependentSchemas" | "dependencies" => (SchemaPlace::Here, true),
        "items"
        | "prefixItems"
        | "additionalItems"
        | "contains"
        | "unevaluatedItems"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => (SchemaPlace::Below, false),
        "properties" | "patternProperties" | "$defs" | "definitions" => (SchemaPlace::Below, true),
        _ => return None,
    })
}

/// The schemas inside of one, and where they apply.
fn inside(schema: &Value) -> impl Iterator<Item = (SchemaPlace, &Value)> {
    let members = schema.as_object().into_iter().flatten();
    let of_keywords = members.filter_map(|(keyword, value)| Some((known(keyword)?, value)));
    of_keywords.flat_map(|((place, has_names), value)| {
        let (one, many, named) = match (has_names, value) {
            (true, Value::Object(named)) => (None, &[][..], Some(named)),
            (true, _) => (None, &[][..], None),
            (false, Value::Array(many)) => (None, many.as_slice(), None),
            (false, one) => (Some(one), &[][..], None),
        };
        let named = named.into_iter().flat_map(serde_json::Map::values);
        let all = one.into_iter().chain(many).chain(named);
        all.map(move |part| (place, part))
    })
}

struct Survey<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    /// Cost by schema. `None` while it is computed: reaching such a schema again means that it
    /// refers to itself.
    costs: HashMap<*const Value, Option<usize>>,
}

impl<'s> Survey<'s> {
    /// How many parts apply where `part` does, itself included. `None`: too many.
    fn cost(&mut self, part: &'s Value, chain: usize) -> Option<usize> {
        let address = ptr::from_ref(part);
        if let Some(known) = self.costs.get(&address) {
            return *known;
        }
        if chain > LONGEST {
            return None;
        }
        self.costs.insert(address, None);
        let mut cost = 1;
        for (place, other) in inside(part) {
            if place == SchemaPlace::Here {
                cost += self.cost(other, chain + 1)?;
            }
        }
        for keyword in REFERENCES {
            if let Some(written) = part.get(keyword).and_then(Value::as_str) {
                let target = self.target(written)?;
                cost += self.cost(target, chain + 1)?;
            }
        }
        if cost > MOST {
            return None;
        }
        self.costs.insert(address, Some(cost));
        Some(cost)
    }

    fn target(&self, written: &str) -> Option<&'s Value> {
        if let Some(anchor) = written
            .strip_prefix('#')
            .and_then(|name| self.anchors.get(name))
        {
            return Some(anchor);
        }
        self.root.pointer(&refs::local_pointer(written).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Makes a chain of `length` definitions. `make` turns a reference to the next definition into
    /// a definition.
    fn chain(length: usize, make: impl Fn(Value) -> Value) -> Value {
        let next = |number: usize| json!({"$ref": format!("#/$defs/a{}", number + 1)});
        let mut defs: Map<String, Value> = (0..length)
            .map(|number| (format!("a{number}"), make(next(number))))
            .collect();
        defs.insert(format!("a{length}"), json!({"type": "object"}));
        json!({"$defs": defs, "$ref": "#/$defs/a0"})
    }

    #[test]
    fn what_doubles_at_one_place_is_refused_and_what_goes_down_is_not() {
        let doubled = |next: Value| json!({"allOf": [next, next]});
        assert!(is_bounded(&chain(5, doubled)));
        assert!(!is_bounded(&chain(40, doubled)));
        let by_cases = |next: Value| json!({"if": next, "then": next, "else": next});
        assert!(!is_bounded(&chain(40, by_cases)));
        let by_name = |next: Value| json!({"dependentSchemas": {"a": next, "b": next}});
        assert!(!is_bounded(&chain(40, by_name)));
        // Each level is another place.
        let down = |next: Value| json!({"properties": {"left": next, "right": next}});
        assert!(is_bounded(&chain(80, down)));
        // One after the other: not many, but deep.
        let alone = |next: Value| json!({"allOf": [next]});
        assert!(is_bounded(&chain(30, alone)) && !is_bounded(&chain(200, alone)));
    }

    #[test]
    fn a_schema_may_contain_itself_further_down_and_nowhere_else() {
        for good in [
            json!({"type": "object", "properties": {"child": {"$ref": "#"}}}),
            json!({"$defs": {"n": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/n"}}]}}, "$ref": "#/$defs/n"}),
            json!({"$anchor": "top", "additionalProperties": {"$ref": "#top"}}),
            json!({"$id": "https://example.com/a", "items": {"$dynamicRef": "#"}}),
            json!({"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}, "allOf": {"type": "array"}}}),
            json!(true),
            json!({}),
        ] {
            assert!(is_bounded(&good), "{good}");
        }
        for bad in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"oneOf": [{"$ref": "#/$defs/a"}]}}, "items": {"$ref": "#/$defs/a"}}),
            json!({"$anchor": "top", "anyOf": [{"$ref": "#top"}]}),
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "#/$defs/nowhere"}),
            json!({"properties": {"a": {"$id": "https://example.com/b", "$ref": "#"}}}),
        ] {
            assert!(!is_bounded(&bad), "{bad}");
        }
    }

    #[test]
    fn a_union_of_many_kinds_is_bounded() {
        let kinds: Vec<Value> = (0..300)
            .map(|kind| json!({"type": "object", "properties": {"kind": {"const": kind}}}))
            .collect();
        assert!(is_bounded(&json!({"oneOf": kinds})));
        let values: Vec<Value> = (0..10_000).map(|value| json!({"const": value})).collect();
        assert!(!is_bounded(&json!({"anyOf": values})));
    }
}
