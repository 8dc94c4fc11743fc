//! `completion/complete` (MCP-CP-1…MCP-CP-5, MCP-FA-7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::{Identity, ResultObject};
use crate::revision::Revision;

/// The most values of one answer (MCP-CP-3).
pub const MAX_VALUES: usize = 100;

/// Parameters of `completion/complete`. A `ref` that does not exist is `-32602` (MCP-CP-4):
/// [`CompleteParams::unknown_ref`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CompleteParams {
    /// Owner of the argument.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument and what was typed so far.
    pub argument: Argument,
    /// Values already chosen (R3+).
    #[serde(default)]
    pub context: Option<Context>,
}

/// Owner of the argument that is completed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
    },
    /// A resource or a template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI or template.
        uri: String,
    },
}

/// The argument to complete.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Text typed so far.
    pub value: String,
}

/// Values already chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Context {
    /// Argument to value.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
}

impl CompleteParams {
    /// The misfit of a reference that does not exist, or that the caller may not see.
    pub fn unknown_ref() -> crate::jsonrpc::Misfit {
        crate::jsonrpc::Misfit::new("params.ref", "unknown prompt or resource")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Completion<'a> {
    values: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    has_more: bool,
}

/// The result: at most [`MAX_VALUES`] values; more are cut and `hasMore` set (MCP-CP-3).
pub fn result(
    revision: Revision,
    identity: &Identity,
    values: &[String],
    total: Option<u64>,
) -> Vec<u8> {
    let shown = &values[..values.len().min(MAX_VALUES)];
    let completion = Completion {
        values: shown,
        total,
        has_more: values.len() > MAX_VALUES,
    };
    let mut out = Vec::with_capacity(256);
    let mut result = ResultObject::begin(&mut out, revision);
    result.object.value("completion", &completion);
    result.end(identity, None);
    out
}
