//! The properties of a call beside its work.

use std::time::Duration;

use portolan_protocol::jsonrpc::{ProgressToken, RequestId};

use crate::payloads::About;

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
