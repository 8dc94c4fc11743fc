//! Negotiation of content: the forms that the client accepts, and the bodies that are read
//! (MCP-T-6, MCP-T-7).

use http::{HeaderMap, header};

use crate::error::McpError;

/// The forms of an answer that the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// `application/json`
    pub(crate) json: bool,
    /// `text/event-stream`
    pub(crate) events: bool,
}

impl Accepted {
    /// Reads `Accept`. Without the header, every form is accepted.
    ///
    /// Quality 0 refuses a form; other qualities have no effect.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut accepted = Self {
            json: false,
            events: false,
        };
        let mut any = false;
        for line in headers.get_all(header::ACCEPT) {
            any = true;
            let Ok(line) = line.to_str() else { continue };
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
    pub(crate) fn nothing(self) -> bool {
        !self.json && !self.events
    }
}

/// Refuses a body that is not JSON (MCP-T-6), and a body with a content coding.
///
/// The endpoint decompresses nothing, so decompression bombs are impossible (TEST-B5).
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), McpError> {
    if !is_json(headers) {
        return Err(McpError::MediaType);
    }
    if is_packed(headers) {
        return Err(McpError::Packed);
    }
    Ok(())
}

/// True if the body has a content coding (RFC 9110 §8.4.1).
fn is_packed(headers: &HeaderMap) -> bool {
    let is_none = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|line| {
            !line
                .to_str()
                .is_ok_and(|line| line.split(',').all(|coding| is_none(coding.trim())))
        })
}

/// True if `Content-Type` is JSON; parameters are tolerated (MCP-T-6).
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let text = value.to_str().unwrap_or_default();
    text.split(';')
        .next()
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepted(values: &[&'static str]) -> (bool, bool) {
        let headers = values
            .iter()
            .map(|value| (header::ACCEPT, HeaderValue::from_static(value)))
            .collect();
        let Accepted { json, events } = Accepted::read(&headers);
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
    }

    #[test]
    fn t_6_json_with_parameters_is_json_and_nothing_else_is() {
        let is = |value: &'static str| {
            is_json(
                &[(header::CONTENT_TYPE, HeaderValue::from_static(value))]
                    .into_iter()
                    .collect(),
            )
        };
        assert!(is("application/json") && is("Application/JSON; charset=utf-8"));
        assert!(
            !is("text/plain")
                && !is("application/json-rpc")
                && !is("application/x-www-form-urlencoded")
        );
        assert!(!is_json(&HeaderMap::new()));
    }

    /// TEST-B5: every content coding except `identity` counts as packed.
    #[test]
    fn a_body_with_any_coding_is_packed_and_identity_is_none() {
        let is = |values: &[&'static str]| {
            let headers = values
                .iter()
                .map(|value| (header::CONTENT_ENCODING, HeaderValue::from_static(value)))
                .collect();
            is_packed(&headers)
        };
        for plain in [&[][..], &[""], &["identity"], &["Identity", "identity, "]] {
            assert!(!is(plain), "{plain:?}");
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
            assert!(is(packed), "{packed:?}");
        }
    }
}
