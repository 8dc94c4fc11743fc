//! Measures at intervals.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use portolan_model::id::TenantId;
use tokio::time::Instant;

use super::{MOST, top};
use crate::{lock, node::inner::Inner};

/// Intervals between two measurements of the streams.
const STREAMS: u32 = 5;

/// State between two measurements.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    round: u32,
    shown: HashSet<TenantId>,
}

impl Gauges {
    /// Measures. Called once a second.
    pub(crate) fn measure(&mut self, inner: &Inner) {
        if let Some(beat) = inner.watcher.last_beat() {
            metrics::gauge!("beat_age_seconds").set(beat.elapsed().as_secs_f64());
        }
        let health = inner.guarded_store.store.health();
        metrics::gauge!("redis_inflight").set(number(health.in_flight));
        if let Some(used) = health.used_memory {
            metrics::gauge!("redis_used_memory_ratio").set(used);
            inner.guarded_store.slowness.filled(used);
        }
        if self.round.is_multiple_of(STREAMS) {
            metrics::gauge!("server_requests_open").set(number(inner.questions.len()));
            streams(inner, &mut self.shown);
        }
        self.round = self.round.wrapping_add(1);
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
