//! Permits for event streams. A new stream gets one at once or is refused; a returning client
//! waits.
//!
//! A refusal would lose the stream for good: official clients try twice and give up (finding
//! REVIEW-F1).

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use portolan_model::id::TenantId;
use tokio::time::{Instant, sleep};

use crate::{
    catalog::server::Server,
    limits::{AdmissionControl, Permit},
};

/// The interval of attempts to get a permit.
const AGAIN: Duration = Duration::from_millis(500);

/// The longest wait. After it the connection ends cleanly, and the client can come back at no loss.
const LONGEST: Duration = Duration::from_secs(60);

/// A permit for a stream, or the wait for it.
pub(crate) struct StreamPermit(EntryState);

enum EntryState {
    Here(#[expect(dead_code, reason = "held, and given back when the stream ends")] Permit),
    Waits(Pin<Box<dyn Future<Output = Option<Permit>> + Send>>),
    /// No permit was free within the longest wait.
    Never,
}

impl fmt::Debug for StreamPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            EntryState::Here(_) => "Entry(here)",
            EntryState::Waits(_) => "Entry(waits)",
            EntryState::Never => "Entry(never)",
        })
    }
}

impl From<Permit> for StreamPermit {
    fn from(permit: Permit) -> Self {
        Self(EntryState::Here(permit))
    }
}

impl StreamPermit {
    /// A permit for the stream of a client that comes back.
    pub(crate) async fn again(
        admission: &Arc<AdmissionControl>,
        tenant: TenantId,
        server: &Arc<Server>,
    ) -> Self {
        match admission.find_stream(&server.limits).await {
            Ok(permit) => return permit.into(),
            Err(no) => tracing::debug!(%tenant, ?no, "a client that came back waits for room"),
        }
        let (admission, server) = (Arc::clone(admission), Arc::clone(server));
        let until = Instant::now() + LONGEST;
        Self(EntryState::Waits(Box::pin(async move {
            while Instant::now() < until {
                sleep(AGAIN).await;
                if let Ok(permit) = admission.find_stream(&server.limits).await {
                    return Some(permit);
                }
            }
            None
        })))
    }

    /// True if the permit is there.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self.0, EntryState::Here(_))
    }

    /// Completes with the permit: false if none was free within the longest wait. Cancel safe.
    pub(crate) async fn wait(&mut self) -> bool {
        if let EntryState::Waits(waiting) = &mut self.0 {
            self.0 = waiting.await.map_or(EntryState::Never, EntryState::Here);
        }
        self.is_here()
    }
}
