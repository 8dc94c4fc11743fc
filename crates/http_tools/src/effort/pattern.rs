//! Cost of a pattern: to compile it, and to search a text for it (MCP-JS-7, REVIEW-S-1).
//!
//! The engine is linear in the text, but with the size of its automaton as the factor:
//! `(a|b)*a(a|b){9000}` against a text of a megabyte takes a minute, between two looks at the
//! value.

use jsonschema::{
    Keyword, ValidationError, Validator,
    json::{Json, Node},
};
use serde_json::{Map, Value, json};

use super::spend;

/// Steps of compiling the smallest pattern.
const SMALLEST: usize = 400;
/// Steps of compiling one state.
const A_STATE: usize = 8;
/// Most states of a compiled pattern.
const MOST_STATES: usize = 16 * 1024;
/// Bytes of a text times states, that are one step.
const WORK: usize = 64;
/// States of a class of characters by what they are, as of `\p{L}`.
const CLASS: usize = 400;

/// Counts the steps of compiling a pattern.
pub(crate) fn spend_compiling(pattern: &str) {
    spend(SMALLEST + weight(pattern) * A_STATE);
}

/// How many states the automaton of a pattern has, roughly: what is repeated counts as often as it
/// may be.
pub(crate) fn weight(pattern: &str) -> usize {
    // For each open group: its states so far, and the states of its last element, which a
    // repetition multiplies.
    let mut groups: Vec<(usize, usize)> = vec![(0, 0)];
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let states = match c {
            '(' => {
                groups.push((0, 0));
                continue;
            }
            ')' => match groups.pop() {
                Some((sum, last)) if !groups.is_empty() => sum.saturating_add(last).max(1),
                closed => {
                    groups.push(closed.unwrap_or_default());
                    1
                }
            },
            '{' => {
                let mut bound = (0_usize, 0_usize);
                for c in rest.by_ref() {
                    match c.to_digit(10) {
                        Some(digit) => {
                            let digit = usize::try_from(digit).unwrap_or(0);
                            bound.1 = bound.1.saturating_mul(10).saturating_add(digit);
                        }
                        None if c == ',' => bound = (bound.1, 0),
                        None => break,
                    }
                }
                if let Some((_, last)) = groups.last_mut() {
                    *last = last.saturating_mul(bound.0.max(bound.1).max(1));
                }
                continue;
            }
            '\\' => of_class(rest.next()),
            '[' => {
                let mut states = 8;
                while let Some(c) = rest.next() {
                    match c {
                        ']' => break,
                        '\\' => states += of_class(rest.next()) - 1,
                        c if !c.is_ascii() => states += 4,
                        _ => {}
                    }
                }
                states
            }
            '.' => 10,
            _ => 2,
        };
        if let Some((sum, last)) = groups.last_mut() {
            *sum = sum.saturating_add(*last);
            *last = states;
        }
    }
    let open = groups.iter();
    open.fold(0_usize, |all, (sum, last)| {
        all.saturating_add(*sum).saturating_add(*last)
    })
    .clamp(1, MOST_STATES)
}

fn of_class(letter: Option<char>) -> usize {
    match letter {
        Some('p' | 'P') => CLASS,
        Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'b' | 'B') => 16,
        _ => 2,
    }
}

/// The keyword `pattern`, which counts what its search costs before it begins.
pub(crate) struct Pattern<F: Json> {
    weight: usize,
    /// Of a schema that says nothing but this.
    inner: Validator<F>,
}

impl<F: Json> Pattern<F> {
    /// From the keyword's value.
    pub(crate) fn new(
        value: &Value,
        options: impl FnOnce(&Value) -> Result<Validator<F>, ValidationError<'static>>,
    ) -> Result<Self, ValidationError<'static>> {
        let pattern = value.as_str().unwrap_or_default();
        Ok(Self {
            weight: weight(pattern),
            inner: options(&json!({ "pattern": value }))?,
        })
    }

    fn spend(&self, node: &F::Node<'_>) {
        if let Some(text) = node.as_string() {
            spend(text.len().saturating_mul(self.weight) / WORK);
        }
    }
}

impl<'i, F: Json> Keyword<'i, F> for Pattern<F> {
    fn validate(&self, instance: F::Node<'i>) -> Result<(), ValidationError<'i>> {
        self.spend(&instance);
        self.inner.validate(instance)
    }

    fn is_valid(&self, instance: F::Node<'i>) -> bool {
        self.spend(&instance);
        self.inner.is_valid(instance)
    }
}

/// Weight of all patterns that select an object's members by name.
pub(crate) fn weight_of_names(schema: &Map<String, Value>) -> usize {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns
        .into_iter()
        .flat_map(Map::keys)
        .fold(0, |all, pattern| all.saturating_add(weight(pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_weighs_what_its_repetitions_make_of_it() {
        assert_eq!(weight("abc"), 6);
        assert_eq!(weight("[a-z]{100}"), 800);
        assert_eq!(weight("(ab){10}"), 40);
        assert_eq!(weight("((ab){10}c){10}"), 420);
        assert_eq!(weight("a{2,5}"), 10);
        assert!(weight(r"\p{L}{20}") >= CLASS);
        assert_eq!(weight("((((a{99}){99}){99}){99}){99}"), MOST_STATES);
        // Nothing that is no pattern stops it.
        for odd in [
            "",
            "(",
            ")",
            "))(",
            "[",
            "a{",
            "\\",
            "{9}",
            "a{99999999999999999999999}",
        ] {
            assert!((1..=MOST_STATES).contains(&weight(odd)), "{odd}");
        }
    }
}
