//! Room for an event stream. One that is opened anew has it at once or is refused; a client that
//! comes back for one waits, since a refusal would cost it what it came for: official clients try
//! twice and give up (finding F-1).

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use portolan_model::id::TenantId;
use tokio::time::{Instant, sleep};

use super::{Gate, Room};
use crate::catalog::server::Server;

/// Between two looks for room.
const AGAIN: Duration = Duration::from_millis(500);
/// A client that waits longer had better come back, which costs it nothing: its connection ends
/// cleanly.
const LONGEST: Duration = Duration::from_secs(60);

/// Room for a stream, or the wait for it.
pub(crate) struct Entry(Standing);

enum Standing {
    Here(#[expect(dead_code, reason = "held, and given back when the stream ends")] Room),
    Waits(Pin<Box<dyn Future<Output = Option<Room>> + Send>>),
    /// There was none for as long as a client waits.
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
    /// Room for the stream of a client that comes back.
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

    /// True if there is nothing to wait for.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self.0, Standing::Here(_))
    }

    /// Completes when there is room: false if there was none for too long. Cancel safe.
    pub(crate) async fn wait(&mut self) -> bool {
        if let Standing::Waits(waiting) = &mut self.0 {
            self.0 = waiting.await.map_or(Standing::Never, Standing::Here);
        }
        self.is_here()
    }
}
