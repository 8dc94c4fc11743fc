//! Values as text in the styles of OpenAPI 3 (OpenAPI 3.1.1 §4.8.12, "Style Examples").

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
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, STRICT).to_string()
}

/// A value as bare text: strings as they are, null as nothing, nested lists and objects as JSON.
pub fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn joined(value: &Value, separator: &str, pair: &str, enc: impl Fn(&str) -> String) -> String {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| enc(&bare(item)))
            .collect::<Vec<_>>()
            .join(separator),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, item)| format!("{}{pair}{}", enc(name), enc(&bare(item))))
            .collect::<Vec<_>>()
            .join(separator),
        scalar => enc(&bare(scalar)),
    }
}

/// A path parameter: the text that replaces `{name}`, percent-encoded.
pub(crate) fn path(name: &str, value: &Value, style: Style, explode: bool) -> String {
    match style {
        Style::Label => {
            let (separator, pair) = if explode { (".", "=") } else { (",", ",") };
            format!(".{}", joined(value, separator, pair, encode))
        }
        Style::Matrix => match value {
            Value::Array(items) if explode => items
                .iter()
                .map(|item| format!(";{}={}", encode(name), encode(&bare(item))))
                .collect(),
            Value::Object(fields) if explode => fields
                .iter()
                .map(|(key, item)| format!(";{}={}", encode(key), encode(&bare(item))))
                .collect(),
            Value::Null => format!(";{}", encode(name)),
            Value::String(text) if text.is_empty() => format!(";{}", encode(name)),
            other => format!(";{}={}", encode(name), joined(other, ",", ",", encode)),
        },
        _ => joined(value, ",", if explode { "=" } else { "," }, encode),
    }
}

/// A header: RFC 9110 list syntax, not percent-encoded (OpenAPI: simple style).
pub(crate) fn header(value: &Value, explode: bool) -> String {
    joined(value, ",", if explode { "=" } else { "," }, str::to_owned)
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
    let enc = |text: &str| match reserved {
        ReservedCharacters::Kept => utf8_percent_encode(text, RESERVED).to_string(),
        ReservedCharacters::Encoded => encode(text),
    };
    match (style, value) {
        (Style::DeepObject, Value::Object(_) | Value::Array(_)) => deep(query, name, value, &enc),
        (Style::SpaceDelimited, Value::Array(_) | Value::Object(_)) if !explode => {
            push(query, &encode(name), &joined(value, "%20", "%20", enc));
        }
        (Style::PipeDelimited, Value::Array(_) | Value::Object(_)) if !explode => {
            push(query, &encode(name), &joined(value, "%7C", "%7C", enc));
        }
        (_, Value::Array(items)) if explode => {
            for item in items {
                push(query, &encode(name), &enc(&bare(item)));
            }
        }
        (_, Value::Object(fields)) if explode => {
            for (key, item) in fields {
                push(query, &encode(key), &enc(&bare(item)));
            }
        }
        _ => push(query, &encode(name), &joined(value, ",", ",", enc)),
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
        other => format!("{name}={}", joined(other, ",", ",", encode)),
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

/// `filter[a][b]=1`. Lists of scalars repeat `name[]`, as Rails, PHP and Stripe read them; lists of
/// objects are numbered.
fn deep(query: &mut String, prefix: &str, value: &Value, enc: &impl Fn(&str) -> String) {
    match value {
        Value::Object(fields) => {
            for (key, item) in fields {
                deep(query, &format!("{prefix}[{key}]"), item, enc);
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
                deep(query, &name, item, enc);
            }
        }
        scalar => push(query, &encode(prefix), &enc(&bare(scalar))),
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
        let p = |style, explode, value: &Value| path("color", value, style, explode);

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
        assert_eq!(
            path("id", &json!("../a/b?c#d"), Style::Simple, false),
            "..%2Fa%2Fb%3Fc%23d"
        );
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
