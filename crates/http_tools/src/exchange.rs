//! One exchange with an API as a person may read it: what was sent and what was answered, without
//! the credential (REVIEW-S-5).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portolan_net::{
    egress::{EgressRequest, EgressResponse},
    secrets::{MASK, Secrets},
};
use url::Url;

use crate::{
    charset::decode,
    credential::{Credential, KeyPlace},
};

/// Bytes of a body that are shown.
const MAX_SHOWN_BODY: usize = 64 * 1024;
/// Schemes (RFC 9110 §11.1) that may be shown: they are no part of a secret.
const OPEN_SCHEMES: [&str; 2] = ["bearer", "basic"];

/// A request as it was sent, without the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Method.
    pub method: Method,
    /// URL. The value of a key in its query is masked.
    pub url: String,
    /// Names and values in the order in which they were sent, `Content-Length` left out. Values
    /// that hold a secret are masked.
    pub headers: Vec<(String, String)>,
    /// Absent for a request without a body.
    pub body: Option<ShownBody>,
}

/// An answer as it was received, without the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Status.
    pub status: StatusCode,
    /// Names and values. Values that hold a secret, and cookies, are masked.
    pub headers: Vec<(String, String)>,
    /// Absent for an answer without a body.
    pub body: Option<ShownBody>,
}

/// A body as far as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownBody {
    /// The first 64 KiB as text; absent if the body is no text.
    pub text: Option<String>,
    /// Bytes of the whole body.
    pub bytes: usize,
}

/// The request, before it is sent. `headers` are the complete ones, `credential` is what `request`
/// was signed with.
pub(crate) fn sent(
    request: &EgressRequest,
    headers: &HeaderMap,
    credential: Option<&Credential>,
    secrets: &Secrets,
) -> Sent {
    let url = match credential {
        Some(Credential::ApiKey {
            place: KeyPlace::Query,
            ..
        }) => without_last_value(&request.url),
        _ => request.url.to_string(),
    };
    Sent {
        method: request.method.clone(),
        url: secrets.masked(&url).into_owned(),
        headers: lines(headers, secrets),
        body: ShownBody::of(&request.body, headers, secrets),
    }
}

/// The answer.
pub(crate) fn received(response: &EgressResponse, secrets: &Secrets) -> Received {
    Received {
        status: response.status,
        headers: lines(&response.headers, secrets),
        body: ShownBody::of(&response.body, &response.headers, secrets),
    }
}

/// A URL without the value of its last query parameter: [`Credential::apply`] appends a key there.
fn without_last_value(url: &Url) -> String {
    let url = url.as_str();
    let pair = url.rfind(['?', '&']).map_or(0, |at| at + 1);
    match url.get(pair..).and_then(|rest| rest.find('=')) {
        Some(value) => format!("{}{MASK}", url.get(..=pair + value).unwrap_or_default()),
        None => url.to_owned(),
    }
}

fn lines(headers: &HeaderMap, secrets: &Secrets) -> Vec<(String, String)> {
    let lines = headers.iter().map(|(name, value)| {
        let shown = if value.is_sensitive() || *name == header::SET_COOKIE {
            hidden(value)
        } else {
            let text = String::from_utf8_lossy(value.as_bytes());
            secrets.masked(&text).into_owned()
        };
        (name.to_string(), shown)
    });
    lines.collect()
}

/// The value of a credential: its scheme at most.
fn hidden(value: &HeaderValue) -> String {
    let scheme = value.to_str().ok().and_then(|text| text.split_once(' '));
    match scheme {
        Some((scheme, _)) if OPEN_SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
            format!("{scheme} {MASK}")
        }
        _ => MASK.to_owned(),
    }
}

impl ShownBody {
    fn of(body: &Bytes, headers: &HeaderMap, secrets: &Secrets) -> Option<Self> {
        if body.is_empty() {
            return None;
        }
        let bytes = body.len();
        // Masked as a whole: a cut could leave a part of a secret.
        let masked = secrets.masked_body(body);
        let shown = masked.as_ref().unwrap_or(body);
        let is_text = std::str::from_utf8(shown).is_ok()
            || headers
                .get(header::CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
        let text = is_text.then(|| {
            let mut text = decode(headers, shown);
            if let Some(end) = end_of_shown(&text) {
                text.truncate(end);
            }
            text
        });
        Some(Self { text, bytes })
    }
}

/// Where a text that is too long to be shown is cut: between two characters.
fn end_of_shown(text: &str) -> Option<usize> {
    let mut cuts = (0..=MAX_SHOWN_BODY).rev();
    (text.len() > MAX_SHOWN_BODY)
        .then(|| cuts.find(|at| text.is_char_boundary(*at)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn a_key_of_the_query_is_masked_however_short_it_is() {
        for (url, shown) in [
            (
                "https://a.example/p?key=abc",
                "https://a.example/p?key=••••",
            ),
            (
                "https://a.example/p?q=1&key=a%3Db",
                "https://a.example/p?q=1&key=••••",
            ),
            ("https://a.example/p", "https://a.example/p"),
        ] {
            assert_eq!(without_last_value(&Url::parse(url).unwrap()), shown);
        }
    }

    #[test]
    fn a_secret_that_a_cut_would_halve_is_masked_before() {
        let mut secrets = Secrets::default();
        secrets.add("a-secret-of-16-b");
        let long = "x".repeat(MAX_SHOWN_BODY - 8) + "a-secret-of-16-b";
        let body = ShownBody::of(&long.clone().into(), &headers("text/plain"), &secrets).unwrap();
        assert_eq!(body.bytes, long.len());
        assert!(!body.text.unwrap().contains("a-secret"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "x".to_owned() + &"ä".repeat(MAX_SHOWN_BODY);
        let none = Secrets::default();
        let body = ShownBody::of(&long.clone().into(), &headers("text/plain"), &none).unwrap();
        assert_eq!(body.bytes, long.len());
        assert_eq!(body.text.unwrap().len(), MAX_SHOWN_BODY - 1);
    }

    #[test]
    fn bytes_are_counted_and_only_text_is_shown() {
        let none = Secrets::default();
        let bytes = Bytes::from_static(b"\x89PNG\xff\xfe");
        let body = ShownBody::of(&bytes, &headers("image/png"), &none).unwrap();
        assert_eq!((body.text, body.bytes), (None, 6));
        let latin = Bytes::from_static(b"Malm\xf6");
        let kind = headers("text/plain; charset=iso-8859-1");
        let body = ShownBody::of(&latin, &kind, &none).unwrap();
        assert_eq!(body.text.as_deref(), Some("Malmö"));
        assert_eq!(ShownBody::of(&Bytes::new(), &kind, &none), None);
    }
}
