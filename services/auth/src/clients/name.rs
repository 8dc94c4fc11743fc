//! Names that clients give themselves: cleaned for display, and compared with those they might imitate (`auth.md` C7).

use unicode_normalization::UnicodeNormalization;

/// Longest name shown.
const MAX_CHARS: usize = 64;

/// One line, NFC, without control, bidirectional and zero-width characters, at most 64 characters. `None` if nothing is left.
pub(crate) fn clean(name: &str) -> Option<String> {
    let mut out = String::new();
    // What stood apart for something invisible alone comes together.
    for c in name.chars().filter(|c| !is_invisible(*c)).nfc() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c == ' ' && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        out.push(c);
        if out.chars().count() == MAX_CHARS {
            break;
        }
    }
    out.truncate(out.trim_end().len());
    (!out.is_empty()).then_some(out)
}

fn is_invisible(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(
            c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Letters only, in lower case, with look-alikes of other scripts turned into Latin: `Сlaudе  AI` and `Claude-A1` are `claudeai`.
pub(crate) fn skeleton(name: &str) -> String {
    let mut out = String::new();
    for c in name.nfkd().flat_map(char::to_lowercase) {
        let folded = match c {
            'а' | 'α' | 'ɑ' | '@' => 'a',
            'в' | 'ь' | 'β' => 'b',
            'с' | 'ϲ' => 'c',
            'ԁ' => 'd',
            'е' | 'є' | 'ε' | '3' => 'e',
            'ɡ' => 'g',
            'һ' | 'н' => 'h',
            'і' | 'ι' | 'ı' | '1' | '|' | '!' => 'i',
            'ј' => 'j',
            'к' | 'κ' => 'k',
            'ӏ' => 'l',
            'м' => 'm',
            'ո' | 'п' | 'η' => 'n',
            'о' | 'ο' | 'օ' | '0' => 'o',
            'р' | 'ρ' => 'p',
            'ԛ' => 'q',
            'г' => 'r',
            'ѕ' | '$' | '5' => 's',
            'т' | 'τ' => 't',
            'υ' | 'ս' | 'ц' => 'u',
            'ν' | 'ѵ' => 'v',
            'ԝ' | 'ω' => 'w',
            'х' | 'χ' => 'x',
            'у' | 'γ' => 'y',
            c => c,
        };
        if folded.is_alphanumeric() {
            // Capital i, small L and one look the same.
            out.push(if folded == 'l' { 'i' } else { folded });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_43_names_are_one_clean_line() {
        assert_eq!(
            clean("  My\u{202e} app\r\n\tof\u{200b} mine "),
            Some("My app of mine".to_owned())
        );
        assert_eq!(clean("\u{200b}\u{202e}"), None);
        let accented = clean("Cafe\u{200b}\u{301}");
        assert_eq!(accented.as_deref(), Some("Caf\u{e9}"));
        assert_eq!(clean(&"x".repeat(100)).unwrap().len(), 64);
    }

    #[test]
    fn case_42_look_alikes_have_the_same_skeleton() {
        for alike in [
            "Claude",
            "CLAUDE",
            "Сlaude",
            "Cl\u{0430}ude",
            "C l a u d e",
            "CIaude",
            "C1aude",
        ] {
            assert_eq!(skeleton(alike), skeleton("claude"), "{alike}");
        }
        assert_ne!(skeleton("Cloud"), skeleton("Claude"));
    }
}
