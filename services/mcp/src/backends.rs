//! The backends of published items: an HTTP API, or an upstream MCP server.

pub(crate) mod account;
pub(crate) mod http;
pub(crate) mod upstream;

use std::sync::Arc;

use portolan_http_tools::{CallTarget, CompiledTool};
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::RequestId,
    method::Method,
    result::Identity,
    revision::{Era, Revision},
    visible::Visible,
};

use crate::{backends::upstream::UpstreamTool, catalog::server::Access, error::McpError};

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

/// An answer with a fixed text, for work that failed.
///
/// The answer for a capability that a modern client lacks has an HTTP status of its own (MCP-V-2).
pub(crate) fn said(
    visible: &Visible,
    method: Method,
    id: &RequestId,
    revision: Revision,
    identity: &Identity,
) -> Result<Vec<u8>, McpError> {
    if let Visible::Needs(need) = visible
        && revision.era() == Era::Modern
    {
        let required = need.required();
        let kind = ErrorKind::MissingCapability { required };
        return Err(McpError::of(&kind, revision, Some(id)));
    }
    let (_, body) = visible.answer(method, id, revision, identity);
    Ok(body)
}
