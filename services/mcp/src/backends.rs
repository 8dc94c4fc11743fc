//! Who answers for what a server publishes: an HTTP API, or an MCP server of somebody else.

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

impl HttpTool {
    /// True if connected accounts open the API.
    pub(crate) fn has_accounts(&self) -> bool {
        matches!(self.access, Access::Account(_))
    }

    /// True if its calls may ask their person to connect an account.
    pub(crate) fn asks(&self) -> bool {
        matches!(&self.access, Access::Account(accounts) if accounts.are_personal())
    }
}

/// The answer of what could not be done, in fixed words. That of a capability that a modern client lacks has an HTTP status of its own (V-2).
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
