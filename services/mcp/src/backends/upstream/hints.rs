//! Tasks of servers that are awaited here, and the word of a server that one of them moved: whoever awaits it looks at once instead of at its next time. A word
//! is a hint and no more: what there is to know is in the answer to the look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::SourceId;
use portolan_protocol::jsonrpc::Raw;
use tokio::sync::Notify;

use crate::state::McpState;

type Name = (SourceId, String);

/// Who awaits which task.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<HashMap<Name, Arc<Notify>>>);

impl Hints {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server said that a task is not what it was: the parameters of its notification.
    pub(crate) fn moved(&self, source: SourceId, params: &Raw) {
        let Some(id) = params.get("taskId").and_then(|id| id.string()) else {
            return;
        };
        if let Some(awaits) = self.lock().get(&(source, id)) {
            awaits.notify_one();
        }
    }
}

/// Listen requests for tasks of one server that a node has open at once. Who gets none looks at its task from time to time.
const MOST_EARS: usize = 16;

/// How many listen requests for tasks are open, by server.
#[derive(Debug, Default)]
pub(crate) struct Ears(Mutex<HashMap<SourceId, usize>>);

impl Ears {
    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listen request that may be open, until this is dropped.
pub(super) struct EarPlace {
    state: McpState,
    source: SourceId,
}

impl EarPlace {
    /// `None`: the server has to answer as many as it is asked for.
    pub(super) fn take(state: &McpState, source: SourceId) -> Option<Self> {
        let mut ears = state.ears.lock();
        let open = ears.entry(source).or_default();
        if *open >= MOST_EARS {
            return None;
        }
        *open += 1;
        Some(Self {
            state: state.clone(),
            source,
        })
    }
}

impl Drop for EarPlace {
    fn drop(&mut self) {
        let mut ears = self.state.ears.lock();
        if let Some(open) = ears.get_mut(&self.source) {
            *open -= 1;
            if *open == 0 {
                ears.remove(&self.source);
            }
        }
    }
}

/// A task that is awaited, until this is dropped.
pub(super) struct Hint {
    state: McpState,
    name: Name,
    moved: Arc<Notify>,
}

impl Hint {
    pub(super) fn new(state: &McpState, source: SourceId, id: &str) -> Self {
        let name = (source, id.to_owned());
        let moved = Arc::<Notify>::default();
        state.hints.lock().insert(name.clone(), Arc::clone(&moved));
        Self {
            state: state.clone(),
            name,
            moved,
        }
    }

    /// The server said that it moved. Cancel safe.
    pub(super) async fn moved(&self) {
        self.moved.notified().await;
    }
}

impl Drop for Hint {
    fn drop(&mut self) {
        let mut hints = self.state.hints.lock();
        // Somebody else may await a task of the same name: servers name them as they like.
        if hints
            .get(&self.name)
            .is_some_and(|moved| Arc::ptr_eq(moved, &self.moved))
        {
            hints.remove(&self.name);
        }
    }
}
