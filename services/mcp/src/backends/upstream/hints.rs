//! Awaited tasks of servers, and the servers' notifications that one of them has moved (MCP-X-58).
//!
//! After a notification the awaiting code polls at once instead of at its next time. A notification
//! is only a hint: the facts are in the answer to the poll.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::SourceId;
use portolan_protocol::jsonrpc::Raw;
use tokio::sync::Notify;

type Name = (SourceId, String);

/// The notifiers of awaited tasks.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<HashMap<Name, Arc<Notify>>>);

impl Hints {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a server's notification that a task has changed, from its parameters.
    pub(crate) fn moved(&self, source: SourceId, params: &Raw) {
        let Some(id) = params.get("taskId").and_then(|id| id.string()) else {
            return;
        };
        if let Some(awaits) = self.lock().get(&(source, id)) {
            awaits.notify_one();
        }
    }
}

/// Most open listen requests for tasks of one server on a node. Other tasks are polled.
const MOST_LISTENERS: usize = 16;

/// The number of open listen requests for tasks, by server.
#[derive(Debug, Default)]
pub(crate) struct TaskListeners(Mutex<HashMap<SourceId, usize>>);

impl TaskListeners {
    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit for a listen request, until it is dropped.
pub(crate) struct ListenPermit {
    listeners: Arc<TaskListeners>,
    source: SourceId,
}

impl ListenPermit {
    /// Takes a permit. `None`: the server has reached the limit.
    pub(crate) fn take(listeners: &Arc<TaskListeners>, source: SourceId) -> Option<Self> {
        let mut task_listeners = listeners.lock();
        let open = task_listeners.entry(source).or_default();
        if *open >= MOST_LISTENERS {
            return None;
        }
        *open += 1;
        drop(task_listeners);
        Some(Self {
            listeners: Arc::clone(listeners),
            source,
        })
    }
}

impl Drop for ListenPermit {
    fn drop(&mut self) {
        let mut task_listeners = self.listeners.lock();
        if let Some(open) = task_listeners.get_mut(&self.source) {
            *open -= 1;
            if *open == 0 {
                task_listeners.remove(&self.source);
            }
        }
    }
}

/// An awaited task, until it is dropped.
pub(crate) struct Hint {
    hints: Arc<Hints>,
    name: Name,
    moved: Arc<Notify>,
}

impl Hint {
    pub(crate) fn new(hints: &Arc<Hints>, source: SourceId, id: &str) -> Self {
        let name = (source, id.to_owned());
        let moved = Arc::<Notify>::default();
        hints.lock().insert(name.clone(), Arc::clone(&moved));
        Self {
            hints: Arc::clone(hints),
            name,
            moved,
        }
    }

    /// Completes when the server has sent a notification of the task. Cancel safe.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }
}

impl Drop for Hint {
    fn drop(&mut self) {
        let mut hints = self.hints.lock();
        // Other code may await a task of the same name, since servers choose the names.
        if hints
            .get(&self.name)
            .is_some_and(|moved| Arc::ptr_eq(moved, &self.moved))
        {
            hints.remove(&self.name);
        }
    }
}
