//! Detectors of secrets and personal data in texts (CAPTURE-4).
//!
//! They know forms, not meanings: a password in a sentence has no form. A text that has one of the
//! forms loses it before it is sealed.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

/// The text in the place of a secret.
pub const MASK: &str = "••••";

/// Characters without a space from which on a text is data: Base64 may have anything inside.
const DATA: usize = 512;

/// The forms, in the order in which they are tried at a place.
const FORMS: &str = r#"(?x)
    (?P<pem> -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY[A-Z\ ]*-----
        (?s:.*?) (?: -----END\ [A-Z0-9\ ]*PRIVATE\ KEY[A-Z\ ]*----- | \z ) )
  | (?P<jwt> \b eyJ [A-Za-z0-9_-]{6,} \. [A-Za-z0-9_-]{6,} (?: \. [A-Za-z0-9_-]* ){0,3} )
  | (?P<url> :// [^/\s:@"']* : ) (?P<url_password> [^/\s@"']+ ) @
  | (?P<prefixed> \b (?:
        sk-[A-Za-z0-9_-]{16,} | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/=_-]{16,}
      | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
      | xox[a-z]-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{8,} | (?:AKIA|ASIA)[A-Z0-9]{16}
      | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,} | GOCSPX-[A-Za-z0-9_-]{16,}
      | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{16,} | hf_[A-Za-z0-9]{20,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | dop_v1_[a-f0-9]{32,} | shpat_[a-fA-F0-9]{20,}
      | secret_[A-Za-z0-9]{32,} | AGE-SECRET-KEY-1[A-Z0-9]{20,}
      | (?:ac|rt|cs|sid|bid|lnk|mcpk|mcpa|ptlp|ptlw)_[A-Za-z0-9_-]{32,} ) )
  | (?P<named> (?i) (?-u:[\w-])* (?: password | passwd | passphrase | secret | token | api[_-]?key
        | access[_-]?key | private[_-]?key | authorization | credential | cookie ) (?-u:[\w-])*
        [\\"']* \s* [:=] \s* [\\"']* )
    (?P<value> (?i: (?: bearer | basic | digest | token ) \s+ )? [^\s"'&<>]+ )
  | (?P<scheme> (?i) \b (?: bearer | basic ) \s+ ) (?P<presented> [A-Za-z0-9._~+/=-]{8,} )
  | (?P<email> [^\s@<>"'(),:;\\\[\]{}|/=&]+ @ [A-Za-z0-9-]+ (?: \. [A-Za-z0-9-]+ )+ )
  | (?P<card> \b [2-6] (?: [\ -]? \d ){12,18} \b )
"#;

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORMS).ok());

/// The text, at most `keep` bytes of it, with a mask in each place that a detector finds. Detectors
/// read the whole text: a secret that the cut divides is masked, too. `found` grows by the number
/// of places.
pub(crate) fn masked<'t>(text: &'t str, keep: usize, found: &mut u32) -> Cow<'t, str> {
    let Some(pattern) = &*PATTERN else {
        // No pattern, no text.
        *found += 1;
        return Cow::Borrowed(MASK);
    };
    let keep = boundary(text, keep);
    let mut out = String::new();
    let (mut at, mut is_changed) = (0, false);
    for captures in pattern.captures_iter(text) {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        if whole.start() >= keep {
            break;
        }
        if let Some(replacement) = replacement(&captures) {
            out.push_str(text.get(at..whole.start()).unwrap_or_default());
            out.push_str(&replacement);
            (at, is_changed) = (whole.end(), true);
            *found += 1;
        }
    }
    let rest = text.get(at..keep).unwrap_or_default();
    if is_changed {
        out.push_str(rest);
        Cow::Owned(out)
    } else {
        Cow::Borrowed(rest)
    }
}

/// The replacement of a match; `None` if it only looks like a secret.
fn replacement(captures: &Captures<'_>) -> Option<String> {
    let text = |name| captures.name(name).map(|found| found.as_str());
    if let Some(before) = text("url") {
        return Some(format!("{before}{MASK}@"));
    }
    if let (Some(before), Some(value)) = (text("named"), text("value")) {
        // Counts of tokens are no tokens.
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_secret = match name_of(before) {
            Some(Hides::Everything) => true,
            Some(Hides::Texts) => !is_number,
            None => false,
        };
        return is_secret.then(|| format!("{before}{MASK}"));
    }
    if let (Some(before), Some(token)) = (text("scheme"), text("presented")) {
        // Words follow "bearer" too.
        let is_word = token.bytes().all(|byte| byte.is_ascii_lowercase());
        return (!is_word || token.len() >= 24).then(|| format!("{before}{MASK}"));
    }
    if let Some(number) = text("card") {
        return is_card(number).then(|| MASK.to_owned());
    }
    Some(MASK.to_owned())
}

/// The meaning of a name for the values below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hides {
    /// Texts are secrets. Numbers are counts.
    Texts,
    /// Texts and numbers are secrets.
    Everything,
}

/// The meaning of a member's name for its value; `None` for an ordinary name.
pub(crate) fn name_of(name: &str) -> Option<Hides> {
    const SECRET: [&str; 11] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "accesskey",
        "privatekey",
        "authorization",
        "credential",
        "cookie",
        "cardnumber",
    ];
    /// Names with "token" in them that say something about tokens.
    const ABOUT: [&str; 4] = ["tokentype", "tokenizer", "tokencount", "tokenusage"];
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|sign| sign.to_ascii_lowercase()).collect();
    let is = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    if is(&SECRET) || matches!(&*plain, "pwd" | "pin" | "cvv" | "cvc" | "otp") {
        return Some(Hides::Everything);
    }
    (plain.contains("token") && !is(&ABOUT)).then_some(Hides::Texts)
}

/// Whether digits are those of a payment card: 13 to 19 that pass the check of Luhn (ISO/IEC 7812-1,
/// annex B) and begin as card networks do.
pub(crate) fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|sign| sign.to_digit(10)).collect();
    if !(13..=19).contains(&digits.len()) || !matches!(digits.first(), Some(2..=6)) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The last boundary of characters up to `at`.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A text without its runs of data: at least 512 characters without a space or punctuation. Base64
/// and digests of any length may have anything inside.
pub(crate) fn without_data<'t>(text: &'t str, found: &mut u32) -> Cow<'t, str> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-=".contains(&byte);
    let mut out: Option<String> = None;
    let (mut rest, mut at) = (text, 0);
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|byte| is_part(*byte)).count();
        let between = rest
            .bytes()
            .skip(length)
            .take_while(|byte| !is_part(*byte))
            .count();
        let (run, after) = rest.split_at(length);
        let (gap, after) = after.split_at(between);
        if length >= DATA {
            *found += 1;
            let out = out.get_or_insert_with(|| text.get(..at).unwrap_or_default().to_owned());
            out.push_str(&format!("{MASK} ({length} characters of data)"));
        } else if let Some(out) = &mut out {
            out.push_str(run);
        }
        if let Some(out) = &mut out {
            out.push_str(gap);
        }
        at += length + between;
        rest = after;
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}
