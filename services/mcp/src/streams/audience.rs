//! The streams of this node that subscribe to tasks.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use portolan_cluster::{Doorway, SessionKey, store::StreamKey};

use crate::streams::tag::Tag;

/// The streams of this node that subscribe to tasks, by session and by task.
#[derive(Debug, Default)]
pub(crate) struct Audience(pub(crate) Mutex<Index>);

pub(crate) type Streams = Vec<(u64, Doorway<Tag>)>;

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) next: u64,
    /// Streams of sessions whose revision has tasks; the newest last.
    pub(crate) sessions: HashMap<SessionKey, Streams>,
    /// Listen streams that named the task.
    pub(crate) items: HashMap<StreamKey, Streams>,
}

pub(crate) fn leave<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Streams>, key: &K, number: u64) {
    if let Some(streams) = map.get_mut(key) {
        streams.retain(|(known, _)| *known != number);
        if streams.is_empty() {
            map.remove(key);
        }
    }
}

impl Audience {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest stream of a session.
    pub(crate) fn newest(&self, session: SessionKey) -> Option<Doorway<Tag>> {
        let index = self.lock();
        let streams = index.sessions.get(&session)?;
        streams.last().map(|(_, door)| door.clone())
    }

    pub(crate) fn of_task(&self, item: StreamKey) -> Vec<Doorway<Tag>> {
        let index = self.lock();
        let streams = index.items.get(&item).into_iter().flatten();
        streams.map(|(_, door)| door.clone()).collect()
    }

    /// The streams that named a task, each once.
    pub(crate) fn of_any(&self, which: impl Fn(u64) -> bool) -> HashMap<u64, Doorway<Tag>> {
        let index = self.lock();
        let streams = index.items.values().flatten();
        let wanted = streams.filter(|(number, _)| which(*number));
        wanted
            .map(|(number, door)| (*number, door.clone()))
            .collect()
    }
}
