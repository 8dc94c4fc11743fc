//! Names in URLs: of tenants and of their servers (AUTH-M3, AUTH-5.1).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A slug: 3–40 characters of `a–z`, `0–9` and `-`, not at the ends, no `--` at positions 3–4
/// (reserved by IDNA, so that a slug can become a subdomain later), and not a reserved word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// Words that a tenant cannot have: they are, or may become, part of a URL of ours, or would pass
/// for us.
const RESERVED: &[&str] = &[
    "about",
    "account",
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "billing",
    "blog",
    "console",
    "dev",
    "docs",
    "help",
    "internal",
    "login",
    "logout",
    "mail",
    "mcp",
    "messages",
    "metrics",
    "oauth",
    "official",
    "portolan",
    "root",
    "security",
    "settings",
    "signup",
    "sse",
    "static",
    "status",
    "support",
    "system",
    "verify",
    "well-known",
    "workspace",
    "www",
];

/// The reason why a text is not a slug. The message explains how to correct it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSlug {
    /// Shorter than 3 or longer than 40 characters.
    #[error("use 3 to 40 characters")]
    Length,
    /// Something else than lower-case letters, digits and inner hyphens.
    #[error("use lower-case letters, digits and hyphens, and begin and end with a letter or digit")]
    Characters,
    /// `--` at positions 3 and 4.
    #[error("two hyphens cannot follow the first two characters")]
    Punycode,
    /// A word kept for the platform.
    #[error("this name is reserved, choose another")]
    Reserved,
}

impl Slug {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a proposal out of a display name, as the console does: `Acme GmbH` → `acme-gmbh`.
    /// `None` when nothing usable is left.
    pub fn suggest(name: &str) -> Option<Self> {
        let mut text = String::new();
        for c in name.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                text.push(c);
            } else if !text.is_empty() && !text.ends_with('-') {
                text.push('-');
            }
        }
        text.truncate(40);
        text.trim_end_matches('-').parse().ok()
    }
}

impl FromStr for Slug {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        if !(3..=40).contains(&bytes.len()) {
            return Err(InvalidSlug::Length);
        }
        let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !bytes.iter().all(|b| plain(b) || *b == b'-')
            || !plain(&bytes[0])
            || !bytes.last().is_some_and(plain)
        {
            return Err(InvalidSlug::Characters);
        }
        if bytes.get(2..4) == Some(b"--") {
            return Err(InvalidSlug::Punycode);
        }
        if RESERVED.contains(&text) {
            return Err(InvalidSlug::Reserved);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Slug {
    type Error = InvalidSlug;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}
impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_m3() {
        for good in ["acme", "a1b", "acme-gmbh", "abc-def-1", &"a".repeat(40)] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
        }
        for (bad, why) in [
            ("ab", InvalidSlug::Length),
            (&"a".repeat(41), InvalidSlug::Length),
            ("Acme", InvalidSlug::Characters),
            ("-acme", InvalidSlug::Characters),
            ("acme-", InvalidSlug::Characters),
            ("ac_me", InvalidSlug::Characters),
            ("ämter", InvalidSlug::Characters),
            ("xn--acme", InvalidSlug::Punycode),
            ("mcp", InvalidSlug::Reserved),
        ] {
            assert_eq!(bad.parse::<Slug>(), Err(why), "{bad}");
        }
    }

    #[test]
    fn a_display_name_suggests_a_slug() {
        assert_eq!(
            Slug::suggest("  Acme GmbH & Co. ").map(String::from),
            Some("acme-gmbh-co".into())
        );
        assert_eq!(Slug::suggest("日本"), None);
    }
}
