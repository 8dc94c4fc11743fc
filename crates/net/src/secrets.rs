//! Removes secrets from answers (REVIEW-S-5). An API may echo the headers of its request: any
//! member, and their model, could then read the credential of the workspace.

use std::{borrow::Cow, str, sync::Arc};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::HeaderMap;
use memchr::memmem::Finder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Least bytes of a secret that is masked. A shorter one may appear in many answers by chance,
/// which masking would damage, and can be guessed by trying.
pub const SHORTEST_SECRET: usize = 8;
/// The text in the place of a secret.
pub const MASK: &str = "••••";
/// Everything but the unreserved characters of RFC 3986 §2.3.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Secrets, in each form in which they may come back. `Debug` shows none. To compute the forms
/// costs much more than to search for them; a clone shares them.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Vec<Form>>>);

/// A text to search for, the search prepared.
type Form = Finder<'static>;

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.forms().iter(), other.forms().iter());
        ours.map(Finder::needle).eq(theirs.map(Finder::needle))
    }
}

impl Eq for Secrets {}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} forms)", self.forms().len())
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

    /// Adds a secret: as it is, in an address, in a form, inside a string of JSON, and inside
    /// Base64.
    pub fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST_SECRET {
            return;
        }
        self.push(secret);
        for before in 0..3 {
            let inside = within_base64(secret.as_bytes(), before);
            self.push(&inside.replace('+', "-").replace('/', "_"));
            self.push(&inside);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if secret.bytes().all(plain) {
            return;
        }
        let encoded = utf8_percent_encode(secret, STRICT).to_string();
        self.push(&encoded.replace("%20", "+"));
        // RFC 3986 §2.1: the digits are the same in small letters.
        self.push(&with_small_digits(&encoded));
        self.push(&encoded);
        let quoted = Value::from(secret).to_string();
        let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        for escape in [
            |text: &str| text.to_owned(),
            // Python.
            ascii,
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
            self.push(&escape(inside));
        }
    }

    /// Adds the value of a header: whole, and without the scheme before it, as in `Bearer …` (RFC
    /// 9110 STREAM-11.4).
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
        if self.0.is_none() {
            *self = others;
            return;
        }
        for form in others.forms() {
            if self.is_new(form.needle()) {
                self.insert(form.clone());
            }
        }
    }

    fn push(&mut self, form: &str) {
        if form.len() >= SHORTEST_SECRET && self.is_new(form.as_bytes()) {
            self.insert(Finder::new(form).into_owned());
        }
    }

    fn forms(&self) -> &[Form] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn is_new(&self, form: &[u8]) -> bool {
        !self.forms().iter().any(|known| known.needle() == form)
    }

    fn insert(&mut self, form: Form) {
        let forms = Arc::make_mut(self.0.get_or_insert_default());
        // The longest first: a token stands inside of its header.
        let length = form.needle().len();
        let place = forms.partition_point(|known| known.needle().len() >= length);
        forms.insert(place, form);
    }

    /// Whether any of them is in these bytes.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        let mut forms = self.forms().iter();
        forms.any(|form| form.find(bytes).is_some())
    }

    /// A text without them. Base64 that has them inside stays Base64.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.are_in(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            if let Ok(bytes) = engine.decode(text)
                && self.are_in(&bytes)
            {
                return Cow::Owned(engine.encode(self.replaced_in(&bytes)));
            }
        }
        let mut masked = text.to_owned();
        for form in self.forms() {
            if form.find(masked.as_bytes()).is_some()
                && let Ok(form) = str::from_utf8(form.needle())
            {
                masked = masked.replace(form, MASK);
            }
        }
        Cow::Owned(masked)
    }

    /// A body without them, if they are in it. JSON stays JSON, in the order and with the digits
    /// that it came with.
    pub fn masked_body(&self, body: &Bytes) -> Option<Bytes> {
        if self.forms().is_empty() {
            return None;
        }
        let are_in = self.are_in(body);
        if !are_in && !has_deep_escapes(body) {
            return None;
        }
        if let Ok(text) = str::from_utf8(body)
            && serde_json::from_str::<IgnoredAny>(text).is_ok()
        {
            return self.masked_json(text).map(Bytes::from);
        }
        are_in.then(|| self.replaced_in(body).into())
    }

    /// JSON without them, token by token; `None` if it has none. A number that has one inside
    /// becomes a text.
    fn masked_json(&self, json: &str) -> Option<String> {
        let mut out: Option<String> = None;
        let (mut rest, mut at) = (json, 0);
        while let Some(first) = rest.as_bytes().first() {
            let length = match first {
                b'"' => length_of_string(rest),
                b'-' | b'0'..=b'9' => rest
                    .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                    .unwrap_or(rest.len()),
                // Up to the next string or number. Literals have no digits.
                _ => rest
                    .find(|c: char| matches!(c, '"' | '-' | '0'..='9'))
                    .unwrap_or(rest.len()),
            };
            let (token, after) = rest.split_at(length);
            let masked = match first {
                b'"' => self.masked_string(token),
                b'-' | b'0'..=b'9' if self.are_in(token.as_bytes()) => {
                    Some(Value::from(self.masked(token)).to_string())
                }
                _ => None,
            };
            if let Some(masked) = masked {
                let kept = json.get(..at).unwrap_or_default();
                out.get_or_insert_with(|| kept.to_owned()).push_str(&masked);
            } else if let Some(out) = &mut out {
                out.push_str(token);
            }
            (rest, at) = (after, at + length);
        }
        out
    }

    /// A string of JSON with its quotes, without them; `None` if it has none.
    fn masked_string(&self, quoted: &str) -> Option<String> {
        let inside = quoted.get(1..quoted.len().saturating_sub(1))?;
        if memchr::memchr(b'\\', inside.as_bytes()).is_some()
            && let Ok(text) = serde_json::from_str::<String>(quoted)
            && let Cow::Owned(masked) = self.masked(&text)
        {
            return Some(Value::from(masked).to_string());
        }
        // Half of a surrogate pair cannot be decoded as text; it is masked in its written form.
        match self.masked(inside) {
            Cow::Owned(masked) => Some(format!("\"{masked}\"")),
            Cow::Borrowed(_) => None,
        }
    }

    fn replaced_in(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for form in self.forms() {
            if form.find(&bytes).is_some() {
                bytes = replaced(&bytes, form);
            }
        }
        bytes
    }
}

/// Whether JSON has `\u` or `\\`: a string may hold secrets behind such escapes in a form that is
/// not foreseen. Few bodies have them.
fn has_deep_escapes(json: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', json).any(|at| matches!(json.get(at + 1), Some(b'u' | b'\\')))
}

/// The characters of Base64 that a secret alone decides, where `before` bytes stand before it in
/// its group of three.
fn within_base64(secret: &[u8], before: usize) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    let whole = STANDARD_NO_PAD.encode(&bytes);
    // Six bits a character: the first that has none of what is before, the last that has none of
    // what follows.
    let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    whole.get(from..to).unwrap_or_default().to_owned()
}

/// Bytes of the string that JSON begins with, its quotes included.
fn length_of_string(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// The inside of a string of JSON in ASCII alone.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for sign in text.chars() {
        if sign.is_ascii() {
            out.push(sign);
        } else {
            for unit in sign.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
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

fn replaced(bytes: &[u8], form: &Form) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = form.find(rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        rest = rest.get(at + form.needle().len()..).unwrap_or_default();
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

    fn encoded(text: &str) -> String {
        utf8_percent_encode(text, STRICT).to_string()
    }

    #[test]
    fn s5_a_secret_is_found_in_each_form_that_an_api_gives_it() {
        let odd = r#"p/a&s+s"w <rd>="#;
        let secrets = of(odd);
        let escaped = Value::from(odd).to_string();
        for form in [
            odd.to_owned(),
            encoded(odd),
            encoded(odd).replace("%20", "+"),
            with_small_digits(&encoded(odd)),
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
        ] {
            let shown = secrets.masked(&form).into_owned();
            assert!(
                shown == "••••" || shown == STANDARD.encode("••••"),
                "{shown}"
            );
            assert_eq!(secrets.masked(&format!("a {form}!")), "a ••••!");
        }
        for form in ["anna:p@sswörd?".to_owned(), "p@sswörd?".to_owned()] {
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
        let pair = STANDARD.encode("user:pass");
        assert_eq!(secrets.masked(&format!("pair {pair}")), "pair ••••");
    }

    /// Rule: REVIEW-S-5
    #[test]
    fn s5_secrets_added_to_a_clone_are_not_in_the_original() {
        let first = of("first-secret");
        let mut both = first.clone();
        both.extend(of("second-secret"));
        assert_eq!(first, of("first-secret"));
        assert_eq!(first.masked("second-secret"), "second-secret");
        assert_eq!(both.masked("first-secret second-secret"), "•••• ••••");
        let mut none = Secrets::default();
        none.extend(both.clone());
        assert_eq!(none, both);
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

    #[test]
    fn s5_a_secret_inside_of_base64_is_found_wherever_it_begins() {
        let secrets = of("sk-secret-?>123");
        for before in 0..7 {
            let bytes = format!("{}sk-secret-?>123 and more", "x".repeat(before));
            for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                let blob = engine.encode(&bytes);
                let body = json!({"blob": blob, "text": format!("see {blob}!")}).to_string();
                let masked = secrets.masked_body(&Bytes::from(body)).unwrap();
                let masked: Value = serde_json::from_slice(&masked).unwrap();
                let blob = engine.decode(masked["blob"].as_str().unwrap()).unwrap();
                let blob = String::from_utf8(blob).unwrap();
                assert_eq!(blob, bytes.replace("sk-secret-?>123", MASK));
                let text = masked["text"].as_str().unwrap();
                assert!(text.contains(MASK), "{text}");
            }
        }
    }

    #[test]
    fn s5_escapes_hide_no_secret_and_what_has_none_keeps_every_digit() {
        let secrets = of("pä+\"ss/word<1>");
        for text in [
            r#""p\u00e4+\"ss/word<1>""#,
            r#""p\u00E4\u002b\u0022ss\/word\u003C1>""#,
            r#""{\"a\":\"pä+\\\"ss/word<1>\"}""#,
            r#""{\"a\":\"p\\u00e4+\\\"ss/word<1>\"}""#,
        ] {
            let body = format!(r#"{{"z":1e400,"a":[{text},1.50,"\ud800"],"b":"\u00e4"}}"#);
            let masked = secrets.masked_body(&Bytes::from(body)).unwrap();
            let masked = str::from_utf8(&masked).unwrap();
            assert!(
                masked.contains(MASK) && !masked.contains("word"),
                "{masked}"
            );
            assert!(masked.starts_with(r#"{"z":1e400,"a":["#), "{masked}");
            assert!(
                masked.ends_with(r#",1.50,"\ud800"],"b":"\u00e4"}"#),
                "{masked}"
            );
        }
        let innocent = Bytes::from(r#"{"a":"\u00e4 \\ \"","b":[1,2]}"#);
        assert!(secrets.masked_body(&innocent).is_none());
        assert!(Secrets::default().masked_body(&innocent).is_none());
    }
}
