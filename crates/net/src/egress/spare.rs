//! The copy of a request for a second try or a redirect.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Copy of a request's headers and body. The headers are written one after the other, in two
/// allocations; the clone of a map takes two, and one more for each value and each name that is not
/// a standard one. Few requests need their copy.
pub(super) struct Spare {
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The body.
    pub(super) body: Bytes,
}

/// Bytes of one header in the text: its name, and its value right after.
struct Line {
    name: usize,
    value: usize,
    is_sensitive: bool,
}

impl Spare {
    pub(super) fn of(headers: &HeaderMap, body: &Bytes) -> Self {
        let lengths = headers.iter().map(|(name, value)| {
            let name = name.as_str().len();
            name + value.len()
        });
        let mut text = Vec::with_capacity(lengths.sum());
        let mut lines = Vec::with_capacity(headers.len());
        for (name, value) in headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(value.as_bytes());
            lines.push(Line {
                name: name.as_str().len(),
                value: value.len(),
                is_sensitive: value.is_sensitive(),
            });
        }
        Self {
            text,
            lines,
            body: body.clone(),
        }
    }

    /// The headers again, in their order.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.lines.len());
        let mut at = 0;
        let mut next = |length| {
            let part = self.text.get(at..at + length).unwrap_or_default();
            at += length;
            part
        };
        for line in &self.lines {
            let (name, value) = (next(line.name), next(line.value));
            // Both were read from a map of headers: neither conversion fails.
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
            {
                value.set_sensitive(line.is_sensitive);
                headers.append(name, value);
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_gives_the_same_headers_and_the_same_body() {
        let mut headers = HeaderMap::new();
        let mut secret = HeaderValue::from_static("Bearer abc");
        secret.set_sensitive(true);
        headers.insert("authorization", secret);
        headers.append("x-own-name", HeaderValue::from_static("one: 1"));
        headers.append("accept", HeaderValue::from_static(""));
        headers.append(
            "x-own-name",
            HeaderValue::from_bytes(b"\xffzw\tei ").unwrap(),
        );
        let spare = Spare::of(&headers, &Bytes::from("body"));
        let again = spare.headers();
        let lines = |headers: &HeaderMap| -> Vec<(String, Vec<u8>, bool)> {
            let lines = headers.iter();
            lines
                .map(|(name, value)| {
                    let bytes = value.as_bytes().to_vec();
                    (name.to_string(), bytes, value.is_sensitive())
                })
                .collect()
        };
        assert_eq!(lines(&again), lines(&headers));
        assert_eq!(lines(&again).len(), 4);
        assert_eq!(spare.body, "body");
        let empty = Spare::of(&HeaderMap::new(), &Bytes::new());
        assert!(empty.headers().is_empty());
    }
}
