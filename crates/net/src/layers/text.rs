//! Control characters in what came in (REVIEW-S-6), found as the bytes pass by, whatever pieces
//! they come in.
//!
//! No field of ours means anything by U+0000 to U+001F or U+007F but tab, line feed and carriage
//! return, Postgres takes no U+0000 at all, and half of a surrogate pair is no character.
//! Everything else, marks of direction included, is text; a field that wants less says so itself.

/// How characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// A path: percent-encoded, and without line breaks.
    Path,
    /// A query or a form: percent-encoded.
    Form,
    /// JSON: `\u0000`.
    Json,
}

/// Looks at bytes one after the other.
#[derive(Debug)]
pub(super) struct TextReader {
    writing: Writing,
    at: At,
}

/// State after the previous bytes.
#[derive(Debug, Clone, Copy)]
enum At {
    /// Nothing that matters.
    Text,
    /// `%`, and the first digit.
    Percent(Option<u8>),
    /// `\`. True after the first half of a pair.
    Escape(bool),
    /// `\u`, the number of digits read, and their value. True after the first half of a pair.
    Unicode(u8, u16, bool),
    /// The first half of a surrogate pair, complete.
    HalfPair,
}

impl TextReader {
    pub(super) const fn new(writing: Writing) -> Self {
        Self {
            writing,
            at: At::Text,
        }
    }

    /// False if something in `bytes`, after all that came before, may not come in.
    pub(super) fn admits(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        match self.at {
            At::Text => match (self.writing, byte) {
                (Writing::Path | Writing::Form, b'%') => self.at = At::Percent(None),
                (Writing::Json, b'\\') => self.at = At::Escape(false),
                _ => return self.admits_character(byte.into()),
            },
            At::Percent(first) => match (hex(byte), first) {
                (Some(digit), None) => self.at = At::Percent(Some(digit)),
                (Some(digit), Some(first)) => {
                    self.at = At::Text;
                    return self.admits_character((first * 16 + digit).into());
                }
                // No escape: the backslash stands for itself, and this byte is checked anew.
                (None, _) => {
                    self.at = At::Text;
                    return self.step(byte);
                }
            },
            At::Escape(after_half) => match byte {
                b'u' => self.at = At::Unicode(0, 0, after_half),
                _ if after_half => return false,
                // `\b` and `\f` are U+0008 and U+000C.
                b'b' | b'f' => return false,
                _ => self.at = At::Text,
            },
            At::Unicode(digits, value, after_half) => {
                // Not JSON: its parser reports it.
                let Some(digit) = hex(byte) else {
                    self.at = At::Text;
                    return true;
                };
                let value = value * 16 + u16::from(digit);
                if digits < 3 {
                    self.at = At::Unicode(digits + 1, value, after_half);
                    return true;
                }
                self.at = At::Text;
                return match (value, after_half) {
                    (0xDC00..=0xDFFF, is_second) => is_second,
                    (_, true) => false,
                    (0xD800..=0xDBFF, false) => {
                        self.at = At::HalfPair;
                        true
                    }
                    (_, false) => self.admits_character(value),
                };
            }
            At::HalfPair => {
                if byte != b'\\' {
                    return false;
                }
                self.at = At::Escape(true);
            }
        }
        true
    }

    /// Bytes of characters beyond ASCII are none of the refused ones.
    fn admits_character(&self, character: u16) -> bool {
        match character {
            0x09 | 0x0A | 0x0D => self.writing != Writing::Path,
            _ => character >= 0x20 && character != 0x7F,
        }
    }
}

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole, and byte by byte.
    fn admits(writing: Writing, text: &str) -> bool {
        let whole = TextReader::new(writing).admits(text.as_bytes());
        let mut reader = TextReader::new(writing);
        let pieces = text.as_bytes().chunks(1).all(|byte| reader.admits(byte));
        assert_eq!(whole, pieces, "{text:?}");
        whole
    }

    #[test]
    fn s6_control_characters_are_found_however_they_are_written() {
        for (writing, text, is_admitted) in [
            (Writing::Path, "/t/a/b%20c/%C3%A4/%E2%80%AE", true),
            (Writing::Path, "/t/a%00", false),
            (Writing::Path, "/t/a%0a", false),
            (Writing::Path, "/t/100%/%zz/%7f", false),
            (Writing::Path, "/t/100%/%zz", true),
            (Writing::Path, "/t/%%00", false),
            (Writing::Form, "a=1%0D%0A%09&b=%E2%80%AE", true),
            (Writing::Form, "a=%00", false),
            (Writing::Form, "a=%1B[0m", false),
            (Writing::Form, "a=\0", false),
            (Writing::Form, "a=%2500", true),
            (Writing::Json, r#"{"a":"\u00e4\n\t\r\u202e\u0020"}"#, true),
            (Writing::Json, r#"{"a":"\u0000"}"#, false),
            (Writing::Json, r#"{"\u0000":1}"#, false),
            (Writing::Json, r#"{"a":"\\u0000"}"#, true),
            (Writing::Json, r#"{"a":"\\\u0000"}"#, false),
            (Writing::Json, r#"{"a":"\u001b"}"#, false),
            (Writing::Json, r#"{"a":"\b"}"#, false),
            (Writing::Json, r#"{"a":"\ud83d\ude00"}"#, true),
            (Writing::Json, r#"{"a":"\uD83D"}"#, false),
            (Writing::Json, r#"{"a":"\ude00"}"#, false),
            (Writing::Json, r#"{"a":"\ud83d\n"}"#, false),
            (Writing::Json, r#"{"a":"\ud83d\ud83d"}"#, false),
            (Writing::Json, r#"{"a":"\ud83d\u0041"}"#, false),
            (Writing::Json, "{\n\t\"a\": 1\r\n}", true),
            (Writing::Json, "{\"a\":\"\u{0}\"}", false),
        ] {
            assert_eq!(admits(writing, text), is_admitted, "{text:?}");
        }
    }
}
