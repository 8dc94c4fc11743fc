//! Tools (MCP-FA-1, MCP-FA-2): the list, the call, the result, each as its revision knows it.

pub(crate) mod shape;

use serde::{Deserialize, Serialize};

pub use crate::result::ListParams;

use crate::content::ContentBlock;
use crate::initialize::Icon;
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Params, Raw};
use crate::result::{self, CacheHint, Identity, ResultObject};
use crate::revision::{Revision, StructuredOutput};

/// A tool as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name to call it by.
    pub name: String,
    /// Display name (R3+).
    pub title: Option<String>,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema 2020-12 of the arguments; root `type: "object"` (MCP-TL-5).
    pub input_schema: Raw,
    /// JSON Schema 2020-12 of `structuredContent` (R3+; below R5 only with root `type: "object"`).
    pub output_schema: Option<Raw>,
    /// Hints (R2+).
    pub annotations: Option<ToolAnnotations>,
    /// Pictures (R4+).
    pub icons: Vec<Icon>,
    /// `execution.taskSupport` (R4 only).
    pub task_support: Option<TaskSupport>,
    /// Metadata, an object (R3+).
    pub meta: Option<Raw>,
    /// Hints as they were written, an object. They are used instead of `annotations`, which holds
    /// our interpretation (MCP-J-10).
    pub written_annotations: Option<Raw>,
    /// Members that no revision knows, with their names (MCP-J-10).
    pub others: Vec<(String, Raw)>,
}

/// Members of a definition that some revision knows.
pub const KNOWN_MEMBERS: [&str; 9] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "icons",
    "execution",
    "_meta",
];

/// Whether a tool may or must be called as a task (MCP-TK-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    Forbidden,
    /// As the client likes.
    Optional,
    /// Always.
    Required,
}

/// Hints about a tool; clients treat them as untrusted (MCP-TL-8). Absent ones have the default
/// named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice is as once. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches into the world outside. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Tool {
    /// A tool with only a name and a schema.
    pub fn new(name: impl Into<String>, input_schema: Raw) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support: None,
            meta: None,
            written_annotations: None,
            others: Vec::new(),
        }
    }

    /// Appends the tool as `revision` knows it (MCP-FA-1, MCP-JS-9).
    pub fn write(&self, revision: Revision, out: &mut Vec<u8>) {
        let facts = revision.facts();
        let mut object = Object::begin(out);
        object.value("name", &self.name);
        if facts.titles {
            object.optional("title", self.title.as_ref());
        }
        object.optional("description", self.description.as_ref());
        object.key("inputSchema");
        shape::schema(&self.input_schema, revision, object.out());
        if let Some(schema) = &self.output_schema {
            let fits = match facts.structured_output {
                StructuredOutput::Absent => false,
                StructuredOutput::Object => shape::has_object_root(schema),
                StructuredOutput::Any => schema.kind() == Kind::Object,
            };
            if fits {
                object.key("outputSchema");
                shape::schema(schema, revision, object.out());
            }
        }
        if facts.tool_annotations {
            match &self.written_annotations {
                Some(written) => object.raw("annotations", written.as_bytes()),
                None => object.optional("annotations", self.annotations.as_ref()),
            }
        }
        if facts.icons && !self.icons.is_empty() {
            object.value("icons", &self.icons);
        }
        if facts.tool_execution
            && let Some(support) = self.task_support
        {
            object.key("execution");
            let mut execution = Object::begin(object.out());
            execution.value("taskSupport", &support);
            execution.end();
        }
        if facts.titles
            && let Some(meta) = self
                .meta
                .as_ref()
                .filter(|meta| meta.kind() == Kind::Object)
        {
            object.raw("_meta", meta.as_bytes());
        }
        for (name, value) in &self.others {
            object.raw(name, value.as_bytes());
        }
        object.end();
    }

    /// The tool as JSON, as `revision` knows it.
    pub fn to_json(&self, revision: Revision) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.write(revision, &mut out);
        out
    }
}

/// One page of `tools/list` from tools serialised by [`Tool::to_json`] for the same revision: keep
/// it and answer with [`crate::jsonrpc::response`]. The order is the caller's to keep: by name,
/// byte order (MCP-TL-3).
pub fn list_page<'i>(
    revision: Revision,
    identity: &Identity,
    tools: impl IntoIterator<Item = &'i [u8]>,
    next_cursor: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    result::list_page(revision, identity, "tools", tools, next_cursor, hint)
}

/// Parameters of `tools/call`, with the arguments as text.
#[derive(Clone, Debug)]
pub struct CallParams {
    /// The tool.
    pub name: String,
    /// The arguments: an object, never read here. Absent when the client sent none, which means
    /// `{}` (MCP-TL-4).
    pub arguments: Option<Raw>,
    /// R4: run it as a task, if tasks are offered (MCP-TK-1). An object.
    pub task: Option<Raw>,
    /// R5: answers to questions of an earlier round (MCP-MR-5). An object of objects.
    pub input_responses: Option<Raw>,
    /// R5: state of an earlier round, attacker-controlled (MCP-MR-6).
    pub request_state: Option<String>,
}

impl CallParams {
    /// Reads the parameters; a misfit is `-32602` in every revision (MCP-TL-18). The arguments are
    /// checked against the tool's schema later, and faults are reported as
    /// [`crate::revision::Facts::argument_faults`] says.
    pub fn read(params: &Params) -> Result<Self, Misfit> {
        let text = |member: &str| match (params.text(member), params.get(member)) {
            (Some(text), _) => Ok(Some(text.into_owned())),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Misfit::new(format!("params.{member}"), "expected a string")),
        };
        let object = |member: &str| match params.get(member) {
            Some(raw) if raw.kind() != Kind::Object => Err(Misfit::new(
                format!("params.{member}"),
                "expected an object",
            )),
            fits => Ok(fits),
        };
        let name = text("name")?.ok_or_else(|| Misfit::new("params.name", "required"))?;
        let arguments = object("arguments")?;
        let input_responses = object("inputResponses")?;
        if let Some(responses) = &input_responses
            && let Some((key, _)) = responses
                .members()
                .find(|(_, entry)| entry.kind() != Kind::Object)
        {
            return Err(Misfit::new(
                format!("params.inputResponses.{key}"),
                "expected an object",
            ));
        }
        let task = params
            .get("task")
            .filter(|task| task.kind() == Kind::Object);
        let request_state = text("requestState")?;
        Ok(Self {
            name,
            arguments,
            task,
            input_responses,
            request_state,
        })
    }

    /// The arguments as JSON text; `{}` if there are none.
    pub fn arguments_or_empty(&self) -> Raw {
        self.arguments.clone().unwrap_or(Raw::empty_object())
    }
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    /// Content for the model.
    pub content: Vec<ContentBlock>,
    /// Content for programs (R3+; below R5 objects only).
    pub structured_content: Option<Raw>,
    /// The tool's own work failed (MCP-TL-19).
    pub is_error: bool,
    /// Metadata, an object.
    pub meta: Option<Raw>,
}

impl CallResult {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }

    /// A failure in words that let a model repair the call (MCP-TL-18, MCP-TL-19).
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Appends the result as `revision` knows it (MCP-FA-2, MCP-FA-3, MCP-TL-13): a structured
    /// value that the revision has no place for, or that no text accompanies, is added as text.
    pub fn write(&self, revision: Revision, identity: &Identity, out: &mut Vec<u8>) {
        let structured = self.structured_content.as_ref();
        let is_object = structured.is_some_and(|value| value.kind() == Kind::Object);
        let emitted = match revision.facts().structured_output {
            StructuredOutput::Absent => false,
            StructuredOutput::Object => is_object,
            StructuredOutput::Any => true,
        };
        let mut result = ResultObject::begin(out, revision);
        result.object.key("content");
        let list = result.object.out();
        list.push(b'[');
        for (index, block) in self.content.iter().enumerate() {
            if index > 0 {
                list.push(b',');
            }
            block.write(revision, list);
        }
        if let Some(value) = structured
            && self.lacks_text_for(value, is_object)
        {
            if !self.content.is_empty() {
                list.push(b',');
            }
            list.extend_from_slice(br#"{"type":"text","text":"#);
            result::write_string(value.as_str(), list);
            list.push(b'}');
        }
        list.push(b']');
        if let Some(value) = structured.filter(|_| emitted) {
            result.object.raw("structuredContent", value.as_bytes());
        }
        if self.is_error {
            result.object.raw("isError", b"true");
        }
        result.end(
            identity,
            self.meta
                .as_ref()
                .filter(|meta| meta.kind() == Kind::Object),
        );
    }

    /// MCP-TL-13: an object needs some text beside it, any other value the text of exactly this
    /// JSON (SEP-2106).
    fn lacks_text_for(&self, value: &Raw, is_object: bool) -> bool {
        let mut texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        if is_object {
            return texts.next().is_none();
        }
        let tree: Option<serde_json::Value> = value.read("structuredContent").ok();
        !texts.any(|text| {
            text == value.as_str() || (tree.is_some() && serde_json::from_str(text).ok() == tree)
        })
    }

    /// The result as JSON, as `revision` knows it.
    pub fn to_json(&self, revision: Revision, identity: &Identity) -> Vec<u8> {
        let mut out = Vec::with_capacity(
            256 + self
                .structured_content
                .as_ref()
                .map_or(0, |raw| raw.as_bytes().len()),
        );
        self.write(revision, identity, &mut out);
        out
    }
}
