//! Tools of 2025-11-25 that run as tasks only. The bridge makes the task, and answers the call
//! with the task's result (MCP-X-51): a server of 2026-07-28 is free to do so, whether its client
//! has the extension or not.

use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Kind, Raw},
    method::Method,
    result::write_string,
    revision::Tasks,
    task::Task,
};

use super::{Newer, Served, SessionCall};

/// The member of a call as a task beside its parameters: 15 minutes, as long as a call may wait for
/// its client.
pub(super) const WANTED: &[u8] = br#""task":{"ttl":900000}"#;

/// The part of a task in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionTask {
    /// None: it is a plain call.
    None,
    /// The call is sent as a task.
    Begun,
    /// `tasks/result` waits for the end of the task with these parameters.
    Awaited(Raw),
}

impl Served {
    /// True if calls of tools can be tasks at the server.
    fn has_tasks(&self) -> bool {
        let declared = self.facts.get("capabilities").and_then(|all| {
            let requests = all.get("tasks")?.get("requests")?;
            requests.get("tools")?.get("call")
        });
        self.revision.facts().tasks == Tasks::Core
            && declared.is_some_and(|raw| raw.kind() == Kind::Object)
    }
}

impl Newer {
    /// Goes on with a call that is, or has to be, a task. Returns a call whose answer `raw` is.
    pub(super) fn goes_on_as_task(&self, mut call: SessionCall, raw: &Raw) -> Option<SessionCall> {
        if call.method != Method::ToolsCall {
            return Some(call);
        }
        match &call.task {
            // MCP-TK-2: the tool was not called, because it runs as a task only.
            SessionTask::None if code(raw) == Some(-32601) && call.served.has_tasks() => {
                call.task = SessionTask::Begun;
                self.send(call);
                None
            }
            SessionTask::Begun => {
                let created = raw.get("result");
                let created = created.filter(|result| Task::is(result, call.served.revision));
                let Some(task) = created.and_then(|result| Task::read(&result).ok()) else {
                    return Some(call);
                };
                let mut params = br#"{"taskId":"#.to_vec();
                write_string(&task.id, &mut params);
                params.push(b'}');
                let params = Raw::parse(params).unwrap_or(Raw::empty_object());
                call.task = SessionTask::Awaited(params.clone());
                self.send_as(call, Method::TasksResult, &params);
                None
            }
            SessionTask::None | SessionTask::Awaited(_) => Some(call),
        }
    }

    /// Cancels the task of a call that is not wanted any more (MCP-X-5B).
    pub(super) fn cancel_task(&self, call: &SessionCall) {
        if let SessionTask::Awaited(params) = &call.task {
            self.order(&call.served, Method::TasksCancel, params.as_str());
        }
    }
}

fn code(raw: &Raw) -> Option<i64> {
    let code = raw.get("error")?.get("code")?;
    let read = code.as_str().parse();
    read.ok()
}

/// The fault of a task that its server has forgotten (MCP-X-5F).
pub(super) fn is_lost(call: &SessionCall, error: &RpcError) -> bool {
    matches!(call.task, SessionTask::Awaited(_)) && error.code == -32602
}
