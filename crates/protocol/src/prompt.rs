//! Prompts (MCP-FA-4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{ContentBlock, Role};
use crate::initialize::Icon;
use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};
use crate::result::{self, CacheHint, Identity, ResultObject};
use crate::revision::Revision;

/// A prompt as it is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The name to get it by.
    pub name: String,
    /// Display name (R3+).
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Pictures (R4+).
    pub icons: Vec<Icon>,
    /// Metadata, an object (R3+).
    pub meta: Option<Raw>,
    /// Members that no revision knows, with their names (MCP-J-10).
    pub others: Vec<(String, Raw)>,
}

/// Members of a definition that some revision knows.
pub const KNOWN_MEMBERS: [&str; 6] = [
    "name",
    "title",
    "description",
    "arguments",
    "icons",
    "_meta",
];

/// Members of an argument that some revision knows.
pub const KNOWN_OF_ARGUMENT: [&str; 4] = ["name", "title", "description", "required"];

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Display name (R3+).
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// Members that no revision knows, with their names (MCP-J-10).
    pub others: Vec<(String, Raw)>,
}

impl Prompt {
    /// The prompt as JSON, as `revision` knows it.
    pub fn to_json(&self, revision: Revision) -> Vec<u8> {
        let facts = revision.facts();
        let mut out = Vec::with_capacity(256);
        let mut object = Object::begin(&mut out);
        object.value("name", &self.name);
        if facts.titles {
            object.optional("title", self.title.as_ref());
        }
        object.optional("description", self.description.as_ref());
        if !self.arguments.is_empty() {
            object.key("arguments");
            let list = object.out();
            list.push(b'[');
            for (index, argument) in self.arguments.iter().enumerate() {
                if index > 0 {
                    list.push(b',');
                }
                let mut entry = Object::begin(list);
                entry.value("name", &argument.name);
                if facts.titles {
                    entry.optional("title", argument.title.as_ref());
                }
                entry.optional("description", argument.description.as_ref());
                if argument.required {
                    entry.raw("required", b"true");
                }
                for (name, value) in &argument.others {
                    entry.raw(name, value.as_bytes());
                }
                entry.end();
            }
            list.push(b']');
        }
        if facts.icons && !self.icons.is_empty() {
            object.value("icons", &self.icons);
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
        out
    }
}

/// One page of `prompts/list`, from prompts serialised by [`Prompt::to_json`]; no items give the
/// empty list.
pub fn list_page<'i>(
    revision: Revision,
    identity: &Identity,
    prompts: impl IntoIterator<Item = &'i [u8]>,
    next_cursor: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    result::list_page(revision, identity, "prompts", prompts, next_cursor, hint)
}

/// Parameters of `prompts/get`. An unknown name is [`crate::error::ErrorKind::UnknownPrompt`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GetParams {
    /// The prompt.
    pub name: String,
    /// Its arguments, text to text.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
}

/// A message of a rendered prompt: one block each (MCP-PR-2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptMessage {
    /// Author of the message.
    pub role: Role,
    /// What.
    pub content: ContentBlock,
}

/// The result of `prompts/get`, as `revision` knows it.
pub fn get_result(
    revision: Revision,
    identity: &Identity,
    description: Option<&str>,
    messages: &[PromptMessage],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut result = ResultObject::begin(&mut out, revision);
    if let Some(description) = description {
        result.object.value("description", description);
    }
    result.object.key("messages");
    let list = result.object.out();
    list.push(b'[');
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        let mut entry = Object::begin(list);
        entry.value("role", &message.role);
        entry.key("content");
        message.content.write(revision, entry.out());
        entry.end();
    }
    list.push(b']');
    result.end(identity, None);
    out
}
