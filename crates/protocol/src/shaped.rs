//! A translated value, what the translation lost, and what a sender may not send.

pub(crate) mod block;
mod loss;

use crate::json::Raw;

pub use loss::{Loss, Losses};

/// A value as the other side knows it, and what that cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// The JSON text.
    pub json: Vec<u8>,
    /// Losses of the translation.
    pub losses: Losses,
}

impl Shaped {
    /// The value, to be read on.
    pub fn into_raw(self) -> Raw {
        Raw::trusted(self.json.into())
    }
}

/// Message of an upstream that its revision does not allow (MCP-X-8): MCP-V-8 with `-31005`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// A result or a definition that is no object.
    #[error("not an object")]
    NotAnObject,
    /// A `resultType` that the request did not allow.
    #[error("an unknown resultType")]
    ResultType,
    /// Content that is no list of blocks.
    #[error("content is not a list of blocks")]
    Content,
    /// A block without what its type needs.
    #[error("a block lacks what its type needs")]
    Block,
    /// Messages of a prompt that are none.
    #[error("messages are malformed")]
    Messages,
    /// Contents of a resource that are none.
    #[error("contents are malformed")]
    Contents,
    /// A completion without values.
    #[error("a completion lacks values")]
    Completion,
    /// An input_required result without a question, or in a wrong form (MCP-MR-2, MCP-MR-3).
    #[error("an input_required result is malformed")]
    InputRequired,
    /// A definition without a name, a URI or a schema.
    #[error("a definition lacks a required member")]
    Definition,
    /// A task without id, state or times.
    #[error("a task is malformed")]
    Task,
}
