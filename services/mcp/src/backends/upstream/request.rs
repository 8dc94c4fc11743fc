//! A request to be forwarded to an upstream server, and its answer.

use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    header::ParamHeader,
    jsonrpc::{Raw, RequestId},
    logging::Level,
    method::Method,
    result::Identity,
    revision::{Era, Revision},
};

use crate::{
    backends::upstream::conversation::Who,
    call::client_channel::ClientChannel,
    catalog::{renames::Renamed, upstream::UpstreamTool},
    error::McpError,
};

/// A request to be forwarded.
pub(crate) struct Forward<'a> {
    pub(crate) method: Method,
    /// The parameters for the server, without `_meta`.
    pub(crate) params: Raw,
    /// The id of the client's request.
    pub(crate) id: &'a RequestId,
    pub(crate) revision: Revision,
    pub(crate) who: &'a Who,
    /// Arguments that headers repeat.
    pub(crate) mirrored: &'a [ParamHeader],
    /// The tool, if the request is a call.
    pub(crate) tool: Option<&'a UpstreamTool>,
    /// The client wants progress.
    pub(crate) progress: bool,
    /// The lowest level of log messages that the client wants.
    pub(crate) level: Option<Level>,
    /// The channel to the client; `None` if the answer is one body.
    pub(crate) channel: Option<&'a ClientChannel>,
    pub(crate) traceparent: Option<String>,
    pub(crate) identity: &'a Identity,
    /// Resources that the client knows by other URIs than the server (MCP-RE-12).
    pub(crate) renamed: Option<&'a Renamed>,
}

impl Forward<'_> {
    /// The era in which a server of both is spoken to: that of the client, but for a tool that it
    /// has in one alone.
    pub(crate) fn era(&self) -> Era {
        let of_tool = self.tool.and_then(|tool| tool.era);
        of_tool.unwrap_or(self.revision.era())
    }
}

/// The answer to a forwarded request.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON-RPC response, or a refusal with an HTTP status of its own.
    pub(crate) body: Result<Vec<u8>, McpError>,
    pub(crate) outcome: CallOutcome,
}

impl Answered {
    /// The answer in the form of handlers.
    pub(crate) fn into_body(self) -> Result<Vec<u8>, McpError> {
        self.body
    }
}
