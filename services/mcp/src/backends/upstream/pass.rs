//! A request that is no tool's call, on its way through the server that has the prompt or resource. It may ask its client something
//! as a call may (RE-11, PR-6, X-22, X-28).

use std::sync::Arc;

use portolan_protocol::{
    input_required::Brought,
    jsonrpc::{Misfit, ProgressToken, Raw, Request as PeerRequest, RequestId},
    logging::Level,
    meta::RequestMeta,
    method::Method,
    revision::Revision,
};

use super::{Forward, UpstreamSource, Who, forward, renamed};
use crate::{
    ask::{
        Asker, Continued,
        earlier::{Earlier, earlier},
    },
    catalog::server::Server,
    dispatch::{Context, Work},
    error::McpError,
    limits::Room,
    state::McpState,
    tools::Running,
};

/// Such a request. Owns all it needs.
#[derive(Debug)]
pub(crate) struct Pass {
    state: McpState,
    server: Arc<Server>,
    source: Arc<UpstreamSource>,
    method: Method,
    params: Raw,
    pub(crate) id: RequestId,
    revision: Revision,
    who: Who,
    /// Log messages are wanted from this level on.
    pub(crate) level: Option<Level>,
    /// Progress is wanted under this token.
    pub(crate) progress: Option<ProgressToken>,
    /// What an earlier round left.
    pub(crate) continued: Option<Box<Continued>>,
    traceparent: Option<String>,
    /// Its place among the tenant's running calls.
    _room: Room,
}

impl Pass {
    /// Prepares the request: `named` is how the server calls what is asked, as a member of the parameters; what else may pass does
    /// as it is.
    pub(crate) async fn prepare(
        cx: &Context<'_>,
        request: &PeerRequest,
        method: Method,
        source: &Arc<UpstreamSource>,
        named: (&str, &Raw),
    ) -> Result<Work, McpError> {
        let fail = |misfit: Misfit| cx.fail(&misfit.into(), &request.id);
        cx.limit_read(&request.id).await?;
        let progress = RequestMeta::legacy(&request.params)
            .map_err(fail)?
            .progress_token;
        let brought = Brought::read(&request.params).map_err(fail)?;
        let continued = match earlier(cx, method, request, brought, progress.as_ref())? {
            Earlier::Parked(retry) => return Ok(Work::Parked(retry)),
            Earlier::Continued(continued) => Some(continued),
            Earlier::Nothing => None,
        };
        let room = cx.enter_call(&request.id).await?;
        let params = request.params.raw().cloned();
        let params = params.unwrap_or(Raw::empty_object());
        Ok(Work::Pass(Box::new(Self {
            state: cx.state.clone(),
            server: Arc::clone(cx.server),
            source: Arc::clone(source),
            method,
            params: renamed(&params, named),
            id: request.id.clone(),
            revision: cx.revision,
            who: cx.who(),
            level: cx.level(),
            progress,
            continued,
            traceparent: cx.trace.map(|trace| trace.context().traceparent()),
            _room: room,
        })))
    }

    /// Makes the request and writes its answer. Dropping the future cancels it at the server too.
    pub(crate) fn run(self: Box<Self>, asker: Option<Asker>) -> Running {
        Box::pin(async move {
            let _running = self.state.call_log.begin();
            let ask = Forward {
                method: self.method,
                params: self.params.clone(),
                id: &self.id,
                revision: self.revision,
                who: &self.who,
                mirrored: &[],
                tool: None,
                progress: self.progress.is_some(),
                level: self.level,
                asker: asker.as_ref(),
                traceparent: self.traceparent.clone(),
                identity: &self.server.identity,
                renamed: self.server.renames.of(self.source.id).map(|all| &**all),
            };
            forward(&self.state, &self.source, &ask).await.into_body()
        })
    }
}
