//! The commonest passwords, as a Bloom filter (ADR 34): some 140,000 in 410 KiB. Of a hundred
//! thousand others it takes one for common.

/// Bits, the lowest of each byte first. Made by `scripts/common-passwords.mjs`.
static FILTER: &[u8] = include_bytes!("../../data/common-passwords.bloom");
/// Bits that a password sets.
const HASHES: u64 = 17;

/// Whether a password stands in the filter. `lower` is in NFKC and lower case.
pub(super) fn is_common(lower: &str) -> bool {
    let digest = crate::digest(lower.as_bytes());
    let (halves, _) = digest.as_bytes().as_chunks::<8>();
    let (first, step) = (u64::from_be_bytes(halves[0]), u64::from_be_bytes(halves[1]));
    let size = FILTER.len() as u64 * 8;
    (0..HASHES).all(|n| {
        let bit = first.wrapping_add(n.wrapping_mul(step)) % size;
        let byte = usize::try_from(bit / 8).ok().and_then(|at| FILTER.get(at));
        byte.is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_the_commonest_passwords_are_known_and_next_to_no_others() {
        for common in [
            "123456",
            "password",
            "qwerty",
            "1qaz2wsx3edc4rfv",
            "qazwsxedcrfvtgb",
            "1029384756123",
            "yesterday909",
        ] {
            assert!(is_common(common), "{common}");
        }
        assert!(FILTER.len() < 500 * 1024);
        let others = 200_000_u32;
        let taken = (0..others)
            .filter(|n| is_common(&format!("nobody chose this {n}")))
            .count();
        assert!(taken <= 20, "{taken} of {others}");
    }
}
