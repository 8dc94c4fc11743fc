//! Chance, from the operating system's generator.

use crate::KeysError;

/// `N` random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N], KeysError> {
    let mut out = [0; N];
    fill(&mut out)?;
    Ok(out)
}

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) -> Result<(), KeysError> {
    aws_lc_rs::rand::fill(out).map_err(|_| KeysError::Random)
}

/// A code of `count` decimal digits, each equally likely: for people to type (AUTH-L7).
pub fn digits(count: usize) -> Result<String, KeysError> {
    let mut out = String::with_capacity(count);
    while out.len() < count {
        let [byte] = bytes::<1>()?;
        // 250 = 25 × 10: values above would make small digits likelier.
        if byte < 250 {
            out.push(char::from(b'0' + byte % 10));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_digits_of_the_asked_length() {
        let code = digits(8).unwrap();
        assert_eq!(code.len(), 8);
        assert!(code.bytes().all(|b| b.is_ascii_digit()));
        assert_ne!(bytes::<16>().unwrap(), bytes::<16>().unwrap());
    }
}
