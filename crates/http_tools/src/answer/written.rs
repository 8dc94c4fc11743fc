//! An answer as JSON. Written by hand: JSON within a string has an escape every few characters,
//! and an answer has little else.

use serde_json::value::RawValue;

use super::{Content, Structured, ToolAnswer};

/// What follows the backslash in a string (RFC 8259 §7); 0 for what stands for itself, `u` for the
/// long form.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escapes[byte] = b'u';
        byte += 1;
    }
    escapes[0x08] = b'b';
    escapes[b'\t' as usize] = b't';
    escapes[b'\n' as usize] = b'n';
    escapes[0x0c] = b'f';
    escapes[b'\r' as usize] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

impl ToolAnswer {
    /// Appends the members of a `CallToolResult`, without the braces around them. There is at least
    /// one.
    pub fn write_members(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#""content":["#);
        for (n, block) in self.content.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            block.write(out);
        }
        out.push(b']');
        if let Some(structured) = self.structured_text() {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(structured.as_bytes());
        }
        if self.is_error {
            out.extend_from_slice(br#","isError":true"#);
        }
    }

    /// `structuredContent`, if there is one.
    pub fn structured(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.structured_text()?.to_owned()).ok()
    }

    fn structured_text(&self) -> Option<&str> {
        match (self.structured, self.content.first()) {
            (Structured::Text, Some(Content::Text(text))) => Some(text),
            (Structured::Empty, _) => Some("{}"),
            _ => None,
        }
    }

    /// A guess at the bytes of the members, so that their buffer grows at most once.
    pub fn size_hint(&self) -> usize {
        let content = self.content.iter().map(|block| match block {
            // Quotes of JSON in a string are escaped.
            Content::Text(text) => text.len() + text.len() / 4 + 32,
            Content::Image { data, .. }
            | Content::Audio { data, .. }
            | Content::Blob { data, .. } => data.len() + 128,
        });
        content.sum::<usize>() + self.structured_text().map_or(0, str::len) + 64
    }
}

impl Content {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                out.extend_from_slice(br#"{"type":"text","text":"#);
                write_string(text, out);
                out.push(b'}');
            }
            Self::Image { mime, data } => {
                write_media(br#"{"type":"image","data":"#, mime, data, out)
            }
            Self::Audio { mime, data } => {
                write_media(br#"{"type":"audio","data":"#, mime, data, out)
            }
            Self::Blob { uri, mime, data } => {
                out.extend_from_slice(br#"{"type":"resource","resource":{"uri":"#);
                write_string(uri, out);
                out.extend_from_slice(br#","mimeType":"#);
                write_string(mime, out);
                out.extend_from_slice(br#","blob":"#);
                write_string(data, out);
                out.extend_from_slice(b"}}");
            }
        }
    }
}

fn write_media(head: &[u8], mime: &str, data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    write_string(data, out);
    out.extend_from_slice(br#","mimeType":"#);
    write_string(mime, out);
    out.push(b'}');
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 4 + 2);
    out.push(b'"');
    for &byte in text.as_bytes() {
        match ESCAPES[usize::from(byte)] {
            0 => out.push(byte),
            b'u' => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            short => out.extend_from_slice(&[b'\\', short]),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_string_is_written_as_serde_json_writes_it(text in "[\\x00-\\x7f]{0,40}|\\PC{0,20}") {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            prop_assert_eq!(out, serde_json::to_vec(&text).unwrap());
        }
    }
}
