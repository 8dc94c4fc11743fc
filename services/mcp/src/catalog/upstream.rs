//! An upstream MCP server as a source: its address, credential and bounds.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use portolan_http_tools::OutputCheck;
use portolan_model::{
    id::{SourceId, TenantId},
    registry::SourceSettings,
};
use portolan_protocol::{jsonrpc::Raw, revision::Era, tool::TaskSupport};
use portolan_upstream::Client;
use url::Url;

use crate::catalog::backend::Access;

/// An upstream server, as a source of a published server.
#[derive(Debug)]
pub(crate) struct UpstreamSource {
    pub(crate) tenant: TenantId,
    pub(crate) id: SourceId,
    pub(crate) url: Url,
    pub(crate) access: Access,
    /// The silence after which a call is ended.
    pub(crate) silence: Duration,
    pub(crate) answer_bytes: usize,
    /// The client for calls of a server without sign-in, shared by all of them.
    pub(crate) open: OnceLock<Client>,
    /// The key of the server in caches of a node: another address or credential is another server.
    pub(crate) place: String,
}

impl UpstreamSource {
    pub(crate) fn new(
        tenant: TenantId,
        id: SourceId,
        url: Url,
        access: Access,
        settings: &SourceSettings,
    ) -> Self {
        let credential = match &access {
            Access::With(known) => known.slot.key(),
            Access::Account(_) => "account",
            Access::Open | Access::Broken => "",
        };
        Self {
            place: format!("{tenant}/{id}/{credential}/{url}"),
            tenant,
            id,
            url,
            access,
            silence: Duration::from_millis(settings.timeout_ms.into()),
            answer_bytes: settings.max_response_bytes as usize,
            open: OnceLock::new(),
        }
    }
}

/// A tool of an upstream server.
#[derive(Debug)]
pub(crate) struct UpstreamTool {
    pub(crate) source: Arc<UpstreamSource>,
    /// The server's own name of it, a JSON string.
    pub(crate) name: Raw,
    /// The era in which alone a server of both has it.
    pub(crate) era: Option<Era>,
    /// The server takes its calls as tasks.
    pub(crate) tasks: Option<TaskSupport>,
    /// What its structured results must be (MCP-X-6G).
    pub(crate) output: Option<OutputCheck>,
}

/// A prompt, resource or template of an upstream server.
#[derive(Debug)]
pub(crate) struct UpstreamPlace {
    pub(crate) source: Arc<UpstreamSource>,
    /// The server's own name or URI of it, a JSON string.
    pub(crate) own: Raw,
}
