//! A call: one request of a client, from its transport to its answer.
//!
//! A transport makes one [`Call`] of each request. It is moved, and later shared by reference count
//! with the work, its channel to the client and its suspended form. No other struct repeats what it
//! holds.
//!
//! | Module | Subject |
//! |---|---|
//! | `client_channel` | messages to the client before the answer: progress, logs, questions |
//! | `notices`, `progress` | how often a client receives progress and logs |
//! | `request_state` | `requestState`: sealed, and verified before use |
//! | `suspended`, `retry` | a suspended call on its node, and its retry on any node |
//! | `stream_permit` | the permit of a stream that a client comes back for |

pub(crate) mod client_channel;
pub(crate) mod notices;
pub(crate) mod progress;
pub(crate) mod request_state;
pub(crate) mod retry;
pub(crate) mod stream_permit;
pub(crate) mod suspended;

use std::{pin::Pin, sync::Arc};

use portolan_cluster::node::{LimitKey, Lost, Rate};
use portolan_model::{Timestamp, registry::CallOutcome};
use portolan_protocol::{
    capability::ClientCapabilities,
    error::ErrorKind,
    jsonrpc::{self, Misfit, Params, ProgressToken, RequestId},
    logging::Level,
    meta::RequestMeta,
    method::Method,
    revision::{Era, Revision},
    visible::Visible,
};
use portolan_traces::Span;

use crate::{
    call::request_state::Continued,
    caller::Caller,
    catalog::server::{Server, Tool},
    error::McpError,
    limits::Permit,
    nodes::context::NodeContext,
    payloads::About,
    session::{LiveSession, OfSession},
    shutdown::stopped,
};

/// A call that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Vec<u8>, McpError>> + Send>>;

/// A backend of a test: the work of the tool with that name.
#[cfg(test)]
pub(crate) type Script =
    Arc<dyn Fn(RequestId, client_channel::ClientChannel) -> Running + Send + Sync>;

/// One request of a client.
#[derive(Debug)]
pub(crate) struct Call {
    /// The node on which it runs.
    pub(crate) state: NodeContext,
    pub(crate) method: Method,
    pub(crate) params: Params,
    pub(crate) id: RequestId,
    pub(crate) revision: Revision,
    pub(crate) caller: Arc<Caller>,
    pub(crate) server: Arc<Server>,
    pub(crate) client: Client,
    /// The session, for requests of the session era.
    pub(crate) session: Option<LiveSession>,
    /// The slug in the path.
    pub(crate) tenant_slug: Arc<str>,
    /// The token under which the client wants progress (MCP-PP-1), once its handler has read it.
    pub(crate) progress: Option<ProgressToken>,
    /// The state that the client brings from an earlier round (MCP-X-29).
    pub(crate) continued: Option<Continued>,
    /// The client's wish for a task (MCP-TK-3).
    pub(crate) task: Option<AsTask>,
    /// The trace, if it has one.
    pub(crate) trace: Option<Arc<Span>>,
    /// The time of the request.
    pub(crate) now: Timestamp,
}

/// The client of a call, as it declared itself.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) version: Option<Arc<str>>,
    /// In the session era: those of `initialize`.
    pub(crate) capabilities: ClientCapabilities,
    /// The lowest level of log messages that it wants.
    pub(crate) level: Option<Level>,
}

/// A call that its client wants as a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsTask {
    /// The lifetime that the client wants, in milliseconds.
    pub(crate) ttl: Option<u64>,
}

impl Call {
    /// An error with the code and text of this revision, and the id of this request.
    pub(crate) fn fail(&self, kind: &ErrorKind) -> McpError {
        McpError::of(kind, self.revision, Some(&self.id))
    }

    /// The error for parameters that do not fit.
    pub(crate) fn misfit(&self, misfit: Misfit) -> McpError {
        self.fail(&misfit.into())
    }

    /// Reads the parameters.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, McpError> {
        self.params.read().map_err(|misfit| self.misfit(misfit))
    }

    /// The answer with this result.
    pub(crate) fn result(&self, result: &[u8]) -> Vec<u8> {
        jsonrpc::response(&self.id, result)
    }

    /// The answer with an empty result.
    pub(crate) fn empty_result(&self) -> Vec<u8> {
        self.result(&self.server.fixed(self.revision).empty)
    }

    /// The answer with a fixed text, for work that failed.
    ///
    /// The answer for a capability that a modern client lacks has an HTTP status of its own
    /// (MCP-V-2).
    pub(crate) fn said(&self, visible: &Visible) -> Result<Vec<u8>, McpError> {
        if let Visible::Needs(need) = visible
            && self.revision.era() == Era::Modern
        {
            let required = need.required();
            return Err(self.fail(&ErrorKind::MissingCapability { required }));
        }
        Ok(self.visible(visible))
    }

    /// An answer with a fixed text.
    pub(crate) fn visible(&self, visible: &Visible) -> Vec<u8> {
        let identity = &self.server.identity;
        visible
            .answer(self.method, &self.id, self.revision, identity)
            .1
    }

    /// Reads the token under which the client wants progress.
    pub(crate) fn read_progress(&mut self) -> Result<(), McpError> {
        let token = RequestMeta::progress_token(&self.params);
        self.progress = token.map_err(|misfit| self.misfit(misfit))?;
        Ok(())
    }

    /// The session in the form for upstream servers.
    pub(crate) fn of_session(&self) -> Option<OfSession> {
        let session = self.session.as_ref()?;
        Some(session.of(&self.caller, self.now))
    }

    /// The facts about the call for the node that takes it over, where a second call may do harm.
    pub(crate) fn about(&self) -> About {
        About {
            id: Some(self.id.clone()),
            retryable: false,
        }
    }

    /// Completes with the reason when the call must stop: the process drains, or its token is
    /// revoked.
    pub(crate) async fn stopped(&self) -> Lost {
        stopped(&self.state.shutdown, &self.caller).await
    }

    /// The trace context for the next server.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.trace.as_ref().map(|span| span.context().traceparent())
    }
}

/// The limits before the work begins.
impl Call {
    /// Takes one token from a bucket, or refuses with 429 (MCP-T-14).
    async fn limit(&self, key: &LimitKey, rate: Option<Rate>) -> Result<(), McpError> {
        let taken = self.state.admission.take(self.server.tenant, key, rate);
        taken
            .await
            .map_err(|over| McpError::over(over, self.revision, Some(&self.id)))
    }

    /// Applies the limit of requests: of the person with this client.
    pub(crate) async fn limit_request(&self) -> Result<(), McpError> {
        self.limit(&self.caller.requests, self.server.limits.requests)
            .await
    }

    /// Applies the tenant's limit of calls, to each request that reaches a backend. A `tool` has a
    /// limit of its own (MCP-TL-23).
    pub(crate) async fn limit_call(&self, tool: Option<&Tool>) -> Result<(), McpError> {
        let limits = &self.server.limits;
        self.limit(&self.server.calls, limits.calls).await?;
        match tool {
            Some(tool) => self.limit(&tool.calls, limits.tool_calls).await,
            None => Ok(()),
        }
    }

    /// Takes a permit for a running call.
    pub(crate) async fn enter(&self) -> Result<Permit, McpError> {
        let server = &self.server;
        let permit = self.state.admission.run_call(server.tenant, &server.limits);
        permit
            .await
            .map_err(|no| McpError::no_permit(no, self.revision, Some(&self.id)))
    }
}

/// Ends the trace of a call (STREAM-20).
pub(crate) fn end_trace(span: &Span, outcome: CallOutcome) {
    span.set("portolan.outcome", outcome.as_str());
    if outcome != CallOutcome::Ok {
        span.failed(outcome.as_str());
    }
}
