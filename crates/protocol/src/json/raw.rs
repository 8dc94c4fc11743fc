//! JSON that only passes through: validated once, shared, never made into a tree.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::scan::{self, ScanError};

/// One JSON value as text, backed by shared bytes: cloning copies no text. A value from
/// [`Raw::parse`] is nested at most 64 deep, and every later parse accepts it. The exception is a
/// number beyond the range of a double, if the parse needs its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(Bytes);

/// The text is not one JSON value, or it is nested deeper than 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON value, or nested too deep")]
pub struct NotJson;

/// Why an entry of a list is not taken ([`Raw::parse_list`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// MCP-J-19.
    #[error("is nested deeper than {}", scan::MAX_DEPTH)]
    TooDeep,
    /// RFC 8259 §8.2.
    #[error("holds half of a surrogate pair, which is no character")]
    LoneSurrogate,
    /// Not JSON at all.
    #[error("is not JSON")]
    Syntax,
}

/// Type of the JSON value that a [`Raw`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// any number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

/// Parameters that do not fit: where, and what was expected. Becomes `-32602`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {expected}")]
pub struct Misfit {
    /// The JSON path, e.g. `params.argument.value`.
    pub path: String,
    /// Description of the value that was expected there.
    pub expected: String,
}

impl Misfit {
    /// A misfit at `path`.
    pub fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            expected: expected.into(),
        }
    }
}

impl Kind {
    /// Type of a JSON value by its text, which begins with no white space.
    pub(crate) fn of(json: &[u8]) -> Self {
        match json.first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

impl Raw {
    /// Takes `text` if it is one JSON value.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, NotJson> {
        let bytes = text.into();
        scan::validate(&bytes).map_err(|_| NotJson)?;
        Ok(Self::trusted(bytes))
    }

    /// Takes `text` if it is one JSON value whose parts are checked one by one. Some parts may be
    /// nested deeper than 64 levels or contain half of a surrogate pair. Each part that is used
    /// must pass [`Raw::soundness`] first.
    pub fn parse_list(text: impl Into<Bytes>) -> Result<Self, NotJson> {
        let bytes = text.into();
        scan::validate_list(&bytes).map_err(|_| NotJson)?;
        Ok(Self::trusted(bytes))
    }

    /// Whether [`Raw::parse`] would take it: needed for parts of what [`Raw::parse_list`] took.
    pub fn soundness(&self) -> Result<(), Unsound> {
        scan::validate(&self.0).map_err(|error| match error {
            ScanError::Syntax => Unsound::Syntax,
            ScanError::LoneSurrogate => Unsound::LoneSurrogate,
            ScanError::TooDeep => Unsound::TooDeep,
        })
    }

    /// Serialises `value`.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(Bytes::from(text)))
    }

    /// `{}`
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Text that has been validated as a whole or in part; white space around it is cut.
    pub(crate) fn trusted(bytes: Bytes) -> Self {
        let trimmed = bytes.trim_ascii();
        if trimmed.len() == bytes.len() {
            return Self(bytes);
        }
        let start = bytes.len() - bytes.trim_ascii_start().len();
        let end = start + trimmed.len();
        Self(bytes.slice(start..end))
    }

    /// The value at `range`, the place of a value within this text.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The shared bytes of the text.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Type of this value.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.0)
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The string, if this is one.
    pub fn string(&self) -> Option<String> {
        self.text().map(Cow::into_owned)
    }

    /// The string, if this is one; without a copy if it has no escapes.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        scan::string(&self.0)
    }

    /// The truth value, if this is one.
    pub fn boolean(&self) -> Option<bool> {
        match self.as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// The member `name` of an object; the last one if the text has several.
    pub fn get(&self, name: &str) -> Option<Raw> {
        scan::members(&self.0)
            .filter(|(key, _)| key.is(name))
            .last()
            .map(|(_, range)| self.part(range))
    }

    /// Several members of an object in one walk; of a member that stands twice, the last.
    pub fn pick<const N: usize>(&self, names: [&str; N]) -> [Option<Raw>; N] {
        let mut found = [const { None }; N];
        for (key, range) in scan::members(&self.0) {
            if let Some(slot) = names.iter().position(|name| key.is(name)) {
                found[slot] = Some(range);
            }
        }
        found.map(|place| place.map(|place| self.part(place)))
    }

    /// The members of an object, in order; nothing for other kinds.
    pub fn members(&self) -> impl Iterator<Item = (String, Raw)> + '_ {
        scan::members(&self.0).map(|(key, range)| (key.text().into_owned(), self.part(range)))
    }

    /// The elements of an array; nothing for other kinds.
    pub fn elements(&self) -> impl Iterator<Item = Raw> + '_ {
        scan::elements(&self.0).map(|range| self.part(range))
    }

    /// Reads the value as `T`. The error names the place, as seen from `root` (`params`,
    /// `params._meta`, …).
    pub fn read<T: DeserializeOwned>(&self, root: &str) -> Result<T, Misfit> {
        self.read_at(|| root.to_owned())
    }

    /// The same, where the place is a text to be made only for a misfit.
    pub(crate) fn read_at<T: DeserializeOwned>(
        &self,
        root: impl FnOnce() -> String,
    ) -> Result<T, Misfit> {
        // Keeping track of the place costs as much as reading: it is done for what does not fit.
        if let Ok(value) = serde_json::from_slice(&self.0) {
            return Ok(value);
        }
        let mut reader = serde_json::Deserializer::from_slice(&self.0);
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let inner = error.path().to_string();
            let mut path = root();
            if inner != "." {
                path.push('.');
                path.push_str(&inner);
            }
            // serde_json ends its messages with a position within our slice, which is useless to
            // the reader.
            let text = error.inner().to_string();
            let expected = text
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned();
            Misfit { path, expected }
        })
    }
}

impl fmt::Debug for Raw {
    // Arguments and results never appear in a log: only the kind and the size are written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({:?}, {} bytes)", self.kind(), self.0.len())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_slice(&self.0).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(String::from(Box::<str>::from(value))).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_names_the_place_and_raw_values_survive_the_path_tracking() {
        #[derive(Debug, Deserialize)]
        struct Inner {
            value: Raw,
            count: u32,
        }
        #[derive(Debug, Deserialize)]
        struct Outer {
            inner: Inner,
        }
        let good: Outer = Raw::parse(r#"{"inner":{"value":{"a":1e2},"count":3}}"#)
            .expect("sound")
            .read("params")
            .expect("sound");
        assert_eq!(good.inner.value.as_str(), r#"{"a":1e2}"#);
        assert_eq!(good.inner.count, 3);
        let misfit = Raw::parse(r#"{"inner":{"value":1,"count":"x"}}"#)
            .expect("sound")
            .read::<Outer>("params")
            .expect_err("no number");
        assert_eq!(misfit.path, "params.inner.count");
        assert!(!misfit.expected.contains("line"), "{misfit}");
    }
}
