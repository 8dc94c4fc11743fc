//! One member of a JSON file is set, and the rest of its text stays: comments, trailing commas and
//! order, as editors allow them in their settings.

use serde_json::{Map, Value};

/// Deepest nesting that is followed.
const DEEPEST: usize = 64;

/// Sets `section.name` in `text`. Gives the new text, and whether the member is new.
///
/// # Errors
/// Why the text cannot be changed.
pub(super) fn set(
    text: &str,
    section: &str,
    name: &str,
    value: &Value,
) -> Result<(String, bool), &'static str> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.trim().is_empty() {
        let whole = serde_json::json!({ section: { name: value } });
        return Ok((pretty(&whole, "") + "\n", true));
    }
    let before = read(body).ok_or("it is no JSON object")?;
    let mut wanted = before.as_object().cloned().ok_or("it is no JSON object")?;
    let servers = wanted
        .entry(section)
        .or_insert_with(|| Value::Object(Map::new()));
    let servers = servers
        .as_object_mut()
        .ok_or("its list of servers is no object")?;
    let known = servers.insert(name.to_owned(), value.clone());
    if known.as_ref() == Some(value) {
        return Ok((text.to_owned(), false));
    }
    let after = edit(body, section, name, value).ok_or("its text has an unusual form")?;
    // The new text says what was meant, and nothing else changed.
    if read(&after).as_ref() != Some(&Value::Object(wanted)) {
        return Err("its text has an unusual form");
    }
    let mark = &text[..text.len() - body.len()];
    Ok((format!("{mark}{after}"), known.is_none()))
}

fn edit(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let scan = Scan(text.as_bytes());
    let root = scan.object(scan.gap(0)?)?;
    let Some(servers) = root.member(section) else {
        let inner = format!("{{\n{{}}{}: {}\n{{}}}}", quoted(name), "{}");
        let indent = scan.indent(&root);
        let deeper = format!("{indent}{}", scan.step(&root));
        let value = pretty(value, &deeper);
        let inner = inner
            .replacen("{}", &deeper, 1)
            .replacen("{}", &value, 1)
            .replacen("{}", &indent, 1);
        return Some(scan.added(&root, &format!("{}: {inner}", quoted(section))));
    };
    let list = scan.object(servers.value.0)?;
    let indent = scan.indent(&list);
    let value = pretty(value, &indent);
    match list.member(name) {
        Some(known) => Some(format!(
            "{}{value}{}",
            &text[..known.value.0],
            &text[known.value.1..]
        )),
        None => Some(scan.added(&list, &format!("{}: {value}", quoted(name)))),
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// With two spaces a level, the first line where it stands.
fn pretty(value: &Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{indent}"))
}

struct JsonMember {
    key: String,
    key_at: usize,
    /// From, and behind.
    value: (usize, usize),
}

struct JsonObject {
    /// Place of the opening brace.
    open: usize,
    /// Place of the closing one.
    close: usize,
    members: Vec<JsonMember>,
    has_last_comma: bool,
}

impl JsonObject {
    /// The last one of the name: that is the one that counts.
    fn member(&self, key: &str) -> Option<&JsonMember> {
        self.members.iter().rev().find(|member| member.key == key)
    }
}

/// JSON with comments and trailing commas.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    /// Behind white space and comments.
    fn gap(&self, mut at: usize) -> Option<usize> {
        loop {
            match (self.0.get(at), self.0.get(at + 1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => at += 1,
                (Some(b'/'), Some(b'/')) => {
                    let end = self.0[at..].iter().position(|byte| *byte == b'\n');
                    at = end.map_or(self.0.len(), |end| at + end);
                }
                (Some(b'/'), Some(b'*')) => {
                    let end = self.0[at + 2..].windows(2).position(|two| two == b"*/");
                    at += end? + 4;
                }
                _ => return Some(at),
            }
        }
    }

    /// Behind a string that begins at `at`.
    fn string(&self, at: usize) -> Option<usize> {
        let mut end = at + 1;
        loop {
            match self.0.get(end)? {
                b'\\' => end += 2,
                b'"' => return Some(end + 1),
                _ => end += 1,
            }
        }
    }

    /// Behind a value that begins at `at`.
    fn value(&self, at: usize, depth: usize) -> Option<usize> {
        match self.0.get(at)? {
            _ if depth > DEEPEST => None,
            b'"' => self.string(at),
            b'{' => Some(self.object_at(at, depth)?.close + 1),
            b'[' => {
                let mut at = self.gap(at + 1)?;
                while *self.0.get(at)? != b']' {
                    at = self.gap(self.value(at, depth + 1)?)?;
                    if *self.0.get(at)? == b',' {
                        at = self.gap(at + 1)?;
                    }
                }
                Some(at + 1)
            }
            _ => {
                let is_end = |byte: &u8| {
                    matches!(byte, b',' | b'}' | b']' | b'/') || byte.is_ascii_whitespace()
                };
                let length = self.0[at..].iter().position(is_end);
                let end = length.map_or(self.0.len(), |length| at + length);
                (end > at).then_some(end)
            }
        }
    }

    fn object(&self, at: usize) -> Option<JsonObject> {
        self.object_at(at, 0)
    }

    fn object_at(&self, open: usize, depth: usize) -> Option<JsonObject> {
        if *self.0.get(open)? != b'{' {
            return None;
        }
        let (mut members, mut has_last_comma) = (Vec::new(), false);
        let mut at = self.gap(open + 1)?;
        while *self.0.get(at)? != b'}' {
            if *self.0.get(at)? != b'"' {
                return None;
            }
            let (key_at, key_end) = (at, self.string(at)?);
            let key = serde_json::from_slice(&self.0[key_at..key_end]).ok()?;
            at = self.gap(key_end)?;
            if *self.0.get(at)? != b':' {
                return None;
            }
            let from = self.gap(at + 1)?;
            let behind = self.value(from, depth + 1)?;
            members.push(JsonMember {
                key,
                key_at,
                value: (from, behind),
            });
            at = self.gap(behind)?;
            has_last_comma = *self.0.get(at)? == b',';
            if has_last_comma {
                at = self.gap(at + 1)?;
            }
        }
        Some(JsonObject {
            open,
            close: at,
            members,
            has_last_comma,
        })
    }

    /// The white space before `at` on its line, if nothing else is there.
    fn margin(&self, at: usize) -> Option<String> {
        let line = self.0[..at].iter().rposition(|byte| *byte == b'\n');
        let before = &self.0[line.map_or(0, |line| line + 1)..at];
        let is_blank = before.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        is_blank.then(|| String::from_utf8_lossy(before).into_owned())
    }

    /// The indentation of the line on which `at` stands.
    fn line_indent(&self, at: usize) -> String {
        let line = self.0[..at].iter().rposition(|byte| *byte == b'\n');
        let from = line.map_or(0, |line| line + 1);
        let blank = self.0[from..at].iter();
        let blank = blank.take_while(|byte| matches!(byte, b' ' | b'\t'));
        blank.map(|byte| char::from(*byte)).collect()
    }

    /// One more level, as the object has it.
    fn step(&self, object: &JsonObject) -> String {
        let own = self.line_indent(object.open);
        let inner = object
            .members
            .first()
            .and_then(|first| self.margin(first.key_at));
        let more = inner.and_then(|inner| inner.strip_prefix(&own).map(str::to_owned));
        more.filter(|more| !more.is_empty())
            .unwrap_or_else(|| "  ".to_owned())
    }

    /// The indentation of the object's members.
    fn indent(&self, object: &JsonObject) -> String {
        let first = object.members.first();
        let inner = first.and_then(|first| self.margin(first.key_at));
        inner.unwrap_or_else(|| self.line_indent(object.open) + &self.step(object))
    }

    /// The whole text with one more member at the end of the object.
    fn added(&self, object: &JsonObject, member: &str) -> String {
        let text = |from: usize, to: usize| String::from_utf8_lossy(&self.0[from..to]).into_owned();
        let last = object.members.last().map(|last| last.value.1);
        // Behind the last thing in the object, comments included.
        let mut end = object.close;
        while end > object.open + 1 && self.0[end - 1].is_ascii_whitespace() {
            end -= 1;
        }
        let (indent, outer) = (self.indent(object), self.line_indent(object.open));
        let mut out = match last {
            Some(last) if !object.has_last_comma => text(0, last) + "," + &text(last, end),
            _ => text(0, end),
        };
        out.push_str(&format!("\n{indent}{member}"));
        if object.has_last_comma {
            out.push(',');
        }
        out.push_str(&format!("\n{outer}"));
        out + &text(object.close, self.0.len())
    }
}

/// Reads JSON with comments and trailing commas.
fn read(text: &str) -> Option<Value> {
    let scan = Scan(text.as_bytes());
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let next = scan.gap(at)?;
        if next > at {
            plain.push(b' ');
            at = next;
            continue;
        }
        match scan.0[at] {
            b'"' => {
                let end = scan.string(at)?;
                plain.extend_from_slice(scan.0.get(at..end)?);
                at = end;
            }
            b',' => {
                let behind = scan.gap(at + 1)?;
                if !matches!(scan.0.get(behind), Some(b'}' | b']')) {
                    plain.push(b',');
                }
                at += 1;
            }
            other => {
                plain.push(other);
                at += 1;
            }
        }
    }
    serde_json::from_slice(&plain).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(text: &str) -> String {
        set(
            text,
            "mcpServers",
            "new",
            &json!({"command": "p", "args": ["a"]}),
        )
        .unwrap()
        .0
    }

    const ENTRY: &str =
        "\"new\": {\n      \"command\": \"p\",\n      \"args\": [\n        \"a\"\n      ]\n    }";

    #[test]
    fn a_server_is_added_and_every_other_byte_stays() {
        let before = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \
                      \"old\": {\"command\": \"x\"} // keep\n  },\n  \"z\": 1e2\n}\n";
        let after = before.replace(
            "{\"command\": \"x\"} // keep",
            &format!("{{\"command\": \"x\"}}, // keep\n    {ENTRY}"),
        );
        assert_eq!(with(before), after);
    }

    #[test]
    fn trailing_commas_tabs_and_empty_objects_are_kept() {
        let after = with("{\n\t\"mcpServers\": {\n\t\t\"old\": {},\n\t},\n}");
        assert!(after.starts_with(
            "{\n\t\"mcpServers\": {\n\t\t\"old\": {},\n\t\t\"new\": {\n\t\t  \"command\""
        ));
        assert!(after.ends_with("\t\t},\n\t},\n}"), "{after}");
        assert_eq!(
            with("{\n  \"mcpServers\": {}\n}"),
            format!("{{\n  \"mcpServers\": {{\n    {ENTRY}\n  }}\n}}")
        );
        for text in [
            "",
            " \n",
            "{}",
            "{ /* c */ }",
            "{\"a\": [1, 2,],}",
            "\u{feff}{}",
        ] {
            let after = with(text);
            let read = read(after.trim_start_matches('\u{feff}')).unwrap();
            assert_eq!(read["mcpServers"]["new"]["command"], "p", "{after}");
            assert_eq!(after.contains("/* c */"), text.contains("/* c */"));
        }
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let before = [
            r#"{"mcpServers": {"a": 1, "new": {"command": "old", "x": "}//"}, "#,
            r#""b": "/*"}, "s": "//"}"#,
        ];
        let before = before.concat();
        let before = before.as_str();
        let after = with(before);
        assert!(
            after.starts_with(r#"{"mcpServers": {"a": 1, "new": {"#),
            "{after}"
        );
        assert!(after.ends_with(r#", "b": "/*"}, "s": "//"}"#), "{after}");
        assert_eq!(with(&after), after, "the second time nothing changes");
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for text in [
            "[]",
            "7",
            "{",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": {\"a\": }}",
            "{'a': 1}",
        ] {
            assert!(
                set(text, "mcpServers", "new", &json!({})).is_err(),
                "{text}"
            );
        }
    }
}
