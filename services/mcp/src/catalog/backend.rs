//! The backend of a tool: an HTTP API, or an upstream MCP server.

use std::sync::Arc;

use portolan_http_tools::{CallTarget, CompiledTool};

use crate::catalog::{credential_state::Access, upstream::UpstreamTool};

/// The backend of a tool.
#[derive(Debug)]
pub(crate) enum Backend {
    /// An HTTP API.
    Http(HttpTool),
    /// An upstream MCP server.
    Upstream(Box<UpstreamTool>),
}

/// A tool of an HTTP API.
#[derive(Debug)]
pub(crate) struct HttpTool {
    /// Schemas and plan.
    pub(crate) compiled: CompiledTool,
    /// The target of its calls.
    pub(crate) target: Arc<CallTarget>,
    /// The credential of its calls.
    pub(crate) access: Access,
}

impl HttpTool {
    /// True if the API needs a connected account.
    pub(crate) fn has_accounts(&self) -> bool {
        matches!(self.access, Access::Account(_))
    }

    /// True if its calls may ask their person to connect an account.
    pub(crate) fn asks(&self) -> bool {
        matches!(&self.access, Access::Account(accounts) if accounts.are_personal())
    }
}
