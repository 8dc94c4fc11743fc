//! Who answers for what a server publishes: an HTTP API, or an MCP server of somebody else.

pub(crate) mod upstream;

use std::sync::Arc;

use portolan_http_tools::{CallTarget, CompiledTool};

use crate::{backends::upstream::UpstreamTool, catalog::server::Access};

/// Who answers for a tool.
#[derive(Debug)]
pub(crate) enum Backend {
    /// An HTTP API.
    Http(HttpTool),
    /// An MCP server.
    Upstream(Box<UpstreamTool>),
}

/// A tool of an HTTP API.
#[derive(Debug)]
pub(crate) struct HttpTool {
    /// Schemas and plan.
    pub(crate) compiled: CompiledTool,
    /// Where its calls go.
    pub(crate) target: Arc<CallTarget>,
    /// What they sign in with.
    pub(crate) access: Access,
}
