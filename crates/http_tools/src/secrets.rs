//! Secrets that an answer must not bring back (S-5). An API may echo the headers of its request: any member, and their model, would
//! then read the credential of the workspace.

use std::{borrow::Cow, str};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::HeaderMap;
use memchr::memmem;
use serde_json::{Map, Value};

use crate::parameter_style;

/// Bytes of a secret that is looked for. A shorter one is a word of many answers, which would be destroyed, and is guessed by trying.
pub const SHORTEST_SECRET: usize = 8;
/// What stands in the place of a secret.
pub(crate) const MASK: &str = "••••";

/// Secrets, in each form in which they may come back. `Debug` shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} forms)", self.0.len())
    }
}

impl Secrets {
    /// From the headers of a request: those that are marked as sensitive.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let mut secrets = Self::default();
        let sensitive = headers.values().filter(|value| value.is_sensitive());
        for value in sensitive.filter_map(|value| value.to_str().ok()) {
            secrets.add_header(value);
        }
        secrets
    }

    /// Adds a secret: as it is, in an address, in a form, and inside a string of JSON.
    pub fn add(&mut self, secret: &str) {
        self.push(Cow::Borrowed(secret));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if secret.bytes().all(plain) {
            return;
        }
        let encoded = parameter_style::encode(secret);
        self.push(Cow::Owned(encoded.replace("%20", "+")));
        // RFC 3986 §2.1: the digits are the same in small letters.
        self.push(Cow::Owned(with_small_digits(&encoded)));
        self.push(Cow::Owned(encoded));
        let quoted = Value::from(secret).to_string();
        let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        for escape in [
            |text: &str| text.to_owned(),
            // PHP.
            |text: &str| text.replace('/', "\\/"),
            // Go.
            |text: &str| {
                let text = text.replace('<', "\\u003c").replace('>', "\\u003e");
                text.replace('&', "\\u0026")
            },
            // Web pages.
            |text: &str| {
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                text.replace('>', "&gt;")
            },
        ] {
            self.push(Cow::Owned(escape(inside)));
        }
    }

    /// Adds the value of a header: whole, and without the scheme before it, as in `Bearer …` (RFC 9110 §11.4).
    pub fn add_header(&mut self, value: &str) {
        self.add(value);
        if let Some((scheme, rest)) = value.split_once(' ') {
            let rest = rest.trim();
            self.add(rest);
            if scheme.eq_ignore_ascii_case("basic")
                && let Ok(pair) = STANDARD.decode(rest)
                && let Ok(pair) = str::from_utf8(&pair)
                && let Some((user, password)) = pair.split_once(':')
            {
                self.add_pair(user, password);
            }
        }
    }

    /// Adds a name and its password, alone and as RFC 7617 joins them.
    pub fn add_pair(&mut self, name: &str, password: &str) {
        let pair = format!("{name}:{password}");
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            self.add(&engine.encode(&pair));
        }
        if !password.is_empty() {
            self.add(&pair);
        }
        self.add(password);
    }

    /// Adds all of others.
    pub fn extend(&mut self, others: Self) {
        for form in others.0 {
            self.push(Cow::Owned(form));
        }
    }

    fn push(&mut self, form: Cow<'_, str>) {
        if form.len() >= SHORTEST_SECRET && !self.0.iter().any(|known| *known == form) {
            // The longest first: a token stands inside of its header.
            let place = self.0.partition_point(|known| known.len() >= form.len());
            self.0.insert(place, form.into_owned());
        }
    }

    /// Whether any of them is in these bytes.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        let mut forms = self.0.iter();
        forms.any(|form| memmem::find(bytes, form.as_bytes()).is_some())
    }

    /// A text without them.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for form in &self.0 {
            if memmem::find(masked.as_bytes(), form.as_bytes()).is_some() {
                masked = Cow::Owned(masked.replace(form.as_str(), MASK));
            }
        }
        masked
    }

    /// A body without them, if they are in it. JSON stays JSON.
    pub fn masked_body(&self, body: &Bytes) -> Option<Bytes> {
        if !self.are_in(body) {
            return None;
        }
        if let Ok(value) = serde_json::from_slice::<Value>(body) {
            let masked = self.masked_value(value);
            if let Ok(json) = serde_json::to_vec(&masked) {
                return Some(json.into());
            }
        }
        let mut bytes = body.to_vec();
        for form in &self.0 {
            bytes = replaced(&bytes, form.as_bytes());
        }
        Some(bytes.into())
    }

    /// A value without them. A number that has one inside becomes a text.
    pub fn masked_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.masked(&text).into_owned()),
            Value::Number(number) => {
                let text = number.to_string();
                if self.are_in(text.as_bytes()) {
                    Value::String(self.masked(&text).into_owned())
                } else {
                    Value::Number(number)
                }
            }
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.masked_value(item))
                .collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (self.masked(&name).into_owned(), self.masked_value(value)))
                .collect::<Map<_, _>>()
                .into(),
            other => other,
        }
    }
}

/// `%2F` as `%2f`.
fn with_small_digits(encoded: &str) -> String {
    let mut left = 0;
    let small = encoded.chars().map(|c| {
        if c == '%' {
            left = 2;
            c
        } else if left > 0 {
            left -= 1;
            c.to_ascii_lowercase()
        } else {
            c
        }
    });
    small.collect()
}

fn replaced(bytes: &[u8], form: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, form) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        rest = rest.get(at + form.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};
    use serde_json::json;

    use super::*;

    fn of(secret: &str) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(secret);
        secrets
    }

    #[test]
    fn s5_a_secret_is_found_in_each_form_that_an_api_gives_it() {
        let odd = r#"p/a&s+s"w <rd>="#;
        let secrets = of(odd);
        let escaped = Value::from(odd).to_string();
        for form in [
            odd.to_owned(),
            parameter_style::encode(odd),
            parameter_style::encode(odd).replace("%20", "+"),
            with_small_digits(&parameter_style::encode(odd)),
            escaped[1..escaped.len() - 1].to_owned(),
            escaped[1..escaped.len() - 1].replace('/', "\\/"),
            escaped[1..escaped.len() - 1]
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026"),
        ] {
            let shown = secrets.masked(&format!("a {form} b")).into_owned();
            assert_eq!(shown, "a •••• b", "{form}");
        }
        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_static("Bearer abc-DEF-123");
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
        headers.insert("x-open", HeaderValue::from_static("not-a-secret"));
        let secrets = Secrets::of_headers(&headers);
        assert_eq!(secrets.masked("Bearer abc-DEF-123"), "••••");
        assert_eq!(secrets.masked("t=abc-DEF-123;"), "t=••••;");
        assert_eq!(secrets.masked("not-a-secret"), "not-a-secret");
    }

    #[test]
    fn s5_a_basic_credential_is_found_as_a_pair_and_as_its_password() {
        let mut secrets = Secrets::default();
        secrets.add_header(&format!("Basic {}", STANDARD.encode("anna:p@sswörd?")));
        for form in [
            STANDARD.encode("anna:p@sswörd?"),
            URL_SAFE_NO_PAD.encode("anna:p@sswörd?"),
            "anna:p@sswörd?".to_owned(),
            "p@sswörd?".to_owned(),
        ] {
            assert_eq!(secrets.masked(&form), "••••", "{form}");
        }
        assert_eq!(secrets.masked("anna"), "anna");
    }

    #[test]
    fn s5_a_short_value_masks_nothing_but_its_pair() {
        let mut secrets = of("secret1");
        assert_eq!(secrets.masked("secret1"), "secret1");
        secrets.add_pair("user", "pass");
        assert_eq!(secrets.masked("pass"), "pass");
        assert_eq!(secrets.masked(&STANDARD.encode("user:pass")), "••••");
    }

    #[test]
    fn s5_json_stays_json_and_what_has_no_secret_is_not_copied() {
        let secrets = of("12345678");
        let body = Bytes::from(r#"{"12345678":"a 12345678","n":[9123456789, 1.5],"o":true}"#);
        let masked = secrets.masked_body(&body).unwrap();
        let value: Value = serde_json::from_slice(&masked).unwrap();
        let expected = json!({"••••": "a ••••", "n": ["9••••9", 1.5], "o": true});
        assert_eq!(value, expected);
        assert!(secrets.masked_body(&Bytes::from("1234567")).is_none());
        assert!(matches!(secrets.masked("nothing"), Cow::Borrowed(_)));
        let bytes = Bytes::from(&b"\xff12345678\xfe"[..]);
        let masked = secrets.masked_body(&bytes).unwrap();
        assert_eq!(&masked[..], [b"\xff", MASK.as_bytes(), b"\xfe"].concat());
    }
}
