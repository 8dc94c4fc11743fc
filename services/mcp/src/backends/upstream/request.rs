//! A request to be forwarded to an upstream server, and its answer.

use std::sync::Arc;

use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    header::ParamHeader, jsonrpc::Raw, logging::Level, method::Method, result, revision::Era,
};

use crate::{
    call::{Call, client_channel::ClientChannel},
    catalog::{renames::Renamed, upstream::UpstreamTool},
    error::McpError,
};

/// A request to be forwarded.
pub(crate) struct Forward<'a> {
    /// The client's request.
    pub(crate) call: &'a Arc<Call>,
    /// The method; another one than the client's for requests about a task of the server.
    pub(crate) method: Method,
    /// The parameters for the server, without `_meta`.
    pub(crate) params: Raw,
    /// Arguments that headers repeat.
    pub(crate) mirrored: &'a [ParamHeader],
    /// The tool, if the request is a call.
    pub(crate) tool: Option<&'a UpstreamTool>,
    /// The channel to the client; `None` if the answer is one body.
    pub(crate) channel: Option<&'a ClientChannel>,
    pub(crate) traceparent: Option<String>,
    /// Resources that the client knows by other URIs than the server (MCP-RE-12).
    pub(crate) renamed: Option<&'a Renamed>,
}

impl<'a> Forward<'a> {
    /// The client's request with the server's own name of the item, `own`.
    pub(crate) fn new(
        call: &'a Arc<Call>,
        own: (&str, &Raw),
        channel: Option<&'a ClientChannel>,
    ) -> Self {
        let params = call.params.raw();
        Self {
            call,
            method: call.method,
            params: renamed(params.unwrap_or(&Raw::empty_object()), own),
            mirrored: &[],
            tool: None,
            channel,
            traceparent: call.traceparent(),
            renamed: None,
        }
    }

    /// The era in which a server of both is spoken to: that of the client, but for a tool that it
    /// has in one alone.
    pub(crate) fn era(&self) -> Era {
        let of_tool = self.tool.and_then(|tool| tool.era);
        of_tool.unwrap_or(self.call.revision.era())
    }

    /// True if this is the client's own request: the client gets its progress and logs.
    fn is_own(&self) -> bool {
        self.method == self.call.method
    }

    /// True if the client wants progress of this request.
    pub(crate) fn wants_progress(&self) -> bool {
        self.is_own() && self.call.progress.is_some()
    }

    /// The lowest level of log messages that the client wants of this request.
    pub(crate) fn level(&self) -> Option<Level> {
        self.call.client.level.filter(|_| self.is_own())
    }
}

/// The answer to a forwarded request.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON-RPC response, or a refusal with an HTTP status of its own.
    pub(crate) body: Result<Vec<u8>, McpError>,
    pub(crate) outcome: CallOutcome,
    /// Why it failed, in words of ours: the log of calls keeps them.
    pub(crate) reason: Option<String>,
}

impl Answered {
    /// The answer in the form of handlers.
    pub(crate) fn into_body(self) -> Result<Vec<u8>, McpError> {
        self.body
    }
}

/// The parameters with the server's own name of the item.
///
/// Members of our own leg (`task`, answers to questions that the server never asked) are left out.
fn renamed(params: &Raw, (member, own): (&str, &Raw)) -> Raw {
    let mut out = vec![b'{'];
    result::write_string(member, &mut out);
    out.push(b':');
    out.extend_from_slice(own.as_bytes());
    for (name, value) in params.members() {
        if name != member
            && matches!(
                name.as_str(),
                "arguments" | "argument" | "context" | "_meta"
            )
        {
            out.push(b',');
            result::write_string(&name, &mut out);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}
