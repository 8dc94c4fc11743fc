//! URI templates (RFC 6570, levels 1 and 2), read backwards: which URIs fit, and what their
//! variables are then.
//!
//! `{name}` stands for unreserved and percent-encoded characters, so never for a `/`; `{+name}` for
//! reserved ones too; `{#name}` for a `#` and the same after it. Matching takes time proportional
//! to the length of the URI times the parts of the template, whatever both are.

use std::collections::BTreeMap;

use url::Url;

/// Longest URI, and longest template.
pub const LONGEST_URI: usize = 2_048;
/// Most variables of a template.
const MOST_VARIABLES: usize = 16;

/// Why a text is no template that can be served, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTemplate(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Variable { name: String, reserved: bool },
}

/// A template that can be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<TemplatePart>,
}

impl UriTemplate {
    /// Reads a template. Operators beyond level 2, lists, modifiers and names that stand twice are
    /// refused.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let refuse = |text: &str| Err(InvalidTemplate(text.to_owned()));
        if text.len() > LONGEST_URI {
            return refuse("A template has up to 2048 characters.");
        }
        let mut parts = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((expression, after)) = after.split_once('}') else {
                return refuse("A `{` of the template has no `}`.");
            };
            let (reserved, fragment, name) = match expression.as_bytes().first() {
                Some(b'+') => (true, false, &expression[1..]),
                Some(b'#') => (true, true, &expression[1..]),
                _ => (false, false, expression),
            };
            if !super::prompt::is_argument_name(name) {
                return Err(InvalidTemplate(format!(
                    "`{{{expression}}}` cannot be served: write `{{name}}`, `{{+name}}` or `{{#name}}`, one variable each."
                )));
            }
            if names.contains(&name) {
                return Err(InvalidTemplate(format!(
                    "The variable `{name}` stands twice in the template."
                )));
            }
            let mut literal = literal.to_owned();
            if fragment {
                literal.push('#');
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal));
            } else if !parts.is_empty() {
                return refuse("Two variables of the template have nothing between them.");
            }
            names.push(name);
            let name = name.to_owned();
            parts.push(TemplatePart::Variable { name, reserved });
            rest = after;
        }
        if rest.contains('}') {
            return refuse("A `}` of the template has no `{`.");
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        if names.is_empty() {
            return refuse("A template has at least one variable, such as `{id}`.");
        }
        if names.len() > MOST_VARIABLES {
            return refuse("A template has up to 16 variables.");
        }
        let template = Self { parts };
        // With every variable filled it must be a URI.
        if !is_uri(&template.sample()) {
            return refuse(
                "With its variables filled the template is not a URI: it begins with a scheme such as `notes://`.",
            );
        }
        Ok(template)
    }

    fn sample(&self) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                TemplatePart::Literal(text) => text.as_str(),
                TemplatePart::Variable { .. } => "1",
            })
            .collect()
    }

    /// The names of the variables, in the order in which they stand.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable { name, .. } => Some(name.as_str()),
            TemplatePart::Literal(_) => None,
        })
    }

    /// The variables of a URI that fits, decoded. A variable is never empty, and where several
    /// readings fit, those before take as little as they can.
    pub fn read(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let spans = self.spans(uri)?.into_iter();
        spans
            .map(|(name, text)| Some((name.to_owned(), decode(text)?)))
            .collect()
    }

    /// The URI that another template with the same variables makes of what this one reads, byte for
    /// byte. `None` if it does not fit, or the other one would not read the same.
    pub fn carry(&self, uri: &str, to: &Self) -> Option<String> {
        let values: BTreeMap<&str, &str> = self.spans(uri)?.into_iter().collect();
        let mut made = String::with_capacity(uri.len());
        for part in &to.parts {
            match part {
                TemplatePart::Literal(text) => made.push_str(text),
                TemplatePart::Variable { name, .. } => made.push_str(values.get(name.as_str())?),
            }
        }
        (to.read(&made)? == self.read(uri)?).then_some(made)
    }

    /// The variables as they stand in a URI that fits.
    fn spans<'t, 'u>(&'t self, uri: &'u str) -> Option<Vec<(&'t str, &'u str)>> {
        if uri.len() > LONGEST_URI {
            return None;
        }
        // ends[i][p]: where part i can begin, for it to end at byte p.
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        let mut ends: Vec<Vec<Option<usize>>> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let begins = step(part, uri.as_bytes(), &reached);
            reached = begins.iter().map(Option::is_some).collect();
            ends.push(begins);
        }
        let mut at = uri.len();
        let mut values = Vec::new();
        for (part, begins) in self.parts.iter().zip(&ends).rev() {
            let begin = begins[at]?;
            if let TemplatePart::Variable { name, .. } = part {
                values.push((name.as_str(), uri.get(begin..at)?));
            }
            at = begin;
        }
        (at == 0).then_some(values)
    }
}

/// For each byte where a part can end, the first one where it can begin.
fn step(part: &TemplatePart, uri: &[u8], reached: &[bool]) -> Vec<Option<usize>> {
    let mut begins = vec![None; uri.len() + 1];
    match part {
        TemplatePart::Literal(text) => {
            let text = text.as_bytes();
            for begin in (0..=uri.len()).filter(|begin| reached[*begin]) {
                if uri[begin..].starts_with(text) {
                    begins[begin + text.len()] = Some(begin);
                }
            }
        }
        TemplatePart::Variable { reserved, .. } => {
            let mut first = None;
            for (at, byte) in uri.iter().enumerate() {
                if !fits(*byte, *reserved) {
                    first = None;
                    continue;
                }
                if first.is_none() && reached[at] {
                    first = Some(at);
                }
                begins[at + 1] = first;
            }
        }
    }
    begins
}

fn fits(byte: u8, reserved: bool) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%')
        || byte >= 0x80
        || (reserved && b":/?#[]@!$&'()*+,;=".contains(&byte))
}

/// Percent-decodes. `None` for what is not UTF-8 then, for a bad escape, and for control characters
/// (MCP-RE-10).
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let digits = after
                .get(..2)
                .and_then(|hex| std::str::from_utf8(hex).ok())?;
            if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.chars().any(char::is_control))
}

/// True for an absolute URI that a server may offer (MCP-RE-9, MCP-RE-10): with a scheme, without
/// spaces and control characters, bounded.
pub fn is_uri(text: &str) -> bool {
    (1..=LONGEST_URI).contains(&text.len())
        && !text
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || "<>\"{}|\\^`".contains(c))
        && Url::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let template = UriTemplate::parse(template).unwrap();
        template
            .read(uri)
            .map(|values| values.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn re_3_a_simple_variable_is_one_segment_and_decoded() {
        assert_eq!(
            read("pets://{id}/data", "pets://7/data"),
            Some(vec![pair("id", "7")])
        );
        assert_eq!(
            read("pets://{id}", "pets://a%20b%2Fc"),
            Some(vec![pair("id", "a b/c")])
        );
        assert_eq!(read("pets://{id}", "pets://a/b"), None);
        assert_eq!(read("pets://{id}", "pets://"), None, "never empty");
        assert_eq!(read("pets://{id}/data", "pets://7/date"), None);
    }

    #[test]
    fn re_3_a_reserved_variable_takes_slashes_and_a_fragment_its_hash() {
        assert_eq!(
            read("file:///{+path}", "file:///a/b.txt"),
            Some(vec![pair("path", "a/b.txt")])
        );
        assert_eq!(
            read("x:doc{#part}", "x:doc#a/b"),
            Some(vec![pair("part", "a/b")])
        );
        assert_eq!(
            read("x://{a}-{b}", "x://1-2-3"),
            Some(vec![pair("a", "1"), pair("b", "2-3")])
        );
    }

    #[test]
    fn re_10_what_decodes_to_control_characters_or_no_text_fits_nothing() {
        for uri in ["x://%00", "x://%ff", "x://%2", "x://%+1", "x://%0A"] {
            assert_eq!(read("x://{a}", uri), None, "{uri}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_served_is_refused_with_a_sentence() {
        for text in [
            "pets://all",
            "pets://{id",
            "pets://id}",
            "x://{a}{b}",
            "x://{a}/{a}",
            "x://{?q}",
            "x://{a,b}",
            "x://{a*}",
            "x://{a:3}",
            "{a}",
            "pets/{id}",
            "x://{a}/ b",
        ] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn re_9_a_uri_has_a_scheme_and_no_spaces() {
        for good in [
            "test://static-text",
            "file:///a/b",
            "urn:isbn:1",
            "https://a.example/b?c#d",
        ] {
            assert!(is_uri(good), "{good}");
        }
        for bad in ["", "/a", "a b:c", "x://a\nb", "x://{a}", "x:/<a>"] {
            assert!(!is_uri(bad), "{bad}");
        }
    }

    #[test]
    fn re_12_what_one_template_reads_another_makes_and_back() {
        let own = UriTemplate::parse("db://{table}/{+path}").unwrap();
        let published = UriTemplate::parse("crm://rows/{+path}/of/{table}").unwrap();
        let uri = "db://a%20b/x/y.txt";
        let made = own.carry(uri, &published).unwrap();
        assert_eq!(made, "crm://rows/x/y.txt/of/a%20b");
        assert_eq!(published.carry(&made, &own).as_deref(), Some(uri));
        assert_eq!(own.carry("other://a/b", &published), None);
        let narrow = UriTemplate::parse("crm://{table}/{path}").unwrap();
        assert_eq!(
            own.carry(uri, &narrow),
            None,
            "a slash would be another place"
        );
        assert_eq!(own.carry("db://t/x", &narrow).as_deref(), Some("crm://t/x"));
    }

    proptest! {
        #[test]
        fn re_10_reading_never_panics(template in "\\PC{0,40}", uri in "\\PC{0,60}") {
            if let Ok(template) = UriTemplate::parse(&template) {
                let _ = template.read(&uri);
            }
        }

        #[test]
        fn re_3_what_was_filled_in_is_read_back(a in "[a-z0-9._~]{1,20}", b in "[a-z0-9./?_~]{1,20}") {
            let uri = format!("x://h/{a}:{b}");
            prop_assert_eq!(read("x://h/{a}:{+b}", &uri), Some(vec![pair("a", &a), pair("b", &b)]));
        }
    }
}
