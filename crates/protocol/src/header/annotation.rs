//! `x-mcp-header` in input schemas: its valid places, and the headers that it defines (MCP-H-16,
//! MCP-H-17).

use serde_json::{Map, Value};

/// The keyword.
const KEYWORD: &str = "x-mcp-header";
/// As deep as a stored schema may be (MCP-JS-7); deeper parts are not read, and an annotation there
/// is a fault.
const MAX_DEPTH: usize = 32;

/// An argument that a header repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// Name after `Mcp-Param-`.
    pub name: String,
    /// Property names from the root of the arguments.
    pub path: Vec<String>,
    /// The type of the property.
    pub kind: ParamType,
}

/// The types that may be annotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `boolean`
    Boolean,
}

/// An annotation that a conforming client would refuse, with the JSON pointer of its property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationFault {
    /// The value is not a non-empty RFC 9110 token.
    #[error("{0}: x-mcp-header must be a header name: letters, digits and !#$%&'*+-.^_`|~")]
    NotAToken(String),
    /// Another property has the same name, ignoring case.
    #[error("{0}: x-mcp-header repeats the name of another property")]
    Repeated(String),
    /// The property is not a string, integer or boolean.
    #[error("{0}: x-mcp-header stands only on a string, integer or boolean")]
    WrongType(String),
    /// Reached through something else than `properties`.
    #[error("{0}: x-mcp-header stands only on properties, not below items, $ref or combinations")]
    Unreachable(String),
}

impl AnnotationFault {
    /// JSON pointer of the schema that carries the annotation.
    pub fn pointer(&self) -> &str {
        match self {
            Self::NotAToken(at)
            | Self::Repeated(at)
            | Self::WrongType(at)
            | Self::Unreachable(at) => at,
        }
    }
}

/// The annotations of an input schema, and the faults among them. A faulty one is in no header
/// list.
pub fn annotations(schema: &Value) -> (Vec<ParamHeader>, Vec<AnnotationFault>) {
    let mut walk = Walk {
        found: Vec::new(),
        faults: Vec::new(),
    };
    walk.schema(schema, Some(&[]), "", 0);
    (walk.found, walk.faults)
}

struct Walk {
    found: Vec<ParamHeader>,
    faults: Vec<AnnotationFault>,
}

impl Walk {
    /// `path` is `None` where only `properties` did not lead.
    fn schema(&mut self, schema: &Value, path: Option<&[String]>, pointer: &str, depth: usize) {
        let Value::Object(schema) = schema else {
            return;
        };
        if let Some(name) = schema.get(KEYWORD) {
            self.annotation(name, schema, path, pointer);
        }
        if depth == MAX_DEPTH {
            return;
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let below = path.map(|path| [path, std::slice::from_ref(name)].concat());
                        let pointer = format!("{pointer}/properties/{}", escape(name));
                        self.schema(property, below.as_deref(), &pointer, depth + 1);
                    }
                }
                (
                    "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Object(map),
                ) => {
                    for (name, part) in map {
                        self.schema(
                            part,
                            None,
                            &format!("{pointer}/{keyword}/{}", escape(name)),
                            depth + 1,
                        );
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(parts)) => {
                    for (index, part) in parts.iter().enumerate() {
                        self.schema(
                            part,
                            None,
                            &format!("{pointer}/{keyword}/{index}"),
                            depth + 1,
                        );
                    }
                }
                (
                    "items"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "additionalProperties"
                    | "propertyNames"
                    | "unevaluatedItems"
                    | "unevaluatedProperties"
                    | "additionalItems",
                    part @ Value::Object(_),
                ) => self.schema(part, None, &format!("{pointer}/{keyword}"), depth + 1),
                _ => {}
            }
        }
    }

    fn annotation(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        path: Option<&[String]>,
        pointer: &str,
    ) {
        let at = || pointer.to_owned();
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return self.faults.push(AnnotationFault::Unreachable(at()));
        };
        let Some(name) = name
            .as_str()
            .filter(|name| !name.is_empty() && name.bytes().all(is_tchar))
        else {
            return self.faults.push(AnnotationFault::NotAToken(at()));
        };
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => ParamType::String,
            Some("integer") => ParamType::Integer,
            Some("boolean") => ParamType::Boolean,
            _ => return self.faults.push(AnnotationFault::WrongType(at())),
        };
        if self
            .found
            .iter()
            .any(|known| known.name.eq_ignore_ascii_case(name))
        {
            return self.faults.push(AnnotationFault::Repeated(at()));
        }
        self.found.push(ParamHeader {
            name: name.to_owned(),
            path: path.to_vec(),
            kind,
        });
    }
}

/// RFC 9110 §5.6.2.
fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// RFC 6901 §3.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
