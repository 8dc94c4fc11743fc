//! One admitted HTTP request.

use std::sync::{Arc, OnceLock};

use axum::response::Response;
use http::HeaderMap;
use portolan_model::Timestamp;
use portolan_net::layers::Arrival;
use portolan_protocol::{
    header::Headers,
    method::Method,
    revision::{Era, Revision},
};
use portolan_traces::Span;

use crate::{
    caller::Caller,
    catalog::server::Server,
    error::{self, McpError},
    features::context::Context,
    instruments::Outcome,
    session::LiveSession,
    streams::open::Opening,
    target::Target,
    transport::{accept::Accepted, services::TransportServices},
};

/// One admitted HTTP request: its caller, its server, and the accepted forms of an answer.
#[derive(Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) state: &'a TransportServices,
    pub(crate) target: Target<'a>,
    /// The slug in the path; the tenant's current slug if the path has none.
    pub(crate) tenant_slug: &'a str,
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

impl<'a> RequestContext<'a> {
    /// The view of this request that a handler gets.
    pub(crate) fn call_context<'c>(
        &'c self,
        revision: Revision,
        session: Option<&'c LiveSession>,
        draft: bool,
        headers: Option<&'c Headers<'c>>,
    ) -> Context<'c>
    where
        'a: 'c,
    {
        let client_name = self.state.client_names.get(&self.caller.principal);
        Context {
            state: self.state,
            server: &self.server,
            caller: &self.caller,
            revision,
            session,
            draft,
            headers: headers.unwrap_or(self.headers),
            client_name,
            tenant_slug: self.tenant_slug,
            capabilities: None,
            trace: self.trace.get(),
            now: self.now,
        }
    }

    /// The same for the streams that this request opens.
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

/// Longest name of a client that is kept for the log of calls, in characters.
pub(crate) const CLIENT_NAME_CHARS: usize = 64;

/// A client's name in the form for the log: printable and short, or nothing.
pub(crate) fn shown_name(name: &str) -> Option<Arc<str>> {
    let shown: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(CLIENT_NAME_CHARS)
        .collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.into())
}
