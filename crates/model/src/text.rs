//! Texts of strangers that people and models read: what shows nothing, or shows it in another order
//! than it is read, does not belong in them (REVIEW-S-6).

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Returns whether a character is invisible: controls but tab and line ends, and marks that
/// override the direction of text (UAX #9).
pub const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// The text without them.
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.contains(is_hidden) {
        Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Takes them out of every string and every name of a JSON value. False if there were none.
pub fn clean(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let is_clean = !text.contains(is_hidden);
            text.retain(|c| !is_hidden(c));
            !is_clean
        }
        Value::Array(list) => list
            .iter_mut()
            .fold(false, |any, element| clean(element) | any),
        Value::Object(object) => {
            let mut any = object
                .values_mut()
                .fold(false, |any, value| clean(value) | any);
            if object.keys().any(|name| name.contains(is_hidden)) {
                any = true;
                let renamed: Map<String, Value> = std::mem::take(object)
                    .into_iter()
                    .map(|(name, value)| (shown(&name).into_owned(), value))
                    .collect();
                *object = renamed;
            }
            any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn s_6_what_nobody_sees_is_taken_out_and_the_rest_stays() {
        assert_eq!(shown("a\0b\u{202e}c\u{2066}\u{85}\td\r\ne"), "abc\td\r\ne");
        for kept in ["Grüße", "שלום\u{200f}", "👩\u{200d}🚀", "a\tb\n"] {
            assert!(matches!(shown(kept), Cow::Borrowed(_)), "{kept}");
        }
        let mut value = json!({"a\0": ["x\u{7}", 1, {"b": "y"}], "z": null});
        assert!(clean(&mut value));
        assert_eq!(value, json!({"a": ["x", 1, {"b": "y"}], "z": null}));
        assert!(!clean(&mut value));
    }
}
