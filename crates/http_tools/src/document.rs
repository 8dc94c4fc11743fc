//! An OpenAPI document: the members that its root needs, and the faults of one that cannot be used.

mod text;
mod yaml;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes of an OpenAPI document.
pub const MAX_DOCUMENT_BYTES: usize = 10 * 1024 * 1024;

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// The document can be used; this part was repaired or ignored.
    Warning,
}

/// Fault of a document, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// A sentence for a person, with what to do.
    pub message: String,
    /// JSON pointer into the document (RFC 6901).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Problem {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            pointer: None,
            line: None,
            column: None,
        }
    }

    pub(crate) fn warning(message: impl Into<String>, pointer: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            message: message.into(),
            pointer: Some(pointer.into()),
            line: None,
            column: None,
        }
    }

    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }
}

/// The document cannot be imported at all. The problems say why and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the document is not a usable OpenAPI document")]
pub struct DocumentError {
    /// At least one with [`Severity::Error`].
    pub problems: Vec<Problem>,
}

impl From<Problem> for DocumentError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

/// The OpenAPI family whose schema rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecVersion {
    /// 3.0.x: its own schema dialect (`nullable`, boolean `exclusiveMinimum`).
    V3_0,
    /// 3.1.x and 3.2.x: JSON Schema 2020-12.
    V3_1,
}

/// A parsed OpenAPI 3.x document.
#[derive(Debug, Clone)]
pub struct Document {
    /// The whole document.
    pub root: Value,
    /// Which schema rules hold.
    pub version: SpecVersion,
    /// The version as written, such as `3.0.3`.
    pub version_text: String,
    /// Repairs made while reading.
    pub problems: Vec<Problem>,
}

impl Document {
    /// Reads JSON or YAML. The errors carry line and column (syntax) or a JSON pointer (content).
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let mut problems = Vec::new();
        let root = text::parse(bytes, &mut problems)?;
        Self::from_value(root, problems)
    }

    /// Takes a value that is already parsed.
    pub fn from_value(root: Value, problems: Vec<Problem>) -> Result<Self, DocumentError> {
        let Some(object) = root.as_object() else {
            return Err(Problem::error(
                "This is not an OpenAPI document: its root is not an object. Paste the whole document, starting with \
                 `openapi: 3…`.",
            )
            .into());
        };
        if let Some(swagger) = object.get("swagger") {
            let version = swagger
                .as_str()
                .map_or_else(|| swagger.to_string(), str::to_owned);
            return Err(Problem::error(format!(
                "This is a Swagger {version} document; OpenAPI 3.0 and 3.1 can be imported. Convert it first, for \
                 example with `npx swagger2openapi`, or at converter.swagger.io."
            ))
            .at("/swagger")
            .into());
        }
        let version_text = version_of(object)?;
        let version = match version_text.split('.').take(2).collect::<Vec<_>>()[..] {
            ["3", "0"] | ["3"] => SpecVersion::V3_0,
            ["3", "1" | "2"] => SpecVersion::V3_1,
            _ => {
                return Err(Problem::error(format!(
                    "OpenAPI {version_text} is not known here; 3.0 and 3.1 can be imported."
                ))
                .at("/openapi")
                .into());
            }
        };
        match object.get("paths") {
            Some(Value::Object(_)) => {}
            Some(_) => {
                return Err(
                    Problem::error("`paths` must be an object whose keys are paths.")
                        .at("/paths")
                        .into(),
                );
            }
            None => {
                return Err(Problem::error(
                    "The document has no `paths`, so there is nothing to make tools from. If it is split over several \
                     files, bundle it into one first, for example with `npx @redocly/cli bundle`.",
                )
                .into());
            }
        }
        Ok(Self {
            root,
            version,
            version_text,
            problems,
        })
    }
}

/// The version of OpenAPI as a document writes it.
fn version_of(object: &Map<String, Value>) -> Result<String, DocumentError> {
    match object.get("openapi") {
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        // YAML reads an unquoted 3.0 or 3.1 as a number.
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err(
            Problem::error("`openapi` must be a version such as \"3.1.0\".")
                .at("/openapi")
                .into(),
        ),
        None => {
            let what = ["asyncapi", "arazzo", "$schema", "info"]
                .into_iter()
                .find(|key| object.contains_key(*key));
            let message = match what {
                Some("asyncapi") => {
                    "This is an AsyncAPI document; only OpenAPI documents can be imported."
                }
                Some("arazzo") => {
                    "This is an Arazzo document; import the OpenAPI document that it describes."
                }
                Some("$schema") => "This is a JSON Schema, not an OpenAPI document.",
                _ => {
                    "This is not an OpenAPI document: the field `openapi` with its version (3.0 or 3.1) is missing."
                }
            };
            Err(Problem::error(message).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Problem {
        Document::parse(text.as_bytes())
            .unwrap_err()
            .problems
            .remove(0)
    }

    #[test]
    fn json_and_yaml_give_the_same_document() {
        let json = Document::parse(br#"{"openapi":"3.1.0","info":{"title":"a"},"paths":{"/x":{"get":{"responses":{"200":{}}}}}}"#);
        let yaml = Document::parse(
            b"openapi: 3.1.0\ninfo: {title: a}\npaths:\n  /x:\n    get:\n      responses:\n        200: {}\n",
        );
        assert_eq!(json.unwrap().root, yaml.unwrap().root);
    }

    #[test]
    fn a_syntax_fault_names_its_line_and_column() {
        let json = fault("{\n  \"openapi\": \"3.0.0\",\n  \"paths\": {]\n}");
        assert_eq!(
            (json.line, json.column),
            (Some(3), Some(13)),
            "{}",
            json.message
        );
        let yaml = fault("openapi: 3.0.0\npaths:\n  - a\n b: [");
        assert!(yaml.line.is_some(), "{yaml:?}");
    }

    #[test]
    fn json_with_a_trailing_comma_is_read_with_a_warning() {
        let document = Document::parse(b"{\"openapi\": \"3.0.0\", \"paths\": {},}").unwrap();
        assert_eq!(document.problems.len(), 1);
    }

    #[test]
    fn what_is_not_openapi_3_gets_a_sentence_that_says_what_to_do() {
        assert!(
            fault("swagger: '2.0'\npaths: {}")
                .message
                .contains("Swagger 2.0")
        );
        assert!(fault("asyncapi: 2.0.0").message.contains("AsyncAPI"));
        assert!(fault("<!doctype html>").message.contains("web page"));
        assert!(fault("").message.contains("empty"));
        assert!(fault("- a\n- b").message.contains("root is not an object"));
        assert!(fault("openapi: 3.0.0").message.contains("paths"));
        assert_eq!(
            fault("openapi: 4.0.0\npaths: {}").pointer.as_deref(),
            Some("/openapi")
        );
        assert!(Document::parse(&[b'a', b'\n', 0xff]).unwrap_err().problems[0].line == Some(2));
    }

    #[test]
    fn an_unquoted_yaml_version_is_a_version() {
        assert_eq!(
            Document::parse(b"openapi: 3.1\npaths: {}").unwrap().version,
            SpecVersion::V3_1
        );
    }

    #[test]
    fn yaml_aliases_cannot_blow_up_ab_42() {
        let mut text = String::from("openapi: 3.0.0\npaths: {}\na: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (name, previous) in ('b'..='i').zip('a'..='h') {
            let items = vec![format!("*{previous}"); 10].join(",");
            text.push_str(&format!("{name}: &{name} [{items}]\n"));
        }
        assert!(Document::parse(text.as_bytes()).is_err());
    }

    #[test]
    fn a_document_over_the_limit_is_refused_before_it_is_read() {
        assert!(
            fault(&" ".repeat(MAX_DOCUMENT_BYTES + 1))
                .message
                .contains("10 MiB")
        );
    }
}
