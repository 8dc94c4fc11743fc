//! Definitions of a server as text: cleaned, freed of parts, and compared, without ever becoming a
//! tree that writes numbers and orders members in its own way (MCP-J-10).

use portolan_model::text::is_hidden;
use portolan_protocol::{
    jsonrpc::{Kind, Raw},
    result::write_string,
};

/// Returns the value with invisible characters removed from its strings and names (REVIEW-S-6).
/// `None` if it has none.
pub(crate) fn cleaned(raw: &Raw) -> Option<Raw> {
    let mut rest = raw.as_str();
    let (mut out, mut within, mut any) = (String::with_capacity(rest.len()), false, false);
    while let Some(first) = rest.chars().next() {
        let escaped = || rest.get(1..2).unwrap_or_default();
        let (taken, hidden) = match first {
            '"' => {
                within = !within;
                (1, false)
            }
            // Outside strings there are none.
            _ if !within => (first.len_utf8(), false),
            '\\' if escaped() == "u" => {
                let code = rest
                    .get(2..6)
                    .and_then(|code| u32::from_str_radix(code, 16).ok());
                let sign = code.and_then(char::from_u32);
                (6, sign.is_some_and(is_hidden))
            }
            '\\' => (2, matches!(escaped(), "b" | "f")),
            sign => (sign.len_utf8(), is_hidden(sign)),
        };
        let (piece, after) = rest.split_at(taken.min(rest.len()));
        if hidden {
            any = true;
        } else {
            out.push_str(piece);
        }
        rest = after;
    }
    any.then(|| Raw::parse(out).ok()).flatten()
}

/// The value without the members at these JSON pointers.
pub(crate) fn without(raw: &Raw, pointers: &[String]) -> Raw {
    if pointers.is_empty() {
        return raw.clone();
    }
    let mut out = Vec::with_capacity(raw.as_bytes().len());
    copy(raw, pointers, &mut String::new(), &mut out);
    Raw::parse(out).unwrap_or_else(|_| raw.clone())
}

/// Depth is that of what was parsed: 64 at most (MCP-J-19).
fn copy(raw: &Raw, pointers: &[String], at: &mut String, out: &mut Vec<u8>) {
    let is_above = |at: &str| pointers.iter().any(|pointer| pointer.starts_with(at));
    if !is_above(at) {
        out.extend_from_slice(raw.as_bytes());
        return;
    }
    let length = at.len();
    let mut is_first = true;
    let mut separate = |out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
    };
    match raw.kind() {
        Kind::Object => {
            out.push(b'{');
            for (name, value) in raw.members() {
                at.push('/');
                at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                if !pointers.contains(at) {
                    separate(out);
                    write_string(&name, out);
                    out.push(b':');
                    copy(&value, pointers, at, out);
                }
                at.truncate(length);
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for (index, value) in raw.elements().enumerate() {
                at.push_str(&format!("/{index}"));
                separate(out);
                copy(&value, pointers, at, out);
                at.truncate(length);
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(raw.as_bytes()),
    }
}

/// The value in a form that two texts share when they mean the same: members sorted by name, of
/// equal names the last, numbers as they are written.
pub fn canonical(raw: &Raw, out: &mut Vec<u8>) {
    match raw.kind() {
        Kind::Object => {
            let members: std::collections::BTreeMap<String, Raw> = raw.members().collect();
            out.push(b'{');
            for (name, value) in &members {
                write_string(name, out);
                out.push(b':');
                canonical(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for value in raw.elements() {
                canonical(&value, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Kind::String => match raw.string() {
            Some(text) => write_string(&text, out),
            None => out.extend_from_slice(raw.as_bytes()),
        },
        _ => out.extend_from_slice(raw.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn s_6_hidden_characters_go_and_nothing_else_changes() {
        let text =
            r#"{"z":1.0,"a":"x\u0000y\b\u202eZ\u00e9\ud83d\ude00\n\\u0000\"","n\u0007":[1e2]}"#;
        let clean = cleaned(&raw(text)).unwrap();
        assert_eq!(
            clean.as_str(),
            r#"{"z":1.0,"a":"xyZ\u00e9\ud83d\ude00\n\\u0000\"","n":[1e2]}"#
        );
        assert!(cleaned(&clean).is_none());
        assert_eq!(cleaned(&raw("\"a\u{2067}b\"")).unwrap().as_str(), "\"ab\"");
    }

    #[test]
    fn h_17_a_member_is_taken_out_and_the_text_around_it_stays() {
        let text =
            r#"{"b":{"p/q":{"x":1,"y":2},"z":1e5}, "a":[{"x":1},{"x":123456789012345678901}]}"#;
        let without = |pointers: &[&str]| {
            let pointers: Vec<String> = pointers.iter().map(|one| (*one).to_owned()).collect();
            without(&raw(text), &pointers).as_str().to_owned()
        };
        assert_eq!(
            without(&["/b/p~1q/x", "/a/0/x"]),
            r#"{"b":{"p/q":{"y":2},"z":1e5},"a":[{},{"x":123456789012345678901}]}"#
        );
        assert_eq!(without(&[]), text);
    }

    #[test]
    fn q8_the_order_of_members_makes_no_difference_and_every_digit_does() {
        let canonical = |text: &str| {
            let mut out = Vec::new();
            canonical(&raw(text), &mut out);
            out
        };
        assert_eq!(
            canonical(r#"{"a":1,"b":["x",{"d":2,"c":3}]}"#),
            canonical(r#"{ "b": ["\u0078",{"c":3,"d":2}], "a":1 }"#)
        );
        assert_ne!(
            canonical("1000000000000000000000000000001"),
            canonical("1000000000000000000000000000002")
        );
        assert_ne!(canonical(r#"["a"]"#), canonical(r#"["a",1]"#));
    }
}
