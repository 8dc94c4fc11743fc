//! The trace of a tool call on this node, without arguments and results (STREAM-20).

use std::sync::Arc;

use portolan_protocol::{jsonrpc::Message, meta::RequestMeta, method::Method, revision::Revision};
use portolan_traces::Context;

use crate::transport::request::RequestContext;

/// Begins the trace of a message of a session, if it is a call.
pub(crate) fn message(context: &RequestContext<'_>, message: &Message, revision: Revision) {
    if portolan_traces::is_on()
        && context.trace.get().is_none()
        && let Message::Request(request) = message
        && *request.method == *Method::ToolsCall.name()
    {
        // An invalid `_meta` is reported later.
        let meta = RequestMeta::legacy(&request.params).unwrap_or_default();
        call(context, &meta, revision);
    }
}

/// Begins the trace of a call, in the client's trace if it names one (MCP-J-23).
pub(crate) fn call(context: &RequestContext<'_>, meta: &RequestMeta, revision: Revision) {
    if !portolan_traces::is_on() {
        return;
    }
    let Some(span) = portolan_traces::call("tools/call", client(context, meta)) else {
        return;
    };
    span.set("mcp.method.name", Method::ToolsCall.name());
    span.set("mcp.protocol.version", revision.as_str());
    span.set("portolan.tenant", context.tenant_slug);
    span.set(
        "portolan.node.attached",
        context.state.node.id().to_string(),
    );
    let _ = context.trace.set(Arc::new(span));
}

/// The client's trace context.
///
/// The message takes precedence over the HTTP headers, which a proxy may have rewritten.
fn client(context: &RequestContext<'_>, meta: &RequestMeta) -> Option<Context> {
    if let Some(traceparent) = &meta.traceparent {
        return Context::read(traceparent, meta.tracestate.as_deref());
    }
    let header = |name| context.head.get(name)?.to_str().ok();
    Context::read(header("traceparent")?, header("tracestate"))
}
