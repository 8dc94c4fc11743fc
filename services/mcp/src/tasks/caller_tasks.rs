//! The tasks of a caller: their records, and changes of them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{Nonce, PutRecord, RecordBounds, RecordPut, StreamKey, Version},
};
use portolan_keys::{Purpose, digest, random};
use portolan_model::limits::LimitName;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::{Raw, RequestId},
    revision::{Revision, Tasks as TasksOf},
    task::{Detail, Task},
};

use crate::{
    caller::Caller,
    catalog::server::Server,
    error::McpError,
    nodes::{message::NodeMessage, notify},
    tasks::{record::Record, services::TaskServices},
};

/// MCP-TK-15: default, shortest and longest lifetime of a task, in milliseconds.
pub(crate) const TTL: u64 = 3_600_000;

pub(crate) const TTL_AT_LEAST: u64 = 10_000;

pub(crate) const TTL_AT_MOST: u64 = 24 * 3_600_000;

/// Most bytes of all tasks of a caller on one server.
pub(crate) const CALLER_BYTES: usize = 16 * 1024 * 1024;

/// Attempts of a change that competes with others.
pub(crate) const TRIES: usize = 8;

/// Most tasks that one stream subscribes to; more are left out of the acknowledgement.
pub(crate) const MOST_NAMED: usize = 64;

/// Longest task id that is verified, in bytes.
pub(crate) const LONGEST_ID: usize = 64;

/// Why a task cannot be made or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTask {
    /// The caller has reached its limit of tasks (MCP-TK-16), or of their bytes.
    Full,
    /// The store does not answer.
    Away,
}

impl NoTask {
    pub(crate) fn refuse(self, revision: Revision, id: &RequestId) -> McpError {
        match self {
            Self::Full => McpError::of(&ErrorKind::TooMany("tasks"), revision, Some(id)),
            Self::Away => McpError::Unavailable,
        }
    }
}

/// A task in the form that a client receives.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) task: Task,
    pub(crate) detail: Detail,
    /// A digest of the status: an equal one is not a change.
    pub(crate) standing: [u8; 16],
}

/// The entry of a task that runs here, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) state: TaskServices,
    pub(crate) item: StreamKey,
}

impl Place {
    pub(crate) fn enter(state: &TaskServices, item: StreamKey) -> Self {
        state.tasks.running().insert(item, Arc::default());
        metrics::gauge!("mcp_tasks").increment(1.0);
        Self {
            state: state.clone(),
            item,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::gauge!("mcp_tasks").decrement(1.0);
        let left = self.state.tasks.running().remove(&self.item);
        if let Some(changed) = left {
            changed.notify_waiters();
        }
        self.state.tasks.gone.notify_waiters();
    }
}

/// The tasks of a caller on a server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CallerTasks {
    pub(crate) state: TaskServices,
    pub(crate) caller: Arc<Caller>,
    pub(crate) server: Arc<Server>,
}

impl CallerTasks {
    /// The tasks of the caller of a request.
    pub(crate) fn new(state: &TaskServices, caller: &Arc<Caller>, server: &Arc<Server>) -> Self {
        Self {
            state: state.clone(),
            caller: Arc::clone(caller),
            server: Arc::clone(server),
        }
    }

    pub(crate) fn scope(&self) -> Vec<u8> {
        [
            &b"task"[..],
            &self.server.tenant.uuid().as_bytes()[..],
            &self.server.id.uuid().as_bytes()[..],
            &self.caller.principal.as_bytes()[..],
        ]
        .concat()
    }

    pub(crate) fn key(&self) -> SessionKey {
        SessionKey(half(&self.scope()))
    }

    /// The client's id of a task (MCP-TK-4, MCP-TX-15). Only we can make one, and only for its
    /// caller (MCP-TK-11, MCP-TX-11).
    pub(crate) fn id(&self, item: StreamKey) -> String {
        let keys = &self.state.keys;
        keys.stamp(Purpose::McpSession, &self.scope(), &item.nonce.0)
    }

    /// The task with that id, if it is one of this caller.
    pub(crate) fn item(&self, id: &str) -> Option<StreamKey> {
        if id.len() > LONGEST_ID {
            return None;
        }
        let keys = &self.state.keys;
        let nonce = keys.read_stamp(Purpose::McpSession, &self.scope(), id)?;
        Some(StreamKey {
            session: self.key(),
            nonce: Nonce(nonce.try_into().ok()?),
        })
    }

    pub(crate) fn put(&self, record: &Record, expect: Option<Version>) -> PutRecord {
        let (head, rest) = record.to_bytes();
        PutRecord {
            expect,
            life: Duration::from_millis(record.ttl),
            head,
            rest: Some(rest),
            room: RecordBounds {
                items: self.server.limits.at_most(LimitName::Tasks),
                bytes: CALLER_BYTES,
            },
        }
    }

    /// The existing tasks among these ids (MCP-SB-6).
    pub(crate) async fn named(&self, ids: &[String]) -> Result<Vec<(String, StreamKey)>, NoTask> {
        let mut named: Vec<(String, StreamKey)> = Vec::new();
        for id in ids.iter().take(MOST_NAMED) {
            if let Some(item) = self.item(id)
                && !named.iter().any(|(_, known)| *known == item)
            {
                named.push((id.clone(), item));
            }
        }
        if named.is_empty() {
            return Ok(named);
        }
        let kept = self
            .state
            .node
            .records(self.server.tenant, self.key())
            .await;
        let kept = kept.map_err(|_| NoTask::Away)?;
        named.retain(|(_, item)| kept.iter().any(|kept| kept.nonce == item.nonce));
        Ok(named)
    }

    /// A task in the form for a client of `revision`, with the members of the extension (MCP-TX-6).
    ///
    /// `None`: the task does not exist any more, or belongs to another caller.
    pub(crate) async fn shown(
        &self,
        item: StreamKey,
        revision: Revision,
    ) -> Result<Option<Shown>, NoTask> {
        if item.session != self.key() {
            return Ok(None);
        }
        let Some(record) = self.look(item).await? else {
            return Ok(None);
        };
        let detail = match revision.facts().tasks {
            TasksOf::Extension => record.detail(revision, &self.server.identity),
            _ => Detail::None,
        };
        let (status, asked) = record.standing();
        let standing = format!("{} {}", status.as_str(), asked.join(" "));
        Ok(Some(Shown {
            task: record.task(self.id(item), revision),
            detail,
            standing: half(standing.as_bytes()),
        }))
    }

    /// Notifies subscribers that a task has changed.
    pub(crate) fn publish(&self, item: StreamKey, record: &Record) {
        let session = record.session;
        notify::publish(
            &self.state,
            self.server.tenant,
            NodeMessage::Task { item, session },
        );
    }

    /// Makes a task that runs here (MCP-TX-5: before it is announced).
    ///
    /// `session` is the session of the request, if it has one.
    pub(crate) async fn make(
        &self,
        revision: Revision,
        ttl: u64,
        session: Option<SessionKey>,
    ) -> Result<(Place, Record), NoTask> {
        let item = StreamKey {
            session: self.key(),
            nonce: Nonce(random::bytes().map_err(|_| NoTask::Away)?),
        };
        let now = self.state.clock.now();
        let mut record = Record::new(revision, ttl, self.state.node.id(), now);
        record.session = session;
        // Entered before any node can check whether it runs.
        let place = Place::enter(&self.state, item);
        let made = self
            .state
            .node
            .put_record(self.server.tenant, item, self.put(&record, None));
        match made.await.map_err(|_| NoTask::Away)? {
            RecordPut::Done(_) => Ok((place, record)),
            RecordPut::Full => {
                self.state
                    .admission
                    .refused(self.server.tenant, LimitName::Tasks);
                Err(NoTask::Full)
            }
            RecordPut::Conflict(_) | RecordPut::Unknown => Err(NoTask::Away),
        }
    }

    /// Reads a task. If its node died, it is marked as lost (MCP-X-5F).
    pub(crate) async fn look(&self, item: StreamKey) -> Result<Option<Record>, NoTask> {
        let kept = self.state.node.record(self.server.tenant, item).await;
        let Some(kept) = kept.map_err(|_| NoTask::Away)? else {
            return Ok(None);
        };
        match Record::read(&kept) {
            Some(record) if self.is_lost(item, &record) => {
                let now = self.state.clock.now();
                self.change(item, |record| record.lose(now)).await
            }
            record => Ok(record),
        }
    }

    pub(crate) fn is_lost(&self, item: StreamKey, record: &Record) -> bool {
        if record.status.is_terminal() {
            return false;
        }
        let node = &self.state.node;
        if record.owner == node.id() {
            return self.state.tasks.watch(item).is_none();
        }
        node.is_lost(record.owner)
    }

    /// Changes a task, and retries if others change it meanwhile.
    ///
    /// `change` returns whether there is anything to write. `None`: the task does not exist any
    /// more.
    pub(crate) async fn change(
        &self,
        item: StreamKey,
        mut change: impl FnMut(&mut Record) -> bool,
    ) -> Result<Option<Record>, NoTask> {
        let node = &self.state.node;
        let mut kept = node
            .record(self.server.tenant, item)
            .await
            .map_err(|_| NoTask::Away)?;
        for _ in 0..TRIES {
            let read = kept.and_then(|kept| Some((kept.version, Record::read(&kept)?)));
            let Some((version, mut record)) = read else {
                return Ok(None);
            };
            let before = record.standing();
            if !change(&mut record) {
                return Ok(Some(record));
            }
            let changed =
                node.put_record(self.server.tenant, item, self.put(&record, Some(version)));
            match changed.await.map_err(|_| NoTask::Away)? {
                RecordPut::Done(_) => {
                    self.state.tasks.changed(item);
                    if record.standing() != before {
                        self.publish(item, &record);
                    }
                    return Ok(Some(record));
                }
                RecordPut::Conflict(newer) => kept = Some(newer),
                RecordPut::Full => return Err(NoTask::Full),
                RecordPut::Unknown => return Ok(None),
            }
        }
        Err(NoTask::Away)
    }

    /// Gives answers to a task and notifies its node. Returns the task after that.
    pub(crate) async fn give(
        &self,
        item: StreamKey,
        answers: &[(String, Raw)],
    ) -> Result<Option<Record>, NoTask> {
        let now = self.state.clock.now();
        let changed = self
            .change(item, |record| record.answer(answers, now))
            .await?;
        if let Some(record) = &changed {
            self.notify_runner(item, record).await;
        }
        Ok(changed)
    }

    /// Notifies the node that runs a task. If the message is lost, the node polls the record later.
    pub(crate) async fn notify_runner(&self, item: StreamKey, record: &Record) {
        let note = Bytes::from_static(b"task");
        let sent = self
            .state
            .node
            .notify(runner_key(item), record.owner, note)
            .await;
        if sent.is_err() {
            tracing::debug!("the node that runs a task could not be rung");
        }
    }
}

/// The key of notifications for the node that runs a task.
pub(crate) fn runner_key(item: StreamKey) -> SessionKey {
    SessionKey(half(
        &[&b"task bell"[..], &item.session.0[..], &item.nonce.0[..]].concat(),
    ))
}

pub(crate) fn half(bytes: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&digest(bytes).as_bytes()[..16]);
    half
}
