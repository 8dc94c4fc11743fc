//! Values as text in the styles of OpenAPI 3 (OpenAPI 3.1.1 §4.8.12, "Style Examples").

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::plan::Style;

/// Everything but RFC 3986's unreserved characters.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// With `allowReserved`: what has no meaning inside a query value stays. `&`, `#`, `+` and `[`, `]`
/// are still encoded, because they would end or change the pair.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Percent-encodes one value or name.
pub fn encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, STRICT).into()
}

/// A value as bare text: strings as they are, null as nothing, nested lists and objects as JSON.
pub fn bare(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}

/// The form of a value's characters in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Characters {
    /// All but the unreserved ones are percent-encoded.
    Encoded,
    /// Reserved ones stay, too (OpenAPI: `allowReserved`).
    Reserved,
    /// All stay.
    AsTheyAre,
}

impl Characters {
    fn write(self, out: &mut String, text: &str) {
        match self {
            Self::Encoded => out.extend(utf8_percent_encode(text, STRICT)),
            Self::Reserved => out.extend(utf8_percent_encode(text, RESERVED)),
            Self::AsTheyAre => out.push_str(text),
        }
    }

    fn write_value(self, out: &mut String, value: &Value) {
        self.write(out, &bare(value));
    }

    /// Writes a value; the items of a list, and the members of an object, with a separator between
    /// them. `pair` stands between a member's name and its value.
    fn write_joined(self, out: &mut String, value: &Value, separator: &str, pair: &str) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push_str(separator);
                    }
                    self.write_value(out, item);
                }
            }
            Value::Object(fields) => {
                for (index, (name, item)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push_str(separator);
                    }
                    self.write(out, name);
                    out.push_str(pair);
                    self.write_value(out, item);
                }
            }
            scalar => self.write_value(out, scalar),
        }
    }
}

/// A path parameter: appends the text that replaces `{name}`, percent-encoded.
pub(crate) fn path(out: &mut String, name: &str, value: &Value, style: Style, explode: bool) {
    let encoded = Characters::Encoded;
    match style {
        Style::Label => {
            let (separator, pair) = if explode { (".", "=") } else { (",", ",") };
            out.push('.');
            encoded.write_joined(out, value, separator, pair);
        }
        Style::Matrix => match value {
            Value::Array(items) if explode => {
                for item in items {
                    matrix(out, name, |out| encoded.write_value(out, item));
                }
            }
            Value::Object(fields) if explode => {
                for (key, item) in fields {
                    matrix(out, key, |out| encoded.write_value(out, item));
                }
            }
            Value::Null => matrix_name(out, name),
            Value::String(text) if text.is_empty() => matrix_name(out, name),
            other => matrix(out, name, |out| encoded.write_joined(out, other, ",", ",")),
        },
        _ => encoded.write_joined(out, value, ",", if explode { "=" } else { "," }),
    }
}

fn matrix_name(out: &mut String, name: &str) {
    out.push(';');
    Characters::Encoded.write(out, name);
}

fn matrix(out: &mut String, name: &str, value: impl FnOnce(&mut String)) {
    matrix_name(out, name);
    out.push('=');
    value(out);
}

/// A header: RFC 9110 list syntax, not percent-encoded (OpenAPI: simple style).
pub(crate) fn header(value: &Value, explode: bool) -> String {
    let mut out = String::new();
    let pair = if explode { "=" } else { "," };
    Characters::AsTheyAre.write_joined(&mut out, value, ",", pair);
    out
}

/// The form of reserved characters (RFC 3986 §2.2) in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservedCharacters {
    /// They are percent-encoded.
    Encoded,
    /// They stay (OpenAPI: `allowReserved`).
    Kept,
}

/// A query parameter: one or more `name=value` pairs, appended to `query` with `&`.
pub(crate) fn query(
    query: &mut String,
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    reserved: ReservedCharacters,
) {
    let characters = match reserved {
        ReservedCharacters::Kept => Characters::Reserved,
        ReservedCharacters::Encoded => Characters::Encoded,
    };
    let joined = |query: &mut String, separator: &str| {
        push_name(query, name);
        characters.write_joined(query, value, separator, separator);
    };
    match (style, value) {
        (Style::DeepObject, Value::Object(_) | Value::Array(_)) => {
            deep(query, name, value, characters);
        }
        (Style::SpaceDelimited, Value::Array(_) | Value::Object(_)) if !explode => {
            joined(query, "%20");
        }
        (Style::PipeDelimited, Value::Array(_) | Value::Object(_)) if !explode => {
            joined(query, "%7C");
        }
        (_, Value::Array(items)) if explode => {
            for item in items {
                push_name(query, name);
                characters.write_value(query, item);
            }
        }
        (_, Value::Object(fields)) if explode => {
            for (key, item) in fields {
                push_name(query, key);
                characters.write_value(query, item);
            }
        }
        _ => joined(query, ","),
    }
}

/// A cookie pair; form style without the ampersand, which no cookie has (OpenAPI 3.1.1 §4.8.12,
/// appendix D).
pub(crate) fn cookie(name: &str, value: &Value, explode: bool) -> String {
    match value {
        Value::Array(items) if explode => items
            .iter()
            .map(|item| format!("{name}={}", encode(&bare(item))))
            .collect::<Vec<_>>()
            .join("; "),
        Value::Object(fields) if explode => fields
            .iter()
            .map(|(key, item)| format!("{}={}", encode(key), encode(&bare(item))))
            .collect::<Vec<_>>()
            .join("; "),
        other => {
            let mut out = format!("{name}=");
            Characters::Encoded.write_joined(&mut out, other, ",", ",");
            out
        }
    }
}

pub(crate) fn push(query: &mut String, encoded_name: &str, encoded_value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(encoded_name);
    query.push('=');
    query.push_str(encoded_value);
}

/// Appends the name of a pair and the equals sign. Its value follows.
fn push_name(query: &mut String, name: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    Characters::Encoded.write(query, name);
    query.push('=');
}

/// `filter[a][b]=1`. Lists of scalars repeat `name[]`, as Rails, PHP and Stripe read them; lists of
/// objects are numbered.
fn deep(query: &mut String, prefix: &str, value: &Value, characters: Characters) {
    match value {
        Value::Object(fields) => {
            for (key, item) in fields {
                deep(query, &format!("{prefix}[{key}]"), item, characters);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let nested = item.is_object() || item.is_array();
                let name = if nested {
                    format!("{prefix}[{index}]")
                } else {
                    format!("{prefix}[]")
                };
                deep(query, &name, item, characters);
            }
        }
        scalar => {
            push_name(query, prefix);
            characters.write_value(query, scalar);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn q(style: Style, explode: bool, value: &Value) -> String {
        let mut out = String::new();
        query(
            &mut out,
            "color",
            value,
            style,
            explode,
            ReservedCharacters::Encoded,
        );
        out
    }

    /// The table "Style Examples" of OpenAPI 3.1.1, row by row.
    #[test]
    fn the_style_table_of_openapi_holds() {
        let (empty, string) = (json!(""), json!("blue"));
        let array = json!(["blue", "black", "brown"]);
        let object = json!({"R": 100, "G": 200, "B": 150});
        let p = |style, explode, value: &Value| {
            let mut out = String::new();
            path(&mut out, "color", value, style, explode);
            out
        };

        assert_eq!(p(Style::Matrix, false, &empty), ";color");
        assert_eq!(p(Style::Matrix, false, &string), ";color=blue");
        assert_eq!(p(Style::Matrix, false, &array), ";color=blue,black,brown");
        assert_eq!(p(Style::Matrix, false, &object), ";color=R,100,G,200,B,150");
        assert_eq!(
            p(Style::Matrix, true, &array),
            ";color=blue;color=black;color=brown"
        );
        assert_eq!(p(Style::Matrix, true, &object), ";R=100;G=200;B=150");

        assert_eq!(p(Style::Label, false, &empty), ".");
        assert_eq!(p(Style::Label, false, &string), ".blue");
        assert_eq!(p(Style::Label, false, &array), ".blue,black,brown");
        assert_eq!(p(Style::Label, false, &object), ".R,100,G,200,B,150");
        assert_eq!(p(Style::Label, true, &array), ".blue.black.brown");
        assert_eq!(p(Style::Label, true, &object), ".R=100.G=200.B=150");

        assert_eq!(p(Style::Simple, false, &string), "blue");
        assert_eq!(p(Style::Simple, false, &array), "blue,black,brown");
        assert_eq!(p(Style::Simple, false, &object), "R,100,G,200,B,150");
        assert_eq!(p(Style::Simple, true, &array), "blue,black,brown");
        assert_eq!(p(Style::Simple, true, &object), "R=100,G=200,B=150");

        assert_eq!(q(Style::Form, false, &empty), "color=");
        assert_eq!(q(Style::Form, false, &string), "color=blue");
        assert_eq!(q(Style::Form, false, &array), "color=blue,black,brown");
        assert_eq!(q(Style::Form, false, &object), "color=R,100,G,200,B,150");
        assert_eq!(
            q(Style::Form, true, &array),
            "color=blue&color=black&color=brown"
        );
        assert_eq!(q(Style::Form, true, &object), "R=100&G=200&B=150");

        assert_eq!(
            q(Style::SpaceDelimited, false, &array),
            "color=blue%20black%20brown"
        );
        assert_eq!(
            q(Style::SpaceDelimited, false, &object),
            "color=R%20100%20G%20200%20B%20150"
        );
        assert_eq!(
            q(Style::PipeDelimited, false, &array),
            "color=blue%7Cblack%7Cbrown"
        );
        assert_eq!(
            q(Style::PipeDelimited, false, &object),
            "color=R%7C100%7CG%7C200%7CB%7C150"
        );
        assert_eq!(
            q(Style::DeepObject, true, &object),
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"
        );

        assert_eq!(header(&array, false), "blue,black,brown");
        assert_eq!(header(&object, true), "R=100,G=200,B=150");
        assert_eq!(cookie("color", &array, false), "color=blue,black,brown");
    }

    #[test]
    fn values_cannot_leave_their_place() {
        let mut out = "/".to_owned();
        path(&mut out, "id", &json!("../a/b?c#d"), Style::Simple, false);
        assert_eq!(out, "/..%2Fa%2Fb%3Fc%23d");
        assert_eq!(
            q(Style::Form, true, &json!("a&b=c d+é")),
            "color=a%26b%3Dc%20d%2B%C3%A9"
        );
        let mut out = String::new();
        query(
            &mut out,
            "u",
            &json!("https://x/y?a=b&c#d"),
            Style::Form,
            true,
            ReservedCharacters::Kept,
        );
        assert_eq!(out, "u=https://x/y?a=b%26c%23d");
    }

    #[test]
    fn deep_objects_nest() {
        assert_eq!(
            q(
                Style::DeepObject,
                true,
                &json!({"a": {"b": [1, 2]}, "c": [{"d": true}]})
            ),
            "color%5Ba%5D%5Bb%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%5B%5D=2&color%5Bc%5D%5B0%5D%5Bd%5D=true"
        );
    }
}
