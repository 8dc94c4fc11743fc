//! The transports: they make calls of HTTP requests, and write the replies.
//!
//! This file holds what all of them share: the admitted request, the forms of its answer
//! (MCP-T-6, MCP-T-7), and the begin of a call's trace, without arguments and results (STREAM-20).

pub(crate) mod http_sse;
pub(crate) mod services;
pub(crate) mod stateless;
pub(crate) mod streamable_http;

use std::sync::{Arc, OnceLock};

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use portolan_model::{Timestamp, live_session::MomentKind};
use portolan_net::layers::Arrival;
use portolan_protocol::{
    header::Headers,
    initialize::Implementation,
    jsonrpc::{Message, Request},
    media::{self, Accepted},
    meta::RequestMeta,
    method::Method,
    revision::{Era, Revision},
};
use portolan_traces::{Context as TraceContext, Span};

use crate::{
    call::{Call, Client},
    caller::{Caller, ClientName},
    catalog::server::Server,
    error::{self, McpError},
    instruments::Outcome,
    live_sessions::board::{Facts as SessionFacts, without_session},
    nodes::context::NodeContext,
    session::LiveSession,
    streams::open::Opening,
    target::Target,
    transport::services::TransportServices,
};

/// One admitted HTTP request: its caller, its server, and the accepted forms of an answer.
#[derive(Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) state: &'a TransportServices,
    pub(crate) target: Target<'a>,
    /// The slug in the path; the tenant's current slug if the path has none.
    pub(crate) tenant_slug: Arc<str>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) server: Arc<Server>,
    pub(crate) accepted: Accepted,
    pub(crate) now: Timestamp,
    pub(crate) headers: &'a Headers<'a>,
    pub(crate) arrival: Option<&'a Arrival>,
    /// The request headers as received.
    pub(crate) head: &'a HeaderMap,
    /// The span of a call, if the request is a call.
    pub(crate) trace: OnceLock<Arc<Span>>,
}

impl RequestContext<'_> {
    /// Makes the call of a request that stands alone. Its client declares itself in `meta`.
    pub(crate) fn stateless_call(
        &self,
        revision: Revision,
        method: Method,
        request: Request,
        meta: RequestMeta,
    ) -> Box<Call> {
        let card = meta.client_info.as_ref();
        let shown = if revision.facts().era == Era::Modern {
            self.note_stateless(revision, method, card)
        } else {
            card.and_then(ClientName::of)
        };
        let named = if card.is_some() {
            shown
        } else {
            self.client_name()
        };
        let (name, version) = named.map(|named| (named.name, named.version)).unzip();
        let client = Client {
            name,
            version: version.flatten(),
            capabilities: meta.client_capabilities,
            level: meta.log_level,
        };
        self.call(revision, method, request, client, None)
    }

    /// Makes the call of a request of a session.
    pub(crate) fn session_call(
        &self,
        session: LiveSession,
        method: Method,
        request: Request,
    ) -> Box<Call> {
        let named = self.client_name();
        let (name, version) = named.map(|named| (named.name, named.version)).unzip();
        let client = Client {
            name,
            version: version.flatten(),
            capabilities: session.id.capabilities(),
            level: Some(session.level()),
        };
        let revision = session.id.revision;
        let kind = MomentKind::Request;
        let board = &self.state.sessions;
        board.note(session.id.key, self.now, kind, Some(method));
        self.call(revision, method, request, client, Some(session))
    }

    /// The facts of a session, or of a client without one, for the list of sessions.
    pub(crate) fn session_facts(
        &self,
        revision: Revision,
        created_at: Option<Timestamp>,
    ) -> SessionFacts {
        SessionFacts {
            tenant: self.server.tenant,
            server: self.server.id,
            owner: Arc::clone(&self.caller.owner),
            revision,
            created_at,
        }
    }

    /// Notes a request of the era without sessions. Returns the name on the client's card.
    fn note_stateless(
        &self,
        revision: Revision,
        method: Method,
        card: Option<&Implementation>,
    ) -> Option<ClientName> {
        let board = &self.state.sessions;
        let key = without_session(self.caller.session_principal(), self.server.id);
        let facts = || self.session_facts(revision, None);
        board.requested(key, self.now, facts, method, card)
    }

    fn call(
        &self,
        revision: Revision,
        method: Method,
        request: Request,
        client: Client,
        session: Option<LiveSession>,
    ) -> Box<Call> {
        let state: &NodeContext = self.state;
        Box::new(Call {
            state: state.clone(),
            method,
            params: request.params,
            id: request.id,
            revision,
            caller: Arc::clone(&self.caller),
            server: Arc::clone(&self.server),
            client,
            session,
            tenant_slug: Arc::clone(&self.tenant_slug),
            progress: None,
            continued: None,
            task: None,
            trace: self.trace.get().cloned(),
            now: self.now,
        })
    }

    /// The name of the client at its last `initialize`.
    fn client_name(&self) -> Option<ClientName> {
        self.state.client_names.get(&self.caller.principal)
    }

    /// Makes the call of `initialize`, which has no session yet.
    pub(crate) fn initialize_call(&self, revision: Revision, request: &Request) -> Box<Call> {
        let meta = RequestMeta::default();
        self.stateless_call(revision, Method::Initialize, request.clone(), meta)
    }

    /// This request for the streams that it opens.
    pub(crate) fn opening(&self) -> Opening<'_> {
        Opening {
            state: self.state,
            target: self.target,
            caller: &self.caller,
            server: &self.server,
            now: self.now,
        }
    }

    /// The answer in a form that the client accepts: JSON if possible, else one event (MCP-T-7).
    pub(crate) fn answer(&self, body: Vec<u8>) -> Response {
        if self.accepted.json {
            error::ok(body)
        } else {
            error::one_event(&body)
        }
    }

    /// Notes the method for the request's log line.
    pub(crate) fn note_method(&self, method: Method) {
        if let Some(arrival) = self.arrival {
            arrival.note_mcp_method(method.name());
        }
    }

    /// Counts a message by its outcome.
    pub(crate) fn count<T>(&self, era: Era, method: Option<Method>, outcome: &Result<T, McpError>) {
        let outcome = match outcome {
            Ok(_) => Outcome::Ok,
            Err(McpError::Protocol(_) | McpError::Lost(_)) => Outcome::Error,
            Err(_) => Outcome::Refused,
        };
        self.state.instruments.message(era, method, outcome);
        if let (Some(trace), false) = (self.trace.get(), outcome == Outcome::Ok) {
            trace.failed(outcome.name());
        }
    }
}

/// Begins the trace of a message of a session, if it is a call.
pub(crate) fn trace_message(context: &RequestContext<'_>, message: &Message, revision: Revision) {
    if portolan_traces::is_on()
        && context.trace.get().is_none()
        && let Message::Request(request) = message
        && *request.method == *Method::ToolsCall.name()
    {
        // An invalid `_meta` is reported later.
        let meta = RequestMeta::legacy(&request.params).unwrap_or_default();
        trace_call(context, &meta, revision);
    }
}

/// Begins the trace of a call, in the client's trace if it names one (MCP-J-23).
pub(crate) fn trace_call(context: &RequestContext<'_>, meta: &RequestMeta, revision: Revision) {
    if !portolan_traces::is_on() {
        return;
    }
    let Some(span) = portolan_traces::call("tools/call", client_trace(context, meta)) else {
        return;
    };
    span.set("mcp.method.name", Method::ToolsCall.name());
    span.set("mcp.protocol.version", revision.as_str());
    span.set("portolan.tenant", &*context.tenant_slug);
    span.set(
        "portolan.node.attached",
        context.state.node.id().to_string(),
    );
    let _ = context.trace.set(Arc::new(span));
}

/// The client's trace context.
///
/// The message takes precedence over the HTTP headers, which a proxy may have rewritten.
fn client_trace(context: &RequestContext<'_>, meta: &RequestMeta) -> Option<TraceContext> {
    if let Some(traceparent) = &meta.traceparent {
        return TraceContext::read(traceparent, meta.tracestate.as_deref());
    }
    let header = |name| context.head.get(name)?.to_str().ok();
    TraceContext::read(header("traceparent")?, header("tracestate"))
}

/// The values of a header, a line each.
pub(crate) fn lines(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let values = headers.get_all(name).into_iter();
    values.map(HeaderValue::as_bytes)
}

/// Refuses a body that is not JSON (MCP-T-6), and a body with a content coding.
///
/// The endpoint decompresses nothing, so decompression bombs are impossible (TEST-B5).
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), McpError> {
    if !media::is_json(lines(headers, header::CONTENT_TYPE)) {
        return Err(McpError::MediaType);
    }
    if media::is_packed(lines(headers, header::CONTENT_ENCODING)) {
        return Err(McpError::Packed);
    }
    Ok(())
}
