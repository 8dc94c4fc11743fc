//! The forms of bodies over HTTP: accepted by a client, and sent by it (MCP-T-6, MCP-T-7). Values of
//! headers come as bytes, each line of a header by itself.

/// The forms of an answer that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// `application/json`
    pub json: bool,
    /// `text/event-stream`
    pub events: bool,
}

impl Accepted {
    /// Reads `Accept`. Without the header, every form is accepted.
    ///
    /// Quality 0 refuses a form; other qualities have no effect.
    pub fn read<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> Self {
        let mut accepted = Self {
            json: false,
            events: false,
        };
        let mut any = false;
        for line in lines {
            any = true;
            let Some(line) = text(line) else { continue };
            for item in line.split(',') {
                let mut parts = item.split(';').map(str::trim);
                let range = parts.next().unwrap_or_default();
                let refused = parts
                    .any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
                let is = |text: &str| range.eq_ignore_ascii_case(text);
                let all = is("*/*");
                if !refused {
                    accepted.json |= all || is("application/json") || is("application/*");
                    accepted.events |= all || is("text/event-stream") || is("text/*");
                }
            }
        }
        if any {
            accepted
        } else {
            Self {
                json: true,
                events: true,
            }
        }
    }

    /// True if the client accepts neither form.
    pub fn nothing(self) -> bool {
        !self.json && !self.events
    }
}

/// True if `Content-Type` is JSON; parameters are tolerated (MCP-T-6).
pub fn is_json<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> bool {
    let mut lines = lines.into_iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return false;
    };
    let media = text(line).and_then(|line| line.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// True if `Content-Encoding` names a content coding (RFC 9110 §8.4.1).
///
/// Bodies are not decompressed, so decompression bombs are impossible (TEST-B5).
pub fn is_packed<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> bool {
    let is_none = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    lines.into_iter().any(|line| {
        !text(line).is_some_and(|line| line.split(',').all(|coding| is_none(coding.trim())))
    })
}

/// The value of a header, if it has visible ASCII and white space alone.
fn text(value: &[u8]) -> Option<&str> {
    let is_visible = |byte: &u8| *byte == b'\t' || (0x20..0x7f).contains(byte);
    let text = std::str::from_utf8(value).ok()?;
    value.iter().all(is_visible).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<'v>(lines: &'v [&str]) -> impl Iterator<Item = &'v [u8]> {
        lines.iter().map(|line| line.as_bytes())
    }

    fn accepted(lines: &[&str]) -> (bool, bool) {
        let Accepted { json, events } = Accepted::read(bytes(lines));
        (json, events)
    }

    #[test]
    fn t_7_one_of_two_a_wildcard_or_nothing_is_enough() {
        assert_eq!(accepted(&[]), (true, true));
        assert_eq!(accepted(&["*/*"]), (true, true));
        assert_eq!(
            accepted(&["application/json, text/event-stream"]),
            (true, true)
        );
        assert_eq!(accepted(&["application/json;q=0.9"]), (true, false));
        assert_eq!(accepted(&["TEXT/Event-Stream"]), (false, true));
        assert_eq!(
            accepted(&["application/json", "text/event-stream"]),
            (true, true)
        );
        assert_eq!(accepted(&["text/html, */*;q=0.8"]), (true, true));
    }

    #[test]
    fn t_7_nothing_fits_when_neither_is_named() {
        assert_eq!(accepted(&["text/html"]), (false, false));
        assert_eq!(accepted(&["application/json;q=0"]), (false, false));
        assert!(Accepted::read(bytes(&["text/html"])).nothing());
    }

    #[test]
    fn t_6_json_with_parameters_is_json_and_nothing_else_is() {
        let is = |line: &str| is_json([line.as_bytes()]);
        assert!(is("application/json") && is("Application/JSON; charset=utf-8"));
        assert!(
            !is("text/plain")
                && !is("application/json-rpc")
                && !is("application/x-www-form-urlencoded")
                && !is("application/json; title=\u{e9}")
        );
        assert!(!is_json([]));
        assert!(!is_json(bytes(&["application/json", "application/json"])));
    }

    /// TEST-B5: every content coding except `identity` counts as packed.
    #[test]
    fn a_body_with_any_coding_is_packed_and_identity_is_none() {
        for plain in [&[][..], &[""], &["identity"], &["Identity", "identity, "]] {
            assert!(!is_packed(bytes(plain)), "{plain:?}");
        }
        for packed in [
            &["gzip"][..],
            &["br"],
            &["zstd"],
            &["deflate"],
            &["x-gzip"],
            &["gzip, gzip"],
            &["identity, gzip"],
            &["identity", "br"],
            &["unheard-of"],
        ] {
            assert!(is_packed(bytes(packed)), "{packed:?}");
        }
    }
}
