//! The allowed values of a setting: in words, as a check and as JSON Schema.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};

/// The allowed values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text, described in words.
    Text(&'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Number {
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// One of some words.
    Words(&'static [&'static str]),
    /// Several, with commas between; a list in the file.
    List(&'static Self),
    /// Tables of the file, described in words; TOML in the environment.
    Tables(&'static str),
}

impl Form {
    /// A whole number of a range.
    pub const fn number(range: RangeInclusive<u64>) -> Self {
        Self::Number {
            least: *range.start(),
            most: *range.end(),
        }
    }

    /// The allowed values in words: `1 to 1000`.
    pub fn allowed(&self) -> String {
        match self {
            Self::Text(words) | Self::Tables(words) => (*words).to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number { least, most } => format!("a number from {least} to {most}"),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Words(words) => words
                .iter()
                .map(|word| format!("\"{word}\""))
                .collect::<Vec<_>>()
                .join(" or "),
            Self::List(item) => format!("{}; several with commas between", item.allowed()),
        }
    }

    /// Describes what is wrong with a value, if its form shows it. The value is not repeated.
    pub(crate) fn fault(&self, text: &str) -> Option<&'static str> {
        match self {
            Self::Text(_) | Self::List(_) | Self::Tables(_) => None,
            Self::Flag => {
                (!matches!(text, "true" | "false")).then_some("is neither true nor false")
            }
            Self::Number { least, most } => match text.parse::<u64>() {
                Ok(number) if (*least..=*most).contains(&number) => None,
                Ok(_) => Some("is out of range"),
                Err(_) => Some("is not a whole number that is allowed"),
            },
            Self::Share => match text.parse::<f64>() {
                Ok(share) if (0.0..=1.0).contains(&share) => None,
                Ok(_) => Some("is out of range"),
                Err(_) => Some("is not a number"),
            },
            Self::Words(words) => (!words.contains(&text)).then_some("is not one of the words"),
        }
    }

    /// The JSON Schema of a value in the configuration file.
    pub fn schema(&self) -> Json {
        match self {
            Self::Text(_) => json!({ "type": "string" }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Number { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            Self::Words(words) => json!({ "type": "string", "enum": words }),
            Self::List(item) => {
                json!({ "type": ["array", "string"], "items": item.schema() })
            }
            Self::Tables(_) => json!({ "type": "array", "items": { "type": "object" } }),
        }
    }

    /// A default, given as text, as a value of the configuration file.
    pub(crate) fn example(&self, text: &str) -> Json {
        match self {
            Self::Flag | Self::Number { .. } | Self::Share => {
                serde_json::from_str(text).unwrap_or(Json::Null)
            }
            _ => Json::from(text),
        }
    }
}
