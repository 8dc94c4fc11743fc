//! One header value: plain text, or Base64 between `=?base64?` and `?=` (MCP-H-6…MCP-H-11,
//! MCP-D-5).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Whose reading of the Base64 form holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 2026-07-28: what looks encoded must decode (MCP-H-8).
    Modern,
    /// The draft profile in legacy sessions: what does not decode is literal (MCP-D-5), numbers may
    /// be fractional (MCP-D-4).
    Draft,
}

/// Why a value cannot be read (MCP-H-8, MCP-H-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// A control character, or a byte beyond ASCII.
    #[error("characters that no header may hold")]
    Characters,
    /// Between the markers stands no Base64 of UTF-8 text.
    #[error("not Base64 of UTF-8 text")]
    Encoding,
}

impl HeaderFault {
    pub(crate) fn explain(self, header: &'static str) -> &'static str {
        match (self, header) {
            (Self::Characters, "Mcp-Name") => {
                "Mcp-Name holds characters outside printable ASCII: send it as Base64"
            }
            (Self::Encoding, "Mcp-Name") => "Mcp-Name is not Base64 of UTF-8 text",
            (Self::Characters, _) => {
                "an Mcp-Param header holds characters outside printable ASCII: send it as Base64"
            }
            (Self::Encoding, _) => "an Mcp-Param header is not Base64 of UTF-8 text",
        }
    }
}

/// Cuts spaces and tabs around a header value (RFC 9110 §5.5).
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = value
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    &value[start..end]
}

/// The text that a mirrored header stands for.
pub fn decode(value: &[u8], dialect: Dialect) -> Result<Cow<'_, str>, HeaderFault> {
    let value = trim(value);
    if !value
        .iter()
        .all(|byte| *byte == b'\t' || (0x20..0x7f).contains(byte))
    {
        return Err(HeaderFault::Characters);
    }
    let text = std::str::from_utf8(value).map_err(|_| HeaderFault::Characters)?;
    let Some(inner) = text
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
    else {
        return Ok(Cow::Borrowed(text));
    };
    match STANDARD
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
    {
        Some(decoded) => Ok(Cow::Owned(decoded)),
        None if dialect == Dialect::Draft => Ok(Cow::Borrowed(text)),
        None => Err(HeaderFault::Encoding),
    }
}

/// The header value for `text`: plain if that is safe, else the Base64 form (MCP-H-7, MCP-H-10).
pub fn encode(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && trim(text.as_bytes()).len() == text.len()
        && !(text.starts_with(PREFIX) && text.ends_with(SUFFIX));
    if plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text)))
    }
}

/// A decimal number in JSON spelling.
pub(crate) fn number(text: &str) -> Option<f64> {
    let parsed: f64 = serde_json::from_str(text).ok()?;
    parsed.is_finite().then_some(parsed)
}

/// Equality of numbers as a double sees them: what a header and an argument both round to is the
/// same.
#[expect(
    clippy::float_cmp,
    reason = "both sides were parsed from text in the same way; equal text must compare equal"
)]
pub(crate) fn equal(left: f64, right: f64) -> bool {
    left == right
}

/// An integer within ±(2^53 − 1).
pub(crate) fn is_safe(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0
}
