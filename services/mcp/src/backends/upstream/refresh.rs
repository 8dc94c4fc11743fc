//! Requests a refresh of a server after its notification of a changed list (MCP-X-41).

use std::time::Duration;

use portolan_model::id::{SourceId, TenantId};
use tokio::time::sleep;

use crate::{backends::services::Backends, catalog::upstream::UpstreamSource};

/// The shortest time between two requests for the same server.
pub(crate) const APART: Duration = Duration::from_millis(250);

/// Requests a refresh after a server's notification of a changed list.
pub(crate) fn request_refresh(state: &Backends, source: &UpstreamSource) {
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

pub(crate) async fn send(state: &Backends, tenant: TenantId, source: SourceId) {
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
