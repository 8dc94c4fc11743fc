//! A running call: its channel to the client, suspended calls, progress and permits.

pub(crate) mod client_channel;
pub(crate) mod notices;
pub(crate) mod progress;
pub(crate) mod request_state;
pub(crate) mod retry;
pub(crate) mod stream_permit;
pub(crate) mod suspended;

use std::{pin::Pin, time::Duration};

use portolan_model::registry::CallOutcome;
use portolan_protocol::jsonrpc::{ProgressToken, RequestId};
use portolan_traces::Span;

use crate::{error::McpError, payloads::About};

/// A call that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Vec<u8>, McpError>> + Send>>;

/// A backend of a test: the work of the tool with that name.
#[cfg(test)]
pub(crate) type Script =
    std::sync::Arc<dyn Fn(RequestId, client_channel::ClientChannel) -> Running + Send + Sync>;

/// The properties of a call beside its work.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) id: RequestId,
    pub(crate) deadline: Duration,
    pub(crate) about: About,
    /// The token under which the client wants progress.
    pub(crate) progress: Option<ProgressToken>,
    /// The call may send messages before its answer.
    pub(crate) talks: bool,
}

/// Ends the trace of a call (STREAM-20).
pub(crate) fn end_trace(span: &Span, outcome: CallOutcome) {
    span.set("portolan.outcome", outcome.as_str());
    if outcome != CallOutcome::Ok {
        span.failed(outcome.as_str());
    }
}
