//! The retry of a suspended call, on any node (MCP-X-22, MCP-X-27).
//!
//! The state is verified and used once in the cluster. The answers go to the node of the call, and
//! the further messages of the call are read from its stream.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use portolan_cluster::{
    node::{Delivery, Resumed, SessionError, StreamReader},
    store::{Cursor, StreamKey, Update},
};
use portolan_protocol::{
    error::RpcError,
    input_required::InputRequired,
    jsonrpc::{self, ProgressToken, Raw},
    progress::{self, Gate},
    visible::Visible,
};
use tokio_util::task::TaskTracker;

use crate::{
    call::{
        Call,
        request_state::{SuspendedAt, USED},
        suspended::{Frame, RPC, UNKNOWN, answered, record},
    },
    error::McpError,
};

/// The state and the answers of a request that continues a suspended call.
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) at: SuspendedAt,
    /// The client's answers, an object of objects.
    pub(crate) responses: Option<Raw>,
}

/// The next message of a call.
#[derive(Debug)]
pub(crate) enum Step {
    /// A notification, before the answer.
    Notice(Bytes),
    /// The answer.
    Done(Result<Vec<u8>, McpError>),
}

impl Retry {
    /// The answer of the call, without the messages before it.
    pub(crate) async fn outcome(self, call: Arc<Call>) -> Result<Vec<u8>, McpError> {
        match self.begin(call).await? {
            Ok(follow) => follow.outcome().await,
            Err(body) => Ok(body),
        }
    }

    /// Sends the answers to the call.
    ///
    /// The further messages come from the [`Follow`]. The other result is an answer that exists
    /// already.
    pub(crate) async fn begin(self, call: Arc<Call>) -> Result<Result<Follow, Vec<u8>>, McpError> {
        let Self { at, responses } = self;
        let lost = |call: &Call| Ok(Err(call.visible(&Visible::Lost)));
        let (node, principal) = (&call.state.node, call.caller.session_principal());
        let (tenant, session) = (call.server.tenant, at.stream.session);
        let begun = match node.begin(session, principal, &record(UNKNOWN)).await {
            Ok(begun) => begun,
            Err(SessionError::Unknown) => return lost(&call),
            Err(SessionError::Unavailable) => return Err(McpError::Unavailable),
        };
        let &[b'R', rounds] = &begun.body[..] else {
            return lost(&call);
        };
        if rounds >= at.round {
            return Err(call.refuse(USED));
        }
        // This write decides which node uses the state.
        let used = node
            .update(session, principal, begun.version, answered(at.round))
            .await;
        match used.map_err(|_| McpError::Unavailable)? {
            Update::Done(_) => {}
            Update::Conflict { .. } => return Err(call.refuse(USED)),
            Update::Unknown => return lost(&call),
        }
        let responses = responses.unwrap_or(Raw::empty_object()).bytes().clone();
        let question = format!("r{}", at.round);
        // The stream shows whether the call still waits.
        let _routed = node
            .answer(tenant, session, principal, &question, responses)
            .await
            .map_err(|_| McpError::Unavailable)?;
        let resumed = node.resume(tenant, at.stream, principal, at.cursor).await;
        match resumed.map_err(|_| McpError::Unavailable)? {
            Resumed::Reader(reader) => {
                // The token for progress from now on (MCP-X-76).
                let token = call.progress.clone();
                let reporting = token.map(|token| (token, Gate::default()));
                Ok(Ok(Follow::new(call, at.stream, reader, reporting)))
            }
            Resumed::Unknown | Resumed::Gone | Resumed::Finished => lost(&call),
        }
    }
}

/// Cancels a suspended call whose client disconnected (MCP-T-63), unless its answer was sent.
#[derive(Debug)]
struct Guard {
    call: Arc<Call>,
    stream: StreamKey,
    is_over: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_over || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (call, session) = (Arc::clone(&self.call), self.stream.session);
        let tracker: &TaskTracker = &self.call.state.tracker;
        tracker.spawn(async move {
            let principal = call.caller.session_principal();
            let cancelled = call.state.node.cancel(session, principal, RPC).await;
            if cancelled.is_err() {
                // The call ends at its deadline.
                tracing::debug!("a parked call could not be cancelled");
            }
        });
    }
}

/// Reads the messages of a suspended call, until it asks or answers.
#[derive(Debug)]
pub(crate) struct Follow {
    reader: StreamReader,
    reporting: Option<(ProgressToken, Gate)>,
    guard: Guard,
}

impl Follow {
    pub(crate) fn new(
        call: Arc<Call>,
        stream: StreamKey,
        reader: StreamReader,
        reporting: Option<(ProgressToken, Gate)>,
    ) -> Self {
        Self {
            reader,
            reporting,
            guard: Guard {
                call,
                stream,
                is_over: false,
            },
        }
    }

    /// The request that gets the answer.
    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.guard.call
    }

    /// The answer; notifications before it are dropped.
    pub(crate) async fn outcome(mut self) -> Result<Vec<u8>, McpError> {
        loop {
            if let Step::Done(outcome) = self.step().await {
                return outcome;
            }
        }
    }

    /// The next message.
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            let Some(delivery) = self.reader.next().await else {
                // The call was cancelled, or its log is gone.
                return self.done(|call| Ok(call.visible(&Visible::Lost)));
            };
            let (payload, cursor) = match delivery {
                Delivery::Event {
                    seq,
                    epoch,
                    payload,
                    ..
                } => {
                    let epoch = Some(epoch);
                    (payload, Some(Cursor { seq, epoch }))
                }
                Delivery::Unlogged { payload } => (payload, None),
                Delivery::Gap { .. } => continue,
            };
            match (Frame::read(&payload), cursor) {
                (Some(Frame::Progress(progress)), _) => {
                    let revision = self.guard.call.revision;
                    if let Some((token, gate)) = &mut self.reporting
                        && gate.passes(progress.progress)
                    {
                        let notice = progress::notification(revision, token, &progress);
                        return Step::Notice(notice.into());
                    }
                }
                (Some(Frame::Message(notice)), _) => return Step::Notice(notice),
                (Some(Frame::Asked(round, requests)), Some(cursor)) => {
                    let at = SuspendedAt {
                        stream: self.guard.stream,
                        cursor,
                        round,
                    };
                    return self.done(|call| {
                        let state = call.seal_suspended(&at).ok_or(McpError::Unavailable)?;
                        Ok(call.input_required(InputRequired {
                            requests,
                            state: Some(state),
                        }))
                    });
                }
                (Some(Frame::Final(outcome)), _) => {
                    return self.done(|call| Ok(answer(call, &outcome)));
                }
                // The event that the cluster writes when a call is lost with its node (MCP-V-5).
                (None | Some(Frame::Asked(..)), _) => {
                    return self.done(|call| Ok(call.visible(&Visible::Lost)));
                }
            }
        }
    }

    fn done(&mut self, outcome: impl FnOnce(&Call) -> Result<Vec<u8>, McpError>) -> Step {
        self.guard.is_over = true;
        Step::Done(outcome(&self.guard.call))
    }
}

/// The outcome of a suspended call, with the id of the request that gets it.
fn answer(call: &Call, outcome: &Raw) -> Vec<u8> {
    if let Some(result) = outcome.get("result") {
        return jsonrpc::response(&call.id, result.as_bytes());
    }
    let error = outcome.get("error").unwrap_or(Raw::empty_object());
    let code = error
        .get("code")
        .and_then(|code| code.as_str().parse().ok());
    let message = error.get("message").and_then(|message| message.string());
    let error = RpcError {
        code: code.unwrap_or(-32603),
        message: message.unwrap_or_default(),
        data: error.get("data"),
    };
    jsonrpc::error_response(Some(&call.id), &error)
}
