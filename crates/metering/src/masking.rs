//! JSON without secrets and personal data (CAPTURE-4).
//!
//! JSON is read token by token, so that a text that was cut is masked too. Strings that hold JSON
//! are read in the same way.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::detectors::{Hides, MASK, is_card, masked, name_of, without_data};

/// Bytes at the end of a cut text that are read and not kept: a secret that the cut halves has no
/// form any more.
pub const GUARD: usize = 16 * 1024;

/// How deep JSON may stand inside strings.
const DEPTH: u32 = 4;

/// Whether the end of a text is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is all there.
    Whole,
    /// It goes on.
    Cut,
}

/// A text without what the detectors find, and the number of places.
pub fn without_secrets(text: &str, end: End) -> (String, u32) {
    let mut found = 0;
    let text = of_text(text, end, 0, &mut found).into_owned();
    (text, found)
}

fn of_text<'t>(text: &'t str, end: End, depth: u32, found: &mut u32) -> Cow<'t, str> {
    if depth < DEPTH
        && matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['))
        && (end == End::Cut || serde_json::from_str::<IgnoredAny>(text).is_ok())
    {
        let mut places = 0;
        let mut masker = JsonMasker {
            rest: text,
            end,
            depth,
            found: &mut places,
            out: String::with_capacity(text.len()),
            above: Vec::new(),
            named: None,
            is_label: false,
        };
        if masker.read().is_some() {
            let out = masker.out;
            *found += places;
            return Cow::Owned(out);
        }
    }
    let words = without_data(text, found);
    let keep = match end {
        End::Whole => words.len(),
        End::Cut => words.len().saturating_sub(GUARD),
    };
    match words {
        Cow::Borrowed(words) => masked(words, keep, found),
        Cow::Owned(words) => Cow::Owned(masked(&words, keep, found).into_owned()),
    }
}

/// Reads JSON and writes it again.
struct JsonMasker<'t, 'n> {
    rest: &'t str,
    end: End,
    depth: u32,
    found: &'n mut u32,
    out: String,
    /// One for each open object and array.
    above: Vec<Enclosing>,
    /// The meaning of the name before the next value.
    named: Option<Hides>,
    /// The next value may name the value beside it.
    is_label: bool,
}

/// An open object or array.
struct Enclosing {
    /// The meaning of the names above for the values here.
    hides: Option<Hides>,
    /// The meaning of a member such as `name` for the member `value` beside it.
    label: Option<Hides>,
}

impl JsonMasker<'_, '_> {
    /// `None`: it is no JSON.
    fn read(&mut self) -> Option<()> {
        while let Some(first) = self.rest.as_bytes().first() {
            match first {
                b'"' => self.string(),
                b'{' | b'[' => {
                    let hides = self.hides();
                    self.above.push(Enclosing { hides, label: None });
                    self.begin_value();
                    self.copy(1);
                }
                b'}' | b']' => {
                    self.above.pop();
                    self.begin_value();
                    self.copy(1);
                }
                b',' => {
                    self.begin_value();
                    self.copy(1);
                }
                b':' | b' ' | b'\t' | b'\r' | b'\n' => self.copy(1),
                _ => self.word()?,
            }
        }
        Some(())
    }

    fn hides(&self) -> Option<Hides> {
        self.named
            .or_else(|| self.above.last().and_then(|level| level.hides))
    }

    fn begin_value(&mut self) {
        self.named = None;
        self.is_label = false;
    }

    /// Notes the meaning of a name for the next value.
    fn name(&mut self, name: &str) {
        let is = |words: &[&str]| words.iter().any(|word| name.eq_ignore_ascii_case(word));
        self.named = name_of(name);
        if self.named.is_none() && is(&["value", "content"]) {
            self.named = self.above.last().and_then(|level| level.label);
        }
        self.is_label = is(&["name", "key", "header", "field"]);
    }

    fn copy(&mut self, length: usize) {
        let (token, rest) = self.rest.split_at(length);
        self.out.push_str(token);
        self.rest = rest;
    }

    /// A number or a literal; `None` for anything else.
    fn word(&mut self) -> Option<()> {
        let length = self
            .rest
            .find(|sign: char| {
                matches!(sign, '"' | '{' | '}' | '[' | ']' | ',' | ':') || sign.is_whitespace()
            })
            .unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(length);
        let is_last = rest.is_empty() && self.end == End::Cut;
        let is_number = token.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit());
        if !is_number && !matches!(token, "true" | "false" | "null") && !is_last {
            return None;
        }
        self.rest = rest;
        if is_last {
            // The rest of a number is missing.
            return Some(());
        }
        if is_number && (self.hides() == Some(Hides::Everything) || is_card(token)) {
            *self.found += 1;
            self.out.push_str(&Value::from(MASK).to_string());
        } else {
            self.out.push_str(token);
        }
        Some(())
    }

    fn string(&mut self) {
        let (token, rest) = self.rest.split_at(length_of_string(self.rest));
        self.rest = rest;
        let is_whole = token.len() > 1 && is_closed(token);
        let end = if is_whole { End::Whole } else { self.end };
        let inside = token
            .get(1..token.len() - usize::from(is_whole))
            .unwrap_or_default();
        let text = decoded(inside);
        if rest.trim_start().starts_with(':') {
            self.name(&text);
            self.write(token, is_whole, &text, end);
            return;
        }
        if self.is_label
            && let Some(level) = self.above.last_mut()
        {
            level.label = name_of(&text);
        }
        if self.hides().is_some() && !text.is_empty() {
            *self.found += 1;
            self.out.push_str(&Value::from(MASK).to_string());
            return;
        }
        self.write(token, is_whole, &text, end);
    }

    /// Writes a string without what the detectors find; as it came if they find nothing.
    fn write(&mut self, token: &str, is_whole: bool, text: &str, end: End) {
        let before = *self.found;
        let plain = of_text(text, end, self.depth + 1, self.found);
        if *self.found == before && is_whole {
            self.out.push_str(token);
        } else {
            self.out
                .push_str(&Value::from(plain.into_owned()).to_string());
        }
    }
}

/// The text of the inside of a string. Escapes that stand for no text stay as they are written.
fn decoded(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    // An escape at the end of a cut string may be halved.
    let shorter = (0..=12).filter_map(|less| inside.get(..inside.len().checked_sub(less)?));
    for part in shorter {
        if let Ok(text) = serde_json::from_str::<String>(&format!("\"{part}\"")) {
            return Cow::Owned(text);
        }
    }
    Cow::Borrowed(inside)
}

/// Whether a string ends with its quotation mark, and not with an escaped one.
fn is_closed(token: &str) -> bool {
    let Some(inside) = token.strip_suffix('"') else {
        return false;
    };
    let escapes = inside
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'\\')
        .count();
    escapes % 2 == 0
}

/// Bytes of the string that JSON begins with, its quotation marks included.
fn length_of_string(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
