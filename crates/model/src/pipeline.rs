//! Trusted pipelines: which jobs of a CI system get a token of the management API
//! (API-16, API-17, API-20).

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::Serialize;

/// Longest subject pattern, audience and value of a claim, in characters.
pub const MAX_TEXT: usize = 255;
/// Most `*` of a subject pattern.
const MAX_STARS: usize = 5;
/// Most required claims beside `sub`.
pub const MAX_CLAIMS: usize = 10;
/// Longest name of a claim, in bytes.
const MAX_NAME: usize = 100;

/// Claims that every trust checks by itself.
const RESERVED: [&str; 7] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];

/// The subjects that a trust admits: a text whose parts are separated by `:`, as CI systems write
/// `sub`.
///
/// `*` stands for any characters of one part. At the end of the pattern it stands for all that
/// follows, with its colons. So one part cannot pass for two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPattern(String);

/// The text is no subject pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubject {
    /// Empty, too long, or with control characters.
    #[error("1 to 255 characters, without control characters")]
    Form,
    /// It begins with `*`.
    #[error("it begins with a text and not with *")]
    Open,
    /// Too many `*`.
    #[error("at most 5 *")]
    Stars,
}

/// True for 1 to 255 characters without control characters.
pub fn is_plain_text(text: &str) -> bool {
    (1..=MAX_TEXT).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// True for a name of a claim that a trust may require: 1 to 100 letters, digits and `_-.:/`, and
/// none that each trust checks by itself.
pub fn is_claim_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !RESERVED.contains(&name)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte))
}

impl SubjectPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`InvalidSubject`].
    pub fn parse(text: &str) -> Result<Self, InvalidSubject> {
        if !is_plain_text(text) {
            return Err(InvalidSubject::Form);
        }
        if text.starts_with('*') {
            return Err(InvalidSubject::Open);
        }
        if text.matches('*').count() > MAX_STARS {
            return Err(InvalidSubject::Stars);
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the pattern admits this `sub`. The time is linear in both lengths for each `*`.
    pub fn admits(&self, subject: &str) -> bool {
        let parts: Vec<&str> = self.0.split(':').collect();
        let given: Vec<&str> = subject.split(':').collect();
        let is_long_enough = if self.0.ends_with('*') {
            given.len() >= parts.len()
        } else {
            given.len() == parts.len()
        };
        is_long_enough
            && parts
                .iter()
                .zip(given)
                .all(|(part, text)| part_admits(part, text))
    }
}

/// True if `text` is `part`, with any characters for each `*`.
fn part_admits(part: &str, text: &str) -> bool {
    let Some((head, rest)) = part.split_once('*') else {
        return part == text;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = text
        .strip_prefix(head)
        .and_then(|text| text.strip_suffix(tail));
    let Some(mut left) = inner else { return false };
    // The first place of each piece leaves the most for the pieces after it.
    for piece in middle.split('*') {
        let Some(at) = left.find(piece) else {
            return false;
        };
        left = &left[at + piece.len()..];
    }
    true
}

/// An issuer that signs for the jobs of all its customers.
struct SharedIssuer {
    issuer: &'static str,
    /// The beginning of `sub` before the owner, which a `/` ends.
    beginning: &'static str,
    /// Claims, each naming the owner or the repository.
    owners: [&'static str; 4],
}

const SHARED: [SharedIssuer; 2] = [
    SharedIssuer {
        issuer: "https://token.actions.githubusercontent.com",
        beginning: "repo:",
        owners: [
            "repository",
            "repository_id",
            "repository_owner",
            "repository_owner_id",
        ],
    },
    SharedIssuer {
        issuer: "https://gitlab.com",
        beginning: "project_path:",
        owners: [
            "project_path",
            "project_id",
            "namespace_path",
            "namespace_id",
        ],
    },
];

/// True unless the conditions would admit jobs of strangers: an issuer that signs for everyone
/// needs an owner, in the subject or in a claim (API-17).
pub fn names_an_owner(
    issuer: &str,
    subject: &SubjectPattern,
    claims: &BTreeMap<String, String>,
) -> bool {
    let Some(shared) = SHARED.iter().find(|shared| shared.issuer == issuer) else {
        return true;
    };
    let in_subject = subject
        .as_str()
        .strip_prefix(shared.beginning)
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(owner, _)| !owner.is_empty() && !owner.contains(['*', ':']));
    in_subject || shared.owners.iter().any(|name| claims.contains_key(*name))
}

/// Why a job got no token, for the admins of the workspace (API-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// Metadata or keys of the issuer could not be read.
    Issuer,
    /// Header or claims are not acceptable.
    Form,
    /// Signed by a key that the issuer does not publish.
    Key,
    /// The signature is wrong.
    Signature,
    /// Expired, from the future, or valid for too long.
    Time,
    /// Another audience, or several.
    Audience,
    /// The subject does not fit the pattern.
    Subject,
    /// A required claim is absent or has another value.
    Claim,
    /// The JWT was used before.
    Replay,
}

impl RefusalReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Issuer,
        Self::Form,
        Self::Key,
        Self::Signature,
        Self::Time,
        Self::Audience,
        Self::Subject,
        Self::Claim,
        Self::Replay,
    ];

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Issuer => "issuer",
            Self::Form => "form",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Time => "time",
            Self::Audience => "audience",
            Self::Subject => "subject",
            Self::Claim => "claim",
            Self::Replay => "replay",
        }
    }

    /// The reason as one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Issuer => "The metadata or the keys of the issuer could not be read.",
            Self::Form => "The header or a claim of the token is not acceptable.",
            Self::Key => "The issuer does not publish the key that signed the token.",
            Self::Signature => "The signature of the token is wrong.",
            Self::Time => "The token has expired, is not valid yet, or is valid for over 24 hours.",
            Self::Audience => "The audience of the token is another one, or one of several.",
            Self::Subject => "The subject of the job does not fit.",
            Self::Claim => "A required claim is missing or has another value.",
            Self::Replay => "The token was used before. A job needs a new one for each exchange.",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is no reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a reason of a refusal")]
pub struct InvalidReason;

impl FromStr for RefusalReason {
    type Err = InvalidReason;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or(InvalidReason)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> SubjectPattern {
        SubjectPattern::parse(text).unwrap()
    }

    /// Rule: API-17.
    #[test]
    fn a_star_stands_for_one_part_or_for_the_end() {
        let table = [
            (
                "repo:acme/web:ref:refs/heads/main",
                "repo:acme/web:ref:refs/heads/main",
                true,
            ),
            (
                "repo:acme/web:ref:refs/heads/main",
                "repo:acme/web:ref:refs/heads/main2",
                false,
            ),
            (
                "repo:acme/web:ref:refs/heads/main",
                "repo:acme/web:ref",
                false,
            ),
            ("repo:acme/web:*", "repo:acme/web:pull_request", true),
            ("repo:acme/web:*", "repo:acme/web:ref:refs/heads/main", true),
            ("repo:acme/web:*", "repo:acme/web", false),
            ("repo:acme/web:*", "repo:acme/web2:pull_request", false),
            ("repo:acme/*", "repo:acme/web:environment:prod", true),
            ("repo:acme/*", "repo:acmes/web:environment:prod", false),
            (
                "repo:acme/*:ref:refs/heads/main",
                "repo:acme/web:ref:refs/heads/main",
                true,
            ),
            // An environment whose name looks like a branch.
            (
                "repo:acme/*:ref:refs/heads/main",
                "repo:acme/web:environment:x:ref:refs/heads/main",
                false,
            ),
            (
                "repo:acme/*:ref:refs/heads/main",
                "repo:acme/web:ref:refs/heads/main:x",
                false,
            ),
            (
                "repo:acme/web:ref:refs/tags/v*",
                "repo:acme/web:ref:refs/tags/v1.2",
                true,
            ),
            (
                "repo:acme/web:ref:refs/tags/v*",
                "repo:acme/web:ref:refs/tags/w",
                false,
            ),
            ("a:x*y*z:e", "a:x1y2z:e", true),
            ("a:x*y*z:e", "a:xyz:e", true),
            ("a:x*y*z:e", "a:xz:e", false),
            ("a:xy*yz:e", "a:xyz:e", false),
            ("a:*:e", "a::e", true),
            ("a:*:e", "a:b:c:e", false),
            ("a:é*", "a:éclair", true),
            ("repo:acme/*-prod*", "repo:acme/web-prod:pull_request", true),
            (
                "repo:acme/*-prod*",
                "repo:acme/web:environment:x-prod",
                false,
            ),
        ];
        for (text, subject, is_admitted) in table {
            assert_eq!(
                pattern(text).admits(subject),
                is_admitted,
                "{text} {subject}"
            );
        }
    }

    /// Rule: API-17.
    #[test]
    fn a_pattern_that_is_open_or_too_long_is_refused() {
        use InvalidSubject::{Form, Open, Stars};
        let long = "x".repeat(256);
        let table = [
            ("", Form),
            ("a\nb", Form),
            (long.as_str(), Form),
            ("*", Open),
            ("*:acme", Open),
            ("a*b*c*d*e*f*", Stars),
        ];
        for (text, fault) in table {
            assert_eq!(SubjectPattern::parse(text), Err(fault), "{text}");
        }
        assert!(SubjectPattern::parse(&"x".repeat(255)).is_ok());
        assert!(SubjectPattern::parse("a*b*c*d*e*").is_ok());
    }

    /// Rule: API-17.
    #[test]
    fn an_issuer_of_everyone_needs_an_owner() {
        const GITHUB: &str = "https://token.actions.githubusercontent.com";
        const GITLAB: &str = "https://gitlab.com";
        let names = |issuer: &str, subject: &str, claim: Option<&str>| {
            let claims = claim.map(|name| (name.to_owned(), "acme".to_owned()));
            names_an_owner(issuer, &pattern(subject), &claims.into_iter().collect())
        };
        for (issuer, subject, claim) in [
            (GITHUB, "repo:acme/*", None),
            (GITHUB, "repo:*", Some("repository_owner")),
            (GITHUB, "environment:prod", Some("repository_id")),
            (GITLAB, "project_path:acme/web:*", None),
            (GITLAB, "p*", Some("namespace_path")),
            ("https://gitlab.acme.example", "project_path:*", None),
        ] {
            assert!(names(issuer, subject, claim), "{issuer} {subject}");
        }
        for (issuer, subject, claim) in [
            (GITHUB, "repo:*", None),
            (GITHUB, "repo:*/web:ref:refs/heads/main", None),
            (GITHUB, "repo:ac*/web:ref:refs/heads/main", None),
            (GITHUB, "repo:/web", None),
            (GITHUB, "repo:x:y/web", None),
            (GITHUB, "environment:prod", Some("ref")),
            (GITLAB, "project_path:*", None),
            (GITLAB, "repo:acme/web", None),
        ] {
            assert!(!names(issuer, subject, claim), "{issuer} {subject}");
        }
    }

    /// Rule: API-16.
    #[test]
    fn a_claim_that_every_trust_checks_is_no_further_one() {
        for good in [
            "repository",
            "job_workflow_ref",
            "https://acme.example/x",
            "a.b",
        ] {
            assert!(is_claim_name(good), "{good}");
        }
        for bad in ["", "sub", "aud", "a b", "é", &"x".repeat(101)] {
            assert!(!is_claim_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_reason_reads_back() {
        for reason in RefusalReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(reason));
            assert_eq!(serde_json::json!(reason), reason.as_str());
        }
    }

    /// The same by trying every way to fill the stars.
    fn tried(part: &str, text: &str) -> bool {
        match part.split_once('*') {
            None => part == text,
            Some((head, rest)) => text.strip_prefix(head).is_some_and(|text| {
                (0..=text.len())
                    .filter(|at| text.is_char_boundary(*at))
                    .any(|at| tried(rest, &text[at..]))
            }),
        }
    }

    proptest! {
        /// Rule: API-17.
        #[test]
        fn a_part_admits_what_some_filling_equals(part in "[ab*]{0,6}", text in "[ab]{0,8}") {
            prop_assert_eq!(part_admits(&part, &text), tried(&part, &text));
        }

        /// Rule: API-17.
        #[test]
        fn a_pattern_without_star_admits_itself_alone(text in "[a-c:/]{1,12}", other in "[a-c:/]{1,12}") {
            let exact = pattern(&text);
            prop_assert!(exact.admits(&text));
            prop_assert_eq!(exact.admits(&other), text == other);
        }
    }
}
