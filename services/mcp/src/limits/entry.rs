//! Permits for event streams. A new stream gets one at once or is refused; a returning client
//! waits.
//!
//! A refusal would lose the stream for good: official clients try twice and give up (finding
//! REVIEW-F1).

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use portolan_model::id::TenantId;
use tokio::time::{Instant, sleep};

use super::{Gate, Room};
use crate::catalog::server::Server;

/// The interval of attempts to get a permit.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest wait. After it the connection ends cleanly, and the client can come back at no loss.
const LONGEST: Duration = Duration::from_secs(60);

/// A permit for a stream, or the wait for it.
pub(crate) struct Entry(Standing);

enum Standing {
    Here(#[expect(dead_code, reason = "held, and given back when the stream ends")] Room),
    Waits(Pin<Box<dyn Future<Output = Option<Room>> + Send>>),
    /// No permit was free within the longest wait.
    Never,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Standing::Here(_) => "Entry(here)",
            Standing::Waits(_) => "Entry(waits)",
            Standing::Never => "Entry(never)",
        })
    }
}

impl From<Room> for Entry {
    fn from(room: Room) -> Self {
        Self(Standing::Here(room))
    }
}

impl Entry {
    /// A permit for the stream of a client that comes back.
    pub(crate) async fn again(gate: &Arc<Gate>, tenant: TenantId, server: &Arc<Server>) -> Self {
        match gate.find_stream(&server.limits).await {
            Ok(room) => return room.into(),
            Err(no) => tracing::debug!(%tenant, ?no, "a client that came back waits for room"),
        }
        let (gate, server) = (Arc::clone(gate), Arc::clone(server));
        let until = Instant::now() + LONGEST;
        Self(Standing::Waits(Box::pin(async move {
            while Instant::now() < until {
                sleep(AGAIN).await;
                if let Ok(room) = gate.find_stream(&server.limits).await {
                    return Some(room);
                }
            }
            None
        })))
    }

    /// True if the permit is there.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self.0, Standing::Here(_))
    }

    /// Completes with the permit: false if none was free within the longest wait. Cancel safe.
    pub(crate) async fn wait(&mut self) -> bool {
        if let Standing::Waits(waiting) = &mut self.0 {
            self.0 = waiting.await.map_or(Standing::Never, Standing::Here);
        }
        self.is_here()
    }
}
