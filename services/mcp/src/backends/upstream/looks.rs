//! Looks at a server that said that one of its lists changed: whoever keeps the registry looks at it soon.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_model::id::{SourceId, TenantId};
use tokio::time::sleep;

use super::UpstreamSource;
use crate::state::McpState;

/// Between two asks for the same server.
const APART: Duration = Duration::from_millis(250);

/// Who asks for a look. A server that says again and again that something changed takes one task and one connection to the database at
/// a time, which all tenants share, and its last word is never lost.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The servers that are asked for, and whether they said so again meanwhile.
    asking: Mutex<HashMap<SourceId, bool>>,
}

impl Looks {
    fn asking(&self) -> MutexGuard<'_, HashMap<SourceId, bool>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the caller has to ask. Else somebody does, and will once more.
    fn begin(&self, source: SourceId) -> bool {
        match self.asking().entry(source) {
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

    /// True if the caller has to ask once more. Else it is over.
    fn again(&self, source: SourceId) -> bool {
        let mut asking = self.asking();
        let again = asking.get_mut(&source).is_some_and(std::mem::take);
        if !again {
            asking.remove(&source);
        }
        again
    }
}

/// A server said that a list changed.
pub(crate) fn ask_for_a_look(state: &McpState, source: &UpstreamSource) {
    let (tenant, id) = (source.tenant, source.id);
    if !state.looks.begin(id) {
        return;
    }
    let state = state.clone();
    let tracker = state.tracker.clone();
    tracker.spawn(async move {
        loop {
            ask(&state, tenant, id).await;
            tokio::select! {
                () = state.stopping.cancelled() => return,
                () = sleep(APART) => {}
            }
            if !state.looks.again(id) {
                return;
            }
        }
    });
}

async fn ask(state: &McpState, tenant: TenantId, source: SourceId) {
    let now = state.clock.now();
    let asked = async {
        let mut tx = state.store.node(tenant).await?;
        portolan_storage::upstreams::ask_for_a_look(&mut tx, source, now).await?;
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
        let looks = Looks::default();
        let (source, other) = (SourceId::generate(), SourceId::generate());
        assert!(looks.begin(source));
        for _ in 0..1000 {
            assert!(!looks.begin(source), "somebody asks already");
        }
        assert!(looks.begin(other), "another server is another matter");
        assert!(looks.again(source), "what was said meanwhile is not lost");
        assert!(!looks.again(source), "and asked for once");
        assert!(looks.begin(source), "from then on it begins anew");
    }
}
