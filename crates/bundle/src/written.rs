//! The YAML text of a bundle: block style, keys in the order of the types, texts of several lines
//! as literal blocks. Reading it gives the same bundle (CONF-4).

use serde::Serialize;
use serde_json::Value;

/// Writes a value as YAML.
///
/// # Errors
/// The value has no JSON form.
pub fn yaml(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    let mut text = String::new();
    write_block(&value, 0, &mut text);
    Ok(text)
}

fn indent(level: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", level));
}

/// Writes a list, an object or a scalar that begins a line.
fn write_block(value: &Value, level: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                indent(level, text);
                write_member(name, member, level, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(level, text);
                write_item(item, level, text);
            }
        }
        scalar => {
            indent(level, text);
            write_scalar(scalar, level, text);
            text.push('\n');
        }
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn write_member(name: &str, member: &Value, level: usize, text: &mut String) {
    text.push_str(&quoted_if_needed(name));
    text.push(':');
    if is_nested(member) {
        text.push('\n');
        write_block(member, level + 1, text);
    } else {
        text.push(' ');
        write_scalar(member, level, text);
        text.push('\n');
    }
}

fn write_item(item: &Value, level: usize, text: &mut String) {
    match item {
        Value::Object(members) if !members.is_empty() => {
            for (at, (name, member)) in members.iter().enumerate() {
                if at == 0 {
                    text.push_str("- ");
                } else {
                    indent(level + 1, text);
                }
                write_member(name, member, level + 1, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            text.push_str("-\n");
            write_block(item, level + 1, text);
        }
        scalar => {
            text.push_str("- ");
            write_scalar(scalar, level, text);
            text.push('\n');
        }
    }
}

fn write_scalar(value: &Value, level: usize, text: &mut String) {
    match value {
        Value::String(content) if is_literal(content) => {
            text.push_str(if content.ends_with('\n') { "|" } else { "|-" });
            for line in content.strip_suffix('\n').unwrap_or(content).split('\n') {
                text.push('\n');
                if !line.is_empty() {
                    indent(level + 1, text);
                    text.push_str(line);
                }
            }
        }
        Value::String(content) => text.push_str(&quoted_if_needed(content)),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
        other => text.push_str(&other.to_string()),
    }
}

/// Whether a text keeps every character as a literal block.
fn is_literal(content: &str) -> bool {
    let body = content.strip_suffix('\n').unwrap_or(content);
    let is_odd_line = |line: &str| {
        (line.trim().is_empty() && !line.is_empty()) || line.starts_with(['\t', '\u{feff}'])
    };
    body.contains('\n')
        && !body.starts_with([' ', '\n', '\t', '\u{feff}'])
        && !body.ends_with('\n')
        && !body
            .chars()
            .any(|c| is_escaped(c) && c != '\n' && c != '\t')
        && !body.split('\n').any(is_odd_line)
}

/// Characters that YAML or an editor takes for something else.
fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn quoted_if_needed(content: &str) -> String {
    if is_plain(content) {
        return content.to_owned();
    }
    let mut quoted = String::with_capacity(content.len() + 2);
    quoted.push('"');
    for c in content.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if is_escaped(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a text is a plain scalar of one line that no reader resolves to another type.
fn is_plain(content: &str) -> bool {
    /// Words that YAML 1.1 or 1.2 resolves.
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let begins = content.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_known = |c: char| c.is_ascii_alphanumeric() || " _./-:?=&%+@~{}".contains(c);
    begins
        && content.len() <= 200
        && content.chars().all(is_known)
        && !content.contains(": ")
        && !content.ends_with([':', ' '])
        && !WORDS.iter().any(|word| content.eq_ignore_ascii_case(word))
}
