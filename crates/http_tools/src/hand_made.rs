//! Tools that a person defines by hand. The definition becomes a document of one operation and goes
//! through the same importer, so that there is one engine and one set of rules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    document::Document,
    effort::{self, Bounds},
    import::{self, ImportOptions},
    naming,
    operation::ToolDraft,
    plan::Location,
};

/// A hand-made tool, in the shape of the console API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandMade {
    /// Name for AI clients.
    pub name: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    pub description: String,
    /// HTTP method.
    pub method: String,
    /// Path template below the source's base URL.
    pub path: String,
    /// Everything that is not the body.
    #[serde(default)]
    pub parameters: Vec<HandMadeParameter>,
    /// The body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<HandMadeBody>,
}

/// A parameter of a hand-made tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandMadeParameter {
    /// Name on the wire.
    pub name: String,
    /// Where it travels.
    #[serde(rename = "in")]
    pub location: Location,
    /// Whether it must be given. Path parameters always are.
    #[serde(default)]
    pub required: bool,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its value.
    #[serde(default = "anything")]
    pub schema: Value,
}

/// The body of a hand-made tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandMadeBody {
    /// Media type.
    #[serde(default = "json_type")]
    pub content_type: String,
    /// JSON Schema of its value.
    #[serde(default = "anything")]
    pub schema: Value,
    /// Whether it is always sent.
    #[serde(default)]
    pub required: bool,
}

/// Steps of making a tool of a definition.
const STEPS: usize = 20_000_000;

fn anything() -> Value {
    json!({})
}

fn json_type() -> String {
    "application/json".to_owned()
}

/// A definition that cannot work, with the field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidDefinition {
    /// Field of the definition.
    pub field: &'static str,
    /// What to do.
    pub message: String,
}

impl HandMade {
    /// The tool. Faults that the importer would repair in a stranger's document are refused here: a
    /// person is there to correct them.
    pub fn draft(&self) -> Result<ToolDraft, InvalidDefinition> {
        let invalid = |field, message: String| Err(InvalidDefinition { field, message });
        if !naming::is_valid(&self.name) {
            return invalid(
                "name",
                "A tool's name has 1 to 64 letters, digits, `_` or `-`.".to_owned(),
            );
        }
        if self.description.trim().is_empty() {
            return invalid(
                "description",
                "Say what the tool does: the model decides by this text.".to_owned(),
            );
        }
        let method = self.method.trim().to_ascii_lowercase();
        if !["get", "post", "put", "patch", "delete", "head", "options"].contains(&method.as_str())
        {
            return invalid(
                "method",
                "Choose GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS.".to_owned(),
            );
        }
        let path = self.path.trim();
        if !path.starts_with('/')
            || path.starts_with("//")
            || path.contains(['#', ' ', '\\'])
            || path.chars().any(char::is_control)
        {
            return invalid(
                "path",
                "A path starts with one `/` and has no spaces, backslashes or `#`.".to_owned(),
            );
        }
        if path
            .split(['/', '?'])
            .any(|segment| matches!(segment, "." | ".."))
        {
            return invalid("path", "A path has no `.` or `..` segments.".to_owned());
        }
        self.check_parameters(path)?;
        self.check_body()?;
        let document = self.document(&method, path)?;
        let work = || import::import(&document, &ImportOptions::default());
        let Ok(mut imported) = effort::within(Bounds::of_check(STEPS), work) else {
            return invalid(
                "parameters",
                "The definition is too large: make its schemas smaller.".to_owned(),
            );
        };
        let Some(operation) = imported.operations.pop() else {
            return invalid("path", "The definition gives no operation.".to_owned());
        };
        match operation.outcome {
            Ok(tool) => {
                let mut tool = *tool;
                tool.name = self.name.clone();
                if let Some(title) = self
                    .title
                    .as_deref()
                    .map(str::trim)
                    .filter(|title| !title.is_empty())
                {
                    tool.title = crate::operation::cut(title, 120);
                }
                Ok(tool)
            }
            Err(reason) => invalid("parameters", reason),
        }
    }

    /// Each path parameter stands in the path, each placeholder has its parameter, and headers have
    /// names of headers.
    fn check_parameters(&self, path: &str) -> Result<(), InvalidDefinition> {
        let invalid = |message: String| {
            Err(InvalidDefinition {
                field: "parameters",
                message,
            })
        };
        let placeholders = crate::operation::parameters::placeholders(path);
        for parameter in &self.parameters {
            if parameter.location == Location::Path
                && !placeholders.contains(&parameter.name.as_str())
            {
                return invalid(format!(
                    "`{}` is a path parameter, but `{{{}}}` is not in the path.",
                    parameter.name, parameter.name
                ));
            }
            if parameter.location == Location::Header
                && http::HeaderName::try_from(parameter.name.as_str()).is_err()
            {
                return invalid(format!("`{}` is not a header name.", parameter.name));
            }
        }
        for placeholder in &placeholders {
            if !self
                .parameters
                .iter()
                .any(|p| p.location == Location::Path && p.name == *placeholder)
            {
                return invalid(format!(
                    "`{{{placeholder}}}` in the path needs a parameter of that name in `path`."
                ));
            }
        }
        Ok(())
    }

    /// The body has a media type.
    fn check_body(&self) -> Result<(), InvalidDefinition> {
        if let Some(body) = &self.body
            && http::HeaderValue::try_from(body.content_type.trim())
                .is_ok_and(|kind| !kind.is_empty())
            && !body.content_type.contains('/')
        {
            return Err(InvalidDefinition {
                field: "body",
                message: "Give the body's media type, such as application/json.".to_owned(),
            });
        }
        Ok(())
    }

    fn document(&self, method: &str, path: &str) -> Result<Document, InvalidDefinition> {
        let parameters: Vec<Value> = self
            .parameters
            .iter()
            .map(|parameter| {
                json!({"name": parameter.name, "in": parameter.location, "required": parameter.required,
                    "description": parameter.description, "schema": parameter.schema})
            })
            .collect();
        let mut operation = Map::new();
        operation.insert("operationId".to_owned(), json!(self.name));
        operation.insert(
            "summary".to_owned(),
            json!(self.title.as_deref().unwrap_or(&self.name)),
        );
        operation.insert("description".to_owned(), json!(self.description));
        operation.insert("parameters".to_owned(), Value::Array(parameters));
        if let Some(body) = &self.body {
            let mut content = Map::new();
            content.insert(
                body.content_type.trim().to_owned(),
                json!({"schema": body.schema}),
            );
            operation.insert(
                "requestBody".to_owned(),
                json!({"required": body.required, "content": content}),
            );
        }
        let mut item = Map::new();
        item.insert(method.to_owned(), Value::Object(operation));
        let mut paths = Map::new();
        paths.insert(path.to_owned(), Value::Object(item));
        let root =
            json!({"openapi": "3.1.0", "info": {"title": "", "version": ""}, "paths": paths});
        Document::from_value(root, Vec::new()).map_err(|_| InvalidDefinition {
            field: "path",
            message: "The definition is not usable.".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(value: Value) -> Result<ToolDraft, InvalidDefinition> {
        serde_json::from_value::<HandMade>(value).unwrap().draft()
    }

    #[test]
    fn a_hand_made_tool_goes_through_the_same_engine() {
        let tool = definition(json!({"name": "find_pet", "description": "Finds a pet.", "method": "POST", "path": "/pets/{id}",
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
            "body": {"schema": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}, "required": true}}))
        .unwrap();
        assert_eq!(
            (tool.name.as_str(), tool.key.as_str()),
            ("find_pet", "POST /pets/{id}")
        );
        assert_eq!(tool.input_schema["required"], json!(["id", "q"]));
    }

    #[test]
    fn what_a_person_can_correct_is_refused_with_its_field() {
        let base = json!({"name": "x", "description": "d", "method": "GET", "path": "/a"});
        let with = |key: &str, value: Value| {
            let mut changed = base.clone();
            changed[key] = value;
            definition(changed).unwrap_err().field
        };
        assert_eq!(with("name", json!("a b")), "name");
        assert_eq!(with("description", json!(" ")), "description");
        assert_eq!(with("method", json!("BREW")), "method");
        assert_eq!(with("path", json!("a")), "path");
        assert_eq!(with("path", json!("/a/../b")), "path");
        assert_eq!(with("path", json!("/a/{id}")), "parameters");
        assert_eq!(
            with(
                "parameters",
                json!([{"name": "id", "in": "path", "schema": {}}])
            ),
            "parameters"
        );
        assert_eq!(
            with(
                "parameters",
                json!([{"name": "x y", "in": "header", "schema": {}}])
            ),
            "parameters"
        );
    }
}
