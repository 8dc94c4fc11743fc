//! Form tokens against cross-site requests: the second half of AUTH-S5, beside the fetch-site
//! layer.
//!
//! A token is a MAC over the values that the form is bound to. It is stable, so that two tabs do
//! not invalidate each other.

use portolan_keys::{Keys, Purpose};

/// Makes the token of a form that is bound to `binding`: at least the browser's digest, and the ids
/// of session and request where they exist.
pub fn token(keys: &Keys, binding: &[&[u8]]) -> String {
    keys.stamp(Purpose::FormToken, &scope(binding), b"")
}

/// Returns true if `presented` was made for the same binding.
pub fn is_valid(keys: &Keys, binding: &[&[u8]], presented: &str) -> bool {
    keys.read_stamp(Purpose::FormToken, &scope(binding), presented)
        .is_some()
}

/// Encodes each part with its length before it, so that two bindings never have the same bytes.
fn scope(binding: &[&[u8]]) -> Vec<u8> {
    let mut scope = Vec::with_capacity(binding.iter().map(|part| part.len() + 8).sum());
    for part in binding {
        scope.extend_from_slice(&(part.len() as u64).to_be_bytes());
        scope.extend_from_slice(part);
    }
    scope
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;

    use super::*;

    #[test]
    fn s5_a_token_is_stable_and_good_for_its_binding_only() {
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let made = token(&keys, &[b"browser", b"request"]);
        assert_eq!(
            made,
            token(&keys, &[b"browser", b"request"]),
            "two tabs share it"
        );
        assert!(is_valid(&keys, &[b"browser", b"request"], &made));
        for other in [
            &[b"browser".as_slice(), b"another"] as &[&[u8]],
            &[b"browserrequest"],
            &[b"browser"],
            &[b"browser", b"request", b""],
        ] {
            assert!(!is_valid(&keys, other, &made), "CASE-27");
        }
        assert!(!is_valid(&keys, &[b"browser", b"request"], ""));
    }
}
