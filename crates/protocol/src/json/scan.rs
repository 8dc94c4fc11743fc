//! JSON as text: one validating pass without recursion, and walks over text that has passed it.
//!
//! `serde_json` builds or skips values. It does not count depth as MCP-J-19 requires, and it
//! accepts text in a raw value that it later refuses to parse. Every later parse accepts a text
//! that passes here, except for numbers beyond the range of a double. RFC 8259 allows them, so they
//! pass unchanged; a reader that needs such a value gets a misfit.

use std::borrow::Cow;
use std::ops::Range;

/// Why a text is not an acceptable JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// Not JSON (RFC 8259), or bytes that are not UTF-8.
    Syntax,
    /// JSON whose text holds half of a surrogate pair, which no string of ours can hold (RFC 8259
    /// §8.2).
    LoneSurrogate,
    /// Nested deeper than the limit (MCP-J-19).
    TooDeep,
}

/// The deepest nesting of MCP-J-19.
pub(crate) const MAX_DEPTH: u32 = 64;
/// The deepest nesting that [`validate_list`] takes.
const LIST_DEPTH: u32 = 512;

/// Checks that `text` is exactly one JSON value, nested at most [`MAX_DEPTH`] deep. Uses no stack
/// by depth.
pub(crate) fn validate(text: &[u8]) -> Result<(), ScanError> {
    scan(text, MAX_DEPTH, false)
}

/// Validates a list whose entries are checked separately later. Deeper nesting and lone surrogates
/// are allowed here.
pub(crate) fn validate_list(text: &[u8]) -> Result<(), ScanError> {
    scan(text, LIST_DEPTH, true)
}

fn scan(text: &[u8], deepest: u32, lone_surrogates: bool) -> Result<(), ScanError> {
    if std::str::from_utf8(text).is_err() {
        return Err(ScanError::Syntax);
    }
    let mut scanner = Scanner {
        text,
        at: 0,
        deepest,
        lone_surrogates,
    };
    scanner.value()?;
    scanner.space();
    if scanner.at == text.len() {
        Ok(())
    } else {
        Err(ScanError::Syntax)
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    deepest: u32,
    /// They pass.
    lone_surrogates: bool,
}

/// Open containers: one bit per level, 1 = object, 0 = array.
struct Open([u64; (LIST_DEPTH / 64) as usize]);

impl Open {
    /// Level `depth`, from 1, is opened.
    fn push(&mut self, depth: u32, object: bool) {
        let (word, bit) = Self::place(depth);
        if let Some(word) = self.0.get_mut(word) {
            *word = (*word & !(1 << bit)) | (u64::from(object) << bit);
        }
    }

    fn is_object(&self, depth: u32) -> bool {
        let (word, bit) = Self::place(depth);
        self.0.get(word).is_some_and(|word| (word >> bit) & 1 == 1)
    }

    const fn place(depth: u32) -> (usize, u32) {
        let level = depth.saturating_sub(1);
        ((level / 64) as usize, level % 64)
    }
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<(), ScanError> {
        let mut open_levels = Open([0; (LIST_DEPTH / 64) as usize]);
        let mut depth: u32 = 0;
        loop {
            self.space();
            match self.peek().ok_or(ScanError::Syntax)? {
                open @ (b'{' | b'[') => {
                    let object = open == b'{';
                    depth += 1;
                    if depth > self.deepest {
                        return Err(ScanError::TooDeep);
                    }
                    open_levels.push(depth, object);
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(if object { b'}' } else { b']' }) {
                        self.at += 1;
                        depth -= 1;
                    } else {
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => return Err(ScanError::Syntax),
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                self.space();
                let object = open_levels.is_object(depth);
                match (self.peek(), object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        depth -= 1;
                    }
                    _ => return Err(ScanError::Syntax),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), ScanError> {
        self.space();
        self.string()?;
        self.space();
        if self.peek() == Some(b':') {
            self.at += 1;
            Ok(())
        } else {
            Err(ScanError::Syntax)
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(())
        } else {
            Err(ScanError::Syntax)
        }
    }

    fn string(&mut self) -> Result<(), ScanError> {
        if self.peek() != Some(b'"') {
            return Err(ScanError::Syntax);
        }
        self.at += 1;
        loop {
            self.at += run(&self.text[self.at..], |word| {
                equal(word, b'"') | equal(word, b'\\') | control(word)
            });
            match self.peek().ok_or(ScanError::Syntax)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..=0x1f => return Err(ScanError::Syntax),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        self.at += 1;
        match self.peek().ok_or(ScanError::Syntax)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 1;
                Ok(())
            }
            b'u' => {
                self.at += 1;
                match self.hex4()? {
                    0xd800..=0xdfff if self.lone_surrogates => Ok(()),
                    0xd800..=0xdbff => {
                        self.word(b"\\u").map_err(|_| ScanError::LoneSurrogate)?;
                        match self.hex4()? {
                            0xdc00..=0xdfff => Ok(()),
                            _ => Err(ScanError::LoneSurrogate),
                        }
                    }
                    0xdc00..=0xdfff => Err(ScanError::LoneSurrogate),
                    _ => Ok(()),
                }
            }
            _ => Err(ScanError::Syntax),
        }
    }

    fn hex4(&mut self) -> Result<u32, ScanError> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .ok_or(ScanError::Syntax)?;
        let mut value = 0;
        for digit in digits {
            value = value * 16 + char::from(*digit).to_digit(16).ok_or(ScanError::Syntax)?;
        }
        self.at += 4;
        Ok(value)
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(ScanError::Syntax)
        }
    }

    fn number(&mut self) -> Result<(), ScanError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

/// Eight bytes of 1.
const ONES: u64 = u64::MAX / 0xff;
/// The highest bit of each of eight bytes.
const HIGHEST: u64 = ONES * 0x80;

/// Number of bytes of `text` before the first marked byte. The text is read in words of eight bytes;
/// the last bytes that fill no word are not counted. `marks` returns a word in which the highest bit
/// of each marked byte is set. Only the first mark must be right.
fn run(text: &[u8], marks: impl Fn(u64) -> u64) -> usize {
    let (words, _) = text.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let marked = marks(u64::from_le_bytes(*word));
        if marked != 0 {
            return at + (marked.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

/// Marks the bytes that are `byte`. A subtraction borrows from the next byte only at a mark, so the
/// first mark is right.
const fn equal(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * byte as u64);
    zero.wrapping_sub(ONES) & !zero & HIGHEST
}

/// Marks the bytes below the space, which no JSON string holds. The first mark is right.
const fn control(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGHEST
}

/// The text of a validated JSON string, without a copy if it has no escapes; `None` for other
/// kinds.
pub(crate) fn string(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice(json).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// A member name inside a validated text, still in its JSON spelling (quotes excluded).
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    spelling: &'a [u8],
    has_escapes: bool,
}

impl<'a> Key<'a> {
    /// The name, with escapes resolved.
    pub(crate) fn text(self) -> Cow<'a, str> {
        let plain = std::str::from_utf8(self.spelling).unwrap_or_default();
        if self.has_escapes {
            serde_json::from_str(&format!("\"{plain}\"")).map_or(Cow::Borrowed(plain), Cow::Owned)
        } else {
            Cow::Borrowed(plain)
        }
    }

    /// True if the name is `name`, in any spelling.
    pub(crate) fn is(self, name: &str) -> bool {
        if self.has_escapes {
            self.text() == name
        } else {
            self.spelling == name.as_bytes()
        }
    }
}

/// The members of a validated object text: name and range of the value within the text.
pub(crate) struct ScannedMembers<'a>(Walk<'a>);

/// The elements of a validated array text: range of each value within the text.
pub(crate) struct Elements<'a>(Walk<'a>);

/// Walks the members of `text`, which [`validate`] has accepted. Nothing if it is not an object.
pub(crate) fn members(text: &[u8]) -> ScannedMembers<'_> {
    ScannedMembers(Walk::begin(text, b'{'))
}

/// Walks the elements of `text`, which [`validate`] has accepted. Nothing if it is not an array.
pub(crate) fn elements(text: &[u8]) -> Elements<'_> {
    Elements(Walk::begin(text, b'['))
}

impl<'a> Iterator for ScannedMembers<'a> {
    type Item = (Key<'a>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let walk = &mut self.0;
        walk.separator()?;
        let start = walk.at;
        let has_escapes = walk.skip_string();
        let spelling = walk.text.get(start + 1..walk.at.checked_sub(1)?)?;
        walk.separator()?;
        let key = Key {
            spelling,
            has_escapes,
        };
        Some((key, walk.skip_value()))
    }
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.separator()?;
        Some(self.0.skip_value())
    }
}

/// A place in a validated text. Skipped values are not checked again.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn begin(text: &'a [u8], open: u8) -> Self {
        let at = text
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())
            .unwrap_or(text.len());
        if text.get(at) == Some(&open) {
            Self { text, at: at + 1 }
        } else {
            Self {
                text,
                at: text.len(),
            }
        }
    }

    /// Moves to the next key or value; `None` at the end of the object or array.
    fn separator(&mut self) -> Option<()> {
        loop {
            match self.text.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => self.at += 1,
                b'}' | b']' => return None,
                _ => return Some(()),
            }
        }
    }

    /// Moves behind the string; true if it has escapes.
    fn skip_string(&mut self) -> bool {
        self.at += 1;
        let mut has_escapes = false;
        while let Some(rest) = self.text.get(self.at..) {
            self.at += run(rest, |word| equal(word, b'"') | equal(word, b'\\'));
            match self.text.get(self.at) {
                None => break,
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
        has_escapes
    }

    fn skip_value(&mut self) -> Range<usize> {
        let start = self.at;
        let mut depth = 0_u32;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    self.skip_string();
                    if depth == 0 {
                        break;
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    if depth == 0 {
                        break;
                    }
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
                b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => break,
                _ => self.at += 1,
            }
        }
        start..self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_passes_is_text_that_serde_json_accepts() {
        for good in [
            "null",
            " true ",
            "-0",
            "1.5e3",
            "\"\\ud83d\\ude00\"",
            "[]",
            "{}",
            "[1,[2,{\"a\":[]}],\"x\"]",
            "{\"a\":{\"b\":null},\"c\":[{},{}]}",
            "18446744073709551616",
        ] {
            assert_eq!(validate(good.as_bytes()), Ok(()), "{good}");
            assert!(
                serde_json::from_str::<serde_json::Value>(good).is_ok(),
                "{good}"
            );
        }
        for bad in [
            "",
            "nul",
            "+1",
            "01",
            "1.",
            ".5",
            "1e",
            "NaN",
            "\"\\x\"",
            "\"a",
            "[1,]",
            "{,}",
            "{\"a\"}",
            "{\"a\":1,}",
            "[1 2]",
            "[}",
            "{]",
            "1 2",
            "\u{feff}1",
            "\"\u{1}\"",
            "{1:2}",
        ] {
            assert_eq!(validate(bad.as_bytes()), Err(ScanError::Syntax), "{bad}");
        }
        assert_eq!(validate(b"\"\xff\""), Err(ScanError::Syntax));
        for half in [
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83dx\"",
            "\"\\ud83d\\u0041\"",
        ] {
            let refused = Err(ScanError::LoneSurrogate);
            assert_eq!(validate(half.as_bytes()), refused, "{half}");
            assert_eq!(validate_list(half.as_bytes()), Ok(()), "{half}");
        }
    }

    #[test]
    fn f6_a_number_beyond_the_range_of_a_double_is_json_all_the_same() {
        for number in ["1e400", "-1E+999", &"9".repeat(400), "[1e999,2]"] {
            assert_eq!(validate(number.as_bytes()), Ok(()), "{number}");
        }
    }

    #[test]
    fn f6_a_list_is_read_though_an_entry_is_nested_too_deep() {
        let nested = |open: &str, close: &str, depth: usize| {
            format!("{}1{}", open.repeat(depth), close.repeat(depth))
        };
        for depth in [64, 65, 200, 512] {
            for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
                let depth = depth / open.matches(['[', '{']).count();
                let text = nested(open, close, depth);
                assert_eq!(validate_list(text.as_bytes()), Ok(()), "{depth} {open}");
            }
        }
        let deeper = nested("[", "]", 513);
        assert_eq!(validate_list(deeper.as_bytes()), Err(ScanError::TooDeep));
        let wrong = format!("{}1{}", "[{\"a\":".repeat(40), "]}".repeat(40));
        assert_eq!(validate_list(wrong.as_bytes()), Err(ScanError::Syntax));
    }

    #[test]
    fn depth_64_passes_and_depth_65_does_not_j19() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(validate(nested(64).as_bytes()), Ok(()));
        assert_eq!(validate(nested(65).as_bytes()), Err(ScanError::TooDeep));
        assert_eq!(
            validate("[".repeat(1_000_000).as_bytes()),
            Err(ScanError::TooDeep)
        );
    }

    #[test]
    fn each_byte_of_a_string_is_judged_at_each_place() {
        for place in 0..20 {
            for byte in 0..=0x7f_u8 {
                let mut text = vec![b'a'; 20];
                text[place] = byte;
                let text = [b"\"", text.as_slice(), b"\""].concat();
                let is_sound = byte >= 0x20 && byte != b'"' && byte != b'\\';
                // The letter after the backslash is no escape.
                assert_eq!(validate(&text).is_ok(), is_sound, "{byte:#x} at {place}");
                assert_eq!(
                    serde_json::from_slice::<String>(&text).is_ok(),
                    is_sound,
                    "{byte:#x} at {place}"
                );
            }
        }
    }

    #[test]
    fn a_string_is_skipped_up_to_its_end_wherever_it_lies() {
        for before in 0..10 {
            for after in 0..10 {
                for middle in ["", "\\\"", "\\\\", "\u{e9}\\n\u{1f600}", "{[]}:,"] {
                    let string = format!(
                        "\"{}{middle}{}\"",
                        "x".repeat(before),
                        "\u{e9}".repeat(after)
                    );
                    let text = format!("{{{string}:[{string}],\"z\":{string}}}");
                    assert_eq!(validate(text.as_bytes()), Ok(()), "{text}");
                    let seen: Vec<_> = members(text.as_bytes())
                        .map(|(key, range)| (key.text().into_owned(), &text[range]))
                        .collect();
                    let name: String = serde_json::from_str(&string).expect("sound");
                    let list = format!("[{string}]");
                    assert_eq!(
                        seen,
                        [(name, list.as_str()), ("z".to_owned(), string.as_str())]
                    );
                }
            }
        }
    }

    #[test]
    fn members_and_elements_are_walked_with_escaped_names_resolved() {
        let text = br#" { "a" : [1, {"b": "}]"}] , "n\u0061me":"x\"y","z":-1.5e3 } "#;
        let seen: Vec<(String, &str)> = members(text)
            .map(|(key, range)| {
                (
                    key.text().into_owned(),
                    std::str::from_utf8(&text[range]).expect("sound"),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a".to_owned(), r#"[1, {"b": "}]"}]"#),
                ("name".to_owned(), r#""x\"y""#),
                ("z".to_owned(), "-1.5e3"),
            ]
        );
        assert!(members(text).nth(1).expect("sound").0.is("name"));
        let list = b"[ 1 ,\"a,b\", [2,3] ,{} ]";
        let seen: Vec<&[u8]> = elements(list).map(|range| &list[range]).collect();
        assert_eq!(seen, [b"1".as_slice(), b"\"a,b\"", b"[2,3]", b"{}"]);
        assert_eq!(
            members(b"[]").count() + elements(b"{}").count() + members(b"{}").count(),
            0
        );
    }
}
