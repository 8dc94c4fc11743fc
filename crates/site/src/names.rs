//! Names that clients give themselves: cleaned for display, and compared with those they might
//! imitate (AUTH-C7).

use unicode_normalization::UnicodeNormalization;

/// Longest name shown, in characters.
const MAX_CHARS: usize = 64;

/// Cleans a name: one line, NFC, without control, bidirectional and zero-width characters, at most
/// 64 characters. `None` if nothing is left.
pub fn clean(name: &str) -> Option<String> {
    let mut out = String::new();
    // NFC joins characters that only an invisible one separated.
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

/// Characters that look like a Latin letter, or are written for one, after compatibility
/// decomposition and lower case (UTS 39, and more): other scripts, small capitals, letters with
/// strokes and hooks, digits.
const ALIKE: [(char, &str); 26] = [
    ('a', "аαɑ@4ᴀⱥꭺᎪꓮⲁ"),
    ('b', "вьβʙɓƀᏼꓐⲃ"),
    ('c', "сϲᴄƈȼ¢ꮯᏟꓚⲥ"),
    ('d', "ԁᴅđðɗɖꭰᎠꓓ"),
    ('e', "еєε3ᴇɇǝꭼᎬꓰⲉ"),
    ('f', "ꜰƒꓝ"),
    ('g', "ɡɢɠǥꮐᏀꓖ"),
    ('h', "һнʜħꮋᎻꓧⲏ"),
    ('i', "іιı1|!ɪɩɨꓲⲓ"),
    ('j', "јᴊɉꭻᎫꓙ"),
    ('k', "кκᴋƙꮶᏦꓗⲕ"),
    ('l', "ӏʟłƚɫꮮᏞꓡ"),
    ('m', "мᴍꮇᎷꓟⲙ"),
    ('n', "пηɴɲƞոꓠⲛ"),
    ('o', "оοօ0ᴏøɵꓳⲟ"),
    ('p', "рρᴘƥꮲᏢꓑⲣ"),
    ('q', "ԛɋꞯ"),
    ('r', "гʀɾɍꮢᏒꓣ"),
    ('s', "ѕ$5ꜱʂƨꮪᏚꓢ"),
    ('t', "тτᴛŧƭ7ꭲᎢꓔⲧ"),
    ('u', "υսцᴜʉꮜᏌꓴ"),
    ('v', "νѵᴠʋꮩᏙꓦ"),
    ('w', "ԝωᴡꮃᎳꓪ"),
    ('x', "хχꓫⲭ"),
    ('y', "уγʏƴɏꭹᎩꓬⲩ"),
    ('z', "ᴢƶȥꮓᏃꓜ"),
];

/// Reduces a name to its letters in lower case, with look-alikes as Latin letters: `Сlaudе  AI`,
/// `ᴄʟᴀᴜᴅᴇ-ᴀɪ` and `Claude-A1` are `ciaudeai`.
pub fn skeleton(name: &str) -> String {
    let mut out = String::new();
    for c in name.nfkd().flat_map(char::to_lowercase) {
        let folded = ALIKE
            .iter()
            .find(|(_, alike)| alike.contains(c))
            .map_or(c, |(latin, _)| *latin);
        if folded.is_alphanumeric() {
            // Capital i, small L and one look the same.
            out.push(if folded == 'l' { 'i' } else { folded });
        }
    }
    // Pairs of letters that look like one letter.
    out.replace("rn", "m").replace("vv", "w")
}

/// The skeletons of the words of a name.
pub fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| c.is_whitespace() || ['-', '_', '.', '/', ':', '(', ')'].contains(&c))
        .map(skeleton)
        .filter(|word| !word.is_empty())
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
    fn case_42_s15_look_alikes_have_the_same_skeleton() {
        for alike in [
            "Claude",
            "CLAUDE",
            "Сlaude",
            "Cl\u{0430}ude",
            "C l a u d e",
            "CIaude",
            "C1aude",
            "ᴄʟᴀᴜᴅᴇ",
            "ᏟᏞᎪᏌᎠᎬ",
            "ꓚꓡꓮꓴꓓꓰ",
            "ⒸⓁⒶⓊⒹⒺ",
            "𝒞𝓁𝒶𝓊𝒹ℯ",
            "Ｃｌａｕｄｅ",
            "Cłaude",
            "Cl4ude",
        ] {
            assert_eq!(skeleton(alike), skeleton("claude"), "{alike}");
        }
        assert_eq!(skeleton("Gernini"), skeleton("Gemini"));
        assert_ne!(skeleton("Cloud"), skeleton("Claude"));
        assert!(words("My Zed-like tool").eq(["my", "zed", "iike", "tooi"]));
    }
}
