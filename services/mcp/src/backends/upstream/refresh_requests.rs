//! Refreshes of a server after its notification of a changed list (MCP-X-41, MCP-X-43).
//!
//! The request goes to the refresher of the registry.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

use portolan_model::id::SourceId;

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
    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<SourceId, bool>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the caller has to send the request. Else a running task sends it once more.
    pub(crate) fn begin(&self, source: SourceId) -> bool {
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
    pub(crate) fn again(&self, source: SourceId) -> bool {
        let mut running = self.running();
        let again = running.get_mut(&source).is_some_and(std::mem::take);
        if !again {
            running.remove(&source);
        }
        again
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
