//! Parameters with which another authorization server redirects a browser back
//! (RFC 6749 §4.1.2, RFC 9207): at a sign-in with a provider, and when an account is connected.

use portolan_upstream::oauth::Callback;
use serde::Deserialize;

/// Longest accepted `state`, code and issuer, in bytes.
const LONGEST: usize = 4096;

/// The parameters of the callback.
#[derive(Deserialize)]
pub struct Returned {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

impl Returned {
    /// Returns `state`, and the parameters to check against the attempt that it names. `None`
    /// without a `state`, or for a parameter that is too long.
    pub fn read(self) -> Option<(String, Callback)> {
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
