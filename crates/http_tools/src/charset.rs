//! Text of an answer in the character set that its headers name.

use http::{HeaderMap, header};

/// Bytes as text: UTF-8, or Latin-1 if the answer says so.
pub(crate) fn decode(headers: &HeaderMap, body: &[u8]) -> String {
    let charset = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split("charset=").nth(1))
        .map(|charset| charset.trim_matches(['"', '\'', ' ']).to_ascii_lowercase());
    if charset.as_deref().is_some_and(|c| {
        c.starts_with("iso-8859-1") || c.starts_with("latin1") || c.starts_with("windows-1252")
    }) {
        return body.iter().map(|byte| char::from(*byte)).collect();
    }
    String::from_utf8_lossy(body).into_owned()
}
