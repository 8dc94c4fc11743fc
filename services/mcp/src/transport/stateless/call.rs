//! The connection of a modern request whose call may send messages before its answer.
//!
//! The answer is one JSON body if it comes first, else a stream (MCP-T-62, MCP-X-89). A lost
//! connection ends the call (MCP-T-63), unless the call is suspended by then.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use portolan_net::sse_body::SseBody;
use portolan_protocol::{
    capability::ClientCapabilities,
    jsonrpc::{self, ProgressToken},
    revision::Revision,
    sse,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    call::{
        Running,
        client_channel::{ChannelMessage, ClientChannel},
        notices::Notices,
        request_state::{Continued, RequestScope},
        retry::{Follow, Retry, Step},
        suspended,
    },
    error::McpError,
    payloads::About,
    shutdown::stopped,
    tasks::{
        caller_tasks::{CallerTasks, TTL},
        run::Opened,
        services::TaskServices,
    },
    transport::RequestContext,
};

/// A call that runs for its request.
struct RunningCall {
    services: TaskServices,
    scope: Arc<RequestScope>,
    notices: Notices,
    /// Taken when the call is suspended.
    call: Option<(Running, mpsc::Receiver<ChannelMessage>)>,
    waiting: Option<ChannelMessage>,
    done: Option<Result<Vec<u8>, McpError>>,
    /// When the call becomes a task, if it is not done by then (MCP-X-54).
    task_at: Option<Instant>,
}

/// The source of an answer's messages.
enum MessageSource {
    /// A call of this request.
    StatelessCall(RunningCall),
    /// A call that was suspended by an earlier request.
    Follow(Follow),
}

/// A call that may send messages before its answer, and does not run yet.
pub(crate) struct StatelessCall {
    pub(crate) scope: RequestScope,
    pub(crate) capabilities: ClientCapabilities,
    /// The state from an earlier round.
    pub(crate) continued: Option<Box<Continued>>,
    /// The token under which the client wants progress.
    pub(crate) progress: Option<ProgressToken>,
    /// After this time it becomes a task, if it may.
    pub(crate) patience: Option<Duration>,
}

impl StatelessCall {
    /// Runs the call and answers the request.
    pub(crate) async fn run(
        self,
        context: &RequestContext<'_>,
        begin: impl FnOnce(ClientChannel) -> Running,
    ) -> Result<Response, McpError> {
        let scope = Arc::new(self.scope);
        let continued = self.continued.map(|continued| *continued);
        let (channel, said) =
            ClientChannel::of_request(Arc::clone(&scope), self.capabilities, continued);
        let services: &TaskServices = context.state;
        let running = RunningCall {
            services: services.clone(),
            notices: Notices::new(scope.revision, self.progress),
            scope,
            call: Some((begin(channel), said)),
            waiting: None,
            done: None,
            task_at: self.patience.map(|patience| Instant::now() + patience),
        };
        answer(context, MessageSource::StatelessCall(running)).await
    }
}

/// Continues a suspended call.
pub(crate) async fn go_on(
    context: &RequestContext<'_>,
    retry: Retry,
) -> Result<Response, McpError> {
    match retry.begin().await? {
        Ok(follow) => answer(context, MessageSource::Follow(follow)).await,
        Err(body) => Ok(context.answer(body)),
    }
}

/// MCP-X-89: how long the response head waits, so that an error can still have its HTTP status.
const HELD_BACK: Duration = Duration::from_secs(5);

async fn answer(context: &RequestContext<'_>, source: MessageSource) -> Result<Response, McpError> {
    let (state, caller, about) = (
        context.state.clone(),
        Arc::clone(&context.caller),
        source.about(),
    );
    let steps = stream::unfold(Some(source), move |source| {
        let (state, caller, about) = (state.clone(), Arc::clone(&caller), about.clone());
        async move {
            let mut source = source?;
            // The call ends with its connection.
            let step = tokio::select! {
                biased;
                step = source.step() => step,
                why = stopped(&state.shutdown, &caller) => Step::Done(Err(McpError::lost(why, &about, Revision::V2026_07_28))),
            };
            // The error may go out in a stream, where only its own id identifies it.
            let step = match step {
                Step::Done(Err(error)) => Step::Done(Err(
                    error.answering(Revision::V2026_07_28, about.id.as_ref())
                )),
                step => step,
            };
            let goes_on = matches!(step, Step::Notice(_));
            Some((step, goes_on.then_some(source)))
        }
    });
    let mut steps = Box::pin(steps);
    let first = loop {
        tokio::select! {
            biased;
            step = steps.next() => match step {
                Some(Step::Done(outcome)) => return outcome.map(|body| context.answer(body)),
                Some(first) if context.accepted.events => break Some(first),
                // MCP-T-7: a client that reads no stream gets no notifications.
                Some(_) => {}
                None => return Err(McpError::Unavailable),
            },
            () = sleep(HELD_BACK), if context.accepted.events => break None,
        }
    };
    let frames = stream::iter(first).chain(steps).filter_map(|step| {
        let body = match step {
            Step::Notice(notice) => Some(notice.into()),
            Step::Done(outcome) => outcome.map_or_else(McpError::into_message, Some),
        };
        future::ready(body.map(|body: Vec<u8>| Bytes::from(sse::message(None, &body))))
    });
    Ok(SseBody::new(frames).into_response())
}

impl MessageSource {
    fn about(&self) -> About {
        let id = match self {
            Self::StatelessCall(talk) => talk.scope.id.clone(),
            Self::Follow(follow) => follow.request().clone(),
        };
        About {
            id: Some(id),
            retryable: false,
        }
    }

    async fn step(&mut self) -> Step {
        match self {
            Self::StatelessCall(talk) => talk.step().await,
            Self::Follow(follow) => follow.step().await,
        }
    }
}

impl RunningCall {
    async fn step(&mut self) -> Step {
        while let Some((work, said)) = &mut self.call {
            if self.done.is_none() && self.waiting.is_none() {
                tokio::select! {
                    biased;
                    outcome = work => self.done = Some(outcome),
                    notice = self.notices.due() => return Step::Notice(notice),
                    Some(next) = said.recv() => self.waiting = Some(next),
                    () = at(self.task_at) => self.waiting = Some(ChannelMessage::Task),
                }
            }
            // Messages from before the answer are sent before it.
            let next = self.waiting.take().or_else(|| said.try_recv().ok());
            match (next, self.done.is_some()) {
                (Some(ChannelMessage::Progress(progress)), _) => {
                    if let Some(notice) = self.notices.progress(&progress) {
                        return Step::Notice(notice);
                    }
                }
                (Some(ChannelMessage::Message(notice)), _) => {
                    if let Some(notice) = self.notices.message(notice) {
                        return Step::Notice(notice);
                    }
                }
                (Some(ChannelMessage::Question(first)), false) => {
                    // This answer ends with the question, so delayed notifications go before it.
                    if let Some(notice) = self.notices.last() {
                        self.waiting = Some(ChannelMessage::Question(first));
                        return Step::Notice(notice);
                    }
                    if let Some((work, said)) = self.call.take() {
                        let scope = Arc::clone(&self.scope);
                        return Step::Done(suspended::suspend(scope, work, said, first).await);
                    }
                }
                (Some(ChannelMessage::Task), false) => {
                    if let Some(notice) = self.notices.last() {
                        self.waiting = Some(ChannelMessage::Task);
                        return Step::Notice(notice);
                    }
                    self.task_at = None;
                    if let Some(announced) = self.become_task().await {
                        return Step::Done(Ok(announced));
                    }
                }
                // The call ended without waiting for the answer.
                (Some(ChannelMessage::Question(_) | ChannelMessage::Task), true) => {}
                (None, _) => {
                    if self.done.is_some()
                        && let Some(notice) = self.notices.last()
                    {
                        return Step::Notice(notice);
                    }
                    if let Some(outcome) = self.done.take() {
                        self.call = None;
                        return Step::Done(outcome);
                    }
                }
            }
        }
        Step::Done(Err(McpError::Unavailable))
    }

    /// The answer that makes a task of the call. If that fails, the call is awaited as before.
    async fn become_task(&mut self) -> Option<Vec<u8>> {
        let scope = &self.scope;
        let caller_tasks = CallerTasks::new(&self.services, &scope.caller, &scope.server);
        let opened = Opened::new(caller_tasks, scope.revision, TTL, None).await;
        let opened = opened.ok()?;
        let (work, said) = self.call.take()?;
        let body = jsonrpc::response(&scope.id, &opened.created());
        opened.start(work, said, None);
        Some(body)
    }
}

/// Completes at `time`. Without a time: never.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => future::pending().await,
    }
}
