//! A task that runs here. Its questions go into its record, and any node receives the answers.

use std::{future::pending, time::Duration};

use portolan_cluster::SessionKey;
use portolan_protocol::{
    ask::{self, AskMethod},
    error::RpcError,
    input_required::InputRequest,
    jsonrpc::{ProgressToken, Raw},
    revision::Revision,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until},
};

use crate::{
    call::{
        Running,
        client_channel::{ChannelMessage, Question, Unanswered},
    },
    error::McpError,
    tasks::{
        caller_tasks::{CallerTasks, NoTask, Place, runner_key},
        record::{Record, raw_error},
        session_notifications::{self, SessionNotifications, TaskOrigin},
    },
};

/// The poll interval of the record, for answers and cancellations whose notification was lost.
const LOOK: Duration = Duration::from_secs(5);

/// MCP-X-25: how often a question is repeated that has no fitting answer.
const TRIES: u8 = 3;

/// How long, and at which interval, the write of an outcome is retried while the store is away.
const GRACE: Duration = Duration::from_secs(60);

const AGAIN: Duration = Duration::from_secs(1);

/// Most bytes of an outcome that is kept (STREAM-10).
const LARGEST: usize = 1024 * 1024;

/// Most open questions of a task (STREAM-7).
const MOST_QUESTIONS: usize = 8;

/// A task that exists and does not run yet.
#[derive(Debug)]
pub(crate) struct OpenedTask {
    caller_tasks: CallerTasks,
    place: Place,
    record: Record,
}

impl OpenedTask {
    /// Makes a task that is kept for `ttl` milliseconds.
    ///
    /// `session` is the session of the request, if it has one.
    pub(crate) async fn new(
        caller_tasks: CallerTasks,
        revision: Revision,
        ttl: u64,
        session: Option<SessionKey>,
    ) -> Result<Self, NoTask> {
        let (place, record) = caller_tasks.make(revision, ttl, session).await?;
        Ok(Self {
            caller_tasks,
            place,
            record,
        })
    }

    /// The result that announces it (MCP-TK-3, MCP-TX-3).
    pub(crate) fn created(&self) -> Vec<u8> {
        let id = self.caller_tasks.id(self.place.item);
        let revision = self.record.revision;
        let task = self.record.task(id, revision);
        task.created(revision, &self.caller_tasks.server.identity)
    }

    /// The channel to its session, with progress under `token` (MCP-TK-18).
    pub(crate) fn notifications(
        &self,
        session: SessionKey,
        token: Option<ProgressToken>,
        talks: bool,
    ) -> SessionNotifications {
        let item = self.place.item;
        let speaker = TaskOrigin {
            tenant: self.caller_tasks.server.tenant,
            session,
            item,
        };
        let (state, id) = (&self.caller_tasks.state, self.caller_tasks.id(item));
        SessionNotifications::new(state, speaker, id, (self.record.revision, token), talks)
    }

    /// Runs the call. Without `notifications` it sends no notifications (MCP-TX-13).
    pub(crate) fn start(
        self,
        work: Running,
        said: mpsc::Receiver<ChannelMessage>,
        notifications: Option<SessionNotifications>,
    ) {
        let until = Instant::now() + Duration::from_millis(self.record.ttl);
        let tracker = self.caller_tasks.state.tracker.clone();
        let task = Task {
            caller_tasks: self.caller_tasks,
            place: self.place,
            work,
            said,
            notifications,
            waiting: Vec::new(),
            keys: 0,
            until,
        };
        tracker.spawn(task.run());
    }
}

struct Waiting {
    key: String,
    question: Question,
    tries: u8,
}

struct Task {
    caller_tasks: CallerTasks,
    place: Place,
    work: Running,
    said: mpsc::Receiver<ChannelMessage>,
    notifications: Option<SessionNotifications>,
    waiting: Vec<Waiting>,
    keys: u32,
    until: Instant,
}

/// Why a task ended.
enum TaskEnd {
    /// It finished by itself.
    Done(Result<Vec<u8>, McpError>),
    /// It was cancelled, or its time is over: no outcome is written.
    Over,
    /// The node stops.
    Stopped,
}

impl Task {
    async fn run(mut self) {
        let end = self.until_its_end().await;
        if let (TaskEnd::Done(_), Some(notifications)) = (&end, &mut self.notifications) {
            // Notifications from before the end are sent before it.
            while let Ok(said) = self.said.try_recv() {
                match said {
                    ChannelMessage::Progress(progress) => notifications.progress(&progress),
                    ChannelMessage::Message(notice) => notifications.message(notice),
                    ChannelMessage::Question(_) | ChannelMessage::Task => {}
                }
            }
            notifications.remaining();
        }
        let Self {
            caller_tasks,
            place,
            work,
            ..
        } = self;
        let (item, now) = (place.item, || caller_tasks.state.clock.now());
        let outcome = match end {
            TaskEnd::Done(outcome) => {
                let body = outcome.map_or_else(McpError::into_message, Some);
                match body {
                    Some(body) if body.len() > LARGEST => {
                        let error = raw_error(&too_large());
                        write(&caller_tasks, item, |record| {
                            record.fail(error.clone(), now())
                        })
                        .await
                    }
                    Some(body) => {
                        let written =
                            write(&caller_tasks, item, |record| record.finish(&body, now()));
                        match written.await {
                            Err(NoTask::Full) => {
                                let error = raw_error(&too_large());
                                write(&caller_tasks, item, |record| {
                                    record.fail(error.clone(), now())
                                })
                                .await
                            }
                            other => other,
                        }
                    }
                    // The call was cancelled by the code that ran it.
                    None => write(&caller_tasks, item, |record| record.cancel(now())).await,
                }
            }
            TaskEnd::Over => {
                // Dropped before the notification, so that the upstream server is cancelled too.
                drop(work);
                Ok(caller_tasks.look(item).await.ok().flatten())
            }
            TaskEnd::Stopped => {
                drop(work);
                write(&caller_tasks, item, |record| record.lose(now())).await
            }
        };
        let status = match &outcome {
            Ok(Some(record)) => record.status.as_str(),
            Ok(None) => "expired",
            Err(_) => "unwritten",
        };
        metrics::counter!("mcp_tasks_ended_total", "status" => status).increment(1);
        drop(place);
    }

    async fn until_its_end(&mut self) -> TaskEnd {
        let mut rung = self
            .caller_tasks
            .state
            .node
            .subscribe(runner_key(self.place.item));
        let stop = self.caller_tasks.state.tasks.stop.clone();
        let mut looks = interval_at(Instant::now() + LOOK, LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return TaskEnd::Stopped,
                outcome = &mut self.work => return TaskEnd::Done(outcome),
                () = sleep_until(self.until) => return TaskEnd::Over,
                said = hear(&mut self.said) => match (said, &mut self.notifications) {
                    (ChannelMessage::Question(question), _) => self.ask(question).await,
                    (ChannelMessage::Progress(progress), Some(notifications)) => notifications.progress(&progress),
                    (ChannelMessage::Message(notice), Some(notifications)) => notifications.message(notice),
                    // MCP-TX-13: a task of that era sends neither progress nor log messages.
                    _ => {}
                },
                () = session_notifications::due(self.notifications.as_mut()) => {}
                _ = rung.next() => if let Some(end) = self.look().await { return end },
                _ = looks.tick() => if let Some(end) = self.look().await { return end },
            }
        }
    }

    fn name(&mut self) -> String {
        self.keys += 1;
        format!("q{}", self.keys)
    }

    async fn ask(&mut self, question: Question) {
        if self.waiting.len() >= MOST_QUESTIONS {
            return question.give(Err(Unanswered::TooMany));
        }
        let (key, now) = (self.name(), self.caller_tasks.state.clock.now());
        let asked = vec![(key.clone(), question.request())];
        let item = self.place.item;
        let written = self
            .caller_tasks
            .change(item, |record| record.ask(asked.clone(), now));
        match written.await {
            Ok(_) => self.waiting.push(Waiting {
                key,
                question,
                tries: 0,
            }),
            // The question is not in the record, so no client can answer it.
            Err(_) => question.give(Err(Unanswered::Gone)),
        }
    }

    /// Reads the record for changes by others: answers, or the end.
    async fn look(&mut self) -> Option<TaskEnd> {
        let record = match self.caller_tasks.look(self.place.item).await {
            Ok(Some(record)) if !record.status.is_terminal() => record,
            Ok(_) => return Some(TaskEnd::Over),
            Err(_) => return None,
        };
        // MCP-X-7B: the asker has cancelled its question.
        let (closed, open) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| waiting.question.is_closed());
        self.waiting = open;
        let closed: Vec<Waiting> = closed;
        if record.answers.is_empty() && closed.is_empty() {
            return None;
        }
        let mut again: Vec<(String, InputRequest)> = Vec::new();
        for (key, answer) in &record.answers {
            let Some(at) = self.waiting.iter().position(|waiting| waiting.key == *key) else {
                continue;
            };
            let mut waiting = self.waiting.swap_remove(at);
            match fit(&waiting.question, answer) {
                Some(answer) => waiting.question.give(answer),
                None if waiting.tries + 1 < TRIES => {
                    waiting.tries += 1;
                    // MCP-TX-9: another question, so another key.
                    waiting.key = self.name();
                    again.push((waiting.key.clone(), waiting.question.request()));
                    self.waiting.push(waiting);
                }
                None => {
                    let refused = refused(waiting.question.method());
                    waiting.question.give(refused);
                }
            }
        }
        let now = self.caller_tasks.state.clock.now();
        let taken = |key: &String| record.answers.iter().any(|(known, _)| known == key);
        let gone = |key: &String| closed.iter().any(|waiting| waiting.key == *key);
        let written = self.caller_tasks.change(self.place.item, |record| {
            record.answers.retain(|(key, _)| !taken(key));
            record.requests.retain(|(key, _)| !gone(key));
            record.ask(again.clone(), now)
        });
        if let Err(why) = written.await {
            tracing::debug!(
                ?why,
                "the answers of a task could not be taken off its record"
            );
        }
        None
    }
}

/// The next message of the call. After the last one: never.
async fn hear(said: &mut mpsc::Receiver<ChannelMessage>) -> ChannelMessage {
    match said.recv().await {
        Some(said) => said,
        None => pending().await,
    }
}

/// An answer in the form of the asker: `None` if it does not fit (MCP-EL-8).
fn fit(question: &Question, answer: &Raw) -> Option<Result<Raw, Unanswered>> {
    if let Some(result) = answer.get("result") {
        return question.check(&result).map(Ok);
    }
    let error = answer.get("error").unwrap_or(Raw::empty_object());
    Some(Err(Unanswered::Refused(error)))
}

fn refused(method: AskMethod) -> Result<Raw, Unanswered> {
    match method {
        AskMethod::Elicit => ask::refusal(AskMethod::Elicit).ok_or(Unanswered::Unfit),
        _ => Err(Unanswered::Unfit),
    }
}

fn too_large() -> RpcError {
    RpcError {
        code: -32015,
        message: "The result of the task is larger than can be kept.".to_owned(),
        data: None,
    }
}

/// Writes the outcome of a task, with retries.
async fn write(
    caller_tasks: &CallerTasks,
    item: portolan_cluster::store::StreamKey,
    mut change: impl FnMut(&mut Record) -> bool,
) -> Result<Option<Record>, NoTask> {
    let until = Instant::now() + GRACE;
    loop {
        match caller_tasks.change(item, &mut change).await {
            Err(NoTask::Away) if Instant::now() < until => sleep(AGAIN).await,
            other => return other,
        }
    }
}
