//! Text to a JSON value: JSON or YAML, bounded, with the place of a fault.

use std::{cell::Cell, fmt};

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, error::Category};

use super::{DocumentError, MAX_DOCUMENT_BYTES, Problem, Severity, yaml};
use crate::effort;

/// Nesting of a document. Real ones have some thirty levels.
pub(super) const MAX_DEPTH: usize = 126;
/// Values in a document. YAML aliases multiply values, so bytes alone are no bound ("billion
/// laughs", MCP-AB-42).
const MAX_VALUES: usize = 2_000_000;
/// Bytes of text in a document after aliases are expanded.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;
/// Steps of one value.
const A_VALUE: usize = 4;
/// Error text for a document that is nested too deep.
pub(super) const TOO_DEEP: &str = "it is nested more than 126 levels deep";

/// Reads any bounded JSON or YAML text into a value.
pub(super) fn parse(bytes: &[u8], problems: &mut Vec<Problem>) -> Result<Value, DocumentError> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(Problem::error(format!(
            "The document has {} bytes; up to {} MiB can be imported. Remove examples, or split it by tag.",
            bytes.len(),
            MAX_DOCUMENT_BYTES / 1024 / 1024
        ))
        .into());
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            let mut problem =
                Problem::error("The document is not UTF-8 text. Save it as UTF-8 and try again.");
            problem.line = Some(line);
            return Err(problem.into());
        }
    };
    match text.trim_start().chars().next() {
        None => return Err(Problem::error("The document is empty.").into()),
        Some('<') => {
            return Err(Problem::error(
                "This is a web page or XML, not an OpenAPI document. Give the address of the JSON or YAML document \
                 itself; it is often linked on the API's documentation page.",
            )
            .into());
        }
        Some('{' | '[') => match json(text) {
            Ok(value) => return Ok(value),
            Err(error) => {
                // Its own errors on JSON would only confuse.
                if is_cured_by_yaml(&error)
                    && let Ok(value) = yaml::parse(text, &Budget::new())
                {
                    problems.push(located(
                        "The document is not strict JSON; it was read as YAML.",
                        &error,
                    ));
                    return Ok(value);
                }
                let what = if error.classify() == Category::Data {
                    "The document cannot be imported"
                } else {
                    "This is not valid JSON"
                };
                let mut problem = located(&format!("{what}: {}.", without_place(&error)), &error);
                problem.severity = Severity::Error;
                return Err(problem.into());
            }
        },
        Some(_) => {}
    }
    yaml::parse(text, &Budget::new()).map_err(|fault| {
        let mut problem = Problem::error(format!("This is not valid YAML: {}.", fault.message));
        (problem.line, problem.column) = (fault.line, fault.column);
        problem.into()
    })
}

fn located(message: &str, error: &serde_json::Error) -> Problem {
    Problem {
        severity: Severity::Warning,
        message: message.to_owned(),
        pointer: None,
        line: Some(error.line()),
        column: Some(error.column()),
    }
}

/// serde_json ends its texts with the place, which is shown apart.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(cut) => text[..cut].to_owned(),
        None => text,
    }
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    let budget = Budget::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Bounded::new(&budget).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// True if YAML may parse a text that is not JSON: a trailing comma, a comment, a name without
/// quotes, a line end inside a string. False for a text that is too deep, too large or cut off.
fn is_cured_by_yaml(error: &serde_json::Error) -> bool {
    const CURED: [&str; 8] = [
        "trailing comma",
        "expected value",
        "expected ident",
        "expected `,` or `}`",
        "expected `,` or `]`",
        "key must be a string",
        "control character",
        "trailing characters",
    ];
    let text = error.to_string();
    error.classify() == Category::Syntax && CURED.iter().any(|cured| text.starts_with(cured))
}

/// Remaining budget of a document.
pub(super) struct Budget {
    values: Cell<usize>,
    text: Cell<usize>,
}

/// Why a document is more than can be imported.
#[derive(Debug)]
pub(super) struct Refused(pub(super) &'static str);

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            values: Cell::new(MAX_VALUES),
            text: Cell::new(MAX_TEXT_BYTES),
        }
    }

    /// Counts one value with so many bytes of text.
    pub(super) fn spend(&self, text: usize) -> Result<(), Refused> {
        effort::spend(A_VALUE + text / 64);
        match (
            self.values.get().checked_sub(1),
            self.text.get().checked_sub(text),
        ) {
            (Some(values), Some(text)) => {
                self.values.set(values);
                self.text.set(text);
                Ok(())
            }
            _ => Err(Refused("it expands to more values than can be imported")),
        }
    }
}

/// A [`Value`] whose size is bounded while it is built.
#[derive(Clone, Copy)]
struct Bounded<'b> {
    budget: &'b Budget,
    depth: usize,
}

impl<'b> Bounded<'b> {
    const fn new(budget: &'b Budget) -> Self {
        Self { budget, depth: 0 }
    }

    fn spend<E: de::Error>(self, text: usize) -> Result<(), E> {
        let Refused(why) = match self.budget.spend(text) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        Err(E::custom(why))
    }

    /// For what is inside of a list or an object.
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        self.spend(0)?;
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(TOO_DEEP));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        self.spend(0)?;
        // YAML has .nan and .inf, JSON has neither.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        self.spend(value.len())?;
        // NUL means nothing in any text here, and Postgres refuses it inside jsonb.
        Ok(Value::String(if value.contains('\0') {
            value.replace('\0', "")
        } else {
            value
        }))
    }

    fn visit_bytes<E: de::Error>(self, value: &[u8]) -> Result<Value, E> {
        self.visit_str(&String::from_utf8_lossy(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.spend(key.len())?;
            object.insert(key, access.next_value_seed(inside)?);
        }
        Ok(Value::Object(object))
    }
}
