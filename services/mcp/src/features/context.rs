//! One request as its handler sees it.

use std::sync::Arc;

use portolan_cluster::node::{LimitKey, Rate};
use portolan_model::Timestamp;
use portolan_protocol::{
    capability::ClientCapabilities,
    error::ErrorKind,
    header::Headers,
    jsonrpc::{Params, RequestId},
    logging::Level,
    method::Method,
    revision::Revision,
};
use portolan_traces::Span;

use crate::{
    backends::upstream::conversation::{OfSession, Who},
    call::request_state::RequestScope,
    caller::Caller,
    catalog::server::{Server, Tool},
    error::McpError,
    limits::Permit,
    session::LiveSession,
    streams::services::StreamServices,
};

/// The view of one request that its handler gets.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a StreamServices,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) revision: Revision,
    /// The session, for legacy requests.
    pub(crate) session: Option<&'a LiveSession>,
    /// The session uses the draft profile (MCP-D-1).
    pub(crate) draft: bool,
    pub(crate) headers: &'a Headers<'a>,
    pub(crate) client_name: Option<Arc<str>>,
    /// The slug in the path.
    pub(crate) tenant_slug: &'a str,
    /// The capabilities that a modern client declares with this request.
    pub(crate) capabilities: Option<&'a ClientCapabilities>,
    /// The trace of a call, if it has one.
    pub(crate) trace: Option<&'a Arc<Span>>,
    pub(crate) now: Timestamp,
}

impl Context<'_> {
    /// The request, as far as it may ask its client in rounds.
    pub(crate) fn scope(&self, method: Method, id: &RequestId, params: &Params) -> RequestScope {
        let of = (self.caller, self.server);
        RequestScope::new(self.state, of, self.revision, method, id, params)
    }

    /// An error with the code and text of this revision.
    pub(crate) fn fail(&self, kind: &ErrorKind, id: &RequestId) -> McpError {
        McpError::of(kind, self.revision, Some(id))
    }

    /// The client's identity, as it is sent to upstream servers.
    pub(crate) fn who(&self) -> Who {
        let declared = match (self.session, self.capabilities) {
            (Some(session), _) => session.id.capabilities(),
            (None, Some(declared)) => declared.clone(),
            (None, None) => ClientCapabilities::default(),
        };
        Who {
            session: self.of_session(),
            person: self.caller.claims.sub.user(),
            principal: self.caller.principal,
            tenant_slug: self.tenant_slug.into(),
            client_name: self.client_name.clone(),
            fingerprint: declared.bits(),
            declared,
        }
    }

    pub(crate) fn of_session(&self) -> Option<OfSession> {
        self.session.map(|session| OfSession {
            key: session.id.key,
            principal: self.caller.session_principal(),
            person: self.caller.claims.sub.user(),
            life: session.id.life(self.now),
            level: session.level(),
        })
    }

    /// The lowest level of log messages that the session receives.
    pub(crate) fn level(&self) -> Option<Level> {
        self.session.map(LiveSession::level)
    }

    /// MCP-X-72: sends the level to the upstream servers too, in the background.
    pub(crate) fn tell_level(&self, level: Level) {
        let sources = self.server.upstreams();
        let Some(session) = self.of_session().filter(|_| !sources.is_empty()) else {
            return;
        };
        let state = self.state.clone();
        self.state.tracker.spawn(async move {
            for source in sources {
                let session = OfSession { level, ..session };
                source.level_changed(&state, session).await;
            }
        });
    }

    /// Takes one token from a bucket, or refuses with 429 (MCP-T-14).
    pub(crate) async fn limit(
        &self,
        key: &LimitKey,
        rate: Option<Rate>,
        id: &RequestId,
    ) -> Result<(), McpError> {
        let taken = self
            .state
            .admission
            .take(self.server.tenant, key, rate)
            .await;
        taken.map_err(|over| McpError::over(over, self.revision, Some(id)))
    }

    /// Applies the limit of requests: of the person with this client.
    pub(crate) async fn limit_request(&self, id: &RequestId) -> Result<(), McpError> {
        self.limit(&self.caller.requests, self.server.limits.requests, id)
            .await
    }

    /// Applies the limits of calls: of the tenant, and of the tool (MCP-TL-23).
    pub(crate) async fn limit_call(&self, tool: &Tool, id: &RequestId) -> Result<(), McpError> {
        let limits = &self.server.limits;
        self.limit(&self.server.calls, limits.calls, id).await?;
        self.limit(&tool.calls, limits.tool_calls, id).await
    }

    /// Applies the tenant's limit of calls to other requests that reach an API.
    pub(crate) async fn limit_read(&self, id: &RequestId) -> Result<(), McpError> {
        self.limit(&self.server.calls, self.server.limits.calls, id)
            .await
    }

    /// Takes a permit for a running call.
    pub(crate) async fn enter_call(&self, id: &RequestId) -> Result<Permit, McpError> {
        let server = self.server;
        let permit = self.state.admission.run_call(server.tenant, &server.limits);
        permit
            .await
            .map_err(|no| McpError::no_permit(no, self.revision, Some(id)))
    }
}
