//! Redirect URIs: which may be registered (AUTH-C14) and which requests match them (AUTH-A3).
//!
//! Strings are compared first and parsed after, with the same parser that browsers follow. Nothing
//! is repaired: no case is folded, no escape decoded, no slash added. The one leniency is the port
//! of a loopback address, which a native app cannot know beforehand (RFC 8252 §7.3), also where the
//! registration names one (clients do, and then bind another).

use std::borrow::Cow;

use url::{Host, Url};

/// Longest URI that is looked at.
pub const MAX_BYTES: usize = 2048;
/// Most URIs of one client.
pub const MAX_PER_CLIENT: usize = 20;

/// Where a redirect goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A web page of the named host.
    Web {
        /// Host, with a port if one is given.
        host: String,
    },
    /// A program that listens on the person's own computer.
    Loopback,
    /// A program that claims a URI scheme.
    App {
        /// The scheme, without the colon.
        scheme: String,
    },
}

/// Why a URI cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRedirect {
    /// Over 2048 bytes.
    #[error("redirect URI is longer than 2048 bytes")]
    Length,
    /// Not an absolute URI, or with characters that have no place in one.
    #[error("redirect URI is not an absolute URI in plain ASCII")]
    Syntax,
    /// Has a `#`.
    #[error("redirect URI must not have a fragment")]
    Fragment,
    /// Has a user or password.
    #[error("redirect URI must not have user information")]
    UserInfo,
    /// Has a `*`.
    #[error("redirect URI must not have a wildcard")]
    Wildcard,
    /// `http` to a host that is not `127.0.0.1`, `[::1]` or `localhost`; or `https` to an address.
    #[error(
        "redirect URI must use https with a host name, http with a loopback host, or a private-use scheme"
    )]
    Host,
    /// A scheme that would run something else than the app.
    #[error("redirect URI uses a scheme that is not allowed")]
    Scheme,
    /// A scheme that is no domain name of the app's maker in reverse (RFC 8252 §7.1), nor one of a
    /// known app.
    #[error(
        "redirect URI uses a private-use scheme without a dot: use a domain name in reverse, as com.example.app"
    )]
    Undotted,
}

/// Schemes without a dot that known AI apps have claimed. They prove nothing: any program may claim
/// them, too.
const KNOWN_SCHEMES: [&str; 33] = [
    "amp",
    "antigravity",
    "chatgpt",
    "cherrystudio",
    "claude",
    "cline",
    "code-oss",
    "codex",
    "continue",
    "cursor",
    "cursor-nightly",
    "goose",
    "jan",
    "jetbrains",
    "kiro",
    "librechat",
    "lmstudio",
    "msty",
    "opencode",
    "perplexity",
    "positron",
    "raycast",
    "trae",
    "trae-cn",
    "void",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "warp",
    "warppreview",
    "windsurf",
    "windsurf-next",
    "zed",
];

/// Schemes that execute, read local files, or belong to the browser or the system. With a dot or
/// without: what was registered before a rule became stricter is not answered there either.
const REFUSED_SCHEMES: [&str; 63] = [
    "javascript",
    "data",
    "vbscript",
    "file",
    "blob",
    "about",
    "view-source",
    "filesystem",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "ssh",
    "mailto",
    "tel",
    "sms",
    "smsto",
    "mms",
    "intent",
    "android-app",
    "content",
    "jar",
    "resource",
    "res",
    "mhtml",
    "shell",
    "gopher",
    "news",
    "afp",
    "bitcoin",
    "callto",
    "cifs",
    "dav",
    "davs",
    "dns",
    "facetime",
    "facetime-audio",
    "feed",
    "finger",
    "git",
    "help",
    "http",
    "https",
    "imap",
    "irc",
    "ircs",
    "ldap",
    "ldaps",
    "magnet",
    "market",
    "microsoft-edge",
    "nfs",
    "pop",
    "rdp",
    "rtsp",
    "search",
    "sip",
    "sips",
    "smb",
    "steam",
    "telnet",
    "vnc",
];
/// And families of them.
const REFUSED_PREFIXES: [&str; 11] = [
    "chrome",
    "ms-",
    "moz-",
    "edge",
    "safari-",
    "search-",
    "ie.",
    "itms",
    "x-apple",
    "com.apple.",
    "microsoft-",
];

/// Checks a URI that a client wants to register, and returns its kind of destination
/// (AUTH-C14).
pub fn check(uri: &str) -> Result<Destination, InvalidRedirect> {
    let destination = destination(uri)?;
    match &destination {
        Destination::App { scheme }
            if !scheme.contains('.') && !KNOWN_SCHEMES.contains(&scheme.as_str()) =>
        {
            Err(InvalidRedirect::Undotted)
        }
        _ => Ok(destination),
    }
}

/// Where a registered URI goes, if it may be answered there: as [`check`], without the rule for new
/// schemes. Schemes without a dot that were registered before that rule keep working, with what the
/// consent page says of them.
pub fn destination(uri: &str) -> Result<Destination, InvalidRedirect> {
    if uri.len() > MAX_BYTES {
        return Err(InvalidRedirect::Length);
    }
    // The parser drops tabs and newlines and takes a backslash for a slash: strings that look like
    // one host would lead to another.
    if !uri.bytes().all(|b| matches!(b, 0x21..=0x7e))
        || uri.contains(['\\', '"', '<', '>', '^', '`', '{', '|', '}'])
    {
        return Err(InvalidRedirect::Syntax);
    }
    if uri.contains('#') {
        return Err(InvalidRedirect::Fragment);
    }
    let (scheme, rest) = uri.split_once(':').ok_or(InvalidRedirect::Syntax)?;
    if let Some(parts) = Loopback::split(uri) {
        if parts.tail.contains('*') {
            return Err(InvalidRedirect::Wildcard);
        }
        return Ok(Destination::Loopback);
    }
    if uri.contains('*') {
        return Err(InvalidRedirect::Wildcard);
    }
    match scheme {
        "https" => web(uri, rest),
        "http" if authority(rest).is_some_and(|authority| authority.contains('@')) => {
            Err(InvalidRedirect::UserInfo)
        }
        "http" => Err(InvalidRedirect::Host),
        _ => app(uri, scheme, rest),
    }
}

/// The destination of an `https` URI, whose text after the scheme is `rest`.
fn web(uri: &str, rest: &str) -> Result<Destination, InvalidRedirect> {
    let authority = authority(rest).ok_or(InvalidRedirect::Syntax)?;
    if authority.contains('@') {
        return Err(InvalidRedirect::UserInfo);
    }
    let parsed = Url::parse(uri).map_err(|_| InvalidRedirect::Syntax)?;
    let Some(Host::Domain(host)) = parsed.host() else {
        return Err(InvalidRedirect::Host);
    };
    // What re-serialises to another host is a trick.
    let written = authority
        .rsplit_once(':')
        .map_or(authority, |(name, _)| name);
    if !written.eq_ignore_ascii_case(host) {
        return Err(InvalidRedirect::Host);
    }
    Ok(Destination::Web {
        host: parsed
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
    })
}

/// The destination of a URI with a scheme of an app.
fn app(uri: &str, scheme: &str, rest: &str) -> Result<Destination, InvalidRedirect> {
    let grammatical = scheme
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_lowercase())
        && scheme.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'+' | b'.' | b'-')
        });
    if !grammatical {
        return Err(InvalidRedirect::Syntax);
    }
    if REFUSED_SCHEMES.contains(&scheme)
        || REFUSED_PREFIXES
            .iter()
            .any(|prefix| scheme.starts_with(prefix))
    {
        return Err(InvalidRedirect::Scheme);
    }
    if authority(rest).is_some_and(|authority| authority.contains('@')) {
        return Err(InvalidRedirect::UserInfo);
    }
    if rest.is_empty() || Url::parse(uri).is_err() {
        return Err(InvalidRedirect::Syntax);
    }
    Ok(Destination::App {
        scheme: scheme.to_owned(),
    })
}

/// Whether a requested redirect URI is the registered one (AUTH-A3).
pub fn matches(registered: &str, requested: &str) -> bool {
    if requested.len() > MAX_BYTES || requested.contains('*') {
        return false;
    }
    if registered == requested {
        return destination(requested).is_ok();
    }
    let (Some(registered), Some(asked)) = (Loopback::split(registered), Loopback::split(requested))
    else {
        return false;
    };
    registered.host == asked.host && registered.tail == asked.tail && destination(requested).is_ok()
}

/// The URI without a loopback port: two registrations that differ in nothing else are the same
/// client (AUTH-C10).
pub fn without_loopback_port(uri: &str) -> Cow<'_, str> {
    match Loopback::split(uri) {
        Some(parts) => Cow::Owned(format!("http://{}{}", parts.host, parts.tail)),
        None => Cow::Borrowed(uri),
    }
}

/// An `http` URI on one of the three loopback hosts, split at the port.
struct Loopback<'a> {
    host: &'a str,
    /// Path and query. An empty path is `/`.
    tail: Cow<'a, str>,
}

impl<'a> Loopback<'a> {
    fn split(uri: &'a str) -> Option<Self> {
        let rest = uri.strip_prefix("http://")?;
        let host = ["127.0.0.1", "[::1]", "localhost"]
            .into_iter()
            .find(|host| rest.starts_with(host))?;
        let mut tail = &rest[host.len()..];
        if let Some(after) = tail.strip_prefix(':') {
            let end = after.find(['/', '?']).unwrap_or(after.len());
            let (port, behind) = after.split_at(end);
            let numeric = !port.is_empty()
                && port.bytes().all(|b| b.is_ascii_digit())
                && port.parse::<u16>().is_ok_and(|port| port > 0);
            if port != "*" && !numeric {
                return None;
            }
            tail = behind;
        }
        let tail = match tail.as_bytes().first() {
            None => Cow::Borrowed("/"),
            Some(b'/') => Cow::Borrowed(tail),
            Some(b'?') => Cow::Owned(format!("/{tail}")),
            // `localhost.evil.example`, `127.0.0.1@evil.example`
            Some(_) => return None,
        };
        Some(Self { host, tail })
    }
}

fn authority(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("//")?;
    Some(&rest[..rest.find(['/', '?']).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_what_may_be_registered() {
        let web = |host: &str| {
            Ok(Destination::Web {
                host: host.to_owned(),
            })
        };
        let app = |scheme: &str| {
            Ok(Destination::App {
                scheme: scheme.to_owned(),
            })
        };
        assert_eq!(
            check("https://claude.ai/api/mcp/auth_callback"),
            web("claude.ai")
        );
        assert_eq!(
            check("https://app.example:8443/cb?x=1"),
            web("app.example:8443")
        );
        for loopback in [
            "http://127.0.0.1:33418/",
            "http://127.0.0.1",
            "http://localhost/callback",
            "http://localhost:*/callback",
            "http://[::1]:8080/cb",
        ] {
            assert_eq!(check(loopback), Ok(Destination::Loopback), "{loopback}");
        }
        assert_eq!(
            check("cursor://anysphere.cursor-mcp/oauth/callback"),
            app("cursor")
        );
        assert_eq!(check("com.example.app:/oauth"), app("com.example.app"));
    }

    #[test]
    fn c14_what_may_not_be_registered() {
        for (uri, why) in [
            ("https://good.example/cb#x", InvalidRedirect::Fragment),
            ("https://u:p@good.example/cb", InvalidRedirect::UserInfo),
            (
                "https://good.example@evil.example/",
                InvalidRedirect::UserInfo,
            ),
            (
                "https://evil.example\\@good.example/",
                InvalidRedirect::Syntax,
            ),
            ("https://*.example/cb", InvalidRedirect::Wildcard),
            ("https://good.example:*/cb", InvalidRedirect::Wildcard),
            ("http://localhost:*/*", InvalidRedirect::Wildcard),
            ("http://good.example/cb", InvalidRedirect::Host),
            (
                "http://localhost.evil.example/callback",
                InvalidRedirect::Host,
            ),
            ("http://127.0.0.1@evil.example/", InvalidRedirect::UserInfo),
            ("http://[::ffff:127.0.0.1]/cb", InvalidRedirect::Host),
            ("http://2130706433/cb", InvalidRedirect::Host),
            ("https://2130706433/cb", InvalidRedirect::Host),
            ("https://127.0.0.1/cb", InvalidRedirect::Host),
            ("https://ex%61mple.com/cb", InvalidRedirect::Host),
            ("https://bücher.example/cb", InvalidRedirect::Syntax),
            ("https://good.example/a b", InvalidRedirect::Syntax),
            ("https://good.example/\ncb", InvalidRedirect::Syntax),
            ("HTTPS://good.example/cb", InvalidRedirect::Syntax),
            ("javascript:alert(1)", InvalidRedirect::Scheme),
            ("data:text/html,x", InvalidRedirect::Scheme),
            ("file:///etc/passwd", InvalidRedirect::Scheme),
            ("intent://x", InvalidRedirect::Scheme),
            ("chrome-extension://x/cb", InvalidRedirect::Scheme),
            ("ms-settings:x", InvalidRedirect::Scheme),
            ("/relative", InvalidRedirect::Syntax),
            ("https:///cb", InvalidRedirect::Host),
            ("", InvalidRedirect::Syntax),
        ] {
            assert_eq!(check(uri), Err(why), "{uri}");
        }
        assert_eq!(
            check(&format!("https://good.example/{}", "a".repeat(2048))),
            Err(InvalidRedirect::Length)
        );
    }

    /// REVIEW-S-9: RFC 8252 §7.1.
    #[test]
    fn s9_a_private_scheme_has_a_dot_or_is_that_of_a_known_app() {
        for scheme in KNOWN_SCHEMES {
            let uri = format!("{scheme}://oauth/callback");
            assert!(matches!(check(&uri), Ok(Destination::App { .. })), "{uri}");
        }
        for undotted in ["myapp://cb", "acme:/cb", "web+acme://cb"] {
            assert_eq!(
                check(undotted),
                Err(InvalidRedirect::Undotted),
                "{undotted}"
            );
            assert!(
                matches(undotted, undotted),
                "{undotted}: registered before the rule"
            );
        }
        for system in [
            "search-ms:query=x",
            "search:x",
            "smb://evil.example/share",
            "ldap://evil.example/x",
            "itms-services://?action=download-manifest&url=x",
            "microsoft-edge:https://evil.example",
            "ie.http:https://evil.example",
            "telnet://evil.example",
            "nfs://evil.example/x",
            "steam://run/1",
            "x-apple.systempreferences:com.apple.preference",
        ] {
            assert_eq!(check(system), Err(InvalidRedirect::Scheme), "{system}");
            assert!(
                !matches(system, system),
                "{system}: not answered, whenever it was registered"
            );
        }
    }

    #[test]
    fn a3_case_4_anything_but_the_same_bytes_is_refused() {
        let registered = "https://good.example/cb";
        assert!(matches(registered, registered));
        for other in [
            "https://good.example/cb/",
            "https://good.example/cb/x",
            "https://good.example/cb?x=1",
            "https://good.example/CB",
            "https://good.example/%63b",
            "https://good.example/./cb",
            "https://good.example/%2e/cb",
            "https://good.example:443/cb",
            "https://good.example@evil.example/cb",
            "https://good.example.evil.example/cb",
            "https://evil.example\\@good.example/cb",
            "http://good.example/cb",
            "https://good.example/cb#",
        ] {
            assert!(!matches(registered, other), "{other}");
        }
    }

    #[test]
    fn a3_case_6_the_port_of_a_loopback_address_is_free() {
        for registered in [
            "http://127.0.0.1/callback",
            "http://127.0.0.1:33418/callback",
            "http://127.0.0.1:*/callback",
        ] {
            for port in ["", ":1", ":33418", ":65535"] {
                assert!(
                    matches(registered, &format!("http://127.0.0.1{port}/callback")),
                    "{registered} {port}"
                );
            }
            for bad in [
                "http://127.0.0.1:*/callback",
                "http://127.0.0.1:0/callback",
                "http://127.0.0.1:65536/callback",
                "http://127.0.0.1:/callback",
                "http://127.0.0.1:80x/callback",
                "http://127.0.0.1:1/other",
                "http://127.0.0.1:1/callback?x",
                "https://127.0.0.1:1/callback",
            ] {
                assert!(!matches(registered, bad), "{registered} {bad}");
            }
        }
        assert!(
            matches("http://127.0.0.1", "http://127.0.0.1:9/"),
            "an empty path is /"
        );
        assert!(matches("http://[::1]/cb", "http://[::1]:7/cb"));
        assert!(matches(
            "http://localhost:1/cb?a=b",
            "http://localhost:2/cb?a=b"
        ));
    }

    #[test]
    fn a3_cases_7_to_9_another_spelling_of_loopback_is_another_host() {
        assert!(!matches("http://localhost/cb", "http://127.0.0.1/cb"));
        assert!(!matches("http://127.0.0.1/cb", "http://[::1]/cb"));
        assert!(!matches(
            "http://localhost/cb",
            "http://localhost.evil.example/cb"
        ));
        assert!(!matches("http://localhost/cb", "http://LOCALHOST/cb"));
        assert!(!matches(
            "http://127.0.0.1/cb",
            "http://127.0.0.1:1@evil.example/cb"
        ));
        assert!(!matches(
            "http://127.0.0.1/cb",
            "http://[::ffff:127.0.0.1]/cb"
        ));
        assert!(!matches("http://127.0.0.1/cb", "http://2130706433/cb"));
    }

    #[test]
    fn c10_ports_of_loopback_addresses_do_not_make_a_new_client() {
        assert_eq!(
            without_loopback_port("http://127.0.0.1:8123/cb"),
            "http://127.0.0.1/cb"
        );
        assert_eq!(
            without_loopback_port("http://localhost:*"),
            "http://localhost/"
        );
        assert_eq!(
            without_loopback_port("https://a.example:8123/cb"),
            "https://a.example:8123/cb"
        );
    }
}
