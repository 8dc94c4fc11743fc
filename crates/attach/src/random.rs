//! Ids that no other process chooses.

/// 80 random bits in base 36.
pub(crate) fn random_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let mut id = String::with_capacity(16);
    for part in 0..2_u8 {
        // The keys of the first state come from the operating system's random source.
        let mut number = RandomState::new().hash_one((part, std::process::id()));
        for _ in 0..8 {
            let digit = u32::try_from(number % 36).unwrap_or_default();
            id.push(char::from_digit(digit, 36).unwrap_or('0'));
            number /= 36;
        }
    }
    id
}
