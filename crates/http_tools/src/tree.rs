//! An API's answer as a tree that borrows from its text, for the check against the output schema:
//! one vector an object, no copy of a string without escapes, no hashing. The validator reads it
//! directly.

use std::{borrow::Cow, fmt, ptr};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, cmp},
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::effort;

/// One JSON value.
#[derive(Debug)]
pub(crate) enum Tree<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Text<'a>),
    Array(Vec<Tree<'a>>),
    /// As written: a name that comes twice is there twice, and both are checked.
    Object(Vec<(Text<'a>, Tree<'a>)>),
}

/// A string, borrowed unless it has escapes.
#[derive(Debug)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Tree<'_> {
    /// Counts the steps of making a value of it.
    fn spend_copying(&self) {
        match self {
            Self::String(text) => effort::spend_text(&text.0),
            Self::Array(items) => {
                effort::spend(4);
                items.iter().for_each(Tree::spend_copying);
            }
            Self::Object(members) => {
                effort::spend(4);
                for (name, value) in members {
                    effort::spend(4);
                    effort::spend_text(&name.0);
                    value.spend_copying();
                }
            }
            _ => effort::spend(1),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(value) => Value::Number(value.clone()),
            Self::String(text) => Value::String(text.0.clone().into_owned()),
            Self::Array(items) => items.iter().map(Tree::to_value).collect(),
            Self::Object(members) => members
                .iter()
                .map(|(name, value)| (name.0.clone().into_owned(), value.to_value()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsText;
        impl<'de> Visitor<'de> for AsText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(AsText)
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsTree;
        impl<'de> Visitor<'de> for AsTree {
            type Value = Tree<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
                Ok(Tree::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
                Ok(Tree::Bool(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
                Ok(Tree::Number(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
                Ok(Tree::Number(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Tree<'de>, E> {
                let number = Number::from_f64(value);
                number
                    .map(Tree::Number)
                    .ok_or_else(|| E::custom("number out of range"))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
                Ok(Tree::String(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
                Ok(Tree::String(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Tree::Array(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
                // Objects of an API rarely have fewer members, and growing copies them.
                let mut members = Vec::with_capacity(8);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Tree::Object(members))
            }
        }
        deserializer.deserialize_any(AsTree)
    }
}

/// Validators of this take [`Tree`]s.
#[derive(Debug)]
pub(crate) struct Trees;

impl Json for Trees {
    type Node<'a> = &'a Tree<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    // A look-up walks the members: a pass over all of them is never dearer than a few.
    const KEYS_PER_LOOKUP: usize = 16;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        f(&Tree::String(Text(Cow::Borrowed(string))))
    }
}

impl<'a> Node<'a, Trees> for &'a Tree<'a> {
    type Object = TreeMembers<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<TreeMembers<'a>> {
        match self {
            Tree::Object(members) => Some(TreeMembers(members)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<Items<'a>> {
        match self {
            Tree::Array(items) => Some(Items(items)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Tree::String(text) => Some(Cow::Borrowed(&text.0)),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self {
            Tree::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Tree::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Tree::Null => JsonType::Null,
            Tree::Bool(_) => JsonType::Boolean,
            Tree::Number(_) => JsonType::Number,
            Tree::String(_) => JsonType::String,
            Tree::Array(_) => JsonType::Array,
            Tree::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Tree::String(text), Value::String(expected)) => text.0 == *expected,
            (Tree::String(_), _) | (_, Value::String(_)) => false,
            // No copy of a large value for each of many that it may equal.
            (Tree::Array(items), Value::Array(expected)) if items.len() != expected.len() => false,
            (Tree::Object(members), Value::Object(expected)) if members.len() < expected.len() => {
                false
            }
            (Tree::Array(_), Value::Array(_)) | (Tree::Object(_), Value::Object(_)) => {
                self.spend_copying();
                cmp::equal(&Tree::to_value(self), expected)
            }
            (Tree::Array(_) | Tree::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
                false
            }
            _ => cmp::equal(&Tree::to_value(self), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(Tree::to_value(self))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(ptr::from_ref::<Tree<'a>>(self).addr()))
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeMembers<'a>(&'a [(Text<'a>, Tree<'a>)]);

impl<'a> Object<'a, Trees> for TreeMembers<'a> {
    type Node = &'a Tree<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &Box<str>) -> Option<&'a Tree<'a>> {
        // The last of a name, as readers of JSON take it.
        let found = self.0.iter().rfind(|(name, _)| *name.0 == **key);
        found.map(|(_, value)| value)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.iter())
    }
}

/// Names and values of an object.
#[derive(Debug)]
pub(crate) struct MembersIter<'a>(std::slice::Iter<'a, (Text<'a>, Tree<'a>)>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, &'a Tree<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (&*name.0, value))
    }
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items<'a>(&'a [Tree<'a>]);

impl<'a> Array<'a, Trees> for Items<'a> {
    type Node = &'a Tree<'a>;
    type ElementsIter = std::slice::Iter<'a, Tree<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> std::slice::Iter<'a, Tree<'a>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::Validator;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn validator<F: Json>(schema: &Value) -> Validator<F> {
        crate::arguments::options_for::<F>().build(schema).unwrap()
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..4).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-2.0_f64..2.0).prop_map(Value::from),
            "[ab\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[abc]{1,2}", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        /// MCP-TL-12: the tree and the ordinary value are judged alike, whatever the schema asks.
        #[test]
        fn tl_12_a_tree_fits_a_schema_exactly_if_its_value_does(value in any_json(), const_value in any_json()) {
            let text = value.to_string();
            let tree: Tree<'_> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&Tree::to_value(&tree), &value);
            let schemas = [
                json!({"type": "object", "required": ["a", "b", "aa"], "properties": {"a": {"type": ["string", "null"]}, "b": {"minimum": 0}}}),
                json!({"additionalProperties": {"type": ["object", "array"]}, "patternProperties": {"^a": true}, "maxProperties": 3}),
                json!({"type": "array", "uniqueItems": true, "items": {"enum": [1, "a", null, [], {}]}, "minItems": 1}),
                json!({"properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}, "unevaluatedProperties": false}),
                json!({"propertyNames": {"maxLength": 1}, "not": {"const": const_value}}),
                json!({"oneOf": [{"type": "number", "multipleOf": 2}, {"minLength": 2}, {"contains": {"const": 1}}]}),
                json!({"anyOf": [{"prefixItems": [{"type": "string"}], "items": false}, {"dependentRequired": {"a": ["b"]}}]}),
                json!({"const": const_value}),
            ];
            for schema in &schemas {
                let ordinary = validator::<jsonschema::json::SerdeJson>(schema).is_valid(&value);
                prop_assert_eq!(validator::<Trees>(schema).is_valid(&tree), ordinary, "{} against {}", text, schema);
            }
        }
    }

    #[test]
    fn a_name_that_comes_twice_is_checked_twice() {
        let tree: Tree<'_> = serde_json::from_str(r#"{"a":1,"a":"x"}"#).unwrap();
        let schema = json!({"additionalProperties": {"type": "integer"}});
        assert!(!validator::<Trees>(&schema).is_valid(&tree));
    }
}
