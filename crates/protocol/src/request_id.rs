//! Request ids and progress tokens: string or integer, kept exactly.

use std::{borrow::Cow, fmt, io::Write};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Kind, Raw, scan, write_string};

/// A JSON-RPC id: a string or an integer of any size, repeated with the same type and exact value
/// (MCP-J-2, MCP-J-5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    Integer(i64),
    /// Decimal digits of an integer beyond `i64`.
    Wide(Box<str>),
    Text(Box<str>),
}

/// A progress token has the form of an id (MCP-PP-1).
pub type ProgressToken = RequestId;

impl RequestId {
    /// Reads an id from its JSON text. `None` for null, fractions, exponents and every other type
    /// (MCP-J-2).
    pub fn from_raw(raw: &Raw) -> Option<Self> {
        Self::from_json(raw.as_bytes())
    }

    /// The same, from validated text.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        match Kind::of(json) {
            Kind::String => {
                let text = scan::string(json)?;
                Some(Self(Form::Text(Cow::into_owned(text).into())))
            }
            Kind::Number => {
                let digits = std::str::from_utf8(json).ok()?;
                if !digits
                    .bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_digit())
                {
                    return None;
                }
                Some(Self(match digits.parse() {
                    // `-0` equals 0 but must come back as it was written.
                    Ok(0) if digits != "0" => Form::Wide(digits.into()),
                    Ok(value) => Form::Integer(value),
                    Err(_) => Form::Wide(digits.into()),
                }))
            }
            _ => None,
        }
    }

    /// The text, if this is a string id.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Form::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            // Writing into memory cannot fail.
            Form::Integer(value) => drop(write!(out, "{value}")),
            Form::Wide(digits) => out.extend_from_slice(digits.as_bytes()),
            Form::Text(text) => write_string(text, out),
        }
    }

    /// The id as JSON text.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(24);
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Integer(value) => write!(f, "{value}"),
            Form::Wide(digits) => f.write_str(digits),
            Form::Text(_) => f.write_str(&self.to_json()),
        }
    }
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self(Form::Integer(value))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(Form::Text(text.into()))
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Integer(value) => serializer.serialize_i64(*value),
            Form::Text(text) => serializer.serialize_str(text),
            Form::Wide(digits) => RawValue::from_string(digits.clone().into())
                .map_err(S::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Self::from_raw(&raw).ok_or_else(|| D::Error::custom("expected a string or an integer"))
    }
}
