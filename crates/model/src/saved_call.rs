//! Saved calls of a server: what their answers have to be (PLAY-6, PLAY-7).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most assertions of values in one saved call.
pub const MOST_EQUALS: usize = 50;

/// How a call has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedStatus {
    /// A result that is no error of the tool.
    #[default]
    Ok,
    /// A result with `isError`, or a JSON-RPC error.
    Error,
}

/// A value at a place of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualAt {
    /// A singular query of JSONPath (RFC 9535, section 2.3.5.1), such as `$.content[0].text`.
    pub path: String,
    /// The value that stands there.
    pub value: Value,
}

/// Assertions on the answer to a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectations {
    /// How it ends.
    pub status: ExpectedStatus,
    /// Whether `structuredContent` fits the tool's output schema.
    pub schema: bool,
    /// Longest time to the answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u32>,
    /// Values in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<EqualAt>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A member of an object.
    Name(String),
    /// An element of an array; a negative number counts from its end.
    Index(i64),
}

/// A path that names at most one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Selector>);

impl Path {
    /// Reads `$`, `.name`, `['name']`, `["name"]` and `[0]`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('$')?;
        let mut selectors = Vec::new();
        while !rest.is_empty() {
            let (selector, after) = if let Some(after) = rest.strip_prefix('.') {
                shorthand(after)?
            } else {
                bracketed(rest.strip_prefix('[')?)?
            };
            selectors.push(selector);
            rest = after;
        }
        Some(Self(selectors))
    }

    /// The value at this place.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(value, |here, selector| match selector {
                Selector::Name(name) => here.as_object()?.get(name),
                Selector::Index(index) => {
                    let elements = here.as_array()?;
                    let from_end = || {
                        elements
                            .len()
                            .checked_sub(index.unsigned_abs().try_into().ok()?)
                    };
                    let place = usize::try_from(*index).ok().or_else(from_end)?;
                    elements.get(place)
                }
            })
    }
}

fn shorthand(text: &str) -> Option<(Selector, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let mut chars = name.chars();
    let is_name = chars.next().is_some_and(first) && chars.all(|c| first(c) || c.is_ascii_digit());
    is_name.then(|| (Selector::Name(name.to_owned()), rest))
}

fn bracketed(text: &str) -> Option<(Selector, &str)> {
    let Some(quote) = text.chars().next().filter(|c| ['\'', '"'].contains(c)) else {
        let (number, rest) = text.split_once(']')?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_index = number == "0" || (!digits.starts_with('0') && !digits.is_empty());
        let index: i64 = number.parse().ok()?;
        return (is_index && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some((Selector::Index(index), rest));
    };
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => {
                let rest = text.get(at + 1..)?.strip_prefix(']')?;
                return Some((Selector::Name(name), rest));
            }
            '\\' => name.push(escaped(chars.next()?.1)?),
            _ => name.push(c),
        }
    }
    None
}

/// Escapes of RFC 9535 without `\u`: a name can stand in the text as it is.
const fn escaped(c: char) -> Option<char> {
    match c {
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '/' | '\\' | '\'' | '"' => Some(c),
        _ => None,
    }
}

/// The finding of one assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The assertion in words.
    pub what: String,
    /// True if it holds.
    pub holds: bool,
    /// The value in its place, if it does not hold.
    pub found: Option<String>,
}

/// An answer as assertions see it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The result; none after a JSON-RPC error.
    pub result: Option<&'a Value>,
    /// Time to the answer, in milliseconds.
    pub took_ms: u64,
    /// The fault of `structuredContent`, if its schema was asked for.
    pub schema_fault: Option<&'a str>,
}

impl Expectations {
    /// The path that cannot be read, if there is one.
    pub fn bad_path(&self) -> Option<&str> {
        self.equals
            .iter()
            .map(|equal| equal.path.as_str())
            .find(|path| Path::parse(path).is_none())
    }

    /// Holds the assertions against an answer, in the order in which they stand.
    pub fn check(&self, answer: &Answer<'_>) -> Vec<Finding> {
        let failed = answer
            .result
            .is_none_or(|result| result.get("isError") == Some(&Value::Bool(true)));
        let (word, found) = match self.status {
            ExpectedStatus::Ok => ("ok", "error"),
            ExpectedStatus::Error => ("error", "ok"),
        };
        let holds = failed == (self.status == ExpectedStatus::Error);
        let mut findings = vec![finding(format!("status is {word}"), holds, found)];
        for equal in &self.equals {
            let here = Path::parse(&equal.path)
                .and_then(|path| answer.result.and_then(|result| path.find(result)));
            let found = here.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let what = format!("{} is {}", equal.path, equal.value);
            findings.push(finding(
                what,
                here.is_some_and(|here| same(here, &equal.value)),
                found,
            ));
        }
        if self.schema {
            let fault = answer.schema_fault;
            let what = "the result fits its output schema".to_owned();
            findings.push(finding(what, fault.is_none(), fault.unwrap_or_default()));
        }
        if let Some(most) = self.max_ms {
            let what = format!("it takes at most {most} ms");
            let holds = answer.took_ms <= u64::from(most);
            findings.push(finding(what, holds, format!("{} ms", answer.took_ms)));
        }
        findings
    }
}

fn finding(what: String, holds: bool, found: impl Into<String>) -> Finding {
    Finding {
        what,
        holds,
        found: (!holds).then(|| found.into()),
    }
}

/// JSON equality: `1` and `1.0` are one number, and members have no order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right
                || left
                    .as_f64()
                    .zip(right.as_f64())
                    .is_some_and(|(left, right)| left.total_cmp(&right).is_eq())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> Value {
        let text = include_str!("../../../tests/vectors/saved_calls.json");
        serde_json::from_str(text).expect("vectors")
    }

    fn list<'a>(vectors: &'a Value, name: &str) -> &'a Vec<Value> {
        vectors[name].as_array().expect("a list")
    }

    /// Rule: PLAY-7.
    #[test]
    fn a_path_names_the_value_that_it_names_in_the_page() {
        let vectors = vectors();
        for vector in list(&vectors, "paths") {
            let text = vector["path"].as_str().expect("a path");
            let path = Path::parse(text).unwrap_or_else(|| panic!("{text}"));
            let expected = (vector.get("absent").is_none()).then_some(&vector["found"]);
            assert_eq!(path.find(&vector["value"]), expected, "{text}");
        }
        for text in list(&vectors, "no_paths") {
            let text = text.as_str().expect("a text");
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }

    /// Rule: PLAY-7.
    #[test]
    fn assertions_hold_where_they_hold_in_the_page() {
        for vector in list(&vectors(), "checks") {
            let expect: Expectations =
                serde_json::from_value(vector["expect"].clone()).expect("expectations");
            let result = Some(&vector["result"]).filter(|result| !result.is_null());
            let answer = Answer {
                result,
                took_ms: vector["took_ms"].as_u64().expect("a time"),
                schema_fault: None,
            };
            let findings = expect.check(&answer);
            let holds: Vec<bool> = findings.iter().map(|finding| finding.holds).collect();
            assert_eq!(Value::from(holds), vector["holds"], "{expect:?}");
            assert!(findings.iter().all(|one| one.found.is_none() == one.holds));
        }
    }
}
