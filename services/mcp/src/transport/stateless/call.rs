//! The connection of a modern request whose call may send messages before its answer.
//!
//! The answer is one JSON body if it comes first, else a stream (MCP-T-62, MCP-X-89). A lost
//! connection ends the call (MCP-T-63), unless the call is suspended by then.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use portolan_net::sse_body::SseBody;
use portolan_protocol::sse;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    call::{
        Call, Running,
        client_channel::{ChannelMessage, ClientChannel},
        notices::Notices,
        retry::{Follow, Retry, Step},
        suspended,
    },
    error::McpError,
    features::work::Run,
    tasks::{
        caller_tasks::{CallerTasks, TTL},
        run::OpenedTask,
        services::TaskServices,
    },
    transport::RequestContext,
};

/// A call that runs for its request.
struct RunningCall {
    services: TaskServices,
    call: Arc<Call>,
    notices: Notices,
    /// Taken when the call is suspended.
    work: Option<(Running, mpsc::Receiver<ChannelMessage>)>,
    waiting: Option<ChannelMessage>,
    done: Option<Result<Vec<u8>, McpError>>,
    /// When the call becomes a task, if it is not done by then (MCP-X-54).
    task_at: Option<Instant>,
}

/// The source of an answer's messages.
enum MessageSource {
    /// A call of this request.
    Running(RunningCall),
    /// A call that was suspended by an earlier request.
    Follow(Follow),
}

/// Runs the call and answers the request.
pub(crate) async fn run(context: &RequestContext<'_>, run: Run) -> Result<Response, McpError> {
    let services: &TaskServices = context.state;
    let call = Arc::clone(&run.call);
    // MCP-X-54: a longer call becomes a task.
    let patience = Duration::from_secs(services.config.task_after_secs);
    let task_at = run.may_become_task().then(|| Instant::now() + patience);
    let (channel, said) = ClientChannel::of_request(Arc::clone(&call));
    let running = RunningCall {
        services: services.clone(),
        notices: Notices::new(call.revision, call.progress.clone()),
        call,
        work: Some((run.start(context.state, Some(channel)), said)),
        waiting: None,
        done: None,
        task_at,
    };
    answer(context, MessageSource::Running(running)).await
}

/// Continues a suspended call.
pub(crate) async fn go_on(
    context: &RequestContext<'_>,
    call: Arc<Call>,
    retry: Retry,
) -> Result<Response, McpError> {
    match retry.begin(call).await? {
        Ok(follow) => answer(context, MessageSource::Follow(follow)).await,
        Err(body) => Ok(context.answer(body)),
    }
}

/// MCP-X-89: how long the response head waits, so that an error can still have its HTTP status.
const HELD_BACK: Duration = Duration::from_secs(5);

async fn answer(context: &RequestContext<'_>, source: MessageSource) -> Result<Response, McpError> {
    let call = Arc::clone(source.call());
    let steps = stream::unfold(Some(source), move |source| {
        let call = Arc::clone(&call);
        async move {
            let mut source = source?;
            // The call ends with its connection.
            let step = tokio::select! {
                biased;
                step = source.step() => step,
                why = call.stopped() => Step::Done(Err(McpError::lost(why, &call.about(), call.revision))),
            };
            // The error may go out in a stream, where only its own id identifies it.
            let step = match step {
                Step::Done(Err(error)) => {
                    Step::Done(Err(error.answering(call.revision, Some(&call.id))))
                }
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
    fn call(&self) -> &Arc<Call> {
        match self {
            Self::Running(running) => &running.call,
            Self::Follow(follow) => follow.call(),
        }
    }

    async fn step(&mut self) -> Step {
        match self {
            Self::Running(running) => running.step().await,
            Self::Follow(follow) => follow.step().await,
        }
    }
}

impl RunningCall {
    async fn step(&mut self) -> Step {
        while let Some((work, said)) = &mut self.work {
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
                    if let Some((work, said)) = self.work.take() {
                        let call = Arc::clone(&self.call);
                        return Step::Done(suspended::suspend(call, work, said, first).await);
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
                        self.work = None;
                        return Step::Done(outcome);
                    }
                }
            }
        }
        Step::Done(Err(McpError::Unavailable))
    }

    /// The answer that makes a task of the call. If that fails, the call is awaited as before.
    async fn become_task(&mut self) -> Option<Vec<u8>> {
        let call = &self.call;
        let caller_tasks = CallerTasks::new(&self.services, &call.caller, &call.server);
        let opened = OpenedTask::new(caller_tasks, call.revision, TTL, None).await;
        let opened = opened.ok()?;
        let (work, said) = self.work.take()?;
        let body = self.call.result(&opened.created());
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
