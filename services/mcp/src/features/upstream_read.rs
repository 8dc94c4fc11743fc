//! A request for a prompt or a resource of an upstream server.
//!
//! It may ask its client as a call may (MCP-RE-11, MCP-PR-6, MCP-X-22, MCP-X-28).

use std::sync::Arc;

use portolan_protocol::{input_required::Brought, jsonrpc::Raw};

use crate::{
    backends::{
        services::Backends,
        upstream::{forward::forward, request::Forward},
    },
    call::{Call, client_channel::ClientChannel},
    catalog::upstream::UpstreamSource,
    error::McpError,
    features::work::{Job, Run, earlier},
    limits::Permit,
};

/// The work of such a request.
#[derive(Debug)]
pub(crate) struct UpstreamRead {
    source: Arc<UpstreamSource>,
    /// The member of the parameters that names the item, and the server's own name of it.
    named: (&'static str, Raw),
    /// Its permit among the tenant's running calls.
    _permit: Permit,
}

impl UpstreamRead {
    /// Prepares the request. `named` is the server's own name of the item, as a member of the
    /// parameters.
    ///
    /// Other parameters that may pass are forwarded unchanged.
    pub(crate) async fn prepare(
        mut call: Box<Call>,
        source: &Arc<UpstreamSource>,
        named: (&'static str, &Raw),
    ) -> Result<Run, McpError> {
        call.limit_call(None).await?;
        call.read_progress()?;
        let brought = Brought::read(&call.params).map_err(|misfit| call.misfit(misfit))?;
        let job = match earlier(&mut call, brought)? {
            Some(retry) => Job::Retry(retry),
            None => Job::Read(Self {
                source: Arc::clone(source),
                named: (named.0, named.1.clone()),
                _permit: call.enter().await?,
            }),
        };
        Ok(Run {
            call: Arc::from(call),
            job,
        })
    }

    /// Makes the request and writes its answer.
    pub(crate) async fn run(
        self,
        state: Backends,
        call: Arc<Call>,
        channel: Option<ClientChannel>,
    ) -> Result<Vec<u8>, McpError> {
        let _running = state.call_log.begin();
        let ask = Forward {
            renamed: call.server.renames.of(self.source.id).map(|all| &**all),
            ..Forward::new(&call, (self.named.0, &self.named.1), channel.as_ref())
        };
        forward(&state, &self.source, &ask).await.into_body()
    }
}
