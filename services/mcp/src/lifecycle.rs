//! Begin and end of the endpoint's background tasks.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    changes,
    http::state::McpState,
    nodes::{context::NodeContext, notify, refusals},
    session_replies,
    streams::services::StreamServices,
};

/// How long a stopping node waits until the store records its tasks as lost.
const TASKS_ENDED_WITHIN: Duration = Duration::from_secs(5);

impl McpState {
    /// Starts the background tasks; later calls do nothing.
    ///
    /// These are the registry's changes, messages of other nodes, revocations, housekeeping, and
    /// the writers of the call log and of counts, which end after the last call.
    pub fn start(&self) {
        let writers = self
            .writers
            .lock()
            .ok()
            .and_then(|mut writers| writers.take());
        let Some((log, counts)) = writers else { return };
        let node: &NodeContext = self;
        self.last.spawn(log.run(self.drained.clone()));
        self.last.spawn(counts.run(self.drained.clone()));
        self.tracker.spawn(changes::registry(self.clone()));
        self.tracker.spawn(notify::listen(node.clone()));
        self.tracker.spawn(changes::revocations(self.clone()));
        self.tracker.spawn(changes::housekeeping(self.clone()));
        self.tracker.spawn(refusals::keep(node.clone()));
        let streams: &StreamServices = self;
        self.tracker.spawn(session_replies::reply(streams.clone()));
    }

    /// Ends running calls with an error, once they may no longer continue (STREAM-16.4).
    pub async fn drain(&self) {
        self.shutdown.begin();
        if timeout(TASKS_ENDED_WITHIN, self.tasks.drain())
            .await
            .is_err()
        {
            tracing::warn!("some tasks could not be ended in the store");
        }
        self.node.drain().await;
    }
}
