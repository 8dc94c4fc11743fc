//! A request for a prompt or a resource of an upstream server.
//!
//! It may ask its client as a call may (MCP-RE-11, MCP-PR-6, MCP-X-22, MCP-X-28).

use std::sync::Arc;

use portolan_protocol::{
    input_required::Brought,
    jsonrpc::{Misfit, ProgressToken, Raw, Request as PeerRequest, RequestId},
    logging::Level,
    meta::RequestMeta,
    method::Method,
    revision::Revision,
};

use crate::{
    backends::upstream::{
        conversation::Who,
        forward::{forward, renamed},
        request::Forward,
    },
    call::{Running, client_channel::ClientChannel, request_state::Continued},
    catalog::{server::Server, upstream::UpstreamSource},
    error::McpError,
    features::{Earlier, Work, context::Context, earlier},
    limits::Permit,
    streams::services::StreamServices,
};

/// Such a request. Owns its data.
#[derive(Debug)]
pub(crate) struct Pass {
    state: StreamServices,
    server: Arc<Server>,
    source: Arc<UpstreamSource>,
    method: Method,
    params: Raw,
    pub(crate) id: RequestId,
    revision: Revision,
    who: Who,
    /// The lowest level of log messages that the client wants.
    pub(crate) level: Option<Level>,
    /// The token under which the client wants progress.
    pub(crate) progress: Option<ProgressToken>,
    /// The state from an earlier round (MCP-X-29).
    pub(crate) continued: Option<Box<Continued>>,
    traceparent: Option<String>,
    /// Its permit among the tenant's running calls.
    _room: Permit,
}

impl Pass {
    /// Prepares the request. `named` is the server's own name of the item, as a member of the
    /// parameters.
    ///
    /// Other parameters that may pass are forwarded unchanged.
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
            Earlier::Suspended(retry) => return Ok(Work::Suspended(retry)),
            Earlier::Continued(continued) => Some(continued),
            Earlier::Nothing => None,
        };
        let permit = cx.enter_call(&request.id).await?;
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
            _room: permit,
        })))
    }

    /// Makes the request and writes its answer. Dropping the future cancels it at the server too.
    pub(crate) fn run(self: Box<Self>, channel: Option<ClientChannel>) -> Running {
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
                channel: channel.as_ref(),
                traceparent: self.traceparent.clone(),
                identity: &self.server.identity,
                renamed: self.server.renames.of(self.source.id).map(|all| &**all),
            };
            forward(&self.state, &self.source, &ask).await.into_body()
        })
    }
}
