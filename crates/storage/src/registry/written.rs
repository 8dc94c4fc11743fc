//! Definitions in the order and with the numbers in which they were written: columns of type `json`
//! beside those of type `jsonb`, which keep neither.

use serde_json::{Map, Value, json};

use crate::registry::tools::Imported;

/// The column's value for a tool: `{"upstream": <definition>}` for a tool of an MCP server, else
/// the content of the other columns.
pub(crate) fn of_tool(tool: &Imported) -> String {
    match &tool.written {
        Some(definition) => format!(r#"{{"upstream":{definition}}}"#),
        None => json!({
            "inputSchema": tool.input_schema, "outputSchema": tool.output_schema, "annotations": tool.annotations, "plan": tool.plan,
            "definition": tool.definition,
        })
        .to_string(),
    }
}

/// The column of a tool, read.
pub(crate) struct Written {
    members: Map<String, Value>,
    /// It is the definition of an MCP server, which knows nothing of our plans.
    is_upstream: bool,
}

impl Written {
    /// From the text of the column; null and what is no object are empty.
    pub(crate) fn read(text: Option<&str>) -> Self {
        let read = text.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let mut members = read.unwrap_or_default();
        let upstream = members.remove("upstream");
        let is_upstream = upstream.is_some();
        if let Some(Value::Object(definition)) = upstream {
            members = definition;
        }
        Self {
            members,
            is_upstream,
        }
    }

    /// A schema, or hints: as written, else as the column has it.
    pub(crate) fn object(&mut self, member: &str, column: Value) -> Value {
        match self.members.remove(member) {
            Some(written) if written.is_object() => written,
            _ => column,
        }
    }

    /// A plan or form: as written, else as the column has it.
    pub(crate) fn ours(&mut self, member: &str, column: Value) -> Value {
        if self.is_upstream {
            return column;
        }
        self.object(member, column)
    }
}

/// A definition of a prompt or resource as text: as written, else as the column has it.
pub(crate) fn definition(written: Option<String>, column: Option<Value>) -> Option<String> {
    written.or_else(|| column.map(|column| column.to_string()))
}
