//! `WWW-Authenticate` of a server that wants a token (RFC 6750 §3, RFC 9728 §5.1).

use url::Url;

/// Parameters of a challenge. Everything is optional: a bare 401 is a challenge too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Address of the resource's metadata.
    pub resource_metadata: Option<Url>,
    /// Scopes that are needed, separated by spaces.
    pub scope: Option<String>,
    /// `invalid_token`, `insufficient_scope` …
    pub error: Option<String>,
}

impl Challenge {
    /// Reads the first `Bearer` challenge of a header's value. Parameters that cannot be parsed are
    /// absent.
    pub fn read(header: Option<&str>) -> Self {
        let mut found = Self::default();
        let Some(rest) = header.and_then(after_bearer) else {
            return found;
        };
        for (name, value) in parameters(rest) {
            match name.as_str() {
                "resource_metadata" => found.resource_metadata = Url::parse(&value).ok(),
                "scope" => found.scope = Some(value).filter(|scope| !scope.trim().is_empty()),
                "error" => found.error = Some(value),
                _ => {}
            }
        }
        found
    }
}

/// Returns the text after the scheme `Bearer`, wherever the scheme begins.
fn after_bearer(header: &str) -> Option<&str> {
    let lower = header.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower[from..].find("bearer").map(|at| at + from) {
        let begins = header[..at]
            .trim_end()
            .chars()
            .next_back()
            .is_none_or(|before| before == ',');
        let rest = &header[at + 6..];
        if begins && (rest.is_empty() || rest.starts_with([' ', '\t', ','])) {
            return Some(rest);
        }
        from = at + 6;
    }
    None
}

/// `name=value` and `name="value"` until the next scheme: a token with a space behind it and no
/// `=`.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        let Some((name, rest)) = text.split_once('=') else {
            return found;
        };
        let name = name.trim();
        if name.is_empty() || name.contains([' ', '\t', ',']) {
            return found;
        }
        let rest = rest.trim_start();
        let value;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut read = String::new();
            let mut characters = quoted.char_indices();
            let mut end = None;
            while let Some((at, character)) = characters.next() {
                match character {
                    '"' => {
                        end = Some(at);
                        break;
                    }
                    '\\' => read.extend(characters.next().map(|(_, escaped)| escaped)),
                    other => read.push(other),
                }
            }
            let Some(end) = end else { return found };
            value = read;
            text = &quoted[end + 1..];
        } else {
            let end = rest.find([',', ' ', '\t']).unwrap_or(rest.len());
            value = rest[..end].to_owned();
            text = &rest[end..];
        }
        found.push((name.to_ascii_lowercase(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_2_a_challenge_is_read_as_servers_write_it() {
        let full = Challenge::read(Some(
            r#"Basic realm="x", Bearer error="insufficient_scope", scope="a b", resource_metadata="https://a.example/.well-known/x", error_description="say \"please\"""#,
        ));
        assert_eq!(full.scope.as_deref(), Some("a b"));
        assert_eq!(full.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(
            full.resource_metadata.unwrap().as_str(),
            "https://a.example/.well-known/x"
        );
        let bare = Challenge::read(Some("bearer resource_metadata=https://a.example/m,scope=a"));
        assert_eq!(bare.resource_metadata.unwrap().path(), "/m");
        assert_eq!(bare.scope.as_deref(), Some("a"));
        let two = Challenge::read(Some(r#"Bearer scope="a", DPoP algs="ES256", scope="b""#));
        assert_eq!(
            two.scope.as_deref(),
            Some("a"),
            "that of another scheme is not ours"
        );
    }

    #[test]
    fn what_is_no_challenge_is_an_empty_one() {
        for text in [
            "",
            "Bearer",
            "Basic realm=x",
            r#"Bearer scope="a"#,
            "Forbearer a=b",
            "Bearer =",
            "bearer,",
        ] {
            assert_eq!(Challenge::read(Some(text)), Challenge::default(), "{text}");
        }
        assert_eq!(Challenge::read(None), Challenge::default());
    }
}
