//! What somebody else's authorization server sends a browser back with (RFC 6749 §4.1.2, RFC 9207): where people sign in with an account
//! elsewhere, and where they connect one.

use portolan_upstream::oauth::Callback;
use serde::Deserialize;

/// Longest `state`, code and issuer that are looked at.
const LONGEST: usize = 4096;

/// The parameters of the address that it comes back to.
#[derive(Deserialize)]
pub(crate) struct Returned {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

impl Returned {
    /// The `state`, and what is to be checked against the attempt that it names. `None` without one, and for what is longer than anything
    /// that we or a server wrote.
    pub(crate) fn read(self) -> Option<(String, Callback)> {
        let Self {
            state,
            code,
            error,
            iss,
        } = self;
        let fits = [Some(&state), code.as_ref(), iss.as_ref()]
            .into_iter()
            .flatten()
            .all(|text| text.len() <= LONGEST);
        (!state.is_empty() && fits).then_some((state, Callback { code, error, iss }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(state: &str, code: Option<&str>, iss: Option<&str>) -> Option<String> {
        let returned = Returned {
            state: state.to_owned(),
            code: code.map(str::to_owned),
            error: None,
            iss: iss.map(str::to_owned),
        };
        returned.read().map(|(state, _)| state)
    }

    #[test]
    fn au_9_nothing_without_a_state_or_of_endless_length_is_looked_at() {
        assert_eq!(read("s", None, None).as_deref(), Some("s"));
        assert_eq!(read("", Some("c"), None), None);
        let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
        assert!(read(&longest, Some(&longest), Some(&longest)).is_some());
        assert_eq!(read(&longer, None, None), None);
        assert_eq!(read("s", Some(&longer), None), None);
        assert_eq!(read("s", None, Some(&longer)), None);
    }
}
