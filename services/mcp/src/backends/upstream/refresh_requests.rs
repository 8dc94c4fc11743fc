//! Refreshes of a server after its notification of a changed list (MCP-X-41, MCP-X-43).
//!
//! The request goes to the refresher of the registry.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_model::id::{SourceId, TenantId};
use tokio::time::sleep;

use crate::backends::upstream::UpstreamSource;
use crate::http::state::McpState;

/// The shortest time between two requests for the same server.
const APART: Duration = Duration::from_millis(250);

/// Requests for refreshes of upstream servers.
///
/// A server with many notifications uses one task and one database connection of the shared pool at
/// a time. Its last notification is never lost.
#[derive(Debug, Default)]
pub(crate) struct RefreshRequests {
    /// The servers with a running request, and whether a notification arrived meanwhile.
    running: Mutex<HashMap<SourceId, bool>>,
}

impl RefreshRequests {
    fn running(&self) -> MutexGuard<'_, HashMap<SourceId, bool>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the caller has to send the request. Else a running task sends it once more.
    fn begin(&self, source: SourceId) -> bool {
        match self.running().entry(source) {
            Entry::Occupied(mut again) => {
                again.insert(true);
                false
            }
            Entry::Vacant(first) => {
                first.insert(false);
                true
            }
        }
    }

    /// True if the caller has to send the request once more. Else it is done.
    fn again(&self, source: SourceId) -> bool {
        let mut running = self.running();
        let again = running.get_mut(&source).is_some_and(std::mem::take);
        if !again {
            running.remove(&source);
        }
        again
    }
}

/// Requests a refresh after a server's notification of a changed list.
pub(crate) fn request_refresh(state: &McpState, source: &UpstreamSource) {
    let (tenant, id) = (source.tenant, source.id);
    if !state.refresh_requests.begin(id) {
        return;
    }
    let state = state.clone();
    let tracker = state.tracker.clone();
    tracker.spawn(async move {
        loop {
            send(&state, tenant, id).await;
            tokio::select! {
                () = state.stopping.cancelled() => return,
                () = sleep(APART) => {}
            }
            if !state.refresh_requests.again(id) {
                return;
            }
        }
    });
}

async fn send(state: &McpState, tenant: TenantId, source: SourceId) {
    let now = state.clock.now();
    let asked = async {
        let mut tx = state.store.node(tenant).await?;
        portolan_storage::registry::upstreams::ask_for_a_look(&mut tx, source, now).await?;
        tx.commit().await
    };
    if let Err(error) = asked.await {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "cannot ask for a look at an upstream server"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_41_a_server_that_repeats_itself_is_asked_for_once_more_and_by_nobody_else() {
        let refresh_requests = RefreshRequests::default();
        let (source, other) = (SourceId::generate(), SourceId::generate());
        assert!(refresh_requests.begin(source));
        for _ in 0..1000 {
            assert!(!refresh_requests.begin(source), "somebody asks already");
        }
        assert!(
            refresh_requests.begin(other),
            "another server is another matter"
        );
        assert!(
            refresh_requests.again(source),
            "what was said meanwhile is not lost"
        );
        assert!(!refresh_requests.again(source), "and asked for once");
        assert!(
            refresh_requests.begin(source),
            "from then on it begins anew"
        );
    }
}
