//! Metrics that are measured at intervals, because no event changes them (STREAM-20).

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use metrics::Histogram;
use portolan_model::id::TenantId;
use tokio::time::Instant;

use super::{Inner, writer};
use crate::lock;

/// Interval of the inexpensive measurements.
const OFTEN: Duration = Duration::from_secs(1);
/// Intervals between two measurements of the streams.
const STREAMS: u32 = 5;
/// Intervals between two reads of the store's memory.
const MEMORY: u32 = 15;
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
        f.debug_struct("Vitals").finish_non_exhaustive()
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
    pub(super) fn closed(&self, stream: &writer::Shared, at: Option<Instant>) {
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

/// Measures until the node stops or leaves.
pub(super) async fn measure(inner: Arc<Inner>) {
    let mut ticks = tokio::time::interval(OFTEN);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = HashSet::new();
    for round in 0_u32.. {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = inner.left.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Some(beat) = inner.watcher.last_beat() {
            metrics::gauge!("beat_age_seconds").set(beat.elapsed().as_secs_f64());
        }
        metrics::gauge!("redis_inflight").set(number(inner.guarded_store.store.in_flight()));
        if round % STREAMS == 0 {
            metrics::gauge!("server_requests_open").set(number(inner.questions.len()));
            streams(&inner, &mut shown);
        }
        if round % MEMORY == 0 {
            let asked = inner.guarded_store.store.used_memory();
            let within = inner.settings.call_within;
            tokio::select! {
                biased;
                () = inner.stop.cancelled() => return,
                used = tokio::time::timeout(within, asked) => if let Ok(Ok(Some(used))) = used {
                    metrics::gauge!("redis_used_memory_ratio").set(used);
                    inner.guarded_store.slowness.filled(used);
                },
            }
        }
    }
}

fn streams(inner: &Inner, shown: &mut HashSet<TenantId>) {
    let mut logged: HashMap<TenantId, u64> = HashMap::new();
    let mut held = 0;
    for writer in inner.writers.all() {
        held += writer.held.load(Ordering::Relaxed);
        let bytes = writer.logged.load(Ordering::Relaxed).min(MOST);
        if bytes > 0 {
            *logged.entry(writer.tenant).or_default() += bytes;
        }
    }
    for connection in inner.connections.all() {
        held += connection.held();
    }
    metrics::gauge!("mcp_stream_memory_bytes").set(number(held));
    let now = Instant::now();
    {
        let mut closed = lock(&inner.stream_metrics.closed);
        while closed.front().is_some_and(|(until, ..)| *until <= now) {
            closed.pop_front();
        }
        for (_, tenant, bytes) in &*closed {
            *logged.entry(*tenant).or_default() += bytes;
        }
    }
    let top = top(logged);
    // A gauge with value zero is not exported.
    shown.retain(|tenant| {
        let stays = top.iter().any(|(other, _)| other == tenant);
        if !stays {
            log_bytes(*tenant, 0);
        }
        stays
    });
    for (tenant, bytes) in top {
        log_bytes(tenant, bytes);
        shown.insert(tenant);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge")]
fn log_bytes(tenant: TenantId, bytes: u64) {
    metrics::gauge!("tenant_log_bytes", "tenant" => tenant.to_string()).set(bytes as f64);
}

#[expect(clippy::cast_precision_loss, reason = "a gauge")]
const fn number(count: usize) -> f64 {
    count as f64
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
