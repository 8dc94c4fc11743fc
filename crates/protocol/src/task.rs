//! Long-running tasks: the core feature of 2025-11-25 (MCP-TK-1…MCP-TK-18) and the extension of
//! 2026-07-28 (MCP-TX-1…MCP-TX-17), one state in two spellings (MCP-X-55).

use serde::{Deserialize, Serialize};

use crate::capability::{ClientCapabilities, TASKS_EXTENSION};
use crate::error::RpcError;
use crate::input_required::{InputRequest, write_requests};
use crate::json::Object;
use crate::jsonrpc::{self, Kind, Misfit, Params, Raw, RequestId};
use crate::meta;
use crate::method::Method;
use crate::result::{Identity, ResultObject};
use crate::revision::{Revision, Tasks};
use crate::shaped::Violation;

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It runs.
    Working,
    /// It waits for the client.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error; in R4 also a result of a tool that failed (MCP-TK-8).
    Failed,
    /// The client cancelled it.
    Cancelled,
}

impl Status {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if it stays so for ever (MCP-TK-5).
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// True if a task may go from here to there (MCP-TK-5). Staying is no change.
    pub fn may_become(self, next: Self) -> bool {
        !self.is_terminal() && self != next
    }

    /// Status in the terms of the other era: a result with `isError: true` is a failure in R4
    /// (MCP-TK-8) and completed in R5 (MCP-TX-7).
    #[must_use]
    pub const fn shaped(self, revision: Revision, is_error_result: bool) -> Self {
        match (self, revision.facts().tasks) {
            (Self::Completed, Tasks::Core) if is_error_result => Self::Failed,
            (Self::Failed, Tasks::Extension) if is_error_result => Self::Completed,
            _ => self,
        }
    }
}

/// Public state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Unguessable (MCP-TK-4, MCP-TX-15).
    pub id: String,
    /// How it stands.
    pub status: Status,
    /// Words for people.
    pub message: Option<String>,
    /// ISO 8601.
    pub created_at: String,
    /// ISO 8601.
    pub updated_at: String,
    /// Milliseconds from its creation until it may be forgotten; `None` for ever.
    pub ttl_ms: Option<u64>,
    /// Milliseconds between two looks.
    pub poll_interval_ms: Option<u64>,
}

/// Additional data of a finished or waiting task (MCP-TX-6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// It waits for answers to these.
    Requests(Vec<(String, InputRequest)>),
    /// Result that the plain call would have returned.
    Result(Raw),
    /// The error that it would have returned.
    Error(Raw),
}

impl Task {
    /// Reads a task of an upstream, wrapped in `task` (R4) or flat (MCP-X-55).
    pub fn read(value: &Raw) -> Result<Self, Violation> {
        let inner = value.get("task").filter(|task| task.kind() == Kind::Object);
        let task = inner.as_ref().unwrap_or(value);
        let text = |name: &str| task.get(name).and_then(|text| text.string());
        let number = |names: [&str; 2]| {
            let value = names.into_iter().find_map(|name| task.get(name))?;
            value.as_str().parse::<u64>().ok()
        };
        let status = text("status").and_then(|name| Status::from_name(&name));
        Ok(Self {
            id: text("taskId").ok_or(Violation::Task)?,
            status: status.ok_or(Violation::Task)?,
            message: text("statusMessage"),
            created_at: text("createdAt").ok_or(Violation::Task)?,
            updated_at: text("lastUpdatedAt").ok_or(Violation::Task)?,
            ttl_ms: number(["ttl", "ttlMs"]),
            poll_interval_ms: number(["pollInterval", "pollIntervalMs"]),
        })
    }

    /// True if a result is a task instead (MCP-X-50): `resultType: "task"`, or the wrapper of R4.
    pub fn is(result: &Raw, from: Revision) -> bool {
        match from.facts().tasks {
            Tasks::Absent => false,
            Tasks::Core => result
                .get("task")
                .is_some_and(|task| task.kind() == Kind::Object && task.get("taskId").is_some()),
            Tasks::Extension => {
                result
                    .get("resultType")
                    .and_then(|sort| sort.string())
                    .as_deref()
                    == Some("task")
            }
        }
    }

    fn members(&self, revision: Revision, object: &mut Object<'_>) {
        let extension = revision.facts().tasks == Tasks::Extension;
        object.value("taskId", &self.id);
        object.value("status", self.status.as_str());
        object.optional("statusMessage", self.message.as_ref());
        object.value("createdAt", &self.created_at);
        object.value("lastUpdatedAt", &self.updated_at);
        object.value(if extension { "ttlMs" } else { "ttl" }, &self.ttl_ms);
        let poll = if extension {
            "pollIntervalMs"
        } else {
            "pollInterval"
        };
        object.optional(poll, self.poll_interval_ms.as_ref());
    }

    /// The answer to the call that became this task (MCP-TK-3, MCP-TX-3).
    pub fn created(&self, revision: Revision, identity: &Identity) -> Vec<u8> {
        let mut out = Vec::with_capacity(384);
        let mut result = ResultObject::begin_as(&mut out, revision, "task");
        if revision.facts().tasks == Tasks::Extension {
            self.members(revision, &mut result.object);
        } else {
            result.object.key("task");
            let mut task = Object::begin(result.object.out());
            self.members(revision, &mut task);
            task.end();
        }
        result.end(identity, None);
        out
    }

    /// Writes the result of `tasks/get` (MCP-TK-6, MCP-TX-6), and in R4 also of `tasks/cancel`
    /// (MCP-TK-10). The detail is included in R5 only.
    pub fn got(&self, detail: &Detail, revision: Revision, identity: &Identity) -> Vec<u8> {
        let mut out = Vec::with_capacity(384);
        let mut result = ResultObject::begin(&mut out, revision);
        self.members(revision, &mut result.object);
        if revision.facts().tasks == Tasks::Extension {
            detail.members(&mut result.object);
        }
        result.end(identity, None);
        out
    }

    /// `notifications/tasks/status` (R4, MCP-TK-14), or `notifications/tasks` of a listen stream
    /// (R5, MCP-TX-13).
    pub fn notice(
        &self,
        detail: &Detail,
        revision: Revision,
        subscription: Option<&RequestId>,
    ) -> Vec<u8> {
        let mut params = Vec::with_capacity(384);
        let mut object = Object::begin(&mut params);
        self.members(revision, &mut object);
        let method = if revision.facts().tasks == Tasks::Extension {
            detail.members(&mut object);
            if let Some(id) = subscription {
                object.key("_meta");
                let mut meta = Object::begin(object.out());
                meta.key(meta::SUBSCRIPTION_ID);
                id.write(meta.out());
                meta.end();
            }
            Method::TaskNotification
        } else {
            Method::TaskStatus
        };
        object.end();
        jsonrpc::notification(method.name(), Some(&params))
    }
}

impl Detail {
    fn members(&self, object: &mut Object<'_>) {
        match self {
            Self::None => {}
            Self::Requests(requests) => {
                object.key("inputRequests");
                write_requests(requests, object.out());
            }
            Self::Result(result) => object.raw("result", result.as_bytes()),
            Self::Error(error) => object.raw("error", error.as_bytes()),
        }
    }
}

/// The answer to `tasks/list` (R4, MCP-TK-9).
pub fn listed(tasks: &[Task], next_cursor: Option<&str>, identity: &Identity) -> Vec<u8> {
    let revision = Revision::V2025_11_25;
    let mut out = Vec::with_capacity(256 * (tasks.len() + 1));
    let mut result = ResultObject::begin(&mut out, revision);
    result.object.key("tasks");
    let list = result.object.out();
    list.push(b'[');
    for (index, task) in tasks.iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        let mut entry = Object::begin(list);
        task.members(revision, &mut entry);
        entry.end();
    }
    list.push(b']');
    if let Some(cursor) = next_cursor {
        result.object.value("nextCursor", cursor);
    }
    result.end(identity, None);
    out
}

/// A message's parameters, or a result, with the task that it belongs to in `_meta` (MCP-TK-7,
/// MCP-TK-12).
pub fn related(value: &Raw, task: &str) -> Raw {
    let mut out = Vec::with_capacity(value.as_bytes().len() + 96);
    let mut object = Object::begin(&mut out);
    let mut own = None;
    for (name, value) in value.members() {
        if name == "_meta" {
            own = Some(value);
        } else {
            object.raw(&name, value.as_bytes());
        }
    }
    object.key("_meta");
    let mut meta = Object::begin(object.out());
    for (name, value) in own.iter().flat_map(|own| own.members().collect::<Vec<_>>()) {
        if name != meta::RELATED_TASK {
            meta.raw(&name, value.as_bytes());
        }
    }
    meta.key(meta::RELATED_TASK);
    let mut related = Object::begin(meta.out());
    related.value("taskId", task);
    related.end();
    meta.end();
    object.end();
    Raw::trusted(out.into())
}

/// Returns the value without the reference to its task: the id of an upstream's task stays internal
/// (MCP-X-19).
pub fn unrelated(value: &Raw) -> Raw {
    let own = value.get("_meta");
    let Some(own) = own.filter(|own| own.get(meta::RELATED_TASK).is_some()) else {
        return value.clone();
    };
    let mut out = Vec::with_capacity(value.as_bytes().len());
    let mut object = Object::begin(&mut out);
    for (name, value) in value.members() {
        if name != "_meta" {
            object.raw(&name, value.as_bytes());
        }
    }
    let kept: Vec<_> = own
        .members()
        .filter(|(name, _)| name != meta::RELATED_TASK)
        .collect();
    if !kept.is_empty() {
        object.key("_meta");
        let mut meta = Object::begin(object.out());
        for (name, value) in kept {
            meta.raw(&name, value.as_bytes());
        }
        meta.end();
    }
    object.end();
    Raw::trusted(out.into())
}

/// Parameters of `tasks/get`, `tasks/result` and `tasks/cancel`, and with answers of
/// `tasks/update`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskParams {
    /// Which.
    pub id: String,
    /// Answers by key (MCP-TX-8); of `tasks/update` only.
    pub responses: Vec<(String, Raw)>,
}

impl TaskParams {
    /// Reads them. The misfit is `-32602`.
    pub fn read(method: Method, params: &Params) -> Result<Self, Misfit> {
        let id = params
            .text("taskId")
            .ok_or_else(|| Misfit::new("params.taskId", "expected a string"))?;
        let responses = match params.get("inputResponses") {
            Some(map) if method == Method::TasksUpdate => {
                crate::input_required::read_responses(&map)?
            }
            None if method == Method::TasksUpdate => {
                return Err(Misfit::new("params.inputResponses", "required"));
            }
            _ => Vec::new(),
        };
        Ok(Self {
            id: id.into_owned(),
            responses,
        })
    }

    /// MCP-TK-11, MCP-TX-11: unknown, expired and foreign tasks are alike.
    pub fn unknown() -> Misfit {
        Misfit::new("params.taskId", "unknown task")
    }
}

/// The `ttl` that a call with `task` wishes for (MCP-TK-3), in milliseconds. `None`: no wish, or
/// nonsense.
pub fn wished_ttl(task: &Raw) -> Option<u64> {
    task.get("ttl")?.as_str().parse().ok()
}

/// True if a modern client declared the extension on this request (MCP-TX-1).
pub fn is_declared(capabilities: &ClientCapabilities) -> bool {
    capabilities.extensions.contains_key(TASKS_EXTENSION)
}

/// `requiredCapabilities` of a request that needs the extension (MCP-TX-4).
pub fn required() -> Raw {
    Raw::trusted(bytes::Bytes::from_static(
        br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    ))
}

/// An error as `failed` tasks of R5 have it.
pub fn error_detail(error: &RpcError) -> Detail {
    let mut out = Vec::with_capacity(128);
    error.write(&mut out);
    Detail::Error(Raw::trusted(out.into()))
}
