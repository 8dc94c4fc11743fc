//! YAML to a JSON value, event by event: the depth is known before a level is entered, and the work
//! can end between any two characters.
//!
//! Plain scalars are resolved by the YAML 1.2 core schema. Tags are dropped, except those of that
//! schema.

use std::{collections::HashMap, str::Chars};

use saphyr_parser::{BufferedInput, Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};

use super::text::{Budget, MAX_DEPTH, Refused, TOO_DEEP};
use crate::effort;

/// Characters between two steps.
const A_STEP: usize = 64;

/// Why a text is not YAML, or more than can be imported.
#[derive(Debug)]
pub(super) struct YamlFault {
    pub(super) message: String,
    /// Counted from one.
    pub(super) line: Option<usize>,
    /// Counted from one.
    pub(super) column: Option<usize>,
}

impl YamlFault {
    fn at(marker: Marker, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            line: Some(marker.line()),
            column: Some(marker.col() + 1),
        }
    }
}

impl From<Refused> for YamlFault {
    fn from(refused: Refused) -> Self {
        Self {
            message: refused.0.to_owned(),
            line: None,
            column: None,
        }
    }
}

impl From<ScanError> for YamlFault {
    fn from(error: ScanError) -> Self {
        let message = match error.info() {
            // The parser has a bound of its own, which is above ours and counts brackets ahead.
            "recursion limit exceeded" => TOO_DEEP,
            info => info,
        };
        Self::at(*error.marker(), message)
    }
}

/// Reads a text with one YAML document.
///
/// # Errors
/// The text is not YAML, has more than one document, or more levels or values than can be imported.
pub(super) fn parse(text: &str, budget: &Budget) -> Result<Value, YamlFault> {
    refuse_control_characters(text)?;
    let mut reader = YamlReader {
        parser: Parser::new_from_iter(Counted {
            chars: text.chars(),
            read: 0,
        }),
        budget,
        anchors: HashMap::new(),
        mark: Marker::default(),
    };
    reader.document()
}

/// The parser takes NUL for the end of the text; YAML 1.2 section 5.1 allows no control character.
fn refuse_control_characters(text: &str) -> Result<(), YamlFault> {
    let (mut line, mut column) = (1, 1);
    for (at, c) in text.chars().enumerate() {
        if at.is_multiple_of(A_STEP) {
            effort::spend(1);
        }
        if c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}') {
            return Err(YamlFault {
                message: "control characters are not allowed".to_owned(),
                line: Some(line),
                column: Some(column),
            });
        }
        if c == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    Ok(())
}

/// Characters of the text. Every sixty-fourth character counts as a step of the work.
struct Counted<'t> {
    chars: Chars<'t>,
    read: usize,
}

impl Iterator for Counted<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        self.read += 1;
        if self.read.is_multiple_of(A_STEP) {
            effort::spend(1);
        }
        self.chars.next()
    }
}

struct YamlReader<'t, 'b> {
    parser: Parser<'t, BufferedInput<Counted<'t>>>,
    budget: &'b Budget,
    anchors: HashMap<usize, Value>,
    /// Where the last event stands.
    mark: Marker,
}

impl<'t> YamlReader<'t, '_> {
    fn next(&mut self) -> Result<Event<'t>, YamlFault> {
        match self.parser.next() {
            Some(event) => {
                let (event, span) = event?;
                self.mark = span.start;
                Ok(event)
            }
            None => Err(self.fault("it ends too early")),
        }
    }

    fn fault(&self, message: &str) -> YamlFault {
        YamlFault::at(self.mark, message)
    }

    fn document(&mut self) -> Result<Value, YamlFault> {
        let mut found = None;
        loop {
            match self.next()? {
                Event::DocumentStart(_) if found.is_some() => {
                    return Err(self.fault("it has more than one document"));
                }
                Event::DocumentStart(_) => {
                    let event = self.next()?;
                    found = Some(self.value(event, 0)?);
                }
                Event::StreamEnd => return found.ok_or_else(|| self.fault("it has no content")),
                _ => {}
            }
        }
    }

    /// The value that begins with `event`, inside of `depth` lists and objects.
    fn value(&mut self, event: Event<'t>, depth: usize) -> Result<Value, YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.budget.spend(text.len())?;
                let value = scalar(text.into_owned(), style, tag.as_deref());
                self.keep(anchor, value)
            }
            Event::SequenceStart(anchor, _) => {
                self.enter(depth)?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break,
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
                self.keep(anchor, Value::Array(items))
            }
            Event::MappingStart(anchor, _) => {
                self.enter(depth)?;
                let mut object = Map::new();
                loop {
                    match self.next()? {
                        Event::MappingEnd => break,
                        event => {
                            let key = self.value(event, depth + 1)?;
                            let key = self.key(key)?;
                            let event = self.next()?;
                            object.insert(key, self.value(event, depth + 1)?);
                        }
                    }
                }
                self.keep(anchor, Value::Object(merged(object)))
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return Err(self.fault("an alias stands inside of what it names"));
                };
                copied(value, self.budget, depth)
            }
            _ => Err(self.fault("a value is missing")),
        }
    }

    fn enter(&self, depth: usize) -> Result<(), YamlFault> {
        self.budget.spend(0)?;
        if depth >= MAX_DEPTH {
            return Err(self.fault(TOO_DEEP));
        }
        Ok(())
    }

    /// Remembers a value for the aliases of its anchor; zero is no anchor.
    fn keep(&mut self, anchor: usize, value: Value) -> Result<Value, YamlFault> {
        if anchor != 0 {
            let copy = copied(&value, self.budget, 0)?;
            self.anchors.insert(anchor, copy);
        }
        Ok(value)
    }

    /// YAML keys may be numbers or booleans: `200:` in responses.
    fn key(&self, key: Value) -> Result<String, YamlFault> {
        match key {
            Value::String(key) => Ok(key),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Null => Ok("null".to_owned()),
            Value::Array(_) | Value::Object(_) => {
                Err(self.fault("a key must be text, not a list or an object"))
            }
        }
    }
}

/// A copy of a value at `depth`, which costs like the value itself: aliases multiply values.
fn copied(value: &Value, budget: &Budget, depth: usize) -> Result<Value, YamlFault> {
    if depth > MAX_DEPTH {
        return Err(Refused(TOO_DEEP).into());
    }
    match value {
        Value::String(text) => {
            budget.spend(text.len())?;
            Ok(value.clone())
        }
        Value::Array(items) => {
            budget.spend(0)?;
            let items = items.iter().map(|item| copied(item, budget, depth + 1));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Value::Object(members) => {
            budget.spend(0)?;
            let mut copy = Map::new();
            for (name, member) in members {
                budget.spend(name.len())?;
                copy.insert(name.clone(), copied(member, budget, depth + 1)?);
            }
            Ok(Value::Object(copy))
        }
        _ => {
            budget.spend(0)?;
            Ok(value.clone())
        }
    }
}

/// Merge keys (`<<: *base`): members of the object itself win.
fn merged(mut object: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(base)) = object.remove("<<") {
        for (key, value) in base {
            object.entry(key).or_insert(value);
        }
    }
    object
}

fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let core = tag.filter(|tag| tag.is_yaml_core_schema());
    let is_plain = match core {
        Some(tag) => tag.suffix != "str",
        None => style == ScalarStyle::Plain && tag.is_none_or(|tag| tag.suffix != "!"),
    };
    if is_plain && let Some(value) = resolved(&text) {
        return value;
    }
    Value::String(text)
}

/// Value of a plain scalar; `None` for a text.
fn resolved(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        // JSON has no number for them.
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Some(Value::Null),
        _ => {}
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    // A word, a second sign: no number.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = digits.strip_prefix(prefix) {
            return whole(sign, rest, radix);
        }
    }
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && digits.len() > 1 && digits.starts_with('0') {
        // An identifier with leading zeros.
        return None;
    }
    if is_whole && let Some(number) = whole(sign, digits, 10) {
        return Some(number);
    }
    let float: f64 = digits.parse().ok()?;
    let float = if sign.is_empty() { float } else { -float };
    Number::from_f64(float).map(Value::Number)
}

/// An integer; a text beyond 64 bits, so that no digit is lost.
fn whole(sign: &str, digits: &str, radix: u32) -> Option<Value> {
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    let number = if sign.is_empty() { number } else { -number };
    Some(match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => Value::from(number),
        (_, Ok(number)) => Value::from(number),
        _ => Value::String(number.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, YamlFault> {
        parse(text, &Budget::new())
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let text = "[~, null, true, False, 0, -7, +7, 0x1F, 0o17, 007, 1.5, -1e3, .5, 1_000, yes, on, \
                    .inf, 18446744073709551615, 340282366920938463463374607431768, 12:30, 1.2.3, -, '1']";
        let expected = json!([
            null,
            null,
            true,
            false,
            0,
            -7,
            7,
            31,
            15,
            "007",
            1.5,
            -1000.0,
            0.5,
            "1_000",
            "yes",
            "on",
            null,
            18_446_744_073_709_551_615_u64,
            "340282366920938463463374607431768",
            "12:30",
            "1.2.3",
            "-",
            "1"
        ]);
        let read = read(&text.replace(" -,", " \"-\",")).unwrap();
        assert_eq!(read, expected);
    }

    #[test]
    fn tags_anchors_and_merge_keys() {
        let text =
            "base: &b {a: 1, b: 2}\nmore: {<<: *b, b: 3}\nid: !!str 12\nown: !custom x\n200: *b\n";
        let expected = json!({
            "base": {"a": 1, "b": 2}, "more": {"b": 3, "a": 1}, "id": "12", "own": "x",
            "200": {"a": 1, "b": 2},
        });
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn faults_have_their_place_and_nothing_is_cut_off_silently() {
        let fault = read("a: 1\nb: [1, 2\nc: }").unwrap_err();
        assert!(fault.line.is_some() && fault.column.is_some(), "{fault:?}");
        assert_eq!(read("a: 1\nb: x\0y: 2").unwrap_err().line, Some(2));
        assert!(read("a: 1\n---\nb: 2\n").is_err(), "two documents");
        assert!(read("# nothing\n").is_err());
        assert!(read("&a [*a]").is_err(), "an alias of itself");
        assert!(read("*a").is_err());
    }

    /// Finding REVIEW-S-1: the work ends at a character, not at a value or document.
    #[test]
    fn s1_reading_can_end_inside_of_one_scalar_and_between_brackets() {
        use std::time::{Duration, Instant};

        use crate::effort::{Bounds, GivenUp, within};

        let inputs = [
            format!("\"{}\"", "word ".repeat(200_000)),
            format!("a: |\n{}", "  text\n".repeat(200_000)),
            format!("[{}]", "a: b, ".repeat(200_000)),
            format!("[{}", "? ".repeat(500_000)),
            " ".repeat(1_000_000),
            "# comment\n".repeat(100_000),
        ];
        for text in inputs {
            // A tenth of the characters: the rest is not read.
            let bounds = Bounds {
                steps: text.len() / A_STEP / 10,
                until: Instant::now() + Duration::from_secs(600),
                stop: None,
            };
            let ended = within(bounds, || read(&text).is_ok());
            assert_eq!(ended, Err(GivenUp::TooMuch), "{}", &text[..8]);
        }
    }
}
