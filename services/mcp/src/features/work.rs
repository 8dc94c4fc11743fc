//! The result of a handler: an answer, or a call with its work.
//!
//! A modern request may bring state from an earlier round (MCP-MR-5…MCP-MR-8), which is checked
//! before any work.

use std::{sync::Arc, time::Duration};

use portolan_protocol::{input_required::Brought, revision::Era};

use crate::{
    backends::{services::Backends, upstream::conversation::LONGEST_CALL},
    call::{
        Call, Running,
        client_channel::ClientChannel,
        request_state::{Continued, OpenedState},
        retry::Retry,
    },
    error::McpError,
    features::{task_result::Wait, tools::ToolCall, upstream_read::UpstreamRead},
    payloads::About,
};

/// The result of a handler.
#[derive(Debug)]
pub(crate) enum Work {
    /// The whole answer.
    Done(Vec<u8>),
    /// Work that has not begun; its transport decides the effect of a disconnect.
    Run(Run),
}

/// A call with its work.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) call: Arc<Call>,
    pub(crate) job: Job,
}

/// The work of a call.
#[derive(Debug)]
pub(crate) enum Job {
    /// A call of a tool.
    Tool(ToolCall),
    /// A prompt or a resource of an upstream server.
    Read(UpstreamRead),
    /// A request that waits for a task (MCP-TK-7).
    TaskResult(Wait),
    /// The retry that a suspended call waits for (MCP-X-22). Only requests that stand alone have
    /// one.
    Retry(Retry),
}

impl Run {
    /// The longest time of the call in all.
    pub(crate) fn deadline(&self) -> Duration {
        match &self.job {
            Job::Tool(tool) => tool.deadline(&self.call),
            Job::Read(_) | Job::Retry(_) => LONGEST_CALL,
            Job::TaskResult(wait) => wait.left,
        }
    }

    /// The facts about the call for another node.
    pub(crate) fn about(&self) -> About {
        let retryable = match &self.job {
            Job::Tool(tool) => tool.is_retryable(&self.call),
            // These requests only read.
            Job::Read(_) | Job::TaskResult(_) => true,
            Job::Retry(_) => false,
        };
        About {
            retryable,
            ..self.call.about()
        }
    }

    /// True if the call may send messages to its client before its answer: it then gets a
    /// [`ClientChannel`].
    pub(crate) fn talks(&self, state: &Backends) -> bool {
        match &self.job {
            Job::Tool(tool) => tool.talks(state, &self.call),
            Job::Read(_) | Job::TaskResult(_) | Job::Retry(_) => true,
        }
    }

    /// True if the call may become a task when it takes long (MCP-X-54, MCP-TX-1).
    pub(crate) fn may_become_task(&self) -> bool {
        matches!(&self.job, Job::Tool(tool) if tool.may_become_task(&self.call))
    }

    /// Begins the work. Dropping the future cancels it, at an upstream server too.
    ///
    /// Boxed here: the exchange with an API is a large future, which awaiting code would move
    /// often.
    pub(crate) fn start(self, state: &Backends, channel: Option<ClientChannel>) -> Running {
        let (state, call) = (state.clone(), self.call);
        match self.job {
            Job::Tool(tool) => tool.start(state, call, channel),
            Job::Read(read) => Box::pin(read.run(state, call, channel)),
            Job::TaskResult(wait) => {
                Box::pin(async move { wait.run(&call, channel.as_ref()).await })
            }
            Job::Retry(retry) => Box::pin(retry.outcome(call)),
        }
    }
}

/// Opens the `requestState` that the client brings, if it has one. Requests of sessions have none.
///
/// State for a repeated call goes into the call (MCP-X-29). The result is the retry of a call that
/// is suspended on some node (MCP-X-22).
pub(crate) fn earlier(call: &mut Call, brought: Brought) -> Result<Option<Retry>, McpError> {
    let Brought { responses, state } = brought;
    if call.revision.era() != Era::Modern {
        return Ok(None);
    }
    call.continued = match state {
        // MCP-MR-5: a server without state accepts answers to questions that it has not asked yet.
        // This uses up one round.
        None => responses.map(|responses| Continued {
            responses: Some(responses),
            state: None,
            round: 1,
        }),
        Some(state) => match call.open(&state)? {
            OpenedState::Suspended(at) => return Ok(Some(Retry { at, responses })),
            OpenedState::HandedOn(earlier) => Some(Continued {
                responses,
                ..earlier
            }),
        },
    };
    Ok(None)
}
