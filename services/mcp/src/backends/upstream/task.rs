//! Awaited tasks of upstream servers: polled until they end, with their questions forwarded
//! (MCP-X-50…MCP-X-5B, MCP-X-5F).
//!
//! A task that is not wanted any more is cancelled. This module does not depend on whether the
//! client waits or has a task of ours.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    ask,
    capability::{ClientCapabilities, TASKS_EXTENSION},
    error::RpcError,
    input_required::{InputRequest, InputRequired, write_responses},
    jsonrpc::Raw,
    method::Method,
    result,
    revision::{Era, Revision, Tasks},
    task::{self, Status, Task},
    tool::TaskSupport,
    translate::Violation,
    visible::{Awaited, Visible},
};
use portolan_upstream::{ExchangeEvent, Request, Standing, UpstreamError};
use tokio::time::{Instant, sleep_until};

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::{LONGEST_CALL, NoConversation, TasksExtension},
            exchange::{Reply, exchange},
            hints::{Hint, ListenPermit},
            request::{Answered, Forward},
        },
    },
    call::{
        Call,
        client_channel::{ClientChannel, Unanswered},
    },
    catalog::upstream::UpstreamSource,
    error::McpError,
    tasks::caller_tasks::TTL,
};

/// The poll interval: shortest, longest, and default.
const POLL: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(5),
    Duration::from_secs(1),
];

/// Failed polls in a row after which the server counts as gone.
const MOST_FAILURES: u32 = 5;

/// The end of a task.
pub(crate) enum Ended {
    /// The answer of the plain call, in the form of that revision.
    Answer(Revision, Result<Raw, RpcError>),
    /// The task was cancelled at the server.
    Cancelled,
    /// The server does not know it any more (MCP-X-5F).
    Lost,
    /// The server does not answer.
    Away(NoConversation),
    /// The task cannot continue.
    Visible(Visible),
}

impl From<Visible> for Ended {
    fn from(visible: Visible) -> Self {
        Self::Visible(visible)
    }
}

impl From<Violation> for Ended {
    fn from(violation: Violation) -> Self {
        tracing::debug!(reason = %violation, "a task of an upstream server cannot be used");
        Self::Visible(Visible::Invalid)
    }
}

/// Cancels the task at its server if it is dropped before its end (MCP-X-5A, MCP-X-5B).
struct Abandon {
    state: Backends,
    source: Arc<UpstreamSource>,
    call: Arc<Call>,
    /// The era in which the task was begun: it is only known there.
    era: Era,
    params: Raw,
    armed: bool,
}

impl Drop for Abandon {
    fn drop(&mut self) {
        if !self.armed || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (state, source) = (self.state.clone(), Arc::clone(&self.source));
        let (call, era, params) = (Arc::clone(&self.call), self.era, self.params.clone());
        let tracker = state.tracker.clone();
        tracker.spawn(async move {
            let Ok(signed_in) = source.sign_in(&state, call.caller.person()).await else {
                return;
            };
            let upstreams = &state.upstreams;
            let nothing = ClientCapabilities::default();
            let speaker = (&*call, Some((&nothing, TasksExtension::Named)), era);
            let connected = upstreams
                .connect(&state, &source, speaker, &signed_in, None)
                .await;
            let Ok(connection) = connected else { return };
            let request = Request::new(Method::TasksCancel.name(), params);
            // The task may have ended meanwhile (MCP-X-5B).
            if let Err(error) = connection.ask(&request).await {
                tracing::debug!(reason = %error, "a task of an upstream server was not cancelled");
            }
        });
    }
}

/// Awaits the task that `created` announces.
pub(crate) async fn follow(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    from: Revision,
    created: &Raw,
) -> Ended {
    let task = match Task::read(created) {
        Ok(task) => task,
        Err(violation) => return violation.into(),
    };
    let mut named = br#"{"taskId":"#.to_vec();
    result::write_string(&task.id, &mut named);
    named.push(b'}');
    let params = Raw::parse(named).unwrap_or_else(|_| Raw::empty_object());
    let mut abandon = ask.tool.map(|tool| Abandon {
        state: state.clone(),
        source: Arc::clone(&tool.source),
        call: Arc::clone(ask.call),
        era: from.era(),
        params: params.clone(),
        armed: true,
    });
    if let Some(channel) = ask.channel {
        channel.becomes_task().await;
    }
    let now = Instant::now();
    let following = Following {
        state,
        source,
        ask,
        hint: Hint::new(&state.hints, source.id, &task.id),
        listener: Listener::Deaf,
        params,
        asked: HashSet::new(),
        failures: 0,
        begun: now,
        looked: now,
        moved: false,
    };
    let ended = if from.era() == Era::Modern {
        following.modern(task).await
    } else {
        following.legacy(task).await
    };
    // A task that cannot continue here is cancelled there.
    if let Some(abandon) = &mut abandon
        && !matches!(ended, Ended::Visible(_))
    {
        abandon.armed = false;
    }
    ended
}

impl Forward<'_> {
    /// The parameters for a server of `revision`.
    ///
    /// A server of 2025-11-25 is asked for a task if the tool requires it (MCP-X-51, MCP-X-53), or
    /// the client has one.
    pub(crate) fn for_era(&self, params: &Raw, revision: Revision) -> Raw {
        let wanted = match self.tool.and_then(|tool| tool.tasks) {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) => self.channel.is_some_and(ClientChannel::is_task),
            Some(TaskSupport::Forbidden) | None => false,
        };
        if !wanted || revision.facts().tasks != Tasks::Core {
            return params.clone();
        }
        let mut out = params.as_bytes().to_vec();
        // `renamed` wrote it: an object that is never empty.
        out.pop();
        out.extend_from_slice(format!(r#","task":{{"ttl":{TTL}}}}}"#).as_bytes());
        Raw::parse(out).unwrap_or_else(|_| params.clone())
    }

    /// MCP-X-52: whether a modern server requires the extension, which the client's era does not
    /// have.
    pub(crate) fn needs_task(&self, error: &RpcError, from: Revision) -> bool {
        let required = error
            .data
            .as_ref()
            .and_then(|data| data.get("requiredCapabilities")?.get("extensions"));
        error.code == -32021
            && from.era() == Era::Modern
            && self.call.revision.era() == Era::Legacy
            && required.is_some_and(|required| required.get(TASKS_EXTENSION).is_some())
    }

    /// The answer for the end of a server's task (MCP-X-56, MCP-X-57).
    pub(crate) fn ended(
        &self,
        state: &Backends,
        ended: Ended,
        source: &UpstreamSource,
    ) -> Answered {
        let is_task = self.channel.is_some_and(ClientChannel::is_task);
        match ended {
            Ended::Answer(from, Ok(result)) => self.complete(from, &task::unrelated(&result)),
            Ended::Answer(from, Err(error)) => self.refused(&error, from),
            Ended::Cancelled if is_task => Answered {
                body: Err(McpError::Cancelled),
                outcome: CallOutcome::UpstreamError,
                reason: None,
            },
            // MCP-X-5F: the task is lost.
            Ended::Lost if is_task => {
                self.error(&Visible::Lost.error(), CallOutcome::UpstreamError)
            }
            Ended::Cancelled | Ended::Lost => self.said(&Visible::Lost, CallOutcome::UpstreamError),
            Ended::Away(error) => self.failed(state, &error, source),
            Ended::Visible(visible) => self.said(&visible, CallOutcome::UpstreamError),
        }
    }
}

struct Following<'a> {
    state: &'a Backends,
    source: &'a Arc<UpstreamSource>,
    ask: &'a Forward<'a>,
    params: Raw,
    /// Completes when the server has sent a notification of the task.
    hint: Hint,
    /// The stream of those notifications at a modern server.
    listener: Listener,
    /// Keys of questions that were forwarded (MCP-TX-9).
    asked: HashSet<String>,
    failures: u32,
    begun: Instant,
    /// The time of the last poll, and whether the server has sent a notification since.
    looked: Instant,
    moved: bool,
}

/// The notifications of a server of 2026-07-28 about the task (MCP-TX-13).
///
/// They are requested after the first poll that finds it running: most tasks are over by then.
enum Listener {
    Deaf,
    Opening(BoxFuture<'static, Option<(Standing, ListenPermit)>>),
    Open(Box<(Standing, ListenPermit)>),
}

impl Listener {
    /// Completes when the server sends a notification of a task. Cancel safe.
    async fn hears(&mut self) {
        loop {
            match self {
                Self::Deaf => return std::future::pending().await,
                Self::Opening(opening) => {
                    *self = opening
                        .await
                        .map_or(Self::Deaf, |standing| Self::Open(Box::new(standing)));
                }
                Self::Open(standing) => match standing.0.next().await {
                    Ok(ExchangeEvent::Notification { method, .. })
                        if method == Method::TaskNotification.name() =>
                    {
                        return;
                    }
                    Ok(_) => {}
                    // The task is polled anyway.
                    Err(_) => *self = Self::Deaf,
                },
            }
        }
    }
}

/// A question's key and method, and the client's answer.
type QuestionAnswer = (String, ask::AskMethod, Result<Raw, Unanswered>);

/// The result of a poll.
enum Look {
    /// The task, and the whole answer.
    Seen(Task, Raw),
    /// No answer; the next poll may have one.
    Again,
    Ended(Ended),
}

impl Following<'_> {
    /// Sends one request about the task.
    async fn say(&mut self, method: Method, params: Raw) -> Result<Reply, NoConversation> {
        let about = Forward {
            method,
            params: params.clone(),
            call: self.ask.call,
            mirrored: &[],
            tool: None,
            channel: self.ask.channel,
            traceparent: None,
            renamed: self.ask.renamed,
        };
        let tasks = TasksExtension::Named;
        Box::pin(exchange(self.state, self.source, &about, params, tasks)).await
    }

    /// Polls the task, unless its client has waited for too long (MCP-X-51).
    ///
    /// A task of ours has a lifetime of its own.
    async fn look(&mut self) -> Look {
        if self.begun.elapsed() > LONGEST_CALL
            && !self.ask.channel.is_some_and(ClientChannel::is_task)
        {
            return Look::Ended(Visible::TimedOut(Awaited::Upstream).into());
        }
        (self.looked, self.moved) = (Instant::now(), false);
        match self.say(Method::TasksGet, self.params.clone()).await {
            Ok((_, Ok(seen))) => {
                self.failures = 0;
                match Task::read(&seen) {
                    Ok(task) => Look::Seen(task, seen),
                    Err(violation) => Look::Ended(violation.into()),
                }
            }
            // MCP-X-5F: the server does not know the task.
            Ok((_, Err(error))) if error.code == -32602 => Look::Ended(Ended::Lost),
            Ok((_, Err(_))) if self.may_fail() => Look::Again,
            Ok((from, Err(error))) => Look::Ended(Ended::Answer(from, Err(error))),
            Err(_) if self.may_fail() => Look::Again,
            Err(error) => Look::Ended(Ended::Away(error)),
        }
    }

    fn may_fail(&mut self) -> bool {
        self.failures += 1;
        self.failures < MOST_FAILURES
    }

    /// Waits for the next poll: at its time, or after a notification of the server. Cancel safe.
    async fn due(&mut self, task: &Task) {
        let next = self.looked + pause(task);
        if !self.moved {
            tokio::select! {
                () = sleep_until(next) => return,
                () = self.hint.moved() => {}
                () = self.listener.hears() => {}
            }
            self.moved = true;
        }
        // Frequent notifications do not shorten the interval below the shortest one.
        sleep_until((self.looked + POLL[0]).min(next)).await;
    }

    /// Requests notifications of the task from a modern server.
    ///
    /// The server must declare tasks, and the number of requests per server is limited.
    fn listen(&mut self, task: &Task) {
        if self.ask.tool.is_none_or(|tool| tool.tasks.is_none()) {
            return;
        }
        let Some(place) = ListenPermit::take(&self.state.task_listeners, self.source.id) else {
            return;
        };
        let (state, source) = (self.state.clone(), Arc::clone(self.source));
        let capabilities = self.ask.channel.map(ClientChannel::capabilities).cloned();
        let capabilities = capabilities.unwrap_or_default();
        let call = Arc::clone(self.ask.call);
        let id = task.id.clone();
        self.listener = Listener::Opening(Box::pin(async move {
            let account = source.account(call.caller.person()).ok()?;
            let signed_in = source
                .sign_in_for(&state, account, LONGEST_CALL, LONGEST_CALL)
                .await
                .ok()?;
            let connected = state.upstreams.connect(
                &state,
                &source,
                (
                    &call,
                    Some((&capabilities, TasksExtension::Named)),
                    Era::Modern,
                ),
                &signed_in,
                None,
            );
            let connection = connected.await.ok()?;
            let standing = connection.stand_for_task(&id).await.ok()?;
            Some((standing, place))
        }));
    }

    /// 2026-07-28: the answer to a poll holds questions and outcome (MCP-X-50).
    async fn modern(mut self, mut task: Task) -> Ended {
        let mut asking = FuturesUnordered::new();
        let mut looks = 0_u32;
        loop {
            // Answers are sent as they arrive.
            loop {
                tokio::select! {
                    biased;
                    Some(answered) = asking.next(), if !asking.is_empty() => {
                        if let Err(ended) = self.update(answered).await {
                            return ended;
                        }
                    }
                    () = self.due(&task) => break,
                }
            }
            let seen = match self.look().await {
                Look::Seen(now, seen) => {
                    task = now;
                    seen
                }
                Look::Again => continue,
                Look::Ended(ended) => return ended,
            };
            looks += 1;
            if looks == 1 && !task.status.is_terminal() {
                self.listen(&task);
            }
            match task.status {
                Status::Working => {}
                Status::Cancelled => return Ended::Cancelled,
                Status::Completed => {
                    let result = seen.get("result").ok_or(Visible::Invalid);
                    return match result {
                        Ok(result) => Ended::Answer(Revision::V2026_07_28, Ok(result)),
                        Err(visible) => visible.into(),
                    };
                }
                Status::Failed => {
                    let error = seen.get("error").unwrap_or(Raw::empty_object());
                    return Ended::Answer(Revision::V2026_07_28, Err(read_error(&error)));
                }
                Status::InputRequired => {
                    let requests = seen.get("inputRequests").unwrap_or(Raw::empty_object());
                    let requests = match InputRequired::requests(&requests) {
                        Ok(requests) => requests,
                        Err(violation) => return violation.into(),
                    };
                    for (key, request) in requests {
                        if self.asked.insert(key.clone()) {
                            asking.push(pass_on(self.ask, key, request));
                        }
                    }
                }
            }
        }
    }

    /// MCP-X-58: sends an answer of the client to the server by `tasks/update`.
    ///
    /// Errors are handled as in a round trip (MCP-X-2A…MCP-X-2C).
    async fn update(&mut self, (key, method, answer): QuestionAnswer) -> Result<(), Ended> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => ask::refusal(method).ok_or_else(|| Ended::from(Visible::from(why)))?,
        };
        let responses = write_responses([(key.as_str(), &answer)]);
        let mut params = self.params.as_bytes().to_vec();
        // An object that is never empty.
        params.pop();
        params.extend_from_slice(br#","inputResponses":"#);
        params.extend_from_slice(responses.as_bytes());
        params.push(b'}');
        let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
        match self.say(Method::TasksUpdate, params).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Ended::Away(error)),
        }
    }

    /// 2025-11-25: polls until the task asks or ends, and then requests its result.
    ///
    /// The result request brings its questions (MCP-X-56, MCP-X-59).
    async fn legacy(mut self, mut task: Task) -> Ended {
        let mut at_once = task.status != Status::Working;
        loop {
            if !at_once {
                self.due(&task).await;
                task = match self.look().await {
                    Look::Seen(task, _) => task,
                    Look::Again => continue,
                    Look::Ended(ended) => return ended,
                };
            }
            at_once = false;
            match task.status {
                Status::Working => continue,
                Status::Cancelled => return Ended::Cancelled,
                Status::Completed | Status::Failed | Status::InputRequired => {}
            }
            match self.say(Method::TasksResult, self.params.clone()).await {
                Ok((from, outcome)) => return Ended::Answer(from, outcome),
                // It was silent for too long: it is polled again.
                Err(NoConversation::Upstream(
                    UpstreamError::Timeout(_) | UpstreamError::Interrupted,
                )) if !task.status.is_terminal() => {}
                Err(_) if self.may_fail() => {}
                Err(error) => return Ended::Away(error),
            }
        }
    }
}

async fn pass_on(ask: &Forward<'_>, key: String, request: InputRequest) -> QuestionAnswer {
    let answer = match ask.channel {
        Some(channel) => {
            channel
                .request(
                    Revision::V2026_07_28,
                    request.method,
                    &ask.known_uris(&request.params),
                )
                .await
        }
        None => Err(Unanswered::Gone),
    };
    (key, request.method, answer)
}

fn pause(task: &Task) -> Duration {
    let [least, most, usual] = POLL;
    let named = task.poll_interval_ms.map(Duration::from_millis);
    named.unwrap_or(usual).clamp(least, most)
}

fn read_error(error: &Raw) -> RpcError {
    let code = error.get("code");
    let code = code.and_then(|code| code.as_str().parse().ok());
    let message = error.get("message").and_then(|message| message.string());
    RpcError {
        code: code.unwrap_or(-32603),
        message: message.unwrap_or_default(),
        data: error.get("data"),
    }
}
