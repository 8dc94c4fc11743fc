//! An address of the console to which a sign-in returns (AUTH-S8): a path and a query of this
//! service, never an address of another origin.

/// Longest address in bytes.
const LONGEST: usize = 1000;

/// Most path segments behind the workspace.
const DEEPEST: usize = 8;

/// The page that gives a command its token (CONF-15).
const COMMAND: &str = "/account/command";

/// A page of a workspace, as the browser's address bar has it: `/w/acme/calls?tool=listPorts`; or the
/// page that gives a command its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleAddress(String);

impl ConsoleAddress {
    /// Reads the address that the console reports. `None` for anything else: a scheme, a host,
    /// another path, or a character that an address bar would escape.
    pub fn read(text: &str) -> Option<Self> {
        let (path, search) = match text.split_once('?') {
            Some((path, search)) => (path, Some(search)),
            None => (text, None),
        };
        let is_ours = text.len() <= LONGEST
            && (path == COMMAND || is_of_a_workspace(path))
            && search.is_none_or(|search| search.bytes().all(is_of_a_search));
        is_ours.then(|| Self(text.to_owned()))
    }

    /// The address: a path of this service, and perhaps a query.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true for the path of a page of a workspace.
fn is_of_a_workspace(path: &str) -> bool {
    let Some(below) = path.strip_prefix("/w/") else {
        return false;
    };
    let mut parts = below.split('/');
    let slug = parts.next().unwrap_or_default();
    let behind: Vec<&str> = parts.collect();
    slug.parse::<portolan_model::slug::Slug>().is_ok()
        && behind.len() <= DEEPEST
        && behind.iter().all(|part| is_part(part))
}

/// Returns true for a segment of a route or an id. It has no dot, so a path cannot leave its
/// parent.
fn is_part(part: &str) -> bool {
    (1..=128).contains(&part.len())
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns true for bytes that RFC 3986 §3.4 admits unescaped, except the quotation mark that has a
/// meaning in HTML.
fn is_of_a_search(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&()*+,;=:@/?".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_only_an_address_of_the_console_is_one() {
        for ours in [
            "/w/acme",
            "/w/acme/audit",
            "/w/acme/sources/src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a?tab=credential",
            "/account/command?port=49152&state=AbC-_9&name=Ann%27s%20laptop",
            "/w/acme/calls?tool=listPorts&from=2026-11-24T00%3A00%3A00Z",
        ] {
            let read = ConsoleAddress::read(ours).map(|read| read.as_str().to_owned());
            assert_eq!(read.as_deref(), Some(ours));
        }
        let endless = format!("/w/acme?{}", "a".repeat(LONGEST));
        for foreign in [
            "",
            "/",
            "/w/",
            "/w//evil.example",
            "//evil.example/w/acme",
            "https://evil.example/w/acme",
            "/w/acme/../../logout",
            "/w/acme/.%2e/x",
            "/w/acme//audit",
            "/w/acme/audit/",
            "/w/acme\\evil",
            "/w/acme/a b",
            "/w/acme?x=\r\nSet-Cookie:a=b",
            "/w/acme?x=\"><script>",
            "/w/acme#fragment",
            "/w/ACME",
            "/w/a",
            "/account",
            "/account/command/x",
            "/account/commands",
            "/oauth/consent/req_0",
            "/logout",
            &endless,
        ] {
            assert_eq!(ConsoleAddress::read(foreign), None, "{foreign}");
        }
    }
}
