//! Tools of 2026-07-28 that run as tasks only. The bridge declares the extension for such a call,
//! looks at the task until it ends, and answers the call with its result (MCP-X-52).

use std::{collections::HashSet, time::Duration};

use portolan_protocol::{
    capability::TASKS_EXTENSION,
    error::RpcError,
    input_required::InputRequired,
    jsonrpc::{Raw, RequestId},
    method::Method,
    result::write_string,
    task::{Status, Task},
    visible::Visible,
};

use super::{Older, TranslatedCall, read_error};

/// The pause between two looks at a task: shortest, longest, and where the server names none.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(5),
    Duration::from_secs(1),
];
/// Looks without an answer, in a row, after which the server counts as gone.
const MOST_FAILURES: u32 = 5;

/// The part of a task in a call.
#[derive(Debug)]
pub(super) enum FollowedTask {
    /// None: it is a plain call.
    None,
    /// The call may become a task.
    Declared,
    /// It is a task.
    Followed(Followed),
}

/// A task whose state is polled.
#[derive(Debug)]
pub(super) struct Followed {
    /// Its id, as parameters.
    named: Raw,
    pause: Duration,
    failures: u32,
    /// Keys of questions that the client was asked (MCP-TX-9).
    asked: HashSet<String>,
    /// Answers were sent; the response to them says nothing of the task.
    is_update: bool,
}

impl FollowedTask {
    /// True if the responses are those of a task.
    pub(super) const fn is_followed(&self) -> bool {
        matches!(self, Self::Followed(_))
    }
}

impl Older {
    /// The request of a call now: method, parameters, and capabilities of the client. `more` are
    /// parameters of a new round.
    pub(super) fn place_of<'a>(
        &'a self,
        call: &mut TranslatedCall,
        more: &mut Vec<(&str, Raw)>,
    ) -> (Method, Raw, &'a Raw) {
        match &mut call.task {
            FollowedTask::None => (call.method, call.params.clone(), &self.0.capabilities),
            FollowedTask::Declared => (call.method, call.params.clone(), &self.0.with_tasks),
            FollowedTask::Followed(task) => {
                more.retain(|(name, _)| *name == "inputResponses");
                task.is_update = !more.is_empty();
                let method = if task.is_update {
                    Method::TasksUpdate
                } else {
                    Method::TasksGet
                };
                (method, task.named.clone(), &self.0.with_tasks)
            }
        }
    }

    /// The response to a call that became a task, or to a look at the task.
    pub(super) async fn follow_task(
        &self,
        own: &RequestId,
        mut call: TranslatedCall,
        result: &Raw,
    ) {
        if let FollowedTask::Followed(task) = &mut call.task
            && task.is_update
        {
            task.failures = 0;
            let pause = task.pause;
            self.send_later(call, pause);
            return;
        }
        let Ok(seen) = Task::read(result) else {
            self.show(&call, &Visible::Invalid).await;
            return;
        };
        match seen.status {
            Status::Working => self.look_later(call, &seen),
            Status::Cancelled => self.show(&call, &Visible::Lost).await,
            Status::Completed => match result.get("result") {
                Some(result) => self.complete(&call, &result).await,
                None => self.show(&call, &Visible::Invalid).await,
            },
            Status::Failed => {
                let error = result.get("error").unwrap_or(Raw::empty_object());
                self.refuse(&call, &read_error(&error)).await;
            }
            Status::InputRequired => self.ask_for_task(own, call, (&seen, result)).await,
        }
    }

    /// Looks at the task again after its pause.
    fn look_later(&self, mut call: TranslatedCall, seen: &Task) {
        let [least, most, usual] = PAUSES;
        let named = seen.poll_interval_ms.map(Duration::from_millis);
        let pause = named.unwrap_or(usual).clamp(least, most);
        match &mut call.task {
            FollowedTask::Followed(task) => {
                task.pause = pause;
                task.failures = 0;
            }
            part => {
                let mut params = br#"{"taskId":"#.to_vec();
                write_string(&seen.id, &mut params);
                params.push(b'}');
                *part = FollowedTask::Followed(Followed {
                    named: Raw::parse(params).unwrap_or(Raw::empty_object()),
                    pause,
                    failures: 0,
                    asked: HashSet::new(),
                    is_update: false,
                });
            }
        }
        self.send_later(call, pause);
    }

    /// Asks the client what the task waits for, each question once (MCP-X-58).
    async fn ask_for_task(
        &self,
        own: &RequestId,
        mut call: TranslatedCall,
        (seen, result): (&Task, &Raw),
    ) {
        let requests = result.get("inputRequests").unwrap_or(Raw::empty_object());
        let Ok(mut requests) = InputRequired::requests(&requests) else {
            self.cancel_task(&call);
            self.show(&call, &Visible::Invalid).await;
            return;
        };
        if let FollowedTask::Followed(task) = &mut call.task {
            requests.retain(|(key, _)| task.asked.insert(key.clone()));
        }
        // A task that waits from its begin is polled first.
        if requests.is_empty() || !call.task.is_followed() {
            self.look_later(call, seen);
            return;
        }
        let required = InputRequired {
            requests,
            state: None,
        };
        self.ask_for(own, call, required).await;
    }

    /// Goes on with a call that has to be a task, or with a task after a look that failed. Returns
    /// a call whose answer the error is.
    pub(super) async fn goes_on_as_task(
        &self,
        mut call: TranslatedCall,
        error: &RpcError,
    ) -> Option<TranslatedCall> {
        match &mut call.task {
            FollowedTask::None if call.method == Method::ToolsCall && needs_tasks(error) => {
                call.task = FollowedTask::Declared;
                self.send(call);
                None
            }
            // MCP-X-5F: the server does not know the task any more.
            FollowedTask::Followed(task) if !task.is_update && error.code == -32602 => {
                self.show(&call, &Visible::Lost).await;
                None
            }
            FollowedTask::Followed(task) if task.failures + 1 < MOST_FAILURES => {
                task.failures += 1;
                let pause = task.pause;
                self.send_later(call, pause);
                None
            }
            FollowedTask::None | FollowedTask::Declared | FollowedTask::Followed(_) => Some(call),
        }
    }

    /// Cancels the task of a call that is not wanted any more (MCP-X-5A).
    pub(super) fn cancel_task(&self, call: &TranslatedCall) {
        if let FollowedTask::Followed(task) = &call.task {
            let id = self.state().new_id();
            let (method, can) = (Method::TasksCancel, &self.0.with_tasks);
            self.hand_over(self.0.request(&id, method, &task.named, can, &[]));
        }
    }
}

/// True if the server requires the extension for tasks.
fn needs_tasks(error: &RpcError) -> bool {
    let required = error.data.as_ref();
    let required = required.and_then(|data| data.get("requiredCapabilities")?.get("extensions"));
    error.code == -32021 && required.is_some_and(|required| required.get(TASKS_EXTENSION).is_some())
}
