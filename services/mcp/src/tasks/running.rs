//! The tasks that run on this node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use portolan_cluster::store::StreamKey;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The tasks that run on this node.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Notified whenever the record changes.
    pub(crate) running: Mutex<HashMap<StreamKey, Arc<Notify>>>,
    /// The node stops: running tasks are ended, and their records say so.
    pub(crate) stop: CancellationToken,
    pub(crate) gone: Notify,
}

impl Tasks {
    pub(crate) fn running(&self) -> std::sync::MutexGuard<'_, HashMap<StreamKey, Arc<Notify>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The notifier of changes, if the task runs here.
    pub(crate) fn watch(&self, item: StreamKey) -> Option<Arc<Notify>> {
        self.running().get(&item).cloned()
    }

    pub(crate) fn changed(&self, item: StreamKey) {
        if let Some(changed) = self.watch(item) {
            changed.notify_waiters();
        }
    }

    /// Ends all running tasks, and waits until their records are written.
    pub(crate) async fn drain(&self) {
        self.stop.cancel();
        loop {
            let gone = self.gone.notified();
            if self.running().is_empty() {
                return;
            }
            gone.await;
        }
    }

    /// The number of running tasks.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }
}
