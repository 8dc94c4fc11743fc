//! A running call: its channel to the client, suspended calls, progress and permits.

pub(crate) mod client_channel;
pub(crate) mod facts;
pub(crate) mod notices;
pub(crate) mod progress;
pub(crate) mod request_state;
pub(crate) mod retry;
pub(crate) mod stream_permit;
pub(crate) mod suspended;
pub(crate) mod trace;

use std::pin::Pin;

use crate::error::McpError;

/// A call that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Vec<u8>, McpError>> + Send>>;

/// A backend of a test: the work of the tool with that name.
#[cfg(test)]
pub(crate) type Script = std::sync::Arc<
    dyn Fn(portolan_protocol::jsonrpc::RequestId, client_channel::ClientChannel) -> Running
        + Send
        + Sync,
>;
