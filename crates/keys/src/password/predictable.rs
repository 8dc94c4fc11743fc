//! What people put around a password when it has to be longer, and what attackers try with every
//! word of their lists: years, seasons, months, days, keys that lie side by side, and digits and
//! signs at the end (REVIEW-S-16).

/// Words that stand for the time at which a password had to be changed.
const TIMES: &[&str] = &[
    "spring",
    "summer",
    "autumn",
    "winter",
    "frühling",
    "fruehling",
    "sommer",
    "herbst",
    "printemps",
    "automne",
    "hiver",
    "primavera",
    "verano",
    "invierno",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "januar",
    "februar",
    "märz",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
];

/// Keys that lie side by side: rows of QWERTY, QWERTZ and AZERTY, and the columns of the first.
const WALKS: &[&str] = &[
    "1234567890",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiopü",
    "yxcvbnm",
    "azertyuiop",
    "qsdfghjklm",
    "wxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "qazwsxedcrfvtgbyhnujmikolp",
    "!@#$%^&*()",
    "abcdefghijklmnopqrstuvwxyz",
];
/// Fewer keys side by side stand in words, too: "property", "first".
const WALK: usize = 5;
/// The same of digits and signs.
const SHORT_WALK: usize = 4;
/// Digits at the end, and signs around them.
const END_DIGITS: usize = 4;
const END_SIGNS: usize = 3;

/// Well-known example passwords that stand in no list of words.
const EXAMPLES: &[&str] = &["correcthorsebatterystaple", "troubadour", "tr0ub4dor3"];

/// Returns whether it is a well-known example, in any spelling. `lower` is lower case.
pub(super) fn is_example(lower: &str) -> bool {
    let squeezed: String = lower.chars().filter(|c| c.is_alphanumeric()).collect();
    EXAMPLES.contains(&squeezed.as_str())
}

/// Returns the rest of a lower-case password after all predictable parts are removed.
pub(super) fn core(lower: &str) -> String {
    let mut left = lower.to_owned();
    for time in TIMES {
        left = left.replace(time, "");
    }
    let left = without_years(&without_walks(&left));
    without_end(&left).to_owned()
}

/// Without digits at the end, and signs before and behind them.
fn without_end(text: &str) -> &str {
    let text = without_signs(text);
    let digits = text.chars().rev().take_while(char::is_ascii_digit).count();
    let text = &text[..text.len() - digits.min(END_DIGITS)];
    without_signs(text)
}

/// Without signs at the end: a few, or any number of the same one.
fn without_signs(text: &str) -> &str {
    let is_sign = |c: &char| !c.is_alphanumeric();
    let signs: Vec<char> = text.chars().rev().take_while(is_sign).collect();
    let same = signs
        .iter()
        .take_while(|c| Some(*c) == signs.first())
        .count();
    let gone = signs.len().min(END_SIGNS.max(same));
    let bytes: usize = signs[..gone].iter().map(|c| c.len_utf8()).sum();
    &text[..text.len() - bytes]
}

/// Without four digits that are a year of the last or this century and no part of a longer number.
fn without_years(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = &rest[..digits];
        if digits > 0 {
            let is_year = digits == 4 && (number.starts_with("19") || number.starts_with("20"));
            if !is_year {
                out.push_str(number);
            }
            rest = &rest[digits..];
            continue;
        }
        let until = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        out.push_str(&rest[..until]);
        rest = &rest[until..];
    }
    out
}

/// Without keys that lie side by side, forwards or backwards.
fn without_walks(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let length = longest_walk(&chars[at..]);
        let least = if chars[at].is_alphabetic() {
            WALK
        } else {
            SHORT_WALK
        };
        if length >= least {
            at += length;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// How many of the first characters lie side by side.
fn longest_walk(chars: &[char]) -> usize {
    let mut longest = 0;
    for walk in WALKS {
        let keys: Vec<char> = walk.chars().collect();
        let back: Vec<char> = keys.iter().rev().copied().collect();
        for keys in [&keys, &back] {
            let Some(begin) = keys.iter().position(|key| Some(key) == chars.first()) else {
                continue;
            };
            let same = keys[begin..]
                .iter()
                .zip(chars)
                .take_while(|(key, typed)| key == typed)
                .count();
            longest = longest.max(same);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_years_seasons_keys_and_ends_are_taken_out_and_words_are_left() {
        for (password, left) in [
            ("summer2026!!!", ""),
            ("welcome2024!!", "welcome"),
            ("dragon123!", "dragon"),
            ("qwertyuiop1234567890", ""),
            ("poiuytrewq0987654321", ""),
            ("1qaz2wsx3edc4rfv", ""),
            ("azertyuiop-hello", "-hello"),
            ("monday-winter-1999", ""),
            ("liberty property first", "liberty property first"),
            ("x2024y", "xy"),
            ("593817264058", "59381726"),
            ("двенадцать слонов!", "двенадцать слонов"),
        ] {
            assert_eq!(core(password), left, "{password}");
        }
        assert!(is_example("correct horse battery-staple!"));
    }
}
