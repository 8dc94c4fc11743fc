//! A request of either era → the handler of its method.

use std::sync::Arc;

use portolan_cluster::node::{LimitKey, Rate};
use portolan_model::Timestamp;
use portolan_protocol::{
    capability::ClientCapabilities,
    error::ErrorKind,
    header::Headers,
    jsonrpc::{self, Misfit, Request, RequestId},
    logging::{Level, SetLevelParams},
    method::Method,
    revision::Revision,
};
use portolan_traces::Span;

use crate::{
    backends::upstream::{OfSession, Pass, Who},
    call::retry::Retry,
    catalog::{
        pages::List,
        server::{Server, Tool},
    },
    error::McpError,
    features::{
        completion, lists, prompts, resources,
        tools::{self, PreparedCall},
    },
    http::{bearer::Caller, state::McpState},
    limits::Permit,
    session::LiveSession,
    tasks,
};

/// The view of one request that its handler gets.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a McpState,
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

/// The result of a handler.
#[derive(Debug)]
pub(crate) enum Work {
    /// The whole answer.
    Done(Vec<u8>),
    /// A call that has not begun; its transport decides the effect of a disconnect.
    Call(Box<PreparedCall>),
    /// The same for a prompt or a resource of an upstream server.
    Pass(Box<Pass>),
    /// The retry that a suspended call waits for (MCP-X-22).
    Suspended(Box<Retry>),
    /// A request that waits for a task (MCP-TK-7).
    Wait(Box<tasks::Wait>),
}

impl Context<'_> {
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

    fn of_session(&self) -> Option<OfSession> {
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
    fn tell_level(&self, level: Level) {
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
    async fn limit(
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

/// Handles one request of a method that its revision knows.
pub(crate) async fn dispatch(
    cx: &Context<'_>,
    method: Method,
    request: &Request,
) -> Result<Work, McpError> {
    cx.limit_request(&request.id).await?;
    let id = &request.id;
    let fixed = cx.server.fixed(cx.revision);
    let done = |result: &[u8]| Ok(Work::Done(jsonrpc::response(id, result)));
    let fail = |kind: &ErrorKind| Err(cx.fail(kind, id));
    match method {
        Method::Ping => done(&fixed.empty),
        Method::Discover => done(&fixed.discover),
        Method::ToolsList => lists::answer(cx, List::Tools, request).map(Work::Done),
        Method::ToolsCall => tools::prepare(cx, request).await,
        Method::PromptsList => lists::answer(cx, List::Prompts, request).map(Work::Done),
        Method::ResourcesList => lists::answer(cx, List::Resources, request).map(Work::Done),
        Method::ResourceTemplatesList => {
            lists::answer(cx, List::Templates, request).map(Work::Done)
        }
        // Boxed: these handlers would make the future of every request larger.
        Method::PromptsGet => Box::pin(prompts::get(cx, request)).await,
        Method::ResourcesRead => Box::pin(resources::read(cx, request)).await,
        Method::ResourcesSubscribe => Box::pin(resources::subscribe(cx, request))
            .await
            .map(Work::Done),
        Method::ResourcesUnsubscribe => Box::pin(resources::unsubscribe(cx, request))
            .await
            .map(Work::Done),
        Method::Complete => Box::pin(completion::complete(cx, request))
            .await
            .map(Work::Done),
        Method::TasksGet
        | Method::TasksList
        | Method::TasksResult
        | Method::TasksCancel
        | Method::TasksUpdate => Box::pin(tasks::answer(cx, method, request)).await,
        Method::SetLevel => {
            let params: SetLevelParams = read(cx, request)?;
            if let Some(session) = cx.session {
                let level = Level::ALL
                    .iter()
                    .position(|level| *level == params.level)
                    .unwrap_or(0);
                let level = u8::try_from(level).unwrap_or(0);
                session
                    .change(cx.state, cx.caller, cx.now, |body| body.level = level)
                    .await?;
                cx.tell_level(params.level);
            }
            done(&fixed.empty)
        }
        other => fail(&ErrorKind::MethodNotFound(other.name().to_owned())),
    }
}

fn read<T: serde::de::DeserializeOwned>(
    cx: &Context<'_>,
    request: &Request,
) -> Result<T, McpError> {
    request
        .params
        .read()
        .map_err(|misfit: Misfit| cx.fail(&misfit.into(), &request.id))
}
