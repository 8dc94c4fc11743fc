//! Bytes as hexadecimal digits, for names and tokens.

use std::fmt::Write as _;

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads the output of [`hex`]; `None` for any other text.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_and_any_other_text_is_none() {
        assert_eq!(unhex(&hex(&[0, 1, 254])), Some(vec![0, 1, 254]));
        for other in ["0", "zz", "+1", "\u{fc}0"] {
            assert_eq!(unhex(other), None);
        }
    }
}
