//! The backends of published items: an HTTP API, or an upstream MCP server.

pub(crate) mod account;
pub(crate) mod http;
pub(crate) mod services;
pub(crate) mod upstream;

use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::RequestId,
    method::Method,
    result::Identity,
    revision::{Era, Revision},
    visible::Visible,
};

use crate::error::McpError;

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
