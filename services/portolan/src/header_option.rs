//! `--header 'Name: value'` of `connect` and `attach`.

use anyhow::{Context, Result};
use http::{HeaderName, HeaderValue};

/// Reads `Name: value`. No error repeats the value.
pub(crate) fn header_of(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(HeaderName, HeaderValue)> {
    let (name, value) = text
        .split_once(':')
        .context("a header is written `Name: value`")?;
    let name = HeaderName::try_from(name.trim()).context("a header's name has letters and `-`")?;
    let mut filled = String::with_capacity(value.len());
    let mut rest = value.trim();
    while let Some((before, after)) = rest.split_once("${") {
        let (wanted, behind) = after.split_once('}').context("`${` has no `}`")?;
        filled.push_str(before);
        let found = variable(wanted);
        filled.push_str(&found.with_context(|| format!("{wanted} is not in the environment"))?);
        rest = behind;
    }
    filled.push_str(rest);
    let value = HeaderValue::try_from(filled.trim());
    let mut value = value
        .ok()
        .with_context(|| format!("the value of {name} fits no header"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(HeaderName, HeaderValue)> {
        header_of(text, |name| (name == "KEY").then(|| "k-1".to_owned()))
    }

    #[test]
    fn a_header_is_filled_from_the_environment_and_hidden_from_logs() {
        let (name, value) = read("X-Api-Key: a ${KEY} b").unwrap();
        assert_eq!(
            (name.as_str(), value.to_str().unwrap()),
            ("x-api-key", "a k-1 b")
        );
        assert!(value.is_sensitive());
        for wrong in [
            "no colon",
            "bad name : x",
            "A: ${KEY",
            "A: ${NONE}",
            "A: x\ny",
        ] {
            let error = read(wrong).unwrap_err();
            assert!(!format!("{error:#}").contains("x\ny"), "{wrong}");
        }
    }
}
