//! The trace of a tool call: where it begins on this node, and what is known of it (`streams.md` §20). Never what goes in or comes out.

use std::sync::Arc;

use portolan_model::registry::CallOutcome;
use portolan_protocol::{jsonrpc::Message, meta::RequestMeta, method::Method, revision::Revision};
use portolan_traces::{Context, Span};

use crate::endpoint::Visit;

/// Begins the trace of a message of a session, if it is a call.
pub(crate) fn message(visit: &Visit<'_>, message: &Message, revision: Revision) {
    if portolan_traces::is_on()
        && visit.trace.get().is_none()
        && let Message::Request(request) = message
        && *request.method == *Method::ToolsCall.name()
    {
        // Who breaks `_meta` is told so later.
        let meta = RequestMeta::legacy(&request.params).unwrap_or_default();
        call(visit, &meta, revision);
    }
}

/// Begins the trace of a call: where its client says (J-23), or of its own.
pub(crate) fn call(visit: &Visit<'_>, meta: &RequestMeta, revision: Revision) {
    if !portolan_traces::is_on() {
        return;
    }
    let Some(span) = portolan_traces::call("tools/call", client(visit, meta)) else {
        return;
    };
    span.set("mcp.method.name", Method::ToolsCall.name());
    span.set("mcp.protocol.version", revision.as_str());
    span.set("portolan.tenant", visit.tenant_slug);
    span.set("portolan.node.attached", visit.state.node.id().to_string());
    let _ = visit.trace.set(Arc::new(span));
}

/// What the client says of a trace. The message knows it better than the request that carried it, which a proxy may have
/// written anew.
fn client(visit: &Visit<'_>, meta: &RequestMeta) -> Option<Context> {
    if let Some(traceparent) = &meta.traceparent {
        return Context::read(traceparent, meta.tracestate.as_deref());
    }
    let header = |name| visit.head.get(name)?.to_str().ok();
    Context::read(header("traceparent")?, header("tracestate"))
}

/// A call is over.
pub(crate) fn ran(span: &Span, outcome: CallOutcome) {
    span.set("portolan.outcome", outcome.as_str());
    if outcome != CallOutcome::Ok {
        span.failed(outcome.as_str());
    }
}
