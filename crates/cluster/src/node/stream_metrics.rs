//! Metrics that are measured at intervals, because no event changes them (STREAM-20).

pub(super) mod measure;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, atomic::Ordering},
    time::Duration,
};

use metrics::Histogram;
use portolan_model::id::TenantId;
use tokio::time::Instant;

use super::writer::state::WriterState;
use crate::lock;

/// Time for which the log of a stream stays after its end.
const KEPT: Duration = Duration::from_secs(300);
/// Maximum size of a log in bytes.
const MOST: u64 = 1024 * 1024;
/// Number of tenants that the metrics name.
const TOP: usize = 20;

/// Start of the measurement of a delivery's latency.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    pub(super) at: Instant,
    /// Whether the event was written on this node.
    is_local: bool,
}

impl Since {
    /// Starts at the append of an event on this node.
    pub(super) fn appended() -> Self {
        Self {
            at: Instant::now(),
            is_local: true,
        }
    }

    /// Starts at the message of another node.
    pub(super) fn heard() -> Self {
        Self {
            at: Instant::now(),
            is_local: false,
        }
    }
}

/// Instruments that each event updates, and the log sizes of the tenants.
pub(super) struct StreamMetrics {
    local: Histogram,
    remote: Histogram,
    /// Logs of ended streams in the order of their end: expiry, tenant, bytes.
    closed: Mutex<VecDeque<(Instant, TenantId, u64)>>,
}

impl std::fmt::Debug for StreamMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamMetrics").finish_non_exhaustive()
    }
}

impl StreamMetrics {
    pub(super) fn new() -> Self {
        Self {
            local: metrics::histogram!("mcp_stream_delivery_seconds", "way" => "local"),
            remote: metrics::histogram!("mcp_stream_delivery_seconds", "way" => "remote"),
            closed: Mutex::default(),
        }
    }

    /// Records that a client's connection received an event.
    pub(super) fn delivered(&self, since: Since, now: Instant) {
        let way = if since.is_local {
            &self.local
        } else {
            &self.remote
        };
        way.record(now.saturating_duration_since(since.at).as_secs_f64());
    }

    /// Records that a writer has finished its stream.
    pub(super) fn closed(&self, stream: &WriterState, at: Option<Instant>) {
        let bytes = stream.logged.load(Ordering::Relaxed).min(MOST);
        if let (Some(at), true) = (at, bytes > 0) {
            lock(&self.closed).push_back((at + KEPT, stream.tenant, bytes));
        }
    }
}

/// Returns the largest entries, largest first.
fn top(bytes: HashMap<TenantId, u64>) -> Vec<(TenantId, u64)> {
    let mut bytes: Vec<_> = bytes.into_iter().collect();
    bytes.sort_unstable_by_key(|(tenant, bytes)| (std::cmp::Reverse(*bytes), *tenant));
    bytes.truncate(TOP);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_tenants_are_told_and_the_largest_are_among_them() {
        let bytes: HashMap<TenantId, u64> = (1..=50)
            .map(|bytes| (TenantId::generate(), bytes))
            .collect();
        let told: Vec<u64> = top(bytes).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(told, (31..=50).rev().collect::<Vec<_>>());
    }
}
