//! Local references. Remote ones are refused: nothing is fetched because a document says so
//! (MCP-JS-5).

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::effort;

/// How many references may lead to one another before an object is reached.
const MAX_HOPS: usize = 32;

/// Bytes of a reference. Nothing that a person wrote is longer.
const MAX_REFERENCE: usize = 2_048;

/// A reference that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    /// It leaves the document.
    #[error(
        "`{target}` points outside the document; bundle the document into one file first (for example with `npx @redocly/cli bundle`)"
    )]
    Remote {
        /// The reference as written.
        target: String,
    },
    /// Nothing is there.
    #[error("`{target}` points to nothing")]
    Missing {
        /// The reference as written.
        target: String,
    },
    /// References that only lead to each other.
    #[error("`{target}` leads back to itself")]
    Circular {
        /// The reference as written.
        target: String,
    },
}

/// Checks that a `$ref` is a local JSON pointer and gives the pointer, decoded from its URI form.
pub fn local_pointer(target: &str) -> Result<String, RefError> {
    effort::spend(4);
    effort::spend_text(target);
    if target.len() > MAX_REFERENCE {
        let begin = target.chars().take(80).collect::<String>();
        return Err(RefError::Missing {
            target: format!("{begin}…"),
        });
    }
    let Some(fragment) = target.strip_prefix('#') else {
        return Err(RefError::Remote {
            target: target.to_owned(),
        });
    };
    let pointer = percent_decode_str(fragment)
        .decode_utf8_lossy()
        .into_owned();
    if pointer.is_empty() || pointer.starts_with('/') {
        Ok(pointer)
    } else {
        // A plain-name anchor: rare, and not resolvable without scanning every schema.
        Err(RefError::Missing {
            target: target.to_owned(),
        })
    }
}

/// Follows `$ref`s of a parameter, body, response or path item until an object without one is
/// reached.
pub fn resolve<'d>(root: &'d Value, start: &'d Value) -> Result<&'d Value, RefError> {
    let mut current = start;
    effort::spend(1);
    for _ in 0..MAX_HOPS {
        let Some(target) = current.get("$ref").and_then(Value::as_str) else {
            return Ok(current);
        };
        let pointer = local_pointer(target)?;
        current = root.pointer(&pointer).ok_or_else(|| RefError::Missing {
            target: target.to_owned(),
        })?;
    }
    let target = current
        .get("$ref")
        .and_then(Value::as_str)
        .unwrap_or("$ref")
        .to_owned();
    Err(RefError::Circular { target })
}

/// One step of a JSON pointer, escaped (RFC 6901 §3).
pub fn escape_step(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_chain_of_references_is_followed_to_its_end() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/c~1d"}, "c/d": {"x": 1}});
        assert_eq!(resolve(&root, &root["a"]).unwrap(), &json!({"x": 1}));
    }

    #[test]
    fn percent_encoded_pointers_are_decoded() {
        let root = json!({"p": {"a b": {"x": 1}}});
        assert_eq!(
            resolve(&root, &json!({"$ref": "#/p/a%20b"})).unwrap(),
            &json!({"x": 1})
        );
    }

    #[test]
    fn remote_missing_and_circular_references_are_told_apart_js_5() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}});
        assert!(matches!(
            resolve(&root, &root["a"]),
            Err(RefError::Circular { .. })
        ));
        assert!(matches!(
            resolve(&root, &json!({"$ref": "https://x/y.json#/a"})),
            Err(RefError::Remote { .. })
        ));
        assert!(matches!(
            resolve(&root, &json!({"$ref": "./common.yaml#/a"})),
            Err(RefError::Remote { .. })
        ));
        assert!(matches!(
            resolve(&root, &json!({"$ref": "#/nope"})),
            Err(RefError::Missing { .. })
        ));
        assert!(matches!(
            resolve(&root, &json!({"$ref": "#anchor"})),
            Err(RefError::Missing { .. })
        ));
    }
}
