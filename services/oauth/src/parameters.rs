//! Parameters of OAuth requests: form-encoded, each at most once (AUTH-A1, AUTH-T8).

use http::{HeaderMap, header};

/// Parameters in the order of the request. An empty value counts as absent (RFC 6749 §3.1).
#[derive(Debug, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

/// The error for a repeated parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeated;

impl Parameters {
    /// Reads a query string or a form body. It never fails: bytes that are not UTF-8 become
    /// replacement characters, which match nothing.
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        Self(
            url::form_urlencoded::parse(encoded)
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// The value, or `None` if the parameter is absent. Fails if it is repeated.
    pub(crate) fn one<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, Repeated> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Repeated),
        }
    }

    /// The first value, for parameters that are known not to repeat.
    pub(crate) fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Every value.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns true if a parameter other than `resource` is repeated, known or not
    /// (RFC 6749 §3.1; RFC 8707 §2 lets `resource` repeat).
    pub(crate) fn has_repeated(&self) -> bool {
        self.0.iter().enumerate().any(|(at, (name, _))| {
            name != "resource" && self.0[..at].iter().any(|(other, _)| other == name)
        })
    }
}

/// Returns true for `application/x-www-form-urlencoded`, with or without parameters.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|media_type| {
        media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

/// Returns true for `application/json`, with or without parameters.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers)
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json"))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    Some(value.split(';').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_empty_is_absent_and_only_resource_may_repeat() {
        let parameters =
            Parameters::parse(b"a=1&b=&resource=x&resource=y&state=%26%23%25%22%C3%A4");
        assert_eq!(parameters.one("a"), Ok(Some("1")));
        assert_eq!(parameters.one("b"), Ok(None));
        assert_eq!(parameters.one("state"), Ok(Some("&#%\"ä")));
        assert_eq!(parameters.one("resource"), Err(Repeated));
        assert!(!parameters.has_repeated());
        assert!(Parameters::parse(b"x=1&x=2").has_repeated());
        assert!(
            !Parameters::parse(b"x=1&x=").has_repeated(),
            "an empty one does not count"
        );
    }
}
