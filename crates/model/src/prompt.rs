//! Prompts that tenants write: arguments, messages with `{{placeholders}}`, and what becomes of
//! them.
//!
//! A value is inserted as text and never parsed again: a caller's text cannot bring placeholders,
//! blocks or roles of its own (MCP-PR-7). A backslash before the braces keeps them as
//! they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most characters of a value that a caller gives.
pub const LONGEST_VALUE: usize = 32 * 1024;
/// Most bytes of a text after its placeholders were filled.
pub const LONGEST_RENDERED: usize = 1024 * 1024;

/// An argument of a prompt, or a variable of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// As placeholders name it.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// It must be given. Variables of a template always are.
    #[serde(default)]
    pub required: bool,
    /// What completion offers, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Suggestion>,
}

/// A value that completion offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    /// The value.
    pub value: String,
    /// Offered only while these other arguments have these values, or are not chosen yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
}

impl Argument {
    /// The values that begin with `typed`, whatever its case, and fit what was already chosen
    /// (MCP-CP-2).
    pub fn suggestions(&self, typed: &str, chosen: &BTreeMap<String, String>) -> Vec<&str> {
        let typed = typed.to_lowercase();
        let fits = |suggestion: &&Suggestion| {
            let mut conditions = suggestion.when.iter();
            suggestion.value.to_lowercase().starts_with(&typed)
                && conditions.all(|(name, value)| chosen.get(name).is_none_or(|own| own == value))
        };
        self.values
            .iter()
            .filter(fits)
            .map(|suggestion| suggestion.value.as_str())
            .collect()
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A message of a prompt: one block (MCP-PR-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The author of the message.
    pub role: Speaker,
    /// What.
    pub content: Block,
}

/// The content of a message. Texts and URIs may have placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    /// Text.
    Text {
        /// With placeholders.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64, standard alphabet with padding.
        data: String,
        /// Media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Base64, standard alphabet with padding.
        data: String,
        /// Media type.
        mime_type: String,
    },
    /// A resource within the message: a text, or a file as Base64.
    Resource {
        /// With placeholders.
        uri: String,
        /// Media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// With placeholders.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Base64, standard alphabet with padding.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
    /// A reference to a resource.
    ResourceLink {
        /// With placeholders.
        uri: String,
        /// Programmatic name.
        name: String,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its description.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl Block {
    /// The texts that may have placeholders.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text { text } => vec![text],
            Self::Image { .. } | Self::Audio { .. } => Vec::new(),
            Self::Resource { uri, text, .. } => {
                let mut texts = vec![uri.as_str()];
                texts.extend(text.as_deref());
                texts
            }
            Self::ResourceLink { uri, .. } => vec![uri],
        }
    }
}

/// How a value is written into a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// As it is.
    Nothing,
    /// As the inside of a JSON string.
    Json,
    /// With the entities of HTML and XML.
    Markup,
}

impl Escape {
    /// Returns the escaping that a text of this media type needs, so that a value stays a value.
    pub fn of(mime_type: Option<&str>) -> Self {
        let essence = mime_type
            .and_then(|text| text.split(';').next())
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        if essence == "application/json" || essence.ends_with("+json") {
            Self::Json
        } else if matches!(
            essence.as_str(),
            "text/html" | "text/xml" | "application/xml"
        ) || essence.ends_with("+xml")
        {
            Self::Markup
        } else {
            Self::Nothing
        }
    }

    fn write(self, value: &str, out: &mut String) {
        match self {
            Self::Nothing => out.push_str(value),
            Self::Json => {
                let quoted = serde_json::Value::String(value.to_owned()).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
            Self::Markup => {
                for c in value.chars() {
                    match c {
                        '&' => out.push_str("&amp;"),
                        '<' => out.push_str("&lt;"),
                        '>' => out.push_str("&gt;"),
                        '"' => out.push_str("&quot;"),
                        '\'' => out.push_str("&#39;"),
                        c => out.push(c),
                    }
                }
            }
        }
    }
}

enum Piece<'a> {
    Literal(&'a str),
    Placeholder(&'a str),
}

/// A name of an argument: 1 to 64 letters, digits, `_`, `-` or `.`.
pub fn is_argument_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut literal_from, mut at) = (0, 0);
    while let Some(braces) = text[at..].find("{{").map(|offset| at + offset) {
        let inside = braces + 2;
        if text[..braces].ends_with('\\') {
            found.push(Piece::Literal(&text[literal_from..braces - 1]));
            found.push(Piece::Literal("{{"));
            (literal_from, at) = (inside, inside);
            continue;
        }
        let Some(end) = text[inside..].find("}}").map(|offset| inside + offset) else {
            break;
        };
        let name = text[inside..end].trim();
        if is_argument_name(name) {
            found.push(Piece::Literal(&text[literal_from..braces]));
            found.push(Piece::Placeholder(name));
            (literal_from, at) = (end + 2, end + 2);
        } else {
            at = braces + 1;
        }
    }
    found.push(Piece::Literal(&text[literal_from..]));
    found
}

/// The names of a text's placeholders, in the order in which they stand.
pub fn placeholders(text: &str) -> Vec<&str> {
    let named = |piece| match piece {
        Piece::Placeholder(name) => Some(name),
        Piece::Literal(_) => None,
    };
    pieces(text).into_iter().filter_map(named).collect()
}

/// The filled text would be longer than [`LONGEST_RENDERED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text would be too long")]
pub struct TooLong;

/// Fills the placeholders; one without a value becomes nothing.
pub fn fill(
    text: &str,
    values: &BTreeMap<String, String>,
    escape: Escape,
) -> Result<String, TooLong> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => out.push_str(literal),
            Piece::Placeholder(name) => {
                if let Some(value) = values.get(name) {
                    escape.write(value, &mut out);
                }
            }
        }
        if out.len() > LONGEST_RENDERED {
            return Err(TooLong);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn filled(text: &str, pairs: &[(&str, &str)]) -> String {
        fill(text, &values(pairs), Escape::Nothing).unwrap()
    }

    #[test]
    fn pr_7_a_value_is_text_and_is_never_looked_at_again() {
        assert_eq!(
            filled("Say {{a}} and {{ b }}.", &[("a", "{{b}}"), ("b", "x")]),
            "Say {{b}} and x."
        );
        assert_eq!(filled("{{a}}{{a}}", &[("a", "1")]), "11");
    }

    #[test]
    fn braces_that_name_no_argument_or_are_escaped_stay() {
        assert_eq!(
            filled("{{a b}} {{}} {{a", &[("a", "1")]),
            "{{a b}} {{}} {{a"
        );
        assert_eq!(filled(r"\{{a}} {{a}}", &[("a", "1")]), "{{a}} 1");
        assert_eq!(filled("{{{a}}}", &[("a", "1")]), "{1}");
        assert_eq!(placeholders(r"{{a}} \{{b}} {{ c }} {{d e}}"), ["a", "c"]);
    }

    #[test]
    fn pr_4_an_argument_that_is_not_given_becomes_nothing() {
        assert_eq!(filled("[{{a}}]", &[]), "[]");
    }

    #[test]
    fn a_value_stays_a_value_in_json_and_in_markup() {
        let quoted = values(&[("a", "\"x\" <b>\n")]);
        let json = fill(
            r#"{"id":"{{a}}"}"#,
            &quoted,
            Escape::of(Some("application/json")),
        )
        .unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json).unwrap(),
            serde_json::json!({"id": "\"x\" <b>\n"})
        );
        assert_eq!(
            fill(
                "<p>{{a}}",
                &quoted,
                Escape::of(Some("text/html;profile=mcp-app"))
            )
            .unwrap(),
            "<p>&quot;x&quot; &lt;b&gt;\n"
        );
        assert_eq!(Escape::of(Some("text/plain")), Escape::Nothing);
    }

    #[test]
    fn a_text_does_not_grow_without_end() {
        let text = "{{a}}".repeat(100);
        assert_eq!(
            fill(
                &text,
                &values(&[("a", &"x".repeat(LONGEST_VALUE))]),
                Escape::Nothing
            ),
            Err(TooLong)
        );
    }

    #[test]
    fn cp_2_suggestions_fit_what_was_typed_and_chosen() {
        let suggestion = |value: &str, when: &[(&str, &str)]| Suggestion {
            value: value.to_owned(),
            when: values(when),
        };
        let argument = Argument {
            name: "framework".into(),
            values: vec![
                suggestion("Flask", &[("language", "python")]),
                suggestion("FastAPI", &[("language", "python")]),
                suggestion("Fiber", &[("language", "go")]),
            ],
            ..Argument::default()
        };
        let offered = |typed: &str, chosen: &[(&str, &str)]| {
            argument.suggestions(typed, &values(chosen)).join(" ")
        };
        assert_eq!(offered("f", &[]), "Flask FastAPI Fiber");
        assert_eq!(offered("F", &[("language", "python")]), "Flask FastAPI");
        assert_eq!(offered("fa", &[("language", "python")]), "FastAPI");
        assert_eq!(offered("", &[("language", "rust")]), "");
    }
}
