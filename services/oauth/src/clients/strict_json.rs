//! Strict JSON for input from strangers: no repeated names, no deep nesting
//! (AUTH-C3, CASE-87).

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess};
use serde_json::{Map, Value};

/// Deepest nesting.
const MAX_DEPTH: u8 = 8;

/// Reads a JSON object without repeated names and at most eight levels deep.
pub(crate) fn object(body: &[u8]) -> Option<Map<String, Value>> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = Strict(MAX_DEPTH).deserialize(&mut deserializer);
    match (value, deserializer.end()) {
        (Ok(Value::Object(object)), Ok(())) => Some(object),
        _ => None,
    }
}

/// The levels of nesting that are still allowed.
#[derive(Clone, Copy)]
struct Strict(u8);

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated names")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self
            .inner()
            .ok_or_else(|| A::Error::custom("nested too deeply"))?;
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            out.push(item);
        }
        Ok(out.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self
            .inner()
            .ok_or_else(|| A::Error::custom("nested too deeply"))?;
        let mut out = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if out.insert(name, value).is_some() {
                return Err(A::Error::custom("repeated name"));
            }
        }
        Ok(out.into())
    }
}

impl Strict {
    fn inner(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_87_repeated_names_and_deep_nesting_are_refused() {
        assert!(object(br#"{"a":1,"b":[{"c":null}]}"#).is_some());
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            "[]",
            "{} x",
            "<html>",
        ] {
            assert!(object(bad.as_bytes()).is_none(), "{bad}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(object(deep.as_bytes()).is_none());
    }
}
